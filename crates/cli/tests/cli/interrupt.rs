//! Ctrl-C: a usable model is written and marked, otherwise nothing; 130 either way.

use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use covary::linalg::Mat;

use crate::support::{Place, noise, signal, table_of, wait_for_end};

#[test]
fn while_rows_are_awaited_nothing_is_written() {
    for name in ["INT", "TERM"] {
        let place = Place::new();
        let mut command = place.command();
        command.args(["fit", "-", "-o", "m.covary"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"a,b\n1,2\n3,4\n").unwrap();
        sleep(Duration::from_millis(500));
        signal(&child, name);
        assert_eq!(wait_for_end(&mut child).code(), Some(130), "{name}");
        let output = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("covary: interrupted"));
        assert!(place.files().is_empty(), "{:?}", place.files());
    }
}

#[test]
fn rows_that_went_to_standard_output_are_not_denied() {
    use std::io::Read;
    let place = Place::with_model();
    let mut command = place.command();
    command.args(["sample", "cross.covary", "-n", "1000000000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = vec![0; 1 << 20];
    child.stdout.as_mut().unwrap().read_exact(&mut seen).unwrap();
    signal(&child, "INT");
    // It may be writing to a pipe that nobody empties.
    let mut rest = child.stdout.take().unwrap();
    let emptied = std::thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
    assert_eq!(wait_for_end(&mut child).code(), Some(130));
    emptied.join().unwrap().unwrap();
    let told = crate::support::stderr(&child.wait_with_output().unwrap());
    assert!(told.contains("only a part") && !told.contains("nothing"), "{told}");
}

#[test]
fn a_usable_model_is_written_and_marked() {
    let place = Place::new();
    let mut draw = noise(8);
    // Noise without directions: the iteration finds nothing to settle on.
    table_of(&place, "noise.npy", &Mat::from_fn(30_000, 250, |_, _| draw()));
    let args = "fit noise.npy -q 20 --solver krylov --tol 1e-15 --max-iter 100000 -o m.covary --json";
    for delay in [1000, 3000, 9000, 27_000] {
        let mut child = place.command().args(args.split(' ')).stdout(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(delay));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        signal(&child, "INT");
        assert_eq!(wait_for_end(&mut child).code(), Some(130));
        if !place.path("m.covary").exists() {
            continue; // too early: no pass was through yet
        }
        let told = place.json(&["inspect", "m.covary", "--json"]);
        assert_eq!((told["stop"].as_str(), told["converged"].as_bool()), (Some("interrupted"), Some(false)));
        assert!(place.ok(&["inspect", "m.covary"]).contains("interrupted after"));
        return;
    }
    panic!("no pass was through after half a minute");
}

/// Searches that would take hours: a GP-LVM, and a network.
#[test]
fn an_unfinished_search_leaves_a_model_that_answers() {
    let place = Place::new();
    let mut draw = noise(9);
    let t = |i: usize| 5.0 * i as f64 / 600.0;
    let cell = |i: usize, j: usize| [t(i).cos(), t(i).sin(), 0.3 * t(i)][j];
    table_of(&place, "x.npy", &Mat::from_fn(600, 3, |i, j| cell(i, j) + 0.1 * draw()));
    for (model, more) in [("gplvm", " --inducing 8"), ("autoencoder", " --no-early-stopping")] {
        let file = format!("{model}.covary");
        let steps = "--tol 1e-300 --max-iter 1000000";
        let args = format!("fit x.npy --model {model} -q 1 {steps} -o {file}{more}");
        for delay in [1000, 4000, 16_000] {
            let mut child = place.command().args(args.split(' ')).stdout(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(delay));
            assert!(child.try_wait().unwrap().is_none(), "{model} ended by itself");
            signal(&child, "INT");
            assert_eq!(wait_for_end(&mut child).code(), Some(130), "{model}");
            if place.path(&file).exists() {
                break; // otherwise too early: no step was through yet
            }
        }
        let told = place.json(&["inspect", &file, "--json"]);
        assert_eq!(
            (told["stop"].as_str(), told["converged"].as_bool()),
            (Some("interrupted"), Some(false)),
            "{model}"
        );
        assert!(told["iterations"].as_u64() > Some(0), "{model}");
        place.write("few.csv", "x1,x2,x3\n1,0,0\n");
        assert!(place.ok(&["transform", &file, "few.csv"]).lines().count() == 2);
    }
}

#[test]
fn too_few_iterations_are_told_by_the_exit_code() {
    let place = Place::new();
    let mut draw = noise(8);
    table_of(&place, "noise.npy", &Mat::from_fn(400, 80, |_, _| draw()));
    let args = "fit noise.npy -q 3 --solver krylov --max-iter 2 -o m.covary";
    let output = place.command().args(args.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("--max-iter"));
    let told = place.json(&["inspect", "m.covary", "--json"]);
    assert_eq!((told["stop"].as_str(), told["passes"].as_u64()), (Some("iteration_limit"), Some(2)));
}

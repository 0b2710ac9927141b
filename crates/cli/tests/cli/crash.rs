//! Killed at any moment, the command leaves whole files or none.

use std::fs;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Place, noise, rows, soak, table_of};

/// Starts to write the model of one of two tables over the same file.
fn start(place: &Place, which: usize) -> Child {
    let data = ["a.npy", "b.npy"][which];
    let mut command = place.command();
    command.args(["fit", data, "-q", "15", "--solver", "dual", "--quiet", "--threads", "1"]);
    command.args(["-o", "out/m.covary"]).spawn().unwrap()
}

#[test]
fn soak_kills_leave_only_whole_models() {
    let kills = soak(20, 300);
    let place = Place::new();
    table_of(&place, "a.npy", &rows(25, 800, 1));
    table_of(&place, "b.npy", &rows(25, 800, 2));
    fs::create_dir(place.path("out")).unwrap();
    let mut whole = Vec::new();
    let mut window = Duration::MAX;
    for which in [0, 1, 0, 1] {
        let started = Instant::now();
        assert!(start(&place, which).wait().unwrap().success());
        window = window.min(started.elapsed());
        whole.push(place.read("out/m.covary"));
    }
    let mut draw = noise(7);
    let mut killed = 0;
    for attempt in 0..4 * kills {
        if killed == kills {
            return;
        }
        if attempt % 3 == 0 {
            drop(fs::remove_file(place.path("out/m.covary"))); // both a new file and one that is replaced
        }
        let mut child = start(&place, attempt % 2);
        // Files are written in the second half of a run, and the window follows how long runs take.
        sleep(window.mul_f64(0.75 + 0.5 * draw()));
        drop(child.kill());
        let finished = child.wait().unwrap().success();
        killed += usize::from(!finished);
        window = window.mul_f64(if finished { 0.98 } else { 1.01 });
        check_whole(&place, &whole, killed);
    }
    panic!("only {killed} runs could be killed");
}

fn check_whole(place: &Place, whole: &[Vec<u8>], killed: usize) {
    for entry in fs::read_dir(place.path("out")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(whole.contains(&bytes), "{} is not whole after {killed} kills", path.display());
    }
}

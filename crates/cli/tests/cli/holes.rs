//! Fits of data with holes: what is told, the same from every source, what is left out, and bad input.

use std::collections::HashSet;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use covary::linalg::Mat;

use crate::support::{
    Place, check_failure, close, csv, names, noise, rows, rows_with_holes, signal, stderr, table_of,
    triples_of, wait_for_end,
};

/// Log-likelihood, noise and the rest of what a fit tells.
fn fit(place: &Place, args: &[&str]) -> serde_json::Value {
    place.json(&[&["fit"], args, &["--json"]].concat())
}

fn number(told: &serde_json::Value, key: &str) -> f64 {
    told[key].as_f64().unwrap_or_else(|| panic!("{key}: {told}"))
}

#[test]
fn a_fit_counts_what_is_missing() {
    let place = Place::new();
    let mut x = rows_with_holes(200, 5, 0.15, 3);
    (0..5).for_each(|j| (x[(7, j)], x[(90, j)]) = (f64::NAN, f64::NAN));
    table_of(&place, "x.csv", &x);
    let told = fit(&place, &["x.csv", "-q", "2", "-o", "m.covary"]);
    let pattern = |i: usize| (0..5).map(|j| x[(i, j)].is_nan()).collect::<Vec<_>>();
    let patterns: HashSet<Vec<bool>> = (0..200).map(pattern).collect();
    let missing = (0..200).flat_map(pattern).filter(|hole| *hole).count();
    let holes = &told["holes"];
    assert_eq!(holes["missing"].as_u64(), Some(missing as u64));
    assert_eq!(holes["observed"].as_u64(), Some(1000 - missing as u64));
    close(holes["share"].as_f64().unwrap(), missing as f64 / 1000.0, 1e-15);
    assert_eq!(
        (holes["patterns"].as_u64(), holes["empty_rows"].as_u64()),
        (Some(patterns.len() as u64), Some(2))
    );
    assert_eq!((told["solver"].as_str(), told["converged"].as_bool()), (Some("em"), Some(true)));
    assert!(told["iterations"].as_u64() > Some(0) && told["iterations"].as_u64() < told["passes"].as_u64());
    // The likelihood of the fit is that of the rows by themselves.
    let (_, scores) = csv(&place.ok(&["score", "m.covary", "x.csv"]));
    close(number(&told, "log_likelihood"), scores.iter().map(|row| row[0]).sum(), 1e-9);
    let text = place.ok(&["fit", "x.csv", "-q", "2"]);
    for word in
        [&format!("{missing} cells"), "patterns", "without any cell: 2", "observed cells", "iterations"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(place.ok(&["inspect", "m.covary"]).contains("without any cell: 2"));
    table_of(&place, "whole.csv", &rows(50, 4, 1));
    assert!(fit(&place, &["whole.csv", "-q", "1"])["holes"].is_null());
}

#[test]
fn every_source_gives_the_same_model() {
    let place = Place::new();
    // 8.6 MB of cells where 8 MB may be loaded.
    let x = rows_with_holes(90_000, 12, 0.1, 8);
    table_of(&place, "x.csv", &x);
    table_of(&place, "x.parquet", &x);
    place.write("t.csv", triples_of(&x, &names(12)));
    let expected = fit(&place, &["x.csv", "-q", "2", "--memory", "1G"]);
    for args in [
        &["x.csv", "--memory", "16M"][..],
        &["x.parquet", "--memory", "16M", "--threads", "3"],
        &["x.parquet", "--memory", "1G"],
        &["t.csv", "--triples", "user,item,value"],
    ] {
        let told = fit(&place, &[args, &["-q", "2"]].concat());
        close(number(&told, "log_likelihood"), number(&expected, "log_likelihood"), 1e-9);
        close(number(&told, "noise_variance"), number(&expected, "noise_variance"), 1e-5);
    }
    let held_out = |args: &[&str]| {
        place.json(&[&["impute"], args, &["--holdout", "0.05", "-q", "2", "--json"]].concat())
    };
    let (large, small) =
        (held_out(&["x.csv", "--memory", "1G"]), held_out(&["x.parquet", "--memory", "16M"]));
    assert_eq!(large["hidden"], small["hidden"]);
    close(number(&small, "rmse"), number(&large, "rmse"), 1e-6);
    let output = place.shell("covary fit - --memory 16M -q 2 < x.csv");
    check_failure(&["-"], &output, 2, &["standard input", "only once", "--memory"]);
    let told = fit(&place, &["x.csv", "-q", "2", "--memory", "1G", "--threads", "3"]);
    assert_eq!(told["log_likelihood"], expected["log_likelihood"], "bit by bit");
}

#[test]
fn names_of_users_and_items_survive() {
    let place = Place::new();
    let mut draw = noise(3);
    let films = ["Alien", "Brazil", "Cube", "Dune", "Eraserhead"];
    let mut text = String::from("who,film,stars\n");
    for i in 0..60 {
        let taste = draw();
        for (j, film) in films.iter().enumerate().filter(|(j, _)| (i + j) % 3 != 0) {
            let stars = 3.0 + taste * (j as f64 - 2.0) + 0.3 * draw();
            text += &format!("u{i},{film},{stars:.3}\n");
        }
    }
    place.write("r.csv", &text);
    let columns = ["--triples", "who,film,stars"];
    place.ok(&[&["fit", "r.csv", "-q", "1", "-o", "films.covary", "--quiet"], &columns[..]].concat());
    let told = place.json(&["inspect", "films.covary", "--json"]);
    let mut found: Vec<&str> =
        told["feature_names"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, films);
    let z = place.ok(&[&["transform", "films.covary", "r.csv"], &columns[..]].concat());
    let who: Vec<&str> = z.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!((who[0], who[1], who[60], who.len()), ("who", "u0", "u59", 61));
    place.write("p.csv", "film,who\nAlien,u0\nDune,nobody\n");
    let args = ["impute", "films.covary", "r.csv", "--pairs", "p.csv", "--std"];
    let text = place.ok(&[&args[..], &columns[..]].concat());
    assert!(text.starts_with("film,who,prediction,std\nAlien,u0,"), "{text}");
}

#[test]
fn a_feature_without_cells_is_named_or_left_out() {
    let place = Place::new();
    place.write("x.csv", "a,b,c,d\n1,,2,\n2,,3.5,\n3,,5,\n4,,9,\n5,,1,\n");
    let words = ["'x.csv'", "'b' and 'd'", "never observed", "--drop-empty"];
    place.fails(&["fit", "x.csv", "-q", "1", "-o", "m.covary"], 3, &words);
    assert_eq!(place.files(), ["x.csv"]);
    let output = place.run(&["fit", "x.csv", "-q", "1", "--drop-empty", "-o", "m.covary"]);
    assert!(stderr(&output).contains("as no row has a value: 'b', 'd'"), "{}", stderr(&output));
    let told = fit(&place, &["x.csv", "-q", "1", "--drop-empty"]);
    assert_eq!((told["features"].as_u64(), told["left_out"][1]["name"].as_str()), (Some(2), Some("d")));
    assert_eq!(told["left_out"][0]["because"], "never observed");
    // What is left is complete: the closed form.
    place.write("y.csv", "a,c\n1,2\n2,3.5\n3,5\n4,9\n5,1\n");
    assert_eq!(told["noise_variance"], fit(&place, &["y.csv", "-q", "1"])["noise_variance"]);
    let piped = place.shell("covary fit - -q 1 --drop-empty --json < x.csv");
    let piped: serde_json::Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["noise_variance"], told["noise_variance"]);
    place.write("none.csv", "a,b\n,\n,\n");
    place.fails(&["fit", "none.csv", "-q", "1", "--drop-empty"], 3, &["'none.csv'", "no value"]);
    place.write("t.csv", "u,i,v\n1,a,1\n1,b,2\n2,a,2\n2,b,3\n3,a,4\n3,b,1\n3,c,\n4,a,3\n4,b,3\n");
    let triples = ["fit", "t.csv", "-q", "1", "--triples", "u,i,v"];
    place.fails(&triples, 3, &["'t.csv'", "'c'", "never observed"]);
    let told = place.json(&[&triples[..], &["--drop-empty", "--json"]].concat());
    assert_eq!((told["features"].as_u64(), told["rows"].as_u64()), (Some(2), Some(4)));
}

#[test]
fn a_feature_without_cells_in_a_large_file_is_left_out() {
    let place = Place::new();
    let x = rows_with_holes(90_000, 12, 0.05, 8);
    let x = Mat::from_fn(90_000, 12, |i, j| if j == 4 { f64::NAN } else { x[(i, j)] });
    table_of(&place, "x.parquet", &x);
    let told = fit(&place, &["x.parquet", "-q", "1", "--memory", "16M", "--drop-empty"]);
    assert_eq!((told["features"].as_u64(), told["left_out"][0]["name"].as_str()), (Some(11), Some("x5")));
}

#[test]
fn bad_input_among_holes() {
    let place = Place::new();
    let fails = |content: &str, args: &[&str], words: &[&str]| {
        place.write("x.csv", content);
        place.fails(&[&["fit", "x.csv", "-o", "m.covary"], args].concat(), 3, words);
        assert!(!place.path("m.covary").exists());
    };
    fails("a,b\n1,2\n,inf\n4,\n", &["-q", "1"], &["'x.csv'", "row 2", "'b'", "infinite"]);
    fails("a,b\n1,2\n,x\n4,\n5,6\n7,7\n", &["-q", "1"], &["row 2", "'b'", "'x'"]);
    let mut x = rows_with_holes(50, 3, 0.2, 1);
    x[(33, 1)] = f64::INFINITY;
    table_of(&place, "x.npy", &x);
    place.fails(&["fit", "x.npy", "-q", "1"], 3, &["'x.npy'", "row 34", "'x2'", "inf"]);
    place.fails(
        &["impute", "x.npy", "--holdout", "0.9", "-q", "1"],
        3,
        &["'x.npy'", "row 34", "'x2'", "inf"],
    );
    table_of(&place, "h.csv", &rows_with_holes(50, 3, 0.2, 1));
    for solver in ["eigen", "svd", "dual", "krylov"] {
        place.fails(
            &["fit", "h.csv", "-q", "1", "--solver", solver],
            3,
            &["'h.csv'", "row", "empty", "--solver auto or em"],
        );
    }
    place.fails(&["moments", "h.csv", "-o", "h.moments"], 3, &["'h.csv'", "row", "complete rows"]);
    let triples = |body: &str, code: i32, words: &[&str]| {
        place.write("t.csv", format!("u,i,v\n{body}"));
        place.fails(&["fit", "t.csv", "-q", "1", "--triples", "u,i,v", "-o", "m.covary"], code, words);
    };
    triples("1,a,1\n2,a,2\n1,a,3\n", 3, &["rows 1 and 3", "'1'", "'a'"]);
    triples("1,1,1\n2,-1,2\n", 3, &["row 2", "'i'", "'-1'"]);
    place.fails(&["fit", "t.csv", "--triples", "u,i,v", "--solver", "eigen"], 2, &["--triples", "em"]);
    triples("1,1,1\n2,1.5,2\n", 3, &["row 2", "'i'", "'1.5'"]);
    assert_eq!(place.run(&["fit", "t.csv", "-q", "1", "--triples", "u,i"]).status.code(), Some(2));
}

#[test]
fn a_model_to_start_from() {
    let place = Place::new();
    let x = rows_with_holes(300, 6, 0.3, 5);
    table_of(&place, "x.csv", &x);
    let cold = fit(&place, &["x.csv", "-q", "2", "-o", "m.covary"]);
    let warm = fit(&place, &["x.csv", "--start", "m.covary"]);
    assert_eq!(warm["components"].as_u64(), Some(2));
    close(number(&warm, "log_likelihood"), number(&cold, "log_likelihood"), 1e-9);
    assert!(warm["iterations"].as_u64() <= cold["iterations"].as_u64(), "{warm}");
    place.fails(&["fit", "x.csv", "--start", "nowhere.covary"], 5, &["'nowhere.covary'"]);
    place.fails(&["fit", "x.csv", "-q", "1", "--start", "m.covary"], 2, &["start", "2 components"]);
    place.write("y.csv", "x1,x2\n1,2\n2,4\n3,5\n");
    place.fails(&["fit", "y.csv", "--start", "m.covary"], 3, &["'y.csv'", "'x3'", "model"]);
}

#[test]
fn em_finds_the_closed_form_of_complete_rows() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(200, 6, 2));
    let closed = fit(&place, &["x.csv", "-q", "2"]);
    let em = fit(&place, &["x.csv", "-q", "2", "--solver", "em"]);
    close(number(&em, "log_likelihood"), number(&closed, "log_likelihood"), 1e-8);
    close(number(&em, "noise_variance"), number(&closed, "noise_variance"), 1e-4);
}

#[test]
fn the_honest_holdout_fits_what_is_not_hidden() {
    let place = Place::new();
    let x = rows_with_holes(600, 6, 0.1, 9);
    table_of(&place, "x.csv", &x);
    // Whole numbers ascend, so that the same cells are hidden.
    place.write("t.csv", triples_of(&x, &["1", "2", "3", "4", "5", "6"].map(String::from)));
    let run =
        |data: &[&str]| place.json(&[&["impute"], data, &["--holdout", "0.1", "-q", "2", "--json"]].concat());
    let told = run(&["x.csv"]);
    assert!(told["model_file"].is_null() && told["converged"].as_bool() == Some(true), "{told}");
    assert!(number(&told, "rmse") < 0.5 * number(&told, "baseline_rmse"), "{told}");
    assert!((number(&told, "coverage_95") - 0.95).abs() < 0.05, "{told}");
    let cells = run(&["t.csv", "--triples", "user,item,value"]);
    assert_eq!(cells["hidden"], told["hidden"]);
    close(number(&cells, "baseline_rmse"), number(&told, "baseline_rmse"), 1e-9);
    close(number(&cells, "rmse"), number(&told, "rmse"), 1e-4);
    let text = place.ok(&["impute", "x.csv", "--holdout", "0.1", "-q", "2"]);
    assert!(text.contains("fitted to the other cells"), "{text}");
    place.write("e.csv", "a,b,c\n1,2,\n2,4,\n3,5,\n4,9,\n5,9,\n6,13,\n7,13,\n");
    let told = place.json(&["impute", "e.csv", "--holdout", "0.3", "-q", "1", "--json"]);
    assert_eq!(told["observed"].as_u64(), Some(14), "an empty column does not matter");
}

#[test]
fn an_interrupted_fit_writes_what_it_has() {
    let place = Place::new();
    let mut draw = noise(8);
    // Noise without directions: EM finds nothing to settle on.
    let x = Mat::from_fn(20_000, 40, |_, _| Some(draw()).filter(|v| *v > -0.3).unwrap_or(f64::NAN));
    table_of(&place, "noise.npy", &x);
    let args = "fit noise.npy -q 15 --tol 1e-15 --max-iter 100000 -o m.covary --json";
    for delay in [1000, 3000, 9000, 27_000] {
        let mut child = place.command().args(args.split(' ')).stdout(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(delay));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        signal(&child, "INT");
        assert_eq!(wait_for_end(&mut child).code(), Some(130));
        if place.path("m.covary").exists() {
            let told = place.json(&["inspect", "m.covary", "--json"]);
            assert_eq!((told["stop"].as_str(), told["solver"].as_str()), (Some("interrupted"), Some("em")));
            return;
        }
    }
    panic!("no iteration was through after half a minute");
}

#[test]
fn one_cell_in_each_row() {
    let place = Place::new();
    let mut draw = noise(4);
    let line = |i: usize, x: f64| match i % 3 {
        0 => format!("{x},,\n"),
        1 => format!(",{x},\n"),
        _ => format!(",,{x}\n"),
    };
    place.write("x.csv", format!("a,b,c\n{}", (0..300).map(|i| line(i, draw())).collect::<String>()));
    let words = ["'x.csv'", "1 component", "300 observed cells", "more cells"];
    place.fails(&["fit", "x.csv", "-q", "1", "-o", "m.covary"], 3, &words);
    assert_eq!(place.files(), ["x.csv"]);
}

//! Bayesian PCA through the binary: what is kept and told, the same from every source, and every question of the model.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use covary::linalg::Mat;
use serde_json::Value;

use crate::factor::{matrix, numbers};
use crate::support::{
    Parameters, Place, close, csv, names, noise, row_of, rows_with_holes, signal, table_of, triples_of,
    wait_for_end,
};

/// Independent features, of which the first three vary most: Bishop's example, with uniform noise.
fn three_of(p: usize, n: usize, seed: u64) -> Mat<f64> {
    let mut draw = noise(seed);
    let deviation = |j: usize| [5.0, 4.0, 3.0].get(j).copied().unwrap_or(1.0);
    Mat::from_fn(n, p, |_, j| 2.0 + deviation(j) * 12_f64.sqrt() * draw())
}

fn fit(place: &Place, args: &[&str]) -> Value {
    place.json(&[&["fit"], args, &["--model", "bpca", "--json"]].concat())
}

fn number(told: &Value, key: &str) -> f64 {
    told[key].as_f64().unwrap_or_else(|| panic!("{key}: {told}"))
}

/// The density of new rows: what is not known of W and μ adds to the noise of each feature.
fn predictive(place: &Place, model: &str) -> Parameters {
    let mut parameters = Parameters::of(place, model);
    let told = place.json(&["inspect", model, "--json"]);
    if let Value::Array(_) = &told["bayes"]["mean_std"] {
        let (w, mean) = (matrix(&told["bayes"]["loadings_std"]), numbers(&told["bayes"]["mean_std"]));
        for (j, (w, mean)) in w.iter().zip(mean).enumerate() {
            parameters.covariance[j][j] += w.iter().map(|s| s * s).sum::<f64>() + mean * mean;
        }
    }
    parameters
}

#[test]
fn what_stands_out_is_kept_and_told() {
    let place = Place::new();
    table_of(&place, "x.csv", &three_of(10, 100, 1));
    for (method, words) in [("vb", "bound on log evidence"), ("ard", "log posterior of W")] {
        let told = fit(&place, &["x.csv", "--method", method, "-o", "m.covary"]);
        assert_eq!((told["model"].as_str(), told["components"].as_u64()), (Some("bpca"), Some(3)), "{told}");
        let bayes = &told["bayes"];
        assert_eq!((bayes["method"].as_str(), bayes["allowed"].as_u64()), (Some(method), Some(10)));
        assert!(bayes["objective"].is_f64());
        // α is the reciprocal of the mean square of a column of W, and W has a direction for each eigenvalue.
        let inspected = place.json(&["inspect", "m.covary", "--json"]);
        let (w, alpha) = (matrix(&inspected["loadings"]), numbers(&bayes["precisions"]));
        let spread = |j: usize, k: usize| bayes["loadings_std"][j][k].as_f64().unwrap_or(0.0);
        for (k, alpha) in alpha.iter().enumerate() {
            let square: f64 = (0..10).map(|j| w[j][k].powi(2) + spread(j, k).powi(2)).sum();
            close(*alpha, 10.0 / square, 1e-9);
        }
        assert_eq!(bayes["loadings_std"].is_null(), method == "ard");
        let text = place.ok(&["fit", "x.csv", "--model", "bpca", "--method", method]);
        for word in ["3 kept of 10", "all that the data allow", words, "precision (α)", "z3"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let text = place.ok(&["inspect", "m.covary"]);
        assert!(
            text.contains("3 kept of 10") && text.contains("(standard deviation)") == (method == "vb"),
            "{text}"
        );
    }
    assert!(fit(&place, &["x.csv", "-q", "2"])["components"].as_u64() == Some(2));
    assert!(place.json(&["fit", "x.csv", "--json"])["bayes"].is_null());
}

#[test]
fn every_source_gives_the_same() {
    let place = Place::new();
    let x = three_of(8, 300, 5);
    table_of(&place, "x.csv", &x);
    table_of(&place, "x.npy", &x);
    place.ok(&["moments", "x.csv", "-o", "x.moments", "--quiet"]);
    let expected = fit(&place, &["x.csv"]);
    let piped = place.shell("covary fit - --model bpca --json < x.csv");
    let others =
        [fit(&place, &["x.npy"]), fit(&place, &["x.moments"]), fit(&place, &["x.csv", "--threads", "3"])];
    for told in others.into_iter().chain([serde_json::from_slice(&piped.stdout).unwrap()]) {
        assert_eq!(told["components"], expected["components"]);
        close(number(&told["bayes"], "objective"), number(&expected["bayes"], "objective"), 1e-10);
        close(number(&told, "noise_variance"), number(&expected, "noise_variance"), 1e-10);
    }
    // Passes over complete rows end where the spectrum says; a row of weight 2 is two rows.
    let passes = fit(&place, &["x.csv", "--solver", "em", "-q", "5"]);
    assert_eq!((passes["solver"].as_str(), &passes["components"]), (Some("em"), &expected["components"]));
    close(number(&passes["bayes"], "objective"), number(&expected["bayes"], "objective"), 1e-7);
    let line = |i: usize| row_of(&x, i).iter().map(|v| format!(",{v}")).collect::<String>();
    let table = |lines: String| format!("w,{}\n{lines}", names(8).join(","));
    place.write("twice.csv", table((0..300).map(|i| format!("1{0}\n1{0}\n", line(i))).collect()));
    place.write("heavy.csv", table((0..300).map(|i| format!("2{}\n", line(i))).collect()));
    let twice = fit(&place, &["twice.csv", "--drop", "w"]);
    let heavy = fit(&place, &["heavy.csv", "--weights", "w"]);
    close(number(&heavy["bayes"], "objective"), number(&twice["bayes"], "objective"), 1e-10);
}

#[test]
fn holes_are_fitted_from_every_source() {
    let place = Place::new();
    // 8.6 MB of cells where 8 MB may be loaded.
    let x = rows_with_holes(90_000, 12, 0.1, 8);
    table_of(&place, "x.parquet", &x);
    place.write("t.csv", triples_of(&x, &names(12)));
    let options = ["-q", "4", "--tol", "1e-3"];
    let expected = fit(&place, &[&["x.parquet", "--memory", "1G"], &options[..]].concat());
    assert_eq!((expected["components"].as_u64(), expected["solver"].as_str()), (Some(2), Some("em")));
    for args in [&["x.parquet", "--memory", "16M"][..], &["t.csv", "--triples", "user,item,value"]] {
        let told = fit(&place, &[args, &options].concat());
        assert_eq!(told["components"].as_u64(), Some(2));
        close(number(&told["bayes"], "objective"), number(&expected["bayes"], "objective"), 1e-7);
        close(number(&told, "noise_variance"), number(&expected, "noise_variance"), 1e-5);
    }
}

#[test]
fn every_question_is_answered_by_the_density_of_new_rows() {
    let place = Place::new();
    let x = rows_with_holes(40, 5, 0.2, 3);
    table_of(&place, "x.csv", &x);
    for (method, tol) in [("vb", "1e-8"), ("ard", "1e-3")] {
        let told = fit(&place, &["x.csv", "-q", "3", "--method", method, "--tol", tol, "-o", "m.covary"]);
        let density = predictive(&place, "m.covary");
        let (_, filled) = csv(&place.ok(&["impute", "m.covary", "x.csv", "--std"]));
        for (i, filled) in filled.iter().enumerate() {
            let row = row_of(&x, i);
            for j in (0..5).filter(|j| row[*j].is_nan()) {
                let (mean, deviation) = density.conditional(&row, j);
                close(filled[j], mean, 1e-8);
                close(filled[5 + j], deviation, 1e-8);
            }
        }
        let (_, scores) = csv(&place.ok(&["score", "m.covary", "x.csv"]));
        close(number(&told, "log_likelihood"), scores.iter().map(|row| row[0]).sum(), 1e-9);
        assert!(scores.iter().all(|row| row.len() == 4 && (0.0..=1.0).contains(&row[3])));
        let q = numbers(&told["bayes"]["precisions"]).len();
        let (header, z) = csv(&place.ok(&["transform", "m.covary", "x.csv", "--std"]));
        assert_eq!((header.len(), z.len()), (2 * q, 40));
        for args in [&["reconstruct", "m.covary", "x.csv"][..], &["sample", "m.covary", "-n", "7"]] {
            let (header, rows) = csv(&place.ok(args));
            assert_eq!(header, names(5));
            assert!(rows.iter().flatten().all(|v| v.is_finite()), "{args:?}");
        }
        let rotated = place.json(&["rotate", "m.covary", "--method", "varimax", "-o", "r.covary", "--json"]);
        assert_eq!(matrix(&rotated["loadings"])[0].len(), q);
        assert_eq!(
            place.ok(&["impute", "r.covary", "x.csv", "--std"]).lines().count(),
            place.ok(&["impute", "m.covary", "x.csv", "--std"]).lines().count()
        );
        let warm = fit(&place, &["x.csv", "--start", "m.covary", "--method", method, "--tol", tol]);
        assert_eq!(warm["bayes"]["allowed"].as_u64(), told["components"].as_u64(), "as the start has");
        let (warm, cold) = (number(&warm["bayes"], "objective"), number(&told["bayes"], "objective"));
        assert!(warm > cold - 40.0 * tol.parse::<f64>().unwrap(), "{warm} {cold}");
    }
    let judged = place.json(&["impute", "x.csv", "--holdout", "0.1", "--model", "bpca", "-q", "3", "--json"]);
    assert_eq!(judged["model"].as_str(), Some("bpca"));
}

#[test]
fn nothing_but_noise_keeps_no_component() {
    let place = Place::new();
    let mut draw = noise(2);
    let mut x = Mat::from_fn(200, 5, |_, _| 1.0 + draw());
    table_of(&place, "x.csv", &x);
    x[(3, 2)] = f64::NAN;
    x[(8, 0)] = f64::NAN;
    table_of(&place, "holes.csv", &x);
    place.write("days.csv", "day,x1,x2,x3,x4,x5\n7,1,2,,1,1\n8,1,2,1,1,1\n");
    for (data, method) in [("x.csv", "vb"), ("x.csv", "ard"), ("holes.csv", "vb"), ("holes.csv", "ard")] {
        let told = fit(&place, &[data, "--method", method, "-o", "m.covary"]);
        assert_eq!(told["components"].as_u64(), Some(0), "{data} {method}: {told}");
        for args in [&["fit", data, "--model", "bpca", "--method", method][..], &["inspect", "m.covary"]] {
            let text = place.ok(args);
            assert!(
                text.contains("no direction stands out") && text.contains("no component is left"),
                "{text}"
            );
        }
        let density = predictive(&place, "m.covary");
        let (_, filled) = csv(&place.ok(&["impute", "m.covary", "holes.csv", "--std"]));
        close(filled[3][2], density.mean[2], 1e-12);
        close(filled[3][5 + 2], density.covariance[2][2].sqrt(), 1e-12);
        for args in [
            &["score", "m.covary", "holes.csv"][..],
            &["reconstruct", "m.covary", "x.csv"],
            &["sample", "m.covary", "-n", "3"],
            &["impute", "m.covary", "holes.csv", "--draws", "2"],
        ] {
            place.ok(args);
        }
        place.ok(&["rotate", "m.covary", "--method", "varimax"]);
        // What is carried is all that there is.
        let days = place.ok(&["transform", "m.covary", "days.csv", "--std", "--id", "day"]);
        assert_eq!(days, "day\n7\n8\n");
        place.fails(&["transform", "m.covary", "x.csv"], 3, &["'m.covary'", "no component", "--id"]);
    }
}

#[test]
fn what_makes_no_sense_is_told() {
    let place = Place::new();
    table_of(&place, "x.csv", &three_of(6, 30, 9));
    for model in ["ppca", "pca", "fa"] {
        let args = ["fit", "x.csv", "--model", model, "-q", "2", "--method", "ard"];
        place.fails(&args, 2, &["--method", "--model bpca"]);
    }
    place.fails(
        &["fit", "x.csv", "--model", "bpca", "--rotate", "varimax"],
        2,
        &["--rotate", "covary rotate"],
    );
    place.fails(&["fit", "x.csv", "--model", "bpca", "-q", "7"], 3, &["7 components", "1 to 6"]);
    place.write("one.csv", "a,b\n1,2\n");
    place.fails(&["fit", "one.csv", "--model", "bpca"], 3, &["1 row"]);
    // All components of 2000 features need a 2000 × 2000 covariance, which 64 MB do not hold.
    let mut draw = noise(3);
    table_of(&place, "wide.npy", &Mat::from_fn(3000, 2000, |_, _| draw()));
    let wide = ["fit", "wide.npy", "--model", "bpca", "--memory", "64M"];
    place.fails(&wide, 2, &["2000 features", "memory", "-q"]);
    // With holes, as many components as the cells support need evidence that grows with their square.
    let holey = Mat::from_fn(600, 400, |_, _| Some(draw()).filter(|v| *v > -0.3).unwrap_or(f64::NAN));
    table_of(&place, "holey.npy", &holey);
    let holey = ["fit", "holey.npy", "--model", "bpca", "--memory", "128M"];
    place.fails(&holey, 2, &["400 features", "memory", "-q"]);
    let holey = Mat::from_fn(30, 1200, |_, _| Some(draw()).filter(|v| *v > -0.3).unwrap_or(f64::NAN));
    table_of(&place, "wide_holes.npy", &holey);
    place.fails(&["fit", "wide_holes.npy", "--model", "bpca"], 2, &["features", "-q"]);
}

#[test]
fn an_interrupted_fit_writes_what_it_has() {
    let place = Place::new();
    let x = rows_with_holes(20_000, 40, 0.3, 6);
    table_of(&place, "x.npy", &x);
    let args = "fit x.npy --model bpca -q 20 --tol 1e-15 --max-iter 100000 -o m.covary --json";
    for delay in [700, 1500, 3000, 6000, 12_000] {
        let mut child = place.command().args(args.split(' ')).stdout(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(delay));
        signal(&child, "INT");
        let code = wait_for_end(&mut child).code();
        assert!(code == Some(130) || code == Some(0), "{code:?}");
        if place.path("m.covary").exists() && code == Some(130) {
            let told = place.json(&["inspect", "m.covary", "--json"]);
            assert_eq!((told["stop"].as_str(), told["model"].as_str()), (Some("interrupted"), Some("bpca")));
            let text = place.ok(&["inspect", "m.covary"]);
            assert!(told["log_likelihood"].is_f64() || text.contains("not known"), "{text}");
            return;
        }
    }
    panic!("no iteration was through after half a minute");
}

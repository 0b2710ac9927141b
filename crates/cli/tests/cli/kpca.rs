//! Kernel PCA through the binary: what it finds and tells, what can be asked of it, and what it refuses.

use covary::linalg::Mat;

use crate::support::{Place, close, csv, rows, rows_with_holes, table_of};

/// Two rings around each other.
fn rings(n: usize) -> Mat<f64> {
    let radius = |i: usize| if i.is_multiple_of(2) { 0.3 } else { 2.0 };
    let angle = |i: usize| i as f64 * 0.7;
    Mat::from_fn(n, 2, |i, j| radius(i) * if j == 0 { angle(i).cos() } else { angle(i).sin() })
}

#[test]
fn rings_are_told_apart_and_asked_about() {
    let place = Place::new();
    table_of(&place, "x.csv", &rings(120));
    let told = place
        .json(&["fit", "x.csv", "--model", "kpca", "-q", "6", "--gamma", "1", "-o", "m.covary", "--json"]);
    assert_eq!((told["model"].as_str(), told["solver"].as_str()), (Some("kpca"), Some("krylov")));
    let kernel = &told["kernel"];
    assert_eq!((kernel["kernel"].as_str(), kernel["gamma"].as_f64()), (Some("rbf"), Some(1.0)));
    assert_eq!((kernel["points"].as_u64(), kernel["left_out"].as_f64()), (Some(120), Some(0.0)));
    // 8 bytes for each of 120 rows of 2 cells, 6 coefficients and a weight.
    assert_eq!(kernel["bytes"].as_u64(), Some(8 * 120 * 9));
    let (header, z) = csv(&place.ok(&["transform", "m.covary", "x.csv"]));
    assert_eq!(header, ["z1", "z2", "z3", "z4", "z5", "z6"]);
    let first = |odd: usize| (odd..120).step_by(2).map(|i| z[i][0]).collect::<Vec<_>>();
    let (inner, outer) = (first(0), first(1));
    let most = |x: &[f64]| x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = |x: &[f64]| x.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(most(&outer) < least(&inner) || most(&inner) < least(&outer));
    // Rows of the rings are rebuilt; a row far from both is new.
    let (_, back) = csv(&place.ok(&["reconstruct", "m.covary", "x.csv"]));
    assert_eq!((back.len(), back[0].len()), (120, 2));
    place.write("new.csv", "x1,x2\n0.3,0\n5,5\n");
    let (header, found) = csv(&place.ok(&["score", "m.covary", "new.csv"]));
    assert_eq!(header, ["spe"]);
    assert!(found[1][0] > 0.5 && found[0][0] < 0.25 * found[1][0], "{found:?}");
    let text = place.ok(&["inspect", "m.covary"]);
    for words in ["rbf: gamma 1", "all 120 rows", "MB", "z6"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn landmarks_say_what_they_leave_out() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(400, 5, 3));
    let fit = |more: &[&str]| {
        place.json(&[&["fit", "x.csv", "--model", "kpca", "-q", "2", "--json"], more].concat())
    };
    let (exact, few) = (fit(&[]), fit(&["--landmarks", "40", "-o", "m.covary"]));
    let kernel = &few["kernel"];
    assert_eq!((few["solver"].as_str(), kernel["landmarks"].as_str()), (Some("landmarks"), Some("pivoted")));
    assert_eq!((kernel["points"].as_u64(), kernel["asked"].as_u64()), (Some(40), Some(40)));
    let left = kernel["left_out"].as_f64().unwrap();
    assert!(left > 0.0 && left < 0.5, "{left}");
    // The default width is the same, and so are about the leading variances.
    close(kernel["gamma"].as_f64().unwrap(), exact["kernel"]["gamma"].as_f64().unwrap(), 1e-12);
    let first = |told: &serde_json::Value| told["eigenvalues"][0].as_f64().unwrap();
    assert!((first(&few) / first(&exact) - 1.0).abs() < 0.05);
    let text = place.ok(&["inspect", "m.covary"]);
    assert!(text.contains("randomly pivoted Cholesky") && text.contains("landmarks leave out"), "{text}");
}

#[test]
fn a_precomputed_kernel_of_a_linear_one_is_the_same() {
    let place = Place::new();
    let x = rows(30, 4, 5);
    table_of(&place, "x.csv", &x);
    let gram = Mat::from_fn(30, 30, |i, k| (0..4).map(|j| x[(i, j)] * x[(k, j)]).sum());
    table_of(&place, "k.csv", &gram);
    let fit = |data: &str, kernel: &str| {
        let told = place.json(&["fit", data, "--model", "kpca", "--kernel", kernel, "-q", "2", "--json"]);
        told["eigenvalues"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (a, b) = (fit("x.csv", "linear"), fit("k.csv", "precomputed"));
    let pca = place.json(&["fit", "x.csv", "--model", "pca", "-q", "2", "--json"]);
    for k in 0..2 {
        close(a[k], b[k], 1e-9);
        close(a[k], pca["eigenvalues"][k].as_f64().unwrap(), 1e-10);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(20, 3, 1));
    table_of(&place, "holes.csv", &rows_with_holes(40, 3, 0.2, 2));
    let cases: [(&[&str], &str); 11] = [
        (&["--kernel", "rbf"], "--kernel is for kernel PCA"),
        (&["--gamma", "1"], "--gamma is for kernel PCA"),
        (&["--degree", "2"], "--degree is for kernel PCA"),
        (&["--coef0", "2"], "--coef0 is for kernel PCA"),
        (&["--landmarks", "20"], "--landmarks is for kernel PCA"),
        (&["--model", "kpca", "--gamma", "0"], "gamma"),
        (&["--model", "kpca", "--kernel", "cosine", "--gamma", "1"], "--gamma"),
        (&["--model", "kpca", "--degree", "3"], "--degree"),
        (&["--model", "kpca", "-q", "auto", "--kernel", "precomputed"], "number of components"),
        (&["--model", "kpca", "-q", "3", "--landmarks", "2"], "landmarks"),
        (&["--model", "kpca", "--solver", "eigen"], "dual and krylov"),
    ];
    for (args, words) in cases {
        place.fails(&[&["fit", "x.csv"], args].concat(), 2, &[words]);
    }
    let zero = place.run(&["fit", "x.csv", "--model", "kpca", "--kernel", "poly", "--degree", "0"]);
    assert_eq!(zero.status.code(), Some(2));
    place.fails(&["fit", "x.csv", "--model", "kpca", "-q", "30"], 3, &["30 components"]);
    place.fails(
        &["fit", "holes.csv", "--model", "kpca", "-q", "2", "--kernel", "laplacian"],
        2,
        &["missing values is laplacian", "rbf or linear", "covary impute"],
    );
    place.fails(&["fit", "x.csv", "--model", "kpca", "--kernel", "precomputed", "-q", "1"], 3, &["square"]);
    place.ok(&["fit", "x.csv", "--model", "kpca", "-q", "2", "-o", "m.covary"]);
    place.fails(&["impute", "m.covary", "holes.csv"], 2, &["kernel PCA does not have"]);
    place.fails(&["sample", "m.covary", "-n", "3"], 2, &["kernel PCA does not have new rows to draw"]);
}

#[test]
fn rows_with_missing_values_are_fitted_and_asked_about() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows_with_holes(80, 5, 0.15, 3));
    let told = place.json(&["fit", "x.csv", "--model", "kpca", "-q", "3", "-o", "m.covary", "--json"]);
    assert!(told["holes"]["missing"].as_u64().unwrap() > 20);
    assert!(told["kernel"]["filling_components"].as_u64().is_some());
    let text = place.ok(&["inspect", "m.covary"]);
    assert!(text.contains("missing cells"), "{text}");
    for (command, columns) in [("transform", 3), ("reconstruct", 5), ("score", 1)] {
        let (header, found) = csv(&place.ok(&[command, "m.covary", "x.csv"]));
        assert_eq!((header.len(), found.len()), (columns, 80), "{command}");
        assert!(found.iter().flatten().all(|x| x.is_finite()), "{command}");
    }
    // A row without a cell has an answer.
    place.write("empty.csv", "x1,x2,x3,x4,x5\n,,,,\n1,,2,,3\n");
    let (_, z) = csv(&place.ok(&["transform", "m.covary", "empty.csv"]));
    assert!(z.len() == 2 && z.iter().flatten().all(|x| x.is_finite()));
    // Landmarks, and a model of complete rows, which knows nothing of missing cells.
    place.ok(&["fit", "x.csv", "--model", "kpca", "-q", "2", "--landmarks", "30", "-o", "l.covary"]);
    place.ok(&["transform", "l.covary", "x.csv"]);
    table_of(&place, "complete.csv", &rows(40, 5, 4));
    place.ok(&["fit", "complete.csv", "--model", "kpca", "-q", "2", "-o", "c.covary"]);
    place.fails(&["transform", "c.covary", "x.csv"], 3, &["a kernel needs complete rows"]);
}

#[test]
fn width_and_number_are_chosen_by_kernel_parallel_analysis() {
    let place = Place::new();
    let centre = [[0.0, 0.0, 0.0], [6.0, 0.0, 3.0], [0.0, 6.0, 3.0]];
    let noise = rows(120, 3, 7);
    table_of(&place, "x.csv", &Mat::from_fn(120, 3, |i, j| centre[i % 3][j] + 0.2 * noise[(i, j)]));
    let found = place.json(&["select", "x.csv", "--model", "kpca", "--json"]);
    let (gamma, q) =
        (found["recommended"]["gamma"].as_f64().unwrap(), found["recommended"]["components"].as_u64());
    assert!(q >= Some(2) && found["table"].as_array().unwrap().len() == 9, "{found}");
    let told = place.json(&["fit", "x.csv", "--model", "kpca", "-q", "auto", "--json"]);
    assert_eq!((told["components"].as_u64(), told["kernel"]["gamma"].as_f64()), (q, Some(gamma)));
    let text = place.ok(&["select", "x.csv", "--model", "kpca"]);
    assert!(text.contains("kernel parallel analysis") && text.contains("--gamma"), "{text}");
    let one = place.json(&["select", "x.csv", "--model", "kpca", "--gamma", "0.1", "--max", "2", "--json"]);
    assert_eq!(one["table"].as_array().unwrap().len(), 1);
    let linear = place.ok(&["select", "x.csv", "--model", "kpca", "--kernel", "linear"]);
    assert!(linear.contains("linear kernel") && !linear.contains("gamma"), "{linear}");
    for (args, words) in [
        (&["--model", "kpca", "--folds", "3"][..], "--folds is for"),
        (&["--model", "kpca", "--landmarks", "3"], "--landmarks"),
        (&["--gamma", "1"], "--gamma is for --model kpca"),
        (&["--model", "kpca", "--kernel", "precomputed"], "permuted"),
        (&["--model", "fa"], "kpca"),
    ] {
        place.fails(&[&["select", "x.csv"], args].concat(), 2, &[words]);
    }
}

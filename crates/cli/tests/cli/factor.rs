//! Factor analysis through the binary, on matrices and rows whose answers are known by theory.

use covary::linalg::Mat;
use serde_json::Value;

use crate::support::{Place, close, csv, names, noise, rows_with_holes, table_of};

/// Loadings of one factor; the correlations are their products.
pub(crate) const ONE: [f64; 5] = [0.9, 0.8, 0.7, 0.6, 0.5];

/// The correlations λλᵀ + I − diag λ² as a file.
pub(crate) fn one_factor() -> String {
    let entry = |i: usize, j: usize| if i == j { 1.0 } else { ONE[i] * ONE[j] };
    let row = |i: usize| (0..5).map(|j| format!(",{}", entry(i, j))).collect::<String>();
    let lines: String = (0..5).map(|i| format!("t{}{}\n", i + 1, row(i))).collect();
    format!("test,t1,t2,t3,t4,t5\n{lines}")
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

pub(crate) fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

/// Rows behind which there are two factors.
pub(crate) fn two_factors(n: usize, seed: u64) -> Mat<f64> {
    let mut draw = noise(seed);
    let mut x = Mat::zeros(n, 6);
    for i in 0..n {
        let f = [draw(), draw()];
        for j in 0..6 {
            x[(i, j)] = 3.0 + (1.0 + 0.2 * j as f64) * f[j / 3] + 0.2 * f[1 - j / 3] + 0.5 * draw();
        }
    }
    x
}

#[test]
fn exact_correlations_of_one_factor_give_its_loadings() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    let fit = ["fit", "r.csv", "--matrix", "--rows", "100", "--model", "fa", "-q", "1"];
    let told = place.json(&[&fit[..], &["--json", "-o", "m.covary"]].concat());
    let factors = &told["factors"];
    for (j, loading) in ONE.iter().enumerate() {
        close(factors["uniquenesses"][j].as_f64().unwrap(), 1.0 - loading * loading, 1e-6);
        close(factors["communalities"][j].as_f64().unwrap(), loading * loading, 1e-6);
        close(factors["standardised_loadings"][j][0].as_f64().unwrap(), *loading, 1e-6);
        close(factors["complexities"][j].as_f64().unwrap(), 1.0, 1e-14);
    }
    assert_eq!(factors["fit"]["dof"], 5);
    assert!(factors["fit"]["chi2"].as_f64().unwrap() < 1e-9);
    assert_eq!((told["rows"].as_u64(), told["passes"].as_u64()), (Some(100), Some(0)));
    close(factors["factor_variances"][0].as_f64().unwrap(), ONE.iter().map(|l| l * l).sum(), 1e-6);
}

#[test]
fn matrices_of_every_format_are_the_same() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    place.write("tabs.tsv", one_factor().replace(',', "\t"));
    let (_, cells) = csv(&one_factor());
    let cells = Mat::from_fn(5, 5, |i, j| cells[i][j + 1]);
    for name in ["r.parquet", "r.npy", "r.arrow"] {
        place.table(name, &["t1", "t2", "t3", "t4", "t5"], &cells);
    }
    let fit = |name: &str| {
        place.ok(&[
            "fit", name, "--matrix", "--rows", "50", "--model", "fa", "-q", "1", "-o", "m.covary", "--quiet",
        ]);
        place.json(&["inspect", "m.covary", "--json"])
    };
    let expected = fit("r.csv");
    for name in ["tabs.tsv", "r.parquet", "r.npy", "r.arrow"] {
        let told = fit(name);
        assert_eq!(told["loadings"], expected["loadings"], "{name}");
        assert_eq!(told["feature_names"] == expected["feature_names"], name != "r.npy", "{name}");
    }
}

#[test]
fn some_features_of_a_matrix() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    for select in [["--columns", "t1,t3,t4"], ["--columns", "2,4-5"], ["--drop", "t2,t5"]] {
        let fit = ["fit", "r.csv", "--matrix", "--rows", "50", "--model", "fa", "-q", "1", "--json"];
        let told = place.json(&[&fit[..], &select].concat());
        let loadings = matrix(&told["factors"]["standardised_loadings"]);
        for (found, expected) in loadings.iter().zip([0.9, 0.7, 0.6]) {
            close(found[0], expected, 1e-6);
        }
    }
}

#[test]
fn components_of_a_matrix() {
    let place = Place::new();
    place.write("s.csv", "a,b,c\n3,0,0\n0,2,0\n0,0,1\n");
    for model in ["ppca", "pca"] {
        let told =
            place.json(&["fit", "s.csv", "--matrix", "--rows", "10", "--model", model, "-q", "1", "--json"]);
        close(told["eigenvalues"][0].as_f64().unwrap(), 3.0, 1e-14);
        close(told["noise_variance"].as_f64().unwrap(), 1.5, 1e-14);
        assert!(told["factors"].is_null());
    }
}

#[test]
fn rows_moments_and_streams_give_the_same_factors() {
    let place = Place::new();
    let x = two_factors(400, 3);
    table_of(&place, "x.csv", &x);
    place.ok(&["moments", "x.csv", "-o", "x.moments", "--quiet"]);
    let fit = ["--model", "fa", "-q", "2", "--rotate", "oblimin", "--json"];
    let whole = place.json(&[&["fit", "x.csv"], &fit[..]].concat());
    let moments = place.json(&[&["fit", "x.moments"], &fit[..]].concat());
    let piped = place.shell("covary fit - --model fa -q 2 --rotate oblimin --json < x.csv");
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    for other in [moments, piped] {
        for key in ["uniquenesses", "factor_variances"] {
            let pairs = numbers(&whole["factors"][key]).into_iter().zip(numbers(&other["factors"][key]));
            pairs.for_each(|(a, b)| close(a, b, 1e-6));
        }
    }
}

#[test]
fn a_stream_larger_than_memory_gives_its_factors_in_one_pass() {
    let place = Place::new();
    let x = two_factors(200, 5);
    let line = |i: usize| (0..6).map(|j| format!("{:.3}", x[(i, j)])).collect::<Vec<_>>().join(",") + "\n";
    place.write("x.csv", format!("a,b,c,d,e,f\n{}", (0..200).map(line).collect::<String>().repeat(2000)));
    let output = place.shell("covary fit - --model fa -q 2 --memory 16M --json < x.csv");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["solver_reason"].as_str().unwrap().contains("pass once"), "{told}");
    let chunks = place.json(&["fit", "x.csv", "--model", "fa", "-q", "2", "--memory", "16M", "--json"]);
    let pairs = numbers(&told["factors"]["uniquenesses"]).into_iter();
    pairs.zip(numbers(&chunks["factors"]["uniquenesses"])).for_each(|(a, b)| close(a, b, 1e-6));
}

#[test]
fn weights_count_like_repeated_rows() {
    let place = Place::new();
    let x = two_factors(100, 8);
    let weighted = |i: usize| 1 + i % 3;
    let line = |i: usize| (0..6).map(|j| format!("{},", x[(i, j)])).collect::<String>();
    let heavy: String = (0..100).map(|i| format!("{}{}\n", line(i), weighted(i))).collect();
    let repeated: String = (0..100).map(|i| format!("{}1\n", line(i)).repeat(weighted(i))).collect();
    place.write("heavy.csv", format!("a,b,c,d,e,f,w\n{heavy}"));
    place.write("often.csv", format!("a,b,c,d,e,f,w\n{repeated}"));
    let fit = ["--model", "fa", "-q", "2", "--json"];
    let heavy = place.json(&[&["fit", "heavy.csv", "--weights", "w"], &fit[..]].concat());
    let often = place.json(&[&["fit", "often.csv", "--drop", "w"], &fit[..]].concat());
    let pairs = numbers(&heavy["factors"]["uniquenesses"]).into_iter();
    pairs.zip(numbers(&often["factors"]["uniquenesses"])).for_each(|(a, b)| close(a, b, 1e-6));
    close(heavy["log_likelihood"].as_f64().unwrap(), often["log_likelihood"].as_f64().unwrap(), 1e-9);
}

#[test]
fn holes_are_taken_as_they_are() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows_with_holes(300, 6, 0.1, 4));
    let told = place.json(&["fit", "x.csv", "--model", "fa", "-q", "2", "--json"]);
    assert!(told["holes"]["missing"].as_u64().unwrap() > 100);
    assert!(told["converged"].as_bool().unwrap() && told["factors"]["fit"]["chi2"].is_number());
}

#[test]
fn the_table_is_sorted_and_small_loadings_are_blank() {
    let place = Place::new();
    place.write("r.csv", one_factor().replace("t1", "zeta").replace("t5", "alpha"));
    place.ok(&[
        "fit", "r.csv", "--matrix", "--rows", "90", "--model", "fa", "-q", "1", "-o", "m.covary", "--quiet",
    ]);
    let text = place.ok(&["inspect", "m.covary"]);
    let table: Vec<&str> = text.lines().skip_while(|l| !l.contains("feature ")).skip(1).take(5).collect();
    let first = |line: &&str| line.split_whitespace().next().unwrap().to_owned();
    assert_eq!(table.iter().map(first).collect::<Vec<_>>(), ["zeta", "t2", "t3", "t4", "alpha"]);
    assert_eq!(table[0].split_whitespace().collect::<Vec<_>>(), ["zeta", "0.900", "0.810", "0.190", "1.0"]);
    let text = place.ok(&["inspect", "m.covary", "--cut", "0.65"]);
    let blank = text.lines().find(|l| l.contains("alpha ")).unwrap();
    assert_eq!(blank.split_whitespace().collect::<Vec<_>>(), ["alpha", "0.250", "0.750", "1.0"]);
    for words in ["SS loadings", "χ²", "RMSEA", "CFI", "TLI", "SRMR", "AIC", "BIC", "KMO", "sphericity"] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn standard_errors_stand_beside_the_loadings() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    for (rows, name) in [("100", "few.covary"), ("400", "many.covary")] {
        place.ok(&[
            "fit", "r.csv", "--matrix", "--rows", rows, "--model", "fa", "-q", "1", "-o", name, "--quiet",
        ]);
    }
    let error = |name: &str| {
        let told = place.json(&["inspect", name, "--errors", "--json"]);
        told["factors"]["standard_errors"]["standardised"]["loadings"][0][0].as_f64().unwrap()
    };
    close(error("few.covary"), 2.0 * error("many.covary"), 1e-6);
    let text = place.ok(&["inspect", "few.covary", "--errors"]);
    assert!(text.contains(&format!("0.900 ({:.3})", error("few.covary"))), "{text}");
}

#[test]
fn scores_by_regression_are_shrunken_bartlett_scores() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    place.ok(&[
        "fit", "r.csv", "--matrix", "--rows", "90", "--model", "fa", "-q", "1", "-o", "m.covary", "--quiet",
    ]);
    place.write("x.csv", "t1,t2,t3,t4,t5\n1,2,-1,0.5,3\n0.2,,1,,-1\n,,,,\n");
    let (header, bartlett) = csv(&place.ok(&["transform", "m.covary", "x.csv", "--scores", "bartlett"]));
    assert_eq!(header, ["f1"]);
    let (header, regression) = csv(&place.ok(&["transform", "m.covary", "x.csv", "--std"]));
    assert_eq!(header, ["f1", "f1_std"]);
    // One factor: with g = Σλ²/ψ over the observed cells, the posterior mean is g/(1 + g) times Bartlett's score.
    for (row, cells) in [(0, vec![0, 1, 2, 3, 4]), (1, vec![0, 2, 4])] {
        let g: f64 = cells.iter().map(|&j| ONE[j].powi(2) / (1.0 - ONE[j].powi(2))).sum();
        close(regression[row][0], bartlett[row][0] * g / (1.0 + g), 1e-6);
        close(regression[row][1], (1.0 / (1.0 + g)).sqrt(), 1e-6);
    }
    assert_eq!(regression[2], [0.0, 1.0]);
    let text = place.ok(&["transform", "m.covary", "x.csv", "--scores", "bartlett"]);
    assert_eq!(text.lines().nth(3), Some("\"\""), "a row without cells has no score: {text}");
}

#[test]
fn every_other_question_works_on_factors() {
    let place = Place::new();
    let x = two_factors(300, 2);
    table_of(&place, "x.csv", &x);
    place.ok(&["fit", "x.csv", "--model", "fa", "-q", "2", "-o", "m.covary", "--quiet"]);
    place.ok(&["rotate", "m.covary", "--method", "oblimin", "-o", "r.covary", "--quiet"]);
    let mut holed = two_factors(20, 9);
    holed[(3, 2)] = f64::NAN;
    table_of(&place, "new.csv", &holed);
    let questions: [&[&str]; 4] =
        [&["score"], &["impute", "--std"], &["reconstruct"], &["reconstruct", "--posterior"]];
    for question in questions {
        let ask =
            |model: &str| csv(&place.ok(&[&question[..1], &[model, "new.csv"], &question[1..]].concat())).1;
        let (plain, turned) = (ask("m.covary"), ask("r.covary"));
        assert_eq!(plain.len(), 20, "{question:?}");
        assert!(plain.iter().flatten().all(|v| v.is_finite()), "{question:?}");
        assert_eq!(plain, turned, "a rotation changes nothing: {question:?}");
    }
    let drawn = csv(&place.ok(&["sample", "m.covary", "-n", "50"]));
    assert_eq!((drawn.0, drawn.1.len()), (names(6), 50));
    let told = place.json(&["impute", "x.csv", "--holdout", "0.1", "--model", "fa", "-q", "2", "--json"]);
    assert_eq!(told["model"], "fa");
    assert!(told["rmse"].as_f64() < told["baseline_rmse"].as_f64());
}

#[test]
fn the_solvers_agree_and_the_bound_is_kept() {
    let place = Place::new();
    let x = two_factors(500, 6);
    table_of(&place, "x.csv", &x);
    let fit =
        |more: &[&str]| place.json(&[&["fit", "x.csv", "--model", "fa", "-q", "2", "--json"], more].concat());
    let newton = fit(&["--solver", "newton"]);
    for solver in ["krylov", "em"] {
        let told = fit(&["--solver", solver, "--max-iter", "100000"]);
        assert_eq!(told["solver"], solver);
        let pairs = numbers(&newton["factors"]["uniquenesses"]).into_iter();
        pairs.zip(numbers(&told["factors"]["uniquenesses"])).for_each(|(a, b)| close(a, b, 1e-4));
    }
    let bounded = fit(&["--lower", "0.5", "--starts", "2"]);
    for name in bounded["factors"]["heywood"].as_array().unwrap() {
        let j = names(6).iter().position(|feature| name == feature).unwrap();
        let mean = (0..500).map(|i| x[(i, j)]).sum::<f64>() / 500.0;
        let variance = (0..500).map(|i| (x[(i, j)] - mean).powi(2)).sum::<f64>() / 500.0;
        close(bounded["factors"]["noise_variances"][j].as_f64().unwrap(), 0.5 * variance, 1e-9);
    }
    assert!(!bounded["factors"]["heywood"].as_array().unwrap().is_empty());
    assert_eq!(bounded["factors"]["starts"], 2);
}

#[test]
fn a_heywood_case_is_named_with_advice() {
    let place = Place::new();
    // λ₁λ₂ = 0.72, λ₁λ₃ = 0.72, λ₂λ₃ = 0.5 ask for λ₁² = 0.72²/0.5 > 1.
    place.write("r.csv", ",first,b,c\nfirst,1,0.72,0.72\nb,0.72,1,0.5\nc,0.72,0.5,1\n");
    let text = place.ok(&["fit", "r.csv", "--matrix", "--rows", "80", "--model", "fa", "-q", "1"]);
    assert!(text.contains("Heywood case") && text.contains("'first'") && text.contains("fewer"), "{text}");
}

#[test]
fn factors_that_the_data_do_not_hold_are_said() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    let told =
        place.json(&["fit", "r.csv", "--matrix", "--rows", "80", "--model", "fa", "-q", "2", "--json"]);
    let unused = told["factors"]["unused"].as_u64().unwrap();
    let text = place.ok(&["fit", "r.csv", "--matrix", "--rows", "80", "--model", "fa", "-q", "2"]);
    assert_eq!(text.contains("ask for -q 1"), unused == 1, "{text}");
}

#[test]
fn the_number_of_threads_changes_no_byte_of_factors() {
    let place = Place::new();
    table_of(&place, "x.csv", &two_factors(20_000, 7));
    table_of(&place, "h.csv", &rows_with_holes(2000, 6, 0.1, 4));
    let models = |threads: &str| {
        let run = |args: &[&str]| place.ok(&[args, &["--quiet", "--threads", threads]].concat());
        run(&["fit", "x.csv", "--model", "fa", "-q", "2", "--rotate", "geomin", "-o", "m.covary"]);
        run(&["fit", "x.csv", "--model", "fa", "-q", "2", "--memory", "16M", "-o", "g.covary"]);
        run(&["fit", "h.csv", "--model", "fa", "-q", "2", "-o", "h.covary"]);
        run(&["rotate", "m.covary", "--method", "oblimin", "-o", "r.covary"]);
        ["m.covary", "g.covary", "h.covary", "r.covary"].map(|name| place.read(name))
    };
    let one = models("1");
    for threads in ["2", "5"] {
        assert!(models(threads) == one, "{threads} threads");
    }
}

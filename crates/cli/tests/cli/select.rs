//! Choosing the number of components on the command line.

use crate::support::{Place, close, names, rows_with_holes, table_of, triples_of};

/// Two directions of variance 9 and 4 among five uncorrelated features, the others of variance 1/4: rows ± along each axis.
fn cross(place: &Place) {
    let lengths = [3.0, 2.0, 0.5, 0.5, 0.5];
    let mut text = String::from("a,b,c,d,e\n");
    for _ in 0..12 {
        for (j, length) in lengths.iter().enumerate() {
            for sign in [1.0, -1.0] {
                let cell = |k: usize| if k == j { sign * length * 5f64.sqrt() } else { 0.0 };
                let row: Vec<String> = (0..5).map(|k| cell(k).to_string()).collect();
                text += &(row.join(",") + "\n");
            }
        }
    }
    place.write("cross.csv", text);
}

/// Weights that sum to 1 choose as rows do: from rows, from moments and within a fit.
#[test]
fn weights_that_are_shares() {
    let place = Place::new();
    cross(&place);
    let text = String::from_utf8(place.read("cross.csv")).unwrap();
    let weighted = |line: &str| {
        if line.starts_with('a') { format!("{line},w\n") } else { format!("{line},{}\n", 1.0 / 120.0) }
    };
    place.write("shares.csv", text.lines().map(weighted).collect::<String>());
    let told = place.json(&["select", "shares.csv", "--weights", "w", "--json"]);
    assert_eq!(told["recommended"].as_u64(), Some(2));
    let plain = place.json(&["select", "cross.csv", "--json"]);
    close(told["table"][2]["bic"].as_f64().unwrap(), plain["table"][2]["bic"].as_f64().unwrap(), 1e-9);
    let told = place.json(&["fit", "shares.csv", "-q", "auto", "--weights", "w", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2));
    place.ok(&["moments", "shares.csv", "--weights", "w", "-o", "shares.moments"]);
    let told = place.json(&["select", "shares.moments", "--json"]);
    assert_eq!(told["recommended"].as_u64(), Some(2));
}

#[test]
fn a_table_with_choices_and_advice() {
    let place = Place::new();
    cross(&place);
    let told = place.json(&["select", "cross.csv", "--json"]);
    assert_eq!((told["rows"].as_u64(), told["features"].as_u64()), (Some(120), Some(5)));
    let line = |q: usize, key: &str| told["table"][q][key].as_f64().unwrap();
    // Variances 9, 4 and ¼ three times, by construction.
    close(line(1, "eigenvalue"), 9.0, 1e-12);
    close(line(2, "eigenvalue"), 4.0, 1e-12);
    close(line(2, "explained"), 13.0 / 13.75, 1e-12);
    close(line(2, "noise_variance"), 0.25, 1e-12);
    let log_likelihood = -60.0 * (5.0 * std::f64::consts::TAU.ln() + 36f64.ln() + 3.0 * 0.25f64.ln() + 5.0);
    close(line(2, "log_likelihood"), log_likelihood, 1e-9);
    // k = 5·2 − 1 + 5 + 1.
    close(line(2, "bic"), 15.0 * 120f64.ln() - 2.0 * log_likelihood, 1e-9);
    let choice = |method: &str| {
        let all = told["choices"].as_array().unwrap();
        all.iter().find(|c| c["method"] == method).unwrap()["components"].as_u64().unwrap()
    };
    assert_eq!((choice("bic"), choice("evidence"), choice("cross-validation")), (2, 2, 2));
    assert_eq!(told["recommended"].as_u64(), Some(2));
    let text = place.ok(&["select", "cross.csv"]);
    assert!(text.contains("120 rows of 5 features") && text.contains("take 2: cross-validation"), "{text}");
}

#[test]
fn moments_and_pipes_will_do() {
    let place = Place::new();
    cross(&place);
    place.ok(&["moments", "cross.csv", "-o", "cross.moments", "--quiet"]);
    let told = place.json(&["select", "cross.moments", "--json"]);
    assert!(told["table"][2]["cross_validated"].is_null());
    assert_eq!(told["recommended"].as_u64(), Some(2));
    let file = place.json(&["select", "cross.csv", "--json", "--max", "3", "--seed", "4"]);
    let output = place.shell("covary select - --json --max 3 --seed 4 < cross.csv");
    let pipe: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(file["table"].as_array().unwrap().len(), 4);
    let held_out = |told: &serde_json::Value| told["table"][2]["cross_validated"].as_f64().unwrap();
    close(held_out(&pipe), held_out(&file), 1e-12);
}

#[test]
fn what_cannot_be_chosen_from_is_said() {
    let place = Place::new();
    place.write("unseen.csv", "x,y,z\n1,,2\n3,,4\n4,,\n5,,1\n");
    place.fails(&["select", "unseen.csv"], 3, &["'y' was never observed", "--drop"]);
    place.write("one.csv", "x\n1\n3\n4\n");
    place.fails(&["select", "one.csv"], 2, &["at least 2"]);
    cross(&place);
    place.fails(&["select", "cross.csv", "--folds", "1"], 2, &["folds"]);
}

/// Rows of six features along two strong directions, of which a share of the cells is missing.
fn plane(place: &Place, share: f64) {
    let x = rows_with_holes(200, 6, share, 3);
    table_of(place, "plane.csv", &x);
    place.write("triples.csv", triples_of(&x, &names(6)));
}

#[test]
fn holes_are_chosen_for_by_hidden_cells() {
    let place = Place::new();
    plane(&place, 0.15);
    let told = place.json(&["select", "plane.csv", "--json"]);
    assert_eq!(told["recommended"].as_u64(), Some(2), "{told}");
    assert!(told["reason"].as_str().unwrap().starts_with("cells"));
    assert_eq!(told["table"][0]["q2"].as_f64(), Some(0.0));
    assert!(told["table"][2]["q2"].as_f64().unwrap() > 0.9);
    assert!(told["table"][2]["log_evidence"].is_null());
    assert!(told["absent"].as_array().unwrap().iter().any(|a| a["method"] == "evidence"));
    // The likelihood is that of the fit.
    let fit = place.json(&["fit", "plane.csv", "-q", "2", "--json"]);
    close(
        told["table"][2]["log_likelihood"].as_f64().unwrap(),
        fit["log_likelihood"].as_f64().unwrap(),
        1e-3,
    );
    assert_eq!(told["holes"]["missing"], fit["holes"]["missing"]);
    // Cells one by one are the same cells, and threads change nothing.
    let cells =
        place.json(&["select", "triples.csv", "--triples", "user,item,value", "--json", "--max", "4"]);
    close(cells["table"][2]["q2"].as_f64().unwrap(), told["table"][2]["q2"].as_f64().unwrap(), 0.02);
    assert_eq!(cells["recommended"].as_u64(), Some(2));
    let one = place.json(&["select", "plane.csv", "--json", "--threads", "1"]);
    assert_eq!(one, told);
    let text = place.ok(&["select", "plane.csv"]);
    for part in ["cells missing", "Q² of cells", "no choice by evidence", "take 2: cells"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // A pipe is loaded, so that it can be looked at again.
    let piped = place.shell("covary select - --json < plane.csv");
    let piped: serde_json::Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["table"], told["table"]);
}

#[test]
fn cells_of_complete_rows_when_asked() {
    let place = Place::new();
    plane(&place, 0.0);
    let without = place.json(&["select", "plane.csv", "--json"]);
    assert!(without["table"][1]["q2"].is_null() && without["holes"].is_null());
    assert!(without["absent"].as_array().unwrap().iter().any(|a| a["method"] == "cells"));
    // Which number is chosen hangs on the cells that are hidden: the choice is the core's, for the same seed.
    let x = rows_with_holes(200, 6, 0.0, 3);
    for seed in [0, 1, 2] {
        let told = place.json(&["select", "plane.csv", "--json", "--cells", "--seed", &seed.to_string()]);
        let expected = covary::select::Select::new().cells(true).seed(seed).run(&x).unwrap();
        let chosen = &expected.choice("cells").unwrap().components;
        let all = told["choices"].as_array().unwrap();
        let cells = all.iter().find(|c| c["method"] == "cells").unwrap();
        assert_eq!(cells["components"].as_u64(), Some(*chosen as u64), "{seed}");
        for (line, told) in expected.table.iter().zip(told["table"].as_array().unwrap()) {
            assert_eq!(told["q2"].as_f64().is_some(), line.q2.is_some());
            close(told["q2"].as_f64().unwrap_or(0.0), line.q2.unwrap_or(0.0), 1e-6);
        }
        assert!(told["table"][2]["q2"].as_f64().unwrap() > 0.9);
        assert!(told["reason"].as_str().unwrap().starts_with("cross-validation"));
    }
}

#[test]
fn auto_takes_what_is_recommended() {
    let place = Place::new();
    cross(&place);
    let because = |told: &serde_json::Value| told["components_because"].as_str().unwrap().to_string();
    for model in ["ppca", "pca"] {
        let told = place.json(&["fit", "cross.csv", "-q", "auto", "--model", model, "--json"]);
        assert_eq!(told["components"].as_u64(), Some(2), "{model}");
        assert!(because(&told).starts_with("chosen by cross-validation: predicts held-out rows"), "{told}");
    }
    let text = place.ok(&["fit", "cross.csv", "-q", "auto", "-o", "cross.covary"]);
    assert!(text.contains("2: chosen by cross-validation"), "{text}");
    place.ok(&["moments", "cross.csv", "-o", "cross.moments", "--quiet"]);
    let told = place.json(&["fit", "cross.moments", "-q", "auto", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2));
    assert!(because(&told).starts_with("chosen by bic"));
    // The same model as when the number is given.
    place.ok(&["fit", "cross.csv", "-q", "2", "-o", "two.covary"]);
    assert_eq!(place.read("cross.covary"), place.read("two.covary"));
}

#[test]
fn auto_with_holes_triples_and_held_out_cells() {
    let place = Place::new();
    plane(&place, 0.15);
    let because = |told: &serde_json::Value| told["components_because"].as_str().unwrap().to_string();
    let told = place.json(&["fit", "plane.csv", "-q", "auto", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2));
    assert!(because(&told).starts_with("chosen by cells: predicts hidden cells"), "{told}");
    let told = place.json(&["fit", "triples.csv", "--triples", "user,item,value", "-q", "auto", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2));
    let told = place.json(&["impute", "plane.csv", "--holdout", "0.1", "-q", "auto", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2));
    place.fails(
        &["fit", "plane.csv", "--model", "fa", "-q", "auto"],
        2,
        &["parallel analysis", "complete rows"],
    );
    place.ok(&["fit", "plane.csv", "-q", "2", "-o", "two.covary", "--quiet"]);
    place.fails(&["fit", "plane.csv", "-q", "auto", "--start", "two.covary"], 2, &["--start"]);
}

/// Two factors of three features each, correlations 0.64 within and 0 between: eigenvalues 2.28 twice and 0.36 four times.
#[test]
fn auto_finds_factors_by_parallel_analysis() {
    let place = Place::new();
    let entry = |i: usize, j: usize| match (i == j, i / 3 == j / 3) {
        (true, _) => "1",
        (_, true) => "0.64",
        _ => "0",
    };
    let mut text = String::from("a,b,c,d,e,f\n");
    for i in 0..6 {
        text += &((0..6).map(|j| entry(i, j)).collect::<Vec<_>>().join(",") + "\n");
    }
    place.write("two.csv", text);
    let args = ["fit", "two.csv", "--matrix", "--rows", "300", "--model", "fa", "-q", "auto", "--json"];
    let told = place.json(&args);
    assert_eq!(told["components"].as_u64(), Some(2));
    assert!(
        told["components_because"].as_str().unwrap().starts_with("chosen by parallel analysis"),
        "{told}"
    );
}

#[test]
fn what_is_empty_is_left_out_when_asked() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{},\n", i * 7 % 11, i * 5 % 13, i * i % 17);
    place.write("e.csv", "a,b,c,nothing\n".to_owned() + &(0..30).map(row).collect::<String>());
    place.fails(&["select", "e.csv"], 3, &["'nothing'", "--drop-empty"]);
    let output = place.run(&["select", "e.csv", "--drop-empty", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["features"].as_u64(), Some(3));
    assert!(crate::support::stderr(&output).contains("'nothing'"));
}

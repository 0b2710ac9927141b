//! Mixtures through the binary: fit, groups, questions, files larger than one chunk, bad input.

use covary::linalg::Mat;

use crate::support::{Place, csv, noise, table_of};

/// Two groups of forty rows of three features, ten apart: normal, as sums of twelve uniform numbers nearly are.
fn groups(missing: bool) -> Mat<f64> {
    let mut uniform = noise(5);
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>();
    let mut x = Mat::zeros(80, 3);
    for i in 0..80 {
        let (shift, along) = if i < 40 { (0.0, [2.0, 1.0, 0.0]) } else { (10.0, [0.0, -1.0, 2.0]) };
        let z = normal();
        (0..3).for_each(|j| x[(i, j)] = shift + along[j] * z + 0.3 * normal());
    }
    Mat::from_fn(80, 3, |i, j| if missing && (i + 3 * j) % 7 == 0 { f64::NAN } else { x[(i, j)] })
}

fn fitted(missing: bool) -> Place {
    let place = Place::new();
    table_of(&place, "x.csv", &groups(missing));
    place.ok(&["fit", "x.csv", "--model", "mixture", "-k", "2", "-q", "1", "-o", "m.covary", "--quiet"]);
    place
}

#[test]
fn groups_are_found_and_told() {
    for missing in [false, true] {
        let place = fitted(missing);
        let (header, rows) = csv(&place.ok(&["assign", "m.covary", "x.csv", "--probabilities"]));
        assert_eq!(header, ["group", "p1", "p2"]);
        let first = rows[0][0];
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(row[0] == first, i < 40, "row {i}");
            assert!((row[1] + row[2] - 1.0).abs() < 1e-12);
        }
        let told = place.json(&["inspect", "m.covary", "--json"]);
        let weights: Vec<f64> =
            told["mixture"]["weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap()).collect();
        assert!((weights[0] - 0.5).abs() < 0.01 && weights.len() == 2, "{weights:?}");
        assert_eq!(told["mixture"]["noise"], "isotropic");
        let text = place.ok(&["inspect", "m.covary"]);
        for label in ["latent variables (q)", "groups (K)", "BIC, AIC, ICL"] {
            assert!(text.contains(label), "{label}: {text}");
        }
        for command in [
            &["transform", "m.covary", "x.csv", "--std"][..],
            &["score", "m.covary", "x.csv"],
            &["impute", "m.covary", "x.csv", "--std"],
            &["impute", "m.covary", "x.csv", "--draws", "2"],
            &["reconstruct", "m.covary", "x.csv"],
            &["sample", "m.covary", "-n", "80"],
        ] {
            assert!(csv(&place.ok(command)).1.len() >= 80, "{command:?}");
        }
    }
}

/// What the command reads in parts and what it holds in memory give the same model.
#[test]
fn a_file_in_parts_gives_the_same_model() {
    let place = fitted(false);
    let fit = ["fit", "x.csv", "--model", "mixture", "-k", "2", "-q", "1", "-o", "n.covary", "--quiet"];
    place.ok(&[&fit[..], &["--memory", "16M", "--threads", "3"]].concat());
    assert_eq!(place.read("m.covary"), place.read("n.covary"));
}

#[test]
fn the_number_of_groups_is_chosen() {
    let place = fitted(false);
    let told = place.json(&["fit", "x.csv", "--model", "mixture", "-k", "1-4", "-q", "auto", "--json"]);
    assert_eq!(told["mixture"]["weights"].as_array().unwrap().len(), 2);
    assert!(told["mixture"]["grown"].as_array().unwrap().len() >= 2);
}

#[test]
fn variational_bayes_keeps_the_groups_that_are_there() {
    let place = fitted(false);
    let fit = ["fit", "x.csv", "--model", "mixture", "-k", "5", "--method", "vb"];
    let told = place.json(&[&fit[..], &["--json"]].concat());
    assert_eq!(told["mixture"]["weights"].as_array().unwrap().len(), 2);
    assert!(told["mixture"]["variational"]["bound"].is_f64());
    let text = place.ok(&fit);
    assert!(text.contains("on the log evidence") && text.contains("kept by variational Bayes"), "{text}");
}

#[test]
fn what_is_missing_or_makes_no_sense_is_said() {
    let place = fitted(false);
    let fails = |more: &[&str], words: &[&str]| {
        let fit = ["fit", "x.csv", "--model", "mixture"];
        place.fails(&[&fit[..], more].concat(), 2, words);
    };
    fails(&[], &["number of its components", "-k 3"]);
    fails(&["-k", "2", "-q", "0.9"], &["number of latent variables", "-q 2"]);
    fails(&["-k", "2", "-q", "3"], &["below the number of features"]);
    fails(&["-k", "2", "--solver", "svd"], &["auto and em"]);
    fails(&["-k", "2", "--method", "ard"], &["vb", "bpca"]);
    fails(&["-k", "2", "--method", "vb", "--noise", "diagonal"], &["variational Bayes", "isotropic"]);
    let bad = place.run(&["fit", "x.csv", "--model", "mixture", "-k", "none"]);
    assert_eq!(bad.status.code(), Some(2));
    place.fails(&["fit", "x.csv", "-k", "2"], 2, &["-k", "--model"]);
    place.ok(&["moments", "x.csv", "-o", "x.moments"]);
    place.fails(&["fit", "x.moments", "--model", "mixture", "-k", "2"], 2, &["moments do not tell groups"]);
    place.fails(&["rotate", "m.covary", "--method", "varimax"], 2, &["a mixture does not have loadings"]);
    place.ok(&["fit", "x.csv", "-q", "1", "-o", "p.covary", "--quiet"]);
    place.fails(&["assign", "p.covary", "x.csv"], 2, &["does not have groups of rows", "mixture"]);
    fails(&["-k", "2", "-q", "1", "--start", "p.covary"], &["the start of a mixture", "a mixture"]);
}

#[test]
fn tables_over_the_number_of_groups() {
    let place = Place::new();
    table_of(&place, "x.csv", &groups(false));
    let asked = ["select", "x.csv", "--model", "mixture", "-k", "1-3", "--max", "1", "--folds", "3"];
    let text = place.ok(&asked);
    assert!(text.contains("80 rows of 3 features") && text.contains("held out"), "{text}");
    assert!(text.contains("take 2 groups of 1 latent variable each (-k 2 -q 1)"), "{text}");
    let told = place.json(&[&asked[..], &["--json"]].concat());
    assert_eq!(
        (told["recommended"]["groups"].as_u64(), told["recommended"]["latent"].as_u64()),
        (Some(2), Some(1))
    );
    assert!(told["table"].as_array().unwrap().iter().all(|line| line["bic"].is_f64()));
    let mut uniform = noise(6);
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>();
    let round = Mat::from_fn(80, 3, |i, _| normal() + if i < 40 { 0.0 } else { 10.0 });
    table_of(&place, "round.csv", &round);
    let told = place.json(&["select", "round.csv", "--model", "kmeans", "-k", "1-4", "--json"]);
    assert_eq!(told["recommended"].as_u64(), Some(2));
    let text = place.ok(&["select", "round.csv", "--model", "kmeans", "-k", "1-4"]);
    assert!(text.contains("gap") && text.contains("take 2: chosen by the gap statistic"), "{text}");
    for (line, told) in [
        (&["select", "x.csv", "-k", "3"][..], "-k is for --model mixture or kmeans"),
        (&["select", "x.csv", "--noise", "diagonal"], "--noise is for --model mixture"),
        (&["select", "x.csv", "--model", "kmeans", "--cells"], "--cells is for --model ppca or mixture"),
        (&["select", "x.csv", "--model", "fa"], "covary fit --model fa -q auto"),
        (&["select", "x.moments", "--model", "mixture"], "moments do not tell groups"),
    ] {
        place.fails(line, 2, &[told]);
    }
}

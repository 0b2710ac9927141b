//! `covary rotate`: what turns, what stays, and what is kept of it.

use crate::factor::{matrix, two_factors};
use crate::support::{Place, close, rows, table_of};

fn fitted() -> Place {
    let place = Place::new();
    table_of(&place, "x.csv", &two_factors(400, 1));
    place.ok(&["fit", "x.csv", "--model", "fa", "-q", "2", "-o", "m.covary", "--quiet"]);
    place
}

/// ΛΦΛᵀ.
fn common(loadings: &[Vec<f64>], phi: &[Vec<f64>]) -> Vec<f64> {
    let q = phi.len();
    let entry = |a: &[f64], b: &[f64]| {
        (0..q).flat_map(|r| (0..q).map(move |s| (r, s))).map(|(r, s)| a[r] * phi[r][s] * b[s]).sum::<f64>()
    };
    loadings.iter().flat_map(|a| loadings.iter().map(move |b| entry(a, b))).collect()
}

#[test]
fn every_method_keeps_the_covariance() {
    let place = fitted();
    let before = place.json(&["inspect", "m.covary", "--json"]);
    let unturned = common(&matrix(&before["loadings"]), &[vec![1.0, 0.0], vec![0.0, 1.0]]);
    for method in [
        "varimax",
        "quartimax",
        "equamax",
        "parsimax",
        "promax",
        "oblimin",
        "quartimin",
        "geomin",
        "geominT",
        "none",
    ] {
        let told = place.json(&["rotate", "m.covary", "--method", method, "--json"]);
        let turned = common(&matrix(&told["loadings"]), &matrix(&told["factor_correlation"]));
        unturned.iter().zip(turned).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{method}: {a} {b}"));
    }
}

#[test]
fn a_fit_that_rotates_is_a_fit_and_a_rotation() {
    let place = fitted();
    for method in ["varimax", "promax", "oblimin", "geomin"] {
        place.ok(&["rotate", "m.covary", "--method", method, "-o", "after.covary", "--quiet"]);
        place.ok(&[
            "fit",
            "x.csv",
            "--model",
            "fa",
            "-q",
            "2",
            "--rotate",
            method,
            "-o",
            "at-once.covary",
            "--quiet",
        ]);
        assert!(place.read("after.covary") == place.read("at-once.covary"), "{method}");
    }
}

#[test]
fn the_file_says_how_it_was_rotated_and_none_undoes_it() {
    let place = fitted();
    let args = ["rotate", "m.covary", "--method", "oblimin", "--gamma", "-0.5", "--kaiser", "-o", "r.covary"];
    assert!(place.ok(&args).contains("factor correlations"));
    let rotation = &place.json(&["inspect", "r.covary", "--json"])["factors"]["rotation"];
    assert_eq!((rotation["method"].as_str(), rotation["kaiser"].as_bool()), (Some("oblimin"), Some(true)));
    close(rotation["parameter"].as_f64().unwrap(), -0.5, 1e-15);
    let text = place.ok(&["inspect", "r.covary"]);
    assert!(text.contains("oblimin (gamma -0.5), Kaiser's normalisation"), "{text}");
    place.ok(&["rotate", "r.covary", "--method", "none", "-o", "u.covary", "--quiet"]);
    assert!(place.read("u.covary") == place.read("m.covary"));
}

#[test]
fn components_can_be_rotated_and_keep_their_density() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(200, 5, 3));
    for model in ["ppca", "pca"] {
        place.ok(&["fit", "x.csv", "-q", "2", "--model", model, "-o", "m.covary", "--quiet"]);
        place.ok(&["rotate", "m.covary", "--method", "varimax", "-o", "r.covary", "--quiet"]);
        let told = place.json(&["inspect", "r.covary", "--json"]);
        assert_eq!(told["model"], "fa");
        assert_eq!(told["factors"]["rotation"]["method"], "varimax");
        assert!(place.ok(&["inspect", "r.covary"]).contains("varimax, Kaiser's normalisation"));
        assert_eq!(place.ok(&["score", "r.covary", "x.csv"]), place.ok(&["score", "m.covary", "x.csv"]));
        place.ok(&["rotate", "r.covary", "--method", "none", "-o", "u.covary", "--quiet"]);
        let undone = place.json(&["inspect", "u.covary", "--json"]);
        assert_eq!((undone["model"].as_str(), undone["factors"].is_null()), (Some("ppca"), true));
    }
}

#[test]
fn a_feature_without_variance_has_no_loadings() {
    let place = Place::new();
    place.write("x.csv", "a,b,still\n1,2,5\n2,1,5\n4,3,5\n0,7,5\n");
    place.ok(&["fit", "x.csv", "-q", "2", "--model", "pca", "-o", "m.covary", "--quiet"]);
    let told = place.json(&["rotate", "m.covary", "--method", "quartimax", "--json"]);
    assert_eq!(matrix(&told["standardised_loadings"])[2], [0.0, 0.0]);
    assert_eq!((told["communalities"][2].as_f64(), told["uniquenesses"][2].as_f64()), (Some(0.0), Some(1.0)));
    assert!(told["factor_variances"][0].as_f64().unwrap() > 0.0);
}

#[test]
fn a_target_is_matched_by_name_and_its_empty_cells_are_free() {
    let place = fitted();
    place.write("plain.csv", "f1,f2\n0,\n0,\n0,\n,0\n,0\n,0\n");
    place.write("named.csv", "feature,f1,f2\nx6,,0\nx5,,0\nx4,,0\nx3,0,\nx2,0,\nx1,0,\n");
    let rotate = |file: &str| {
        let told = place.json(&["rotate", "m.covary", "--target", file, "--oblique", "--json"]);
        matrix(&told["standardised_loadings"])
    };
    let (plain, named) = (rotate("plain.csv"), rotate("named.csv"));
    assert_eq!(plain, named);
    assert!((0..3).all(|j| plain[j][0].abs() < plain[j][1].abs()), "{plain:?}");
    assert!((3..6).all(|j| plain[j][1].abs() < plain[j][0].abs()), "{plain:?}");
    place.write("whole.csv", "f1,f2\n0,1\n0,1\n0,1\n1,0\n1,0\n1,0\n");
    let told =
        place.json(&["rotate", "m.covary", "--method", "procrustes", "--target", "whole.csv", "--json"]);
    assert_eq!(told["rotation"]["method"], "procrustes");
}

#[test]
fn without_an_output_nothing_is_written() {
    let place = fitted();
    let before = place.files();
    assert!(place.ok(&["rotate", "m.covary", "--method", "varimax"]).contains("not kept"));
    assert_eq!(place.ok(&["rotate", "m.covary", "--method", "varimax", "--quiet"]), "");
    assert_eq!(place.files(), before);
}

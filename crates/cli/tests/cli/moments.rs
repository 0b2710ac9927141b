//! Parts that are summarised apart and merged give the model of the whole.

use crate::support::{CROSS, Place, close};

fn parts(place: &Place) {
    let lines: Vec<&str> = CROSS.lines().collect();
    for (name, range) in [("1", 1..2), ("2", 2..5), ("3", 5..7)] {
        let text = format!("{}\n{}\n", lines[0], lines[range].join("\n"));
        place.write(&format!("{name}.csv"), text);
        place.ok(&["moments", &format!("{name}.csv"), "-o", &format!("{name}.moments"), "--quiet"]);
    }
}

#[test]
fn merged_moments_give_the_model_of_all_rows() {
    let place = Place::with_model();
    parts(&place);
    place.ok(&["merge", "3.moments", "1.moments", "2.moments", "-o", "all.moments", "--quiet"]);
    let told = place.json(&["fit", "all.moments", "-q", "1", "-o", "m.covary", "--json"]);
    assert_eq!(told["rows"].as_u64(), Some(6));
    close(told["noise_variance"].as_f64().unwrap(), 5.0 / 6.0, 1e-13);
    let whole = place.json(&["inspect", "cross.covary", "--json"]);
    let merged = place.json(&["inspect", "m.covary", "--json"]);
    assert_eq!(whole["feature_names"], merged["feature_names"]);
    close(merged["log_likelihood"].as_f64().unwrap(), whole["log_likelihood"].as_f64().unwrap(), 1e-13);
}

#[test]
fn moments_of_rows_that_pass_once_are_the_same() {
    let place = Place::with_model();
    place.ok(&["moments", "cross.csv", "-o", "file.moments", "--quiet"]);
    let output = place.shell("covary moments - -o pipe.moments --quiet < cross.csv");
    assert!(output.status.success());
    let variances = |name: &str| place.json(&["inspect", name, "--json"])["variances"].clone();
    for (j, expected) in [3.0, 4.0 / 3.0, 1.0 / 3.0].into_iter().enumerate() {
        close(variances("file.moments")[j].as_f64().unwrap(), expected, 1e-14);
        close(variances("pipe.moments")[j].as_f64().unwrap(), expected, 1e-14);
    }
    assert!(place.ok(&["inspect", "file.moments"]).contains("6 rows"));
}

#[test]
fn parts_of_other_features_are_named() {
    let place = Place::new();
    place.write("a.csv", "x,y\n1,2\n3,5\n");
    place.write("b.csv", "x,z\n1,2\n3,5\n");
    place.write("c.csv", "x\n1\n3\n");
    for name in ["a", "b", "c"] {
        place.ok(&["moments", &format!("{name}.csv"), "-o", &format!("{name}.moments"), "--quiet"]);
    }
    let words = ["'b.moments'", "'z'", "'y'", "feature 2"];
    place.fails(&["merge", "a.moments", "b.moments", "-o", "m.moments"], 3, &words);
    place.fails(&["merge", "a.moments", "c.moments", "-o", "m.moments"], 3, &["'c.moments'", "1 feature"]);
    assert!(!place.files().contains(&"m.moments".to_owned()));
}

#[test]
fn moments_know_their_limits() {
    let place = Place::with_model();
    place.ok(&["moments", "cross.csv", "-o", "c.moments", "--quiet"]);
    place.fails(&["moments", "cross.csv", "-o", "c.bin"], 2, &[".moments"]);
    place.fails(&["fit", "c.moments", "-q", "4"], 3, &["1 to 3", "'c.moments'"]);
    place.fails(&["fit", "c.moments", "--solver", "svd"], 2, &["svd", "eigen"]);
    place.fails(&["fit", "c.moments", "--drop", "a"], 2, &["covary moments"]);
    place.fails(&["transform", "c.moments", "cross.csv"], 2, &["moments", "covary fit"]);
    place.fails(&["merge", "cross.covary", "-o", "x.moments"], 5, &["'cross.covary'", "ppca"]);
}

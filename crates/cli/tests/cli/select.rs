//! Choosing the number of components on the command line.

use crate::support::{Place, close};

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
    place.write("hole.csv", "x,y\n1,2\n3,\n4,5\n");
    place.fails(&["select", "hole.csv"], 3, &["row 2", "'y'", "choosing the number of components"]);
    place.write("one.csv", "x\n1\n3\n4\n");
    place.fails(&["select", "one.csv"], 2, &["at least 2"]);
    cross(&place);
    place.fails(&["select", "cross.csv", "--folds", "1"], 2, &["folds"]);
}

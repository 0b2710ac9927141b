//! Each command on data whose answers are known from theory.

use crate::support::{CROSS, Place, close, csv, stderr};

const NOISE: f64 = 5.0 / 6.0; // (4/3 + 1/3) / 2
const LN_TAU: f64 = 1.8378770664093453; // ln 2π

#[test]
fn fit_tells_the_closed_form() {
    let place = Place::new();
    place.write("cross.csv", CROSS);
    let told = place.json(&["fit", "cross.csv", "-q", "1", "--json"]);
    assert_eq!((told["rows"].as_u64(), told["features"].as_u64()), (Some(6), Some(3)));
    assert_eq!((told["model"].as_str(), told["components"].as_u64()), (Some("ppca"), Some(1)));
    close(told["noise_variance"].as_f64().unwrap(), NOISE, 1e-14);
    close(told["eigenvalues"][0].as_f64().unwrap(), 3.0, 1e-14);
    close(told["total_variance"].as_f64().unwrap(), 14.0 / 3.0, 1e-14);
    close(told["explained_variance_ratio"][0].as_f64().unwrap(), 9.0 / 14.0, 1e-14);
    // −n/2 (p ln 2π + Σ ln λ + (p−q) ln σ² + p)
    let expected = -3.0 * (3.0 * LN_TAU + 3f64.ln() + 2.0 * NOISE.ln() + 3.0);
    close(told["log_likelihood"].as_f64().unwrap(), expected, 1e-14);
    assert_eq!(told["converged"].as_bool(), Some(true));
    assert_eq!(place.files(), ["cross.csv"], "nothing is written without -o");
}

#[test]
fn a_share_of_the_variance_takes_the_fewest_components() {
    let place = Place::new();
    place.write("cross.csv", CROSS);
    // Shares are 9/14 = 0.643, 4/14 and 1/14: cumulative 0.643, 0.929, 1.
    for (q, expected) in [("0.6", 1), ("0.65", 2), ("0.93", 3)] {
        let told = place.json(&["fit", "cross.csv", "-q", q, "--json"]);
        assert_eq!(told["components"].as_u64(), Some(expected), "{q}");
    }
    let told = place.json(&["fit", "cross.csv", "--json"]);
    assert_eq!(told["components"].as_u64(), Some(2), "90 % without -q");
    assert!(place.ok(&["fit", "cross.csv"]).contains("90 % of the variance"));
}

#[test]
fn all_solvers_tell_the_same() {
    let place = Place::new();
    place.write("cross.csv", CROSS);
    for solver in ["auto", "eigen", "svd", "dual", "krylov"] {
        let told = place.json(&["fit", "cross.csv", "-q", "2", "--solver", solver, "--json"]);
        close(told["noise_variance"].as_f64().unwrap(), 1.0 / 3.0, 1e-12);
        close(told["eigenvalues"][1].as_f64().unwrap(), 4.0 / 3.0, 1e-12);
    }
}

#[test]
fn weights_count_rows_as_often_as_they_say() {
    let place = Place::new();
    place.write("w.csv", "a,b,w\n1,0,2\n-1,0,2\n0,1,1\n0,-1,1\n9,9,0\n");
    let told = place.json(&["fit", "w.csv", "-q", "1", "--weights", "w", "--json"]);
    assert_eq!((told["rows"].as_u64(), told["weight"].as_f64()), (Some(4), Some(6.0)));
    close(told["eigenvalues"][0].as_f64().unwrap(), 4.0 / 6.0, 1e-14);
    close(told["noise_variance"].as_f64().unwrap(), 2.0 / 6.0, 1e-14);
}

#[test]
fn the_summary_is_for_people() {
    let place = Place::new();
    place.write("cross.csv", CROSS);
    let text = place.ok(&["fit", "cross.csv", "-q", "2", "-o", "m.covary"]);
    for word in ["rows (n)", "eigen", "0.3333333", "64.3 %", "92.9 %", "█", "m.covary", "seconds"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    assert_eq!(place.ok(&["fit", "cross.csv", "--quiet", "-o", "m.covary"]), "");
}

#[test]
fn transform_gives_posterior_means_and_deviations() {
    let place = Place::with_model();
    let (header, rows) = csv(&place.ok(&["transform", "cross.covary", "cross.csv", "--std"]));
    assert_eq!(header, ["z1", "z1_std"]);
    // E[z] = w x / (w² + σ²), Var = σ² / (w² + σ²), w² + σ² = λ = 3.
    let w = (3.0 - NOISE).sqrt();
    close(rows[0][0], w, 1e-14);
    close(rows[1][0], -w, 1e-14);
    assert!(rows[2][0].abs() < 1e-14 && rows.len() == 6);
    rows.iter().for_each(|row| close(row[1], (NOISE / 3.0).sqrt(), 1e-14));
}

#[test]
fn classical_pca_gives_scores_and_has_no_posterior() {
    let place = Place::new();
    place.write("cross.csv", CROSS);
    place.ok(&["fit", "cross.csv", "-q", "1", "--model", "pca", "-o", "m.covary", "--quiet"]);
    let (_, rows) = csv(&place.ok(&["transform", "m.covary", "cross.csv"]));
    close(rows[0][0], 3.0, 1e-14);
    place.fails(&["transform", "m.covary", "cross.csv", "--std"], 2, &["posterior", "ppca"]);
}

#[test]
fn reconstruct_projects_or_shrinks() {
    let place = Place::with_model();
    let (header, rows) = csv(&place.ok(&["reconstruct", "cross.covary", "cross.csv"]));
    assert_eq!(header, ["a", "b", "c"]);
    close(rows[0][0], 3.0, 1e-14);
    assert!(rows[2].iter().all(|x| x.abs() < 1e-14));
    let (_, rows) = csv(&place.ok(&["reconstruct", "cross.covary", "cross.csv", "--posterior"]));
    close(rows[0][0], 3.0 - NOISE, 1e-14); // (λ − σ²)/λ · 3
}

#[test]
fn score_gives_density_distances_and_p_value() {
    let place = Place::with_model();
    let (header, rows) = csv(&place.ok(&["score", "cross.covary", "cross.csv"]));
    assert_eq!(header, ["log_density", "t2", "spe", "p_value"]);
    let constant = 3.0 * LN_TAU + 3f64.ln() + 2.0 * NOISE.ln();
    close(rows[0][0], -0.5 * (constant + 3.0), 1e-14);
    close(rows[2][0], -0.5 * (constant + 4.0 / NOISE), 1e-14);
    close(rows[0][1], 3.0, 1e-14);
    close(rows[2][2], 4.0, 1e-14);
    close(rows[0][3], 0.391_625_176_271_088_95, 1e-10); // P(χ²₃ ≥ 3)
}

#[test]
fn score_without_noise_leaves_the_density_empty_and_says_so_once() {
    let place = Place::new();
    place.write("line.csv", "a,b\n1,2\n2,4\n3,6\n4,8\n");
    place.ok(&["fit", "line.csv", "-q", "1", "-o", "m.covary", "--quiet"]);
    let output = place.run(&["score", "m.covary", "line.csv"]);
    assert!(output.status.success());
    assert_eq!(stderr(&output).matches("no noise").count(), 1);
    let (_, rows) = csv(&String::from_utf8(output.stdout).unwrap());
    assert!(rows.iter().all(|r| r[0].is_nan() && r[3].is_nan() && r[2] < 1e-12));
    close(rows[0][1], 2.25 / 1.25, 1e-12);
}

#[test]
fn a_fit_without_noise_says_why_there_is_no_likelihood() {
    let place = Place::new();
    place.write("line.csv", "a,b\n1,2\n2,4\n3,6\n4,8\n");
    assert!(place.ok(&["fit", "line.csv", "-q", "1"]).contains("infinite"));
    assert!(place.json(&["fit", "line.csv", "-q", "1", "--json"])["log_likelihood"].is_null());
}

#[test]
fn sample_has_the_moments_of_the_model_and_keeps_its_word() {
    let place = Place::with_model();
    let text = place.ok(&["sample", "cross.covary", "-n", "40000", "--seed", "3"]);
    let (header, rows) = csv(&text);
    assert_eq!((header, rows.len()), (vec!["a".into(), "b".into(), "c".into()], 40000));
    let variance = |j: usize| rows.iter().map(|r| r[j] * r[j]).sum::<f64>() / rows.len() as f64;
    close(variance(0), 3.0, 0.03);
    close(variance(1), NOISE, 0.03);
    let covariance = rows.iter().map(|r| r[0] * r[1]).sum::<f64>() / rows.len() as f64;
    assert!(covariance.abs() < 0.05, "{covariance}");
    let shorter = place.ok(&["sample", "cross.covary", "-n", "1000", "--seed", "3"]);
    assert!(text.starts_with(&shorter), "a longer sample begins with a shorter one");
    assert_ne!(shorter, place.ok(&["sample", "cross.covary", "-n", "1000", "--seed", "4"]));
}

#[test]
fn a_long_sample_in_pieces_is_the_same_sample() {
    let place = Place::new();
    let wide: String =
        (0..5).map(|i| (0..3000).map(|j| format!("{},", i * j % 7)).collect::<String>() + "1\n").collect();
    place.write("wide.csv", wide);
    place.ok(&["fit", "wide.csv", "-q", "2", "-o", "m.covary", "--quiet"]);
    // 3001 features: pieces of 768 rows.
    let long = place.ok(&["sample", "m.covary", "-n", "1000"]);
    assert!(long.starts_with(&place.ok(&["sample", "m.covary", "-n", "700"])));
    assert_eq!(long.lines().count(), 1001);
}

#[test]
fn inspect_shows_models_to_people_and_programs() {
    let place = Place::with_model();
    let text = place.ok(&["inspect", "cross.covary"]);
    assert!(text.contains("ppca") && text.contains("a, b, c") && text.contains("a +1.4720"), "{text}");
    let told = place.json(&["inspect", "cross.covary", "--json"]);
    close(told["loadings"][0][0].as_f64().unwrap(), (3.0 - NOISE).sqrt(), 1e-14);
    assert_eq!(told["feature_names"].as_array().unwrap().len(), 3);
    assert_eq!(told["mean"][1].as_f64().unwrap(), 0.0);
}

#[test]
fn columns_are_matched_by_name_and_others_carried_or_left_out() {
    let place = Place::with_model();
    place.write("mixed.csv", "name,c,extra,a,b\nx,0,7,3,0\n\"y, z\",0,7,-3,0\n");
    let z = place.ok(&["transform", "cross.covary", "mixed.csv"]);
    let w = (3.0 - NOISE).sqrt();
    let mut lines = z.lines();
    assert_eq!(lines.next(), Some("name,z1"));
    close(lines.next().unwrap().strip_prefix("x,").unwrap().parse().unwrap(), w, 1e-14);
    close(lines.next().unwrap().strip_prefix("\"y, z\",").unwrap().parse().unwrap(), -w, 1e-14);
    let z = place.ok(&["transform", "cross.covary", "mixed.csv", "--id", "extra", "--drop", "name"]);
    assert!(z.starts_with("extra,z1\n7,"), "{z}");
}

#[test]
fn fit_says_which_columns_it_does_not_model() {
    let place = Place::new();
    place.write("mixed.csv", "name,a,b,c\nx,3,0,1\ny,-3,0,2\nz,0,2,5\n");
    let output = place.run(&["fit", "mixed.csv", "-q", "1", "--drop", "c"]);
    assert!(stderr(&output).contains("'name'"), "{}", stderr(&output));
    let told = place.json(&["fit", "mixed.csv", "-q", "1", "--drop", "c", "--json"]);
    assert_eq!(told["carried"][0]["name"], "name");
    assert_eq!(told["left_out"][0]["because"], "dropped");
    let told = place.json(&["fit", "mixed.csv", "-q", "1", "--columns", "2-3", "--json"]);
    assert_eq!(told["features"].as_u64(), Some(2));
}

#[test]
fn a_reader_that_goes_away_is_no_trouble() {
    let place = Place::with_model();
    let output = place.shell("set -o pipefail; covary sample cross.covary -n 300000 | head -1");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!(output.stdout, b"a,b,c\n");
}

#[test]
fn the_tour_runs_and_respects_what_is_there() {
    let place = Place::new();
    let text = place.ok(&["demo", "tour"]);
    for word in [
        "$ covary fit",
        "$ covary score",
        "21: the fewest",
        "██",
        "row 1573",
        "--holdout",
        "95 % intervals",
        "$ covary report",
        "double click",
        "covary inspect",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert!(place.path("tour/new.csv").is_file() && place.path("tour/report.html").is_file());
    place.ok(&["demo", "tour"]);
    std::fs::create_dir(place.path("mine")).unwrap();
    place.write("mine/scores.csv", "precious");
    place.fails(&["demo", "mine"], 5, &["mine/scores.csv", "another folder"]);
    assert_eq!(place.read("mine/scores.csv"), b"precious");
}

//! Robust PPCA through the binary: what it finds and tells, from every source, and what it refuses.

use covary::linalg::Mat;
use serde_json::Value;

use crate::support::{Place, close, csv, names, rows, rows_with_holes, table_of, triples_of};

/// Every twentieth row a gross error.
fn spoilt(x: &Mat<f64>) -> Mat<f64> {
    let wrong = |i: usize, j: usize| if (i + j).is_multiple_of(2) { 400.0 } else { -300.0 + 20.0 * i as f64 };
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| match i % 20 == 7 && !x[(i, j)].is_nan() {
        true => wrong(i, j),
        false => x[(i, j)],
    })
}

fn fit(place: &Place, args: &[&str]) -> Value {
    place.json(&[&["fit"], args, &["--model", "robust", "--json"]].concat())
}

fn number(told: &Value, key: &str) -> f64 {
    told[key].as_f64().unwrap_or_else(|| panic!("{key}: {told}"))
}

#[test]
fn gross_errors_are_found_and_told() {
    let place = Place::new();
    table_of(&place, "x.csv", &spoilt(&rows(200, 6, 3)));
    let told = fit(&place, &["x.csv", "-q", "2", "-o", "m.covary"]);
    assert_eq!((told["model"].as_str(), told["solver"].as_str()), (Some("robust"), Some("eigen")));
    let robust = &told["robust"];
    assert_eq!(robust["found"].as_bool(), Some(true));
    assert!(robust["low_weight_rows"].as_u64().unwrap() >= 10 && number(robust, "least_weight") < 0.01);
    let nu = number(robust, "degrees_of_freedom");
    assert!((1.0..20.0).contains(&nu), "{nu}");
    let text = place.ok(&["inspect", "m.covary"]);
    for words in ["degrees of freedom (ν)", "found", "rows far out", "below 1/2"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // score: one more column, which is smallest where the errors are.
    let (header, scores) = csv(&place.ok(&["score", "m.covary", "x.csv"]));
    assert_eq!(header, ["log_density", "t2", "spe", "p_value", "weight"]);
    let far: Vec<usize> = (0..200).filter(|i| scores[*i][4] < 0.05).collect();
    assert_eq!(far, (0..10).map(|k| 20 * k + 7).collect::<Vec<_>>());
    // p-values are of F, not of χ²: rows without errors have about uniform ones.
    let small = (0..200).filter(|i| i % 20 != 7 && scores[*i][3] < 0.01).count();
    assert!(small < 8, "{small}");
    let total: f64 = scores.iter().map(|row| row[0]).sum();
    close(number(&told, "log_likelihood"), total, 1e-9);
}

/// σ² is that of the rows without errors, where PPCA's is not.
#[test]
fn errors_do_not_move_the_fit() {
    for missing in [0.0, 0.1] {
        let place = Place::new();
        let clean = if missing > 0.0 { rows_with_holes(300, 6, missing, 5) } else { rows(300, 6, 5) };
        table_of(&place, "clean.csv", &clean);
        table_of(&place, "x.csv", &spoilt(&clean));
        let noise = |data: &str, kind: &str| {
            number(&place.json(&["fit", data, "-q", "2", "--model", kind, "--json"]), "noise_variance")
        };
        let (expected, robust, plain) =
            (noise("clean.csv", "ppca"), noise("x.csv", "robust"), noise("x.csv", "ppca"));
        assert!((robust / expected - 1.0).abs() < 0.35, "{missing}: {robust} for {expected}");
        assert!(plain > 5.0 * expected, "{missing}: {plain} for {expected}");
    }
}

#[test]
fn nu_is_given_found_or_infinite() {
    let place = Place::new();
    table_of(&place, "x.csv", &spoilt(&rows(120, 5, 9)));
    let given = fit(&place, &["x.csv", "-q", "1", "--nu", "4"]);
    assert_eq!(
        (given["robust"]["degrees_of_freedom"].as_f64(), given["robust"]["found"].as_bool()),
        (Some(4.0), Some(false))
    );
    let found = fit(&place, &["x.csv", "-q", "1", "--nu", "auto"]);
    assert!(number(&found, "log_likelihood") > number(&given, "log_likelihood"));
    // Infinitely many: PPCA to the last digit.
    let normal = fit(&place, &["x.csv", "-q", "1", "--nu", "inf"]);
    assert!(normal["robust"]["degrees_of_freedom"].is_null());
    let ppca = place.json(&["fit", "x.csv", "-q", "1", "--json"]);
    for key in ["noise_variance", "log_likelihood", "total_variance"] {
        assert_eq!(normal[key], ppca[key], "{key}");
    }
    assert!(ppca["robust"].is_null());
    for bad in ["0", "-1", "nan", "many"] {
        let output = place.run(&["fit", "x.csv", "-q", "1", "--model", "robust", "--nu", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("degrees of freedom"), "{bad}");
    }
}

/// A file in memory, in parts and as triples gives the same optimum.
#[test]
fn every_source_gives_the_same() {
    let place = Place::new();
    let x = spoilt(&rows_with_holes(150, 5, 0.1, 2));
    table_of(&place, "x.csv", &x);
    place.write("long.csv", triples_of(&x, &names(5)));
    let whole = fit(&place, &["x.csv", "-q", "2"]);
    assert_eq!(whole["solver"].as_str(), Some("em"));
    let long = fit(&place, &["long.csv", "--triples", "user,item,value", "-q", "2"]);
    close(number(&long, "log_likelihood"), number(&whole, "log_likelihood"), 1e-7);
    let start = fit(&place, &["x.csv", "-q", "2", "-o", "m.covary"]);
    let warm = fit(&place, &["x.csv", "--start", "m.covary"]);
    close(number(&warm, "log_likelihood"), number(&start, "log_likelihood"), 1e-9);
    assert!(number(&warm, "passes") < number(&start, "passes"));
}

#[test]
fn what_it_cannot_do_is_said() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(40, 4, 1));
    place.fails(&["fit", "x.csv", "-q", "4", "--model", "robust"], 3, &["4 components", "3"]);
    place.fails(
        &["fit", "x.csv", "-q", "2", "--model", "robust", "--solver", "dual"],
        2,
        &["dual", "eigen and em"],
    );
    place.ok(&["moments", "x.csv", "-o", "x.moments"]);
    place.fails(&["fit", "x.moments", "-q", "1", "--model", "robust"], 2, &["moments", "rows"]);
    place.write("constant.csv", "a,b\n1,2\n1,2\n1,2\n");
    place.fails(&["fit", "constant.csv", "-q", "1", "--model", "robust"], 3, &["same"]);
}

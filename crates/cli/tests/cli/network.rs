//! Autoassociative networks through the binary: what is found and told, missing values, and what is refused.

use covary::linalg::Mat;

use crate::support::{Place, csv, rows, table_of};

/// Most of a circle that rises.
fn curve(n: usize) -> Mat<f64> {
    Mat::from_fn(n, 3, |i, j| {
        let t = 5.0 * i as f64 / n as f64;
        [t.cos(), t.sin(), 0.3 * t][j] + 0.01 * ((7 * i + 31 * j) % 11) as f64
    })
}

#[test]
fn a_curve_is_found_told_and_asked() {
    let place = Place::new();
    let x = curve(300);
    table_of(&place, "x.csv", &x);
    let fit =
        ["fit", "x.csv", "--model", "autoencoder", "-q", "1", "--hidden", "12", "-o", "m.covary", "--json"];
    let told = place.json(&fit);
    assert_eq!((told["model"].as_str(), told["solver"].as_str()), (Some("autoencoder"), Some("lbfgs")));
    let about = &told["network"];
    assert_eq!((about["hidden"].as_u64(), about["encoder"].as_bool()), (Some(12), Some(true)));
    let number = |name: &str| about[name].as_f64().unwrap();
    assert!(number("explained") > 0.98 && number("explained_by_pca") < 0.9, "{about}");
    let text = place.ok(&["inspect", "m.covary"]);
    for words in ["autoencoder", "12 hidden units (tanh)", "of the variance; PCA", "hidden from the fit"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (header, z) = csv(&place.ok(&["transform", "m.covary", "x.csv", "--std"]));
    assert_eq!((header, z.len()), (vec!["z1".to_owned(), "z1_std".into()], 300));
    let (_, rebuilt) = csv(&place.ok(&["reconstruct", "m.covary", "x.csv"]));
    let worst = (0..300).flat_map(|i| (0..3).map(move |j| (i, j)));
    let worst = worst.map(|(i, j)| (rebuilt[i][j] - x[(i, j)]).abs()).fold(0.0, f64::max);
    assert!(worst < 0.4, "{worst}");
    let (header, spe) = csv(&place.ok(&["score", "m.covary", "x.csv"]));
    assert_eq!((header, spe.len()), (vec!["spe".to_owned()], 300));
    // A hole is filled along the curve.
    place.write("hole.csv", "x1,x2,x3\n-0.41,,0.65\n");
    let (_, filled) = csv(&place.ok(&["impute", "m.covary", "hole.csv", "--std"]));
    assert!((filled[0][1] - 2f64.sin()).abs() < 0.3, "{filled:?}");
    assert!(filled[0].iter().skip(3).any(|std| *std > 0.0), "{filled:?}");
}

#[test]
fn missing_values_are_fitted_without_an_encoder() {
    let place = Place::new();
    let x = curve(150);
    table_of(&place, "x.csv", &Mat::from_fn(150, 3, |i, j| if i % 4 == j { f64::NAN } else { x[(i, j)] }));
    let fit =
        ["fit", "x.csv", "--model", "autoencoder", "-q", "1", "--hidden", "6", "-o", "m.covary", "--json"];
    let out = place.run(&[&fit[..], &["--max-iter", "40"]].concat());
    assert!(matches!(out.status.code(), Some(0 | 1)));
    let text = place.ok(&["inspect", "m.covary"]);
    assert!(text.contains("decoder only") && text.contains("cells are missing"), "{text}");
    let (_, filled) = csv(&place.ok(&["impute", "m.covary", "x.csv"]));
    let far = |i: usize| (filled[i][i % 4] - x[(i, i % 4)]).abs();
    let mut errors: Vec<f64> = (0..150).filter(|i| i % 4 < 3).map(far).collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] < 0.2, "{}", errors[errors.len() / 2]);
}

#[test]
fn what_a_network_cannot_do_is_said() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(40, 6, 3));
    let fit = |more: &[&'static str]| [&["fit", "x.csv", "--model", "autoencoder"], more].concat();
    place.fails(&fit(&["-q", "7"]), 3, &["7 components", "1 to 6"]);
    place.fails(&fit(&["-q", "2", "--solver", "svd"]), 2, &["auto, lbfgs and adam"]);
    place.fails(&fit(&["-q", "2", "--hidden", "3", "--activation", "linear"]), 2, &["hidden units"]);
    place.fails(&fit(&["-q", "2", "--alpha", "-1"]), 2, &["alpha", "not negative"]);
    place.fails(&["fit", "x.csv", "-q", "2", "--solver", "adam"], 2, &["--model autoencoder"]);
    place.ok(&["moments", "x.csv", "-o", "x.moments"]);
    place.fails(&["fit", "x.moments", "--model", "autoencoder", "-q", "2"], 2, &["read again"]);
    // The limit on steps is a value.
    let short = place.run(&fit(&["-q", "2", "--max-iter", "2", "-o", "m.covary"]));
    assert_eq!(short.status.code(), Some(1));
    assert!(!place.ok(&["transform", "m.covary", "x.csv"]).is_empty());
}

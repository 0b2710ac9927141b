//! GP-LVMs through the binary: what they find and tell, what can be asked of them, and what they refuse.

use covary::linalg::Mat;

use crate::support::{Place, csv, table_of};

/// Most of a circle and a line through it.
fn curve(n: usize) -> Mat<f64> {
    let t = |i: usize| 4.5 * i as f64 / n as f64;
    let wobble = |i: usize, j: usize| 0.02 * ((i * 7 + j * 13) as f64).sin();
    Mat::from_fn(n, 3, |i, j| [t(i).cos(), t(i).sin(), 0.3 * t(i)][j] + wobble(i, j))
}

#[test]
fn a_curve_is_fitted_and_asked_about() {
    let place = Place::new();
    table_of(&place, "x.csv", &curve(90));
    let fit = ["fit", "x.csv", "--model", "gplvm", "-q", "1", "--inducing", "12", "-o", "m.covary"];
    let told = place.json(&[&fit[..], &["--json"]].concat());
    assert_eq!((told["model"].as_str(), told["solver"].as_str()), (Some("gplvm"), Some("lbfgs")));
    let gplvm = &told["gplvm"];
    assert_eq!((gplvm["method"].as_str(), gplvm["kernel"].as_str()), (Some("bayes"), Some("rbf")));
    assert_eq!((gplvm["inducing"].as_u64(), gplvm["positions"].as_u64()), (Some(12), Some(90)));
    // The wobble has deviation 0.02/√2, and nothing else is off the curve.
    let noise = gplvm["noise_variance"].as_f64().unwrap().sqrt();
    assert!((0.01..0.03).contains(&noise), "{noise}");
    let (header, z) = csv(&place.ok(&["transform", "m.covary", "x.csv", "--std"]));
    assert_eq!(header.len(), 2);
    let rising = z.windows(2).filter(|w| w[1][0] > w[0][0]).count();
    assert!(!(10..=79).contains(&rising), "coordinates follow the curve: {rising}");
    assert!(z.iter().all(|row| row[1] > 0.0 && row[1] < 0.5));
    place.write("holes.csv", "x1,x2,x3\n1,,\n,1,0.47\n,,\n");
    let (_, filled) = csv(&place.ok(&["impute", "m.covary", "holes.csv"]));
    // At t = π/2 the cosine is 0.
    assert!(filled[1][0].abs() < 0.1 && filled[1][1] == 1.0, "{filled:?}");
    assert_eq!(csv(&place.ok(&["reconstruct", "m.covary", "x.csv"])).1.len(), 90);
    assert_eq!(csv(&place.ok(&["sample", "m.covary", "-n", "5", "--seed", "1"])).1.len(), 5);
    let text = place.ok(&["inspect", "m.covary"]);
    for words in ["gplvm", "rbf: variance", "12 points", "lower bound on the evidence", "relevance", "z1"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    place.fails(&["score", "m.covary", "x.csv"], 2, &["a GP-LVM does not have a density", "ppca"]);
    place.fails(&["rotate", "m.covary", "--method", "varimax"], 2, &["a GP-LVM does not have loadings"]);
}

#[test]
fn exact_models_and_dual_ppca() {
    let place = Place::new();
    table_of(&place, "x.csv", &curve(40));
    let fit = |more: &[&str]| {
        place.json(
            &[&["fit", "x.csv", "--model", "gplvm", "-q", "1", "--method", "map", "--json"], more].concat(),
        )
    };
    let exact = fit(&[]);
    assert_eq!(
        (exact["gplvm"]["method"].as_str(), exact["gplvm"]["inducing"].as_u64()),
        (Some("map"), Some(40))
    );
    let dual = fit(&["--kernel", "linear"]);
    assert_eq!((dual["solver"].as_str(), dual["iterations"].as_u64()), (Some("eigen"), Some(0)));
    assert!(dual["gplvm"]["noise_variance"].as_f64() > exact["gplvm"]["noise_variance"].as_f64());
    let model = ["--model", "gplvm", "-q", "1"];
    let refused = |more: &[&str], words: &[&str]| {
        place.fails(&[&["fit", "x.csv"], &model[..], more].concat(), 2, words);
    };
    refused(
        &["--method", "map", "--inducing", "9"],
        &["--inducing is for the rbf kernel with --method bayes"],
    );
    refused(&["--kernel", "cosine"], &["kernel PCA"]);
    refused(&["--solver", "svd"], &["gplvm has the solver auto only"]);
    table_of(&place, "many.csv", &curve(2001));
    place.fails(
        &["fit", "many.csv", "--model", "gplvm", "-q", "1", "--method", "map"],
        2,
        &["at most 2000", "the method bayes takes any number"],
    );
    place.fails(
        &["fit", "x.csv", "--model", "gplvm", "-q", "4"],
        3,
        &["4 components are too many", "allow -q 1 to 3"],
    );
}

/// The limit on steps leaves a model, and says so by its exit code.
#[test]
fn a_fit_that_is_not_finished_is_kept() {
    let place = Place::new();
    table_of(&place, "x.csv", &curve(60));
    let output =
        place.run(&["fit", "x.csv", "--model", "gplvm", "-q", "1", "--max-iter", "3", "-o", "m.covary"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(place.ok(&["inspect", "m.covary"]).contains("stopped at the limit after 3 steps"));
}

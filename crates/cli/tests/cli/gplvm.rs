//! GP-LVMs through the binary: what they find and tell, what can be asked of them, and what they refuse.

use covary::linalg::Mat;

use crate::support::{Place, close, csv, stderr, table_of};

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
    assert_eq!(header, ["z1", "z1_std", "ambiguous"]);
    assert!(z.iter().all(|row| row[2] == 0.0), "complete rows of an open curve have one place");
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

/// Of a circle one coordinate tells two places.
#[test]
fn rows_that_two_places_explain_are_told() {
    let place = Place::new();
    let t = |i: usize| 5.4 * i as f64 / 80.0 + 0.4;
    table_of(&place, "x.csv", &Mat::from_fn(80, 2, |i, j| [t(i).cos(), t(i).sin()][j]));
    place.ok(&[
        "fit",
        "x.csv",
        "--model",
        "gplvm",
        "-q",
        "1",
        "--inducing",
        "15",
        "--tol",
        "1e-4",
        "-o",
        "m.covary",
    ]);
    place.write("new.csv", "x1,x2\n-0.3,\n-1,0\n");
    let plain = place.run(&["transform", "m.covary", "new.csv"]);
    let (header, _) = csv(&String::from_utf8(plain.stdout.clone()).unwrap());
    assert_eq!((plain.status.code(), header), (Some(0), vec!["z1".to_owned()]));
    let told = stderr(&plain);
    assert!(told.contains("a second place explains 1 row about as well; --std marks"), "{told}");
    let (header, z) = csv(&place.ok(&["transform", "m.covary", "new.csv", "--std"]));
    assert_eq!((header[2].as_str(), z[0][2], z[1][2]), ("ambiguous", 1.0, 0.0));
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

/// 8.7 MB of cells where 8 MB may be loaded: rows are read again in each pass, and the answer is the same. The matrix of
/// inducing points is nearly singular, and on the way rounding of sums shows in the sixth digit of the bound.
#[test]
fn a_file_that_does_not_fit_in_memory_is_fitted_in_passes() {
    let place = Place::new();
    let t = |i: usize| 4.5 * i as f64 / 9100.0;
    let wobble = |i: usize, j: usize| 0.1 * ((i * 7 + j * 13) as f64).sin();
    let cell = |i: usize, j: usize| (t(i) + j as f64 / 100.0).cos() + wobble(i, j);
    table_of(&place, "x.npy", &Mat::from_fn(9100, 120, cell));
    table_of(&place, "few.npy", &Mat::from_fn(20, 120, |i, j| cell(450 * i, j)));
    for (model, part, name, close_to) in [
        (["gplvm", "--inducing", "6"], "gplvm", "objective", (1e-5, 2e-3)),
        (["autoencoder", "--hidden", "3"], "network", "explained", (1e-9, 1e-6)),
    ] {
        let fit = |memory: &str, file: &str| {
            let how = ["-q", "1", "--max-iter", "4", "--memory", memory, "-o", file, "--model"];
            let fitted = place.run(&[&["fit", "x.npy"], &how[..], &model[..]].concat());
            assert_eq!(fitted.status.code(), Some(1), "{model:?}");
            let told = place.json(&["inspect", file, "--json"]);
            (told[part][name].as_f64().unwrap(), csv(&place.ok(&["transform", file, "few.npy"])).1)
        };
        let (loaded, passes) = (fit("1G", "loaded.covary"), fit("16M", "passes.covary"));
        close(passes.0, loaded.0, close_to.0);
        for (a, b) in passes.1.iter().zip(&loaded.1) {
            assert!((a[0] - b[0]).abs() < close_to.1, "{model:?}: {} {}", a[0], b[0]);
        }
    }
}

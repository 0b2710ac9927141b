//! Independent components through the binary: what is found and told, from memory and in passes, and what is refused.

use covary::linalg::Mat;
use serde_json::Value;

use crate::support::{Place, close, csv, rows, table_of};

/// Two saw teeth of periods that have no factor in common, and one of rare peaks: independent, mixed into four
/// features.
fn mixed(n: usize) -> (Mat<f64>, Mat<f64>) {
    let saw = |i: usize, period: usize| (i % period) as f64 / period as f64 - 0.5;
    let peaks = |i: usize| if (i / 143).is_multiple_of(17) { 3.0 } else { 0.1 };
    let sources = Mat::from_fn(n, 3, |i, k| [saw(i, 11), saw(i, 13), peaks(i)][k]);
    let mixing = Mat::from_fn(4, 3, |j, k| {
        [[3.0, 1.0, 0.5], [0.0, 2.0, 0.5], [1.0, -1.0, 0.0], [1.0, 0.0, -0.5]][j][k]
    });
    let x = &sources * mixing.transpose();
    (sources, Mat::from_fn(n, 4, |i, j| x[(i, j)] + 0.001 * ((7 * i + 31 * j) % 101) as f64))
}

fn fit(place: &Place, args: &[&str]) -> Value {
    place.json(&[&["fit"], args, &["--model", "ica", "--json"]].concat())
}

/// |correlation| of two columns.
fn agreement(a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64, n: usize) -> f64 {
    let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
    let (ma, mb) = (mean(&a), mean(&b));
    let product =
        |f: &dyn Fn(usize) -> f64, g: &dyn Fn(usize) -> f64| (0..n).map(|i| f(i) * g(i)).sum::<f64>();
    let (a, b) = (|i: usize| a(i) - ma, |i: usize| b(i) - mb);
    (product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()).abs()
}

#[test]
fn sources_are_found_and_told() {
    let place = Place::new();
    let (sources, x) = mixed(4862);
    table_of(&place, "x.csv", &x);
    let told = fit(&place, &["x.csv", "-q", "3", "-o", "m.covary"]);
    assert_eq!((told["model"].as_str(), told["components"].as_u64()), (Some("ica"), Some(3)));
    let about = &told["sources"];
    assert_eq!((about["method"].as_str(), about["starts"].as_u64()), (Some("picard"), Some(5)));
    for k in 0..3 {
        assert_eq!(about["looks_normal"][k].as_bool(), Some(false), "{about}");
        assert!(about["stability"][k].as_f64().unwrap() > 0.99, "{about}");
    }
    let (header, found) = csv(&place.ok(&["transform", "m.covary", "x.csv"]));
    assert_eq!(header, ["s1", "s2", "s3"]);
    let best =
        |k: usize| (0..3).map(|j| agreement(|i| found[i][k], |i| sources[(i, j)], 4862)).fold(0.0, f64::max);
    assert!((0..3).all(|k| best(k) > 0.99), "{:?}", [best(0), best(1), best(2)]);
    let text = place.ok(&["inspect", "m.covary"]);
    for words in
        ["picard", "best of 5 starts", "source", "stability", "tails", "light", "heavy", "largest loadings"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The mixing matrix is what inspect --json calls loadings.
    let loadings = &place.json(&["inspect", "m.covary", "--json"])["loadings"];
    assert_eq!((loadings.as_array().unwrap().len(), loadings[0].as_array().unwrap().len()), (4, 3));
    // Rows are rebuilt from sources, and missing cells are imputed as by PPCA.
    let (_, back) = csv(&place.ok(&["reconstruct", "m.covary", "x.csv"]));
    assert!((back[17][2] - x[(17, 2)]).abs() < 0.2);
    let ppca = place.json(&["fit", "x.csv", "-q", "3", "--json"]);
    for key in ["noise_variance", "log_likelihood", "total_variance"] {
        assert_eq!(told[key], ppca[key], "{key}");
    }
    assert!(ppca["sources"].is_null());
}

/// A file of which not even the whitened rows fit in memory. The reader cuts it otherwise than a table, so that sums
/// differ in the last bit.
#[test]
fn a_file_larger_than_memory_gives_the_same_sources() {
    let place = Place::new();
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    // Light tails, and the third powers of others: heavy ones.
    let sources = Mat::from_fn(270_000, 8, |_, k| if k < 4 { uniform() } else { 20.0 * uniform().powi(3) });
    let mixing = Mat::from_fn(8, 8, |i, j| if i == j { 2.0 } else { ((3 * i + 5 * j) % 7) as f64 / 7.0 });
    table_of(&place, "x.npy", &(&sources * mixing.transpose()));
    let asked = ["x.npy", "-q", "8", "--starts", "1", "--no-noise"];
    let kept = fit(&place, &[&asked[..], &["-o", "kept.covary"]].concat());
    let passes = fit(&place, &[&asked[..], &["--memory", "16M", "-o", "passes.covary"]].concat());
    assert_eq!(
        (kept["sources"]["kept"].as_bool(), passes["sources"]["kept"].as_bool()),
        (Some(true), Some(false))
    );
    let loadings = |model: &str| place.json(&["inspect", model, "--json"])["loadings"].clone();
    let (a, b) = (loadings("kept.covary"), loadings("passes.covary"));
    for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
        close(a[i][j].as_f64().unwrap(), b[i][j].as_f64().unwrap(), 1e-7);
    }
}

#[test]
fn every_method_is_offered() {
    let place = Place::new();
    table_of(&place, "x.csv", &mixed(4862).1);
    for method in ["picard", "infomax", "fastica"] {
        let told = fit(&place, &["x.csv", "-q", "3", "--method", method, "--starts", "2", "--no-noise"]);
        assert_eq!(told["sources"]["method"].as_str(), Some(method));
        assert_eq!((told["noise_variance"].as_f64(), told["log_likelihood"].is_null()), (Some(0.0), true));
    }
    let auto = fit(&place, &["x.csv", "-q", "auto"]);
    assert!(auto["components_because"].as_str().unwrap().contains("chosen by"), "{auto}");
    let share = fit(&place, &["x.csv", "-q", "0.9", "-o", "m.covary"]);
    assert!(share["components"].as_u64().unwrap() >= 1);
    let warm = fit(&place, &["x.csv", "--start", "m.covary"]);
    assert_eq!(warm["sources"]["starts"].as_u64(), Some(1));
}

#[test]
fn what_it_cannot_do_is_said() {
    let place = Place::new();
    let (_, x) = mixed(60);
    table_of(&place, "x.csv", &x);
    place.fails(&["fit", "x.csv", "-q", "5", "--model", "ica"], 3, &["5 components", "4"]);
    place.fails(&["fit", "x.csv", "--model", "ica", "--method", "vb"], 2, &["--model bpca", "picard"]);
    place.fails(&["fit", "x.csv", "--model", "bpca", "--method", "picard"], 2, &["--model ica", "vb or ard"]);
    place.fails(&["fit", "x.csv", "-q", "2", "--model", "ica", "--solver", "dual"], 2, &["auto"]);
    place.ok(&["moments", "x.csv", "-o", "x.moments"]);
    place.fails(&["fit", "x.moments", "-q", "1", "--model", "ica"], 2, &["moments", "rows"]);
    place.ok(&["fit", "x.csv", "-q", "2", "--model", "ica", "-o", "m.covary"]);
    table_of(&place, "wide.csv", &Mat::from_fn(5, 3, |i, j| (i + j) as f64));
    place.fails(&["transform", "m.covary", "wide.csv"], 3, &["x4"]);
}

#[test]
fn contrasts_and_deflation_are_for_fastica() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(300, 3, 1));
    for flags in [&["--contrast", "exp"][..], &["--contrast", "cube", "--deflation"], &["--deflation"]] {
        let fit = ["fit", "x.csv", "--model", "ica", "-q", "2", "--method", "fastica", "--json"];
        let told = place.run(&[&fit, flags].concat());
        assert!(matches!(told.status.code(), Some(0 | 1)), "{told:?}");
        place.fails(
            &[&["fit", "x.csv", "--model", "ica", "-q", "2"], flags].concat(),
            2,
            &["--method fastica"],
        );
        place.fails(&[&["fit", "x.csv", "-q", "2"], flags].concat(), 2, &["independent component"]);
    }
}

//! Standard errors and intervals of PPCA: six rows whose covariance is diag(3, 4/3, 1/3), so that λ = 3 and σ² = 5/6.

use crate::support::{Place, close};

const NOISE: f64 = 5.0 / 6.0;

/// R 4.2.2: qchisq(c(.975, .025), 8), for (n − 1 − q)(p − q) degrees of freedom.
const CHI2: [f64; 2] = [17.534_546_139_484_65, 2.179_730_747_252_65];

#[test]
fn a_fit_tells_the_interval_of_its_noise() {
    let place = Place::with_model();
    let told = place.json(&["fit", "cross.csv", "-q", "1", "--json"]);
    for (end, chi2) in CHI2.iter().enumerate() {
        close(told["noise_interval"][end].as_f64().unwrap(), 12.0 * NOISE / chi2, 1e-9);
    }
    assert!(told.get("intervals").is_none(), "only where they are asked for");
    let text = place.ok(&["inspect", "cross.covary"]);
    let [low, high] = CHI2.map(|chi2| 12.0 * NOISE / chi2);
    // Six rows of which the mean and one component take two: 5/6 · 6/4.
    let told = place.json(&["fit", "cross.csv", "-q", "1", "--json"]);
    close(told["noise_variance_unbiased"].as_f64().unwrap(), 1.25, 1e-12);
    let words = format!(
        "0.8333333 by maximum likelihood; without its bias 1.25000 (95 % interval {low:.7} to {high:.5})"
    );
    assert!(text.contains(&words), "{text}");
}

/// With many features the bias is larger than the standard error; what is printed before the interval lies
/// within it.
#[test]
fn the_interval_of_the_noise_is_around_the_estimate_that_is_told() {
    let place = Place::new();
    let cell = |i: usize, j: usize| {
        ((i * 37 + j * 101 + i * j * 13) % 89) as f64 + 100.0 * ((i % 3) * (j % 2)) as f64
    };
    let names: Vec<String> = (0..40).map(|j| format!("x{j}")).collect();
    let lines = (0..30).map(|i| (0..40).map(|j| cell(i, j).to_string()).collect::<Vec<_>>().join(","));
    let lines: Vec<String> = std::iter::once(names.join(",")).chain(lines).collect();
    place.write("wide.csv", &(lines.join("\n") + "\n"));
    let told = place.json(&["fit", "wide.csv", "-q", "3", "--json"]);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let [low, high] = [0, 1].map(|end| number(&told["noise_interval"][end]));
    let unbiased = number(&told["noise_variance_unbiased"]);
    close(unbiased, number(&told["noise_variance"]) * 30.0 / 26.0, 1e-9);
    assert!(
        number(&told["noise_variance"]) < low && low < unbiased && unbiased < high,
        "{low} {unbiased} {high}"
    );
}

#[test]
fn inspect_has_errors_of_every_number() {
    let place = Place::with_model();
    let told = place.json(&["inspect", "cross.covary", "--errors", "--json"]);
    let errors = &told["standard_errors"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    close(number(&errors["mean"][0]), 0.5_f64.sqrt(), 1e-12);
    close(number(&errors["mean"][1]), (NOISE / 6.0).sqrt(), 1e-12);
    close(number(&errors["noise_variance"]), NOISE * (2.0 / 12.0_f64).sqrt(), 1e-12);
    close(number(&errors["eigenvalues"][0]), 3.0_f64.sqrt(), 1e-12);
    let signal = 3.0 - NOISE;
    let along = (2.0 * 9.0 / 6.0 + 2.0 * NOISE * NOISE / 12.0) / (4.0 * signal);
    close(number(&errors["loadings"][0][0]), along.sqrt(), 1e-12);
    close(number(&errors["loadings"][1][0]), (3.0 * NOISE / signal / 6.0).sqrt(), 1e-12);
    // R 4.2.2: qt(.975, 5), with C₁₁ = 3 and divisor n − 1.
    close(number(&told["intervals"]["mean"][0][1]), 2.570_581_835_636_31 * (0.6_f64).sqrt(), 1e-9);
    let wider = place.json(&["inspect", "cross.covary", "--errors", "--level", "0.99", "--json"]);
    assert!(number(&wider["intervals"]["mean"][0][1]) > number(&told["intervals"]["mean"][0][1]));
}

#[test]
fn errors_stand_beside_the_loadings_of_components() {
    let place = Place::with_model();
    let text = place.ok(&["inspect", "cross.covary", "--errors", "--level", "0.9"]);
    let loading = (3.0 - NOISE).sqrt();
    let error = (3.0 + NOISE * NOISE / 6.0).sqrt() / (2.0 * loading);
    assert!(text.contains(&format!("a +{loading:.4} ({error:.4})")), "{text}");
    assert!(text.contains("90 % interval") && text.contains("90 % from"), "{text}");
    // A square has no first direction.
    place.write("square.csv", "a,b,c\n3,0,0\n-3,0,0\n0,3,0\n0,-3,0\n0,0,1\n0,0,-1\n");
    place.ok(&["fit", "square.csv", "-q", "2", "-o", "square.covary", "--quiet"]);
    let text = place.ok(&["inspect", "square.covary", "--errors"]);
    assert!(text.contains("not determined"), "{text}");
    let told = place.json(&["inspect", "square.covary", "--errors", "--json"]);
    assert!(told["standard_errors"]["loadings"][0][0].is_null());
}

#[test]
fn models_without_errors_say_so() {
    let place = Place::with_model();
    for flags in [&["--level", "0.9"][..], &["--errors", "--level", "1"]] {
        let output = place.run(&[&["inspect", "cross.covary"], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
    }
    place.ok(&["fit", "cross.csv", "-q", "1", "--model", "pca", "-o", "plane.covary", "--quiet"]);
    place.fails(&["inspect", "plane.covary", "--errors"], 2, &["--errors", "pca"]);
    place.write("holes.csv", "a,b,c\n3,0,0\n-3,0,\n0,2,0.5\n0,-2,0\n1,0,1\n0.5,0,-1\n2,1,0\n");
    place.ok(&["fit", "holes.csv", "-q", "1", "-o", "holes.covary", "--quiet"]);
    place.fails(&["inspect", "holes.covary", "--errors"], 2, &["missing values"]);
    let told = place.json(&["inspect", "holes.covary", "--json"]);
    assert!(told["noise_interval"].is_null() && told["noise_variance_unbiased"].is_null());
}

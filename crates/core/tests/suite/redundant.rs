//! Features that are constant or repeat another add no direction: they must not decide how many components there are.

use crate::common::*;
use covary::algorithm::RedundantFeatures;
use covary::linalg::Mat;
use covary::select::Select;
use covary::{BayesMethod, BayesianPca, Components, Ppca};

/// Two latent variables behind six features with noise of deviation 0.5, and a seventh feature.
fn rows(seventh: impl Fn(&[f64]) -> f64, missing: f64) -> Mat<f64> {
    let mut rng = Rng(3);
    let w = [[3.0, 0.5], [-0.8, 2.2], [1.0, 2.0], [2.3, -1.0], [0.9, 1.9], [-1.2, 0.7]];
    let mut x = Mat::zeros(500, 7);
    for i in 0..500 {
        let z = [rng.normal(), rng.normal()];
        let mut cells: Vec<f64> = w.iter().map(|w| w[0] * z[0] + w[1] * z[1] + 0.5 * rng.normal()).collect();
        cells.push(seventh(&cells));
        cells.iter().enumerate().for_each(|(j, cell)| x[(i, j)] = *cell);
    }
    Mat::from_fn(500, 7, |i, j| if rng.uniform() < missing { f64::NAN } else { x[(i, j)] })
}

/// Constant, the same as another, and another one in other units and with the other sign.
fn tables(missing: f64) -> [(Mat<f64>, RedundantFeatures); 3] {
    let repeats = |j: usize| RedundantFeatures { constant: vec![], repeated: vec![(6, j)] };
    let constant = RedundantFeatures { constant: vec![6], repeated: vec![] };
    [
        (rows(|_| 4.2, missing), constant),
        (rows(|cells| cells[1], missing), repeats(1)),
        (rows(|cells| 7.0 - 2.0 * cells[3], missing), repeats(3)),
    ]
}

#[test]
fn bayesian_pca_keeps_two_components() {
    for missing in [0.0, 0.1] {
        for (x, expected) in tables(missing) {
            for method in [BayesMethod::Variational, BayesMethod::Relevance] {
                for components in [Components::All, Components::Count(6)] {
                    let fit = BayesianPca::new(components).method(method).fit(&x).unwrap();
                    assert_eq!(fit.model.n_latent(), 2, "{missing} {method:?} {expected:?}");
                    assert!(fit.model.noise_variance() > 0.15);
                    assert_eq!(fit.report.redundant.as_ref(), Some(&expected));
                }
            }
        }
    }
}

#[test]
fn evidence_chooses_two_components() {
    for (x, expected) in tables(0.0) {
        let fit = Ppca::new(Components::Evidence).fit(&x).unwrap();
        assert_eq!((fit.model.n_latent(), fit.report.redundant), (2, Some(expected)));
    }
}

#[test]
fn every_method_of_select_chooses_two_components() {
    for missing in [0.0, 0.1] {
        for (x, expected) in tables(missing) {
            let found = Select::new().run(&x).unwrap();
            assert_eq!((found.recommended, found.features), (2, 7));
            found.choices.iter().for_each(|choice| assert_eq!(choice.components, 2, "{choice:?}"));
            assert_eq!(found.redundant, Some(expected));
        }
    }
}

/// A feature with noise of its own is none of that.
#[test]
fn other_features_are_not_called_redundant() {
    let x = rows(|cells| cells[1] * (1.0 + 1e-4 * cells[0]), 0.0);
    assert_eq!(Select::new().run(&x).unwrap().redundant, None);
}

/// Three pixels of the digits are constant. With them, the evidence was largest for as many components as there are
/// other pixels, and there was no noise.
#[test]
fn digits_have_noise() {
    let Some(csv) = read_csv("digits") else { return };
    let x = csv.columns(|name| name != "digit" && name != "label" && name != "target");
    let fit = Ppca::new(Components::Evidence).fit(&x).unwrap();
    assert_eq!(fit.report.redundant.as_ref().map(|r| r.constant.len()), Some(3));
    assert!(fit.model.n_latent() < 61 && fit.spectrum().unwrap().noise_variance() > 0.0);
}

//! Features that are constant, repeat another or are combinations of others add no direction: they must not decide how many components there are.

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

/// Constant, the same as another, another one in other units and with the other sign, the total of all, and a combination
/// of two.
fn tables(missing: f64) -> [(Mat<f64>, RedundantFeatures); 5] {
    let repeats = |j: usize| RedundantFeatures { repeated: vec![(6, j)], ..Default::default() };
    let constant = RedundantFeatures { constant: vec![6], ..Default::default() };
    let combines =
        |of: &[usize]| RedundantFeatures { combined: vec![(6, of.to_vec())], ..Default::default() };
    [
        (rows(|_| 4.2, missing), constant),
        (rows(|cells| cells[1], missing), repeats(1)),
        (rows(|cells| 7.0 - 2.0 * cells[3], missing), repeats(3)),
        (rows(|cells| cells.iter().sum(), missing), combines(&[0, 1, 2, 3, 4, 5])),
        (rows(|cells| 1e3 + cells[4] - 2.0 * cells[1], missing), combines(&[1, 4])),
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

/// Of a set of 0/1 columns the last follows from the others, and so does the last of some shares of a whole.
#[test]
fn indicators_and_shares_are_found() {
    let mut rng = Rng(8);
    let x = Mat::from_fn(300, 3, |_, _| rng.normal());
    let group: Vec<usize> = (0..300).map(|_| rng.below(3)).collect();
    let parts: Vec<[f64; 3]> = (0..300).map(|_| [rng.uniform(), rng.uniform(), rng.uniform()]).collect();
    let cell = |i: usize, j: usize| match j {
        0..3 => x[(i, j)],
        3..6 => f64::from(u8::from(group[i] == j - 3)),
        _ => 100.0 * parts[i][j - 6] / parts[i].iter().sum::<f64>(),
    };
    let found = Select::new().run(&Mat::from_fn(300, 9, cell)).unwrap().redundant.unwrap();
    assert_eq!(found.combined, [(5, vec![3, 4]), (8, vec![6, 7])]);
    assert_eq!(
        found.in_words(&[]),
        "feature 5 is a linear combination of feature 3, feature 4; \
         feature 8 is a linear combination of feature 6, feature 7"
    );
}

/// With fewer rows than features each is a combination of others; that says nothing about them.
#[test]
fn fewer_rows_than_features_are_not_called_combinations() {
    let mut rng = Rng(4);
    let x = normal_matrix(20, 30, &mut rng);
    assert_eq!(BayesianPca::new(Components::Count(3)).fit(&x).unwrap().report.redundant, None);
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

//! Features of very different scales: the noise of the small ones is kept, whatever the large ones do.

use crate::common::twofold::{Twofold, covariance, eigenvalues};
use crate::common::*;
use covary::linalg::Mat;
use covary::model::LinearGaussian;
use covary::select::Select;
use covary::{BayesianPca, Error, FactorAnalysis, Ppca, Solver};

const RATIOS: [f64; 9] = [1.0, 1e2, 1e4, 1e5, 1e6, 1e7, 1e8, 1e10, 1e12];
const NOISE: f64 = 0.25;

/// Two latent variables, six features, the third `ratio` times as large as the others; all noise has variance 0.25, so
/// that the model is PPCA with two components.
fn rows(n: usize, ratio: f64, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let w = Mat::from_fn(6, 2, |j, k| {
        [[1.0, 0.5], [-0.8, 1.2], [1.0, 0.0], [0.3, -1.0], [0.9, 0.9], [-0.2, 0.7]][j][k]
    });
    let mut x = Mat::zeros(n, 6);
    for i in 0..n {
        let z = [rng.normal(), rng.normal()];
        for j in 0..6 {
            let scale = if j == 2 { ratio } else { 1.0 };
            let signal: f64 = (0..2).map(|k| w[(j, k)] * z[k]).sum();
            x[(i, j)] = 3.0 + scale * signal + NOISE.sqrt() * rng.normal();
        }
    }
    x
}

/// σ² of PPCA and its eigenvalues in twice the precision.
fn exact(x: &Mat<f64>, q: usize) -> (f64, Vec<f64>) {
    let rows: Vec<Vec<f64>> = (0..x.nrows()).map(|i| row(x, i)).collect();
    let values = eigenvalues(covariance(&rows));
    let left = values[q..].iter().fold(Twofold(0.0, 0.0), |s, v| s + *v);
    ((left / Twofold::from((x.ncols() - q) as f64)).0, values.iter().map(|v| v.0).collect())
}

#[test]
fn every_solver_keeps_the_noise_of_small_features() {
    for (n, solvers) in [
        (400, &[Solver::Auto, Solver::Eigen, Solver::Svd, Solver::Krylov][..]),
        (5, &[Solver::Auto, Solver::Dual, Solver::Svd, Solver::Eigen][..]),
    ] {
        for ratio in RATIOS {
            let x = rows(n, ratio, 7);
            for q in [1, 2, 3] {
                let (noise, values) = exact(&x, q);
                for solver in solvers {
                    let what = (n, ratio, q, *solver);
                    let fit = Ppca::new(q).solver(*solver).fit(&x).unwrap();
                    let found = fit.spectrum().unwrap().noise_variance();
                    assert!((found / noise - 1.0).abs() < 1e-8, "{what:?}: {found:e} {noise:e}");
                    for (a, b) in fit.spectrum().unwrap().eigenvalues()[..q].iter().zip(&values) {
                        assert!((a / b - 1.0).abs() < 1e-8, "{what:?}: {a:e} {b:e}");
                    }
                }
            }
        }
    }
}

/// The same rows with about a seventh of the cells missing.
fn with_missing(x: &Mat<f64>, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < 0.15 { f64::NAN } else { x[(i, j)] })
}

/// Share of the missing cells of the small features that lie within 1.96 deviations of what the model expects.
fn coverage(model: &LinearGaussian, x: &Mat<f64>, seen: &Mat<f64>) -> f64 {
    let filled = model.impute_with_std(seen).unwrap();
    let cells = (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| (i, j)));
    let missing: Vec<_> = cells.filter(|(i, j)| *j != 2 && seen[(*i, *j)].is_nan()).collect();
    let within = |at: &&(usize, usize)| (filled.cells[**at] - x[**at]).abs() < 1.96 * filled.std[**at];
    missing.iter().filter(within).count() as f64 / missing.len() as f64
}

/// With growing ratio the large feature becomes a latent variable that is seen without noise, so that nothing else changes
/// any more: σ² differs from its limit by a share of about 1/ratio.
#[test]
fn missing_values_beside_a_large_feature_keep_their_noise() {
    let n = 2000;
    let fits: Vec<_> = [1e5, 1e6, 1e7, 1e8, 1e10, 1e12]
        .iter()
        .map(|ratio| {
            let x = rows(n, *ratio, 7);
            let seen = with_missing(&x, 11);
            let fit = Ppca::new(2).fit(&seen).unwrap();
            assert!(fit.report.converged());
            let covered = coverage(&fit.model, &x, &seen);
            // Three binomial deviations of some 1500 cells.
            assert!((covered - 0.95).abs() < 3.0 * (0.95 * 0.05 / 1500f64).sqrt(), "{ratio:e}: {covered}");
            fit.spectrum().unwrap().noise_variance()
        })
        .collect();
    for (k, noise) in fits.iter().enumerate() {
        // At 1e12 the large feature is known to 2e-4 of the noise.
        let tolerance = if k == 5 { 1e-4 } else { 1e-6 };
        assert!((noise / fits[2] - 1.0).abs() < tolerance, "{fits:?}");
        assert!((noise / NOISE - 1.0).abs() < 3.0 * (2.0 / (0.85 * 4.0 * n as f64)).sqrt(), "{fits:?}");
    }
}

#[test]
fn bayesian_pca_keeps_the_noise_of_small_features() {
    let noise = |x: &Mat<f64>| {
        let fit = BayesianPca::new(4).fit(x).unwrap();
        assert_eq!(fit.model.n_latent(), 2);
        fit.model.noise_variance()
    };
    let of_complete = |ratio: f64| noise(&rows(1000, ratio, 7));
    let of_missing = |ratio: f64| noise(&with_missing(&rows(1000, ratio, 7), 11));
    let limits = (of_complete(1e7), of_missing(1e7));
    for ratio in [1e5, 1e8, 1e10, 1e12] {
        assert!((of_complete(ratio) / limits.0 - 1.0).abs() < 1e-6, "{ratio:e}");
        assert!((of_missing(ratio) / limits.1 - 1.0).abs() < 1e-5, "{ratio:e}");
    }
}

/// Rows that lie in a plane are told from rows that do not, feature by feature: the small ones by their own scale.
#[test]
fn rows_in_a_plane_have_no_noise_at_any_scale() {
    for ratio in [1.0, 1e6, 1e12] {
        let mut rng = Rng(3);
        let mut x = Mat::zeros(200, 5);
        for i in 0..200 {
            let z = [rng.normal(), rng.normal()];
            for j in 0..5 {
                let scale = if j == 1 { ratio } else { 1.0 };
                x[(i, j)] = scale * (z[0] * (1.0 + j as f64) + z[1] * [2.0, -1.0, 0.5, 1.5, -2.5][j]);
            }
        }
        for solver in [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov] {
            let fit = Ppca::new(2).solver(solver).fit(&x).unwrap();
            assert_eq!(fit.spectrum().unwrap().noise_variance(), 0.0, "{ratio:e} {solver:?}");
        }
    }
}

/// Means up to 1e15 deviations from 0: as near to the fit without them as the rounding of the cells allows.
#[test]
fn far_means_with_missing_values_and_in_factor_analysis() {
    let near = rows(1000, 1.0, 5);
    for shift in [1e12, 1e13, 1e14, 1e15] {
        // The cells as they are after the shift has rounded them.
        let far = Mat::from_fn(1000, 6, |i, j| near[(i, j)] + shift);
        let back = Mat::from_fn(1000, 6, |i, j| far[(i, j)] - shift);
        let (seen_far, seen_back) = (with_missing(&far, 2), with_missing(&back, 2));
        // Iterations end within 1e-8 nats per row of the maximum, which leaves σ² known to some 1e-4.
        let same = |a: f64, b: f64, what: &str| {
            assert!((a / b - 1.0).abs() < 1e-4, "{shift:e} {what}: {a} {b}");
        };
        let ppca = |x: &Mat<f64>| Ppca::new(2).fit(x).unwrap().spectrum().unwrap().noise_variance();
        same(ppca(&far), ppca(&back), "ppca");
        same(ppca(&seen_far), ppca(&seen_back), "ppca, missing values");
        let factor = |x: &Mat<f64>| FactorAnalysis::new(2).fit(x).unwrap().report.log_likelihood.unwrap();
        same(factor(&far), factor(&back), "factor analysis");
        same(factor(&seen_far), factor(&seen_back), "factor analysis, missing values");
        let bayes = |x: &Mat<f64>| BayesianPca::new(4).fit(x).unwrap().model.noise_variance();
        same(bayes(&far), bayes(&back), "bpca");
        same(bayes(&seen_far), bayes(&seen_back), "bpca, missing values");
    }
}

/// Squares of such cells are 0, but the features are not constant.
#[test]
fn features_too_small_to_be_squared_are_not_called_constant() {
    let x = Mat::from_fn(30, 3, |i, j| ((i * (j + 2)) as f64).sin() * 1e-210);
    let seen = with_missing(&x, 4);
    assert!(matches!(Ppca::new(1).fit(&x), Err(Error::Scale)));
    assert!(matches!(Ppca::new(1).fit(&seen), Err(Error::Scale)));
    assert!(matches!(BayesianPca::new(1).fit(&x), Err(Error::Scale)));
    assert!(matches!(Select::new().run(&x), Err(Error::Scale)));
    let mut mixed = Mat::from_fn(30, 4, |i, j| ((i * (j + 2)) as f64).sin());
    (0..30).for_each(|i| mixed[(i, 1)] *= 1e-210);
    assert!(matches!(FactorAnalysis::new(1).fit(&mixed), Err(Error::Scale)));
    (0..30).for_each(|i| mixed[(i, 1)] = 1e-210);
    assert!(matches!(FactorAnalysis::new(1).fit(&mixed), Err(Error::ConstantFeatures { .. })));
}

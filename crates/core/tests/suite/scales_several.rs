//! Several features of large scale beside small ones: what one of them says of z while another is missing keeps the
//! digits of the small ones.

use crate::common::twofold::{self, Twofold, cholesky, eigenvalues, forward};
use crate::common::*;
use covary::evidence::{Accumulator, Moments};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::{BayesianPca, Error, Ppca, Solver};

const RATIOS: [f64; 6] = [1.0, 1e4, 1e6, 1e8, 1e10, 1e12];
const NOISE: f64 = 0.25;
const SOLVERS: [Solver; 6] =
    [Solver::Auto, Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Em];
const SMALL: [[f64; 3]; 5] =
    [[1.0, 0.5, -0.4], [-0.8, 1.2, 0.3], [0.3, -1.0, 0.9], [0.9, 0.9, -1.1], [-0.2, 0.7, 0.8]];

/// Loadings of two large features, and whether they are all but equal.
#[derive(Clone, Copy, Debug)]
enum Large {
    /// Of two latent variables, oblique.
    Oblique,
    /// Start and end of something short.
    AllButEqual,
}

/// W (7 × 3), the first two features `ratio` times as large as the others.
fn loadings(large: Large, ratio: f64) -> Mat<f64> {
    Mat::from_fn(7, 3, |j, k| match (j, large) {
        (0, _) => ratio * [1.0, 0.5, 0.0][k],
        (1, Large::Oblique) => ratio * [1.0, -0.3, 0.0][k],
        (1, Large::AllButEqual) => ratio * [1.0, 0.5, 0.0][k] + [0.7, -0.4, 1.1][k],
        _ => SMALL[j - 2][k],
    })
}

fn rows(n: usize, w: &Mat<f64>, rng: &mut Rng) -> Mat<f64> {
    let mut x = Mat::zeros(n, w.nrows());
    for i in 0..n {
        let z: Vec<f64> = (0..w.ncols()).map(|_| rng.normal()).collect();
        for j in 0..w.nrows() {
            let signal: f64 = z.iter().enumerate().map(|(k, z)| w[(j, k)] * z).sum();
            x[(i, j)] = signal + NOISE.sqrt() * rng.normal();
        }
    }
    x
}

/// The loadings of a fit point along axes; these are turned, so that every latent variable moves the large features.
fn turned(w: &Mat<f64>, rng: &mut Rng) -> Mat<f64> {
    let turn = orthogonal(w.ncols(), rng);
    Mat::from_fn(w.nrows(), w.ncols(), |i, j| (0..w.ncols()).map(|k| w[(i, k)] * turn[(k, j)]).sum())
}

/// C = WWᵀ + σ²I of some features in twice the precision.
fn covariance(w: &Mat<f64>, features: &[usize]) -> Vec<Vec<Twofold>> {
    let entry = |i: usize, j: usize| {
        let noise = Twofold::from(if i == j { NOISE } else { 0.0 });
        (0..w.ncols()).fold(noise, |sum, k| sum + Twofold::from(w[(i, k)]) * Twofold::from(w[(j, k)]))
    };
    features.iter().map(|i| features.iter().map(|j| entry(*i, *j)).collect()).collect()
}

fn ln(x: Twofold) -> f64 {
    x.0.ln() + x.1 / x.0
}

/// Every pattern of missing cells but the empty row.
fn with_every_pattern(x: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(127, 7, |i, j| if (i + 1) >> j & 1 == 1 { x[(i, j)] } else { f64::NAN })
}

#[test]
fn densities_and_imputed_cells_are_those_of_the_dense_normal() {
    for large in [Large::Oblique, Large::AllButEqual] {
        for ratio in RATIOS {
            let mut rng = Rng(5);
            let w = turned(&loadings(large, ratio), &mut rng);
            let model = LinearGaussian::new(vec![0.0; 7], w.clone(), Noise::Isotropic(NOISE)).unwrap();
            let x = with_every_pattern(&rows(127, &w, &mut rng));
            let (densities, filled) = (model.log_density(&x).unwrap(), model.impute_with_std(&x).unwrap());
            // A large cell, and with it every answer, is known to ε · ratio of the noise.
            let tolerance = 1e-12 + 40.0 * f64::EPSILON * ratio;
            for i in 0..127 {
                let (seen, missing): (Vec<usize>, Vec<usize>) = (0..7).partition(|j| !x[(i, *j)].is_nan());
                let order: Vec<usize> = seen.iter().chain(&missing).copied().collect();
                let l = cholesky(&covariance(&w, &order));
                let e: Vec<Twofold> = seen.iter().map(|j| x[(i, *j)].into()).collect();
                let u = forward(&l, &e);
                let square = |sum: f64, u: &Twofold| sum + (*u * *u).0;
                let distance = u.iter().fold(0.0, square);
                let log_det: f64 = (0..seen.len()).map(|k| 2.0 * ln(l[k][k])).sum();
                let cells = seen.len() as f64;
                let expected = -0.5 * (cells * std::f64::consts::TAU.ln() + log_det + distance);
                let what = (large, ratio, i + 1);
                assert!(
                    (densities[i] - expected).abs() < tolerance * (20.0 + distance),
                    "{what:?}: {} {expected}",
                    densities[i]
                );
                for (at, j) in missing.iter().enumerate() {
                    let row = &l[seen.len() + at];
                    let zero = Twofold(0.0, 0.0);
                    let mean = u.iter().zip(row).fold(zero, |sum, (u, l)| sum + *u * *l);
                    let rest = row[seen.len()..=seen.len() + at].iter().fold(zero, |sum, l| sum + *l * *l);
                    let deviation = rest.sqrt().0;
                    let off = (Twofold::from(filled.cells[(i, *j)]) - mean).0.abs() / deviation;
                    assert!(off < 10.0 * tolerance, "{what:?} {j}: mean off by {off:e} deviations");
                    relative(filled.std[(i, *j)], deviation, 10.0 * tolerance, (what, j));
                }
            }
        }
    }
}

/// z by the normal equations in twice the precision.
#[test]
fn t2_and_spe_are_those_of_least_squares() {
    for ratio in [1.0, 1e4, 1e6, 1e8] {
        let mut rng = Rng(6);
        let w = turned(&loadings(Large::Oblique, ratio), &mut rng);
        let model = LinearGaussian::new(vec![0.0; 7], w.clone(), Noise::Isotropic(NOISE)).unwrap();
        let x = with_every_pattern(&rows(127, &w, &mut rng));
        let (t2, spe) = model.t2_spe(&x).unwrap();
        for i in 0..127 {
            let seen: Vec<usize> = (0..7).filter(|j| !x[(i, *j)].is_nan()).collect();
            if seen.len() < 4 {
                continue; // nothing is left
            }
            let zero = Twofold(0.0, 0.0);
            let entry = |j: usize, k: usize| Twofold::from(w[(j, k)]);
            let sum = |f: &dyn Fn(usize) -> Twofold| seen.iter().fold(zero, |sum, j| sum + f(*j));
            let gram: Vec<Vec<Twofold>> =
                (0..3).map(|a| (0..3).map(|b| sum(&|j| entry(j, a) * entry(j, b))).collect()).collect();
            let right: Vec<Twofold> = (0..3).map(|a| sum(&|j| entry(j, a) * x[(i, j)].into())).collect();
            let solve = |gram: &[Vec<Twofold>], right: &[Twofold]| {
                let l = cholesky(gram);
                let mut z = forward(&l, right);
                for a in (0..3).rev() {
                    let rest = (a + 1..3).fold(z[a], |rest, b| rest - l[b][a] * z[b]);
                    z[a] = rest / l[a][a];
                }
                z
            };
            let z = solve(&gram, &right);
            let rest = |j: usize| (0..3).fold(Twofold::from(x[(i, j)]), |rest, k| rest - entry(j, k) * z[k]);
            let expected = sum(&|j| rest(j) * rest(j)).0;
            let what = (ratio, i + 1);
            let tolerance = 1e-10 + 100.0 * f64::EPSILON * ratio;
            relative(spe[i], expected, tolerance, ("spe", what));
            // T² = zᵀ(I + σ²G⁻¹)⁻¹z = zᵀ(G + σ²I)⁻¹Gz, and Gz is the right side.
            let mut noisy = gram.clone();
            (0..3).for_each(|a| noisy[a][a] = noisy[a][a] + Twofold::from(NOISE));
            let shrunk = solve(&noisy, &right);
            let expected = z.iter().zip(&shrunk).fold(zero, |sum, (a, b)| sum + *a * *b).0;
            relative(t2[i], expected, tolerance, ("t2", what));
        }
    }
}

/// σ² and the leading eigenvalues in twice the precision, by every solver, with and without a feature that repeats a large
/// one to the last bit.
#[test]
fn complete_rows_with_large_features_that_are_all_but_equal() {
    for ratio in [1e4, 1e6, 1e8, 1e10, 1e12] {
        for repeated in [false, true] {
            let mut x = rows(400, &loadings(Large::AllButEqual, ratio), &mut Rng(9));
            if repeated {
                (0..400).for_each(|i| x[(i, 1)] = x[(i, 0)]);
            }
            let cells: Vec<Vec<f64>> = (0..400).map(|i| row(&x, i)).collect();
            let values = eigenvalues(twofold::covariance(&cells));
            for q in [1, 2, 3, 4] {
                let left = values[q..].iter().fold(Twofold(0.0, 0.0), |sum, v| sum + *v);
                let noise = (left / Twofold::from((7 - q) as f64)).0;
                for solver in SOLVERS {
                    let fit = Ppca::new(q).solver(solver).fit(&x).unwrap();
                    assert!(fit.report.converged(), "{ratio:e} {q} {solver:?}");
                    let (what, found) = ((ratio, repeated, q, solver), fit.spectrum().unwrap());
                    // A plain decomposition is taken where it knows the noise to 1e-6; else rows hold the difference of
                    // the large features to ε · ratio.
                    let tolerance = 1e-6 + 100.0 * f64::EPSILON * ratio;
                    relative(found.noise_variance(), noise, tolerance, what);
                    for (a, b) in found.eigenvalues()[..q].iter().zip(&values) {
                        relative(*a, b.0, tolerance, what);
                    }
                }
            }
        }
    }
}

/// Moments hold no rows to look at again: where they cannot tell, they say so.
#[test]
fn moments_of_large_features_that_are_all_but_equal_are_refused() {
    let x = rows(400, &loadings(Large::AllButEqual, 1e9), &mut Rng(9));
    let mut moments = Moments::empty(7);
    moments.update(&chunk_of(x.as_ref(), 0)).unwrap();
    let error = Ppca::new(3).fit_moments(&moments).unwrap_err();
    let Error::AllButDetermined { features } = &error else { panic!("{error}") };
    assert_eq!(features.iter().map(|f| f.0).max(), Some(1));
}

fn with_missing(x: &Mat<f64>, seed: u64) -> Mat<f64> {
    let mut rng = Rng(seed);
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if rng.uniform() < 0.15 { f64::NAN } else { x[(i, j)] })
}

/// Share of the missing cells within 1.96 deviations of what the model expects, large and small features apart.
fn coverage(model: &LinearGaussian, x: &Mat<f64>, seen: &Mat<f64>) -> [f64; 2] {
    let filled = model.impute_with_std(seen).unwrap();
    [0..2, 2..7].map(|features| {
        let cells = (0..x.nrows()).flat_map(|i| features.clone().map(move |j| (i, j)));
        let missing: Vec<_> = cells.filter(|at| seen[*at].is_nan()).collect();
        let within = |at: &&(usize, usize)| (filled.cells[**at] - x[**at]).abs() < 1.96 * filled.std[**at];
        missing.iter().filter(within).count() as f64 / missing.len() as f64
    })
}

/// With growing ratio the large features become latent variables that are seen without noise, so that nothing else changes
/// any more.
#[test]
fn fits_with_missing_values_keep_the_noise_of_small_features() {
    let n = 2000;
    for large in [Large::Oblique, Large::AllButEqual] {
        let of = |ratio: f64| {
            let x = rows(n, &loadings(large, ratio), &mut Rng(7));
            let seen = with_missing(&x, 11);

            let fit = Ppca::new(3).fit(&seen).unwrap();

            assert!(fit.report.converged(), "{large:?} {ratio:e}");
            let covered = coverage(&fit.model, &x, &seen);
            for (covered, cells) in covered.iter().zip([600.0_f64, 1500.0]) {
                // Three and a half binomial deviations.
                let error = 3.5 * (0.95 * 0.05 / cells).sqrt();
                assert!((covered - 0.95).abs() < error, "{large:?} {ratio:e}: {covered}");
            }
            fit.spectrum().unwrap().noise_variance()
        };
        let noises: Vec<f64> = [1e5, 1e7, 1e8, 1e10, 1e12].map(of).to_vec();
        for (k, noise) in noises.iter().enumerate() {
            // Iterations end within 1e-8 nats per row of the maximum, or where rounding hides more gains: that leaves σ²
            // known to some 1e-4. At 1e12 the large features themselves are known to 2e-4 of the noise.
            let tolerance = if k == 4 { 1e-3 } else { 1e-4 };
            assert!((noise / noises[1] - 1.0).abs() < tolerance, "{large:?} {noises:?}");
            assert!((noise / NOISE - 1.0).abs() < 3.5 * (2.0 / (0.85 * 4.0 * n as f64)).sqrt(), "{noises:?}");
        }
    }
}

/// Whether a cell is missing, by its row and feature and a uniform deviate.
type Pattern = dyn Fn((usize, usize), f64) -> bool;

/// Missing cells of some features only: the others' rows give the latent variables of the large features values on
/// a line until the fit has found how little these differ.
#[test]
fn missing_cells_beside_large_features_that_are_all_but_equal() {
    let one = |j: usize| move |at: (usize, usize), _: f64| at == (68, j);
    let patterns: [(&str, &Pattern); 4] = [
        ("one small cell", &one(5)),
        ("one large cell", &one(0)),
        ("the other large cell", &one(1)),
        ("a third of one large feature", &|at, u| at.1 == 1 && u < 0.3),
    ];
    for (name, is_missing) in patterns {
        for seed in 0..3 {
            let of = |ratio: f64| {
                let x = rows(400, &loadings(Large::AllButEqual, ratio), &mut Rng(100 + seed));
                let mut rng = Rng(seed);
                let cell = |i, j| if is_missing((i, j), rng.uniform()) { f64::NAN } else { x[(i, j)] };
                let fit = Ppca::new(3).fit(&Mat::from_fn(400, 7, cell)).unwrap();
                assert!(fit.report.converged(), "{name} {seed} {ratio:e}");
                fit.spectrum().unwrap().noise_variance()
            };
            let expected = of(1e5);
            for ratio in [1e8, 1e10, 1e12] {
                // At 1e12 rounding hides gains of up to half a nat.
                let tolerance = if ratio > 1e11 { 1e-2 } else { 1e-3 };
                relative(of(ratio), expected, tolerance, (name, seed, ratio));
            }
        }
    }
}

#[test]
fn bayesian_pca_keeps_the_noise_of_small_features() {
    let noise = |ratio: f64| {
        let x = with_missing(&rows(1000, &loadings(Large::Oblique, ratio), &mut Rng(7)), 11);
        let fit = BayesianPca::new(5).fit(&x).unwrap();
        assert_eq!(fit.model.n_latent(), 3, "{ratio:e}");
        fit.model.noise_variance()
    };
    let limit = noise(1e7);
    for ratio in [1e5, 1e8, 1e10, 1e12] {
        assert!((noise(ratio) / limit - 1.0).abs() < 1e-4, "{ratio:e}");
    }
}

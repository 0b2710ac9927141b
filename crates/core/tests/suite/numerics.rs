//! Numbers that naive arithmetic gets wrong: large means, extreme scales, ties, almost singular models.

use crate::common::*;
use covary::data::Rows;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::spectrum::Spectrum;
use covary::{Ppca, Solver};

const ALL: [Solver; 5] = [Solver::Eigen, Solver::Svd, Solver::Dual, Solver::Krylov, Solver::Auto];

fn spectrum(x: &Mat<f64>, q: usize, solver: Solver) -> Spectrum {
    Ppca::new(q).solver(solver).fit(x).unwrap().report.spectrum.unwrap()
}

/// Cells that stay exact when 1e8 is added: multiples of 2⁻²⁴ below 2⁴.
fn on_a_grid(x: &Mat<f64>) -> Mat<f64> {
    let unit = 2f64.powi(-24);
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| (x[(i, j)] / unit).round() * unit)
}

/// Shows 3 of the foundation.
#[test]
fn a_mean_of_1e8_costs_nothing() {
    let mut rng = Rng(1);
    // Tall, wide, and more than one chunk.
    for (n, p, q) in [(400, 8, 3), (20, 60, 5), (5000, 6, 2)] {
        let x = on_a_grid(&rows_with_deviations(n, &falling(p, 0.9), 0.0, &mut rng));
        let shifted = Mat::from_fn(n, p, |i, j| x[(i, j)] + 1e8);
        let truth = DensePpca::of(&x, None, q);
        for solver in ALL {
            let s = spectrum(&shifted, q, solver);
            let what = (n, p, solver.name());
            relative(s.noise_variance(), truth.noise, 1e-6, (what, "noise variance"));
            relative(s.total_variance(), truth.total, 1e-6, (what, "total variance"));
            let first = truth.eigenvalues[0];
            close_all(&s.eigenvalues()[..q], &truth.eigenvalues[..q], 1e-7 * first, (what, "eigenvalues"));
            let mean: Vec<f64> = truth.mean.iter().map(|m| m + 1e8).collect();
            close_all(s.mean(), &mean, 1e-7, (what, "mean"));
        }
    }
}

/// Single precision rounds cells of size 1e4 to multiples of 2⁻¹⁰; what is left is exact to that.
#[test]
fn single_precision_with_a_mean_of_1e4() {
    let mut rng = Rng(2);
    for (n, p, q) in [(2000, 6, 2), (25, 60, 4)] {
        let x = rows_with_deviations(n, &falling(p, 0.9), 1e4, &mut rng);
        let narrow = narrowed(&x);
        let truth = DensePpca::of(&x, None, q);
        let rounded = DensePpca::of(&widened(&narrow), None, q);
        for solver in ALL {
            let s = Ppca::new(q).solver(solver).fit(&narrow).unwrap().report.spectrum.unwrap();
            let what = (n, p, solver.name());
            relative(s.noise_variance(), truth.noise, 1e-3, (what, "truth"));
            relative(s.noise_variance(), rounded.noise, 1e-5, (what, "the cells as they are"));
            relative(s.total_variance(), rounded.total, 1e-6, (what, "total variance"));
        }
    }
}

#[test]
fn extreme_scales_scale_the_answer() {
    let mut rng = Rng(3);
    for (n, p, q) in [(200, 5, 2), (8, 20, 3), (150, 100, 4)] {
        let x = rows_with_deviations(n, &falling(p, 0.97), 1.0, &mut rng);
        for solver in ALL {
            let one = Ppca::new(q).solver(solver).fit(&x).unwrap();
            let density = one.model.log_density(&x).unwrap();
            for exponent in [-500, -480, 400, 490] {
                // A power of two: the scaled cells are exact. 2^500 is about 1e150.
                let unit = 2f64.powi(exponent);
                let scaled = Mat::from_fn(n, p, |i, j| x[(i, j)] * unit);
                let what = (n, p, solver.name(), exponent);
                let fit =
                    Ppca::new(q).solver(solver).fit(&scaled).unwrap_or_else(|e| panic!("{what:?}: {e}"));
                let (s, t) = (&one.spectrum().unwrap(), &fit.spectrum().unwrap());
                let back = |v: f64| v / unit / unit;
                relative(back(t.noise_variance()), s.noise_variance(), 1e-10, (what, "noise"));
                relative(back(t.total_variance()), s.total_variance(), 1e-12, (what, "total"));
                let values: Vec<f64> = t.eigenvalues()[..q].iter().map(|v| back(*v)).collect();
                close_all(&values, &s.eigenvalues()[..q], 1e-11 * values[0], (what, "eigenvalues"));
                close_matrix(t.vectors(), s.vectors(), 1e-8, (what, "vectors"));
                // A density in other units: − p ln(unit) for each row.
                let shift = p as f64 * f64::from(exponent) * std::f64::consts::LN_2;
                let found = fit.model.log_density(&scaled).unwrap_or_else(|e| panic!("{what:?}: {e}"));
                let found: Vec<f64> = found.iter().map(|d| d + shift).collect();
                close_all(&found, &density, 1e-9 * shift.abs(), (what, "density"));
                relative(
                    t.log_likelihood() + n as f64 * shift,
                    s.log_likelihood(),
                    1e-11 * (n as f64 * shift / s.log_likelihood()).abs(),
                    (what, "likelihood"),
                );
                let z = fit.model.latent_mean(&scaled).unwrap();
                close_matrix(&z, &one.model.latent_mean(&x).unwrap(), 1e-6, (what, "posterior means"));
                let ((a, b), (c, d)) = (fit.model.t2_spe(&scaled).unwrap(), one.model.t2_spe(&x).unwrap());
                close_all(&a, &c, 1e-6, (what, "T²"));
                let b: Vec<f64> = b.iter().map(|v| back(*v)).collect();
                close_all(&b, &d, 1e-8 * p as f64, (what, "SPE"));
            }
        }
    }
}

/// Single precision has a short range of exponents: squares of 1e-30 and of 1e30 leave it.
#[test]
fn single_precision_at_extreme_scales() {
    let mut rng = Rng(4);
    let x = narrowed(&rows_with_deviations(300, &falling(5, 0.8), 0.0, &mut rng));
    let one = DensePpca::of(&widened(&x), None, 2);
    for exponent in [-100, -70, 70, 110] {
        let unit = 2f32.powi(exponent);
        let scaled = Mat::from_fn(300, 5, |i, j| x[(i, j)] * unit);
        for solver in ALL {
            let s = Ppca::new(2).solver(solver).fit(&scaled).unwrap().report.spectrum.unwrap();
            let back = f64::from(unit).powi(2);
            relative(s.noise_variance() / back, one.noise, 1e-5, (solver.name(), exponent));
            relative(s.eigenvalues()[0] / back, one.eigenvalues[0], 1e-5, (solver.name(), exponent));
        }
    }
}

/// The size of the first rows says nothing about the others.
#[test]
fn single_precision_when_the_first_rows_are_constant() {
    let mut rng = Rng(5);
    let rows = normal_matrix(200, 3, &mut rng);
    for scale in [1e-25, 1.0, 1e25] {
        let x = Mat::from_fn(300, 3, |i, j| if i < 100 { 0.0 } else { rows[(i - 100, j)] * scale });
        let narrow = narrowed(&x);
        let truth = DensePpca::of(&widened(&narrow), None, 1);
        for solver in ALL {
            let what = (scale, solver.name());
            let s = Ppca::new(1)
                .solver(solver)
                .fit(&narrow)
                .unwrap_or_else(|e| panic!("{what:?}: {e}"))
                .report
                .spectrum
                .unwrap();
            relative(s.noise_variance(), truth.noise, 1e-5, what);
        }
    }
}

/// Exact ties: directions are free within a tie, but what does not depend on them is not.
#[test]
fn exact_ties_in_the_spectrum() {
    // ± each axis: covariance diag(a²/p, …), exactly.
    let axes = |lengths: &[f64]| {
        let p = lengths.len();
        Mat::from_fn(2 * p, p, |i, j| {
            if i / 2 == j { lengths[j] * if i % 2 == 0 { 1.0 } else { -1.0 } } else { 0.0 }
        })
    };
    for (lengths, q) in [
        (vec![2.0, 2.0, 2.0, 1.0], 3),
        (vec![2.0, 2.0, 2.0, 1.0], 2), // cuts through the tie
        (vec![1.0; 6], 3),
        (vec![3.0, 1.0, 1.0, 1.0, 1.0], 1),
        (vec![3.0, 3.0, 2.0, 2.0], 4),
        (vec![1.0; 120], 4),
    ] {
        let x = axes(&lengths);
        let p = lengths.len();
        let mut values: Vec<f64> = lengths.iter().map(|a| a * a / p as f64).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        let noise = if p == q { 0.0 } else { values[q..].iter().sum::<f64>() / (p - q) as f64 };
        let log_det: f64 = values[..q].iter().map(|v| v.ln()).sum::<f64>()
            + if p > q { (p - q) as f64 * noise.ln() } else { 0.0 };
        let likelihood = -0.5 * 2.0 * p as f64 * (p as f64 * LN_2PI + log_det + p as f64);
        for solver in ALL {
            let fit = Ppca::new(q).solver(solver).fit(&x).unwrap();
            let what = (p, q, solver.name());
            let s = &fit.report.spectrum.unwrap();
            close_all(&s.eigenvalues()[..q], &values[..q], 1e-13 * values[0], (what, "eigenvalues"));
            close(s.noise_variance(), noise, 1e-13 * values[0], (what, "noise"));
            relative(s.log_likelihood(), likelihood, 1e-12, (what, "likelihood"));
            // Any orthonormal basis of the tie will do, but it must be one of eigenvectors.
            for k in 0..q {
                for l in 0..q {
                    let u = s.vectors();
                    let dot: f64 = (0..p).map(|j| u[(j, k)] * u[(j, l)]).sum();
                    close(dot, f64::from(u8::from(k == l)), 1e-12, (what, "orthonormal"));
                }
                for j in 0..p {
                    let image = lengths[j].powi(2) / p as f64 * s.vectors()[(j, k)];
                    close(image, s.eigenvalues()[k] * s.vectors()[(j, k)], 1e-11, (what, "eigenvector"));
                }
            }
            let sum: f64 = fit.model.log_density(&x).unwrap().iter().sum();
            relative(sum, likelihood, 1e-11, (what, "sum of densities"));
        }
    }
}

/// λ₁/σ² = 1e12: the density against its evaluation in the eigenbasis, where nothing cancels.
#[test]
fn density_of_an_almost_singular_model() {
    let mut rng = Rng(6);
    for (p, values) in [(5usize, vec![1e12]), (6, vec![1e12, 3e6, 10.0]), (30, vec![1e12, 1e11, 1e3, 2.0])] {
        let q = values.len();
        let u = orthogonal(p, &mut rng);
        let w = Mat::from_fn(p, q, |i, k| u[(i, k)] * (values[k] - 1.0f64).sqrt());
        let model = LinearGaussian::new(vec![0.0; p], w, Noise::Isotropic(1.0)).unwrap();
        let turned = model.rotate(&orthogonal(q, &mut rng)).unwrap();
        let n = 40;
        // Coordinates t in the eigenbasis, typical of the model; x = U t.
        let t = normal_matrix(n, p, &mut rng);
        let scale = |k: usize| if k < q { values[k].sqrt() } else { 1.0 };
        let x = Mat::from_fn(n, p, |i, j| (0..p).map(|k| u[(j, k)] * t[(i, k)] * scale(k)).sum::<f64>());
        let log_det: f64 = values.iter().map(|v| v.ln()).sum();
        let expected: Vec<f64> = (0..n)
            .map(|i| -0.5 * (p as f64 * LN_2PI + log_det + row(&t, i).iter().map(|t| t * t).sum::<f64>()))
            .collect();
        // x itself is rounded: 1e6 · 2⁻⁵³ ≈ 1e-10 per cell, in units of a noise of 1.
        close_all(&model.log_density(&x).unwrap(), &expected, 1e-8, (p, "density"));
        // Turned, the q × q factor is no longer almost diagonal: ε·λ₁/σ² is what Cholesky keeps of it.
        close_all(&turned.log_density(&x).unwrap(), &expected, 2e-4, (p, "density after a rotation"));
        let (t2, spe) = model.t2_spe(&x).unwrap();
        for i in 0..n {
            let inside: f64 = (0..q).map(|k| t[(i, k)].powi(2)).sum();
            let outside: f64 = (q..p).map(|k| t[(i, k)].powi(2)).sum();
            close(t2[i], inside, 1e-7 * (1.0 + inside), (p, "T²"));
            close(spe[i], outside, 1e-8 * (1.0 + outside), (p, "SPE"));
        }
    }
}

/// A row with fewer cells than latent variables, under little noise (ε/noise is what the q × q factor keeps): its density is that of a number or two.
#[test]
fn density_of_few_cells_under_little_noise() {
    let mut rng = Rng(7);
    let (p, q) = (6, 4);
    let w = normal_matrix(p, q, &mut rng);
    for noise in [1e-2, 1e-6] {
        let model = LinearGaussian::new(vec![0.0; p], w.clone(), Noise::Isotropic(noise)).unwrap();
        let mut x = vec![f64::NAN; p];
        x[2] = 0.7;
        let variance: f64 = (0..q).map(|k| w[(2, k)].powi(2)).sum::<f64>() + noise;
        let expected = -0.5 * (LN_2PI + variance.ln() + 0.49 / variance);
        let found = model.log_density(Rows::from_slice(&x, p).unwrap()).unwrap()[0];
        close(found, expected, 1e-9, ("one cell", noise));
    }
}

/// Rows in the order of their size: the first ones are nowhere near the mean.
#[test]
fn a_mean_that_drifts_along_the_rows() {
    let mut rng = Rng(8);
    let (n, p, q) = (9000, 5, 2);
    let x = rows_with_deviations(n, &falling(p, 0.7), 0.0, &mut rng);
    for slope in [1.0, 1e3, 1e6] {
        let drift = Mat::from_fn(n, p, |i, j| x[(i, j)] + slope * (i as f64 / n as f64) * (j + 1) as f64);
        let truth = DensePpca::of(&drift, None, q);
        let first = truth.eigenvalues[0];
        for solver in [Solver::Eigen, Solver::Svd, Solver::Krylov, Solver::Auto] {
            let s = spectrum(&drift, q, solver);
            let what = (slope, solver.name());
            close_all(&s.eigenvalues()[..q], &truth.eigenvalues[..q], 1e-13 * first, (what, "eigenvalues"));
            close(s.noise_variance(), truth.noise, 1e-14 * first, (what, "noise variance"));
            close_all(s.mean(), &truth.mean, 1e-13 * slope * p as f64, (what, "mean"));
        }
    }
}

/// A small noise under a strong signal survives many rows: rounding does not grow with them.
#[test]
fn little_noise_in_many_rows_is_not_taken_for_zero() {
    let mut rng = Rng(9);
    for n in [100usize, 30_000] {
        let deviations = [1e6, 1.0, 1.0];
        let x = rows_with_deviations(n, &deviations, 0.0, &mut rng);
        let truth = DensePpca::of(&x, None, 1);
        // The truth itself is about 1 ± √(2/n).
        assert!((0.5..2.0).contains(&truth.noise));
        for solver in [Solver::Eigen, Solver::Svd, Solver::Krylov] {
            let found = spectrum(&x, 1, solver).noise_variance();
            close(found, truth.noise, 1e-2, (n, solver.name()));
        }
    }
}

/// Constants that are no sums of powers of two: their variance is 0, not the rounding of their mean.
#[test]
fn constants_have_no_variance() {
    let mut rng = Rng(10);
    let x = normal_matrix(150, 2, &mut rng);
    for value in [0.1, 1e8 + 0.1, -3.3e-7] {
        let mixed = Mat::from_fn(150, 4, |i, j| if j < 2 { x[(i, j)] } else { value });
        for solver in ALL {
            let fit = Ppca::new(2).solver(solver).fit(&mixed).unwrap();
            let what = (value, solver.name());
            assert_eq!(fit.spectrum().unwrap().noise_variance(), 0.0, "{what:?}");
            assert_eq!(fit.spectrum().unwrap().mean()[2], value, "{what:?}");
            close(fit.model.loadings()[(2, 0)], 0.0, 1e-14, what);
            close(fit.model.loadings()[(3, 1)], 0.0, 1e-14, what);
        }
    }
}

/// The Krylov iteration must not take a pair for found because its residual is small beside the largest eigenvalue.
#[test]
fn small_eigenvalues_under_a_huge_one() {
    let mut rng = Rng(41);
    let deviations: Vec<f64> = (0..12).map(|j| if j == 0 { 1e5 } else { 3.0 - 0.1 * j as f64 }).collect();
    let x = rows_with_deviations(500, &deviations, 0.0, &mut rng);
    let truth = DensePpca::of(&x, None, 3);
    for solver in ALL {
        let s = spectrum(&x, 3, solver);
        for k in 0..3 {
            // What forming a covariance can lose: rounding of the largest eigenvalue.
            let slack = 20.0 * f64::EPSILON * truth.eigenvalues[0];
            close(s.eigenvalues()[k], truth.eigenvalues[k], slack, (solver.name(), k));
        }
    }
}

/// Single precision gives way to double where its products would drown the noise.
#[test]
fn single_precision_under_a_strong_component() {
    let mut rng = Rng(42);
    for strength in [1e2, 1e3, 1e4] {
        let x = rows_with_deviations(5000, &[strength, 1.0, 1.0, 1.0], 0.0, &mut rng);
        let narrow = narrowed(&x);
        let truth = DensePpca::of(&widened(&narrow), None, 1);
        for solver in [Solver::Eigen, Solver::Svd, Solver::Krylov, Solver::Auto] {
            let fit = Ppca::new(1).solver(solver).fit(&narrow).unwrap();
            relative(fit.spectrum().unwrap().noise_variance(), truth.noise, 2e-4, (strength, solver.name()));
        }
    }
}

/// A row of weight 0 is no row, whatever it holds.
#[test]
fn rows_of_no_weight_are_absent() {
    let mut rng = Rng(43);
    let x = rows_with_deviations(500, &falling(6, 0.8), 0.0, &mut rng);
    let truth = DensePpca::of(&x, None, 2);
    for odd in [1e9, f64::NAN, f64::INFINITY] {
        let with_odd = Mat::from_fn(600, 6, |i, j| if i < 100 { odd } else { x[(i - 100, j)] });
        let weights: Vec<f64> = (0..600).map(|i| if i < 100 { 0.0 } else { 1.0 }).collect();
        let columns = Mat::from_fn(6, 600, |i, j| with_odd[(j, i)]);
        for view in [with_odd.as_ref(), columns.transpose()] {
            for solver in ALL {
                let cells = covary::data::Cells::F64(covary::data::Block::View(view));
                let table = covary::data::Table::new(cells).with_weights(&weights[..]).unwrap();
                let s = Ppca::new(2).solver(solver).fit(table).unwrap().report.spectrum.unwrap();
                relative(s.noise_variance(), truth.noise, 1e-12, (odd, solver.name()));
                assert_eq!(s.rows(), 500);
            }
        }
    }
}

/// A finite cell whose square overflows is infinitely unlikely, not an error and not NaN.
#[test]
fn a_row_beyond_all_numbers() {
    let w = Mat::from_fn(3, 1, |i, _| 1.0 + i as f64);
    let model = LinearGaussian::new(vec![0.0; 3], w, Noise::Isotropic(0.5)).unwrap();
    let cells = [1e200, 1.0, 0.0, 1e200, f64::NAN, 0.0, 0.0, 0.0, 0.0];
    let found = model.log_density(Rows::from_slice(&cells, 3).unwrap()).unwrap();
    assert_eq!(found[..2], [f64::NEG_INFINITY; 2]);
    assert!(found[2].is_finite());
    let outliers = model.outliers(Rows::from_slice(&cells, 3).unwrap()).unwrap();
    assert_eq!(outliers.p_value[..2], [0.0; 2]);
}

/// Fewer cells than latent variables and next to no noise: one observed cell is N(μ, ‖w‖² + σ²), whatever σ² is.
#[test]
fn few_cells_and_little_noise() {
    let mut rng = Rng(44);
    let w = normal_matrix(6, 4, &mut rng);
    for noise in [1e-6, 1e-9, 1e-12, 1e-15, 1e-20, 1e-30] {
        let model = LinearGaussian::new(vec![0.5; 6], w.clone(), Noise::Isotropic(noise)).unwrap();
        let mut row = vec![f64::NAN; 6];
        row[2] = 1.7;
        let variance = (0..4).map(|k| w[(2, k)].powi(2)).sum::<f64>() + noise;
        let expected = -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + 1.2f64.powi(2) / variance);
        let found = model.log_density(Rows::from_slice(&row, 6).unwrap()).unwrap();
        close(found[0], expected, 1e-12, noise);
        let posterior = model.posterior(Rows::from_slice(&row, 6).unwrap()).unwrap();
        let covariance = posterior.covariance.of(0);
        for i in 0..4 {
            close(posterior.mean[(0, i)], w[(2, i)] * 1.2 / variance, 1e-12, (noise, i));
            for j in 0..4 {
                let prior = f64::from(u8::from(i == j));
                close(covariance[(i, j)], prior - w[(2, i)] * w[(2, j)] / variance, 1e-12, (noise, i, j));
            }
        }
    }
}

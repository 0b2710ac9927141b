//! Every question about a t model against brute force: the dense t distribution, and integrals over u.

use std::sync::Arc;

use covary::data::Rows;
use covary::linalg::Mat;
use covary::model::{AnyModel, LinearGaussian, LinearStudent, Model, Noise};
use covary::{Control, Error};
use statrs::distribution::{Continuous, ContinuousCDF, FisherSnedecor, Gamma};
use statrs::function::gamma::ln_gamma;

use crate::common::*;

const TOLERANCE: f64 = 1e-10;

/// A model and rows of every pattern: complete, one hole, one cell, fewer than q cells, none, at random; some
/// far out.
fn case(seed: u64, nu: f64, diagonal: bool) -> (LinearStudent, Mat<f64>) {
    let (mut rng, p, q) = (Rng(seed), 6, 2);
    let scale = random_model(p, q, diagonal, &mut rng);
    let mut x = normal_matrix(14, p, &mut rng);
    for i in 0..x.nrows() {
        let kept = [p, p - 1, 1, q - 1, 0].get(i).copied().unwrap_or_else(|| rng.below(p + 1));
        let far = if i % 3 == 0 { 40.0 } else { 2.0 };
        for (at, &j) in rng.shuffled(p).iter().enumerate() {
            x[(i, j)] = if at < kept { scale.mean()[j] + far * x[(i, j)] } else { f64::NAN };
        }
    }
    (LinearStudent::new(scale, nu).unwrap(), x)
}

fn have(x: &Mat<f64>, i: usize) -> Vec<usize> {
    (0..x.ncols()).filter(|&j| !x[(i, j)].is_nan()).collect()
}

/// Observed cells, their number and squared Mahalanobis distance, and the dense normal of their block.
fn observed(model: &LinearStudent, x: &Mat<f64>, i: usize) -> (usize, f64, Dense) {
    let cells = have(x, i);
    let part = Dense::of(model.scale()).marginal(&cells);
    let values: Vec<f64> = cells.iter().map(|&j| x[(i, j)]).collect();
    (cells.len(), part.mahalanobis(&values), part)
}

/// ln of the multivariate t density, e.g. Kotz & Nadarajah (2004), eq. 1.1.
fn dense_log_density(model: &LinearStudent, x: &Mat<f64>, i: usize) -> f64 {
    let (k, distance, part) = observed(model, x, i);
    let (k, nu) = (k as f64, model.degrees_of_freedom());
    if k == 0.0 {
        return 0.0;
    }
    ln_gamma(0.5 * (nu + k))
        - ln_gamma(0.5 * nu)
        - 0.5 * k * (nu * std::f64::consts::PI).ln()
        - 0.5 * part.log_det()
        - 0.5 * (nu + k) * (distance / nu).ln_1p()
}

/// ∫ f(u) p(u) du by the trapezoidal rule in ln u, which is exact to rounding for such integrands.
fn over_u(nu: f64, f: impl Fn(f64) -> f64) -> f64 {
    let gamma = Gamma::new(0.5 * nu, 0.5 * nu).unwrap();
    let h = 0.01;
    (-4000..2000).map(|i| (f64::from(i) * h).exp()).map(|u| f(u) * gamma.pdf(u) * u * h).sum()
}

#[test]
fn densities_are_those_of_the_multivariate_t() {
    for (seed, nu, diagonal) in [(1, 4.0, false), (2, 1.0, true), (3, 30.0, false), (4, 0.6, false)] {
        let (model, x) = case(seed, nu, diagonal);
        let any: AnyModel = Arc::new(model.clone());
        let lists = stored(&x);
        for rows in [Rows::from(&x), Rows::from(&lists)] {
            let found = any.density().unwrap().log_density(rows.source()).unwrap();
            let weights = model.weights(&rows).unwrap();
            for i in 0..x.nrows() {
                relative(found[i], dense_log_density(&model, &x, i), TOLERANCE, ("density", seed, i));
                let (k, distance, _) = observed(&model, &x, i);
                relative(weights[i], (nu + k as f64) / (nu + distance), TOLERANCE, ("weight", seed, i));
            }
        }
    }
}

/// The mixture over u that defines the model, integrated: density and weight E(u | x).
#[test]
fn densities_and_weights_are_integrals_over_u() {
    let (model, x) = case(5, 3.0, false);
    let any: AnyModel = Arc::new(model.clone());
    let found = any.density().unwrap().log_density(&table(&x)).unwrap();
    let weights = model.weights(&x).unwrap();
    for i in (0..x.nrows()).filter(|i| !have(&x, *i).is_empty()) {
        let (k, distance, part) = observed(&model, &x, i);
        let normal = |u: f64| {
            let constant = k as f64 * (std::f64::consts::TAU / u).ln() + part.log_det();
            (-0.5 * (constant + u * distance)).exp()
        };
        let density = over_u(3.0, normal);
        relative(found[i], density.ln(), 1e-9, ("density", i));
        relative(weights[i], over_u(3.0, |u| u * normal(u)) / density, 1e-9, ("weight", i));
    }
}

#[test]
fn p_values_are_tails_of_f() {
    let (model, x) = case(6, 5.0, true);
    let any: AnyModel = Arc::new(model.clone());
    let found = any.density().unwrap().outliers(&table(&x)).unwrap();
    let (t2, spe) = model.scale().t2_spe(&x).unwrap();
    assert_eq!((found.t2, found.spe), (t2, spe));
    for i in 0..x.nrows() {
        let (k, distance, _) = observed(&model, &x, i);
        let expected = match k {
            0 => 1.0,
            _ => FisherSnedecor::new(k as f64, 5.0).unwrap().sf(distance / k as f64),
        };
        relative(found.p_value[i], expected, TOLERANCE, i);
    }
}

/// Rows of the model have uniform p-values, whatever cells they have: mean ½, and 5 % below 0.05.
#[test]
fn p_values_of_rows_of_the_model_are_uniform() {
    let (model, _) = case(7, 3.0, false);
    let any: AnyModel = Arc::new(model);
    let density = any.density().unwrap();
    let (mut x, mut rng, n) = (density.sample_rows(0..8000, 1), Rng(8), 8000);
    (0..n).for_each(|i| {
        (0..6).for_each(|j| {
            if rng.uniform() < 0.3 {
                x[(i, j)] = f64::NAN;
            }
        });
    });
    let p: Vec<f64> = density.outliers(&table(&x)).unwrap().p_value;
    let counted: Vec<f64> = p.into_iter().filter(|p| *p < 1.0).collect();
    let mean = counted.iter().sum::<f64>() / counted.len() as f64;
    let below = counted.iter().filter(|p| **p < 0.05).count() as f64 / counted.len() as f64;
    // Standard errors 0.0032 and 0.0024.
    assert!((mean - 0.5).abs() < 0.013 && (below - 0.05).abs() < 0.01, "{mean} {below}");
}

#[test]
fn posteriors_and_imputations_spread_with_the_distance() {
    for (seed, nu) in [(11, 4.0), (12, 2.5)] {
        let (model, x) = case(seed, nu, false);
        let any: AnyModel = Arc::new(model.clone());
        let (rows, scale) = (table(&x), model.scale());
        let (found, normal) =
            (any.latent_posterior().unwrap().posterior(&rows).unwrap(), scale.posterior(&x).unwrap());
        assert_eq!(matrix_bits(&found.mean), matrix_bits(&normal.mean));
        let fill = any.imputer().unwrap();
        let (filled, plain) = (fill.impute_with_std(&rows).unwrap(), scale.impute_with_std(&x).unwrap());
        assert_eq!(matrix_bits(&filled.cells), matrix_bits(&plain.cells));
        assert_eq!(matrix_bits(&fill.impute(&rows).unwrap()), matrix_bits(&plain.cells));
        for i in 0..x.nrows() {
            let (k, distance, _) = observed(&model, &x, i);
            let spread = (nu + distance) / (nu + k as f64 - 2.0);
            for (a, b) in (0..2).flat_map(|a| (0..2).map(move |b| (a, b))) {
                let expected = normal.covariance.of(i)[(a, b)] * spread;
                close(found.covariance.of(i)[(a, b)], expected, 1e-10 * spread, ("posterior", i));
            }
            let cells: Vec<(usize, usize)> = (0..6).map(|j| (i, j)).collect();
            let predicted = fill.predict(&stored(&x), &cells).unwrap();
            for j in 0..6 {
                let expected = plain.std[(i, j)] * spread.sqrt();
                relative(filled.std[(i, j)], expected, TOLERANCE, ("deviation", i, j));
                relative(predicted.std[j], expected, TOLERANCE, ("predicted", i, j));
            }
            let given = fill.conditional(&row(&x, i), &Control::new()).unwrap();
            for (at, j) in given.features.iter().enumerate() {
                relative(
                    given.covariance[(at, at)].sqrt(),
                    filled.std[(i, *j)],
                    TOLERANCE,
                    ("conditional", i),
                );
            }
        }
    }
}

/// One cell missing of two: its distribution given the other by integrals of the joint density.
#[test]
fn imputed_cells_have_the_moments_of_the_conditional_density() {
    let w = Mat::from_fn(2, 1, |i, _| [1.5, -0.8][i]);
    let scale = LinearGaussian::new(vec![1.0, -2.0], w, Noise::Isotropic(0.4)).unwrap();
    let model = LinearStudent::new(scale, 6.0).unwrap();
    let any: AnyModel = Arc::new(model.clone());
    let x = Mat::from_fn(1, 2, |_, j| [4.5, f64::NAN][j]);
    let filled = any.imputer().unwrap().impute_with_std(&table(&x)).unwrap();
    let grid: Vec<f64> = (-200_000..200_000).map(|i| -2.0 + 0.005 * f64::from(i)).collect();
    let joint = Mat::from_fn(grid.len(), 2, |i, j| if j == 0 { 4.5 } else { grid[i] });
    let density: Vec<f64> =
        any.density().unwrap().log_density(&table(&joint)).unwrap().iter().map(|l| l.exp()).collect();
    let moment = |f: &dyn Fn(f64) -> f64| grid.iter().zip(&density).map(|(y, d)| f(*y) * d).sum::<f64>();
    let total = moment(&|_| 1.0);
    let mean = moment(&|y| y) / total;
    relative(filled.cells[(0, 1)], mean, 1e-8, "mean");
    relative(filled.std[(0, 1)].powi(2), moment(&|y| (y - mean).powi(2)) / total, 1e-6, "variance");
}

/// Draws have the mean and deviation of the conditional, and depend on seed, row and number alone.
#[test]
fn draws_of_missing_cells() {
    let (model, x) = case(21, 7.0, false);
    let any: AnyModel = Arc::new(model);
    let fill = any.imputer().unwrap();
    let (rows, n) = (table(&x), 6000);
    let draws = fill.draw_missing(&rows, 0..n, 3).unwrap();
    let filled = fill.impute_with_std(&rows).unwrap();
    for i in (0..x.nrows()).filter(|i| have(&x, *i).len() < 6) {
        for j in (0..6).filter(|j| x[(i, *j)].is_nan()) {
            let (mean, std) = (filled.cells[(i, j)], filled.std[(i, j)]);
            let z: Vec<f64> = draws.iter().map(|d| (d[(i, j)] - mean) / std).collect();
            let average = z.iter().sum::<f64>() / n as f64;
            let square = z.iter().map(|z| z * z).sum::<f64>() / n as f64;
            // A standard error is 0.013 of the mean; the fourth moment of t₇ is 5, so 0.026 of the square.
            assert!(average.abs() < 0.065 && (square - 1.0).abs() < 0.2, "{i} {j}: {average} {square}");
        }
    }
    let some = fill.draw_missing(&rows, 2..4, 3).unwrap();
    let alone = Mat::from_fn(1, 6, |_, j| x[(13, j)]);
    assert_eq!(matrix_bits(&some[0]), matrix_bits(&draws[2]), "whichever draws are asked for");
    for size in [1, 5] {
        let cut = Cut { x: &x, rows: size };
        let again = fill.draw_missing(&cut, 0..2, 3).unwrap();
        assert_eq!(matrix_bits(&again[1]), matrix_bits(&draws[1]), "however rows are cut");
    }
    assert!(alone.ncols() == 6);
}

#[test]
fn samples_have_the_covariance_of_the_model() {
    let (model, _) = case(31, 8.0, false);
    let any: AnyModel = Arc::new(model.clone());
    let density = any.density().unwrap();
    let x = density.sample(40_000, 5, &Control::new()).unwrap();
    let (mean, covariance) = mean_and_covariance(&x, None);
    let expected = density.covariance().unwrap();
    let c = dense_covariance(model.scale());
    for a in 0..6 {
        close(mean[a], model.scale().mean()[a], 6.0 * (expected[(a, a)] / 4e4).sqrt(), ("mean", a));
        for b in 0..6 {
            close(expected[(a, b)], c[(a, b)] * 8.0 / 6.0, 1e-12, "ν/(ν − 2)");
            let size = (expected[(a, a)] * expected[(b, b)]).sqrt();
            close(covariance[(a, b)], expected[(a, b)], 0.06 * size, ("covariance", a, b));
        }
    }
    // In parts, and again.
    let part = density.sample_rows(1000..1300, 5);
    assert_eq!(matrix_bits(&part), matrix_bits(&x.subrows(1000, 300).to_owned()));
    let precision = density.precision(&Control::new()).unwrap();
    let unit = Mat::from_fn(6, 6, |i, j| (0..6).map(|k| precision[(i, k)] * expected[(k, j)]).sum::<f64>());
    close_matrix(&unit, &Mat::identity(6, 6), 1e-9, "precision");
    // The squared distances of k cells are k F(k, ν): half of them below its median.
    let d = model.scale().mahalanobis(&x).unwrap();
    let median = 6.0 * FisherSnedecor::new(6.0, 8.0).unwrap().inverse_cdf(0.5);
    let share = d.iter().filter(|d| **d < median).count() as f64 / 4e4;
    assert!((share - 0.5).abs() < 0.0125, "{share}");
}

#[test]
fn a_marginal_is_the_t_of_its_features() {
    let (model, x) = case(41, 3.0, true);
    let any: AnyModel = Arc::new(model);
    let part = any.density().unwrap().marginal(&[4, 1]).unwrap();
    let y = Mat::from_fn(x.nrows(), 6, |i, j| if j == 4 || j == 1 { x[(i, j)] } else { f64::NAN });
    let z = Mat::from_fn(x.nrows(), 2, |i, j| x[(i, [4, 1][j])]);
    let (a, b) = (any.density().unwrap(), part.density().unwrap());
    close_all(&b.log_density(&table(&z)).unwrap(), &a.log_density(&table(&y)).unwrap(), 1e-10, "marginal");
    assert_eq!(part.kind().name, "robust");
}

#[test]
fn infinitely_many_degrees_of_freedom_are_the_normal_model() {
    let (model, x) = case(51, f64::INFINITY, false);
    let (any, scale, rows) = (Arc::new(model.clone()) as AnyModel, model.scale().clone(), table(&x));
    let density = any.density().unwrap();
    close_all(&density.log_density(&rows).unwrap(), &scale.log_density(&x).unwrap(), 1e-12, "density");
    close_all(&density.outliers(&rows).unwrap().p_value, &scale.outliers(&x).unwrap().p_value, 1e-12, "p");
    assert_eq!(matrix_bits(&density.sample_rows(0..300, 1)), matrix_bits(&scale.sample(300, 1)));
    let (a, b) = (any.imputer().unwrap().draw_missing(&rows, 0..2, 1), scale.draw_missing(&x, 0..2, 1));
    assert_eq!(matrix_bits(&a.unwrap()[1]), matrix_bits(&b.unwrap()[1]));
    assert_eq!(density.covariance().unwrap(), scale.covariance());
}

#[test]
fn what_does_not_exist_is_said_or_infinite() {
    let scale = || random_model(3, 1, false, &mut Rng(1));
    for nu in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let error = LinearStudent::new(scale(), nu).unwrap_err();
        assert!(error.to_string().contains("degrees of freedom"), "{error}");
    }
    let model: AnyModel = Arc::new(LinearStudent::new(scale(), 2.0).unwrap());
    for error in [
        model.density().unwrap().covariance().unwrap_err(),
        model.density().unwrap().precision(&Control::new()).unwrap_err(),
    ] {
        assert!(
            matches!(error, Error::Parameter { .. }) && error.to_string().contains("no covariance"),
            "{error}"
        );
    }
    // A row without cells has the prior, whose variance is infinite; with one cell it is not.
    let x = Mat::from_fn(2, 3, |i, j| if i == 1 && j == 0 { 0.5 } else { f64::NAN });
    let filled = model.imputer().unwrap().impute_with_std(&table(&x)).unwrap();
    assert!(filled.std[(0, 0)].is_infinite() && filled.std[(1, 1)].is_finite() && filled.std[(1, 0)] == 0.0);
    let z = model.latent_posterior().unwrap().posterior(&table(&x)).unwrap();
    assert!(z.covariance.of(0)[(0, 0)].is_infinite() && z.covariance.of(1)[(0, 0)].is_finite());
    // Rows of another width.
    let wide = Mat::from_fn(1, 4, |_, _| 1.0);
    assert!(matches!(
        model.density().unwrap().log_density(&table(&wide)),
        Err(Error::FeatureCount { expected: 3, found: 4 })
    ));
    assert_eq!(Model::n_latent(&LinearStudent::new(scale(), 1.0).unwrap()), 1);
}

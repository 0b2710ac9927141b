//! The bounds against finite differences and brute force.

use super::{ExactPosterior, Layout, VariationalBound};
use crate::algorithm::optimise::Smooth;
use crate::control::Control;
use crate::data::{RowSource, Rows, Table};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::{Cholesky, Mat};

/// Numbers without pattern between −1 and 1.
fn wild(i: usize) -> f64 {
    (12.9898 * (i as f64 + 1.0)).sin() * 43758.5453 % 1.0
}

fn rows(n: usize, p: usize, holes: bool) -> Mat<f64> {
    Mat::from_fn(n, p, |i, j| match holes && (i * 7 + j * 3) % 5 == 0 {
        true => f64::NAN,
        false => 1.5 * wild(i * p + j),
    })
}

fn table(y: &Mat<f64>, weights: bool) -> Table<'_> {
    let Rows::Table(table) = Rows::from(y) else { unreachable!() };
    match weights {
        true => {
            table.with_weights((0..y.nrows()).map(|i| [1.0, 2.5, 0.0][i % 3]).collect::<Vec<_>>()).unwrap()
        }
        false => table,
    }
}

fn bound<'a>(
    rows: &'a dyn RowSource,
    layout: Layout,
    form: LatentForm,
    masked: bool,
) -> VariationalBound<'a> {
    let centre = vec![0.1; rows.n_features()];
    VariationalBound { rows, layout, form, centre, masked, cells: 30.0, held: false }
}

/// A point away from any optimum; the points of a linear kernel are the axes.
fn somewhere(layout: Layout, form: LatentForm) -> Vec<f64> {
    let mut x: Vec<f64> = (0..layout.len()).map(|i| wild(1000 + i)).collect();
    if form == LatentForm::Linear {
        let q = layout.latent;
        x[layout.points()].iter_mut().enumerate().for_each(|(i, z)| *z = f64::from(u8::from(i / q == i % q)));
    }
    x
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let control = Control::new();
    for (form, masked, weights) in [
        (LatentForm::Rbf, false, false),
        (LatentForm::Rbf, true, true),
        (LatentForm::Linear, false, true),
        (LatentForm::Linear, true, false),
    ] {
        let y = rows(7, 3, masked);
        let table = table(&y, weights);
        let layout = Layout { rows: 7, inducing: if form == LatentForm::Linear { 2 } else { 4 }, latent: 2 };
        let bound = bound(&table, layout, form, masked);
        let x = somewhere(layout, form);
        let (_, found) = bound.value(&x, &control).unwrap();
        let gradient = bound.gradient(&x, &found, &control).unwrap();
        let moves = bound.inverse_curvature(&x);
        for i in (0..x.len()).filter(|i| moves[*i] > 0.0) {
            let at = |h: f64| {
                let mut x = x.clone();
                x[i] += h;
                bound.value(&x, &control).unwrap().0
            };
            // Richardson's extrapolation of central differences: the error is of order h⁴.
            let central = |h: f64| (at(h) - at(-h)) / (2.0 * h);
            let slope = (4.0 * central(5e-4) - central(1e-3)) / 3.0;
            let error = (gradient[i] - slope).abs();
            assert!(error <= 1e-6 * slope.abs().max(1e-2), "{form:?} {masked} {i}: {} {slope}", gradient[i]);
        }
    }
}

/// log p(Y) of two rows with one latent dimension, by the trapezoidal rule over both positions.
fn evidence(y: &Mat<f64>, kernel: &LatentKernel, noise: f64, centre: f64) -> f64 {
    let grid: Vec<f64> = (-70..=70).map(|i| f64::from(i) * 0.1).collect();
    let log_density = |x: [f64; 2]| {
        let k = Mat::from_fn(2, 2, |i, j| kernel.of(&x[i..=i], &x[j..=j]) + if i == j { noise } else { 0.0 });
        let factor = Cholesky::new(k, "the covariance").unwrap();
        let mut scaled = Mat::from_fn(2, y.ncols(), |i, j| y[(i, j)] - centre);
        factor.solve_lower(scaled.as_mut());
        let p = y.ncols() as f64;
        let prior = -0.5 * (x[0] * x[0] + x[1] * x[1]) - std::f64::consts::TAU.ln();
        prior - 0.5 * (p * factor.log_det() + scaled.squared_norm_l2() + 2.0 * p * std::f64::consts::TAU.ln())
    };
    let each = grid.iter().flat_map(|a| grid.iter().map(move |b| [*a, *b]));
    let logs: Vec<f64> = each.map(log_density).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + (logs.iter().map(|l| (l - largest).exp()).sum::<f64>() * 0.01).ln()
}

#[test]
fn the_bound_is_below_the_exact_evidence() {
    let control = Control::new();
    for (seed, form) in [(0, LatentForm::Rbf), (1, LatentForm::Rbf), (2, LatentForm::Linear)] {
        let y = Mat::from_fn(2, 3, |i, j| wild(seed * 10 + i * 3 + j));
        let inducing = if form == LatentForm::Rbf { 2 } else { 1 };
        let layout = Layout { rows: 2, inducing, latent: 1 };
        let table = table(&y, false);
        let bound = bound(&table, layout, form, false);
        let mut x = somewhere(layout, form);
        let (relevance, noise) = (vec![x[layout.relevance().start].exp()], 1.0 / bound.precision(&x));
        let kernel = LatentKernel::new(form, x[layout.kernel()].exp(), relevance).unwrap();
        let exact = evidence(&y, &kernel, noise, 0.1);
        let mut best = f64::NEG_INFINITY;
        // Better and better positions, at the same parameters: never above.
        for _ in 0..300 {
            let (value, found) = bound.value(&x, &control).unwrap();
            assert!(value <= exact + 1e-9, "{form:?}: {value} above {exact}");
            best = best.max(value);
            let gradient = bound.gradient(&x, &found, &control).unwrap();
            (0..layout.points().end).for_each(|i| x[i] += 0.05 * gradient[i]);
        }
        assert!(exact - best < 1.0, "{form:?}: {best} far below {exact}");
    }
}

/// With the positions known almost exactly and inducing points where they are, the bound is the Gaussian process
/// likelihood less the divergence.
#[test]
fn known_positions_give_the_likelihood_of_a_gaussian_process() {
    let (n, p, control) = (5, 2, Control::new());
    let y = rows(n, p, false);
    let layout = Layout { rows: n, inducing: n, latent: 1 };
    let table = table(&y, false);
    let bound = bound(&table, layout, LatentForm::Rbf, false);
    let mut x = vec![0.0; layout.len()];
    for i in 0..n {
        let place = 1.3 * i as f64 - 2.0;
        (x[i], x[n + i], x[2 * n + i]) = (place, (1e-9f64).ln(), place);
    }
    let (value, _) = bound.value(&x, &control).unwrap();
    let kernel = LatentKernel::new(LatentForm::Rbf, 1.0, vec![1.0]).unwrap();
    let places = Mat::from_fn(n, 1, |i, _| x[i]);
    let mut k = kernel.matrix(places.as_ref(), places.as_ref());
    (0..n).for_each(|i| k[(i, i)] += 1.0);
    let factor = Cholesky::new(k, "the covariance").unwrap();
    let mut scaled = Mat::from_fn(n, p, |i, j| y[(i, j)] - 0.1);
    factor.solve_lower(scaled.as_mut());
    let tau = std::f64::consts::TAU.ln();
    let likelihood = -0.5 * (p as f64 * factor.log_det() + scaled.squared_norm_l2() + (n * p) as f64 * tau);
    let divergence: f64 = (0..n).map(|i| 0.5 * (x[i] * x[i] + 1e-9 - (1e-9f64).ln() - 1.0)).sum();
    assert!((value - (likelihood - divergence)).abs() < 1e-4, "{value} {likelihood} {divergence}");
}

#[test]
fn the_gradient_of_the_exact_posterior_is_that_of_finite_differences() {
    let control = Control::new();
    let posterior = ExactPosterior { cells: rows(6, 3, false), latent: 2, variance: 1.3 };
    let x: Vec<f64> = (0..posterior.noise() + 1).map(|i| wild(50 + i)).collect();
    let (_, found) = posterior.value(&x, &control).unwrap();
    let gradient = posterior.gradient(&x, &found, &control).unwrap();
    for i in 0..x.len() {
        let at = |h: f64| {
            let mut x = x.clone();
            x[i] += h;
            posterior.value(&x, &control).unwrap().0
        };
        let central = |h: f64| (at(h) - at(-h)) / (2.0 * h);
        let slope = (4.0 * central(5e-4) - central(1e-3)) / 3.0;
        assert!((gradient[i] - slope).abs() <= 1e-6 * slope.abs().max(1e-2), "{i}: {} {slope}", gradient[i]);
    }
}

/// A row of weight 2 is a row written twice, one of weight 0 is none; and masks that hide nothing change nothing.
#[test]
fn weights_count_rows_and_masks_count_cells() {
    let (control, form) = (Control::new(), LatentForm::Rbf);
    let y = rows(3, 3, false);
    let (once, twice) =
        (Layout { rows: 3, inducing: 4, latent: 2 }, Layout { rows: 4, inducing: 4, latent: 2 });
    let x = somewhere(once, form);
    let source = [0, 1, 1, 2]; // of each row that is written
    let copied = Mat::from_fn(4, 3, |i, j| y[(source[i], j)]);
    let of =
        |part: &[f64]| -> Vec<f64> { source.iter().flat_map(|i| part[2 * i..2 * i + 2].to_vec()).collect() };
    let mut long = of(&x[once.mean()]);
    long.extend(of(&x[once.log_variance()]));
    long.extend(&x[once.points().start..]);
    let Rows::Table(weighted) = Rows::from(&y) else { unreachable!() };
    let weighted = weighted.with_weights(vec![1.0, 2.0, 1.0]).unwrap();
    let expected = bound(&table(&copied, false), twice, form, false).value(&long, &control).unwrap().0;
    for masked in [false, true] {
        let found = bound(&weighted, once, form, masked).value(&x, &control).unwrap().0;
        assert!((found - expected).abs() < 1e-9 * expected.abs(), "{masked}: {found} {expected}");
    }
}

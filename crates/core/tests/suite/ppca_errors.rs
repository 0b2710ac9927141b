//! Standard errors and intervals of PPCA against dense information, simulation and what theory says of the corners.

use crate::common::{
    Dense, Rng, close, falling, normal_matrix, orthogonal, relative, rows_with_deviations, table,
};
use covary::assess::{PpcaErrors, PpcaEstimate};
use covary::data::Rows;
use covary::estimator::ppca_estimate;
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::persist::SavedModel;
use covary::{Error, Ppca};
use faer::linalg::solvers::DenseSolveCore;
use faer::prelude::*;

/// Loadings along the first random orthogonal directions, with these lengths.
fn loadings(p: usize, lengths: &[f64], seed: u64) -> Mat<f64> {
    let u = orthogonal(p, &mut Rng(seed));
    Mat::from_fn(p, lengths.len(), |j, i| lengths[i] * u[(j, i)])
}

fn estimate(w: &Mat<f64>, noise: f64, rows: f64) -> PpcaErrors {
    let mean = vec![0.0; w.nrows()];
    PpcaEstimate::new(&mean, w.as_ref(), noise, rows).unwrap().standard_errors()
}

/// Covariance of (W by columns, σ²) from one row: the expected information ½ tr(C⁻¹ ∂C C⁻¹ ∂C'), bordered by the slopes of
/// wᵢᵀwₖ = 0.
fn dense_covariance(w: &Mat<f64>, noise: f64) -> Mat<f64> {
    let (p, q) = (w.nrows(), w.ncols());
    let identity = Mat::<f64>::identity(p, p);
    let c = w * w.transpose() + &identity * Scale(noise);
    let dense = Dense::new(vec![0.0; p], c);
    let solved = |a: &Mat<f64>| {
        let columns: Vec<Vec<f64>> = (0..p).map(|j| dense.solve(a.col_as_slice(j))).collect();
        Mat::from_fn(p, p, |i, j| columns[j][i])
    };
    let unit = |j: usize| Mat::from_fn(p, 1, |i, _| if i == j { 1.0 } else { 0.0 });
    let slope = |a: usize| {
        let half = unit(a % p) * w.subcols(a / p, 1).transpose();
        &half + half.transpose()
    };
    let slopes: Vec<Mat<f64>> = (0..p * q).map(slope).chain([identity.clone()]).map(|d| solved(&d)).collect();
    let (k, pairs) = (slopes.len(), (0..q).flat_map(|i| (0..i).map(move |j| (i, j))).collect::<Vec<_>>());
    let mut whole = Mat::zeros(k + pairs.len(), k + pairs.len());
    for a in 0..k {
        for b in 0..k {
            let both = &slopes[a] * &slopes[b];
            whole[(a, b)] = 0.5 * (0..p).map(|j| both[(j, j)]).sum::<f64>();
        }
    }
    for (e, &(i, j)) in pairs.iter().enumerate() {
        for f in 0..p {
            for (row, value) in [(f + p * i, w[(f, j)]), (f + p * j, w[(f, i)])] {
                (whole[(k + e, row)], whole[(row, k + e)]) = (value, value);
            }
        }
    }
    whole.full_piv_lu().inverse().submatrix(0, 0, k, k).to_owned()
}

#[test]
fn errors_equal_the_dense_information() {
    let cases: [(usize, &[f64], f64); 4] =
        [(3, &[1.5], 0.4), (6, &[3.0, 1.2], 0.7), (8, &[2.0, 1.9, 0.5], 1.3), (4, &[3.0, 2.0, 1.0], 0.2)];
    for (p, lengths, noise) in cases {
        let (q, n) = (lengths.len(), 250.0);
        let w = loadings(p, lengths, 3 + p as u64);
        let dense = dense_covariance(&w, noise);
        let ours = estimate(&w, noise, n);
        let last = p * q;
        for a in 0..last {
            relative(ours.loadings[(a % p, a / p)], (dense[(a, a)] / n).sqrt(), 1e-9, (p, q, a));
        }
        relative(ours.noise_variance.unwrap(), (dense[(last, last)] / n).sqrt(), 1e-9, (p, q));
        // λᵢ = wᵢᵀwᵢ + σ².
        for i in 0..q {
            let slope = Mat::from_fn(last + 1, 1, |a, _| match a {
                a if a == last => 1.0,
                a if a / p == i => 2.0 * w[(a % p, i)],
                _ => 0.0,
            });
            let variance = (slope.transpose() * &dense * &slope)[(0, 0)];
            relative(ours.eigenvalues[i], (variance / n).sqrt(), 1e-9, (p, q, i));
        }
    }
}

/// Errors of a mean are those of the covariance: the information about μ is C⁻¹.
#[test]
fn errors_of_the_mean_are_deviations_over_the_root_of_n() {
    let w = loadings(5, &[2.0, 1.0], 9);
    let model = LinearGaussian::new(vec![1.0; 5], w.clone(), Noise::Isotropic(0.3)).unwrap();
    let c = model.covariance();
    let ours = estimate(&w, 0.3, 64.0);
    (0..5).for_each(|j| relative(ours.mean[j], c[(j, j)].sqrt() / 8.0, 1e-14, j));
}

// ----------------------------------------------------------------------------------------------------- simulation

/// How often intervals at 95 % hold the truth: for each feature's mean, σ², each eigenvalue, each loading.
struct Coverage {
    mean: Vec<f64>,
    noise: f64,
    eigenvalues: Vec<f64>,
    loadings: Vec<f64>,
}

fn simulate(w: &Mat<f64>, noise: f64, n: usize, sets: usize) -> Coverage {
    let (p, q) = (w.nrows(), w.ncols());
    let mean: Vec<f64> = (0..p).map(|j| 10.0 * j as f64).collect();
    let variance = |i: usize| (0..p).map(|j| w[(j, i)].powi(2)).sum::<f64>() + noise;
    let truth: Vec<f64> = (0..q).map(variance).collect();
    let mut rng = Rng(20);
    let mut held =
        Coverage { mean: vec![0.0; p], noise: 0.0, eigenvalues: vec![0.0; q], loadings: vec![0.0; p * q] };
    let one = 1.0 / sets as f64;
    let inside = |(low, high): (f64, f64), x: f64| if low <= x && x <= high { one } else { 0.0 };
    for _ in 0..sets {
        let (z, e) = (normal_matrix(n, q, &mut rng), normal_matrix(n, p, &mut rng));
        let signal = &z * w.transpose();
        let x = Mat::from_fn(n, p, |i, j| mean[j] + signal[(i, j)] + noise.sqrt() * e[(i, j)]);
        let fit = Ppca::new(q).fit(table(&x)).unwrap();
        let ours = ppca_estimate(&fit.model, &fit.report).unwrap().intervals(0.95).unwrap();
        (0..p).for_each(|j| held.mean[j] += inside(ours.mean[j], mean[j]));
        held.noise += inside(ours.noise_variance.unwrap(), noise);
        (0..q).for_each(|i| held.eigenvalues[i] += inside(ours.eigenvalues[i], truth[i]));
        for a in 0..p * q {
            let (j, i) = (a % p, a / p);
            held.loadings[a] += inside((ours.loadings_lower[(j, i)], ours.loadings_upper[(j, i)]), w[(j, i)]);
        }
    }
    held
}

/// Loadings whose columns have a clear largest entry, so that their signs are those of the truth.
fn clear_loadings() -> Mat<f64> {
    let (a, b) = ([0.8, 0.4, 0.3, -0.3, 0.1, 0.1], [0.1, -0.2, 0.8, 0.3, 0.4, 0.0]);
    let dot = |x: &[f64; 6], y: &[f64; 6]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let along = dot(&a, &b) / dot(&a, &a);
    let b: [f64; 6] = std::array::from_fn(|j| b[j] - along * a[j]);
    let (la, lb) = (dot(&a, &a).sqrt(), dot(&b, &b).sqrt());
    Mat::from_fn(6, 2, |j, i| if i == 0 { 3.0 * a[j] / la } else { 1.7 * b[j] / lb })
}

/// Within three standard errors of a share of so many sets, and what an expansion in 1/√n leaves out.
fn covers(share: f64, sets: usize, left_out: f64, what: impl std::fmt::Debug) {
    let error = (0.95 * 0.05 / sets as f64).sqrt();
    assert!((share - 0.95).abs() < 3.0 * error + left_out, "{what:?}: {share}");
}

#[test]
fn intervals_cover_what_they_say() {
    let (n, sets) = (300, 2000);
    let held = simulate(&clear_loadings(), 0.5, n, sets);
    let left_out = 1.0 / n as f64;
    held.mean.iter().enumerate().for_each(|(j, share)| covers(*share, sets, left_out, ("mean", j)));
    covers(held.noise, sets, left_out, "noise");
    held.eigenvalues
        .iter()
        .enumerate()
        .for_each(|(i, share)| covers(*share, sets, left_out, ("eigenvalue", i)));
    held.loadings.iter().enumerate().for_each(|(a, share)| covers(*share, sets, left_out, ("loading", a)));
    let average = held.loadings.iter().sum::<f64>() / held.loadings.len() as f64;
    covers(average, sets, left_out, "loadings");
}

/// With strong components the mean and the noise variance have their exact distributions, so that few rows are enough.
#[test]
fn intervals_of_mean_and_noise_cover_with_few_rows() {
    for n in [6, 15] {
        let sets = 2000;
        let w = clear_loadings();
        let held = simulate(&(&w * Scale(4.0)), 0.1, n, sets);
        held.mean.iter().enumerate().for_each(|(j, share)| covers(*share, sets, 0.002, (n, "mean", j)));
        covers(held.noise, sets, 0.002, (n, "noise"));
    }
}

/// Maximum likelihood takes 1 + q rows' worth from the noise; with many features its interval lies above
/// it, and around the estimate without bias.
#[test]
fn the_interval_of_the_noise_lies_around_the_unbiased_estimate() {
    let (n, p, q, noise, sets) = (30, 60, 3, 2.0, 200);
    let w = loadings(p, &[40.0, 30.0, 20.0], 6);
    let mut rng = Rng(7);
    let (mut sum, mut sum_of_unbiased) = (0.0, 0.0);
    for set in 0..sets {
        let signal = &normal_matrix(n, q, &mut rng) * w.transpose();
        let e = normal_matrix(n, p, &mut rng);
        let x = Mat::from_fn(n, p, |i, j| signal[(i, j)] + f64::sqrt(noise) * e[(i, j)]);
        let fit = Ppca::new(q).fit(table(&x)).unwrap();
        let estimate = ppca_estimate(&fit.model, &fit.report).unwrap();
        let (low, high) = estimate.noise_interval(0.95).unwrap().unwrap();
        let unbiased = estimate.unbiased_noise().unwrap();
        assert!(low < unbiased && unbiased < high, "{set}: {low} {unbiased} {high}");
        sum += fit.spectrum().unwrap().noise_variance() / sets as f64;
        sum_of_unbiased += unbiased / sets as f64;
    }
    // Means over 200 sets of a mean of 26 · 57 squares: their standard error is σ² √(2/(200 · 1482)).
    let error = noise * (2.0 / (sets as f64 * 1482.0)).sqrt();
    close(sum_of_unbiased, noise, 4.0 * error, "without bias");
    close(sum, noise * 26.0 / 30.0, 4.0 * error, "by maximum likelihood");
    let all = Mat::<f64>::identity(2, 2);
    assert_eq!(PpcaEstimate::new(&[0.0; 2], all.as_ref(), 0.0, 9.0).unwrap().unbiased_noise(), None);
}

/// Weights that are shares: as many rows as there are, not one.
#[test]
fn shares_as_weights_count_rows() {
    let x = rows_with_deviations(40, &falling(5, 0.6), 1.0, &mut Rng(9));
    let fit = |weight: f64| Ppca::new(2).fit(table(&x).with_weights(vec![weight; 40]).unwrap()).unwrap();
    let intervals = |weight: f64| {
        let fit = fit(weight);
        ppca_estimate(&fit.model, &fit.report).unwrap().intervals(0.95).unwrap()
    };
    let (plain, shares, twice) = (intervals(1.0), intervals(1.0 / 40.0), intervals(2.0));
    for (a, b) in plain.mean.iter().zip(&shares.mean) {
        relative(a.0, b.0, 1e-11, "shares");
    }
    let width = |i: &covary::assess::PpcaIntervals| i.noise_variance.unwrap().1 - i.noise_variance.unwrap().0;
    relative(width(&plain), width(&shares), 1e-9, "noise");
    assert!(width(&twice) < 0.8 * width(&plain), "rows that were seen twice tell more");
}

// ------------------------------------------------------------------------------------------------------- corners

#[test]
fn errors_fall_with_the_root_of_n() {
    let w = loadings(5, &[2.0, 1.0], 4);
    let (few, many) = (estimate(&w, 0.3, 50.0), estimate(&w, 0.3, 5000.0));
    relative(few.noise_variance.unwrap(), 10.0 * many.noise_variance.unwrap(), 1e-14, "noise");
    (0..5).for_each(|j| relative(few.mean[j], 10.0 * many.mean[j], 1e-14, j));
    (0..10).for_each(|a| {
        relative(few.loadings[(a % 5, a / 5)], 10.0 * many.loadings[(a % 5, a / 5)], 1e-13, a);
    });
}

/// A single feature that is all component: the variance interval of the textbook, (n − 1)s²/χ², and Student's for the mean.
#[test]
fn one_feature_has_the_textbook_intervals() {
    let x = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
    let fit = Ppca::new(1).fit(Rows::from_slice(&x, 1).unwrap()).unwrap();
    let estimate = ppca_estimate(&fit.model, &fit.report).unwrap();
    let ours = estimate.intervals(0.95).unwrap();
    // R 4.2.2: t.test(x)$conf.int; 7 * var(x) / qchisq(c(.975, .025), 7).
    close(ours.mean[0].0, 3.212_512_081_76, 1e-10, "lower mean");
    close(ours.mean[0].1, 6.787_487_918_24, 1e-10, "upper mean");
    close(ours.eigenvalues[0].0, 1.998_405_737_52, 1e-9, "lower variance");
    close(ours.eigenvalues[0].1, 18.936_377_067_47, 1e-9, "upper variance");
    assert_eq!((ours.noise_variance, estimate.standard_errors().noise_variance), (None, None));
    // |w| = √λ: the delta method.
    relative(estimate.standard_errors().loadings[(0, 0)], 2.0 / 16f64.sqrt(), 1e-12, "loading");
}

#[test]
fn equal_eigenvalues_have_no_direction() {
    let w = Mat::from_fn(5, 3, |j, i| if i == j { [2.0, 1.0, 1.0][i] } else { 0.0 });
    let ours = estimate(&w, 0.5, 100.0);
    assert!((0..5).all(|j| ours.loadings[(j, 0)].is_finite()));
    assert!((0..5).all(|j| (1..3).all(|i| ours.loadings[(j, i)] == f64::INFINITY)));
    let mean = [0.0; 5];
    let intervals = PpcaEstimate::new(&mean, w.as_ref(), 0.5, 100.0).unwrap().intervals(0.9).unwrap();
    assert_eq!(intervals.loadings_lower[(0, 1)], f64::NEG_INFINITY);
    assert_eq!(intervals.loadings_upper[(0, 1)], f64::INFINITY);
    // A component as weak as the noise is one of the noise's directions.
    let weak = Mat::from_fn(4, 2, |j, i| if (j, i) == (0, 0) { 1.0 } else { 0.0 });
    let ours = estimate(&weak, 0.5, 100.0);
    assert!(ours.loadings[(2, 0)].is_finite() && ours.loadings[(2, 1)] == f64::INFINITY);
    // JSON has no infinity.
    assert!(serde_json::to_string(&ours).unwrap().contains("null"));
}

#[test]
fn no_noise_no_components_and_all_components() {
    let w = loadings(4, &[2.0, 1.0], 2);
    let none = estimate(&w, 0.0, 30.0);
    assert_eq!(none.noise_variance, Some(0.0));
    // Without noise the plane is known: loadings err within it only.
    let u2 = |j: usize| w[(j, 1)];
    for j in 0..4 {
        let variance = w[(j, 0)].powi(2) * 0.5 + 16.0 / 9.0 * u2(j).powi(2);
        relative(none.loadings[(j, 0)], (variance / 30.0).sqrt(), 1e-12, j);
    }
    let round = estimate(&Mat::zeros(3, 0), 2.0, 30.0);
    assert_eq!((round.loadings.ncols(), round.eigenvalues.len()), (0, 0));
    relative(round.noise_variance.unwrap(), 2.0 * (2.0 / 90.0f64).sqrt(), 1e-14, "round");
    let all = estimate(&loadings(3, &[3.0, 2.0, 1.0], 5), 0.0, 30.0);
    assert_eq!(all.noise_variance, None);
    assert!((0..9).all(|a| all.loadings[(a % 3, a / 3)].is_finite()));
}

#[test]
fn errors_follow_the_unit_at_any_scale() {
    let x = normal_matrix(40, 4, &mut Rng(8));
    let x = Mat::from_fn(40, 4, |i, j| x[(i, j)] * [5.0, 3.0, 1.0, 1.0][j]);
    let of = |scale: f64, shift: f64| {
        let scaled = Mat::from_fn(40, 4, |i, j| scale * (x[(i, j)] + shift));
        let fit = Ppca::new(2).fit(table(&scaled)).unwrap();
        ppca_estimate(&fit.model, &fit.report).unwrap().standard_errors()
    };
    let plain = of(1.0, 0.0);
    for (scale, shift, tolerance) in [(1e-150, 0.0, 1e-10), (1e150, 0.0, 1e-10), (1.0, 1e8, 1e-6)] {
        let ours = of(scale, shift);
        (0..4).for_each(|j| relative(ours.mean[j], scale * plain.mean[j], tolerance, (scale, shift, j)));
        (0..8).for_each(|a| {
            relative(ours.loadings[(a % 4, a / 4)], scale * plain.loadings[(a % 4, a / 4)], tolerance, a);
        });
        let noise = scale * scale * plain.noise_variance.unwrap();
        relative(ours.noise_variance.unwrap(), noise, tolerance, (scale, shift));
    }
}

#[test]
fn a_file_answers_as_the_fit_does() {
    let x = normal_matrix(30, 5, &mut Rng(3));
    let fit = Ppca::new(2).fit(table(&x)).unwrap();
    let ours = ppca_estimate(&fit.model, &fit.report).unwrap().standard_errors();
    let bytes = SavedModel::new(fit, None).unwrap().to_bytes().unwrap();
    let read = SavedModel::from_bytes(&bytes).unwrap();
    let model: &LinearGaussian = read.model.downcast_ref().unwrap();
    assert_eq!(ppca_estimate(model, &read.report).unwrap().standard_errors(), ours);
}

/// A row of weight 2 is a row written twice.
#[test]
fn weights_count_rows() {
    let x = normal_matrix(20, 3, &mut Rng(6));
    let twice = Mat::from_fn(40, 3, |i, j| x[(i % 20, j)]);
    let weights = [2.0; 20];
    let cells = table(&x);
    let weighted = Ppca::new(1).fit(cells.with_weights(&weights).unwrap()).unwrap();
    let written = Ppca::new(1).fit(table(&twice)).unwrap();
    let errors = |fit: &covary::estimator::Fit<LinearGaussian>| {
        ppca_estimate(&fit.model, &fit.report).unwrap().standard_errors()
    };
    let (a, b) = (errors(&weighted), errors(&written));
    (0..3).for_each(|j| relative(a.loadings[(j, 0)], b.loadings[(j, 0)], 1e-12, j));
    relative(a.noise_variance.unwrap(), b.noise_variance.unwrap(), 1e-12, "noise");
}

#[test]
fn what_has_no_errors_says_why() {
    let mut x = normal_matrix(20, 4, &mut Rng(1));
    let refused = |error: Error| assert!(matches!(error, Error::Parameter { .. }), "{error}");
    // Three rows span a plane: two components leave nothing.
    let few = Mat::from_fn(3, 4, |i, j| x[(i, j)]);
    let fit = Ppca::new(2).fit(table(&few)).unwrap();
    refused(ppca_estimate(&fit.model, &fit.report).unwrap_err());
    let fit = Ppca::new(2).fit(table(&x)).unwrap();
    for level in [0.0, 1.0, -0.5, f64::NAN] {
        refused(ppca_estimate(&fit.model, &fit.report).unwrap().intervals(level).unwrap_err());
    }
    // As near to certainty as numbers go.
    let sure = ppca_estimate(&fit.model, &fit.report).unwrap().intervals(1.0 - 1e-15).unwrap();
    assert!(sure.mean[0].1 > 1.0 && sure.noise_variance.unwrap().0 > 0.0);
    let turn = Mat::from_fn(2, 2, |i, j| [[0.6, -0.8], [0.8, 0.6]][i][j]);
    refused(ppca_estimate(&fit.model.rotate(&turn).unwrap(), &fit.report).unwrap_err());
    let given = SavedModel::given(fit.model.clone(), None).unwrap();
    refused(ppca_estimate(&fit.model, &given.report).unwrap_err());
    x[(3, 1)] = f64::NAN;
    let holey = Ppca::new(2).fit(table(&x)).unwrap();
    refused(ppca_estimate(&holey.model, &holey.report).unwrap_err());
    let w = loadings(3, &[1.0], 1);
    refused(PpcaEstimate::new(&[0.0; 3], w.as_ref(), f64::NAN, 10.0).unwrap_err());
    refused(PpcaEstimate::new(&[f64::NAN; 3], w.as_ref(), 1.0, 10.0).unwrap_err());
    assert!(matches!(PpcaEstimate::new(&[0.0; 2], w.as_ref(), 1.0, 10.0), Err(Error::Length { .. })));
}

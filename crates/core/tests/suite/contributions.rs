//! Contributions of cells and control limits, against what happens when a cell is left out, and against theory.

use std::sync::Arc;

use covary::Error;
use covary::data::Rows;
use covary::linalg::Mat;
use covary::model::{
    AnyModel, Contributions, Density, Explain, Factors, Fill, IndependentComponents, LinearGaussian,
    LinearStudent, Mixture, Noise, Predictive, PrincipalComponents, Sample, Uncertainty,
};
use proptest::prelude::*;

use crate::common::twofold::Twofold;
use crate::common::{Dense, Rng, close, close_all, normal_matrix, random_model, relative, row, stored};

/// Rows of the size of a model, with holes: the first complete, the last empty.
fn rows_with_holes(model: &LinearGaussian, n: usize, rng: &mut Rng) -> Mat<f64> {
    let mut x = model.sample(n, rng.next());
    for i in 1..n {
        for j in 0..x.ncols() {
            if i == n - 1 || rng.uniform() < 0.35 {
                x[(i, j)] = f64::NAN;
            }
        }
    }
    x
}

fn observed(x: &Mat<f64>, i: usize) -> Vec<usize> {
    (0..x.ncols()).filter(|&j| !x[(i, j)].is_nan()).collect()
}

/// The row with one more hole.
fn without(x: &Mat<f64>, i: usize, j: usize) -> Mat<f64> {
    Mat::from_fn(1, x.ncols(), |_, k| if k == j { f64::NAN } else { x[(i, k)] })
}

fn sum_of_row(m: &Mat<f64>, i: usize) -> f64 {
    (0..m.ncols()).map(|j| m[(i, j)]).filter(|v| !v.is_nan()).sum()
}

fn check_sums(found: &Contributions, t2: &[f64], spe: &[f64], tolerance: f64) {
    (0..t2.len()).for_each(|i| check_row(found, i, t2[i], spe[i], tolerance));
}

/// Largest singular value of Ψ^-½ W over some features by the smallest. Its square is the condition of the normal
/// equations by which T² finds coordinates along directions that the cells hardly see.
fn condition(model: &LinearGaussian, features: &[usize]) -> f64 {
    let (k, q) = (features.len(), model.n_latent());
    if k == 0 || q == 0 {
        return 1.0;
    }
    let root = |i: usize| model.noise().of(features[i]).sqrt();
    let a = Mat::from_fn(k, q, |i, j| model.loadings()[(features[i], j)] / root(i));
    let svd = a.thin_svd().unwrap();
    let values = svd.S().column_vector();
    values[0] / values[k.min(q) - 1]
}

fn check_row(found: &Contributions, i: usize, t2: f64, spe: f64, tolerance: f64) {
    let size: f64 = (0..found.t2.ncols()).map(|j| found.t2[(i, j)].abs()).filter(|v| !v.is_nan()).sum();
    close(sum_of_row(&found.t2, i), t2, tolerance * (1.0 + size), ("T²", i));
    close(sum_of_row(&found.spe, i), spe, tolerance * (1.0 + spe), ("SPE", i));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every cell left out, the distance and the conditional normal made anew from the dense covariance.
    #[test]
    fn cells_left_out_by_brute_force(seed: u64, p in 1usize..8, extra in 0usize..9, diagonal: bool) {
        let mut rng = Rng(seed);
        let model = random_model(p, extra % (p + 1), diagonal, &mut rng);
        let x = rows_with_holes(&model, 6, &mut rng);
        let (dense, lists) = (Dense::of(&model), stored(&x));
        let sources: [Rows<'_>; 2] = [(&x).into(), (&lists).into()];
        for rows in sources {
            let found = model.contributions(&rows).unwrap();
            let (t2, spe) = model.t2_spe(&rows).unwrap();
            for i in 0..x.nrows() {
                let have = observed(&x, i);
                check_row(&found, i, t2[i], spe[i], 1e-11 + 1e-15 * condition(&model, &have).powi(2));
                let whole = dense.marginal(&have).mahalanobis(&have.iter().map(|&j| x[(i, j)]).collect::<Vec<_>>());
                for j in 0..p {
                    if x[(i, j)].is_nan() {
                        let all = [&found.t2, &found.spe, &found.cell, &found.expected, &found.deviation];
                        assert!(all.iter().all(|m| m[(i, j)].is_nan()), "a hole has none");
                        continue;
                    }
                    let rest: Vec<usize> = have.iter().copied().filter(|&k| k != j).collect();
                    let part = dense.marginal(&rest);
                    let cells: Vec<f64> = rest.iter().map(|&k| x[(i, k)]).collect();
                    close(found.cell[(i, j)], whole - part.mahalanobis(&cells), 1e-10 * (1.0 + whole), ("cell", i, j));
                    let along: Vec<f64> = rest.iter().map(|&k| dense.covariance[(k, j)]).collect();
                    let solved = part.solve(&along);
                    let (mut mean, mut variance) = (dense.mean[j], dense.covariance[(j, j)]);
                    for (k, s) in solved.iter().enumerate() {
                        mean += s * (cells[k] - dense.mean[rest[k]]);
                        variance -= s * along[k];
                    }
                    close(found.expected[(i, j)], mean, 1e-10 * (1.0 + mean.abs()), ("expected", i, j));
                    close(found.deviation[(i, j)], variance.sqrt(), 1e-10, ("deviation", i, j));
                }
            }
        }
    }
}

/// A model of each kind that has contributions, of four features.
fn models() -> Vec<AnyModel> {
    let mut rng = Rng(11);
    let turn = Mat::from_fn(2, 2, |i, j| [[0.8, 0.6], [-0.6, 0.8]][i][j]);
    let u = Mat::from_fn(4, 1, |i, _| [0.6, 0.0, 0.8, 0.0][i]);
    let known =
        Uncertainty { loadings: Mat::from_fn(4, 2, |i, k| 0.1 * (i + k + 1) as f64), mean: vec![0.3; 4] };
    let loadings = normal_matrix(4, 2, &mut rng);
    vec![
        Arc::new(random_model(4, 2, false, &mut rng)),
        Arc::new(PrincipalComponents::new(vec![1.0; 4], u, vec![2.0], 0.5).unwrap()),
        Arc::new(Factors::new(random_model(4, 2, true, &mut rng)).with_turn(turn.clone()).unwrap()),
        Arc::new(Predictive::new(vec![0.1; 4], loadings, 0.5, vec![0.6, 1.0], Some(known)).unwrap()),
        Arc::new(LinearStudent::new(random_model(4, 2, false, &mut rng), 3.5).unwrap()),
        Arc::new(IndependentComponents::new(random_model(4, 2, false, &mut rng), turn).unwrap()),
        Arc::new(
            Mixture::new(
                vec![0.6, 0.4],
                vec![random_model(4, 1, false, &mut rng), random_model(4, 2, false, &mut rng)],
            )
            .unwrap(),
        ),
    ]
}

/// What a cell is expected to be is what imputation says when it is missing, of every kind; of a mixture where the
/// row stays with its component, which gives far components next to nothing to say.
#[test]
fn expectations_are_those_of_imputation() {
    for model in models().iter().filter(|m| m.kind().name != "mixture") {
        let (density, explain, fill) =
            (model.density().unwrap(), model.explainer().unwrap(), model.imputer().unwrap());
        let mut x = density.sample_rows(0..5, 3);
        (x[(1, 2)], x[(2, 0)], x[(2, 3)]) = (f64::NAN, f64::NAN, f64::NAN);
        let found = explain.contributions(Rows::from(&x).source()).unwrap();
        let outliers = density.outliers(Rows::from(&x).source()).unwrap();
        check_sums(&found, &outliers.t2, &outliers.spe, 1e-12);
        for i in 0..5 {
            for j in observed(&x, i) {
                let filled = fill.impute_with_std(Rows::from(&without(&x, i, j)).source()).unwrap();
                let kind = model.kind().name;
                relative(found.expected[(i, j)], filled.cells[(0, j)], 1e-11, (kind, "expected", i, j));
                relative(found.deviation[(i, j)], filled.std[(0, j)], 1e-11, (kind, "deviation", i, j));
            }
        }
    }
}

#[test]
fn a_mixture_answers_by_the_component_of_the_row() {
    let model = models().pop().unwrap();
    let mixture = model.downcast_ref::<Mixture>().unwrap();
    let x = Density::sample_rows(mixture, 0..40, 5);
    let rows = Rows::from(&x);
    let (found, of) = (
        mixture.contributions(rows.source()).unwrap(),
        model.groups().unwrap().assign(rows.source()).unwrap(),
    );
    let outliers = Density::outliers(mixture, rows.source()).unwrap();
    check_sums(&found, &outliers.t2, &outliers.spe, 1e-12);
    for (k, component) in mixture.components().iter().enumerate() {
        let own = component.contributions(&x).unwrap();
        for i in (0..40).filter(|i| of[*i] == k) {
            close_all(&row(&found.cell, i), &row(&own.cell, i), 1e-12, (k, i));
            close_all(&row(&found.expected, i), &row(&own.expected, i), 1e-12, (k, i));
        }
    }
}

/// Λe and the diagonal of Λ = (WWᵀ + noise)⁻¹ in numbers of 32 digits: (r, √(1/Λⱼⱼ)) of each cell.
fn twofold(model: &LinearGaussian, x: &[f64]) -> Vec<(f64, f64)> {
    let p = x.len();
    let t = |v: f64| Twofold::from(v);
    let w = |i: usize, k: usize| t(model.loadings()[(i, k)]);
    // Gauss–Jordan on (C | I | x − μ).
    let mut m = vec![vec![t(0.0); 2 * p + 1]; p];
    for i in 0..p {
        for j in 0..p {
            m[i][j] = (0..model.n_latent()).fold(t(0.0), |s, k| s + w(i, k) * w(j, k));
        }
        m[i][i] = m[i][i] + t(model.noise().of(i));
        m[i][p + i] = t(1.0);
        m[i][2 * p] = t(x[i]) - t(model.mean()[i]);
    }
    for i in 0..p {
        let pivot = m[i][i];
        (0..=2 * p).for_each(|c| m[i][c] = m[i][c] / pivot);
        for other in (0..p).filter(|o| *o != i) {
            let factor = m[other][i];
            for c in 0..=2 * p {
                m[other][c] = m[other][c] - factor * m[i][c];
            }
        }
    }
    (0..p).map(|j| ((m[j][2 * p] / m[j][p + j]).0, (t(1.0) / m[j][p + j]).sqrt().0)).collect()
}

/// Means of 1e8, noise a millionth of the signal's deviation, and features that stand nearly alone: to what the
/// rounding of the cells leaves.
#[test]
fn large_means_small_noise_and_lonely_features() {
    let mut rng = Rng(5);
    for (mean, noise, lonely) in
        [(0.0, 1e-12, false), (1e8, 1e-2, false), (0.0, 1e-6, true), (1e8, 1e-4, true), (0.0, 1e-9, true)]
    {
        let mut w = normal_matrix(6, 3, &mut rng);
        if lonely {
            // The first component is all but the first feature alone, a thousand times as large.
            (0..6).for_each(|i| w[(i, 0)] = if i == 0 { 1e3 } else { 1e-4 * rng.normal() });
        }
        for noise in
            [Noise::Isotropic(noise), Noise::Diagonal((1..7).map(|j| noise * f64::from(j)).collect())]
        {
            let model = LinearGaussian::new(vec![mean; 6], w.clone(), noise.clone()).unwrap();
            let x = model.sample(5, 8);
            let found = model.contributions(&x).unwrap();
            let (t2, spe) = model.t2_spe(&x).unwrap();
            check_sums(&found, &t2, &spe, 1e-9);
            for i in 0..5 {
                for (j, (residual, deviation)) in twofold(&model, &row(&x, i)).into_iter().enumerate() {
                    let what = (mean, lonely, &noise, i, j);
                    relative(found.deviation[(i, j)], deviation, 1e-9, ("deviation", what));
                    // Rounding of the largest cell (ε/2 = 1.1e-16), in deviations of this one; a cell is a sum of some ten of
                    // them.
                    let rounding = 1.1e-16 * if lonely { 3e3 } else { 5.0 } / deviation;
                    let d = (residual / deviation).powi(2);
                    close(found.cell[(i, j)], d, (1e-11 + 10.0 * rounding) * (1.0 + d), ("cell", what));
                    let expected = x[(i, j)] - residual;
                    let size = 1e-12 * (1.0 + expected.abs()) + 1e-9 * deviation;
                    close(found.expected[(i, j)], expected, size, ("expected", what));
                }
            }
        }
    }
}

#[test]
fn without_noise_the_rest_determines_a_cell() {
    let mut rng = Rng(3);
    let w = normal_matrix(5, 2, &mut rng);
    let plane = LinearGaussian::new(vec![1.0; 5], w.clone(), Noise::Isotropic(0.0)).unwrap();
    let nearly = LinearGaussian::new(vec![1.0; 5], w.clone(), Noise::Isotropic(1e-13)).unwrap();
    let mut x = normal_matrix(3, 5, &mut rng);
    x[(2, 4)] = f64::NAN;
    let (found, limit) = (plane.contributions(&x).unwrap(), nearly.contributions(&x).unwrap());
    for (i, j) in (0..3).flat_map(|i| observed(&x, i).into_iter().map(move |j| (i, j))) {
        close(found.expected[(i, j)], limit.expected[(i, j)], 1e-10, ("expected", i, j));
        assert!(found.deviation[(i, j)] == 0.0 && found.cell[(i, j)].is_nan());
    }
    let (t2, spe) = plane.t2_spe(&x).unwrap();
    check_sums(&found, &t2, &spe, 1e-12);
    // One component: each cell is so many times the other, however much of the direction it has.
    for slope in [2.0, 30.0, 1e3] {
        let w = Mat::from_fn(2, 1, |i, _| [1.0, slope][i]);
        let line = LinearGaussian::new(vec![0.0; 2], w, Noise::Isotropic(0.0)).unwrap();
        let found = line.contributions(Rows::from_slice(&[2.0, 5.0], 2).unwrap()).unwrap();
        relative(found.expected[(0, 0)], 5.0 / slope, 1e-9, ("small", slope));
        relative(found.expected[(0, 1)], 2.0 * slope, 1e-9, ("large", slope));
    }
    // As many cells as components: nothing is determined, and all is as with the dense covariance.
    let two = plane.marginal(&[0, 3]).unwrap();
    let dense = Dense::of(&two);
    let pair = Mat::from_fn(1, 2, |_, j| x[(0, [0, 3][j])]);
    let found = two.contributions(&pair).unwrap();
    let whole = dense.mahalanobis(&row(&pair, 0));
    for j in 0..2 {
        let rest = dense.marginal(&[1 - j]).mahalanobis(&[pair[(0, 1 - j)]]);
        relative(found.cell[(0, j)], whole - rest, 1e-10, j);
    }
}

/// Rows that each miss other cells, worked on side by side, say what the model of their cells says of complete rows.
#[test]
fn rows_of_many_patterns_answer_as_the_model_of_their_cells() {
    let mut rng = Rng(21);
    for diagonal in [false, true] {
        let model = random_model(12, 3, diagonal, &mut rng);
        let x = rows_with_holes(&model, 40, &mut rng);
        let sample = Sample::of_rows(60.0);
        let (found, limits) = (model.contributions(&x).unwrap(), model.limits(&x, 0.99, sample).unwrap());
        for i in 0..39 {
            let have = observed(&x, i);
            let part = model.marginal(&have).unwrap();
            let cells = Mat::from_fn(1, have.len(), |_, k| x[(i, have[k])]);
            let own = part.contributions(&cells).unwrap();
            let tolerance = 1e-12 + 1e-15 * condition(&model, &have).powi(2);
            for (k, j) in have.iter().enumerate() {
                let tables = [(&found.t2, &own.t2), (&found.spe, &own.spe), (&found.cell, &own.cell)];
                let expected = [(&found.expected, &own.expected), (&found.deviation, &own.deviation)];
                for (ours, theirs) in tables.into_iter().chain(expected) {
                    let size = 1.0 + theirs[(0, k)].abs();
                    close(ours[(i, *j)], theirs[(0, k)], tolerance * size, (diagonal, i, j));
                }
            }
            let own = part.limits(&cells, 0.99, sample).unwrap();
            relative(limits.t2[i], own.t2[0], 1e-12, (diagonal, i, "T²"));
            close(limits.spe[i], own.spe[0], 1e-10 * (1.0 + own.spe[0]), (diagonal, i, "SPE"));
        }
    }
}

/// A code for a missing value that was read as a number does not hide what was expected.
#[test]
fn cells_beyond_all_measure() {
    let mut rng = Rng(9);
    for diagonal in [false, true] {
        let model = random_model(6, 2, diagonal, &mut rng);
        let clean = model.sample(1, 4);
        for (wild, missing) in [(1e12, false), (-1e30, false), (9.97e36, false), (1e12, true), (-1e30, true)]
        {
            let mut x = clean.clone();
            x[(0, 2)] = wild;
            if missing {
                x[(0, 5)] = f64::NAN;
            }
            let expected = model.impute(&without(&x, 0, 2)).unwrap();
            let found = model.contributions(&x).unwrap();
            relative(found.expected[(0, 2)], expected[(0, 2)], 1e-12, wild);
            let student = LinearStudent::new(model.clone(), 4.0).unwrap();
            let filled = student.impute_with_std(Rows::from(&without(&x, 0, 2)).source()).unwrap();
            let found = student.contributions(Rows::from(&x).source()).unwrap();
            relative(found.deviation[(0, 2)], filled.std[(0, 2)], 1e-11, ("t", wild));
        }
    }
}

// ---------------------------------------------------------------------------------------------------------- limits

/// Quantiles by scipy.stats 1.x: chi2.ppf(0.99, 3), q(n+1)/(n−q) f.ppf(0.99, 3, 27), and so on.
#[test]
fn limits_are_quantiles() {
    let mut rng = Rng(2);
    let w = normal_matrix(8, 3, &mut rng);
    let model = LinearGaussian::new(vec![0.0; 8], w, Noise::Isotropic(0.5)).unwrap();
    let x: Mat<f64> = Mat::zeros(1, 8);
    let known = model.limits(&x, 0.99, None).unwrap();
    relative(known.t2[0], 11.344_866_730_144_373, 1e-12, "χ²");
    relative(known.spe[0], 7.543_136_234_694_495, 1e-12, "σ² χ²");
    let ml = model.limits(&x, 0.99, Sample::of_rows(30.0)).unwrap();
    relative(ml.t2[0], 15.847_568_192_725_646, 1e-12, "F");
    let unbiased = Sample { weight: 30.0, divisor: 29.0 };
    relative(model.limits(&x, 0.99, Some(unbiased)).unwrap().t2[0], 15.319_315_919_634_79, 1e-12, "n − 1");
    let student = LinearStudent::new(model.clone(), 4.5).unwrap();
    let robust = Explain::limits(&student, Rows::from(&x).source(), 0.99, None).unwrap();
    relative(robust.t2[0], 41.740_941_947_478_32, 1e-11, "t");
    relative(robust.spe[0], 31.957_953_849_347_938, 1e-11, "t");
    for level in [0.0, 1.0, -0.1, 1.5, f64::NAN] {
        assert!(matches!(model.limits(&x, level, None), Err(Error::Parameter { .. })));
    }
}

/// How often new rows of a model lie above their limits, those with missing cells too.
#[test]
fn limits_are_passed_as_often_as_they_say() {
    let mut rng = Rng(6);
    let (n, level) = (20_000, 0.95);
    for diagonal in [false, true] {
        let model = random_model(7, 2, diagonal, &mut rng);
        let mut x = model.sample(n, 1);
        (0..n).for_each(|i| {
            (0..i % 4).for_each(|k| x[(i, 2 * k)] = f64::NAN);
            if i % 50 == 49 {
                (1..7).for_each(|j| x[(i, j)] = f64::NAN); // one cell: it lies in the plane
            }
        });
        let (limits, (t2, spe)) = (model.limits(&x, level, None).unwrap(), model.t2_spe(&x).unwrap());
        let above = |a: &[f64], b: &[f64]| a.iter().zip(b).filter(|(a, b)| **a > **b + 1e-20).count() as f64;
        let alarms = (above(&t2, &limits.t2) / n as f64, above(&spe, &limits.spe) / (0.98 * n as f64));
        // Three standard errors of a share of 5 %; Box's χ² is an approximation where noises differ.
        close(alarms.0, 0.05, 0.005, ("T²", diagonal));
        close(alarms.1, 0.05, if diagonal { 0.008 } else { 0.005 }, ("SPE", diagonal));
    }
}

#[test]
fn limits_of_a_mixture_are_those_of_components() {
    let model = models().pop().unwrap();
    let mixture = model.downcast_ref::<Mixture>().unwrap();
    let x = Density::sample_rows(mixture, 0..30, 5);
    let rows = Rows::from(&x);
    let of = model.groups().unwrap().assign(rows.source()).unwrap();
    let found = mixture.limits(rows.source(), 0.9, Sample::of_rows(200.0)).unwrap();
    for (i, k) in of.into_iter().enumerate() {
        let n = mixture.weights()[k] * 200.0;
        let own = mixture.components()[k].limits(&x, 0.9, Sample::of_rows(n)).unwrap();
        assert_eq!((found.t2[i], found.spe[i]), (own.t2[i], own.spe[i]));
    }
}

#[test]
fn rows_that_cannot_be_asked_about() {
    let model = random_model(3, 1, false, &mut Rng(1));
    let wide = Mat::<f64>::zeros(2, 4);
    assert!(matches!(model.contributions(&wide), Err(Error::FeatureCount { .. })));
    let mut infinite = Mat::<f64>::zeros(2, 3);
    infinite[(1, 2)] = f64::INFINITY;
    assert!(matches!(model.contributions(&infinite), Err(Error::Infinite { .. })));
    let none = Mat::<f64>::zeros(0, 3);
    assert_eq!(model.contributions(&none).unwrap().cell.nrows(), 0);
}

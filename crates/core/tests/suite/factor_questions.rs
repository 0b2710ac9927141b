//! Factors read and asked: loadings after a turn, communalities and scores, against their definitions.

use std::sync::Arc;

use crate::common::*;
use covary::Error;
use covary::linalg::Mat;
use covary::model::{AnyModel, Factors, Scores};

/// A turn with columns of length 1, orthogonal or not.
fn turn(q: usize, oblique: bool, rng: &mut Rng) -> Mat<f64> {
    let mut t = orthogonal(q, rng);
    if oblique {
        let n = normal_matrix(q, q, rng);
        t = Mat::from_fn(q, q, |i, j| t[(i, j)] + 0.3 * n[(i, j)]);
        for j in 0..q {
            let length = (0..q).map(|i| t[(i, j)].powi(2)).sum::<f64>().sqrt();
            (0..q).for_each(|i| t[(i, j)] /= length);
        }
    }
    t
}

fn models() -> Vec<Factors> {
    let mut rng = Rng(3);
    let mut out = Vec::new();
    for (p, q, diagonal) in [(6, 2, true), (9, 3, true), (5, 1, true), (7, 2, false)] {
        let plain = Factors::new(random_model(p, q, diagonal, &mut rng));
        out.push(plain.clone().with_turn(turn(q, false, &mut rng)).unwrap());
        out.push(plain.clone().with_turn(turn(q, true, &mut rng)).unwrap());
        out.push(plain);
    }
    out
}

/// Σ over k of a b.
fn times(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    a * b
}

fn transposed(a: &Mat<f64>) -> Mat<f64> {
    a.transpose().to_owned()
}

#[test]
fn a_turn_changes_no_covariance() {
    for m in models() {
        let c = dense_covariance(m.gaussian());
        let common = times(&times(m.pattern(), &m.correlation()), &transposed(m.pattern()));
        let p = m.n_features();
        let rebuilt =
            Mat::from_fn(p, p, |i, j| common[(i, j)] + if i == j { m.gaussian().noise().of(i) } else { 0.0 });
        close_matrix(&rebuilt, &c, 1e-12 * max_abs(&c), "ΛΦΛᵀ + Ψ");
        close_matrix(&m.structure(), &times(m.pattern(), &m.correlation()), 1e-12 * max_abs(&c), "ΛΦ");
        close_all(
            &m.feature_variances(),
            &(0..p).map(|j| c[(j, j)]).collect::<Vec<_>>(),
            1e-12 * max_abs(&c),
            "variances",
        );
        let sums: Vec<f64> = m.communalities().iter().zip(m.uniquenesses()).map(|(a, b)| a + b).collect();
        close_all(&sums, &vec![1.0; p], 1e-14, "h² + u² = 1");
        close(m.factor_variances().iter().sum(), m.communalities().iter().sum(), 1e-12, "sums of squares");
        let s = m.standardised_structure();
        (0..p).for_each(|j| (0..m.n_factors()).for_each(|k| assert!(s[(j, k)].abs() <= 1.0)));
    }
}

/// Of the observed cells: N(mean, Σ) and cross-covariance of features and factors, all dense.
fn brute_scores(m: &Factors, x: &[f64], scores: Scores) -> (Vec<f64>, Mat<f64>) {
    let q = m.n_factors();
    let seen: Vec<usize> = (0..x.len()).filter(|j| !x[*j].is_nan()).collect();
    let d: Vec<f64> = seen.iter().map(|j| x[*j] - m.mean()[*j]).collect();
    let (pattern, phi) = (m.pattern(), m.correlation());
    if scores == Scores::Regression {
        let dense = Dense::of(m.gaussian()).marginal(&seen);
        let structure = m.structure();
        let cross = |k: usize| seen.iter().map(|j| structure[(*j, k)]).collect::<Vec<f64>>();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mean = (0..q).map(|k| dot(&cross(k), &dense.solve(&d))).collect();
        return (mean, Mat::from_fn(q, q, |a, b| phi[(a, b)] - dot(&cross(a), &dense.solve(&cross(b)))));
    }
    let weight = |j: usize| 1.0 / m.gaussian().noise().of(j);
    let gram = Mat::from_fn(q, q, |a, b| {
        seen.iter().map(|j| pattern[(*j, a)] * weight(*j) * pattern[(*j, b)]).sum()
    });
    let right: Vec<f64> =
        (0..q).map(|k| seen.iter().zip(&d).map(|(j, d)| pattern[(*j, k)] * weight(*j) * d).sum()).collect();
    let solved =
        if seen.len() < q { vec![f64::NAN; q] } else { Dense::new(vec![0.0; q], gram).solve(&right) };
    (solved, Mat::zeros(q, q))
}

#[test]
fn scores_are_those_of_the_definition_with_holes_too() {
    let mut rng = Rng(11);
    for m in models() {
        let mut x = m.gaussian().sample(12, 5);
        for i in 4..12 {
            (0..m.n_features()).for_each(|j| {
                if rng.uniform() < 0.1 * (i - 2) as f64 {
                    x[(i, j)] = f64::NAN;
                }
            });
        }
        for scores in [Scores::Regression, Scores::Bartlett] {
            let found = m.transform(&x, scores).unwrap();
            for i in 0..12 {
                let (expected, _) = brute_scores(&m, &row(&x, i), scores);
                let size = 1.0 + expected.iter().fold(0.0, |a: f64, e| a.max(e.abs()));
                close_all(&row(&found, i), &expected, 1e-8 * size, (scores, i));
            }
        }
        let posterior = m.posterior(&x).unwrap();
        close_matrix(&posterior.mean, &m.transform(&x, Scores::Regression).unwrap(), 1e-13, "mean");
        for i in 0..12 {
            let (_, expected) = brute_scores(&m, &row(&x, i), Scores::Regression);
            close_matrix(&posterior.covariance.of(i).to_owned(), &expected, 1e-10, i);
        }
        let any: AnyModel = Arc::new(m.clone());
        assert_eq!((any.kind().name, any.n_latent()), ("fa", m.n_factors()));
        close_matrix(&any.encoder().unwrap().encode(&table(&x)).unwrap(), &posterior.mean, 0.0, "any");
    }
}

#[test]
fn a_factor_that_no_cell_speaks_of_has_no_bartlett_score() {
    let w = Mat::from_fn(4, 2, |i, j| if (i < 2) == (j == 0) { 0.7 } else { 0.0 });
    let noise = covary::model::Noise::Diagonal(vec![0.5; 4]);
    let m = Factors::new(covary::model::LinearGaussian::new(vec![0.0; 4], w, noise).unwrap());
    let x = Mat::from_fn(2, 4, |i, j| if i == 1 && j >= 2 { f64::NAN } else { 1.0 });
    let found = m.transform(&x, Scores::Bartlett).unwrap();
    assert!(found[(0, 0)].is_finite() && found[(1, 0)].is_nan() && found[(1, 1)].is_nan());
    let posterior = m.transform(&x, Scores::Regression).unwrap();
    assert_eq!(posterior[(1, 1)], 0.0);
}

#[test]
fn a_turn_that_makes_no_sense_is_refused() {
    let m = || Factors::new(random_model(5, 2, true, &mut Rng(1)));
    let long = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 });
    let flat = Mat::from_fn(2, 2, |i, _| [0.6, 0.8][i]);
    let missing = Mat::from_fn(2, 2, |_, _| f64::NAN);
    for bad in [long, flat, missing] {
        assert!(matches!(m().with_turn(bad), Err(Error::Parameter { .. })));
    }
    assert!(matches!(m().with_turn(Mat::zeros(3, 3)), Err(Error::Length { .. })));
}

#[test]
fn given_numbers_decoded_rows_and_some_of_the_features() {
    for m in models() {
        let noise = m.gaussian().noise().clone();
        let (pattern, phi) = (m.pattern(), m.correlation());
        let given = Factors::given(m.mean().to_vec(), pattern.as_ref(), phi.as_ref(), noise).unwrap();
        let c = dense_covariance(m.gaussian());
        close_matrix(&dense_covariance(given.gaussian()), &c, 1e-12 * max_abs(&c), "ΛΦΛᵀ + Ψ");
        close_matrix(given.pattern(), pattern, 1e-10 * max_abs(pattern), "Λ");
        close_matrix(&given.correlation(), &phi, 1e-12, "Φ");
        let f = normal_matrix(4, m.n_factors(), &mut Rng(9));
        let centred = times(&f, &transposed(pattern));
        let rows = Mat::from_fn(4, m.n_features(), |i, j| centred[(i, j)] + m.mean()[j]);
        close_matrix(&m.decode(f.as_ref()).unwrap(), &rows, 1e-10 * max_abs(&rows), "μ + Λf");
        let some = m.marginal(&[3, 0]).unwrap();
        let picked = Mat::from_fn(2, m.n_factors(), |i, k| pattern[([3, 0][i], k)]);
        close_matrix(some.pattern(), &picked, 1e-12 * max_abs(pattern), "Λ of some features");
        close_matrix(&some.correlation(), &phi, 1e-14, "their Φ");
    }
    let (w, noise) = (Mat::from_fn(3, 2, |i, j| (i + j) as f64), covary::model::Noise::Isotropic(1.0));
    let skew = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { i as f64 * 0.5 });
    let found = Factors::given(vec![0.0; 3], w.as_ref(), skew.as_ref(), noise.clone());
    assert!(matches!(found, Err(Error::Asymmetric { .. })));
    let found = Factors::given(vec![0.0; 3], w.as_ref(), Mat::identity(3, 3).as_ref(), noise);
    assert!(matches!(found, Err(Error::Length { expected: 2, found: 3, .. })));
}

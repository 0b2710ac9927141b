//! The laws of evidence about rows with holes: a commutative monoid, and what its definition says.

use std::sync::Arc;

use crate::common::*;
use covary::data::{Cells, Chunk, Observed};
use covary::evidence::{Accumulator, AvailableCases, Found, Latent, Pairwise};
use covary::expectation::LatentParameters;
use covary::linalg::Mat;
use proptest::prelude::*;

/// Rows with holes, some complete, some empty; every feature is seen in the first row.
fn rows(seed: u64, n: usize, p: usize, offset: f64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let x = normal_matrix(n, p, &mut rng);
    let share: Vec<f64> = (0..n).map(|i| if i == 0 { 0.0 } else { [0.0, 0.3, 1.0][rng.below(3)] }).collect();
    Mat::from_fn(
        n,
        p,
        |i, j| if rng.uniform() < share[i] { f64::NAN } else { offset + (1 + j) as f64 * x[(i, j)] },
    )
}

fn weights(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = Rng(seed ^ 77);
    (0..n).map(|i| if i == 0 { 1.0 } else { rng.below(3) as f64 * 0.7 }).collect()
}

/// Random cuts of 0 .. n.
fn cuts(seed: u64, n: usize) -> Vec<std::ops::Range<usize>> {
    let mut rng = Rng(seed ^ 5);
    let mut parts = Vec::new();
    let mut start = 0;
    while start < n {
        let len = 1 + rng.below(n - start);
        parts.push(start..start + len);
        start += len;
    }
    parts
}

fn chunk<'a>(x: &'a Mat<f64>, rows: &std::ops::Range<usize>, w: &'a [f64]) -> Chunk<'a> {
    chunk_of(x.subrows(rows.start, rows.len()), rows.start).with_weights(&w[rows.clone()]).unwrap()
}

fn of<A: Accumulator>(empty: A, x: &Mat<f64>, rows: &std::ops::Range<usize>, w: &[f64]) -> A {
    let mut out = empty;
    out.update(&chunk(x, rows, w)).unwrap();
    out
}

fn cases(pairwise: Pairwise) -> AvailableCases {
    match pairwise.finish().unwrap() {
        Found::Incomplete(cases) => cases,
        Found::Complete(moments) => AvailableCases::from(&moments),
    }
}

/// Means of the cells that are there; covariances over the rows that have both, around those means.
fn by_definition(x: &Mat<f64>, w: &[f64]) -> (Vec<f64>, Mat<f64>) {
    let (n, p) = (x.nrows(), x.ncols());
    let has = |i: usize, j: usize| !x[(i, j)].is_nan() && w[i] > 0.0;
    let mean: Vec<f64> = (0..p)
        .map(|j| {
            let seen: Vec<usize> = (0..n).filter(|i| has(*i, j)).collect();
            let first = x[(seen[0], j)];
            let total: f64 = seen.iter().map(|i| w[*i]).sum();
            first + seen.iter().map(|i| w[*i] * (x[(*i, j)] - first)).sum::<f64>() / total
        })
        .collect();
    let covariance = Mat::from_fn(p, p, |j, k| {
        let both: Vec<usize> = (0..n).filter(|i| has(*i, j) && has(*i, k)).collect();
        let total: f64 = both.iter().map(|i| w[*i]).sum();
        both.iter().map(|i| w[*i] * (x[(*i, j)] - mean[j]) * (x[(*i, k)] - mean[k])).sum::<f64>() / total
    });
    (mean, covariance)
}

#[track_caller]
fn same_cases(a: &AvailableCases, mean: &[f64], covariance: &Mat<f64>, offset: f64, what: &str) {
    let size = max_abs(covariance).max(1.0);
    let rounding = offset.abs() * f64::EPSILON;
    close_all(&a.mean, mean, 8.0 * rounding + 1e-13 * size, (what, "mean"));
    close_matrix(
        &a.covariance,
        covariance,
        1e-12 * size + 16.0 * rounding * size.sqrt(),
        (what, "covariance"),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn available_cases(seed: u64, n in 2usize..120, p in 1usize..7, k in 0usize..3) {
        let offset = [0.0, 10.0, -1e6][k];
        let (x, w) = (rows(seed, n, p, offset), weights(seed, n));
        let (mean, covariance) = by_definition(&x, &w);
        let whole = of(Pairwise::empty(p), &x, &(0..n), &w);
        same_cases(&cases(whole.clone()), &mean, &covariance, offset, "whole");
        let parts = cuts(seed, n);
        let (mut updated, mut merged, mut reversed) = (Pairwise::empty(p), Pairwise::empty(p), Pairwise::empty(p));
        for part in &parts {
            updated.update(&chunk(&x, part, &w)).unwrap();
            merged.merge(&of(Pairwise::empty(p), &x, part, &w)).unwrap();
        }
        for part in parts.iter().rev() {
            reversed.merge(&of(Pairwise::empty(p), &x, part, &w)).unwrap();
        }
        let mut identity = whole.clone();
        identity.merge(&Pairwise::empty(p)).unwrap();
        for (found, what) in [(updated, "updates"), (merged, "merges"), (reversed, "reversed"), (identity, "identity")] {
            same_cases(&cases(found), &mean, &covariance, offset, what);
        }
        // The same from the observed cells alone.
        let cells = (0..n).flat_map(|i| (0..p).map(move |j| (i, j))).map(|(i, j)| (i, j, x[(i, j)]));
        let observed = Observed::from_triples(n, p, cells).unwrap();
        let mut sparse = Pairwise::empty(p);
        let only = Chunk::new(0, Cells::Observed(observed.rows(0..n))).with_weights(w.clone()).unwrap();
        sparse.update(&only).unwrap();
        let sparse = cases(sparse);
        same_cases(&sparse, &mean, &covariance, offset, "observed cells");
        let counted = (0..n).filter(|i| w[*i] > 0.0);
        let holes: usize = counted.clone().map(|i| row(&x, i).iter().filter(|v| v.is_nan()).count()).sum();
        prop_assert_eq!(sparse.census.missing(), holes as u64);
        prop_assert_eq!(sparse.census.rows(), counted.clone().count());
        for (j, found) in sparse.weights.iter().enumerate() {
            let expected: f64 = counted.clone().filter(|i| !x[(*i, j)].is_nan()).map(|i| w[i]).sum();
            relative(*found, expected, 1e-13, "weight of a feature");
        }
    }

    #[test]
    fn latent_evidence(seed: u64, n in 1usize..150, p in 1usize..7, q in 1usize..4, each: bool) {
        let (x, w) = (rows(seed, n, p, 3.0), weights(seed, n));
        let mut rng = Rng(seed ^ 3);
        let loadings = normal_matrix(p, q, &mut rng);
        let noises: Vec<f64> = (0..p).map(|_| 0.1 + rng.uniform()).collect();
        let parameters = match each {
            true => LatentParameters::with_noises(vec![2.5; p], loadings.as_ref(), &noises),
            false => LatentParameters::new(vec![2.5; p], loadings.as_ref(), 0.4),
        };
        let parameters = Arc::new(parameters.unwrap());
        let none = || Latent::empty(Arc::clone(&parameters));
        let whole = of(none(), &x, &(0..n), &w);
        let (mut updated, mut reversed, mut identity) = (none(), none(), none());
        let parts = cuts(seed, n);
        parts.iter().for_each(|part| updated.update(&chunk(&x, part, &w)).unwrap());
        parts.iter().rev().for_each(|part| reversed.merge(&of(none(), &x, part, &w)).unwrap());
        identity.merge(&whole).unwrap();
        prop_assert_eq!(&identity, &whole);
        identity.merge(&none()).unwrap();
        prop_assert_eq!(&identity, &whole);
        for other in [updated, reversed] {
            relative(other.log_likelihood(), whole.log_likelihood(), 1e-12, "likelihood");
            relative(other.weight(), whole.weight(), 1e-13, "weight");
            let (a, b) = (covary::algorithm::em_step(&other), covary::algorithm::em_step(&whole));
            if let (Ok(a), Ok(b)) = (a, b) {
                close_matrix(&a.loadings(), &b.loadings(), 1e-8, "the step that follows");
                (0..p).for_each(|j| relative(a.noise_variance(j), b.noise_variance(j), 1e-7, "its noise"));
            }
        }
    }
}

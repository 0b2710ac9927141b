//! The laws of evidence: a commutative monoid, whatever the chunks, the order and the weights.

use std::sync::Arc;

use crate::common::*;
use covary::Ppca;
use covary::data::{Chunk, Order, RowSource, RowStream};
use covary::error::Result;
use covary::evidence::{Accumulator, Clusters, Moments, Sketch, gather, gather_stream};
use covary::linalg::Mat;
use covary::persist::Portable;
use proptest::prelude::*;

/// What a test needs to know about evidence: an empty one, and its numbers with their sizes.
trait Evidence: Accumulator + Portable + Clone {
    fn none(p: usize) -> Self;
    /// Rows, weight, mean and second moments.
    fn numbers(&self) -> (usize, f64, Vec<f64>, Vec<f64>);
    /// The same from the definition.
    fn by_definition(x: &Mat<f64>, weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>);
}

fn block(p: usize) -> Mat<f64> {
    normal_matrix(p, 3, &mut Rng(1234))
}

impl Evidence for Moments {
    fn none(p: usize) -> Self {
        Self::empty(p)
    }
    fn numbers(&self) -> (usize, f64, Vec<f64>, Vec<f64>) {
        let s = self.scatter_lower();
        let lower = (0..s.nrows()).flat_map(|i| (0..=i).map(move |j| s[(i, j)])).collect();
        (self.rows(), self.weight(), self.mean().to_vec(), lower)
    }
    fn by_definition(x: &Mat<f64>, weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let (mean, c) = mean_and_covariance(x, weights);
        let total = weights.map_or(x.nrows() as f64, |w| w.iter().sum());
        let c = &c;
        (mean, (0..x.ncols()).flat_map(|i| (0..=i).map(move |j| total * c[(i, j)])).collect())
    }
}

impl Evidence for Sketch {
    fn none(p: usize) -> Self {
        Self::empty(Arc::new(block(p)))
    }
    fn numbers(&self) -> (usize, f64, Vec<f64>, Vec<f64>) {
        let y = self.image().to_owned();
        let mut numbers = vec![self.trace()];
        (0..y.nrows()).for_each(|i| numbers.extend(row(&y, i)));
        (self.rows(), self.weight(), self.mean().to_vec(), numbers)
    }
    fn by_definition(x: &Mat<f64>, weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let (mean, c) = mean_and_covariance(x, weights);
        let total = weights.map_or(x.nrows() as f64, |w| w.iter().sum());
        let p = x.ncols();
        let b = block(p);
        let mut numbers = vec![total * (0..p).map(|j| c[(j, j)]).sum::<f64>()];
        for i in 0..p {
            let image = |k: usize| total * (0..p).map(|j| c[(i, j)] * b[(j, k)]).sum::<f64>();
            numbers.extend((0..3).map(image));
        }
        (mean, numbers)
    }
}

/// Two centres.
fn centres(p: usize) -> Mat<f64> {
    Mat::from_fn(2, p, |k, j| k as f64 * 2.0 + 0.5 * j as f64)
}

impl Evidence for Clusters {
    fn none(p: usize) -> Self {
        Self::empty(centres(p).as_ref())
    }
    fn numbers(&self) -> (usize, f64, Vec<f64>, Vec<f64>) {
        let (w, m) = (self.weight(), self.means());
        let all = w[0] + w[1];
        let mean = |j: usize| if all > 0.0 { m[(0, j)] + w[1] / all * (m[(1, j)] - m[(0, j)]) } else { 0.0 };
        (self.rows(), all, (0..m.ncols()).map(mean).collect(), self.within())
    }
    fn by_definition(x: &Mat<f64>, weights: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let c = centres(x.ncols());
        let square =
            |i: usize, k: usize| (0..x.ncols()).map(|j| (x[(i, j)] - c[(k, j)]).powi(2)).sum::<f64>();
        let mut within = vec![0.0; 2];
        for i in 0..x.nrows() {
            let (first, second) = (square(i, 0), square(i, 1));
            within[usize::from(second < first)] += weights.map_or(1.0, |w| w[i]) * first.min(second);
        }
        (mean_and_covariance(x, weights).0, within)
    }
}

fn chunk<'a>(x: &'a Mat<f64>, rows: std::ops::Range<usize>, weights: Option<&'a [f64]>) -> Chunk<'a> {
    let part = chunk_of(x.subrows(rows.start, rows.len()), rows.start);
    match weights {
        None => part,
        Some(w) => part.with_weights(&w[rows]).unwrap(),
    }
}

fn of<E: Evidence>(x: &Mat<f64>, weights: Option<&[f64]>) -> E {
    let mut evidence = E::none(x.ncols());
    evidence.update(&chunk(x, 0..x.nrows(), weights)).unwrap();
    evidence
}

fn merged<E: Evidence>(a: &E, b: &E) -> E {
    let mut out = a.clone();
    out.merge(b).unwrap();
    out
}

/// How far second moments may differ: by rounding of their own size, and by that of the means (ε·|m|), which a merge
/// multiplies by the distance between them.
fn allowed(weight: f64, mean: &[f64], second: &[f64]) -> f64 {
    let size = second.iter().fold(1e-300, |a: f64, b| a.max(b.abs()));
    let mean = mean.iter().fold(0.0, |a: f64, b| a.max(b.abs() * f64::EPSILON));
    1e-13 * size + 4.0 * mean * (size * weight).sqrt() + weight * mean * mean
}

/// Equal up to rounding.
#[track_caller]
fn same<E: Evidence>(a: &E, b: &E, what: &str) {
    let ((na, wa, ma, sa), (nb, wb, mb, sb)) = (a.numbers(), b.numbers());
    assert_eq!(na, nb, "{what}: rows");
    relative(wa, wb, 1e-14, (what, "weight"));
    let size = ma.iter().chain(&mb).fold(1.0, |a: f64, b| a.max(b.abs()));
    close_all(&ma, &mb, 1e-14 * size, (what, "mean"));
    close_all(&sa, &sb, allowed(wa, &ma, &sa), (what, "second moments"));
}

fn bitwise<E: Evidence>(a: &E, b: &E) -> bool {
    let ((na, wa, ma, sa), (nb, wb, mb, sb)) = (a.numbers(), b.numbers());
    na == nb && wa.to_bits() == wb.to_bits() && bits(&ma) == bits(&mb) && bits(&sa) == bits(&sb)
}

/// Rows of any size around a mean of any size.
fn rows(seed: u64, n: usize, p: usize, offset: f64) -> Mat<f64> {
    let mut rng = Rng(seed);
    let x = normal_matrix(n, p, &mut rng);
    Mat::from_fn(n, p, |i, j| offset + (1 + j) as f64 * x[(i, j)])
}

fn laws<E: Evidence>(seed: u64, sizes: [usize; 3], p: usize, offset: f64) {
    let [a, b, c] = [0, 1, 2].map(|k| of::<E>(&rows(seed ^ k as u64, sizes[k], p, offset), None));
    let none = E::none(p);
    assert!(bitwise(&merged(&a, &none), &a), "right identity");
    assert!(bitwise(&merged(&none, &a), &a), "left identity");
    assert!(bitwise(&merged(&none, &none), &none), "empty and empty");
    same(&merged(&a, &b), &merged(&b, &a), "commutativity");
    same(&merged(&merged(&a, &b), &c), &merged(&a, &merged(&b, &c)), "associativity");
}

fn chunking<E: Evidence>(seed: u64, n: usize, p: usize, offset: f64) {
    let x = rows(seed, n, p, offset);
    let whole = of::<E>(&x, None);
    let (mean, second) = E::by_definition(&x, None);
    let (_, _, found_mean, found) = whole.numbers();
    close_all(&found_mean, &mean, 1e-14 * (offset.abs() + 10.0), "mean by definition");
    close_all(&found, &second, allowed(n as f64, &mean, &second), "by definition");
    let mut rng = Rng(seed ^ 9);
    let (mut updated, mut merges) = (E::none(p), E::none(p));
    let mut start = 0;
    while start < n {
        let len = 1 + rng.below(n - start);
        updated.update(&chunk(&x, start..start + len, None)).unwrap();
        let mut part = E::none(p);
        part.update(&chunk(&x, start..start + len, None)).unwrap();
        merges.merge(&part).unwrap();
        start += len;
    }
    same(&updated, &whole, "chunks by update");
    same(&merges, &whole, "chunks by merge");
    let empty = chunk(&x, 0..0, None);
    let before = updated.clone();
    updated.update(&empty).unwrap();
    assert!(bitwise(&before, &updated), "a chunk without rows changes nothing");
}

fn weights<E: Evidence>(seed: u64, n: usize, p: usize, offset: f64) {
    let x = rows(seed, n, p, offset);
    let mut rng = Rng(seed ^ 5);
    let counts: Vec<usize> = (0..n).map(|i| if i == 0 { 2 } else { rng.below(4) }).collect();
    let w: Vec<f64> = counts.iter().map(|c| *c as f64).collect();
    let weighted = of::<E>(&x, Some(&w));
    let repeated: Vec<usize> = (0..n).flat_map(|i| vec![i; counts[i]]).collect();
    let y = Mat::from_fn(repeated.len(), p, |i, j| x[(repeated[i], j)]);
    let (_, weight, mean, second) = weighted.numbers();
    let other = of::<E>(&y, None);
    let (_, expected_weight, expected_mean, expected) = other.numbers();
    relative(weight, expected_weight, 1e-14, "total weight");
    close_all(&mean, &expected_mean, 1e-14 * (offset.abs() + 10.0), "mean of repeated rows");
    close_all(&second, &expected, allowed(weight, &mean, &expected), "repeated rows");
    assert_eq!(weighted.numbers().0, counts.iter().filter(|c| **c > 0).count(), "rows of positive weight");
    let kept: Vec<usize> = (0..n).filter(|i| counts[*i] > 0).collect();
    let z = Mat::from_fn(kept.len(), p, |i, j| x[(kept[i], j)]);
    let kept_weights: Vec<f64> = kept.iter().map(|i| w[*i]).collect();
    same(&weighted, &of::<E>(&z, Some(&kept_weights)), "zero weights are absent rows");
    let zeros = vec![0.0; n];
    assert!(bitwise(&of::<E>(&x, Some(&zeros)), &E::none(p)), "only zero weights");
    let fractional: Vec<f64> = (0..n).map(|_| 0.1 + rng.uniform()).collect();
    let (mean, second) = E::by_definition(&x, Some(&fractional));
    let (_, _, found_mean, found) = of::<E>(&x, Some(&fractional)).numbers();
    close_all(&found_mean, &mean, 1e-14 * (offset.abs() + 10.0), "weighted mean by definition");
    close_all(&found, &second, allowed(2.0 * n as f64, &mean, &second), "weighted by definition");
}

fn bytes<E: Evidence>(seed: u64, n: usize, p: usize) {
    let names: Vec<String> = (0..p).map(|j| format!("feature \"{j}\", µ")).collect();
    let w: Vec<f64> = (0..n).map(|i| (i % 3) as f64 + 0.25).collect();
    let evidence = of::<E>(&rows(seed, n, p, 1e3), Some(&w));
    let written = evidence.to_bytes(&names).unwrap();
    assert_eq!(written, evidence.clone().to_bytes(&names).unwrap(), "the same evidence, the same bytes");
    let read = E::from_bytes(&written).unwrap();
    assert_eq!(read.features, names);
    assert!(bitwise(&read.evidence, &evidence), "every bit comes back");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn monoid(seed: u64, a in 0usize..12, b in 0usize..12, c in 0usize..80, p in 1usize..6, k in 0usize..3) {
        let offset = [0.0, 10.0, -1e6][k];
        laws::<Moments>(seed, [a, b, c], p, offset);
        laws::<Sketch>(seed, [a, b, c], p, offset);
        laws::<Clusters>(seed, [a, b, c], p, offset);
    }

    #[test]
    fn any_chunks(seed: u64, n in 1usize..200, p in 1usize..6, k in 0usize..3) {
        let offset = [0.0, 10.0, -1e6][k];
        chunking::<Moments>(seed, n, p, offset);
        chunking::<Sketch>(seed, n, p, offset);
        chunking::<Clusters>(seed, n, p, offset);
    }

    #[test]
    fn weights_are_repetitions(seed: u64, n in 1usize..100, p in 1usize..6, k in 0usize..3) {
        let offset = [0.0, 10.0, -1e6][k];
        weights::<Moments>(seed, n, p, offset);
        weights::<Sketch>(seed, n, p, offset);
        weights::<Clusters>(seed, n, p, offset);
    }

    #[test]
    fn bytes_and_back(seed: u64, n in 0usize..20, p in 1usize..6) {
        bytes::<Moments>(seed, n, p);
        bytes::<Sketch>(seed, n, p);
        bytes::<Clusters>(seed, n, p);
    }

    /// Shows 4 of the foundation: any split and order of the rows gives the same model within 1e-12 relative.
    #[test]
    fn any_split_and_order_give_the_same_model(seed: u64, q in 1usize..6, weighted: bool) {
        let mut rng = Rng(seed);
        let (n, p) = (300, 6);
        let x = rows_with_deviations(n, &falling(p, 0.7), 5.0, &mut rng);
        let w: Vec<f64> = (0..n).map(|_| if weighted { 0.5 + rng.uniform() } else { 1.0 }).collect();
        let direct = Ppca::new(q).fit_moments(&of::<Moments>(&x, Some(&w))).unwrap();
        let order = rng.shuffled(n);
        let y = Mat::from_fn(n, p, |i, j| x[(order[i], j)]);
        let v: Vec<f64> = order.iter().map(|i| w[*i]).collect();
        let mut parts: Vec<Moments> = Vec::new();
        let mut start = 0;
        while start < n {
            let len = 1 + rng.below((n - start).min(60));
            let mut part = Moments::empty(p);
            part.update(&chunk(&y, start..start + len, Some(&v))).unwrap();
            parts.push(part);
            start += len;
        }
        while parts.len() > 1 {
            let other = parts.swap_remove(rng.below(parts.len()));
            let at = rng.below(parts.len());
            parts[at].merge(&other).unwrap();
        }
        let split = Ppca::new(q).fit_moments(&parts[0]).unwrap();
        let (a, b) = (&direct.spectrum().unwrap(), &split.spectrum().unwrap());
        a.eigenvalues().iter().zip(b.eigenvalues()).for_each(|(a, b)| relative(*a, *b, 1e-12, "eigenvalue"));
        relative(a.noise_variance(), b.noise_variance(), 1e-12, "noise variance");
        relative(a.log_likelihood(), b.log_likelihood(), 1e-12, "log-likelihood");
        relative(a.total_variance(), b.total_variance(), 1e-12, "total variance");
        close_all(a.mean(), b.mean(), 1e-12 * 5.0, "mean");
        let size = max_abs(direct.model.loadings());
        close_matrix(direct.model.loadings(), split.model.loadings(), 1e-12 * size, "loadings");
    }
}

/// Rows that pass once, in chunks of the sizes given.
struct Stream {
    x: Mat<f64>,
    at: usize,
    size: usize,
}

impl RowStream for Stream {
    fn n_features(&self) -> usize {
        self.x.ncols()
    }
    fn next_chunk(&mut self) -> Result<Option<Chunk<'static>>> {
        let len = self.size.min(self.x.nrows() - self.at);
        if len == 0 {
            return Ok(None);
        }
        let cells = (self.at..self.at + len).flat_map(|i| row(&self.x, i)).collect();
        let chunk = Chunk::from_rows(self.at, cells, self.x.ncols(), Order::Rows)?;
        self.at += len;
        Ok(Some(chunk))
    }
}

#[test]
fn a_stream_gives_the_evidence_of_a_grid() {
    for (n, size) in [(0, 5), (3, 5), (40, 5), (41, 5), (1000, 7), (5000, 100)] {
        let x = rows(3, n, 4, 100.0);
        let grid = gather(&table(&x) as &dyn RowSource, || Moments::empty(4), &Default::default()).unwrap();
        let mut stream = Stream { x: x.clone(), at: 0, size };
        let passed = gather_stream(&mut stream, || Moments::empty(4), &Default::default()).unwrap();
        same(&grid, &passed, "stream and grid");
    }
}

#[test]
fn an_owned_chunk_is_read_in_either_order() {
    let x = rows(8, 30, 3, 2.0);
    let by_rows: Vec<f64> = (0..30).flat_map(|i| row(&x, i)).collect();
    let by_columns: Vec<f64> = (0..3).flat_map(|j| (0..30).map(move |i| (i, j))).map(|ij| x[ij]).collect();
    let expected = of::<Moments>(&x, None);
    for (cells, order) in [(by_rows, Order::Rows), (by_columns, Order::Columns)] {
        let mut found = Moments::empty(3);
        found.update(&Chunk::from_rows(0, cells, 3, order).unwrap()).unwrap();
        same(&found, &expected, "owned chunk");
    }
}

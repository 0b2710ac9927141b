//! Eigenvalues of covariances whose features differ by many orders of magnitude, each known to its own
//! accuracy.
//!
//! A covariance S = D C D, where D holds the deviations of the features and C is well conditioned, determines
//! even its smallest eigenvalues to about ε κ(C). Reduction to tridiagonal form loses all that lie below ε
//! λ₁. A Cholesky factor S = L Lᵀ keeps the scale of each feature, and so do Jacobi's rotations of the
//! columns of L, which end in L J = U Λ^½ \[DV92\].

use faer::linalg::solvers::{ColPivQr, Qr};
use serde::{Deserialize, Serialize};

use super::basis::descending;
use super::{Eigen, Mat, MatRef, comparable, max_abs_lower, power_of_two, symmetric_eigen};
use crate::error::Result;
use crate::parallel;

/// Sweeps over all pairs of columns; five to ten are usual.
const SWEEPS: usize = 60;
/// Cells of a factor from which pairs of columns are worth a thread each.
const LARGE: usize = 1 << 14;

/// The eigenvalues and vectors of a covariance (its lower triangle is read), each to the accuracy of its own
/// scale, and the features that others determine.
///
/// A feature of whose variance at most the share `negligible` is left beside those of larger variance is
/// taken to be determined by them. Values beyond the rank are 0, and so are their vectors.
pub(crate) fn graded_eigen(lower: MatRef<'_, f64>, negligible: f64) -> (Eigen, Vec<Determined>) {
    let unit = power_of_two(max_abs_lower(lower));
    let PivotedFactor { columns, determined } = pivoted_factor(lower, unit, negligible, Order::LargestFirst);
    (padded(from_factor(columns, lower.nrows(), unit)), determined)
}

/// The eigenvalues and vectors of a covariance, each to its own scale where the variances are not comparable.
pub(crate) fn covariance_eigen(covariance: MatRef<'_, f64>) -> Result<Eigen> {
    match comparable((0..covariance.nrows()).map(|j| covariance[(j, j)])) {
        true => symmetric_eigen(covariance),
        false => Ok(graded_eigen(covariance, f64::EPSILON).0),
    }
}

/// A feature that is a linear combination of others, up to rounding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Determined {
    /// Which.
    pub(crate) feature: usize,
    /// The others, and how often each is in it.
    pub(crate) of: Vec<(usize, f64)>,
}

/// The same, of the covariance of features in which those that others determine have been replaced by what
/// the others leave of them.
pub(crate) fn graded_eigen_of_rests(
    lower: MatRef<'_, f64>,
    negligible: f64,
    replaced: &[Determined],
) -> Eigen {
    let unit = power_of_two(max_abs_lower(lower));
    let mut columns = pivoted_factor(lower, unit, negligible, Order::LargestFirst).columns;
    for column in &mut columns {
        // x = rest + Σ b x, and so the rows of L; none of the others has been replaced itself.
        for Determined { feature, of } in replaced {
            column[*feature] += of.iter().map(|(j, b)| b * column[*j]).sum::<f64>();
        }
    }
    padded(from_factor(columns, lower.nrows(), unit))
}

/// The same of XᵀX for rows X (n × p), without forming it: the values that are not 0, and their vectors (p ×
/// r). The share `negligible` is one of the length of a feature, not of its square.
pub(crate) fn graded_right_singular(rows: MatRef<'_, f64>, negligible: f64) -> Eigen {
    let p = rows.ncols();
    let unit = power_of_two(rows.norm_max());
    let sorted = large_rows_first(rows);
    let scaled = Mat::from_fn(rows.nrows(), p, |i, j| rows[(sorted[i], j)] / unit);
    let lengths: Vec<f64> = scaled.col_iter().map(|c| c.norm_l2()).collect();
    let qr = ColPivQr::new(scaled.as_ref());
    let (mut r, mut order) = (qr.thin_R().to_owned(), qr.P().arrays().0.to_vec()); // X[:, order] = Q R
    let size = r.nrows();
    let left = |r: &Mat<f64>, order: &[usize], k: usize| r[(k, k)].abs() > negligible * lengths[order[k]];
    // What is left of a column is updated, not computed, when the next one is chosen: one that is determined by
    // those before it may look longer than it is. Its row of R would hold a part of the columns behind it.
    for _ in 0..size {
        let (done, others): (Vec<usize>, Vec<usize>) =
            (0..p).partition(|k| *k < size && !left(&r, &order, *k));
        let determined_last = done.first().is_none_or(|first| others.iter().all(|k| k < first));
        if determined_last {
            break;
        }
        let places: Vec<usize> = others.into_iter().chain(done).collect();
        r = Qr::new(Mat::from_fn(size, p, |i, k| r[(i, places[k])]).as_ref()).thin_R().to_owned();
        order = places.into_iter().map(|k| order[k]).collect();
    }
    let column = |k: usize| {
        let mut column = vec![0.0; p];
        (k..p).for_each(|j| column[order[j]] = r[(k, j)]);
        column
    };
    let kept = (0..size).filter(|k| left(&r, &order, *k)).map(column).collect();
    from_factor(kept, p, unit * unit)
}

/// The rows in the order in which Householder's reflections keep the scale of each \[CH98\].
pub(super) fn large_rows_first(rows: MatRef<'_, f64>) -> Vec<usize> {
    let sizes: Vec<f64> = rows.row_iter().map(|row| row.norm_max()).collect();
    descending(&sizes)
}

/// The eigenvalues of L Lᵀ that are not 0, and their vectors (p × r), by rotating the columns of L (p × r)
/// alone: for a factor whose columns have about those directions already.
pub(crate) fn graded_columns(factor: MatRef<'_, f64>) -> Eigen {
    let (p, unit) = (factor.nrows(), power_of_two(factor.norm_max()));
    let columns = factor.col_iter().map(|c| c.iter().map(|x| x / unit).collect()).collect();
    from_factor(columns, p, unit * unit)
}

/// With p values and vectors, 0 beyond the rank.
pub(crate) fn padded(Eigen { mut values, vectors }: Eigen) -> Eigen {
    let p = vectors.nrows();
    values.resize(p, 0.0);
    Eigen {
        values,
        vectors: Mat::from_fn(p, p, |i, k| if k < vectors.ncols() { vectors[(i, k)] } else { 0.0 }),
    }
}

/// The features of a covariance that earlier ones determine: of whose variance at most the share `negligible`
/// is left beside those.
pub(crate) fn determined_by_earlier(lower: MatRef<'_, f64>, negligible: f64) -> Vec<Determined> {
    pivoted_factor(lower, 1.0, negligible, Order::AsTheyCome).determined
}

/// In which order features are taken.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    LargestFirst,
    AsTheyCome,
}

/// L with S = unit · L Lᵀ, and the features that have no column in it.
struct PivotedFactor {
    columns: Vec<Vec<f64>>,
    determined: Vec<Determined>,
}

fn pivoted_factor(lower: MatRef<'_, f64>, unit: f64, negligible: f64, order: Order) -> PivotedFactor {
    let p = lower.nrows();
    let mut rest = Mat::from_fn(p, p, |i, j| lower[(i.max(j), i.min(j))] / unit);
    let variances: Vec<f64> = (0..p).map(|j| rest[(j, j)]).collect();
    let (mut columns, mut pivots, mut determined): (Vec<Vec<f64>>, _, _) =
        (Vec::new(), Vec::new(), Vec::new());
    let mut waiting: Vec<usize> = (0..p).collect();
    loop {
        let (left, done) = waiting.iter().partition(|j| rest[(**j, **j)] > negligible * variances[**j]);
        waiting = left;
        let done: Vec<usize> = done;
        let varying = done.into_iter().filter(|j| variances[*j] > 0.0);
        determined.extend(varying.map(|j| combination(&columns, &pivots, j)));
        let next = match order {
            Order::LargestFirst => {
                waiting.iter().copied().max_by(|a, b| rest[(*a, *a)].total_cmp(&rest[(*b, *b)]))
            }
            Order::AsTheyCome => waiting.first().copied(),
        };
        let Some(pivot) = next else { return PivotedFactor { columns, determined } };
        let root = rest[(pivot, pivot)].sqrt();
        let mut column = vec![0.0; p];
        waiting.iter().for_each(|i| column[*i] = rest[(*i, pivot)] / root);
        for k in &waiting {
            let (along, rest) = (column[*k], rest.col_as_slice_mut(*k));
            waiting.iter().for_each(|i| rest[*i] -= column[*i] * along);
        }
        waiting.retain(|j| *j != pivot);
        columns.push(column);
        pivots.push(pivot);
    }
}

/// A feature as a combination of the pivots: its row of L is that combination of theirs.
fn combination(columns: &[Vec<f64>], pivots: &[usize], feature: usize) -> Determined {
    let mut of: Vec<(usize, f64)> = Vec::new();
    for (column, pivot) in columns.iter().zip(pivots).rev() {
        let explained: f64 = of.iter().map(|(j, b)| b * column[*j]).sum();
        of.push((*pivot, (column[feature] - explained) / column[*pivot]));
    }
    Determined { feature, of }
}

/// The eigenvalues and vectors of `unit` · L Lᵀ from the columns of L.
fn from_factor(mut columns: Vec<Vec<f64>>, p: usize, unit: f64) -> Eigen {
    orthogonalise(&mut columns);
    let squares: Vec<f64> = columns.iter().map(|c| dot(c, c)).collect();
    let pairs: Vec<(f64, &Vec<f64>)> =
        descending(&squares).into_iter().map(|k| (squares[k], &columns[k])).collect();
    let mut vectors = Mat::zeros(p, pairs.len());
    for (k, (square, column)) in pairs.iter().enumerate() {
        let length = square.sqrt().max(f64::MIN_POSITIVE);
        vectors.col_as_slice_mut(k).iter_mut().zip(column.iter()).for_each(|(u, x)| *u = x / length);
    }
    Eigen { values: pairs.iter().map(|(square, _)| square * unit).collect(), vectors }
}

/// Rotates pairs of columns until all are orthogonal; the order of the pairs does not depend on threads.
fn orthogonalise(columns: &mut [Vec<f64>]) {
    let (r, p) = (columns.len(), columns.first().map_or(0, Vec::len));
    let enough = f64::EPSILON * (p as f64).sqrt();
    if r < 2 {
        return;
    }
    // Round robin: each of the r − 1 rounds pairs every column with another one.
    let even = r.next_multiple_of(2);
    let mut order: Vec<usize> = (0..even).collect();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for _ in 1..even {
            let pairs = (0..even / 2).map(|k| (order[k], order[even - 1 - k])).filter(|(a, b)| a.max(b) < &r);
            turned |= rotate_pairs(columns, pairs.collect(), enough);
            order[1..].rotate_right(1);
        }
        if !turned {
            return;
        }
    }
}

/// Makes the two columns of each pair orthogonal; whether any was not.
fn rotate_pairs(columns: &mut [Vec<f64>], pairs: Vec<(usize, usize)>, enough: f64) -> bool {
    let large = columns.len() * columns.first().map_or(0, Vec::len) >= LARGE;
    let mut taken: Vec<(Vec<f64>, Vec<f64>)> = pairs
        .iter()
        .map(|(a, b)| (std::mem::take(&mut columns[*a]), std::mem::take(&mut columns[*b])))
        .collect();
    let turn = |(a, b): &mut (Vec<f64>, Vec<f64>)| rotate(a, b, enough);
    let turned = match large {
        true => parallel::map_mut(&mut taken, |_, pair| turn(pair)).contains(&true),
        false => taken.iter_mut().fold(false, |turned, pair| turn(pair) | turned),
    };
    for ((a, b), (left, right)) in pairs.into_iter().zip(taken) {
        (columns[a], columns[b]) = (left, right);
    }
    turned
}

/// Jacobi's rotation of two columns; whether they were not orthogonal yet.
fn rotate(a: &mut [f64], b: &mut [f64], enough: f64) -> bool {
    let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
    if ab.abs() <= enough * aa.sqrt() * bb.sqrt() {
        return false;
    }
    let zeta = (bb - aa) / (2.0 * ab);
    let tangent = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    pulp::Arch::new().dispatch(|| turn(a, b, cosine, sine));
    true
}

#[inline(always)]
fn turn(a: &mut [f64], b: &mut [f64], cosine: f64, sine: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}

/// Σ ab, eight sums side by side.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    pulp::Arch::new().dispatch(|| lanes_dot(a, b))
}

/// Eight sums side by side, so that the additions do not wait for each other.
#[inline(always)]
fn lanes_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::orthonormality_error;

    /// Hilbert-like, but well conditioned once scaled: dᵢdⱼ (δᵢⱼ + 1/(2 + |i − j|)).
    fn graded(deviations: &[f64]) -> Mat<f64> {
        let p = deviations.len();
        let correlation =
            |i: usize, j: usize| f64::from(u8::from(i == j)) + 1.0 / (2.0 + i.abs_diff(j) as f64);
        Mat::from_fn(p, p, |i, j| deviations[i] * deviations[j] * correlation(i, j))
    }

    /// Product of all eigenvalues: the determinant, which scales by each dᵢ².
    #[test]
    fn the_determinant_is_kept_at_any_ratio_of_scales() {
        let (one, _) = graded_eigen(graded(&[1.0; 5]).as_ref(), 1e-14);
        let determinant: f64 = one.values.iter().product();
        for ratio in [1e3, 1e6, 1e12] {
            let deviations = [1.0, ratio, 3.0, 1.0 / ratio, 0.5];
            let scale: f64 = deviations.iter().map(|d| d * d).product();
            let (found, _) = graded_eigen(graded(&deviations).as_ref(), 1e-14);
            let product: f64 = found.values.iter().product();
            assert!((product / (determinant * scale) - 1.0).abs() < 1e-13, "{ratio}: {product}");
            assert!(orthonormality_error(found.vectors.as_ref()) < 1e-14);
        }
    }

    #[test]
    fn rows_and_their_covariance_agree() {
        let (n, p) = (40, 6);
        let deviations = [1e9, 1.0, 2.0, 1e-5, 4.0, 0.3];
        let wave = |i: usize, j: usize| ((i * (2 * j + 3)) as f64 * 0.7 + j as f64).sin() * deviations[j];
        for repeated in [false, true] {
            // The last feature repeats the second, in another unit.
            let x = Mat::from_fn(n, p, |i, j| if repeated && j == 5 { 7.0 * wave(i, 1) } else { wave(i, j) });
            let products = Mat::from_fn(p, p, |a, b| (0..n).map(|i| x[(i, a)] * x[(i, b)]).sum());
            let (of_rows, of_products) =
                (graded_right_singular(x.as_ref(), 1e-13), graded_eigen(products.as_ref(), 1e-13).0);
            assert_eq!(of_rows.values.len() == 5, repeated);
            for (a, b) in of_rows.values.iter().zip(&of_products.values) {
                assert!((a - b).abs() <= 1e-12 * b, "{a} {b}");
            }
            assert_eq!(of_products.values[5] == 0.0, repeated);
        }
    }
}

//! Inner products of the centred rows with each other: the n × n side of the data, for n < p.

use super::shifted::{ShiftedBlock, is_centred, provisional_mean};
use crate::data::{Chunk, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, lower_crossproduct, mirror_lower, set_product};
use crate::parallel;

/// Features that are held at once, for all rows.
const PANEL: usize = 128;
/// Tasks that each add up a run of panels before results are merged: fixes the order of the sums.
const TASKS: usize = 8;

/// The Gram matrix of centred, weighted rows: entry (i, k) is √wᵢwₖ (xᵢ − m)ᵀ(xₖ − m).
///
/// It has the eigenvalues of the scatter, and its eigenvectors v give those of the scatter as Xᵀv/‖Xᵀv‖
/// (PRML 12.1.4): n × n work where p × p would be too much.
#[derive(Debug, Clone)]
pub struct Gram {
    /// Rows of positive weight.
    pub rows: usize,
    /// Total weight.
    pub weight: f64,
    /// Weighted mean (p).
    pub mean: Vec<f64>,
    /// The inner products (n × n), both triangles.
    pub products: Mat<f64>,
}

impl Gram {
    /// Of all rows of a table that lies in memory as one chunk.
    ///
    /// # Errors
    /// When a cell is not finite; the error names it.
    pub fn of(chunk: &Chunk<'_>) -> Result<Self> {
        let gram = with_view!(chunk.cells(), view => Self::of_view(view, chunk.weights()));
        if gram.is_finite() {
            return Ok(gram);
        }
        Err(chunk.explain_not_finite("a covariance").unwrap_or(Error::Scale))
    }

    fn of_view<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Self {
        let (n, p) = (view.nrows(), view.ncols());
        let mut shift = provisional_mean(view, weights);
        let plain = weights.is_none() && is_centred(view, &shift);
        if plain {
            shift.fill(0.0);
        }
        let features = PANEL * p.div_ceil(PANEL * TASKS).max(1); // of a task
        let of_features = |part: usize| {
            let (start, end) = (part * features, ((part + 1) * features).min(p));
            match plain {
                true => plain_task(view.subcols(start, end - start)),
                false => task(view.subcols(start, end - start), weights, &shift[start..end]),
            }
        };
        let sum = parallel::tree(0..p.div_ceil(features), of_features, joined);
        let (offset, products) = sum.unwrap_or_else(|| (Vec::new(), Mat::zeros(n, n)));
        let roots: Vec<f64> = (0..n).map(|i| weights.map_or(1.0, |w| w[i].sqrt())).collect();
        let weight = weights.map_or(n as f64, |w| w.iter().sum());
        Self {
            rows: weights.map_or(n, |w| w.iter().filter(|w| **w > 0.0).count()),
            weight,
            mean: shift.iter().zip(offset).map(|(s, d)| s + d / weight).collect(),
            products: recentred(products, &roots, weight),
        }
    }

    fn is_finite(&self) -> bool {
        (0..self.products.nrows()).all(|i| self.products[(i, i)].is_finite())
            && self.mean.iter().all(|m| m.is_finite())
    }
}

/// Sums of the shifted features, and their share of the inner products.
type Part = (Vec<f64>, Mat<f64>);

/// Of the features of both parts.
fn joined((mut sums, mut products): Part, (more, added): Part) -> Part {
    sums.extend(more);
    products += added;
    (sums, products)
}

fn task<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>, shift: &[f64]) -> Part {
    let (n, p) = (view.nrows(), view.ncols());
    let mut products = Mat::zeros(n, n);
    let mut sums = Vec::with_capacity(p);
    let mut room: Option<ShiftedBlock<f64>> = None;
    for start in (0..p).step_by(PANEL) {
        let end = (start + PANEL).min(p);
        // In double precision always: the square of a condition number leaves single nothing to say.
        Real::with_wide(view.subcols(start, end - start), |panel| {
            let block = room.get_or_insert_with(|| ShiftedBlock::new(n, &shift[start..end], 1.0, panel));
            block.shift_to(&shift[start..end]);
            lower_crossproduct(products.as_mut(), block.fill(panel, weights).transpose(), true);
            sums.extend(block.sum());
        });
    }
    (sums, products)
}

/// The same for features that lie around 0: their cells are multiplied where they are.
fn plain_task<T: Real>(view: MatRef<'_, T>) -> Part {
    let (n, p) = (view.nrows(), view.ncols());
    let mut products = Mat::zeros(n, n);
    let mut sums = Mat::zeros(1, p);
    let ones = Mat::from_fn(1, n, |_, _| 1.0);
    for start in (0..p).step_by(2 * PANEL) {
        let len = (2 * PANEL).min(p - start);
        Real::with_wide(view.subcols(start, len), |panel| {
            lower_crossproduct(products.as_mut(), panel.transpose(), true);
            set_product(sums.as_mut().subcols_mut(start, len), ones.as_ref(), panel);
        });
    }
    (sums.row(0).iter().copied().collect(), products)
}

/// Moves the origin of inner products K = X Xᵀ (lower triangle, rows carry √w) to the weighted mean.
///
/// With r = √w and v = K r / n: K − v rᵀ − r vᵀ + (rᵀv / n) r rᵀ.
fn recentred(mut products: Mat<f64>, roots: &[f64], weight: f64) -> Mat<f64> {
    mirror_lower(&mut products);
    let n = roots.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let v: Vec<f64> = (0..n).map(|i| dot(products.col_as_slice(i), roots) / weight).collect();
    let between = dot(roots, &v) / weight;
    for (j, (root, along)) in roots.iter().zip(&v).enumerate() {
        let column = products.col_as_slice_mut(j).iter_mut();
        let terms = roots.iter().zip(&v);
        column.zip(terms).for_each(|(k, (r, v))| *k += r * (between * root - along) - v * root);
    }
    mirror_lower(&mut products); // exactly symmetric
    products
}

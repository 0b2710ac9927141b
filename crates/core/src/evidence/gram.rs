//! Inner products of the centred rows with each other: the n × n side of the data, for n < p.

use rayon::prelude::*;

use crate::data::{Chunk, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, lower_crossproduct, mirror_lower};

/// Features whose centred values are held at once.
const PANEL: usize = 256;
/// Panels that one task adds up before results are merged: fixes the order of the sums.
const PANELS_PER_TASK: usize = 8;

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
        let n = gram.products.nrows();
        if (0..n).any(|i| !gram.products[(i, i)].is_finite()) {
            return Err(chunk.explain_not_finite("a covariance").unwrap_or(Error::Scale));
        }
        Ok(gram)
    }

    fn of_view<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Self {
        let (n, p) = (view.nrows(), view.ncols());
        let starts: Vec<usize> = (0..p).step_by(PANEL * PANELS_PER_TASK).collect();
        let (mean, mut products) = tree(&starts, &|start| {
            let end = (start + PANEL * PANELS_PER_TASK).min(p);
            task(view.subcols(start, end - start), weights)
        })
        .unwrap_or_else(|| (Vec::new(), Mat::zeros(n, n)));
        mirror_lower(&mut products);
        let rows = weights.map_or(n, |w| w.iter().filter(|w| **w > 0.0).count());
        let weight = weights.map_or(n as f64, |w| w.iter().sum());
        Self { rows, weight, mean, products }
    }
}

type Part = (Vec<f64>, Mat<f64>);

/// Sums the tasks over a fixed binary tree, so that rounding does not depend on the threads.
fn tree(starts: &[usize], f: &(impl Fn(usize) -> Part + Sync)) -> Option<Part> {
    match starts {
        [] => None,
        [start] => Some(f(*start)),
        _ => {
            let (left, right) = starts.split_at(starts.len() / 2);
            let (a, b) = rayon::join(|| tree(left, f), || tree(right, f));
            let ((mut mean, mut products), (more, added)) = (a?, b?);
            mean.extend(more);
            products += added;
            Some((mean, products))
        }
    }
}

/// Means of some features and their share of the inner products.
fn task<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Part {
    let (n, p) = (view.nrows(), view.ncols());
    let mut products = Mat::zeros(n, n);
    let mut means = Vec::with_capacity(p);
    for start in (0..p).step_by(PANEL) {
        let panel = view.subcols(start, PANEL.min(p - start));
        let mut centred = widened(panel); // (features × n)
        means.extend(centre_features(&mut centred, weights));
        lower_crossproduct(products.as_mut(), centred.as_ref(), true);
    }
    (means, products)
}

/// A double-precision copy with the rows of the panel in its columns.
fn widened<T: Real>(panel: MatRef<'_, T>) -> Mat<f64> {
    let mut out = Mat::zeros(panel.ncols(), panel.nrows());
    for (i, mut column) in out.col_iter_mut().enumerate() {
        column.as_mut().iter_mut().zip(panel.row(i).iter()).for_each(|(o, x)| *o = x.to_f64());
    }
    out
}

/// Subtracts each feature's weighted mean and multiplies rows by √w; the means come back.
fn centre_features(features: &mut Mat<f64>, weights: Option<&[f64]>) -> Vec<f64> {
    let (p, n) = (features.nrows(), features.ncols());
    let total: f64 = weights.map_or(n as f64, |w| w.iter().sum());
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    // Around the first row: a large common value must not swallow the differences.
    let first: Vec<f64> = (0..p).map(|j| features[(j, 0)]).collect();
    let mut offset = vec![0.0; p];
    for i in 0..n {
        let (w, column) = (weight(i) / total, features.col(i));
        let terms = column.iter().zip(&first);
        offset.iter_mut().zip(terms).for_each(|(o, (x, f))| *o += w * (x - f));
    }
    let mean: Vec<f64> = first.iter().zip(&offset).map(|(f, o)| f + o).collect();
    features.par_col_iter_mut().with_min_len(n).enumerate().for_each(|(i, column)| {
        let root = weight(i).sqrt();
        column.iter_mut().zip(&mean).for_each(|(x, m)| *x = (*x - m) * root);
    });
    mean
}

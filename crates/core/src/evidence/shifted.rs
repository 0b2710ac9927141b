//! Rows of a chunk in blocks that stay in cache, with a provisional mean subtracted before anything is squared.
//!
//! Squaring first and subtracting `n·mean·meanᵀ` afterwards loses everything when the mean is large; subtracting a
//! value near the mean first loses nothing.

use crate::data::Real;
use crate::linalg::{Mat, MatRef, power_of_two};

/// Bytes of a block: what stays in a core's own cache beside the result.
const BLOCK_BYTES: usize = 640 << 10;
/// Rows of a block are kept between these, whatever the width.
const BLOCK_ROWS: std::ops::RangeInclusive<usize> = 32..=512;

/// Sums of the shifted rows of a chunk.
pub(super) struct ShiftedSum {
    pub(super) rows: usize,
    pub(super) weight: f64,
    pub(super) total: Vec<f64>,
}

/// A provisional mean: that of the first rows, rounded to the precision of the cells.
pub(super) fn provisional_mean<T: Real>(view: MatRef<'_, T>) -> Vec<f64> {
    let rows = view.nrows().min(64);
    // Around the first row: a feature that is constant must have exactly its value for a mean.
    let first = |j: usize| view[(0, j)].to_f64();
    let mean =
        |j: usize| first(j) + (1..rows).map(|i| view[(i, j)].to_f64() - first(j)).sum::<f64>() / rows as f64;
    let round = |m: f64| if m.is_finite() { T::from_f64(m).to_f64() } else { 0.0 };
    (0..view.ncols()).map(|j| if rows == 0 { 0.0 } else { round(mean(j)) }).collect()
}

/// A power of two near the size of the first deviations: single precision would overflow when squared without it.
pub(super) fn provisional_unit<T: Real>(view: MatRef<'_, T>, shift: &[f64]) -> f64 {
    let deviations = |i: usize| view.row(i).iter().zip(shift).map(|(x, s)| (x.to_f64() - s).abs());
    let largest = |rows| (0..rows).flat_map(deviations).filter(|d| d.is_finite()).fold(0.0, f64::max);
    // First rows that are all the same say nothing about the others.
    let found = largest(view.nrows().min(64));
    power_of_two(if found > 0.0 { found } else { largest(view.nrows()) })
}

/// Calls `f` with blocks of `(x − shift) · √weight / unit` (rows × p), in order.
pub(super) fn for_each_block<T: Real>(
    view: MatRef<'_, T>,
    weights: Option<&[f64]>,
    shift: &[f64],
    unit: f64,
    mut f: impl FnMut(MatRef<'_, T>),
) -> ShiftedSum {
    let (n, p) = (view.nrows(), view.ncols());
    let rows = (BLOCK_BYTES / (p.max(1) * size_of::<T>())).clamp(*BLOCK_ROWS.start(), *BLOCK_ROWS.end());
    let rows = rows.min(n.max(1));
    let shift: Vec<T> = shift.iter().map(|s| T::from_f64(*s)).collect();
    let mut sum = ShiftedSum { rows: n, weight: n as f64, total: vec![0.0; p] };
    if let Some(w) = weights {
        sum.rows = w.iter().filter(|w| **w > 0.0).count();
        sum.weight = w.iter().sum();
    }
    let mut buffer = Buffer::new(rows, p, view);
    for start in (0..n).step_by(rows) {
        let len = rows.min(n - start);
        let part = weights.map(|w| &w[start..start + len]);
        let block = buffer.fill(view.subrows(start, len), part, &shift, T::from_f64(1.0 / unit));
        buffer_sum(block, part, unit, &mut sum.total);
        f(block);
    }
    sum
}

/// Adds Σ w (x − shift) of a block whose rows carry √w / unit.
fn buffer_sum<T: Real>(block: MatRef<'_, T>, weights: Option<&[f64]>, unit: f64, total: &mut [f64]) {
    let roots: Option<Vec<f64>> = weights.map(|w| w.iter().map(|w| w.sqrt()).collect());
    if block.row_stride() == 1 {
        for (j, total) in total.iter_mut().enumerate() {
            let column = block.col(j);
            let sum: f64 = match &roots {
                None => column.iter().map(|x| x.to_f64()).sum(),
                Some(r) => column.iter().zip(r).map(|(x, r)| x.to_f64() * r).sum(),
            };
            *total += sum * unit;
        }
        return;
    }
    for i in 0..block.nrows() {
        let factor = unit * roots.as_ref().map_or(1.0, |r| r[i]);
        total.iter_mut().zip(block.row(i).iter()).for_each(|(t, x)| *t += x.to_f64() * factor);
    }
}

/// A block of our own, laid out as the source is.
struct Buffer<T> {
    cells: Mat<T>,
    transposed: bool,
}

impl<T: Real> Buffer<T> {
    fn new(rows: usize, p: usize, like: MatRef<'_, T>) -> Self {
        let transposed = like.col_stride().unsigned_abs() < like.row_stride().unsigned_abs();
        let cells = if transposed { Mat::zeros(p, rows) } else { Mat::zeros(rows, p) };
        Self { cells, transposed }
    }

    /// Copies `(x − shift) · √weight · factor` in.
    fn fill(
        &mut self,
        view: MatRef<'_, T>,
        weights: Option<&[f64]>,
        shift: &[T],
        factor: T,
    ) -> MatRef<'_, T> {
        let len = view.nrows();
        let scale = |i: usize| weights.map_or(factor, |w| T::from_f64(w[i].sqrt() * factor.to_f64()));
        if self.transposed {
            for i in 0..len {
                let scale = scale(i);
                let out = self.cells.col_mut(i).iter_mut();
                out.zip(view.row(i).iter().zip(shift)).for_each(|(o, (x, s))| *o = (*x - *s) * scale);
            }
            return self.cells.as_ref().subcols(0, len).transpose();
        }
        let scales: Vec<T> = (0..len).map(scale).collect();
        for (j, s) in shift.iter().enumerate() {
            let out = self.cells.col_mut(j).iter_mut();
            out.zip(view.col(j).iter().zip(&scales)).for_each(|(o, (x, c))| *o = (*x - *s) * *c);
        }
        self.cells.as_ref().subrows(0, len)
    }
}

//! Rows of a chunk in blocks that stay in cache, with a provisional mean subtracted before anything is
//! squared.
//!
//! Squaring first and subtracting `n·mean·meanᵀ` afterwards loses everything when the mean is large;
//! subtracting a value near the mean first loses nothing.

use crate::data::Real;
use crate::linalg::{ColRef, Mat, MatRef, power_of_two};

/// Bytes of a block: it must stay in a core's own cache beside a part of the result.
const BLOCK_BYTES: usize = 640 << 10;
/// Rows of a block. Measured: faer's sequential triangular product runs at 60 GFlop/s with 64 rows of 300
/// features, and at 47 with 256.
const BLOCK_ROWS: std::ops::RangeInclusive<usize> = 32..=64;
/// Cells between neighbouring rows of a block: a power of two would map all rows to the same cache lines.
const PADDING: usize = 8;
/// Rows that are enough for a provisional mean.
const FIRST_ROWS: usize = 16;

/// Sums of the shifted rows of a chunk.
pub(crate) struct ShiftedSum {
    pub(crate) rows: usize,
    pub(crate) weight: f64,
    pub(crate) total: Vec<f64>,
}

/// The first rows that count.
fn first_rows(n: usize, weights: Option<&[f64]>, most: usize) -> impl Iterator<Item = usize> {
    (0..n).filter(move |&i| weights.is_none_or(|w| w[i] > 0.0)).take(most)
}

/// A provisional mean: that of the first rows, rounded to the precision of the cells.
pub(crate) fn provisional_mean<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Vec<f64> {
    let rows: Vec<usize> = first_rows(view.nrows(), weights, FIRST_ROWS).collect();
    let [start, others @ ..] = rows.as_slice() else { return vec![0.0; view.ncols()] };
    // Around the first row: a feature that is constant must have exactly its value for a mean.
    let first: Vec<f64> = view.row(*start).iter().map(|x| x.to_f64()).collect();
    let mut mean = first.clone();
    for &i in others {
        let terms = view.row(i).iter().zip(&first);
        mean.iter_mut().zip(terms).for_each(|(m, (x, f))| *m += (x.to_f64() - f) / rows.len() as f64);
    }
    let round = |m: f64| if m.is_finite() { T::from_f64(m).to_f64() } else { 0.0 };
    mean.into_iter().map(round).collect()
}

/// Whether the first rows lie around 0 as closely as around their mean: then a shift would bring nothing.
pub(crate) fn is_centred<T: Real>(view: MatRef<'_, T>, mean: &[f64]) -> bool {
    let rows = view.nrows().min(FIRST_ROWS);
    let mut squares = vec![0.0; mean.len()];
    for i in 0..rows {
        let terms = view.row(i).iter().zip(mean);
        squares.iter_mut().zip(terms).for_each(|(s, (x, m))| *s += (x.to_f64() - m).powi(2) / rows as f64);
    }
    squares.iter().zip(mean).all(|(s, m)| m * m <= *s)
}

/// A power of two near the size of the first deviations: single precision would overflow when squared without
/// it.
pub(crate) fn provisional_unit<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>, shift: &[f64]) -> f64 {
    let deviations = |i: usize| view.row(i).iter().zip(shift).map(|(x, s)| (x.to_f64() - s).abs());
    let largest = |most: usize| {
        let rows = first_rows(view.nrows(), weights, most);
        rows.flat_map(deviations).filter(|d| d.is_finite()).fold(0.0, f64::max)
    };
    // First rows that are all the same say nothing about the others.
    let found = largest(FIRST_ROWS);
    power_of_two(if found > 0.0 { found } else { largest(view.nrows()) })
}

/// Calls `f` with blocks of `(x − shift) · √weight / unit` (rows × p), in order.
pub(crate) fn for_each_block<T: Real>(
    view: MatRef<'_, T>,
    weights: Option<&[f64]>,
    shift: &[f64],
    unit: f64,
    mut f: impl FnMut(MatRef<'_, T>),
) -> ShiftedSum {
    let (n, p) = (view.nrows(), view.ncols());
    let rows = (BLOCK_BYTES / (p.max(1) * size_of::<T>())).clamp(*BLOCK_ROWS.start(), *BLOCK_ROWS.end());
    let mut block = ShiftedBlock::new(rows.min(n.max(1)), shift, unit, view);
    let mut total = vec![0.0; p];
    for start in (0..n).step_by(rows) {
        let len = rows.min(n - start);
        let part = weights.map(|w| &w[start..start + len]);
        f(block.fill(view.subrows(start, len), part));
        total.iter_mut().zip(block.sum()).for_each(|(t, s)| *t += s * unit);
    }
    ShiftedSum {
        rows: weights.map_or(n, |w| w.iter().filter(|w| **w > 0.0).count()),
        weight: weights.map_or(n as f64, |w| w.iter().sum()),
        total,
    }
}

/// A block of our own, laid out as the source is.
pub(crate) struct ShiftedBlock<T> {
    cells: Mat<T>, // (p × rows) for row-major sources, (rows × p) otherwise
    by_rows: bool,
    shift: Vec<T>,
    factor: f64, // 1 / unit
    sum: Vec<T>, // Σ w (x − shift) / unit of the rows in the block
}

impl<T: Real> ShiftedBlock<T> {
    /// The same room for other features, at most as many.
    pub(crate) fn shift_to(&mut self, shift: &[f64]) -> &mut Self {
        self.shift.clear();
        self.shift.extend(shift.iter().map(|s| T::from_f64(*s)));
        self.sum.resize(shift.len(), T::from_f64(0.0));
        self
    }

    /// Room for so many rows, in the layout of a source.
    pub(crate) fn new(rows: usize, shift: &[f64], unit: f64, like: MatRef<'_, T>) -> Self {
        let by_rows = like.col_stride().unsigned_abs() < like.row_stride().unsigned_abs();
        let (contiguous, other) = if by_rows { (shift.len(), rows) } else { (rows, shift.len()) };
        Self {
            cells: Mat::zeros(contiguous + PADDING, other),
            by_rows,
            shift: shift.iter().map(|s| T::from_f64(*s)).collect(),
            factor: 1.0 / unit,
            sum: vec![T::from_f64(0.0); shift.len()],
        }
    }

    /// Copies `(x − shift) · √weight · factor` in and sums the columns.
    pub(crate) fn fill(&mut self, view: MatRef<'_, T>, weights: Option<&[f64]>) -> MatRef<'_, T> {
        let (len, p) = (view.nrows(), view.ncols());
        let root = |i: usize| weights.map_or(1.0, |w| w[i].sqrt());
        let roots: Vec<T> = (0..len).map(|i| T::from_f64(root(i))).collect();
        let scales: Vec<T> = (0..len).map(|i| T::from_f64(root(i) * self.factor)).collect();
        self.sum.fill(T::from_f64(0.0));
        if self.by_rows {
            self.fill_rows(view, &roots, &scales);
            self.cells.as_ref().get(..p, ..len).transpose()
        } else {
            self.fill_columns(view, &roots, &scales);
            self.cells.as_ref().get(..len, ..p)
        }
    }

    /// Σ w (x − shift) / unit of the rows that were filled in last, feature by feature.
    pub(crate) fn sum(&self) -> impl Iterator<Item = f64> {
        self.sum.iter().map(|s| s.to_f64())
    }

    fn fill_rows(&mut self, view: MatRef<'_, T>, roots: &[T], scales: &[T]) {
        let arch = pulp::Arch::new();
        let mut copy = Vec::new();
        for (i, (root, scale)) in roots.iter().zip(scales).enumerate() {
            let x = slice_or_copy(view.row(i).transpose(), &mut copy);
            let out = &mut self.cells.col_as_slice_mut(i)[..x.len()];
            let (shift, sum) = (&self.shift, &mut self.sum);
            if *root == T::from_f64(0.0) {
                out.fill(*root); // a row of no weight is no row, whatever it holds
                continue;
            }
            arch.dispatch(|| shift_row(out, x, shift, sum, *scale, *root));
        }
    }

    fn fill_columns(&mut self, view: MatRef<'_, T>, roots: &[T], scales: &[T]) {
        let arch = pulp::Arch::new();
        let mut copy = Vec::new();
        for (j, shift) in self.shift.iter().enumerate() {
            let x = slice_or_copy(view.col(j), &mut copy);
            let out = &mut self.cells.col_as_slice_mut(j)[..x.len()];
            self.sum[j] = arch.dispatch(|| shift_column(out, x, *shift, scales, roots));
        }
    }
}

/// The cells of a row or column side by side: borrowed when they lie so.
fn slice_or_copy<'a, T: Real>(cells: ColRef<'a, T>, copy: &'a mut Vec<T>) -> &'a [T] {
    match cells.try_as_col_major() {
        Some(side_by_side) => side_by_side.as_slice(),
        None => {
            copy.clear();
            copy.extend(cells.iter().copied());
            copy
        }
    }
}

#[inline(always)]
fn shift_row<T: Real>(out: &mut [T], x: &[T], shift: &[T], sum: &mut [T], scale: T, root: T) {
    for (((o, x), s), t) in out.iter_mut().zip(x).zip(shift).zip(sum) {
        *o = (*x - *s) * scale;
        *t += *o * root;
    }
}

#[inline(always)]
fn shift_column<T: Real>(out: &mut [T], x: &[T], shift: T, scales: &[T], roots: &[T]) -> T {
    let zero = T::from_f64(0.0);
    for ((o, x), c) in out.iter_mut().zip(x).zip(scales) {
        *o = if *c == zero { zero } else { (*x - shift) * *c };
    }
    // Eight partial sums: a single one would wait for each addition.
    let mut parts = [zero; 8];
    for (o, r) in out.chunks(8).zip(roots.chunks(8)) {
        parts.iter_mut().zip(o.iter().zip(r)).for_each(|(t, (o, r))| *t += *o * *r);
    }
    parts.into_iter().fold(zero, |a, b| a + b)
}

//! Kernel values of rows with given points, block by block.

use std::ops::Range;
use std::sync::Arc;

use super::{Kernel, KernelForm, power};
use crate::blocks::Frame;
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef, SymmetricTiles, exp, exp_of, set_product, tanh};
use crate::parallel;

/// Rows of a block.
pub(crate) const BLOCK_ROWS: usize = 256;
/// Rows and points of a tile, which stays in a core's own cache: 256 kB.
const TILE_ROWS: usize = 64;
const TILE_POINTS: usize = 512;
/// Rounding of an exponent that is let pass. ‖x‖² + ‖z‖² − 2x·z errs by ε(‖x‖² + ‖z‖²); where that is more,
/// the differences themselves are squared.
const EXPONENT_ROUNDING: f64 = 1e-12;
/// Below this exponent exp is 0.
const LEAST_EXPONENT: f64 = -746.0;

/// Points z₁ … zₘ with which rows are compared.
#[derive(Debug, Clone)]
pub(crate) struct Points {
    kernel: Kernel,
    frame: Arc<Frame>,
    columns: Mat<f64>, // (p × m), in the frame
    squares: Vec<f64>, // ‖z‖² in the frame (m)
    largest_square: f64,
    gamma: f64, // for cells in the frame
    unit: f64,
}

impl Points {
    /// Points as rows (m × p), of features that are divided by `divisors`; `mean` is about where rows lie.
    ///
    /// # Errors
    /// When a number overflows.
    pub(crate) fn around(
        kernel: Kernel,
        points: MatRef<'_, f64>,
        mean: &[f64],
        divisors: &[f64],
    ) -> Result<Self> {
        let origin = if kernel.form().is_shift_free() { mean.to_vec() } else { vec![0.0; mean.len()] };
        let frame = Frame::around(points, &origin, divisors);
        let columns = frame.columns(points);
        if !columns.as_ref().is_all_finite() {
            return Err(Error::Scale);
        }
        Ok(Self::new(kernel, Arc::new(frame), columns))
    }

    /// For rows that are kernel values with m points already.
    pub(crate) fn precomputed(kernel: Kernel, m: usize) -> Self {
        let frame = Frame::new(vec![0.0; m], &vec![1.0; m], 1.0);
        Self::new(kernel, Arc::new(frame), Mat::zeros(0, m))
    }

    /// Points in the frame (p × m).
    fn new(kernel: Kernel, frame: Arc<Frame>, columns: Mat<f64>) -> Self {
        let unit = frame.parts().2;
        let units = if kernel.form() == KernelForm::Laplacian { unit } else { unit * unit };
        let gamma = (kernel.gamma() * units).min(f64::MAX);
        let squares: Vec<f64> = columns.col_iter().map(|z| z.squared_norm_l2()).collect();
        let largest_square = squares.iter().copied().fold(0.0, f64::max);
        Self { kernel, frame, columns, squares, largest_square, gamma, unit }
    }

    /// The frame in which cells are compared.
    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// γ for cells in the frame.
    pub(crate) fn gamma_in_frame(&self) -> f64 {
        self.gamma
    }

    /// Number of points, m.
    pub(crate) fn len(&self) -> usize {
        self.columns.ncols()
    }

    /// The points in the frame (p × m).
    pub(crate) fn columns(&self) -> MatRef<'_, f64> {
        self.columns.as_ref()
    }

    /// The same kernel with some of the points.
    pub(crate) fn some(&self, which: &[usize]) -> Self {
        let columns = Mat::from_fn(self.columns.nrows(), which.len(), |j, k| self.columns[(j, which[k])]);
        Self::new(self.kernel, Arc::clone(&self.frame), columns)
    }

    /// k(z, x) of all points and a block of rows in the frame (p × b) into `out` (m × b), on the calling
    /// thread: tile by tile, so that what a product has made is still in the core's own cache when it becomes
    /// kernel values.
    pub(crate) fn values(&self, block: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        if self.kernel.form() == KernelForm::Precomputed {
            return out.copy_from(block);
        }
        let mut room = Vec::new();
        for first_row in (0..block.ncols()).step_by(TILE_ROWS) {
            let rows = block.subcols(first_row, TILE_ROWS.min(block.ncols() - first_row));
            for first in (0..self.len()).step_by(TILE_POINTS) {
                let points = first..(first + TILE_POINTS).min(self.len());
                let part = out.as_mut().subcols_mut(first_row, rows.ncols());
                self.tile(points.clone(), rows, part.subrows_mut(points.start, points.len()), &mut room);
            }
        }
    }

    /// The same for some points and rows.
    fn tile(
        &self,
        points: Range<usize>,
        rows: MatRef<'_, f64>,
        mut out: MatMut<'_, f64>,
        room: &mut Vec<f64>,
    ) {
        let columns = self.columns.as_ref().subcols(points.start, points.len());
        match self.kernel.form() {
            KernelForm::Laplacian => absolute_differences(columns, rows, out.as_mut()),
            _ => set_product(out.as_mut(), columns.transpose(), rows),
        }
        for (r, column) in out.col_iter_mut().enumerate() {
            let Some(column) = column.try_as_col_major_mut() else { continue };
            self.finish(points.start, column.as_slice_mut(), rows, r, room);
        }
    }

    /// Kernel values of all points with each other (m × m), on all threads.
    pub(crate) fn gram(&self) -> Mat<f64> {
        let m = self.len();
        let mut out = Mat::zeros(m, m);
        let mut parts: Vec<MatMut<'_, f64>> = split_columns(out.as_mut());
        parallel::map_mut(&mut parts, |i, part| {
            let start = i * BLOCK_ROWS;
            let block = self.columns.as_ref().subcols(start, part.ncols());
            self.values(block, part.as_mut());
            // Exactly what k(x, x) of a row is.
            for (r, own) in self.diagonal(block).into_iter().enumerate() {
                part[(start + r, r)] = own;
            }
        });
        out
    }

    /// The same, held once.
    pub(crate) fn gram_tiles(&self) -> SymmetricTiles {
        SymmetricTiles::from_tiles(self.len(), |first, start, mut tile| {
            let block = self.columns.as_ref().subcols(start, tile.ncols());
            self.tile(first..first + tile.nrows(), block, tile.as_mut(), &mut Vec::new());
            // On the diagonal exactly what k(x, x) of a row is.
            if let Some(before) = start.checked_sub(first) {
                let own = self.diagonal(block);
                own.into_iter().enumerate().for_each(|(r, own)| tile[(before + r, r)] = own);
            }
        })
    }

    /// Inner products (or sums of absolute differences) with row r of the block become kernel values.
    fn finish(
        &self,
        first: usize,
        values: &mut [f64],
        block: MatRef<'_, f64>,
        r: usize,
        room: &mut Vec<f64>,
    ) {
        let gamma = self.gamma;
        match self.kernel.form() {
            KernelForm::Precomputed => (),
            KernelForm::Linear => values.iter_mut().for_each(|v| *v = *v * self.unit * self.unit),
            KernelForm::Rbf => self.finish_rbf(first, values, block, r),
            KernelForm::Laplacian => {
                values.iter_mut().for_each(|v| *v *= -gamma);
                exp(values);
            }
            KernelForm::Polynomial { degree, coef0 } => {
                values.iter_mut().for_each(|v| *v = power(gamma * *v + coef0, degree));
            }
            KernelForm::Sigmoid { coef0 } => {
                room.clear();
                room.extend(values.iter().map(|v| gamma * v + coef0));
                tanh(room, values);
            }
            KernelForm::Cosine => {
                let square = block.col(r).squared_norm_l2();
                for (v, s) in values.iter_mut().zip(&self.squares[first..]) {
                    *v = cosine(*v, square, *s);
                }
            }
        }
    }

    fn finish_rbf(&self, first: usize, values: &mut [f64], block: MatRef<'_, f64>, r: usize) {
        let (gamma, square) = (self.gamma, block.col(r).squared_norm_l2());
        let squares = &self.squares[first..first + values.len()];
        let arch = pulp::Arch::new();
        if self.largest_square + square <= EXPONENT_ROUNDING / (gamma * f64::EPSILON) {
            return arch.dispatch(Gaussian(Exponents { values, squares, square, gamma }));
        }
        arch.dispatch(Exponents { values: &mut *values, squares, square, gamma });
        for (i, v) in values.iter_mut().enumerate() {
            let rounding = f64::EPSILON * gamma * (squares[i] + square);
            if rounding > EXPONENT_ROUNDING && *v + 16.0 * rounding > LEAST_EXPONENT {
                *v = -gamma * self.squared_difference(first + i, block, r);
            }
        }
        exp(values);
    }

    fn squared_difference(&self, i: usize, block: MatRef<'_, f64>, r: usize) -> f64 {
        self.columns.col(i).iter().zip(block.col(r).iter()).map(|(a, b)| (a - b).powi(2)).sum()
    }

    /// k(x, x) of each row of a block in the frame (p × b).
    pub(crate) fn diagonal(&self, block: MatRef<'_, f64>) -> Vec<f64> {
        let square = |r: usize| block.col(r).squared_norm_l2();
        let of = |r: usize| match self.kernel.form() {
            KernelForm::Linear => square(r) * self.unit * self.unit,
            KernelForm::Rbf | KernelForm::Laplacian => 1.0,
            KernelForm::Polynomial { degree, coef0 } => power(self.gamma * square(r) + coef0, degree),
            KernelForm::Sigmoid { coef0 } => (self.gamma * square(r) + coef0).tanh(),
            KernelForm::Cosine => f64::from(u8::from(square(r) > 0.0)),
            KernelForm::Precomputed => f64::NAN,
        };
        (0..block.ncols()).map(of).collect()
    }

    /// Calls `f` with the place of each block in the chunk, its rows in the frame (p × b) and their kernel
    /// values (m × b).
    ///
    /// # Errors
    /// When a cell is missing or infinite, or a kernel value is not finite.
    pub(crate) fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, MatRef<'_, f64>, MatMut<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        let (p, m) = (self.frame.n_features(), self.len());
        if chunk.ncols() != p {
            return Err(Error::FeatureCount { expected: p, found: chunk.ncols() });
        }
        let mut room = Mat::zeros(m, BLOCK_ROWS.min(chunk.nrows()));
        let mut outcome = Ok(());
        self.frame.for_each_block(chunk.cells(), |first, cells| {
            let rows = cells.len() / p.max(1);
            let mut known = None;
            if outcome.is_ok() {
                // A row of no weight is no row, whatever it holds.
                let weightless = |r: usize| chunk.weights().is_some_and(|w| w[first + r] == 0.0);
                let kept = cells.chunks_exact(p.max(1)).enumerate();
                if (0..rows).any(weightless) {
                    let clean = kept
                        .flat_map(|(r, row)| row.iter().map(move |x| if weightless(r) { 0.0 } else { *x }));
                    known = Some(clean.collect::<Vec<f64>>());
                }
                let block = MatRef::from_column_major_slice(known.as_deref().unwrap_or(cells), p, rows);
                let mut values = room.as_mut().subcols_mut(0, rows);
                let usable = block.is_all_finite();
                if usable {
                    self.values(block, values.as_mut());
                }
                outcome = match usable && values.as_ref().is_all_finite() {
                    true => f(first, block, values),
                    false => Err(chunk.explain_not_finite("a kernel").unwrap_or(Error::Scale)),
                };
            }
        });
        outcome
    }
}

/// A matrix in blocks of columns.
fn split_columns(mut matrix: MatMut<'_, f64>) -> Vec<MatMut<'_, f64>> {
    let mut parts = Vec::new();
    while matrix.ncols() > BLOCK_ROWS {
        let (left, right) = matrix.split_at_col_mut(BLOCK_ROWS);
        parts.push(left);
        matrix = right;
    }
    parts.push(matrix);
    parts
}

/// x·z over the lengths of x and z; 0 where one has none.
fn cosine(dot: f64, x: f64, z: f64) -> f64 {
    match x.sqrt() * z.sqrt() {
        0.0 => 0.0,
        lengths => dot / lengths,
    }
}

/// Σⱼ|zⱼ − xⱼ| of each point (p × m) and row (p × b).
fn absolute_differences(points: MatRef<'_, f64>, rows: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
    out.fill(0.0);
    let by_feature = points.transpose().to_owned(); // (m × p)
    for (r, column) in out.col_iter_mut().enumerate() {
        let Some(column) = column.try_as_col_major_mut() else { continue };
        let values = column.as_slice_mut();
        for (j, x) in rows.col(r).iter().enumerate() {
            add_absolute(values, by_feature.col_as_slice(j), *x);
        }
    }
}

// Structures instead of closures, because those are not compiled for the vector unit that they run on.

/// x·z ← −γ(‖z‖² + ‖x‖² − 2x·z), not above 0.
struct Exponents<'a> {
    values: &'a mut [f64],
    squares: &'a [f64],
    square: f64,
    gamma: f64,
}

/// x·z ← exp(−γ‖z − x‖²) by the same exponents.
struct Gaussian<'a>(Exponents<'a>);

impl Exponents<'_> {
    #[inline(always)]
    fn of(dot: f64, squares: f64, gamma: f64) -> f64 {
        let exponent = -gamma * (squares - 2.0 * dot);
        if exponent > 0.0 { 0.0 } else { exponent }
    }
}

impl pulp::NullaryFnOnce for Exponents<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (v, s) in self.values.iter_mut().zip(self.squares) {
            *v = Self::of(*v, s + self.square, self.gamma);
        }
    }
}

impl pulp::NullaryFnOnce for Gaussian<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Exponents { values, squares, square, gamma } = self.0;
        for (v, s) in values.iter_mut().zip(squares) {
            *v = exp_of(Exponents::of(*v, s + square, gamma));
        }
    }
}

fn add_absolute(sums: &mut [f64], cells: &[f64], x: f64) {
    pulp::Arch::new().dispatch(AddAbsolute(sums, cells, x));
}

struct AddAbsolute<'a>(&'a mut [f64], &'a [f64], f64);

impl pulp::NullaryFnOnce for AddAbsolute<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.iter_mut().zip(self.1).for_each(|(s, z)| *s += (z - self.2).abs());
    }
}

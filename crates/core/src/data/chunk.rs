//! A chunk: consecutive rows of one source, single or double precision, with missing values and weights.

use std::borrow::Cow;

use super::ObservedRows;
use crate::error::{Cell, Error, Result};
use crate::linalg::{Mat, MatRef};

/// Order of the cells of an owned block in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Row after row (C order).
    Rows,
    /// Column after column (Fortran order).
    Columns,
}

/// A number type that cells can have.
pub trait Real: crate::linalg::RealField + Copy + Send + Sync + PartialOrd + 'static {
    /// The cell in double precision: exact.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Calls `f` with the cells in double precision, copied only when they are not.
    fn with_wide<R>(view: MatRef<'_, Self>, f: impl FnOnce(MatRef<'_, f64>) -> R) -> R;
}

impl Real for f64 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    fn with_wide<R>(view: MatRef<'_, Self>, f: impl FnOnce(MatRef<'_, f64>) -> R) -> R {
        f(view)
    }
}

impl Real for f32 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the narrower type is the point")]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn with_wide<R>(view: MatRef<'_, Self>, f: impl FnOnce(MatRef<'_, f64>) -> R) -> R {
        f(Mat::from_fn(view.nrows(), view.ncols(), |i, j| view[(i, j)].to_f64()).as_ref())
    }
}

/// A rectangle of cells, borrowed with any strides or owned in either order.
#[derive(Debug, Clone)]
pub enum Block<'a, T> {
    /// Somebody else's memory, never copied.
    View(MatRef<'a, T>),
    /// A buffer of our own.
    Owned {
        /// `nrows · ncols` cells.
        cells: Vec<T>,
        /// Rows.
        nrows: usize,
        /// Columns.
        ncols: usize,
        /// Order of `cells`.
        order: Order,
    },
}

impl<T: Real> Block<'_, T> {
    /// The rectangle as a matrix view, rows are samples.
    pub fn view(&self) -> MatRef<'_, T> {
        match self {
            Self::View(view) => *view,
            Self::Owned { cells, nrows, ncols, order: Order::Rows } => {
                MatRef::from_row_major_slice(cells, *nrows, *ncols)
            }
            Self::Owned { cells, nrows, ncols, order: Order::Columns } => {
                MatRef::from_column_major_slice(cells, *nrows, *ncols)
            }
        }
    }
}

/// Cells in single or double precision. NaN is a missing value.
#[derive(Debug, Clone)]
pub enum Cells<'a> {
    /// Single precision.
    F32(Block<'a, f32>),
    /// Double precision.
    F64(Block<'a, f64>),
    /// Only the cells that were seen.
    Observed(ObservedRows<'a>),
}

/// Runs the same generic expression on the view of either precision; cells that were not seen become NaN.
macro_rules! with_view {
    ($cells:expr, $view:ident => $body:expr) => {
        match $cells {
            $crate::data::Cells::F32(block) => {
                let $view = block.view();
                $body
            }
            $crate::data::Cells::F64(block) => {
                let $view = block.view();
                $body
            }
            $crate::data::Cells::Observed(rows) => {
                let dense = rows.to_dense();
                let $view = dense.as_ref();
                $body
            }
        }
    };
}
pub(crate) use with_view;

impl Cells<'_> {
    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::F32(block) => (block.view().nrows(), block.view().ncols()),
            Self::F64(block) => (block.view().nrows(), block.view().ncols()),
            Self::Observed(rows) => rows.shape(),
        }
    }

    /// Rows `start .. start + len`, without copying.
    pub(super) fn part(&self, start: usize, len: usize) -> Cells<'_> {
        match self {
            Self::F32(block) => Cells::F32(Block::View(block.view().subrows(start, len))),
            Self::F64(block) => Cells::F64(Block::View(block.view().subrows(start, len))),
            Self::Observed(rows) => Cells::Observed(rows.part(start, len)),
        }
    }

    /// One cell, in double precision.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::F32(block) => block.view()[(row, column)].to_f64(),
            Self::F64(block) => block.view()[(row, column)],
            Self::Observed(rows) => rows.get(row, column),
        }
    }
}

/// Some rows, copied.
fn picked<T: Real>(view: MatRef<'_, T>, rows: &[usize]) -> Block<'static, T> {
    let mut cells = Vec::with_capacity(rows.len() * view.ncols());
    for row in rows.iter().map(|i| view.row(*i)) {
        match row.try_as_row_major() {
            Some(row) => cells.extend_from_slice(row.as_slice()),
            None => cells.extend(row.iter().copied()),
        }
    }
    Block::Owned { cells, nrows: rows.len(), ncols: view.ncols(), order: Order::Rows }
}

/// Number of rows of this width that so many cells make.
pub(super) fn whole_rows(cells: usize, width: usize) -> Result<usize> {
    match cells.checked_rem(width) {
        Some(0) => Ok(cells / width),
        _ => Err(Error::Length {
            what: "cells of whole rows",
            expected: cells.next_multiple_of(width.max(1)),
            found: cells,
        }),
    }
}

/// Consecutive rows of a source.
#[derive(Debug, Clone)]
pub struct Chunk<'a> {
    first_row: usize,
    cells: Cells<'a>,
    weights: Option<Cow<'a, [f64]>>,
}

impl<'a> Chunk<'a> {
    /// Rows that start at `first_row` of their source, each of weight 1.
    pub fn new(first_row: usize, cells: Cells<'a>) -> Self {
        Self { first_row, cells, weights: None }
    }

    /// Owned double-precision rows, for sources that read files.
    ///
    /// # Errors
    /// When there are not whole rows.
    pub fn from_rows(first_row: usize, cells: Vec<f64>, ncols: usize, order: Order) -> Result<Self> {
        let nrows = whole_rows(cells.len(), ncols)?;
        Ok(Self::new(first_row, Cells::F64(Block::Owned { cells, nrows, ncols, order })))
    }

    /// Gives each row a weight.
    ///
    /// # Errors
    /// When there is not one weight per row, or one is negative or not finite.
    pub fn with_weights(mut self, weights: impl Into<Cow<'a, [f64]>>) -> Result<Self> {
        let weights = weights.into();
        if weights.len() != self.nrows() {
            return Err(Error::Length { what: "weights", expected: self.nrows(), found: weights.len() });
        }
        if let Some(i) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            return Err(Error::Weight { row: self.first_row + i, value: weights[i] });
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The same rows with another number for the first.
    pub(crate) fn numbered(self, first_row: usize) -> Self {
        Self { first_row, ..self }
    }

    /// Attaches weights that somebody has checked already.
    pub(super) fn with_checked_weights(mut self, weights: &'a [f64]) -> Self {
        self.weights = Some(Cow::Borrowed(weights));
        self
    }

    /// The cells.
    pub fn cells(&self) -> &Cells<'a> {
        &self.cells
    }

    /// Weights of the rows, when they are not all 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The same rows, borrowed.
    pub fn borrowed(&self) -> Chunk<'_> {
        let weights = self.weights.as_deref().map(Cow::Borrowed);
        Chunk { first_row: self.first_row, cells: self.cells.part(0, self.nrows()), weights }
    }

    /// Consecutive rows of this chunk, borrowed.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Chunk<'_> {
        let weights = self.weights.as_deref().map(|w| Cow::Borrowed(&w[rows.clone()]));
        Chunk {
            first_row: self.first_row + rows.start,
            cells: self.cells.part(rows.start, rows.len()),
            weights,
        }
    }

    /// A copy of some rows, in the given order and precision.
    pub(crate) fn select(&self, rows: &[usize]) -> Result<Chunk<'static>> {
        let cells = match &self.cells {
            Cells::F32(block) => Cells::F32(picked(block.view(), rows)),
            Cells::F64(block) => Cells::F64(picked(block.view(), rows)),
            Cells::Observed(cells) => Cells::F64(picked(cells.to_dense().as_ref(), rows)),
        };
        let chunk = Chunk::new(self.first_row, cells);
        match self.weights() {
            Some(weights) => chunk.with_weights(rows.iter().map(|i| weights[*i]).collect::<Vec<_>>()),
            None => Ok(chunk),
        }
    }

    /// Index in the source of this chunk's first row.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.cells.shape().0
    }

    /// Number of features.
    pub fn ncols(&self) -> usize {
        self.cells.shape().1
    }

    /// Calls `f` with the cells in double precision, copied only when they are not.
    pub(crate) fn with_wide<R>(&self, f: impl FnOnce(MatRef<'_, f64>) -> R) -> R {
        with_view!(&self.cells, view => Real::with_wide(view, f))
    }

    /// The error that fits the first infinite cell (row by row) or, when there is none, the first missing
    /// cell; rows of no weight do not count.
    ///
    /// `operation` completes the sentence "… needs complete rows".
    pub(crate) fn explain_not_finite(&self, operation: &'static str) -> Option<Error> {
        let missing = || {
            let cell = self.find(f64::is_nan)?;
            Some(Error::Missing { cell, operation })
        };
        self.explain_infinite().or_else(missing)
    }

    /// Whether a cell is missing.
    pub(crate) fn has_missing(&self) -> bool {
        with_view!(&self.cells, view => (0..view.ncols()).any(|j| view.col(j).iter().any(|x| Real::to_f64(*x).is_nan())))
    }

    /// The error that fits the first infinite cell (row by row); rows of no weight do not count.
    pub(crate) fn explain_infinite(&self) -> Option<Error> {
        let cell = self.find(f64::is_infinite)?;
        let value = self.cells.get(cell.row - self.first_row, cell.column);
        Some(Error::Infinite { value, cell })
    }

    /// The first cell of the kind, row by row.
    fn find(&self, kind: impl Fn(f64) -> bool) -> Option<Cell> {
        let (nrows, ncols) = self.cells.shape();
        let counts = |row: &usize| self.weights().is_none_or(|w| w[*row] > 0.0);
        let column = |row: usize| (0..ncols).find(|column| kind(self.cells.get(row, *column)));
        (0..nrows).filter(counts).find_map(|row| {
            let column = column(row)?;
            Some(Cell { row: self.first_row + row, column, name: None })
        })
    }
}

//! Matrices of the core as NumPy arrays, row after row.

use covary::linalg::{Mat, MatRef};
use covary::memory;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::door::now;

/// Rows that are copied at once: the columns' parts stay in cache.
const ROWS: usize = 64;

/// A matrix row by row, made where the work is done.
pub(crate) struct RowMajor<T> {
    cells: Vec<T>,
    shape: [usize; 2],
}

impl<T: Send + Copy + Default> RowMajor<T> {
    /// Copies the cells, converted.
    fn new(matrix: MatRef<'_, f64>, convert: impl Fn(f64) -> T + Sync) -> covary::Result<Self> {
        let (n, p) = (matrix.nrows(), matrix.ncols());
        memory::check("the array of answers", &[n, p])?;
        let mut cells = vec![T::default(); n * p];
        cells.par_chunks_mut((ROWS * p).max(1)).enumerate().for_each(|(k, block)| {
            for j in 0..p {
                for (i, row) in block.chunks_exact_mut(p).enumerate() {
                    row[j] = convert(matrix[(k * ROWS + i, j)]);
                }
            }
        });
        Ok(Self { cells, shape: [n, p] })
    }
}

impl<T> RowMajor<T> {
    /// The cells alone.
    pub(crate) fn into_cells(self) -> Vec<T> {
        self.cells
    }
}

impl<T: Element> RowMajor<T> {
    /// Hands the cells over.
    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyArray2<T>>> {
        PyArray1::from_vec(py, self.cells).reshape(self.shape)
    }
}

/// In double precision.
pub(crate) fn double(matrix: &Mat<f64>) -> covary::Result<RowMajor<f64>> {
    RowMajor::new(matrix.as_ref(), |x| x)
}

/// An answer about rows, in the precision that they have.
pub(crate) enum Answer {
    Single(RowMajor<f32>),
    Double(RowMajor<f64>),
}

impl Answer {
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the narrower type is the point")]
    pub(crate) fn new(matrix: &Mat<f64>, single_precision: bool) -> covary::Result<Self> {
        Ok(match single_precision {
            true => Self::Single(RowMajor::new(matrix.as_ref(), |x| x as f32)?),
            false => Self::Double(double(matrix)?),
        })
    }

    /// Hands the cells over.
    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Single(cells) => cells.into_numpy(py)?.into_any(),
            Self::Double(cells) => cells.into_numpy(py)?.into_any(),
        })
    }
}

/// A small matrix of the model.
pub(crate) fn matrix<'py>(py: Python<'py>, m: MatRef<'_, f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    now(py, || RowMajor::new(m, |x| x))?.into_numpy(py)
}

/// A vector.
pub(crate) fn vector<'py>(py: Python<'py>, v: &[f64]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_slice(py, v)
}

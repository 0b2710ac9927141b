//! Matrices of the core as NumPy arrays, row after row.

use covary::linalg::{Mat, MatRef};
use covary::memory;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rayon::prelude::*;
use serde_json::Value;

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

/// Facts of the core as Python's own values; `"infinite"` is infinite.
pub(crate) fn to_python<'py>(py: Python<'py>, facts: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(facts).map_err(|error| PyValueError::new_err(error.to_string()))?;
    of_value(py, &value)
}

fn of_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(b) => b.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => i.into_pyobject(py)?.into_any(),
            (None, Some(u)) => u.into_pyobject(py)?.into_any(),
            (None, None) => n.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(s) if s == "infinite" => f64::INFINITY.into_pyobject(py)?.into_any(),
        Value::String(s) => s.into_pyobject(py)?.into_any(),
        Value::Array(all) => {
            let items = all.iter().map(|v| of_value(py, v)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, v) in map {
                dict.set_item(key, of_value(py, v)?)?;
            }
            dict.into_any()
        }
    })
}

/// A small matrix of the model.
pub(crate) fn matrix<'py>(py: Python<'py>, m: MatRef<'_, f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    now(py, || RowMajor::new(m, |x| x))?.into_numpy(py)
}

/// A vector.
pub(crate) fn vector<'py>(py: Python<'py>, v: &[f64]) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_slice(py, v)
}

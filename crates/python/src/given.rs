//! Arrays of numbers that Python gives for a model: copied where there is memory for the copy. A view that
//! repeats one number takes no memory itself, so its size says nothing about what is there.

use covary::linalg::Mat;
use covary::memory;
use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;

use crate::door::now;

const COPY: &str = "the copy of an array";

/// A vector.
pub(crate) fn vector<T: Element + Copy>(py: Python<'_>, array: &PyReadonlyArray1<'_, T>) -> PyResult<Vec<T>> {
    now(py, || to_vec(array))
}

/// The same where an error of the core will do.
pub(crate) fn to_vec<T: Element + Copy>(array: &PyReadonlyArray1<'_, T>) -> covary::Result<Vec<T>> {
    let view = array.as_array();
    memory::check_bytes(COPY, view.len().saturating_mul(size_of::<T>()))?;
    Ok(view.iter().copied().collect())
}

/// A matrix.
pub(crate) fn matrix(py: Python<'_>, array: &PyReadonlyArray2<'_, f64>) -> PyResult<Mat<f64>> {
    let view = array.as_array();
    now(py, || {
        memory::check(COPY, view.shape())?;
        Ok(Mat::from_fn(view.nrows(), view.ncols(), |i, j| view[(i, j)]))
    })
}

/// Matrices, one for each place of the first axis.
pub(crate) fn matrices(py: Python<'_>, array: &PyReadonlyArray3<'_, f64>) -> PyResult<Vec<Mat<f64>>> {
    let view = array.as_array();
    now(py, || {
        memory::check(COPY, view.shape())?;
        let [groups, rows, columns] = *view.shape() else { return Ok(Vec::new()) };
        let one = |k: usize| Mat::from_fn(rows, columns, |i, j| view[(k, i, j)]);
        Ok((0..groups).map(one).collect())
    })
}

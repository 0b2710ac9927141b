//! How sure the numbers of PPCA are, as arrays.

use covary::assess::PpcaEstimate;
use covary::estimator::ppca_estimate;
use covary::linalg::Mat;
use covary::model::Model as AnyModel;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, now, run};
use crate::model::Model;
use crate::output::{double, matrix, vector};
use crate::threads::Threads;

/// Standard errors of a fit of PPCA: mean (p,), noise_variance, explained_variance (q,), loadings (p, q).
#[pyfunction]
#[pyo3(signature = (model, threads=None))]
pub(crate) fn ppca_errors<'py>(
    py: Python<'py>,
    model: &Model,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = estimated(py, model, threads, |estimate| Ok(estimate.standard_errors()))?;
    let dict = PyDict::new(py);
    dict.set_item("mean", vector(py, &found.mean))?;
    dict.set_item("noise_variance", found.noise_variance.unwrap_or(f64::NAN))?;
    dict.set_item("explained_variance", vector(py, &found.eigenvalues))?;
    dict.set_item("loadings", matrix(py, found.loadings.as_ref())?)?;
    Ok(dict)
}

/// Intervals of a fit of PPCA, lower ends first: mean (2, p), noise_variance (2,), explained_variance (2, q), loadings (2, p, q).
#[pyfunction]
#[pyo3(signature = (model, level=None, threads=None))]
pub(crate) fn ppca_intervals<'py>(
    py: Python<'py>,
    model: &Model,
    level: Option<f64>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyDict>> {
    let level = level.unwrap_or(PpcaEstimate::LEVEL);
    let found = estimated(py, model, threads, move |estimate| estimate.intervals(level))?;
    let (low, high) = found.noise_variance.unwrap_or((f64::NAN, f64::NAN));
    let (lower, upper) = now(py, || Ok((double(&found.loadings_lower)?, double(&found.loadings_upper)?)))?;
    let loadings = PyArray1::from_vec(py, [lower.into_cells(), upper.into_cells()].concat());
    let (p, q) = (found.loadings_lower.nrows(), found.loadings_lower.ncols());
    let dict = PyDict::new(py);
    dict.set_item("mean", ends(py, &found.mean)?)?;
    dict.set_item("noise_variance", vector(py, &[low, high]))?;
    dict.set_item("explained_variance", ends(py, &found.eigenvalues)?)?;
    dict.set_item("loadings", loadings.reshape([2, p, q])?)?;
    Ok(dict)
}

/// Asks something of a fit as an estimate.
fn estimated<T: Send + 'static>(
    py: Python<'_>,
    model: &Model,
    threads: Option<Threads>,
    question: impl FnOnce(&PpcaEstimate<'_>) -> covary::Result<T> + Send + 'static,
) -> PyResult<T> {
    let AnyModel::Ppca(numbers) = &model.saved().model else {
        return Err(PyValueError::new_err("a model of kind 'ppca' is needed"));
    };
    let (numbers, report) = (numbers.clone(), model.saved().report.clone());
    run(py, &Manner { threads, progress: None }, move |_| question(&ppca_estimate(&numbers, &report)?))
}

/// Lower ends in one row, upper ends in the next (2, k).
fn ends<'py>(py: Python<'py>, intervals: &[(f64, f64)]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let end = |side: usize, (low, high): (f64, f64)| if side == 0 { low } else { high };
    matrix(py, Mat::from_fn(2, intervals.len(), |side, k| end(side, intervals[k])).as_ref())
}

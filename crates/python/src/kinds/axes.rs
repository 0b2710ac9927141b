//! Principal axes: probabilistic and classical PCA.

use std::sync::Arc;

use covary::assess::PpcaEstimate;
use covary::estimator::{Completion, Family, FromSpectrum, Spectral, ppca_estimate};
use covary::linalg::Mat;
use covary::model::LinearGaussian;
use covary::{Components, Pca, Ppca};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{Manner, now, run};
use crate::model::Model;
use crate::output::{double, matrix, vector};

pub(super) fn ppca(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let family: Ppca = spectral(components, keywords)?;
    Ok(Arc::new(family))
}

/// `complete`: directions of no variance are added to those of complete rows until there are so many, or
/// (True) as many as there are rows or features.
pub(super) fn pca(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    #[derive(FromPyObject)]
    enum Complete {
        Rows(bool),
        To(usize),
    }
    let family: Pca = spectral(components, keywords)?;
    Ok(Arc::new(match keywords.take("complete")? {
        Some(Complete::Rows(true)) => family.completion(Completion::Rows),
        Some(Complete::To(q)) => family.completion(Completion::To(q)),
        Some(Complete::Rows(false)) | None => family,
    }))
}

pub(super) fn spectral<M: FromSpectrum>(
    components: Components,
    keywords: &mut Keywords<'_>,
) -> PyResult<Spectral<M>> {
    Ok(Spectral::new(components).solver(keywords.word("solver")?.unwrap_or_default()))
}

/// Of PPCA: mean (p,), noise_variance, explained_variance (q,), loadings (p, q).
pub(super) fn standard_errors<'py>(
    py: Python<'py>,
    model: &Model,
    manner: Manner,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if model.of_kind::<LinearGaussian>().is_none() {
        return Ok(None);
    }
    let found = estimated(py, model, &manner, |estimate| Ok(estimate.standard_errors()))?;
    let dict = PyDict::new(py);
    dict.set_item("mean", vector(py, &found.mean))?;
    dict.set_item("noise_variance", found.noise_variance.unwrap_or(f64::NAN))?;
    dict.set_item("explained_variance", vector(py, &found.eigenvalues))?;
    dict.set_item("loadings", matrix(py, found.loadings.as_ref())?)?;
    Ok(Some(dict.into_any()))
}

/// Intervals of a fit of PPCA, lower ends first: mean (2, p), noise_variance (2,), explained_variance (2, q),
/// loadings (2, p, q).
pub(crate) fn intervals<'py>(
    py: Python<'py>,
    model: &Model,
    level: Option<f64>,
    manner: &Manner,
) -> PyResult<Bound<'py, PyDict>> {
    let level = level.unwrap_or(PpcaEstimate::LEVEL);
    let found = estimated(py, model, manner, move |estimate| estimate.intervals(level))?;
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
    manner: &Manner,
    question: impl FnOnce(&PpcaEstimate<'_>) -> covary::Result<T> + Send + 'static,
) -> PyResult<T> {
    let Some(numbers) = model.of_kind::<LinearGaussian>().cloned() else {
        return Err(PyValueError::new_err("a model of kind 'ppca' is needed"));
    };
    let report = model.saved().report.clone();
    run(py, manner, move |_| question(&ppca_estimate(&numbers, &report)?))
}

/// Lower ends in one row, upper ends in the next (2, k).
fn ends<'py>(py: Python<'py>, intervals: &[(f64, f64)]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let end = |side: usize, (low, high): (f64, f64)| if side == 0 { low } else { high };
    matrix(py, Mat::from_fn(2, intervals.len(), |side, k| end(side, intervals[k])).as_ref())
}

//! Curved surfaces: Gaussian process latent variable models.

use std::sync::Arc;

use covary::estimator::Family;
use covary::model::LatentProcess;
use covary::{Components, Control, Gplvm, GplvmMethod, LatentForm};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{Manner, caught, run};
use crate::given;
use crate::input::Rows;
use crate::model::Model;
use crate::output::{double, matrix, vector};
use crate::threads::Threads;

/// `method`, `kernel`, `n_inducing` and `starts`.
pub(super) fn gplvm(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let wrong = |error: covary::Error| PyValueError::new_err(error.to_string());
    let mut family = Gplvm::new(components);
    if let Some(method) = keywords.take::<String>("method")? {
        family = family.method(method.parse::<GplvmMethod>().map_err(wrong)?);
    }
    if let Some(kernel) = keywords.take::<String>("kernel")? {
        family = family.kernel(kernel.parse::<LatentForm>().map_err(wrong)?);
    }
    if let Some(inducing) = keywords.take("n_inducing")? {
        family = family.inducing(inducing);
    }
    if let Some(starts) = keywords.take("starts")? {
        family = family.starts(starts);
    }
    Ok(Arc::new(family))
}

/// Positions of the rows of the fit (n, q), their variances, relevances relative to the largest (q,), those of the kernel
/// (q,), inducing points (M, q), noise variances (p,) and what is taken off features (p,).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<LatentProcess>() else { return Ok(None) };
    caught(|| {
        let (dict, parts) = (PyDict::new(py), model.parts());
        dict.set_item("latent_mean", matrix(py, parts.latent_mean.as_ref())?)?;
        dict.set_item("latent_variance", matrix(py, parts.latent_variance.as_ref())?)?;
        dict.set_item("relevance", vector(py, &model.relevance()))?;
        dict.set_item("kernel_relevance", vector(py, parts.kernel.relevance()))?;
        dict.set_item("inducing", matrix(py, parts.inducing.as_ref())?)?;
        dict.set_item("noise_variances", vector(py, &model.noise_variances()))?;
        dict.set_item("mean", vector(py, &parts.mean))?;
        Ok(Some(dict))
    })
}

fn latent_process(model: &dyn covary::model::Model) -> covary::Result<&LatentProcess> {
    model.downcast_ref().ok_or_else(|| covary::Error::Parameter {
        name: "the model",
        value: model.kind().name.into(),
        allowed: "a GP-LVM",
    })
}

/// A table of numbers for Python.
type Matrix<'py> = Bound<'py, PyArray2<f64>>;

#[pymethods]
impl Model {
    /// Rows (n, p) of latent coordinates (n, q), and the standard deviation of a new cell there.
    #[pyo3(signature = (latent, threads=None))]
    fn inverse_transform_with_std<'py>(
        &self,
        py: Python<'py>,
        latent: PyReadonlyArray2<'py, f64>,
        threads: Option<Threads>,
    ) -> PyResult<(Matrix<'py>, Matrix<'py>)> {
        let (inner, latent) = (Arc::clone(&self.inner), given::matrix(py, &latent)?);
        let decode = move |_: &Control<'_>| {
            let found = inner.decoder()?.decode_with_std(latent.as_ref())?;
            let (mean, std) = found.ok_or_else(|| covary::Error::Parameter {
                name: "the model",
                value: inner.kind().name.into(),
                allowed: "one that tells deviations of decoded rows, such as gplvm",
            })?;
            Ok((double(&mean)?, double(&std)?))
        };
        let (mean, std) = run(py, &Manner { threads, progress: None }, decode)?;
        Ok((mean.into_numpy(py)?, std.into_numpy(py)?))
    }

    /// Positions of rows: means (n, q), variances (n, q), a lower bound on the log density of each row (n,), and whether another
    /// place far away explains it about as well (n,).
    #[pyo3(signature = (rows, threads=None))]
    #[allow(clippy::type_complexity, reason = "four arrays")]
    fn place<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<(Matrix<'py>, Matrix<'py>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>)> {
        let (mean, variance, bound, ambiguous) = self.ask(py, rows, threads, |m, rows| {
            let placed = latent_process(m)?.place(rows)?;
            Ok((double(&placed.mean)?, double(&placed.variance)?, placed.bound, placed.ambiguous))
        })?;
        let numbers = (PyArray1::from_vec(py, bound), PyArray1::from_vec(py, ambiguous));
        Ok((mean.into_numpy(py)?, variance.into_numpy(py)?, numbers.0, numbers.1))
    }
}

//! Bayesian PCA.

use std::sync::Arc;

use covary::estimator::Family;
use covary::model::{Predictive, Uncertainty};
use covary::persist::SavedModel;
use covary::{BayesianPca, Components};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use super::axes::spectral;
use crate::door::{caught, now};
use crate::given;
use crate::model::Model;
use crate::output::{matrix, vector};

pub(super) fn bpca(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let family = BayesianPca::of(spectral(components, keywords)?);
    Ok(Arc::new(family.method(keywords.word("method")?.unwrap_or_default())))
}

/// Precisions (q,) and, where W and μ have a distribution, standard deviations: loadings_std (p, q), mean_std
/// (p,).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<Predictive>() else { return Ok(None) };
    caught(|| {
        let dict = PyDict::new(py);
        dict.set_item("precisions", vector(py, model.precisions()))?;
        if let Some(known) = model.uncertainty() {
            dict.set_item("loadings_std", matrix(py, known.loadings.as_ref())?)?;
            dict.set_item("mean_std", vector(py, &known.mean))?;
        }
        Ok(Some(dict))
    })
}

#[pymethods]
impl Model {
    /// A model of given numbers: mean (p,), loadings (p, q), σ² and, when W and μ have a distribution, the
    /// deviations of both.
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    #[staticmethod]
    #[pyo3(signature = (mean, loadings, noise_variance, known=None, names=None))]
    fn given_bayes(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        loadings: PyReadonlyArray2<'_, f64>,
        noise_variance: f64,
        known: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>)>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let known = match known {
            Some((loadings, mean)) => {
                Some(Uncertainty { loadings: given::matrix(py, &loadings)?, mean: given::vector(py, &mean)? })
            }
            None => None,
        };
        let (mean, loadings) = (given::vector(py, &mean)?, given::matrix(py, &loadings)?);
        let made = || SavedModel::given(Predictive::given(mean, loadings, noise_variance, known)?, names);
        Self::new(py, now(py, made)?)
    }
}

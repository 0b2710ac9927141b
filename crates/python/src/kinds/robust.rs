//! Robust PPCA.

use std::sync::Arc;

use covary::estimator::Family;
use covary::model::{LinearGaussian, LinearStudent, Noise};
use covary::persist::SavedModel;
use covary::{Components, DegreesOfFreedom, RobustPpca};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{caught, now};
use crate::given;
use crate::model::Model;
use crate::output::vector;

/// `nu`: a number, or nothing for one that is found.
pub(super) fn robust(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let nu: Option<f64> = keywords.take("nu")?;
    let nu = nu.map_or(DegreesOfFreedom::Auto, DegreesOfFreedom::Given);
    let family = RobustPpca::new(components).nu(nu).solver(keywords.word("solver")?.unwrap_or_default());
    Ok(Arc::new(family))
}

/// Degrees of freedom (1,).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<LinearStudent>() else { return Ok(None) };
    caught(|| {
        let dict = PyDict::new(py);
        dict.set_item("nu", vector(py, &[model.degrees_of_freedom()]))?;
        Ok(Some(dict))
    })
}

#[pymethods]
impl Model {
    /// A model of given numbers: mean (p,), loadings (p, q), noise variances (one, or p) and ν.
    #[staticmethod]
    #[pyo3(signature = (mean, loadings, noise_variance, nu, names=None))]
    fn given_robust(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        loadings: PyReadonlyArray2<'_, f64>,
        noise_variance: PyReadonlyArray1<'_, f64>,
        nu: f64,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (mean, loadings) = (given::vector(py, &mean)?, given::matrix(py, &loadings)?);
        let noise = match given::vector(py, &noise_variance)? {
            one if one.len() == 1 => Noise::Isotropic(one[0]),
            each => Noise::Diagonal(each),
        };
        let made =
            || SavedModel::given(LinearStudent::new(LinearGaussian::new(mean, loadings, noise)?, nu)?, names);
        Self::new(py, now(py, made)?)
    }
}

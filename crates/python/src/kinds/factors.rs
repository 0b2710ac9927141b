//! Factor analysis, and what is asked of factors alone.

use std::sync::Arc;

use covary::data::RowSource;
use covary::estimator::{Family, most_factors as most, standard_errors_with as errors_of};
use covary::linalg::Mat;
use covary::model::{Factors, LinearGaussian, Model as _, Noise, Scores};
use covary::persist::SavedModel;
use covary::{Components, FactorAnalysis};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{Manner, caught, now, run};
use crate::given;
use crate::input::Rows;
use crate::model::Model;
use crate::output::{Answer, matrix, to_python, vector};
use crate::rotation::Rotation;
use crate::threads::Threads;

/// `lower`: the least uniqueness; `undetermined`: whether loadings that the data do not determine are fitted.
pub(super) fn fa(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let mut family = FactorAnalysis::new(components).solver(keywords.word("solver")?.unwrap_or_default());
    if let Some(rotation) = keywords.take::<PyRef<'_, Rotation>>("rotation")? {
        family = family.rotation(rotation.rotate());
    }
    if let Some(lower) = keywords.take("lower")? {
        family = family.lower(lower);
    }
    if let Some(starts) = keywords.take("starts")? {
        family = family.starts(starts);
    }
    if let Some(undetermined) = keywords.take("undetermined")? {
        family = family.undetermined(undetermined);
    }
    Ok(Arc::new(family))
}

/// The most factors of so many features that leave degrees of freedom.
#[pyfunction]
pub(crate) fn most_factors(n_features: usize) -> usize {
    most(n_features)
}

/// Structure, correlation of factors, communalities, … as arrays.
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(factors) = model.of_kind::<Factors>() else { return Ok(None) };
    caught(|| {
        let dict = PyDict::new(py);
        let q = factors.n_latent();
        let turn = factors.turn().cloned().unwrap_or_else(|| Mat::identity(q, q));
        dict.set_item("structure", matrix(py, factors.structure().as_ref())?)?;
        dict.set_item("factor_correlation", matrix(py, factors.correlation().as_ref())?)?;
        dict.set_item("rotation_matrix", matrix(py, turn.as_ref())?)?;
        dict.set_item("unrotated", matrix(py, factors.gaussian().loadings().as_ref())?)?;
        dict.set_item("standardised_loadings", matrix(py, factors.standardised_pattern().as_ref())?)?;
        dict.set_item("standardised_structure", matrix(py, factors.standardised_structure().as_ref())?)?;
        dict.set_item("communalities", vector(py, &factors.communalities()))?;
        dict.set_item("uniquenesses", vector(py, &factors.uniquenesses()))?;
        dict.set_item("factor_variances", vector(py, &factors.factor_variances()))?;
        Ok(Some(dict))
    })
}

/// Of a fit of factors: `given` and `standardised`, each with loadings, correlation and uniquenesses.
pub(super) fn standard_errors<'py>(
    py: Python<'py>,
    model: &Model,
    manner: Manner,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(factors) = model.of_kind::<Factors>().cloned() else { return Ok(None) };
    let report = model.saved().report.clone();
    let found = run(py, &manner, move |control| errors_of(&factors, &report, control))?;
    to_python(py, &found).map(Some)
}

#[pymethods]
impl Model {
    /// A model of factors: mean (p), pattern (p, q), noise variances (p) and correlation of the factors (q, q).
    #[staticmethod]
    #[pyo3(signature = (mean, pattern, noise_variance, correlation=None, names=None))]
    fn given_factors(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        pattern: PyReadonlyArray2<'_, f64>,
        noise_variance: PyReadonlyArray1<'_, f64>,
        correlation: Option<PyReadonlyArray2<'_, f64>>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (mean, pattern) = (given::vector(py, &mean)?, given::matrix(py, &pattern)?);
        let noise = Noise::Diagonal(given::vector(py, &noise_variance)?);
        let correlation = correlation.map(|phi| given::matrix(py, &phi)).transpose()?;
        let model = || match correlation {
            Some(phi) => Factors::given(mean, pattern.as_ref(), phi.as_ref(), noise),
            None => LinearGaussian::new(mean, pattern, noise).map(Factors::new),
        };
        Self::new(py, now(py, || SavedModel::given(model()?, names))?)
    }

    /// Scores on factors (n, q): "regression" or "bartlett".
    #[pyo3(signature = (rows, method, single_precision=false, threads=None))]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        method: &str,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let method = match method {
            "regression" => Scores::Regression,
            "bartlett" => Scores::Bartlett,
            other => {
                return Err(PyValueError::new_err(format!(
                    "method must be 'regression' or 'bartlett', not '{other}'"
                )));
            }
        };
        let Some(factors) = self.of_kind::<Factors>().cloned() else {
            return Err(PyValueError::new_err("a model of kind 'fa' is needed"));
        };
        let scores = move |_: &dyn covary::model::Model, rows: &dyn RowSource| {
            Answer::new(&factors.transform(rows, method)?, single_precision)
        };
        self.ask(py, rows, threads, scores)?.into_numpy(py)
    }
}

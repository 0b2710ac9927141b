//! Factor analysis: options as Python gives them, forwarded to the estimator.

use covary::data::RowSource;
use covary::estimator::{Report, most_factors as most, standard_errors, turned};
use covary::evidence::Moments as Evidence;
use covary::model::{Factors, Model as AnyModel, Scores};
use covary::persist::SavedModel;
use covary::rotate::Rotate;
use covary::{Control, FactorAnalysis, FactorSolver};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::Manner;
use crate::output::{matrix, vector};
use crate::rotation::Rotation;

/// How factors are to be fitted.
#[pyclass(frozen, skip_from_py_object, module = "covary._covary")]
#[derive(Clone)]
pub(crate) struct FactorOptions {
    estimator: FactorAnalysis,
    threads: Option<usize>,
}

#[pymethods]
impl FactorOptions {
    /// `lower`: the least uniqueness; `undetermined`: whether loadings that the data do not determine are fitted.
    #[new]
    #[pyo3(signature = (factors, *, rotation=None, lower=None, starts=None, undetermined=false, solver="auto", tolerance=None, max_iterations=None, seed=0, threads=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        factors: usize,
        rotation: Option<&Rotation>,
        lower: Option<f64>,
        starts: Option<usize>,
        undetermined: bool,
        solver: &str,
        tolerance: Option<f64>,
        max_iterations: Option<usize>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let solver: FactorSolver = serde_json::from_value(solver.into())
            .map_err(|error| PyValueError::new_err(format!("solver: {error}")))?;
        let estimator = FactorAnalysis::new(factors).solver(solver).undetermined(undetermined).seed(seed);
        let estimator = given(estimator, rotation.map(Rotation::rotate), FactorAnalysis::rotation);
        let estimator = given(estimator, lower, FactorAnalysis::lower);
        let estimator = given(estimator, starts, FactorAnalysis::starts);
        let estimator = given(estimator, tolerance, FactorAnalysis::tolerance);
        let estimator = given(estimator, max_iterations, FactorAnalysis::max_iterations);
        Ok(Self { estimator, threads })
    }
}

/// With an option, when it was given.
fn given<E, T>(estimator: E, value: Option<T>, set: impl FnOnce(E, T) -> E) -> E {
    match value {
        Some(value) => set(estimator, value),
        None => estimator,
    }
}

impl FactorOptions {
    pub(crate) fn manner(&self, progress: Option<Py<PyAny>>) -> Manner {
        Manner { threads: self.threads, progress }
    }

    /// Fits rows, within memory and with threads where they are limited.
    pub(crate) fn fit(
        &self,
        source: &dyn RowSource,
        (memory, threads): (Option<usize>, Option<usize>),
        control: &Control<'_>,
        names: Option<Vec<String>>,
    ) -> covary::Result<SavedModel> {
        let estimator = given(self.estimator.clone(), memory, FactorAnalysis::memory);
        let estimator = given(estimator, threads, FactorAnalysis::threads);
        SavedModel::of_factors(estimator.fit_with(source, control)?, names)
    }

    /// Fits moments.
    pub(crate) fn fit_moments(
        &self,
        moments: &Evidence,
        names: Option<Vec<String>>,
    ) -> covary::Result<SavedModel> {
        let fit = self.estimator.fit_moments(moments).map_err(|error| error.named(names.as_deref()))?;
        SavedModel::of_factors(fit, names)
    }
}

/// The most factors of so many features that leave degrees of freedom.
#[pyfunction]
pub(crate) fn most_factors(n_features: usize) -> usize {
    most(n_features)
}

/// How scores are estimated.
pub(crate) fn scores(method: &str) -> PyResult<Scores> {
    match method {
        "regression" => Ok(Scores::Regression),
        "bartlett" => Ok(Scores::Bartlett),
        other => {
            Err(PyValueError::new_err(format!("method must be 'regression' or 'bartlett', not '{other}'")))
        }
    }
}

/// What loadings on factors tell, as arrays.
pub(crate) fn tables<'py>(py: Python<'py>, factors: &Factors) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let q = factors.n_factors();
    let turn = factors.turn().cloned().unwrap_or_else(|| covary::linalg::Mat::identity(q, q));
    dict.set_item("structure", matrix(py, factors.structure().as_ref())?)?;
    dict.set_item("factor_correlation", matrix(py, factors.correlation().as_ref())?)?;
    dict.set_item("rotation_matrix", matrix(py, turn.as_ref())?)?;
    dict.set_item("unrotated", matrix(py, factors.gaussian().loadings().as_ref())?)?;
    dict.set_item("standardised_loadings", matrix(py, factors.standardised_pattern().as_ref())?)?;
    dict.set_item("standardised_structure", matrix(py, factors.standardised_structure().as_ref())?)?;
    dict.set_item("communalities", vector(py, &factors.communalities()))?;
    dict.set_item("uniquenesses", vector(py, &factors.uniquenesses()))?;
    dict.set_item("factor_variances", vector(py, &factors.factor_variances()))?;
    Ok(dict)
}

/// Standard errors of a fit, as JSON.
pub(crate) fn precision(factors: &Factors, saved: &SavedModel) -> covary::Result<String> {
    let found = standard_errors(factors, &saved.report)?;
    serde_json::to_string(&found).map_err(|error| covary::Error::Format(error.to_string()))
}

/// A model with its loadings turned, or turned back: factors, whatever it was before.
pub(crate) fn rotated(saved: SavedModel, rotate: Option<Rotate>) -> covary::Result<SavedModel> {
    let factors = match saved.model {
        AnyModel::Fa(factors) => factors,
        other => Factors::new(other.gaussian()?.into_owned()),
    };
    let (factors, rotation) = match rotate {
        None => (factors.without_turn(), None),
        Some(rotate) => {
            let (factors, report) =
                turned(factors, &rotate).map_err(|error| error.named(Some(saved.features.as_slice())))?;
            (factors, Some(report))
        }
    };
    let given = SavedModel::given(factors, Some(saved.features))?;
    Ok(SavedModel { report: Report { rotation, ..saved.report }, ..given })
}

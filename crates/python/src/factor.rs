//! Factor analysis: options as Python gives them, forwarded to the estimator, and what is asked of factors alone.

use covary::data::RowSource;
use covary::estimator::{Report, most_factors as most, standard_errors, turned};
use covary::evidence::Moments as Evidence;
use covary::model::{Factors, LinearGaussian, Model as AnyModel, Noise, Scores};
use covary::persist::SavedModel;
use covary::rotate::Rotate;
use covary::{Control, FactorAnalysis, FactorSolver};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, caught, now, run};
use crate::input::Rows;
use crate::model::{Model, to_mat};
use crate::output::{Answer, matrix, vector};
use crate::reading::Reading;
use crate::rotation::Rotation;
use crate::threads::Threads;

/// How factors are to be fitted.
#[pyclass(frozen, skip_from_py_object, module = "covary._covary")]
#[derive(Clone)]
pub(crate) struct FactorOptions {
    estimator: FactorAnalysis,
    threads: Option<Threads>,
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
        threads: Option<Threads>,
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

/// A model of factors: mean (p), pattern (p, q), noise variances (p) and correlation of the factors (q, q).
#[pyfunction]
#[pyo3(signature = (mean, pattern, noise_variance, correlation=None, names=None))]
pub(crate) fn given_factors(
    py: Python<'_>,
    mean: PyReadonlyArray1<'_, f64>,
    pattern: PyReadonlyArray2<'_, f64>,
    noise_variance: PyReadonlyArray1<'_, f64>,
    correlation: Option<PyReadonlyArray2<'_, f64>>,
    names: Option<Vec<String>>,
) -> PyResult<Model> {
    let (mean, pattern) = (mean.as_array().to_vec(), to_mat(&pattern));
    let noise = Noise::Diagonal(noise_variance.as_array().to_vec());
    let model = || match correlation {
        Some(phi) => Factors::given(mean, pattern.as_ref(), to_mat(&phi).as_ref(), noise),
        None => LinearGaussian::new(mean, pattern, noise).map(Factors::new),
    };
    Model::new(py, now(py, || SavedModel::given(model()?, names))?)
}

/// Scores on factors (n, q): "regression" or "bartlett".
#[pyfunction]
#[pyo3(signature = (model, rows, method, single_precision=false, threads=None))]
pub(crate) fn factor_scores<'py>(
    py: Python<'py>,
    model: &Model,
    rows: &Rows,
    method: &str,
    single_precision: bool,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyAny>> {
    let (factors, method) = (model.factors()?.clone(), scores(method)?);
    let scores = move |_: &Reading, rows: &dyn RowSource| {
        Answer::new(&factors.transform(rows, method)?, single_precision)
    };
    model.ask(py, rows, threads, scores)?.into_numpy(py)
}

/// How scores are estimated.
fn scores(method: &str) -> PyResult<Scores> {
    match method {
        "regression" => Ok(Scores::Regression),
        "bartlett" => Ok(Scores::Bartlett),
        other => {
            Err(PyValueError::new_err(format!("method must be 'regression' or 'bartlett', not '{other}'")))
        }
    }
}

/// Structure, correlation of factors, communalities, … as arrays.
#[pyfunction]
pub(crate) fn factor_tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let factors = model.factors()?;
    caught(|| {
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
    })
}

/// Standard errors of a fit of factors, as JSON.
#[pyfunction]
#[pyo3(signature = (model, threads=None))]
pub(crate) fn factor_errors(py: Python<'_>, model: &Model, threads: Option<Threads>) -> PyResult<String> {
    let (factors, report) = (model.factors()?.clone(), model.saved().report.clone());
    run(py, &Manner { threads, progress: None }, move |_| {
        let found = standard_errors(&factors, &report)?;
        serde_json::to_string(&found).map_err(|error| covary::Error::Format(error.to_string()))
    })
}

/// The same model with its loadings turned, or turned back: factors, whatever it was before.
#[pyfunction]
#[pyo3(signature = (model, rotation=None))]
pub(crate) fn rotated(py: Python<'_>, model: &Model, rotation: Option<&Rotation>) -> PyResult<Model> {
    let (saved, rotate) = (model.saved().clone(), rotation.map(Rotation::rotate));
    Model::new(py, run(py, &Manner::default(), move |_| with_turn(saved, rotate))?)
}

fn with_turn(saved: SavedModel, rotate: Option<Rotate>) -> covary::Result<SavedModel> {
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

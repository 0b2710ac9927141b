//! Fits: options as Python gives them, forwarded to the estimators.

use std::sync::Arc;

use covary::data::{RowSource, counted_rows};
use covary::estimator::{Batch, FromSpectrum, Online, Spectral};
use covary::evidence::{Latent, Moments as Evidence, gather, gather_stream};
use covary::model::{LinearGaussian, Model as AnyModel, PrincipalComponents};
use covary::persist::{Portable, SavedModel};
use covary::{BayesMethod, BayesianPca, Components, Control, Fit, Solver};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::door::{Manner, now, run};
use crate::factor::FactorOptions;
use crate::input::{Held, Rows};
use crate::model::Model;
use crate::threads::Threads;

/// How a model is to be fitted.
#[pyclass(frozen, skip_from_py_object, module = "covary._covary")]
#[derive(Clone)]
pub(crate) struct Options {
    kind: Kind,
    components: Components,
    complete: Option<Complete>,
    solver: Solver,
    tolerance: Option<f64>,
    max_iterations: Option<usize>,
    seed: u64,
    threads: Option<Threads>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ppca,
    Pca,
    Bpca(BayesMethod),
}

/// To how many directions those of complete rows are completed by others of no variance.
#[derive(Clone, Copy, FromPyObject)]
enum Complete {
    /// As many as there are rows or features, whichever are fewer.
    Rows(bool),
    To(usize),
}

/// What people call `n_components`.
struct Asked(Components);

impl FromPyObject<'_, '_> for Asked {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let word = given.extract::<&str>().ok();
        let number =
            || given.extract().map(Components::Count).or_else(|_| given.extract().map(Components::Fraction));
        let known = match word {
            Some("all") => Some(Components::All),
            Some("mle") => Some(Components::Evidence),
            Some(_) => None,
            None => number().ok(),
        };
        known.map(Self).ok_or_else(|| {
            let given = given.repr().map_or("?".into(), |text| text.to_string());
            PyValueError::new_err(format!(
                "n_components={given} must be a number, a fraction of the variance in (0, 1), 'mle' or None"
            ))
        })
    }
}

#[pymethods]
impl Options {
    /// `components`: a number, a fraction of the variance, "mle" or "all"; `complete`: directions of no variance are added
    /// to those of complete rows until there are so many, or (True) as many as there are rows or features; `method`: of the
    /// kind "bpca".
    #[new]
    #[pyo3(signature = (kind, components, *, method=None, complete=None, solver="auto", tolerance=None, max_iterations=None, seed=0, threads=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
    fn new(
        kind: &str,
        components: Asked,
        method: Option<&str>,
        complete: Option<Complete>,
        solver: &str,
        tolerance: Option<f64>,
        max_iterations: Option<usize>,
        seed: u64,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let kind = match kind {
            "ppca" => Kind::Ppca,
            "pca" => Kind::Pca,
            "bpca" => Kind::Bpca(bayes_method(method)?),
            other => return Err(PyValueError::new_err(format!("unknown kind of model '{other}'"))),
        };
        let solver = serde_json::from_value(solver.into())
            .map_err(|error| PyValueError::new_err(format!("solver: {error}")))?;
        Ok(Self {
            kind,
            components: components.0,
            complete,
            solver,
            tolerance,
            max_iterations,
            seed,
            threads,
        })
    }
}

impl Options {
    fn estimator<M>(&self) -> Spectral<M> {
        let mut estimator = Spectral::new(self.components).solver(self.solver).seed(self.seed);
        if let Some(tolerance) = self.tolerance {
            estimator = estimator.tolerance(tolerance);
        }
        if let Some(limit) = self.max_iterations {
            estimator = estimator.max_iterations(limit);
        }
        estimator
    }

    fn manner(&self, progress: Option<Py<PyAny>>) -> Manner {
        Manner { threads: self.threads, progress }
    }

    /// Fits rows, within memory and with threads where they are limited.
    fn fit(
        &self,
        source: &dyn RowSource,
        limits: (Option<usize>, Option<usize>),
        control: &Control<'_>,
        names: Option<Vec<String>>,
    ) -> covary::Result<SavedModel> {
        match self.kind {
            Kind::Ppca => {
                self.finish(self.limited::<LinearGaussian>(limits).fit_with(source, control), names)
            }
            Kind::Pca => {
                self.finish(self.limited::<PrincipalComponents>(limits).fit_with(source, control), names)
            }
            Kind::Bpca(method) => {
                let estimator = BayesianPca::of(self.limited(limits)).method(method);
                self.finish(estimator.fit_with(source, control), names)
            }
        }
    }

    fn limited<M: FromSpectrum>(&self, (memory, threads): (Option<usize>, Option<usize>)) -> Spectral<M> {
        let mut estimator = self.estimator();
        if let Some(memory) = memory {
            estimator = estimator.memory(memory);
        }
        if let Some(threads) = threads {
            estimator = estimator.threads(threads);
        }
        estimator
    }

    /// Fits moments.
    fn fit_moments(&self, evidence: &Evidence, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        match self.kind {
            Kind::Ppca => self.finish(self.estimator::<LinearGaussian>().fit_moments(evidence), names),
            Kind::Pca => self.finish(self.estimator::<PrincipalComponents>().fit_moments(evidence), names),
            Kind::Bpca(method) => {
                self.finish(BayesianPca::of(self.estimator()).method(method).fit_moments(evidence), names)
            }
        }
    }

    fn fit_seen(&self, seen: &Online, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        match self.kind {
            Kind::Ppca => self.finish(self.estimator::<LinearGaussian>().fit_online(seen), names),
            Kind::Pca => self.finish(self.estimator::<PrincipalComponents>().fit_online(seen), names),
            Kind::Bpca(_) => self.fit_moments(seen.parts().0, names),
        }
    }

    /// The fit, as it would stand in a file.
    fn finish<M: Into<AnyModel>>(
        &self,
        fit: covary::Result<Fit<M>>,
        names: Option<Vec<String>>,
    ) -> covary::Result<SavedModel> {
        let mut saved = SavedModel::new(fit?, names)?;
        let asked = self.complete.filter(|_| saved.report.holes.is_none());
        let q = match asked {
            Some(Complete::To(q)) => q,
            Some(Complete::Rows(true)) => saved.report.counted_rows().min(saved.report.features),
            _ => 0,
        };
        if let AnyModel::Pca(m) = &saved.model
            && q > m.n_components()
            && (m.noise_variance() == 0.0 || matches!(asked, Some(Complete::To(_))))
        {
            let completed = m.completed(q)?;
            saved.eigenvalues.resize(saved.eigenvalues.len().max(completed.n_components()), 0.0);
            saved.report.components = completed.n_components();
            saved.model = completed.into();
        }
        Ok(saved)
    }
}

fn bayes_method(name: Option<&str>) -> PyResult<BayesMethod> {
    let Some(name) = name else { return Ok(BayesMethod::default()) };
    let known = serde_json::from_value(name.into());
    known.map_err(|error| PyValueError::new_err(format!("method: {error}")))
}

/// Options of either kind.
#[derive(FromPyObject)]
pub(crate) enum AnyOptions<'py> {
    Spectral(PyRef<'py, Options>),
    Factors(PyRef<'py, FactorOptions>),
}

impl AnyOptions<'_> {
    fn manner(&self, progress: Option<Py<PyAny>>) -> Manner {
        match self {
            Self::Spectral(options) => options.manner(progress),
            Self::Factors(options) => options.manner(progress),
        }
    }

    /// What can leave the interpreter.
    fn recipe(&self) -> Recipe {
        match self {
            Self::Spectral(options) => Recipe::Spectral((*options).clone()),
            Self::Factors(options) => Recipe::Factors((*options).clone()),
        }
    }
}

enum Recipe {
    Spectral(Options),
    Factors(FactorOptions),
}

impl Recipe {
    fn fit_moments(&self, evidence: &Evidence, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        match self {
            Self::Spectral(options) => options.fit_moments(evidence, names),
            Self::Factors(options) => options.fit_moments(evidence, names),
        }
    }

    /// What rows add to what was seen; factors and Bayesian PCA want complete ones.
    fn look(&self, seen: &Online, source: &dyn RowSource, control: &Control<'_>) -> covary::Result<Batch> {
        match self {
            Self::Spectral(options) if !matches!(options.kind, Kind::Bpca(_)) => {
                options.estimator::<LinearGaussian>().look(seen, source, control)
            }
            _ => {
                let p = seen.n_features();
                seen.batch_of(gather(source, || Evidence::empty(p), control)?)
            }
        }
    }

    fn fit_seen(&self, seen: &Online, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        match self {
            Self::Spectral(options) => options.fit_seen(seen, names),
            Self::Factors(options) => options.fit_moments(seen.parts().0, names),
        }
    }
}

/// Fits rows.
#[pyfunction]
#[pyo3(signature = (rows, options, progress=None))]
pub(crate) fn fit(
    py: Python<'_>,
    rows: &Rows,
    options: AnyOptions<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let job = Job { held: Arc::clone(&rows.held), budget: rows.budget, recipe: options.recipe() };
    let names = rows.names();
    let saved = run(py, &options.manner(progress), move |control| job.fit(control, names))?;
    Model::new(py, saved)
}

struct Job {
    held: Arc<Held>,
    budget: Option<covary_io::Budget>,
    recipe: Recipe,
}

impl Job {
    fn fit(&self, control: &Control<'_>, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        if let Some(stream) = self.held.take_stream() {
            let p = self.held.n_features();
            let moments = gather_stream(&mut stream?, || Evidence::empty(p), control)?;
            return self.recipe.fit_moments(&moments, names);
        }
        let source = self.held.source()?;
        let memory = self.budget.map(|budget| budget.solver(loaded_bytes(source)));
        let apart = self.budget.filter(|_| source.as_table().is_none());
        let threads = apart.map(|b| b.threads(rayon::current_num_threads(), source.n_features(), 1));
        match &self.recipe {
            Recipe::Spectral(options) => options.fit(source, (memory, threads), control, names),
            Recipe::Factors(options) => options.fit(source, (memory, threads), control, names),
        }
    }
}

/// Bytes of rows that lie in memory.
pub(crate) fn loaded_bytes(source: &dyn RowSource) -> usize {
    let bytes = |(rows, features): (usize, usize)| rows.saturating_mul(features).saturating_mul(8);
    source.as_table().map_or(0, |table| bytes(table.shape()))
}

/// What `partial_fit` has seen: moments of complete rows, and steps of online EM.
#[pyclass(module = "covary._covary")]
pub(crate) struct Seen {
    online: Arc<Online>,
}

impl Seen {
    pub(crate) fn of(moments: Evidence) -> covary::Result<Self> {
        Ok(Self { online: Arc::new(Online::from_parts(moments, None)?) })
    }

    /// Moments of the complete rows.
    pub(crate) fn moments(&self) -> &Evidence {
        self.online.parts().0
    }
}

#[pymethods]
impl Seen {
    /// Of no rows.
    #[new]
    fn new(py: Python<'_>, n_features: usize) -> PyResult<Self> {
        Ok(Self { online: Arc::new(now(py, || Online::try_empty(n_features))?) })
    }

    /// Takes in rows; the options decide where steps start when there are holes.
    #[pyo3(signature = (rows, options, progress=None))]
    fn update(
        &mut self,
        py: Python<'_>,
        rows: &Rows,
        options: AnyOptions<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (held, online) = (Arc::clone(&rows.held), Arc::clone(&self.online));
        let (manner, recipe) = (options.manner(progress), options.recipe());
        let batch = run(py, &manner, move |control| {
            let p = online.n_features();
            match held.take_stream() {
                Some(stream) => {
                    let moments = gather_stream(&mut stream?, || Evidence::empty(p), control)?;
                    online.batch_of(moments)
                }
                None => recipe.look(&online, held.source()?, control),
            }
        })?;
        // Whoever still looks, because somebody was interrupted, keeps what was there.
        now(py, || Arc::make_mut(&mut self.online).take(batch))
    }

    /// Takes in what another has seen.
    fn merge(&mut self, py: Python<'_>, other: &Self) -> PyResult<()> {
        now(py, || Arc::make_mut(&mut self.online).merge(&other.online))
    }

    /// The model of what was seen.
    #[pyo3(signature = (options, names=None))]
    fn fit(&self, py: Python<'_>, options: AnyOptions<'_>, names: Option<Vec<String>>) -> PyResult<Model> {
        let (online, recipe) = (Arc::clone(&self.online), options.recipe());
        let saved = run(py, &options.manner(None), move |_| recipe.fit_seen(&online, names))?;
        Model::new(py, saved)
    }

    /// Rows of positive weight.
    #[getter]
    fn n_rows(&self) -> usize {
        self.online.rows()
    }

    /// Number of rows that they stand for, by their weights.
    #[getter]
    fn n_counted(&self) -> usize {
        counted_rows(self.online.rows(), self.online.weight())
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.online.n_features()
    }

    fn __copy__(&self) -> Self {
        Self { online: Arc::clone(&self.online) }
    }

    fn __getnewargs__(&self) -> (usize,) {
        (self.online.n_features(),)
    }

    /// Bytes of the moments and, where there were holes, bytes of the evidence and JSON of the tally.
    fn __getstate__<'py>(&self, py: Python<'py>) -> PyResult<State<Bound<'py, PyBytes>>> {
        let names: Vec<String> = (0..self.online.n_features()).map(|j| j.to_string()).collect();
        let (complete, holey) = self.online.parts();
        let complete = PyBytes::new(py, &now(py, || complete.to_bytes(&names))?);
        let Some((latent, tally)) = holey else { return Ok((complete, None)) };
        let latent = PyBytes::new(py, &now(py, || latent.to_bytes(&names))?);
        Ok((complete, Some((latent, serde_json::to_string(tally).map_err(unreadable)?))))
    }

    fn __setstate__(&mut self, py: Python<'_>, state: State<Vec<u8>>) -> PyResult<()> {
        let complete = now(py, || Evidence::from_bytes(&state.0))?.evidence;
        let holey = match state.1 {
            Some((latent, tally)) => {
                let tally = serde_json::from_str(&tally).map_err(unreadable)?;
                Some((now(py, || Latent::from_bytes(&latent))?.evidence, tally))
            }
            None => None,
        };
        self.online = Arc::new(now(py, || Online::from_parts(complete, holey))?);
        Ok(())
    }
}

type State<B> = (B, Option<(B, String)>);

fn unreadable(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

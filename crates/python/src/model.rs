//! A fitted model: its numbers as arrays, and the questions that can be asked of it.

use std::path::PathBuf;
use std::sync::Arc;

use covary::Control;
use covary::data::{RowSource, Watched, map_chunks};
use covary::estimator::{Report, turned_with};
use covary::memory;
use covary::model::{
    AnyModel, LatentCovariance, LinearGaussian, Model as Fitted, Noise, PrincipalComponents, Reconstruction,
};
use covary::persist::SavedModel;
use covary::rotate::Rotate;
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::description::description;
use crate::door::{Manner, now, run};
use crate::given;
use crate::input::{Held, Rows, write};
use crate::kinds;
use crate::output::{Answer, double, matrix, to_python, vector};
use crate::rotation::Rotation;
use crate::threads::Threads;

/// A model with its provenance.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Model {
    saved: SavedModel,
    /// As Python reads it: classical PCA has scikit-learn's divisor n − 1.
    inner: AnyModel,
}

impl Model {
    pub(crate) fn new(py: Python<'_>, saved: SavedModel) -> PyResult<Self> {
        let inner = now(py, || as_python_reads(&saved))?;
        Ok(Self { saved, inner })
    }

    /// What stands in a file.
    pub(crate) fn saved(&self) -> &SavedModel {
        &self.saved
    }

    /// As a model of one kind, when it is.
    pub(crate) fn of_kind<M: Fitted>(&self) -> Option<&M> {
        self.saved.model.downcast_ref()
    }

    /// Asks something about rows, until somebody presses Ctrl-C.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        rows: &Rows,
        threads: Option<Threads>,
        question: impl FnOnce(&dyn Fitted, &dyn RowSource) -> covary::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        ask(py, Arc::clone(&self.inner), rows, threads, question)
    }

    /// The model with coordinates scaled to unit variance, or not.
    fn whitened(&self, whiten: bool) -> AnyModel {
        match self.inner.downcast_ref::<PrincipalComponents>() {
            Some(m) if m.is_whitened() != whiten => Arc::new(m.clone().whitened(whiten)),
            _ => Arc::clone(&self.inner),
        }
    }
}

/// Classical PCA with the divisor n − 1; given numbers were never divided by anything.
fn as_python_reads(saved: &SavedModel) -> covary::Result<AnyModel> {
    match saved.model.downcast_ref::<PrincipalComponents>() {
        Some(m) if saved.report.rows > 0 => Ok(Arc::new(m.unbiased(saved.report.weight)?)),
        _ => Ok(Arc::clone(&saved.model)),
    }
}

fn ask<T: Send + 'static>(
    py: Python<'_>,
    model: AnyModel,
    rows: &Rows,
    threads: Option<Threads>,
    question: impl FnOnce(&dyn Fitted, &dyn RowSource) -> covary::Result<T> + Send + 'static,
) -> PyResult<T> {
    let held = Arc::clone(&rows.held);
    run(py, &Manner { threads, progress: None }, move |control| {
        question(&*model, &Watched::new(held.source()?, control))
    })
}

/// The model with its loadings turned, or turned back: factors, whatever it was before.
fn with_turn(
    saved: &SavedModel,
    rotate: Option<&Rotate>,
    control: &Control<'_>,
) -> covary::Result<SavedModel> {
    let factors = saved.model.with_loadings()?.factors();
    let (factors, rotation) = match rotate {
        None => (factors.without_turn(), None),
        Some(rotate) => {
            let found = turned_with(factors, rotate, control);
            let found = found.map_err(|error| error.named(Some(saved.features.as_slice())));
            found.map(|(factors, report)| (factors, Some(report)))?
        }
    };
    let given = SavedModel::given(factors, Some(saved.features.clone()))?;
    Ok(SavedModel { report: Report { rotation, ..saved.report.clone() }, ..given })
}

/// Rows whose covariances are written between two looks at whether somebody still wants them.
const ROWS_AT_ONCE: usize = 1024;

/// Posterior covariances as they are handed over: (q, q), or (n, q, q) when rows have missing values.
pub(crate) struct Covariances {
    cells: Vec<f64>,
    shape: Vec<usize>,
}

impl Covariances {
    /// One for all rows, or written out for each as long as the rows are wanted.
    pub(crate) fn of(covariance: LatentCovariance, rows: &dyn RowSource) -> covary::Result<Self> {
        match covariance {
            LatentCovariance::Shared(c) => {
                Ok(Self { cells: double(&c)?.into_cells(), shape: vec![c.nrows(), c.ncols()] })
            }
            LatentCovariance::PerPattern { cells, pattern, latent: q } => {
                memory::check("the array of a covariance for each row", &[pattern.len(), q, q])?;
                let mut all = Vec::with_capacity(pattern.len() * q * q);
                for some in pattern.chunks(ROWS_AT_ONCE) {
                    rows.check()?;
                    some.iter().for_each(|k| all.extend_from_slice(&cells[k * q * q..(k + 1) * q * q]));
                }
                Ok(Self { cells: all, shape: vec![pattern.len(), q, q] })
            }
        }
    }

    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(PyArray1::from_vec(py, self.cells).reshape(self.shape)?.into_any())
    }
}

/// A noise variance: one for all features, or one for each.
#[derive(FromPyObject)]
enum GivenNoise<'py> {
    Isotropic(f64),
    Diagonal(PyReadonlyArray1<'py, f64>),
}

#[pymethods]
impl Model {
    /// A model of given numbers: mean (p), loadings (p, q) and the noise variance.
    #[staticmethod]
    #[pyo3(signature = (mean, loadings, noise_variance, names=None))]
    fn given(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        loadings: PyReadonlyArray2<'_, f64>,
        noise_variance: GivenNoise<'_>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let noise = match noise_variance {
            GivenNoise::Isotropic(value) => Noise::Isotropic(value),
            GivenNoise::Diagonal(values) => Noise::Diagonal(given::vector(py, &values)?),
        };
        let (mean, loadings) = (given::vector(py, &mean)?, given::matrix(py, &loadings)?);
        Self::new(py, now(py, || SavedModel::given(LinearGaussian::new(mean, loadings, noise)?, names))?)
    }

    /// A model of factors: mean (p,), pattern (p, q), noise variances (p,) and correlation of the factors (q,
    /// q).
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
        kinds::given_factors(py, mean, pattern, noise_variance, correlation, names)
    }

    /// A model of Bayesian PCA: mean (p,), loadings (p, q), σ² and, when W and μ have a distribution, their
    /// deviations.
    #[staticmethod]
    #[pyo3(signature = (mean, loadings, noise_variance, known=None, names=None))]
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn given_bayes(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        loadings: PyReadonlyArray2<'_, f64>,
        noise_variance: f64,
        known: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>)>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        kinds::given_bayes(py, mean, loadings, noise_variance, known, names)
    }

    /// A mixture: weights (K,), means (K, p), loadings (K, p, q) and noise variances (K, 1) or (K, p).
    #[staticmethod]
    #[pyo3(signature = (weights, means, loadings, noise_variance, names=None))]
    fn given_mixture(
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        means: PyReadonlyArray2<'_, f64>,
        loadings: PyReadonlyArray3<'_, f64>,
        noise_variance: PyReadonlyArray2<'_, f64>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        kinds::given_mixture(py, weights, means, loadings, noise_variance, names)
    }

    /// A component of a mixture as a model of its own, counted from 0.
    fn component(&self, py: Python<'_>, k: usize) -> PyResult<Self> {
        kinds::component(py, self, k)
    }

    /// Of a mixture: probabilities (n, K), posterior means (n, K, q) and covariances of each component.
    #[pyo3(signature = (rows, threads=None))]
    fn mixture_posterior<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<kinds::Posteriors<'py>> {
        kinds::mixture_posterior(py, self, rows, threads)
    }

    /// A model of robust PPCA: mean (p,), loadings (p, q), noise variances (one, or p) and ν.
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
        kinds::given_robust(py, mean, loadings, noise_variance, nu, names)
    }

    /// How much each row counts in a robust fit; nothing where all count alike.
    #[pyo3(signature = (rows, threads=None))]
    fn row_weights<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let found = self.ask(py, rows, threads, |m, rows| m.density()?.row_weights(rows))?;
        Ok(found.map(|weights| PyArray1::from_vec(py, weights)))
    }

    /// Arrays that only models of this kind have.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        kinds::tables(py, self)
    }

    /// Standard errors of the parameters.
    #[pyo3(signature = (threads=None))]
    fn standard_errors<'py>(&self, py: Python<'py>, threads: Option<Threads>) -> PyResult<Bound<'py, PyAny>> {
        kinds::standard_errors(py, self, || Manner { threads, progress: None })
    }

    /// Intervals of the parameters of PPCA, lower ends first.
    #[pyo3(signature = (level=None, threads=None))]
    fn intervals<'py>(
        &self,
        py: Python<'py>,
        level: Option<f64>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyDict>> {
        kinds::intervals(py, self, level, &Manner { threads, progress: None })
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
        kinds::scores(py, self, rows, method, single_precision, threads)
    }

    /// The same model with its loadings turned, or turned back: factors, whatever it was before.
    #[pyo3(signature = (rotation=None))]
    fn rotated(&self, py: Python<'_>, rotation: Option<&Rotation>) -> PyResult<Self> {
        let (saved, rotate) = (self.saved.clone(), rotation.map(Rotation::rotate));
        Self::new(
            py,
            run(py, &Manner::default(), move |control| with_turn(&saved, rotate.as_ref(), control))?,
        )
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Self::new(py, now(py, || SavedModel::from_bytes(bytes))?)
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &now(py, || self.saved.to_bytes())?))
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let bytes = covary_io::read_saved(&path).map_err(|error| crate::errors::io_exception(py, error))?;
        Self::from_bytes(py, &bytes)
    }

    /// Writes a model file, whole or not at all; `whiten`: whether coordinates are to be scaled to unit
    /// variance.
    #[pyo3(signature = (path, whiten=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, whiten: bool) -> PyResult<()> {
        let saved = self.saved.clone().whitened(whiten);
        write(py, path, &now(py, || saved.to_bytes())?)
    }

    /// Whether the file said that coordinates are to be scaled to unit variance.
    #[getter]
    fn whiten(&self) -> bool {
        self.of_kind::<PrincipalComponents>().is_some_and(PrincipalComponents::is_whitened)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// As people type it: `ppca`, `pca`, …
    #[getter]
    fn kind(&self) -> &'static str {
        self.saved.model.kind().name
    }

    /// Number of features, p.
    #[getter]
    fn n_features(&self) -> usize {
        self.saved.model.n_features()
    }

    /// Number of components, q.
    #[getter]
    fn n_components(&self) -> usize {
        self.saved.model.n_latent()
    }

    /// Names of the features, when they have names of their own.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.saved.named().then(|| self.saved.features.clone())
    }

    /// μ (p,).
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(vector(py, now(py, || self.inner.with_loadings())?.mean()))
    }

    /// W, or the pattern of factors (p, q).
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, now(py, || self.inner.with_loadings())?.loadings().as_ref())
    }

    /// Orthonormal directions in rows, or the pattern of factors (q, p).
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        matrix(py, now(py, || self.saved.axes())?.transpose())
    }

    /// σ², or ψ (p,).
    #[getter]
    fn noise_variance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match now(py, || self.inner.with_loadings())?.noise() {
            Noise::Isotropic(value) => value.into_pyobject(py)?.into_any(),
            Noise::Diagonal(values) => vector(py, &values).into_any(),
        })
    }

    /// What each feature was divided by before the fit (p,); `None` when it was not.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.saved.report.scaled.as_ref().map(|scaled| vector(py, &scaled.factors))
    }

    /// Variance along each direction (q,).
    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        match self.inner.downcast_ref::<PrincipalComponents>() {
            Some(m) => vector(py, m.variances()),
            None => {
                let q = self.inner.n_latent().min(self.saved.eigenvalues.len());
                vector(py, &self.saved.eigenvalues[..q])
            }
        }
    }

    /// Share of the total variance along each direction (q,).
    #[getter]
    fn explained_variance_ratio<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, &self.saved.explained_ratio())
    }

    /// Singular values of the centred rows that belong to the directions (q,).
    #[getter]
    fn singular_values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, &self.saved.singular_values())
    }

    /// Total log-likelihood of the rows, which may be infinite; `None` when it is not known.
    #[getter]
    fn log_likelihood(&self) -> Option<f64> {
        self.saved.report.log_likelihood
    }

    /// Rows of positive weight.
    #[getter]
    fn n_rows(&self) -> usize {
        self.saved.report.rows
    }

    /// How the fit went.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.saved.report)
    }

    /// What is told of the model, for people: `lines`, `tables` and the `text` that the command would print.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        description(py, &self.saved)
    }

    /// Wall time of the fit; not part of a file.
    #[getter]
    fn seconds(&self) -> f64 {
        self.saved.report.seconds
    }

    /// Latent coordinates (n, q), in single precision when asked for.
    #[pyo3(signature = (rows, whiten=false, single_precision=false, threads=None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        whiten: bool,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.encoder()?.encode(rows)?, single_precision)
        };
        ask(py, self.whitened(whiten), rows, threads, question)?.into_numpy(py)
    }

    /// Posterior mean (n, q) and covariance: (q, q) when no row has missing values, else (n, q, q).
    #[pyo3(signature = (rows, threads=None))]
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyAny>)> {
        let (mean, covariance) = self.ask(py, rows, threads, |m, rows| {
            // The density that goes with classical PCA has a posterior too.
            let posterior = match m.as_posterior() {
                Some(m) => m.posterior(rows)?,
                None => m.with_loadings()?.factors().posterior(rows)?,
            };
            Ok((double(&posterior.mean)?, Covariances::of(posterior.covariance, rows)?))
        })?;
        Ok((mean.into_numpy(py)?, covariance.into_numpy(py)?))
    }

    /// Rows (n, p) of latent coordinates (n, q).
    #[pyo3(signature = (latent, whiten=false, single_precision=false, threads=None))]
    fn inverse_transform<'py>(
        &self,
        py: Python<'py>,
        latent: PyReadonlyArray2<'py, f64>,
        whiten: bool,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (inner, latent) = (self.whitened(whiten), given::matrix(py, &latent)?);
        let manner = Manner { threads, progress: None };
        let decode =
            move |_: &Control<'_>| Answer::new(&inner.decoder()?.decode(latent.as_ref())?, single_precision);
        run(py, &manner, decode)?.into_numpy(py)
    }

    /// Each row rebuilt (n, p): "orthogonal" or "posterior".
    #[pyo3(signature = (rows, kind, single_precision=false, threads=None))]
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        kind: &str,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kind = match kind {
            "orthogonal" => Reconstruction::Orthogonal,
            "posterior" => Reconstruction::Posterior,
            other => {
                return Err(PyValueError::new_err(format!(
                    "kind must be 'orthogonal' or 'posterior', not '{other}'"
                )));
            }
        };
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.reconstructor()?.reconstruct(rows, kind)?, single_precision)
        };
        self.ask(py, rows, threads, question)?.into_numpy(py)
    }

    /// The group of each row, counted from 0 (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn assign<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let groups = self.ask(py, rows, threads, |m, rows| m.groups()?.assign(rows))?;
        Ok(PyArray1::from_iter(py, groups.into_iter().map(|k| k.cast_signed() as i64)))
    }

    /// The nearest centre of each row (n,), and the squared distance to it (n,).
    #[pyo3(signature = (rows, threads=None))]
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>)> {
        kinds::nearest(py, self, rows, threads)
    }

    /// The model of k-means after one more batch of rows.
    #[pyo3(signature = (rows, threads=None))]
    fn after_batch(&self, py: Python<'_>, rows: &Rows, threads: Option<Threads>) -> PyResult<Self> {
        kinds::after_batch(py, self, rows, threads)
    }

    /// The probability of each group for each row (n, K).
    #[pyo3(signature = (rows, threads=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let found = self.ask(py, rows, threads, |m, rows| double(&m.memberships()?.probabilities(rows)?))?;
        found.into_numpy(py)
    }

    /// Log density of the observed cells of each row (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn score_samples<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let scores = self.ask(py, rows, threads, |m, rows| m.density()?.log_density(rows))?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// The rows with their missing values imputed by conditional means (n, p); observed cells stay as they
    /// are.
    #[pyo3(signature = (rows, single_precision=false, threads=None))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.imputer()?.impute(rows)?, single_precision)
        };
        self.ask(py, rows, threads, question)?.into_numpy(py)
    }

    /// The same, and the standard deviation of each filled cell (n, p), 0 where a cell was observed.
    #[pyo3(signature = (rows, single_precision=false, threads=None))]
    fn impute_with_std<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (cells, std) = self.ask(py, rows, threads, move |m, rows| {
            let imputed = m.imputer()?.impute_with_std(rows)?;
            let answer = |cells| Answer::new(cells, single_precision);
            Ok((answer(&imputed.cells)?, answer(&imputed.std)?))
        })?;
        Ok((cells.into_numpy(py)?, std.into_numpy(py)?))
    }

    /// Draws of the missing cells given the observed ones (draws, n, p).
    #[pyo3(signature = (rows, n_draws, seed, threads=None))]
    fn sample_missing<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        n_draws: usize,
        seed: u64,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (cells, n) = self.ask(py, rows, threads, move |m, rows| {
            let draws = m.imputer()?.draw_missing(rows, 0..n_draws, seed)?;
            let n = match draws.first() {
                Some(draw) => draw.nrows(),
                None => map_chunks(rows, |chunk| Ok(chunk.nrows()))?.iter().sum(),
            };
            memory::check("the array of draws", &[n_draws, n, rows.n_features()])?;
            let cells = draws.into_iter().map(|draw| {
                rows.check()?;
                Ok(double(&draw)?.into_cells())
            });
            Ok((cells.collect::<covary::Result<Vec<_>>>()?.concat(), n))
        })?;
        PyArray1::from_vec(py, cells).reshape([n_draws, n, self.n_features()])
    }

    /// Mean and standard deviation of named cells of rows of which only some cells were seen.
    #[pyo3(signature = (rows, cells, threads=None))]
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn predict_cells<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        cells: Vec<(usize, usize)>,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(&rows.held));
        let found = run(py, &Manner { threads, progress: None }, move |_| match &*held {
            Held::Observed(rows) => inner.imputer()?.predict(rows, &cells),
            _ => Err(covary::Error::Parameter {
                name: "X",
                value: "a whole table".into(),
                allowed: "covary.observed(…); use impute for a table",
            }),
        })?;
        Ok((PyArray1::from_vec(py, found.mean), PyArray1::from_vec(py, found.std)))
    }

    /// T², SPE and p-value of each row.
    #[pyo3(signature = (rows, threads=None))]
    fn outliers<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.ask(py, rows, threads, |m, rows| m.density()?.outliers(rows))?;
        let dict = PyDict::new(py);
        dict.set_item("t2", PyArray1::from_vec(py, found.t2))?;
        dict.set_item("spe", PyArray1::from_vec(py, found.spe))?;
        dict.set_item("p_value", PyArray1::from_vec(py, found.p_value))?;
        Ok(dict)
    }

    /// Indices, mean and covariance of the missing cells of one row.
    #[allow(clippy::type_complexity, reason = "a tuple of three arrays")]
    fn conditional<'py>(
        &self,
        py: Python<'py>,
        row: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (inner, row) = (Arc::clone(&self.inner), given::vector(py, &row)?);
        let found = run(py, &Manner::default(), move |control| inner.imputer()?.conditional(&row, control))?;
        let features = found.features.iter().map(|j| j.cast_signed() as i64).collect();
        Ok((
            PyArray1::from_vec(py, features),
            PyArray1::from_vec(py, found.mean),
            matrix(py, found.covariance.as_ref())?,
        ))
    }

    /// The model of some of the features.
    fn marginal(&self, py: Python<'_>, features: Vec<usize>) -> PyResult<Self> {
        let name = |j: &usize| self.saved.features.get(*j).cloned();
        let names = self.saved.named().then(|| features.iter().filter_map(name).collect::<Vec<_>>());
        let marginal = || SavedModel::of_numbers(self.inner.density()?.marginal(&features)?, names);
        Self::new(py, now(py, marginal)?)
    }

    /// C = W Wᵀ + noise (p, p).
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        run(py, &Manner::default(), move |_| double(&inner.density()?.covariance()?))?.into_numpy(py)
    }

    /// C⁻¹ (p, p).
    fn precision<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        let precision = move |control: &Control<'_>| double(&inner.density()?.precision(control)?);
        run(py, &Manner::default(), precision)?.into_numpy(py)
    }

    /// Rows drawn from the model (n, p).
    #[pyo3(signature = (n, seed, threads=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        let manner = Manner { threads, progress: None };
        let sample = move |control: &Control<'_>| double(&inner.density()?.sample(n, seed, control)?);
        run(py, &manner, sample)?.into_numpy(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let bytes = |model: &SavedModel| now(py, || model.to_bytes());
        Ok(bytes(&self.saved)? == bytes(&other.get().saved)?)
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'Model'"))
    }
}

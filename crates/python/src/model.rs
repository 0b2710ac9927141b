//! A fitted model: its numbers as arrays, and the questions that can be asked of it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use covary::data::RowSource;
use covary::linalg::Mat;
use covary::model::{Factors, LatentCovariance, LinearGaussian, Noise, Reconstruction};
use covary::persist::SavedModel;
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::door::{Manner, run};
use crate::errors::exception;
use crate::input::{Held, Rows, write};
use crate::output::{double, matrix, single, vector};
use crate::reading::Reading;

/// A model with its provenance.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Model {
    saved: SavedModel,
    inner: Arc<Reading>,
}

impl Model {
    pub(crate) fn new(py: Python<'_>, saved: SavedModel) -> PyResult<Self> {
        let inner = Arc::new(Reading::new(&saved).map_err(|error| exception(py, &error))?);
        Ok(Self { saved, inner })
    }

    /// What stands in a file.
    pub(crate) fn saved(&self) -> &SavedModel {
        &self.saved
    }

    /// As factors, when it is of them.
    pub(crate) fn factors(&self) -> PyResult<&Factors> {
        match &*self.inner {
            Reading::Factors(m) => Ok(m),
            _ => Err(PyValueError::new_err("a model of kind 'fa' is needed")),
        }
    }

    /// Asks something about rows.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        rows: &Rows,
        threads: Option<usize>,
        question: impl FnOnce(&Reading, &dyn RowSource) -> covary::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(&rows.held));
        run(py, &Manner { threads, progress: None }, move |_| question(&inner, held.source()?))
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
            GivenNoise::Diagonal(values) => Noise::Diagonal(values.as_array().to_vec()),
        };
        let model = LinearGaussian::new(mean.as_array().to_vec(), to_mat(&loadings), noise);
        let saved = model.and_then(|model| SavedModel::given(model, names));
        Self::new(py, saved.map_err(|error| exception(py, &error))?)
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Self::new(py, SavedModel::from_bytes(bytes).map_err(|error| exception(py, &error))?)
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.saved.to_bytes().map_err(|error| exception(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let bytes = fs::read(&path).map_err(|source| covary_io::Error::Open { path, source });
        let bytes = bytes.map_err(|error| crate::errors::io_exception(py, error))?;
        Self::from_bytes(py, &bytes)
    }

    /// Writes a model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let bytes = self.saved.to_bytes().map_err(|error| exception(py, &error))?;
        write(py, path, &bytes)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// `ppca`, `pca` or `fa`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.saved.model.kind()
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
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.saved.model.mean())
    }

    /// W, or the pattern of factors (p, q).
    #[getter]
    fn loadings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &*self.inner {
            Reading::Factors(m) => matrix(py, m.pattern().as_ref()),
            other => matrix(py, other.gaussian().loadings().as_ref()),
        }
    }

    /// Orthonormal directions in rows, or the pattern of factors (q, p).
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        match &*self.inner {
            Reading::Components(m, _) => matrix(py, m.components().transpose()),
            Reading::Factors(m) => matrix(py, m.pattern().transpose()),
            Reading::Gaussian(m) => {
                let (axes, _) = m.principal_axes().map_err(|error| exception(py, &error))?;
                matrix(py, axes.transpose())
            }
        }
    }

    /// σ², or ψ (p,).
    #[getter]
    fn noise_variance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.inner.gaussian().noise() {
            Noise::Isotropic(value) => value.into_pyobject(py)?.into_any(),
            Noise::Diagonal(values) => vector(py, values).into_any(),
        })
    }

    /// Variance along each direction (q,).
    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        match &*self.inner {
            Reading::Components(m, _) => vector(py, m.variances()),
            other => vector(py, &self.saved.eigenvalues[..other.gaussian().n_latent()]),
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

    /// Total log-likelihood of the rows; `None` when it is infinite or there were none.
    #[getter]
    fn log_likelihood(&self) -> Option<f64> {
        self.saved.report.log_likelihood
    }

    /// Rows of positive weight.
    #[getter]
    fn n_rows(&self) -> usize {
        self.saved.report.rows
    }

    /// How the fit went, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        let report = serde_json::to_string(&self.saved.report);
        report.map_err(|error| PyValueError::new_err(error.to_string()))
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
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if single_precision {
            let z = self.ask(py, rows, threads, move |m, rows| Ok(single(&m.transform(rows, whiten)?)))?;
            return Ok(z.into_numpy(py)?.into_any());
        }
        let z = self.ask(py, rows, threads, move |m, rows| Ok(double(&m.transform(rows, whiten)?)))?;
        Ok(z.into_numpy(py)?.into_any())
    }

    /// Posterior mean (n, q) and covariance: (q, q) when no row has a hole, else (n, q, q).
    #[pyo3(signature = (rows, threads=None))]
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyAny>)> {
        let (mean, covariance) = self.ask(py, rows, threads, |m, rows| {
            let posterior = m.posterior(rows)?;
            Ok((double(&posterior.mean), posterior.covariance))
        })?;
        let covariance = match covariance {
            LatentCovariance::Shared(c) => matrix(py, c.as_ref())?.into_any(),
            LatentCovariance::PerRow { cells, latent: q } => {
                let n = cells.len().checked_div(q * q).unwrap_or(0);
                PyArray1::from_vec(py, cells).reshape([n, q, q])?.into_any()
            }
        };
        Ok((mean.into_numpy(py)?, covariance))
    }

    /// Rows (n, p) of latent coordinates (n, q).
    #[pyo3(signature = (latent, whiten=false, single_precision=false, threads=None))]
    fn inverse_transform<'py>(
        &self,
        py: Python<'py>,
        latent: PyReadonlyArray2<'py, f64>,
        whiten: bool,
        single_precision: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (inner, latent) = (Arc::clone(&self.inner), to_mat(&latent));
        let manner = Manner { threads, progress: None };
        let x = run(py, &manner, move |_| inner.inverse_transform(latent.as_ref(), whiten))?;
        Ok(match single_precision {
            true => single(&x).into_numpy(py)?.into_any(),
            false => double(&x).into_numpy(py)?.into_any(),
        })
    }

    /// Each row rebuilt (n, p): "orthogonal" or "posterior".
    #[pyo3(signature = (rows, kind, threads=None))]
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        kind: &str,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let kind = match kind {
            "orthogonal" => Reconstruction::Orthogonal,
            "posterior" => Reconstruction::Posterior,
            other => {
                return Err(PyValueError::new_err(format!(
                    "kind must be 'orthogonal' or 'posterior', not '{other}'"
                )));
            }
        };
        self.ask(py, rows, threads, move |m, rows| Ok(double(&m.reconstruct(rows, kind)?)))?.into_numpy(py)
    }

    /// Log density of the observed cells of each row (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn score_samples<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let scores = self.ask(py, rows, threads, |m, rows| m.gaussian().log_density(rows))?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// The rows with their holes filled by conditional means (n, p); observed cells stay as they are.
    #[pyo3(signature = (rows, threads=None))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.ask(py, rows, threads, |m, rows| Ok(double(&m.gaussian().impute(rows)?)))?.into_numpy(py)
    }

    /// The same, and the standard deviation of each filled cell (n, p), 0 where a cell was observed.
    #[pyo3(signature = (rows, threads=None))]
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn impute_with_std<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (cells, std) = self.ask(py, rows, threads, |m, rows| {
            let imputed = m.gaussian().impute_with_std(rows)?;
            Ok((double(&imputed.cells), double(&imputed.std)))
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
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (cells, n) = self.ask(py, rows, threads, move |m, rows| {
            let draws = m.gaussian().draw_missing(rows, 0..n_draws, seed)?;
            let n = draws.first().map_or(0, Mat::nrows);
            Ok((draws.iter().flat_map(|draw| double(draw).into_cells()).collect::<Vec<f64>>(), n))
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
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(&rows.held));
        let found = run(py, &Manner { threads, progress: None }, move |_| match &*held {
            Held::Observed(rows) => inner.gaussian().predict(rows, &cells),
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
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.ask(py, rows, threads, |m, rows| m.gaussian().outliers(rows))?;
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
        let (inner, row) = (Arc::clone(&self.inner), row.as_array().to_vec());
        let found = run(py, &Manner::default(), move |_| inner.gaussian().conditional(&row))?;
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
        let saved = match &*self.inner {
            Reading::Factors(m) => m.marginal(&features).and_then(|model| SavedModel::given(model, names)),
            other => other.gaussian().marginal(&features).and_then(|model| SavedModel::given(model, names)),
        };
        Self::new(py, saved.map_err(|error| exception(py, &error))?)
    }

    /// C = W Wᵀ + noise (p, p).
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        run(py, &Manner::default(), move |_| Ok(double(&inner.gaussian().covariance())))?.into_numpy(py)
    }

    /// C⁻¹ (p, p).
    fn precision<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        run(py, &Manner::default(), move |_| Ok(double(&inner.gaussian().precision()?)))?.into_numpy(py)
    }

    /// Rows drawn from the model (n, p).
    #[pyo3(signature = (n, seed, threads=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let inner = Arc::clone(&self.inner);
        let manner = Manner { threads, progress: None };
        run(py, &manner, move |_| Ok(double(&inner.gaussian().sample(n, seed))))?.into_numpy(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let bytes = |model: &SavedModel| model.to_bytes().map_err(|error| exception(py, &error));
        Ok(bytes(&self.saved)? == bytes(&other.get().saved)?)
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'Model'"))
    }
}

pub(crate) fn to_mat(array: &PyReadonlyArray2<'_, f64>) -> Mat<f64> {
    let view = array.as_array();
    Mat::from_fn(view.nrows(), view.ncols(), |i, j| view[(i, j)])
}

//! A fitted model: its numbers as arrays, its file, and how it is asked about rows.

use std::path::PathBuf;
use std::sync::Arc;

use covary::Control;
use covary::data::{RowSource, Watched};
use covary::estimator::{Report, turned_with};
use covary::model::{AnyModel, LinearGaussian, Model as Fitted, Noise, PrincipalComponents};
use covary::persist::SavedModel;
use covary::rotate::Rotate;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::description::description;
use crate::door::{Manner, now, run};
use crate::given;
use crate::input::{Rows, write};
use crate::kinds;
use crate::output::{double, matrix, to_python, vector};
use crate::rotation::Rotation;
use crate::threads::Threads;

/// A model with its provenance.
#[pyclass(frozen, module = "covary._covary")]
pub(crate) struct Model {
    saved: SavedModel,
    /// As Python reads it: classical PCA has scikit-learn's divisor n − 1.
    pub(crate) inner: AnyModel,
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
    pub(crate) fn whitened(&self, whiten: bool) -> AnyModel {
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

pub(crate) fn ask<T: Send + 'static>(
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
        let sample = move |control: &Control<'_>| double(&inner.sampler()?.sample(n, seed, control)?);
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

//! Mixtures of PPCA and of factor analysers.

use std::sync::Arc;

use covary::data::{RowSource, map_chunks};
use covary::estimator::{Family, Groups};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Mixture, Noise};
use covary::persist::SavedModel;
use covary::{Components, MixturePpca};
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{caught, now};
use crate::given;
use crate::input::Rows;
use crate::model::Model;
use crate::output::{matrix, vector};
use crate::threads::Threads;

/// `groups`: how many components, or a pair of the fewest and the most; `noise`: "isotropic" or "diagonal";
/// `prior`: rows that the prior counts as, 0 for none; `method`: "em" or "vb"; `random_starts`: a second opinion.
pub(super) fn mixture(latent: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    #[derive(FromPyObject)]
    enum Wanted {
        Count(usize),
        Between((usize, usize)),
    }
    let groups = match keywords.take("groups")? {
        Some(Wanted::Count(count)) => Groups::Count(count),
        Some(Wanted::Between((fewest, most))) => Groups::Between(fewest, most),
        None => Groups::Count(1),
    };
    let mut family = MixturePpca::new(groups, latent);
    if let Some(noise) = keywords.take::<String>("noise")? {
        family = match noise.as_str() {
            "isotropic" => family.diagonal(false),
            "diagonal" => family.diagonal(true),
            other => {
                return Err(PyValueError::new_err(format!(
                    "noise must be 'isotropic' or 'diagonal', not '{other}'"
                )));
            }
        };
    }
    if let Some(shared) = keywords.take("shared_noise")? {
        family = family.shared_noise(shared);
    }
    if let Some(rows) = keywords.take::<f64>("prior")? {
        family = family.prior(Some(rows).filter(|rows| *rows != 0.0));
    }
    if let Some(method) = keywords.take::<String>("method")? {
        family = match method.as_str() {
            "em" => family.variational(false),
            "vb" => family.variational(true),
            other => {
                return Err(PyValueError::new_err(format!("method must be 'em' or 'vb', not '{other}'")));
            }
        };
    }
    if let Some(starts) = keywords.take("random_starts")? {
        family = family.random_starts(starts);
    }
    Ok(Arc::new(family))
}

/// weights (K,), means (K, p), latent (K,), loadings (K·p, q), noise (K, 1) or (K, p).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<Mixture>() else { return Ok(None) };
    caught(|| {
        let dict = PyDict::new(py);
        let (of, p) = (model.components(), model.n_features());
        let most = of.iter().map(LinearGaussian::n_latent).max().unwrap_or(0);
        let loading = |k: usize, j: usize, i: usize| {
            let w = of[k].loadings();
            if i < w.ncols() { w[(j, i)] } else { 0.0 }
        };
        let cells = (0..of.len()).flat_map(|k| (0..p).flat_map(move |j| (0..most).map(move |i| (k, j, i))));
        let cells: Vec<f64> = cells.map(|(k, j, i)| loading(k, j, i)).collect();
        let noise = match of[0].noise() {
            Noise::Isotropic(_) => {
                vector(py, &of.iter().map(|c| c.noise().mean()).collect::<Vec<_>>()).into_any()
            }
            Noise::Diagonal(_) => {
                matrix(py, Mat::from_fn(of.len(), p, |k, j| of[k].noise().of(j)).as_ref())?.into_any()
            }
        };
        dict.set_item("weights", vector(py, model.weights()))?;
        dict.set_item("means", matrix(py, Mat::from_fn(of.len(), p, |k, j| of[k].mean()[j]).as_ref())?)?;
        dict.set_item("group_loadings", PyArray1::from_vec(py, cells).reshape([of.len(), p, most])?)?;
        dict.set_item("group_noise_variance", noise)?;
        let latent: Vec<i64> = of.iter().map(|c| c.n_latent().cast_signed() as i64).collect();
        dict.set_item("group_latent", PyArray1::from_vec(py, latent))?;
        Ok(Some(dict))
    })
}

fn of_mixture(model: &Model) -> PyResult<&Mixture> {
    model.of_kind::<Mixture>().ok_or_else(|| PyValueError::new_err("a model of kind 'mixture' is needed"))
}

/// Probabilities (n, K), posterior means (n, K, q) and the covariances of each component.
pub(crate) type Posteriors<'py> =
    (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray3<f64>>, Vec<Bound<'py, PyAny>>);

#[pymethods]
impl Model {
    /// A mixture of given numbers: weights (K,), means (K, p), loadings (K, p, q), noise (K, 1) or (K, p).
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
        let weights = given::vector(py, &weights)?;
        let (means, noise) = (given::matrix(py, &means)?, given::matrix(py, &noise_variance)?);
        let (w, shape) = (given::matrices(py, &loadings)?, loadings.as_array().shape().to_vec());
        let (groups, p) = (means.nrows(), means.ncols());
        if shape[..2] != [groups, p] || noise.nrows() != groups {
            return Err(PyValueError::new_err(format!(
                "means of shape ({groups}, {p}) need loadings of shape ({groups}, {p}, q) and a noise variance for \
             each of the {groups} components, not loadings of shape {:?} and {} noise variances",
                shape,
                noise.nrows()
            )));
        }
        let component = |k: usize| {
            let noise = match noise.ncols() {
                1 => Noise::Isotropic(noise[(k, 0)]),
                _ => Noise::Diagonal((0..noise.ncols()).map(|j| noise[(k, j)]).collect()),
            };
            LinearGaussian::new((0..p).map(|j| means[(k, j)]).collect(), w[k].clone(), noise)
        };
        let made = || {
            let components = (0..groups).map(component).collect::<covary::Result<_>>()?;
            SavedModel::given(Mixture::new(weights, components)?, names)
        };
        Self::new(py, now(py, made)?)
    }

    /// A component as a model of its own, counted from 0.
    fn component(&self, py: Python<'_>, k: usize) -> PyResult<Self> {
        let found = of_mixture(self)?.components().get(k).cloned();
        let found = found.ok_or_else(|| PyIndexError::new_err(format!("there is no component {k}")))?;
        let names = self.saved().named().then(|| self.saved().features.clone());
        Self::new(py, now(py, || SavedModel::given(found, names))?)
    }

    /// Probabilities (n, K), posterior means (n, K, q) and, of each component, covariances: (q, q), or (n, q, q)
    /// where values are missing.
    #[pyo3(signature = (rows, threads=None))]
    fn mixture_posterior<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Posteriors<'py>> {
        let mixture = of_mixture(self)?.clone();
        let groups = mixture.n_components();
        let question = move |_: &dyn covary::model::Model, rows: &dyn RowSource| {
            let found = map_chunks(rows, |chunk| Ok(mixture.memberships_of(chunk)?.probabilities))?;
            let of =
                mixture.components().iter().map(|c| c.posterior(rows)).collect::<covary::Result<Vec<_>>>()?;
            let most = of.iter().map(|z| z.mean.ncols()).max().unwrap_or(0);
            let n: usize = found.iter().map(Mat::nrows).sum();
            let coordinate = |i: usize, k: usize, j: usize| {
                let z = &of[k].mean;
                if j < z.ncols() { z[(i, j)] } else { 0.0 }
            };
            let places =
                (0..n).flat_map(|i| (0..groups).flat_map(move |k| (0..most).map(move |j| (i, k, j))));
            let means: Vec<f64> = places.map(|(i, k, j)| coordinate(i, k, j)).collect();
            let probabilities: Vec<f64> = found
                .iter()
                .flat_map(|p| (0..p.nrows()).flat_map(move |i| (0..groups).map(move |k| p[(i, k)])))
                .collect();
            let covariances = of.into_iter().map(|z| crate::questions::Covariances::of(z.covariance, rows));
            Ok((probabilities, means, [n, groups, most], covariances.collect::<covary::Result<Vec<_>>>()?))
        };
        let (probabilities, means, shape, covariances) = self.ask(py, rows, threads, question)?;
        let probabilities = PyArray1::from_vec(py, probabilities).reshape([shape[0], shape[1]])?;
        let covariances = covariances.into_iter().map(|c| c.into_numpy(py)).collect::<PyResult<_>>()?;
        Ok((probabilities, PyArray1::from_vec(py, means).reshape(shape)?, covariances))
    }
}

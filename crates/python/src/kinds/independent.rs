//! Independent components.

use std::sync::Arc;

use covary::estimator::Family;
use covary::evidence::Contrast;
use covary::linalg::Mat;
use covary::model::{IndependentComponents, LinearGaussian, Noise};
use covary::persist::SavedModel;
use covary::{Components, Ica, IcaMethod};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{caught, now};
use crate::given;
use crate::model::Model;
use crate::output::{matrix, vector};

/// `method` with its `extended`, or `contrast`, `alpha` and `deflation`; `noise`; `starts`, or an unmixing matrix to
/// `begin` at, or one that was found elsewhere, `unmixing`; `whitened` rows.
pub(super) fn ica(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let mut family = Ica::new(components).method(method(keywords)?);
    if let Some(noise) = keywords.take("noise")? {
        family = family.noise(noise);
    }
    if let Some(starts) = keywords.take("starts")? {
        family = family.starts(starts);
    }
    if let Some(whitened) = keywords.take("whitened")? {
        family = family.whitened(whitened);
    }
    if let Some(start) = keywords.take::<PyReadonlyArray2<'_, f64>>("begin")? {
        family = family.start(given::matrix(start.py(), &start)?);
    }
    if let Some(found) = keywords.take::<PyReadonlyArray2<'_, f64>>("unmixing")? {
        family = family.unmixing(given::matrix(found.py(), &found)?);
    }
    Ok(Arc::new(family))
}

fn method(keywords: &mut Keywords<'_>) -> PyResult<IcaMethod> {
    let name: String = keywords.take("method")?.unwrap_or_else(|| IcaMethod::default().name().into());
    let known: IcaMethod =
        name.parse().map_err(|error: covary::Error| PyValueError::new_err(error.to_string()))?;
    Ok(match known {
        IcaMethod::Picard { .. } => {
            IcaMethod::Picard { extended: keywords.take("extended")?.unwrap_or(true) }
        }
        IcaMethod::Infomax { .. } => {
            IcaMethod::Infomax { extended: keywords.take("extended")?.unwrap_or(true) }
        }
        IcaMethod::FastIca { .. } => IcaMethod::FastIca {
            contrast: contrast(keywords)?,
            deflation: keywords.take("deflation")?.unwrap_or(false),
        },
    })
}

fn contrast(keywords: &mut Keywords<'_>) -> PyResult<Contrast> {
    let (name, alpha) = (keywords.take::<String>("contrast")?, keywords.take("alpha")?.unwrap_or(1.0));
    match name.as_deref().unwrap_or("logcosh") {
        "logcosh" => Ok(Contrast::LogCosh { alpha }),
        "exp" => Ok(Contrast::Exp),
        "cube" => Ok(Contrast::Cube),
        other => {
            Err(PyValueError::new_err(format!("the contrast is '{other}', but must be logcosh, exp or cube")))
        }
    }
}

/// Mixing matrix (p, q), unmixing and whitening matrix (q, p), turn and correlation (q, q), what each source adds to
/// the variance (q,) and its share of it.
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(sources) = model.of_kind::<IndependentComponents>() else { return Ok(None) };
    let (unmixing, whitening) = now(py, || Ok((sources.unmixing()?, sources.whitening()?)))?;
    let total = model.saved().report.total_variance;
    caught(|| {
        let dict = PyDict::new(py);
        dict.set_item("mixing", matrix(py, sources.mixing().as_ref())?)?;
        dict.set_item("unmixing", matrix(py, unmixing.as_ref())?)?;
        dict.set_item("whitening", matrix(py, whitening.as_ref())?)?;
        dict.set_item("turn", matrix(py, sources.turn().as_ref())?)?;
        dict.set_item("correlation", matrix(py, sources.correlation().as_ref())?)?;
        let variances = sources.source_variances();
        dict.set_item("shares", vector(py, &variances.iter().map(|v| v / total).collect::<Vec<_>>()))?;
        dict.set_item("variances", vector(py, &variances))?;
        Ok(Some(dict))
    })
}

#[pymethods]
impl Model {
    /// A model of given numbers: mean (p,), mixing matrix (p, q) and noise variances (one, or p).
    #[staticmethod]
    #[pyo3(signature = (mean, mixing, noise_variance, names=None))]
    fn given_ica(
        py: Python<'_>,
        mean: PyReadonlyArray1<'_, f64>,
        mixing: PyReadonlyArray2<'_, f64>,
        noise_variance: PyReadonlyArray1<'_, f64>,
        names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (mean, mixing) = (given::vector(py, &mean)?, given::matrix(py, &mixing)?);
        let noise = match given::vector(py, &noise_variance)? {
            one if one.len() == 1 => Noise::Isotropic(one[0]),
            each => Noise::Diagonal(each),
        };
        let q = mixing.ncols();
        let made = || {
            let gaussian = LinearGaussian::new(mean, mixing, noise)?;
            SavedModel::given(IndependentComponents::new(gaussian, Mat::identity(q, q))?, names)
        };
        Self::new(py, now(py, made)?)
    }
}

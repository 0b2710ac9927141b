//! Autoassociative networks.

use std::sync::Arc;

use covary::estimator::Family;
use covary::model::AutoassociativeNetwork;
use covary::network::CurvedMap;
use covary::{Autoencoder, Components};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::caught;
use crate::model::Model;
use crate::output::{matrix, vector};

/// `hidden` units, `activation`, whether there is an `encoder`, `alpha`, `early_stopping` and `solver`.
pub(super) fn autoencoder(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let mut family = Autoencoder::new(components).solver(keywords.word("solver")?.unwrap_or_default());
    if let Some(units) = keywords.take("hidden")? {
        family = family.hidden(units);
    }
    if let Some(name) = keywords.take::<String>("activation")? {
        let known = name.parse().map_err(|error: covary::Error| PyValueError::new_err(error.to_string()))?;
        family = family.activation(known);
    }
    if let Some(encoder) = keywords.take("encoder")? {
        family = family.encoder(encoder);
    }
    if let Some(alpha) = keywords.take("alpha")? {
        family = family.alpha(alpha);
    }
    if let Some(early_stopping) = keywords.take("early_stopping")? {
        family = family.early_stopping(early_stopping);
    }
    Ok(Arc::new(family))
}

/// Weights of the decoder, and of the encoder where there is one, in the frame of the network; mean and divisors (p,)
/// of that frame; the noise variance (1,).
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<AutoassociativeNetwork>() else { return Ok(None) };
    caught(|| {
        let (dict, parts) = (PyDict::new(py), model.parts());
        dict.set_item("mean", vector(py, &parts.mean))?;
        let divisors: Vec<f64> = parts.scale.iter().map(|d| d * parts.unit).collect();
        dict.set_item("divisors", vector(py, &divisors))?;
        dict.set_item("noise", vector(py, &[model.noise_variance()]))?;
        let put = |name: &str, map: &CurvedMap| {
            dict.set_item(format!("{name}_offset"), vector(py, &map.offset))?;
            dict.set_item(format!("{name}_bias"), vector(py, &map.bias))?;
            dict.set_item(format!("{name}_linear"), matrix(py, map.linear.as_ref())?)?;
            dict.set_item(format!("{name}_inner"), matrix(py, map.inner.as_ref())?)?;
            dict.set_item(format!("{name}_outer"), matrix(py, map.outer.as_ref())?)
        };
        put("decoder", &model.network().decoder)?;
        if let Some(encoder) = &model.network().encoder {
            put("encoder", encoder)?;
        }
        Ok(Some(dict))
    })
}

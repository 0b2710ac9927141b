//! From keywords to a family of models, and what a kind has to say besides: one line in each table for each
//! kind.

mod axes;
mod bayes;
mod clusters;
mod curved;
mod factors;
mod independent;
pub(crate) mod kernels;
mod mixtures;
mod networks;
mod robust;

use std::sync::Arc;

use covary::Components;
use covary::estimator::Family;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::model::Model;

/// How keywords become a family.
type Builder = fn(Components, &mut Keywords<'_>) -> PyResult<Arc<dyn Family>>;

/// Every kind that can be fitted.
static BUILDERS: &[(&str, Builder)] = &[
    ("ppca", axes::ppca),
    ("pca", axes::pca),
    ("bpca", bayes::bpca),
    ("fa", factors::fa),
    ("mixture", mixtures::mixture),
    ("robust", robust::robust),
    ("kmeans", clusters::kmeans),
    ("ica", independent::ica),
    ("kpca", kernels::kpca),
    ("autoencoder", networks::autoencoder),
    ("gplvm", curved::gplvm),
];

/// Arrays that only one kind has: nothing when the model is of another.
type Tables = for<'py> fn(Python<'py>, &Model) -> PyResult<Option<Bound<'py, PyDict>>>;

static TABLES: &[Tables] = &[
    factors::tables,
    bayes::tables,
    mixtures::tables,
    robust::tables,
    clusters::tables,
    independent::tables,
    kernels::tables,
    networks::tables,
    curved::tables,
];

/// Standard errors of the parameters.
type Errors = for<'py> fn(Python<'py>, &Model, crate::door::Manner) -> PyResult<Option<Bound<'py, PyAny>>>;

static ERRORS: &[Errors] = &[axes::standard_errors, factors::standard_errors];

/// The family of a kind.
pub(crate) fn family(
    kind: &str,
    components: Components,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Arc<dyn Family>> {
    let Some((_, build)) = BUILDERS.iter().find(|(name, _)| *name == kind) else {
        return Err(PyValueError::new_err(format!("unknown kind of model '{kind}'")));
    };
    let mut keywords = Keywords(keywords.map(PyDictMethods::copy).transpose()?);
    let family = build(components, &mut keywords)?;
    keywords.finish(kind)?;
    Ok(family)
}

/// Arrays that only the model's kind has.
pub(crate) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    for read in TABLES {
        if let Some(found) = read(py, model)? {
            return Ok(found);
        }
    }
    Ok(PyDict::new(py))
}

/// Standard errors of the model's parameters.
pub(crate) fn standard_errors<'py>(
    py: Python<'py>,
    model: &Model,
    manner: impl Fn() -> crate::door::Manner,
) -> PyResult<Bound<'py, PyAny>> {
    for read in ERRORS {
        if let Some(found) = read(py, model, manner())? {
            return Ok(found);
        }
    }
    Err(PyValueError::new_err("standard errors are for ppca and fa"))
}

pub(crate) use axes::intervals;
pub(crate) use factors::most_factors;

/// Keywords of a Python call, each taken once.
pub(crate) struct Keywords<'py>(Option<Bound<'py, PyDict>>);

impl<'py> Keywords<'py> {
    /// The value of a keyword, unless it was not given or is `None`.
    pub(crate) fn take<T: for<'a> FromPyObject<'a, 'py>>(&mut self, name: &str) -> PyResult<Option<T>> {
        let Some(given) = &self.0 else { return Ok(None) };
        let Some(value) = given.get_item(name)? else { return Ok(None) };
        given.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract().map(Some).map_err(Into::into)
    }

    /// A word of the core's, such as the name of a solver.
    pub(crate) fn word<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> PyResult<Option<T>> {
        let word: Option<String> = self.take(name)?;
        let parse = |word: String| {
            let known = serde_json::from_value(word.into());
            known.map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
        };
        word.map(parse).transpose()
    }

    fn finish(&self, kind: &str) -> PyResult<()> {
        let left = self.0.iter().flat_map(PyDictMethods::keys).next();
        match left {
            Some(name) => Err(PyTypeError::new_err(format!("'{name}' is not an option of {kind}"))),
            None => Ok(()),
        }
    }
}

//! k-means.

use std::sync::Arc;

use covary::estimator::{Family, Fit, Groups};
use covary::model::Clustering;
use covary::persist::SavedModel;
use covary::{Components, KMeans};
use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Keywords;
use crate::door::{Manner, caught, run};
use crate::given;
use crate::input::Rows;
use crate::model::Model;
use crate::output::{matrix, vector};
use crate::threads::Threads;

/// `components` is K; `between` a range of it of which the best is taken.
pub(super) fn kmeans(components: Components, keywords: &mut Keywords<'_>) -> PyResult<Arc<dyn Family>> {
    let groups = match (keywords.take::<(usize, usize)>("between")?, components) {
        (Some((fewest, most)), _) => Groups::Between(fewest, most),
        (None, Components::Count(count)) => Groups::Count(count),
        (None, other) => {
            return Err(PyValueError::new_err(format!(
                "the number of clusters must be a number, not {other}"
            )));
        }
    };
    let mut family = KMeans::new(groups);
    if let Some(seeding) = keywords.word("seeding")? {
        family = family.seeding(seeding);
    }
    if let Some(starts) = keywords.take("starts")? {
        family = family.starts(starts);
    }
    if let Some(polish) = keywords.take("polish")? {
        family = family.polish(polish);
    }
    if let Some(centres) = keywords.take::<PyReadonlyArray2<'_, f64>>("centres")? {
        family = family.centres(given::matrix(centres.py(), &centres)?);
    }
    Ok(Arc::new(family))
}

/// Centres (K, p), shares, sums of squares within clusters and what features are divided by.
pub(super) fn tables<'py>(py: Python<'py>, model: &Model) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(model) = model.of_kind::<Clustering>() else { return Ok(None) };
    caught(|| {
        let dict = PyDict::new(py);
        dict.set_item("centres", matrix(py, model.centres().as_ref())?)?;
        dict.set_item("shares", vector(py, model.shares()))?;
        dict.set_item("within", vector(py, model.within()))?;
        dict.set_item("divisors", vector(py, model.divisors()))?;
        Ok(Some(dict))
    })
}

fn clustering(model: &dyn covary::model::Model) -> covary::Result<&Clustering> {
    model.downcast_ref().ok_or_else(|| covary::Error::Parameter {
        name: "the model",
        value: model.kind().name.into(),
        allowed: "one of k-means",
    })
}

#[pymethods]
impl Model {
    /// The nearest centre of each row (n,), and the squared distance to it (n,).
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    #[pyo3(signature = (rows, threads=None))]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>)> {
        let (labels, squares) = self.ask(py, rows, threads, |m, rows| clustering(m)?.nearest(rows))?;
        let labels = labels.into_iter().map(|k| i32::try_from(k).unwrap_or(i32::MAX));
        Ok((PyArray1::from_iter(py, labels), PyArray1::from_vec(py, squares)))
    }

    /// The model after one more batch of rows, each of which moves the centres once.
    #[pyo3(signature = (rows, threads=None))]
    fn after_batch(&self, py: Python<'_>, rows: &Rows, threads: Option<Threads>) -> PyResult<Self> {
        let (saved, held) = (self.saved().clone(), Arc::clone(&rows.held));
        let saved = run(py, &Manner { threads, progress: None }, move |control| {
            let SavedModel { model, features, report, .. } = saved;
            let before = Fit { model: clustering(&*model)?.clone(), report };
            let family = KMeans::new(before.model.centres().nrows());
            SavedModel::new(family.step(Some(&before), held.source()?, control)?, Some(features))
        })?;
        Self::new(py, saved)
    }
}

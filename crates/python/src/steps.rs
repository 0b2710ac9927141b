//! Rows in batches, for models whose evidence depends on the model: each batch is a step.

use std::sync::Arc;

use covary::algorithm::MixtureEvidence;
use covary::estimator::{Fit, KeptEvidence, OnlineFit};
use covary::evidence::StudentEvidence;
use covary::persist::{Portable, SavedModel, kind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::door::{now, run};
use crate::input::Rows;
use crate::model::Model;
use crate::request::Request;

/// What is kept of the batches so far.
#[pyclass(module = "covary._covary")]
pub(crate) struct Kept {
    evidence: KeptEvidence,
}

impl Kept {
    fn read(bytes: &[u8]) -> covary::Result<KeptEvidence> {
        Ok(match kind(bytes)?.as_str() {
            "student_evidence" => KeptEvidence::Robust(StudentEvidence::from_bytes(bytes)?.evidence),
            _ => KeptEvidence::Mixture(MixtureEvidence::from_bytes(bytes)?.evidence),
        })
    }

    fn write(&self) -> covary::Result<Vec<u8>> {
        let names = |p: usize| (0..p).map(|j| j.to_string()).collect::<Vec<_>>();
        match &self.evidence {
            KeptEvidence::Mixture(evidence) => evidence.to_bytes(&names(evidence.mixture().n_features())),
            KeptEvidence::Robust(evidence) => evidence.to_bytes(&names(evidence.parameters().n_features())),
        }
    }
}

#[pymethods]
impl Kept {
    /// From what `to_bytes` gave.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { evidence: now(py, || Self::read(bytes))? })
    }

    /// The bytes of the evidence.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &now(py, || self.write())?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }
}

/// The model after one more batch of rows, and what is kept: a fit where there is no model yet.
#[pyfunction]
#[pyo3(signature = (rows, request, model=None, kept=None, progress=None))]
pub(crate) fn step(
    py: Python<'_>,
    rows: &Rows,
    request: &Request,
    model: Option<&Model>,
    kept: Option<&Kept>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Model, Kept)> {
    let (held, names, wanted) = (Arc::clone(&rows.held), rows.names(), request.wanted());
    let before = model.map(|model| {
        let SavedModel { model, report, .. } = model.saved().clone();
        OnlineFit { fit: Fit { model, report }, kept: kept.map(|kept| kept.evidence.clone()) }
    });
    let (saved, kept) = run(py, &request.manner(progress), move |control| {
        let OnlineFit { fit, kept } = wanted.step(before.as_ref(), held.source()?, control)?;
        Ok((SavedModel::new(fit, names)?, kept))
    })?;
    let evidence = kept.ok_or_else(|| pyo3::exceptions::PyValueError::new_err("nothing is kept"))?;
    Ok((Model::new(py, saved)?, Kept { evidence }))
}

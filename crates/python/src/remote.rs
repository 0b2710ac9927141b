//! Rows on other machines: tasks go out through a function of Python's, and evidence comes back.

use std::sync::{Arc, Mutex};

use covary::data::RowSource;
use covary::persist::SavedModel;
use covary::remote::{Elsewhere, Filling, merge};
use covary::{Error, ErrorClass};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::door::{caught, locked, now, run};
use crate::errors::exception;
use crate::input::Rows;
use crate::model::Model;
use crate::request::Request;

/// Fits rows that are elsewhere. `carry(task, numbered)` takes the bytes of a task to all rows and gives back the bytes
/// of the merged evidence; `numbered` says whether rows must know their numbers.
#[pyfunction]
#[pyo3(signature = (request, carry, n_features, n_rows=None, names=None, observed=false))]
pub(crate) fn fit_elsewhere(
    py: Python<'_>,
    request: &Request,
    carry: Py<PyAny>,
    n_features: usize,
    n_rows: Option<usize>,
    names: Option<Vec<String>>,
    observed: bool,
) -> PyResult<Model> {
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let (noted, wanted) = (Arc::clone(&raised), request.wanted());
    let saved = run(py, &request.manner(None), move |control| {
        let carry = |task: &[u8], numbered: bool| carried(&carry, task, numbered, &noted);
        let rows = Elsewhere::new(n_features, carry)
            .with_rows(n_rows)
            .with_names(names.clone())
            .observed_only(observed);
        let source: &dyn RowSource = &rows;
        SavedModel::new(wanted.fit(source, control)?, names)
    });
    // What Python has raised on the way says more than that the way was closed.
    let raised = locked(&raised).take();
    match (saved, raised) {
        (Ok(saved), _) => Model::new(py, saved),
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(error),
    }
}

/// Calls the function, and keeps what it raises.
fn carried(
    carry: &Py<PyAny>,
    task: &[u8],
    numbered: bool,
    raised: &Mutex<Option<PyErr>>,
) -> covary::Result<Vec<u8>> {
    Python::attach(|py| {
        let reply = carry.call1(py, (PyBytes::new(py, task), numbered));
        reply.and_then(|reply| reply.extract::<Vec<u8>>(py)).map_err(|error| {
            let text = error.to_string();
            *locked(raised) = Some(error);
            Error::source(ErrorClass::Data, text)
        })
    })
}

/// The evidence of a task while one part of the rows fills it.
#[pyclass(module = "covary._covary")]
pub(crate) struct Evidence {
    filling: Mutex<Option<Filling>>,
}

#[pymethods]
impl Evidence {
    /// Of no rows; the first to come has the number `first_row` in the whole of the data.
    #[new]
    #[pyo3(signature = (task, first_row=0))]
    fn new(py: Python<'_>, task: &[u8], first_row: usize) -> PyResult<Self> {
        Ok(Self { filling: Mutex::new(Some(now(py, || Filling::new(task, first_row))?)) })
    }

    /// Takes in a batch of rows, in the thread that calls.
    fn add(&self, py: Python<'_>, rows: &Rows) -> PyResult<()> {
        let held = Arc::clone(&rows.held);
        let added = caught(|| {
            Ok(py.detach(|| {
                let mut filling = locked(&self.filling);
                filling.as_mut().map(|filling| held.source().and_then(|rows| filling.add(rows)))
            }))
        })?;
        added.ok_or_else(gone)?.map_err(|error| exception(py, &error))
    }

    /// The bytes to be merged with those of other parts; nothing can be added afterwards.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let filling = locked(&self.filling).take().ok_or_else(gone)?;
        Ok(PyBytes::new(py, &now(py, || filling.reply())?))
    }
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("the evidence has been given away")
}

/// One piece of evidence from several, which stand in the order of their rows.
#[pyfunction]
pub(crate) fn merge_evidence<'py>(py: Python<'py>, parts: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &caught(|| py.detach(|| merge(&parts)).map_err(|error| exception(py, &error)))?))
}

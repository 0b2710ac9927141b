//! Fits of rows, and of batches of rows that come one after the other.

use std::sync::Arc;

use covary::data::{RowSource, RowStream, counted_rows};
use covary::estimator::Online;
use covary::evidence::{Latent, Moments, gather_stream};
use covary::persist::{Portable, SavedModel};
use covary::{Control, Request as Wanted, Run};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::door::{now, run};
use crate::given;
use crate::input::{Held, Rows};
use crate::model::Model;
use crate::request::Request;
use crate::rotation::judged;

/// Fits rows.
#[pyfunction]
#[pyo3(signature = (rows, request, progress=None))]
pub(crate) fn fit(
    py: Python<'_>,
    rows: &Rows,
    request: &Request,
    progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    let job = Job { held: Arc::clone(&rows.held), budget: rows.budget, wanted: request.wanted() };
    let names = rows.names();
    let saved = run(py, &request.manner(progress), move |control| job.fit(control, names))?;
    Model::new(py, saved)
}

struct Job {
    held: Arc<Held>,
    budget: Option<covary_io::Budget>,
    wanted: Wanted,
}

impl Job {
    fn fit(&self, control: &Control<'_>, names: Option<Vec<String>>) -> covary::Result<SavedModel> {
        if let Some(stream) = self.held.take_stream() {
            let mut stream = stream?;
            let stream: &mut dyn RowStream = &mut stream;
            return SavedModel::new(self.wanted.fit(stream, control)?, names);
        }
        let source = self.held.source()?;
        let memory = self.budget.map(|budget| budget.solver(loaded_bytes(source)));
        let apart = self.budget.filter(|_| source.as_table().is_none());
        let threads = apart.map(|b| b.threads(rayon::current_num_threads(), source.n_features(), 1));
        let wanted = self.wanted.clone().run(Run { memory, threads, ..self.wanted.how() });
        SavedModel::new(wanted.fit(source, control)?, names)
    }
}

/// Bytes of rows that lie in memory.
pub(crate) fn loaded_bytes(source: &dyn RowSource) -> usize {
    let bytes = |(rows, features): (usize, usize)| rows.saturating_mul(features).saturating_mul(8);
    source.as_table().map_or(0, |table| bytes(table.shape()))
}

/// What `partial_fit` has seen: moments of complete rows, and steps of online EM.
#[pyclass(module = "covary._covary")]
pub(crate) struct Batches {
    online: Arc<Online>,
}

impl Batches {
    fn of(moments: Moments) -> covary::Result<Self> {
        Ok(Self { online: Arc::new(Online::from_parts(moments, None)?) })
    }
}

#[pymethods]
impl Batches {
    /// Of no rows.
    #[new]
    fn new(py: Python<'_>, n_features: usize) -> PyResult<Self> {
        Ok(Self { online: Arc::new(now(py, || Online::try_empty(n_features))?) })
    }

    /// As if rows had this covariance (p, p) and mean.
    #[staticmethod]
    #[pyo3(signature = (covariance, n_rows, mean=None))]
    fn of_covariance(
        py: Python<'_>,
        covariance: PyReadonlyArray2<'_, f64>,
        n_rows: usize,
        mean: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let mean = mean.map(|mean| given::vector(py, &mean)).transpose()?;
        let covariance = given::matrix(py, &covariance)?;
        now(py, || Self::of(Moments::from_covariance(covariance.as_ref(), mean.as_deref(), n_rows)?))
    }

    /// Sampling adequacy, Bartlett's test and squared multiple correlations of the complete rows.
    #[pyo3(signature = (names=None))]
    fn adequacy<'py>(&self, py: Python<'py>, names: Option<Vec<String>>) -> PyResult<Bound<'py, PyAny>> {
        let moments = self.online.parts().0;
        let rows = covary::data::counted_weight(moments.rows(), moments.weight());
        judged(py, moments.covariance(), Some(rows), names)
    }

    /// Takes in rows; the request decides where steps start when values are missing.
    #[pyo3(signature = (rows, request, progress=None))]
    fn update(
        &mut self,
        py: Python<'_>,
        rows: &Rows,
        request: &Request,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (held, online) = (Arc::clone(&rows.held), Arc::clone(&self.online));
        let (manner, wanted) = (request.manner(progress), request.wanted());
        let batch = run(py, &manner, move |control| {
            let p = online.n_features();
            match held.take_stream() {
                Some(stream) => {
                    let moments = gather_stream(&mut stream?, || Moments::empty(p), control)?;
                    online.batch_of(moments)
                }
                None => wanted.look(&online, held.source()?, control),
            }
        })?;
        // Whoever still looks, because somebody was interrupted, keeps what was there.
        now(py, || Arc::make_mut(&mut self.online).take(batch))
    }

    /// Takes in what another has seen.
    fn merge(&mut self, py: Python<'_>, other: &Self) -> PyResult<()> {
        now(py, || Arc::make_mut(&mut self.online).merge(&other.online))
    }

    /// The model of what was seen.
    #[pyo3(signature = (request, names=None))]
    fn fit(&self, py: Python<'_>, request: &Request, names: Option<Vec<String>>) -> PyResult<Model> {
        let (online, wanted) = (Arc::clone(&self.online), request.wanted());
        let saved = run(py, &request.manner(None), move |control| {
            let fit = wanted.fit_online(&online, control).map_err(|error| error.named(names.as_deref()))?;
            SavedModel::new(fit, names)
        })?;
        Model::new(py, saved)
    }

    /// Rows of positive weight.
    #[getter]
    fn n_rows(&self) -> usize {
        self.online.rows()
    }

    /// Number of rows that they stand for, by their weights.
    #[getter]
    fn n_counted(&self) -> usize {
        counted_rows(self.online.rows(), self.online.weight())
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.online.n_features()
    }

    fn __copy__(&self) -> Self {
        Self { online: Arc::clone(&self.online) }
    }

    fn __getnewargs__(&self) -> (usize,) {
        (self.online.n_features(),)
    }

    /// Bytes of the moments and, where there were missing values, bytes of the evidence and JSON of the
    /// counts.
    fn __getstate__<'py>(&self, py: Python<'py>) -> PyResult<State<Bound<'py, PyBytes>>> {
        let names: Vec<String> = (0..self.online.n_features()).map(|j| j.to_string()).collect();
        let (complete, incomplete) = self.online.parts();
        let complete = PyBytes::new(py, &now(py, || complete.to_bytes(&names))?);
        let Some((latent, counts)) = incomplete else { return Ok((complete, None)) };
        let latent = PyBytes::new(py, &now(py, || latent.to_bytes(&names))?);
        Ok((complete, Some((latent, serde_json::to_string(counts).map_err(unreadable)?))))
    }

    fn __setstate__(&mut self, py: Python<'_>, state: State<Vec<u8>>) -> PyResult<()> {
        let complete = now(py, || Moments::from_bytes(&state.0))?.evidence;
        let incomplete = match state.1 {
            Some((latent, counts)) => {
                let counts = serde_json::from_str(&counts).map_err(unreadable)?;
                Some((now(py, || Latent::from_bytes(&latent))?.evidence, counts))
            }
            None => None,
        };
        self.online = Arc::new(now(py, || Online::from_parts(complete, incomplete))?);
        Ok(())
    }
}

type State<B> = (B, Option<(B, String)>);

fn unreadable(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

//! The questions that can be asked of a model about rows.

use std::sync::Arc;

use covary::Control;
use covary::data::{RowSource, map_chunks};
use covary::memory;
use covary::model::{LatentCovariance, Model as Fitted, Reconstruction};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, run};
use crate::given;
use crate::input::{Held, Rows};
use crate::model::{Model, ask};
use crate::output::{Answer, double, matrix};
use crate::threads::Threads;

/// Rows whose covariances are written between two looks at whether somebody still wants them.
const ROWS_AT_ONCE: usize = 1024;

/// Posterior covariances as they are handed over: (q, q), or (n, q, q) when rows have missing values.
pub(crate) struct Covariances {
    cells: Vec<f64>,
    shape: Vec<usize>,
}

impl Covariances {
    /// One for all rows, or written out for each as long as the rows are wanted.
    pub(crate) fn of(covariance: LatentCovariance, rows: &dyn RowSource) -> covary::Result<Self> {
        match covariance {
            LatentCovariance::Shared(c) => {
                Ok(Self { cells: double(&c)?.into_cells(), shape: vec![c.nrows(), c.ncols()] })
            }
            LatentCovariance::PerPattern { cells, pattern, latent: q } => {
                memory::check("the array of a covariance for each row", &[pattern.len(), q, q])?;
                let mut all = Vec::with_capacity(pattern.len() * q * q);
                for some in pattern.chunks(ROWS_AT_ONCE) {
                    rows.check()?;
                    some.iter().for_each(|k| all.extend_from_slice(&cells[k * q * q..(k + 1) * q * q]));
                }
                Ok(Self { cells: all, shape: vec![pattern.len(), q, q] })
            }
        }
    }

    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(PyArray1::from_vec(py, self.cells).reshape(self.shape)?.into_any())
    }
}

#[pymethods]
impl Model {
    /// How much each row counts in a robust fit; nothing where all count alike.
    #[pyo3(signature = (rows, threads=None))]
    fn row_weights<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let found = self.ask(py, rows, threads, |m, rows| m.density()?.row_weights(rows))?;
        Ok(found.map(|weights| PyArray1::from_vec(py, weights)))
    }

    /// Latent coordinates (n, q), in single precision when asked for.
    #[pyo3(signature = (rows, whiten=false, single_precision=false, threads=None))]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        whiten: bool,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.encoder()?.encode(rows)?, single_precision)
        };
        ask(py, self.whitened(whiten), rows, threads, question)?.into_numpy(py)
    }

    /// Posterior mean (n, q) and covariance: (q, q) when no row has missing values, else (n, q, q).
    #[pyo3(signature = (rows, threads=None))]
    fn posterior<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyAny>)> {
        let (mean, covariance) = self.ask(py, rows, threads, |m, rows| {
            // The density that goes with classical PCA has a posterior too.
            let posterior = match m.as_posterior() {
                Some(m) => m.posterior(rows)?,
                None => m.with_loadings()?.factors().posterior(rows)?,
            };
            Ok((double(&posterior.mean)?, Covariances::of(posterior.covariance, rows)?))
        })?;
        Ok((mean.into_numpy(py)?, covariance.into_numpy(py)?))
    }

    /// Rows (n, p) of latent coordinates (n, q).
    #[pyo3(signature = (latent, whiten=false, single_precision=false, threads=None))]
    fn inverse_transform<'py>(
        &self,
        py: Python<'py>,
        latent: PyReadonlyArray2<'py, f64>,
        whiten: bool,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (inner, latent) = (self.whitened(whiten), given::matrix(py, &latent)?);
        let manner = Manner { threads, progress: None };
        let decode =
            move |_: &Control<'_>| Answer::new(&inner.decoder()?.decode(latent.as_ref())?, single_precision);
        run(py, &manner, decode)?.into_numpy(py)
    }

    /// Each row rebuilt (n, p): "orthogonal" or "posterior".
    #[pyo3(signature = (rows, kind, single_precision=false, threads=None))]
    fn reconstruct<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        kind: &str,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kind = match kind {
            "orthogonal" => Reconstruction::Orthogonal,
            "posterior" => Reconstruction::Posterior,
            other => {
                return Err(PyValueError::new_err(format!(
                    "kind must be 'orthogonal' or 'posterior', not '{other}'"
                )));
            }
        };
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.reconstructor()?.reconstruct(rows, kind)?, single_precision)
        };
        self.ask(py, rows, threads, question)?.into_numpy(py)
    }

    /// The group of each row, counted from 0 (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn assign<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let groups = self.ask(py, rows, threads, |m, rows| m.groups()?.assign(rows))?;
        Ok(PyArray1::from_iter(py, groups.into_iter().map(|k| k.cast_signed() as i64)))
    }

    /// The probability of each group for each row (n, K).
    #[pyo3(signature = (rows, threads=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let found = self.ask(py, rows, threads, |m, rows| double(&m.memberships()?.probabilities(rows)?))?;
        found.into_numpy(py)
    }

    /// Log density of the observed cells of each row (n,).
    #[pyo3(signature = (rows, threads=None))]
    fn score_samples<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let scores = self.ask(py, rows, threads, |m, rows| m.density()?.log_density(rows))?;
        Ok(PyArray1::from_vec(py, scores))
    }

    /// The rows with their missing values imputed by conditional means (n, p); observed cells stay as they
    /// are.
    #[pyo3(signature = (rows, single_precision=false, threads=None))]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let question = move |m: &dyn Fitted, rows: &dyn RowSource| {
            Answer::new(&m.imputer()?.impute(rows)?, single_precision)
        };
        self.ask(py, rows, threads, question)?.into_numpy(py)
    }

    /// The same, and the standard deviation of each filled cell (n, p), 0 where a cell was observed.
    #[pyo3(signature = (rows, single_precision=false, threads=None))]
    fn impute_with_std<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        single_precision: bool,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (cells, std) = self.ask(py, rows, threads, move |m, rows| {
            let imputed = m.imputer()?.impute_with_std(rows)?;
            let answer = |cells| Answer::new(cells, single_precision);
            Ok((answer(&imputed.cells)?, answer(&imputed.std)?))
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
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (cells, n) = self.ask(py, rows, threads, move |m, rows| {
            let draws = m.imputer()?.draw_missing(rows, 0..n_draws, seed)?;
            let n = match draws.first() {
                Some(draw) => draw.nrows(),
                None => map_chunks(rows, |chunk| Ok(chunk.nrows()))?.iter().sum(),
            };
            memory::check("the array of draws", &[n_draws, n, rows.n_features()])?;
            let cells = draws.into_iter().map(|draw| {
                rows.check()?;
                Ok(double(&draw)?.into_cells())
            });
            Ok((cells.collect::<covary::Result<Vec<_>>>()?.concat(), n))
        })?;
        PyArray1::from_vec(py, cells).reshape([n_draws, n, self.inner.n_features()])
    }

    /// Mean and standard deviation of named cells of rows of which only some cells were seen.
    #[pyo3(signature = (rows, cells, threads=None))]
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn predict_cells<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        cells: Vec<(usize, usize)>,
        threads: Option<Threads>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let (inner, held) = (Arc::clone(&self.inner), Arc::clone(&rows.held));
        let found = run(py, &Manner { threads, progress: None }, move |_| match &*held {
            Held::Observed(rows) => inner.imputer()?.predict(rows, &cells),
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
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.ask(py, rows, threads, |m, rows| m.density()?.outliers(rows))?;
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
        let (inner, row) = (Arc::clone(&self.inner), given::vector(py, &row)?);
        let found = run(py, &Manner::default(), move |control| inner.imputer()?.conditional(&row, control))?;
        let features = found.features.iter().map(|j| j.cast_signed() as i64).collect();
        Ok((
            PyArray1::from_vec(py, features),
            PyArray1::from_vec(py, found.mean),
            matrix(py, found.covariance.as_ref())?,
        ))
    }
}

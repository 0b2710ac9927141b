//! What cells contribute to the distance of their row, and how far rows may lie out.

use covary::data::Rows as CoreRows;
use covary::model::{Contributions, Explain, Limits, Model as Fitted, PrincipalComponents, Sample};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, run};
use crate::input::Rows;
use crate::model::Model;
use crate::output::{RowMajor, double};
use crate::threads::Threads;

#[pymethods]
impl Model {
    /// What each cell adds to the distance of its row, as tables (n, p).
    #[pyo3(signature = (rows, threads=None))]
    fn contributions<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = self.ask(py, rows, threads, |m, rows| tables(&m.explainer()?.contributions(rows)?))?;
        let dict = PyDict::new(py);
        for (name, table) in found {
            dict.set_item(name, table.into_numpy(py)?)?;
        }
        Ok(dict)
    }

    /// Control limits of T² and SPE for each row; without rows for one of which every cell is observed.
    #[pyo3(signature = (level, rows=None, threads=None))]
    fn limits<'py>(
        &self,
        py: Python<'py>,
        level: f64,
        rows: Option<&Rows>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let sample = self.sample_of_fit();
        let found = match rows {
            Some(rows) => {
                self.ask(py, rows, threads, move |m, rows| m.explainer()?.limits(rows, level, sample))?
            }
            None => {
                let inner = std::sync::Arc::clone(&self.inner);
                run(py, &Manner { threads, progress: None }, move |_| complete(&*inner, level, sample))?
            }
        };
        let dict = PyDict::new(py);
        dict.set_item("t2", PyArray1::from_vec(py, found.t2))?;
        dict.set_item("spe", PyArray1::from_vec(py, found.spe))?;
        Ok(dict)
    }
}

impl Model {
    /// From how many rows the model was found, and the divisor of its variances.
    pub(crate) fn sample_of_fit(&self) -> Option<Sample> {
        let sample = Sample::of_rows(self.saved().report.weight)?;
        let classical = self.of_kind::<PrincipalComponents>().is_some();
        Some(Sample { divisor: if classical { sample.weight - 1.0 } else { sample.divisor }, ..sample })
    }
}

/// Limits of a row of which every cell is observed.
fn complete(model: &dyn Fitted, level: f64, sample: Option<Sample>) -> covary::Result<Limits> {
    let explain: &dyn Explain = model.explainer()?;
    let Some(of) = model.as_loadings() else {
        let (name, value) = ("X", "None".into());
        let allowed = "given: the limits of a mixture are those of the component that a row belongs to";
        return Err(covary::Error::Parameter { name, value, allowed });
    };
    explain.limits(CoreRows::from_slice(of.mean(), model.n_features())?.source(), level, sample)
}

/// The tables by their names.
fn tables(found: &Contributions) -> covary::Result<[(&'static str, RowMajor<f64>); 5]> {
    Ok([
        ("t2", double(&found.t2)?),
        ("spe", double(&found.spe)?),
        ("cell", double(&found.cell)?),
        ("expected", double(&found.expected)?),
        ("deviation", double(&found.deviation)?),
    ])
}

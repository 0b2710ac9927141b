//! How many components: options as Python gives them, forwarded to the core; the answer goes back as a dict.

use std::sync::Arc;

use covary::Control;
use covary::select::{Select, Selection};
use pyo3::prelude::*;

use crate::door::{Manner, run};
use crate::fit::loaded_bytes;
use crate::input::{Held, Rows};
use crate::output::to_python;
use crate::threads::Threads;

/// The table over the number of components, the choices and the recommendation.
#[pyfunction]
#[pyo3(signature = (rows, *, max=None, folds=None, cells=false, seed=0, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
pub(crate) fn select<'py>(
    py: Python<'py>,
    rows: &Rows,
    max: Option<usize>,
    folds: Option<usize>,
    cells: bool,
    seed: u64,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut select = Select::new().cells(cells).seed(seed);
    if let Some(max) = max {
        select = select.max(max);
    }
    if let Some(folds) = folds {
        select = select.folds(folds);
    }
    let job = Job { held: Arc::clone(&rows.held), budget: rows.budget, select };
    let found = run(py, &Manner { threads, progress }, move |control| job.look(control))?;
    to_python(py, &found)
}

struct Job {
    held: Arc<Held>,
    budget: Option<covary_io::Budget>,
    select: Select,
}

impl Job {
    fn look(&self, control: &Control<'_>) -> covary::Result<Selection> {
        if let Some(stream) = self.held.take_stream() {
            return self.select.run_stream(&mut stream?, control);
        }
        let source = self.held.source()?;
        let Some(budget) = self.budget else { return self.select.run_with(source, control) };
        let mut select = self.select.clone().memory(budget.solver(loaded_bytes(source)));
        if source.as_table().is_none() {
            let (available, parts) = (rayon::current_num_threads(), select.row_folds());
            select = select.threads(budget.threads(available, source.n_features(), parts));
        }
        select.run_with(source, control)
    }
}

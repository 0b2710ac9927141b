//! How many components: options as Python gives them, forwarded to the core; the answer goes back as a dict.

use std::sync::Arc;

use covary::estimator::{ClusterReport, Details, Groups};
use covary::select::{Select, SelectGroups, SelectKernel, Selection};
use covary::{Control, Gamma, KMeans, KernelPca, MixturePpca};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::{Manner, run};
use crate::fit::loaded_bytes;
use crate::input::{Held, Rows};
use crate::kinds::kernels::form_of;
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

/// The numbers of groups of a mixture or of k-means.
#[pyfunction]
#[pyo3(signature = (model, rows, *, groups=None, noise=None, max=None, folds=None, cells=false, seed=0, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
pub(crate) fn select_groups<'py>(
    py: Python<'py>,
    model: &str,
    rows: &Rows,
    groups: Option<(usize, usize)>,
    noise: Option<&str>,
    max: Option<usize>,
    folds: Option<usize>,
    cells: bool,
    seed: u64,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let held = Arc::clone(&rows.held);
    let manner = Manner { threads, progress };
    if model == "kmeans" {
        if max.is_some() || folds.is_some() || cells || noise.is_some() {
            return Err(PyValueError::new_err(
                "max_components, folds, cells and noise are not for model='kmeans'",
            ));
        }
        let (fewest, most) = groups.unwrap_or(Groups::AUTO.range());
        let family = KMeans::new(Groups::Between(fewest, most)).seed(seed);
        let report = run(py, &manner, move |control| Ok(family.fit_with(held.source()?, control)?.report))?;
        let Some(Details::Clusters(ClusterReport { found, chosen: Some(chosen), .. })) = report.details
        else {
            return Err(PyValueError::new_err("groups must be a range of numbers"));
        };
        let told = PyDict::new(py);
        told.set_item("rows", report.rows)?;
        told.set_item("features", report.features)?;
        told.set_item("recommended", found)?;
        told.set_item("reason", chosen.reason)?;
        told.set_item("table", to_python(py, &chosen.rows)?)?;
        return Ok(told.into_any());
    }
    let diagonal = match noise {
        None | Some("isotropic") => false,
        Some("diagonal") => true,
        Some(other) => {
            return Err(PyValueError::new_err(format!("noise='{other}' must be 'isotropic' or 'diagonal'")));
        }
    };
    let mut select = SelectGroups::new(MixturePpca::new(1, 0).diagonal(diagonal)).cells(cells).seed(seed);
    select = groups.map_or(select.clone(), |(fewest, most)| select.groups(fewest..=most));
    select = max.map_or(select.clone(), |most| select.most_latent(most));
    select = folds.map_or(select.clone(), |folds| select.folds(folds));
    let found = run(py, &manner, move |control| select.run_with(held.source()?, control))?;
    to_python(py, &found)
}

/// The width of a kernel and the number of components.
#[pyfunction]
#[pyo3(signature = (rows, *, kernel="rbf", gamma=None, degree=3, coef0=1.0, max=None, seed=0, threads=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python call")]
pub(crate) fn select_kernel<'py>(
    py: Python<'py>,
    rows: &Rows,
    kernel: &str,
    gamma: Option<f64>,
    degree: u32,
    coef0: f64,
    max: Option<usize>,
    seed: u64,
    threads: Option<Threads>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let held = Arc::clone(&rows.held);
    let family = KernelPca::new(1).kernel(form_of(kernel, degree, coef0)?);
    let family = gamma.map_or(family.clone(), |gamma| family.gamma(Gamma::Given(gamma)));
    let select = SelectKernel::new(family).seed(seed);
    let select = max.map_or(select.clone(), |most| select.max(most));
    let found =
        run(py, &Manner { threads, progress }, move |control| select.run_with(held.source()?, control))?;
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

//! The compiled half of the Python package: it converts and forwards, through one door, and holds no
//! mathematics.

#![allow(clippy::needless_pass_by_value, reason = "arguments arrive from Python by value")]

mod cells;
mod command;
mod description;
mod door;
mod errors;
mod fit;
mod given;
mod input;
mod kinds;
mod model;
mod output;
mod page;
mod questions;
mod remote;
mod request;
mod rotation;
mod select;
mod steps;
mod threads;

use pyo3::prelude::*;

/// What `python/covary` is made from; not for use on its own.
#[pymodule]
fn _covary(module: &Bound<'_, PyModule>) -> PyResult<()> {
    covary::memory::available_from(covary_io::available_memory);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<input::Rows>()?;
    module.add_class::<input::File>()?;
    module.add_class::<request::Request>()?;
    module.add_class::<fit::Batches>()?;
    module.add_class::<steps::Kept>()?;
    module.add_class::<rotation::Rotation>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<remote::Evidence>()?;
    module.add_function(wrap_pyfunction!(remote::fit_elsewhere, module)?)?;
    module.add_function(wrap_pyfunction!(remote::merge_evidence, module)?)?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(kinds::most_factors, module)?)?;
    module.add_function(wrap_pyfunction!(rotation::adequacy, module)?)?;
    module.add_function(wrap_pyfunction!(select::select, module)?)?;
    module.add_function(wrap_pyfunction!(select::select_groups, module)?)?;
    module.add_function(wrap_pyfunction!(select::select_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(steps::step, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)
}

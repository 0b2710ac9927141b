//! The compiled half of the Python package: it converts and forwards, through one door, and holds no mathematics.

#![allow(clippy::needless_pass_by_value, reason = "arguments arrive from Python by value")]

mod bayes;
mod command;
mod door;
mod errors;
mod factor;
mod fit;
mod input;
mod model;
mod output;
mod precision;
mod reading;
mod rotation;
mod select;
mod threads;

use pyo3::prelude::*;

/// What `python/covary` is made from; not for use on its own.
#[pymodule]
fn _covary(module: &Bound<'_, PyModule>) -> PyResult<()> {
    covary::memory::available_from(covary_io::available_memory);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<input::Rows>()?;
    module.add_class::<input::File>()?;
    module.add_class::<fit::Options>()?;
    module.add_class::<fit::Seen>()?;
    module.add_class::<factor::FactorOptions>()?;
    module.add_class::<rotation::Rotation>()?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(factor::most_factors, module)?)?;
    module.add_function(wrap_pyfunction!(factor::given_factors, module)?)?;
    module.add_function(wrap_pyfunction!(factor::factor_scores, module)?)?;
    module.add_function(wrap_pyfunction!(factor::factor_tables, module)?)?;
    module.add_function(wrap_pyfunction!(factor::factor_errors, module)?)?;
    module.add_function(wrap_pyfunction!(factor::rotated, module)?)?;
    module.add_function(wrap_pyfunction!(bayes::bayes_tables, module)?)?;
    module.add_function(wrap_pyfunction!(bayes::given_bayes, module)?)?;
    module.add_function(wrap_pyfunction!(precision::ppca_errors, module)?)?;
    module.add_function(wrap_pyfunction!(precision::ppca_intervals, module)?)?;
    module.add_function(wrap_pyfunction!(rotation::seen_covariance, module)?)?;
    module.add_function(wrap_pyfunction!(rotation::adequacy, module)?)?;
    module.add_function(wrap_pyfunction!(rotation::adequacy_of_seen, module)?)?;
    module.add_function(wrap_pyfunction!(select::select, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)
}

//! The command `covary`, for `covary.__main__`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which is its name, and gives its exit code.
///
/// Only for a process that does nothing else: it takes over Ctrl-C and what is said about panics.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| covary_cli::main(argv))
}

//! The description of a model as Python's own values, with advice that names arguments.

use covary::describe::{Advice, Detail, Table, describe};
use covary::persist::SavedModel;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::now;

/// Lines as pairs, tables as dictionaries, and the text that the command would print.
pub(crate) fn description<'py>(py: Python<'py>, saved: &SavedModel) -> PyResult<Bound<'py, PyDict>> {
    let told = now(py, || describe(saved, &Detail { loadings: true, ..Detail::default() }))?;
    let lines: Vec<(&str, String)> =
        told.lines.iter().map(|line| (line.label.as_str(), line.words.with(&in_arguments))).collect();
    let tables = told.tables.iter().map(|each| table(py, each)).collect::<PyResult<Vec<_>>>()?;
    let dict = PyDict::new(py);
    dict.set_item("lines", lines)?;
    dict.set_item("tables", tables)?;
    dict.set_item("text", covary_cli::text(&told, &in_arguments))?;
    Ok(dict)
}

fn table<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("header", &table.header)?;
    dict.set_item("rows", &table.rows)?;
    dict.set_item("right", table.right.clone().collect::<Vec<_>>())?;
    dict.set_item("note", table.note.as_ref().map(|words| words.with(&in_arguments)))?;
    Ok(dict)
}

/// Advice in arguments and attributes.
fn in_arguments(advice: Advice) -> String {
    match advice {
        Advice::MoreIterations => "increase max_iter or tol".into(),
        Advice::LargerTolerance => "tol says what is good enough".into(),
        Advice::Factors(q) => format!("ask for n_components={q}"),
        Advice::AllLoadings => "loadings_ has all".into(),
    }
}

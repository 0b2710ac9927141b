//! Rows of the columns that are carried along: chosen, put together, and shown.

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_cast::display::array_value_to_string;
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::{Error, Result};

/// These rows of each column, in the given order, as often as they are named.
///
/// # Errors
/// When the result is too long for the type of a column.
pub fn take_rows(columns: &[ArrayRef], rows: &[usize]) -> Result<Vec<ArrayRef>> {
    let rows = UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
    columns.iter().map(|column| take(column, &rows, None).map_err(failed)).collect()
}

/// The rows of several pieces of the same columns below each other.
///
/// # Errors
/// When the result is too long for the type of a column.
pub fn join_rows(pieces: &[&[ArrayRef]]) -> Result<Vec<ArrayRef>> {
    let columns = pieces.first().map_or(0, |piece| piece.len());
    let joined = |k: usize| {
        let parts: Vec<&dyn Array> = pieces.iter().map(|piece| piece[k].as_ref()).collect();
        concat(&parts).map_err(failed)
    };
    (0..columns).map(joined).collect()
}

/// A value as people read it.
pub fn shown_value(column: &ArrayRef, row: usize) -> String {
    array_value_to_string(column, row).unwrap_or_default()
}

#[allow(clippy::needless_pass_by_value, reason = "what map_err calls")]
fn failed(error: ArrowError) -> Error {
    Error::Carried(error.to_string())
}

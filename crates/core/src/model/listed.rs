//! Dense rows as lists of the cells that they have, for those that no mask serves.

use crate::data::{Observed, Real};
use crate::error::{Cell, Error, Result};
use crate::linalg::MatRef;

/// A row of a list of observed cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// Where it stands in the list.
    pub(super) at: usize,
    /// What it is called in answers: mostly the row of the chunk.
    pub(super) row: usize,
}

/// Rows as lists of the cells that they have. An infinite cell is an error.
pub(super) fn lists<T: Real>(
    view: MatRef<'_, T>,
    rows: &[usize],
    first_row: usize,
) -> Result<Observed<'static>> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        for (column, x) in view.row(row).iter().enumerate() {
            let value = x.to_f64();
            if value.is_infinite() {
                let cell = Cell { row: first_row + row, column, name: None };
                return Err(Error::Infinite { value, cell });
            }
            if !value.is_nan() {
                columns.push(u32::try_from(column).map_err(|_| too_wide(view.ncols()))?);
                values.push(value);
            }
        }
        starts.push(values.len());
    }
    Observed::from_rows(starts, columns, values, view.ncols())
}

fn too_wide(p: usize) -> Error {
    Error::Parameter { name: "the number of features", value: p.to_string(), allowed: "below 2³²" }
}

//! Control limits of T² and SPE: of a complete row, and of each row by the cells that it has.

use covary::Result;
use covary::data::{RowSource, Rows};
use covary::model::{Explain, Model, Sample};
use serde::Serialize;

use crate::block::Arrays;

/// What a new row of the model stays below with this probability.
const LEVEL: f64 = 0.99;

/// Which limits there are, as `covary score --limits` gives them.
#[derive(Debug, Serialize)]
pub(crate) struct Limits {
    level: f64,
    /// One pair for all complete rows, in double precision.
    complete: bool,
    /// A pair for each row: where cells are missing, or where rows belong to different groups.
    each: bool,
}

/// The limits of some rows of a model; nothing where it has none.
pub(crate) fn add(
    model: &dyn Model,
    rows: Option<&dyn RowSource>,
    incomplete: bool,
    sample: Option<Sample>,
    arrays: &mut Arrays,
) -> Result<Option<Limits>> {
    let Some(explain) = model.as_explain() else { return Ok(None) };
    let complete = model.as_loadings().is_some();
    if let Some(of) = model.as_loadings() {
        let found =
            explain.limits(Rows::from_slice(of.mean(), model.n_features())?.source(), LEVEL, sample)?;
        arrays.doubles("limits", [1, 2], &[found.t2[0], found.spe[0]]);
    }
    let rows = rows.filter(|_| incomplete || !complete);
    if let Some(rows) = rows {
        add_each(explain, rows, sample, arrays)?;
    }
    Ok((complete || rows.is_some()).then_some(Limits { level: LEVEL, complete, each: rows.is_some() }))
}

fn add_each(
    explain: &dyn Explain,
    rows: &dyn RowSource,
    sample: Option<Sample>,
    arrays: &mut Arrays,
) -> Result<()> {
    let found = explain.limits(rows, LEVEL, sample)?;
    arrays.singles("t2_limit", [found.t2.len(), 1], found.t2.into_iter());
    arrays.singles("spe_limit", [found.spe.len(), 1], found.spe.into_iter());
    Ok(())
}

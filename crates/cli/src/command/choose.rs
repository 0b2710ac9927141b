//! How many components: asked of rows or moments that a command has opened.

use covary::Control;
use covary::data::{RowSource, RowStream};
use covary::select::{MOST_FEATURES, Select, Selection};

use crate::args::Reading;
use crate::exit::{Failure, Result};
use crate::interrupt;
use crate::phrase::count;
use crate::progress::Progress;

/// What the core says to rows that can be read again; `in_memory` bytes of them are loaded.
pub(super) fn of_rows(
    reading: &Reading<'_>,
    select: &Select,
    rows: &dyn RowSource,
    in_memory: usize,
) -> Result<covary::Result<Selection>> {
    let select = within(reading, select, rows, in_memory)?;
    Ok(watched(reading, rows.n_rows(), |control| select.run_with(rows, control)))
}

/// The same options within the memory limit.
pub(super) fn within(
    reading: &Reading<'_>,
    select: &Select,
    rows: &dyn RowSource,
    in_memory: usize,
) -> Result<Select> {
    let (p, budget) = (rows.n_features(), reading.budget);
    let select = select.clone().memory(budget.solver(in_memory));
    if rows.observed_only() {
        return Ok(select);
    }
    check_memory(reading, select.row_folds(), p)?;
    let threads = budget.threads(rayon::current_num_threads(), p, select.row_folds());
    Ok(select.threads(threads))
}

/// The same for rows that pass once.
pub(super) fn of_stream(
    reading: &Reading<'_>,
    select: &Select,
    stream: &mut dyn RowStream,
) -> Result<covary::Result<Selection>> {
    check_memory(reading, select.row_folds(), stream.n_features())?;
    Ok(watched(reading, None, |control| select.run_stream(stream, control)))
}

/// The moments of each part of the rows must fit.
fn check_memory(reading: &Reading<'_>, parts: usize, p: usize) -> Result<()> {
    match reading.budget.too_many_for_moments(p, parts) {
        Some(needed) if p <= MOST_FEATURES => Err(Failure::usage(format!(
            "the moments of {}, apart for {parts} parts of the rows, need about {} MiB; raise --memory, or \
             select columns",
            count(p, "feature"),
            needed >> 20
        ))),
        _ => Ok(()),
    }
}

pub(super) fn watched<T>(
    reading: &Reading<'_>,
    rows: Option<usize>,
    look: impl FnOnce(&Control<'_>) -> covary::Result<T>,
) -> covary::Result<T> {
    let progress = Progress::new(reading.console, "choosing", rows);
    let observer = |event| progress.follow(event);
    let found = look(&Control::new().observer(&observer).cancel(interrupt::flag()));
    interrupt::worth_saving(false);
    found
}

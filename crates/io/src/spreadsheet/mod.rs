//! Spreadsheets: one sheet of a workbook, read whole, as a grid of record batches.

mod sheet;
mod table;

use std::path::Path;
use std::sync::Arc;

use crate::arrow_memory;
use crate::error::Result;
use crate::format::Format;
use crate::reader::Access;
use crate::recognised::Recognised;
use crate::schema::{ReadOptions, Schema, resolve};
use table::Table;

/// Opens a workbook and decides about the columns of one of its sheets.
pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<(Arc<Schema>, Access)> {
    let sheet = sheet::read(path, options)?;
    let others = sheet.others.clone();
    let name = sheet.name.clone();
    let table = Table::of(path, sheet, options)?;
    let (mut schema, roles) = resolve(path, Format::Spreadsheet, table.named, &table.columns, options)?;
    schema.header_guess.clone_from(&table.guess);
    if options.sheet.is_none() && !others.is_empty() {
        schema.recognised.push(Recognised::Sheet { name, others });
    }
    let batches = table.batches(path, &schema, &roles, options)?;
    Ok(arrow_memory::of(schema, batches, roles))
}

//! Delimited text: CSV and TSV, plain files as grids, compressed ones and pipes as streams.

pub(crate) mod cell;
mod counts;
mod encoding;
mod fields;
mod grid;
mod head;
mod header;
mod index;
mod parse;
mod recognise;
mod sample;
mod stream;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::format::Format;
use crate::schema::{self, ReadOptions};

pub(crate) use cell::{Cell, CellRules, show_text};
pub(crate) use counts::Numbering;
pub(crate) use grid::open as open_grid;
pub(crate) use header::{Decision, decide};
pub(crate) use sample::name_index;
pub(crate) use stream::open as open_stream;

/// Decides about the columns that the beginning of a file shows.
fn layout(
    path: &Path,
    format: Format,
    sample: sample::Sample,
    options: &ReadOptions,
) -> Result<parse::Layout> {
    let (mut schema, roles) = schema::resolve(path, format, sample.named, &sample.columns, options)?;
    schema.header_guess = sample.guess;
    let left_out: HashSet<&str> = schema.left_out.iter().map(|column| column.name.as_str()).collect();
    let about_others = sample.recognised.into_iter().filter_map(|one| one.without(&left_out));
    schema.recognised = about_others.collect();
    let schema = Arc::new(schema);
    let names = sample.columns.into_iter().map(|column| column.name).collect();
    Ok(parse::Layout { schema, roles, names, dialect: sample.dialect })
}

//! Files to rows and back: CSV, TSV, Parquet, Arrow IPC, NPY and (to rows) spreadsheets, as tables, grids, streams and batches.
//!
//! [`open`] tells the format by the ending and decides about the columns; the [`Reader`] then offers the rows
//! in the way that suits: [`Reader::load`] for a table in memory (or the way to go on when it does not fit),
//! [`Reader::grid`] for a [`covary::data::RowSource`], [`Reader::batches`] for rows in order together with
//! the columns that are carried through. [`Writer`] writes such tables; files appear whole or not at all.
//! [`triples`] reads the cells of a mostly empty table one per row, [`pairs`] which of its cells somebody
//! asks about, [`matrix`] and [`square_matrix`] matrices with names on two sides.
//!
//! An empty cell, NA, N/A, #N/A, NaN and null are missing values (NaN). Columns that are not numeric are carried,
//! not modelled.
#![forbid(unsafe_code)]

mod arrow_columns;
mod arrow_ipc;
mod arrow_memory;
mod batch;
mod budget;
mod carried;
mod csv;
mod dialect;
mod error;
mod format;
mod header;
mod ids;
mod load;
mod matrix;
mod memory;
mod npy;
mod pairs;
mod parquet;
mod parquet_input;
mod positioned;
mod reader;
mod recognised;
mod saved;
mod schema;
mod select;
mod spreadsheet;
mod texts;
mod triples;
mod write;

pub use arrow_columns::pandas_index;
pub use batch::{Batch, Batches, Stream};
pub use budget::Budget;
pub use carried::{join_rows, shown_value, take_rows};
pub use csv::cell::number_with_comma;
pub use dialect::{DecimalMark, Delimiter, MissingWords, TextEncoding};
pub use error::{Error, Place, Result, shown};
pub use format::{Compression, Format};
pub use header::{HeaderGuess, HeaderSign};
pub use matrix::{Matrix, matrix, square_matrix};
pub use memory::available_memory;
pub use pairs::{PairBatch, Pairs, pairs};
pub use reader::{Grid, Loaded, Reader, open, open_arrow};
pub use recognised::Recognised;
pub use saved::read_saved;
pub use schema::{CarriedBecause, CarriedColumn, Carry, LeftOutBecause, LeftOutColumn, ReadOptions, Schema};
pub use select::Selection;
pub use texts::texts;
pub use triples::{TripleColumns, TripleOptions, Triples, triples};
pub use write::{NewFile, Writer, write_file};

/// The Arrow library in which carried columns are expressed.
pub use {arrow_array, arrow_schema};

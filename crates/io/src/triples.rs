//! Files in long format, one cell per row: who, what and how much. Cells without a row are missing.

use std::path::Path;

use arrow_schema::DataType;
use covary::data::{Cells, Observed};

use crate::error::{Error, Result};
use crate::ids::{DistinctIds, IdColumn, OrderedIds, column_name};
use crate::reader::{Reader, open};
use crate::schema::{CarriedBecause, CarriedColumn, Carry, ReadOptions, Schema};
use crate::select::Selection;

/// The columns of triples, each by name or by position counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TripleColumns {
    pub(crate) row: Selection,
    pub(crate) item: Selection,
    value: Selection,
}

impl TripleColumns {
    /// What somebody typed: `user,item,rating` or `1,2,3`.
    ///
    /// # Errors
    /// When it is not three columns.
    pub fn parse(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let column = |part: &str| Selection::parse(part);
        match parts[..] {
            [row, item, value] if parts.iter().all(|part| !part.is_empty()) => {
                Ok(Self { row: column(row)?, item: column(item)?, value: column(value)? })
            }
            _ => Err(Error::NotThree { text: text.into() }),
        }
    }

    pub(crate) fn ids(&self) -> Selection {
        self.row.clone().and(self.item.clone())
    }
}

/// What to read of a file of triples.
#[derive(Debug, Clone)]
pub struct TripleOptions {
    /// Who, what and how much.
    pub columns: TripleColumns,
    /// Exactly these items in this order, as a model needs them.
    pub items: Option<Vec<String>>,
    /// How the file is read; which of its columns is told above.
    pub read: ReadOptions,
}

impl TripleOptions {
    /// All items of the file.
    pub fn new(columns: TripleColumns) -> Self {
        Self { columns, items: None, read: ReadOptions::default() }
    }
}

/// A file of triples in memory.
#[derive(Debug, Clone)]
pub struct Triples {
    /// The cells; rows are named after who, features after what.
    pub cells: Observed<'static>,
    /// What the file holds: its items are the features, the column that says who is carried.
    pub schema: Schema,
    /// Rows of the file.
    pub n_triples: usize,
}

/// Reads triples from a file of any format (`-` is CSV on standard input).
///
/// Ids are text or whole numbers. Whole numbers are put in ascending order, names stay in the order in which
/// they first appear. A triple without a value says that the cell is missing.
///
/// # Errors
/// File trouble, columns that are not there, values that are no finite numbers, numbers below 0 or with a
/// fraction as ids, two triples for one cell, and items that are not among those asked for.
///
/// ```no_run
/// use covary_io::{TripleColumns, TripleOptions, triples};
/// let options = TripleOptions::new(TripleColumns::parse("user,film,stars")?);
/// let ratings = triples("ratings.csv.gz", &options)?;
/// println!("{} people, {} ratings", ratings.cells.nrows(), ratings.cells.n_cells());
/// # Ok::<(), covary_io::Error>(())
/// ```
pub fn triples(path: impl AsRef<Path>, options: &TripleOptions) -> Result<Triples> {
    let reading = TripleReader::new(path.as_ref(), options)?;
    let (row, item, mut schema) =
        (reading.row.clone(), reading.item.clone(), reading.reader.schema().clone());
    let LongTable { rows, items, triples } = reading.run()?;
    let rows = rows.ordered(&row)?;
    let items = match &options.items {
        Some(names) => items.positions_in(&item, names)?,
        None => items.ordered(&item)?,
    };
    let cells = observed(&rows, &items, &triples)
        .map_err(|error| twice(path.as_ref(), error, &rows, &items, &triples))?;
    schema.n_rows = Some(rows.names.len());
    schema.features.clone_from(&items.names);
    schema.carried = vec![who(row.name)];
    let cells = cells.with_names(items.names)?.with_row_names(rows.names)?;
    Ok(Triples { cells, schema, n_triples: triples.len() })
}

/// The column of row names, which answers carry.
fn who(name: String) -> CarriedColumn {
    CarriedColumn { name, data_type: DataType::Utf8, because: CarriedBecause::Id }
}

/// Positions of the ids as they first appeared, and the value.
type Triple = (usize, usize, f64);

fn observed(rows: &OrderedIds, items: &OrderedIds, triples: &[Triple]) -> covary::Result<Observed<'static>> {
    let cells = triples.iter().map(|&(i, j, value)| (rows.positions[i], items.positions[j], value));
    Observed::from_triples(rows.names.len(), items.names.len(), cells)
}

/// The core knows which cell is given twice, the file knows by which rows.
fn twice(
    path: &Path,
    error: covary::Error,
    rows: &OrderedIds,
    items: &OrderedIds,
    triples: &[Triple],
) -> Error {
    let covary::Error::DuplicateCell { cell } = &error else { return error.into() };
    let same = |t: &Triple| rows.positions[t.0] == cell.row && items.positions[t.1] == cell.column;
    let mut found = triples.iter().enumerate().filter(|(_, t)| same(t)).map(|(at, _)| at + 1);
    Error::DuplicateTriple {
        path: path.into(),
        first: found.next().unwrap_or(0),
        second: found.next().unwrap_or(0),
        row: rows.names[cell.row].clone(),
        column: items.names[cell.column].clone(),
    }
}

struct TripleReader {
    reader: Reader,
    row: IdColumn,
    item: IdColumn,
    value: String,
}

/// What the rows of the file say.
#[derive(Default)]
struct LongTable {
    rows: DistinctIds,
    items: DistinctIds,
    triples: Vec<Triple>,
}

impl TripleReader {
    fn new(path: &Path, options: &TripleOptions) -> Result<Self> {
        let TripleColumns { row, item, value } = &options.columns;
        let read = ReadOptions {
            columns: Some(value.clone()),
            carry: Carry::Columns(options.columns.ids()),
            ..options.read.clone()
        };
        let reader = open(path, &read).map_err(|error| in_two_roles(path, value, error))?;
        let schema = reader.schema();
        let (row, item) = (IdColumn::find(schema, row)?, IdColumn::find(schema, item)?);
        let value = column_name(schema, value)?;
        if row.name == item.name {
            return Err(Error::ColumnTwice { path: path.into(), column: row.name });
        }
        Ok(Self { reader, row, item, value })
    }

    fn run(self) -> Result<LongTable> {
        let Self { reader, row, item, value } = self;
        let mut table = LongTable::default();
        for batch in reader.batches() {
            let batch = batch.map_err(no_number)?;
            let first = batch.chunk.first_row();
            let (rows, items) = (row.texts(&batch.carried)?, item.texts(&batch.carried)?);
            for i in 0..batch.chunk.nrows() {
                let who = table.rows.position(row.id(&rows, i, first)?, first + i);
                let what = table.items.position(item.id(&items, i, first)?, first + i);
                let much =
                    finite(batch.chunk.cells(), i).map_err(|x| infinite(&row, &value, first + i, x))?;
                table.triples.push((who, what, much));
            }
        }
        Ok(table)
    }
}

/// A value that is also an id leaves no feature.
fn in_two_roles(path: &Path, value: &Selection, error: Error) -> Error {
    match error {
        Error::NoFeatures { .. } => Error::ColumnTwice { path: path.into(), column: value.to_string() },
        error => error,
    }
}

/// The column of values cannot be left out.
fn no_number(error: Error) -> Error {
    match error {
        Error::NotANumber { place, column, text } => Error::BadValue { place, column, text },
        error => error,
    }
}

fn finite(cells: &Cells<'_>, row: usize) -> Result<f64, f64> {
    let value = cells.get(row, 0);
    if value.is_infinite() { Err(value) } else { Ok(value) }
}

fn infinite(row: &IdColumn, column: &str, at: usize, value: f64) -> Error {
    Error::Infinite { place: row.place(at), column: column.into(), text: value.to_string() }
}

//! Files of pairs, who and what: cells of a table that somebody wants to know about, with all their other
//! columns.

use std::path::Path;

use arrow_array::ArrayRef;

use crate::batch::{Batch, Batches};
use crate::error::{Error, Result};
use crate::ids::{IdColumn, NameIndex};
use crate::reader::open;
use crate::schema::{Carry, ReadOptions, Schema};
use crate::triples::TripleColumns;

/// Consecutive rows of a file of pairs.
#[derive(Debug, Clone)]
pub struct PairBatch {
    /// All columns of the file, as they are.
    pub carried: Vec<ArrayRef>,
    /// For each pair the row that it asks about; `None` when nobody of that name is known.
    pub rows: Vec<Option<usize>>,
    /// For each pair the item.
    pub items: Vec<usize>,
}

/// The batches of a file of pairs, in order. Ends after the first error.
pub struct Pairs<'a> {
    schema: Schema,
    batches: Batches,
    row: IdColumn,
    item: IdColumn,
    rows: NameIndex<'a>,
    items: NameIndex<'a>,
    item_names: &'a [String],
}

/// Opens a file that has the id columns of triples (`-` is CSV on standard input).
///
/// # Errors
/// File trouble, and columns that are not there.
pub fn pairs<'a>(
    path: impl AsRef<Path>,
    columns: &TripleColumns,
    rows: &'a [String],
    items: &'a [String],
    read: &ReadOptions,
) -> Result<Pairs<'a>> {
    let reader = open(path, &ReadOptions { carry: Carry::All, ..read.clone() })?;
    let schema = reader.schema().clone();
    let (row, item) = (IdColumn::find(&schema, &columns.row)?, IdColumn::find(&schema, &columns.item)?);
    if row.name == item.name {
        return Err(Error::ColumnTwice { path: schema.path, column: row.name });
    }
    let batches = reader.batches();
    Ok(Pairs {
        schema,
        batches,
        row,
        item,
        rows: NameIndex::new(rows),
        items: NameIndex::new(items),
        item_names: items,
    })
}

impl Pairs<'_> {
    /// What the file holds; all columns are carried.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&self, batch: Batch) -> Result<PairBatch> {
        let (first, n) = (batch.chunk.first_row(), batch.chunk.nrows());
        let (rows, items) = (self.row.texts(&batch.carried)?, self.item.texts(&batch.carried)?);
        let row = |i| Ok(self.rows.find(self.row.id(&rows, i, first)?));
        let item = |i| {
            let id = self.item.id(&items, i, first)?;
            self.items.find(id).ok_or_else(|| self.item.unknown(first + i, id, self.item_names))
        };
        let (rows, items) =
            ((0..n).map(row).collect::<Result<_>>()?, (0..n).map(item).collect::<Result<_>>()?);
        Ok(PairBatch { carried: batch.carried, rows, items })
    }
}

impl Iterator for Pairs<'_> {
    type Item = Result<PairBatch>;

    fn next(&mut self) -> Option<Result<PairBatch>> {
        let batch = self.batches.next()?;
        Some(batch.and_then(|batch| self.read(batch)))
    }
}

//! Rows whose features are divided by given numbers, as a source of its own.

use serde::{Deserialize, Serialize};

use super::{
    Block, Cells, Chunk, Observed, Order, Parcel, Real, RemoteRows, RowSource, Step, Table, Task, Then,
    fill_through,
};
use crate::error::Result;
use crate::linalg::MatRef;

/// The rows of a source with each feature divided by its scale, in double precision. Chunks are copied as
/// they are read. A table in memory is copied once where whole-matrix solvers may ask for it, and so are the
/// cells of a table of which only some were seen.
pub(crate) struct ScaledRows<'a> {
    source: &'a dyn RowSource,
    scale: &'a [f64],
    copy: Option<Box<dyn RowSource>>,
}

impl<'a> ScaledRows<'a> {
    /// Divides feature j by `scale[j]`, p numbers above 0; `whole` says whether a table in memory is to stay
    /// one.
    pub(crate) fn new(source: &'a dyn RowSource, scale: &'a [f64], whole: bool) -> Result<Self> {
        let copy: Option<Box<dyn RowSource>> = match source.as_table() {
            _ if source.remote().is_some() => None,
            _ if source.observed_only() => Some(Box::new(scaled_cells(source, scale)?)),
            Some(table) if whole => Some(Box::new(scaled_table(table, scale)?)),
            _ => None,
        };
        Ok(Self { source, scale, copy })
    }
}

impl RowSource for ScaledRows<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.copy.as_ref().map_or_else(|| self.source.n_chunks(), |copy| copy.n_chunks())
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        if let Some(copy) = &self.copy {
            return copy.chunk(index);
        }
        let chunk = self.source.chunk(index)?;
        let part = Chunk::new(chunk.first_row(), divided_cells(chunk.cells(), self.scale));
        match chunk.weights() {
            Some(weights) => part.with_weights(weights.to_vec()),
            None => Ok(part),
        }
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.source.weights()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn as_table(&self) -> Option<&Table<'_>> {
        self.copy.as_ref().and_then(|copy| copy.as_table())
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote().map(|_| self as &dyn RemoteRows)
    }
}

impl RemoteRows for ScaledRows<'_> {
    fn fill(&self, task: Task) -> Result<Parcel> {
        fill_through(self.source, &Scaled(self.scale.to_vec()), task)
    }
}

/// Features are divided by these numbers.
#[derive(Serialize, Deserialize)]
pub(crate) struct Scaled(Vec<f64>);

impl Step for Scaled {
    const NAME: &'static str = "scaled";

    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
        then(&ScaledRows::new(rows, &self.0, false)?)
    }
}

/// Only the cells that were seen.
fn scaled_cells(source: &dyn RowSource, scale: &[f64]) -> Result<Observed<'static>> {
    let (mut starts, mut columns, mut values, mut weights) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for index in 0..source.n_chunks() {
        let chunk = source.chunk(index)?;
        weights.extend(chunk.weights().unwrap_or_default());
        for row in 0..chunk.nrows() {
            if let Cells::Observed(rows) = chunk.cells() {
                let (seen, cells) = rows.row(row);
                columns.extend_from_slice(seen);
                values.extend(seen.iter().zip(cells).map(|(j, x)| x / scale[*j as usize]));
            }
            starts.push(columns.len());
        }
    }
    let mut scaled = Observed::from_rows(starts, columns, values, source.n_features())?;
    if !weights.is_empty() {
        scaled = scaled.with_weights(weights)?;
    }
    match source.feature_names() {
        Some(names) => scaled.with_names(names.to_vec()),
        None => Ok(scaled),
    }
}

fn scaled_table(table: &Table<'_>, scale: &[f64]) -> Result<Table<'static>> {
    let mut scaled = Table::new(divided_cells(table.cells(), scale));
    if let Some(weights) = table.weights() {
        scaled = scaled.with_weights(weights.to_vec())?;
    }
    match table.feature_names() {
        Some(names) => scaled.with_names(names.to_vec()),
        None => Ok(scaled),
    }
}

fn divided_cells(cells: &Cells<'_>, scale: &[f64]) -> Cells<'static> {
    Cells::F64(match cells {
        Cells::F32(block) => divided(block.view(), scale),
        Cells::F64(block) => divided(block.view(), scale),
        Cells::Observed(rows) => divided(rows.to_dense().as_ref(), scale),
    })
}

fn divided<T: Real>(view: MatRef<'_, T>, scale: &[f64]) -> Block<'static, f64> {
    let mut cells = Vec::with_capacity(view.nrows() * view.ncols());
    for row in view.row_iter() {
        cells.extend(row.iter().zip(scale).map(|(x, d)| x.to_f64() / d));
    }
    Block::Owned { cells, nrows: view.nrows(), ncols: view.ncols(), order: Order::Rows }
}

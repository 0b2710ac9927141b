//! Whole files in memory: one owned table when it fits, nothing lost when it does not.

use covary::data::{Block, Cells, Chunk, Order, Real, Table};
use covary::linalg::MatRef;
use rayon::prelude::*;

use crate::batch::Stream;
use crate::budget::machine;
use crate::error::{Error, Result};
use crate::reader::{Grid, Loaded};
use crate::schema::Schema;

/// The type of the cells of a table, and how it is found in chunks.
trait Number: Real + Default {
    fn of<'a>(cells: &'a Cells<'_>) -> Option<MatRef<'a, Self>>;
    fn block(block: Block<'static, Self>) -> Cells<'static>;
}

impl Number for f32 {
    fn of<'a>(cells: &'a Cells<'_>) -> Option<MatRef<'a, f32>> {
        match cells {
            Cells::F32(block) => Some(block.view()),
            _ => None,
        }
    }
    fn block(block: Block<'static, f32>) -> Cells<'static> {
        Cells::F32(block)
    }
}

impl Number for f64 {
    fn of<'a>(cells: &'a Cells<'_>) -> Option<MatRef<'a, f64>> {
        match cells {
            Cells::F64(block) => Some(block.view()),
            _ => None,
        }
    }
    fn block(block: Block<'static, f64>) -> Cells<'static> {
        Cells::F64(block)
    }
}

/// Bytes that rows of this schema take in memory.
fn bytes(schema: &Schema, rows: usize) -> usize {
    let cell = if schema.single_precision { 4 } else { 8 };
    let weight = if schema.weights.is_some() { 8 } else { 0 };
    rows.saturating_mul(schema.features.len().saturating_mul(cell) + weight)
}

/// A grid knows its size beforehand.
pub(crate) fn grid(grid: Grid, limit: usize, on_rows: &(dyn Fn(usize) + Sync)) -> Result<Loaded> {
    // A damaged file can promise any number of rows.
    match bytes(grid.schema(), grid.total_rows()) {
        needed if needed > limit.min(machine()) => Ok(Loaded::Grid(grid)),
        _ if grid.schema().single_precision => fill::<f32>(&grid, on_rows).map(Loaded::Table),
        _ => fill::<f64>(&grid, on_rows).map(Loaded::Table),
    }
}

/// Every chunk goes straight to its rows of the table, on all cores.
fn fill<T: Number>(grid: &Grid, on_rows: &(dyn Fn(usize) + Sync)) -> Result<Table<'static>> {
    let (p, n) = (grid.schema().features.len(), grid.total_rows());
    let mut cells = vec![T::default(); n * p];
    let mut weights = vec![0.0; if grid.schema().weights.is_some() { n } else { 0 }];
    let mut parts = Vec::new();
    let (mut cells_left, mut weights_left) = (&mut cells[..], &mut weights[..]);
    for index in 0..grid.chunks().n_chunks() {
        let rows = grid.chunks().rows(index).len();
        let (cells, rest) = cells_left.split_at_mut(rows * p);
        let (weights, weights_rest) = weights_left.split_at_mut(rows.min(weights_left.len()));
        parts.push((index, cells, weights));
        (cells_left, weights_left) = (rest, weights_rest);
    }
    let part = |(i, cells, weights): (usize, &mut [T], &mut [f64])| {
        let rows = cells.len() / p;
        fill_part(grid, i, cells, weights).inspect(|()| on_rows(rows))
    };
    let results: Vec<Result<()>> = parts.into_par_iter().map(part).collect();
    results.into_iter().collect::<Result<()>>()?;
    table(grid.schema(), cells, weights)
}

fn fill_part<T: Number>(grid: &Grid, index: usize, out: &mut [T], weights: &mut [f64]) -> Result<()> {
    let chunk = grid.chunks().read(index, false)?.chunk;
    let view = T::of(chunk.cells()).filter(|v| v.nrows() * v.ncols() == out.len());
    copy_rows(view.ok_or_else(|| Error::Changed { path: grid.schema().path.clone() })?, out);
    if let Some(w) = chunk.weights() {
        weights.copy_from_slice(w);
    }
    Ok(())
}

/// Copies a view of any strides into row-major cells, in blocks that stay in cache.
fn copy_rows<T: Real>(view: MatRef<'_, T>, out: &mut [T]) {
    const ROWS: usize = 32;
    let p = view.ncols();
    if let Some(rows) = view.try_as_row_major() {
        for (i, row) in out.chunks_exact_mut(p).enumerate() {
            row.copy_from_slice(rows.row(i).as_slice());
        }
        return;
    }
    for (k, block) in out.chunks_mut(ROWS * p).enumerate() {
        for j in 0..p {
            for (i, row) in block.chunks_exact_mut(p).enumerate() {
                row[j] = view[(k * ROWS + i, j)];
            }
        }
    }
}

fn table<T: Number>(schema: &Schema, cells: Vec<T>, weights: Vec<f64>) -> Result<Table<'static>> {
    let ncols = schema.features.len();
    let nrows = cells.len() / ncols;
    let table = Table::new(T::block(Block::Owned { cells, nrows, ncols, order: Order::Rows }));
    let table = table.with_names(schema.features.clone())?;
    match schema.weights {
        Some(_) => Ok(table.with_weights(weights)?),
        None => Ok(table),
    }
}

/// A stream is read until it ends or memory does; then what was read goes back in front.
pub(crate) fn stream(
    schema: &Schema,
    mut stream: Stream,
    limit: usize,
    on_rows: &(dyn Fn(usize) + Sync),
) -> Result<Loaded> {
    let mut cells: Vec<f64> = Vec::new();
    let mut weights: Vec<f64> = Vec::new();
    let mut sizes: Vec<usize> = Vec::new();
    while let Some(chunk) = stream.next_rows()? {
        let start = cells.len();
        cells.resize(start + chunk.nrows() * chunk.ncols(), 0.0);
        if let Some(view) = f64::of(chunk.cells()) {
            copy_rows(view, &mut cells[start..]);
        }
        weights.extend_from_slice(chunk.weights().unwrap_or_default());
        sizes.push(chunk.nrows());
        on_rows(chunk.nrows());
        if bytes(schema, sizes.iter().sum()) > limit {
            stream.put_back(split(schema, cells, weights, &sizes)?.into_iter());
            return Ok(Loaded::Stream(stream));
        }
    }
    match sizes.is_empty() {
        true => Err(Error::NoRows { path: schema.path.clone() }),
        false => table(schema, cells, weights).map(Loaded::Table),
    }
}

/// Cuts a large buffer into chunks from its end, giving back memory as it goes, so that it is never held
/// twice.
fn split(
    schema: &Schema,
    mut cells: Vec<f64>,
    mut weights: Vec<f64>,
    sizes: &[usize],
) -> Result<Vec<Chunk<'static>>> {
    let p = schema.features.len();
    let mut first_row: usize = sizes.iter().sum();
    let mut chunks = Vec::with_capacity(sizes.len());
    for rows in sizes.iter().rev() {
        first_row -= rows;
        let chunk = Chunk::from_rows(first_row, cells.split_off(first_row * p), p, Order::Rows)?;
        cells.shrink_to_fit();
        chunks.push(match schema.weights {
            Some(_) => chunk.with_weights(weights.split_off(first_row))?,
            None => chunk,
        });
    }
    chunks.reverse();
    Ok(chunks)
}

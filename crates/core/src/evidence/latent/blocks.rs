//! The expectation step of the rows of a chunk, block by block.

use crate::blocks::{BLOCK_ROWS, IncompleteRows, ListedRows, for_each_masked_of};
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::evidence::moments::check_features;
use crate::expectation::{Expectation, LatentParameters};
use crate::linalg::{MatRef, packed_len};

/// Most rows of a block, however many latent variables there are.
const MOST_BLOCK_ROWS: usize = 1024;
/// Rows of observed cells that are worked on together.
const LANES: usize = 64;

/// The expectation step of a block of rows.
pub(super) type BlockExpectation<'a> = Expectation<'a, dyn IncompleteRows + 'a>;

/// Calls `f` with the expectation step of each block of rows, and which rows of the chunk those are. Rows of
/// no weight and rows without a cell are left out.
pub(super) fn for_each_block(
    parameters: &LatentParameters,
    chunk: &Chunk<'_>,
    f: &mut dyn FnMut(&BlockExpectation<'_>, &[usize]),
) -> Result<()> {
    check_features(parameters.n_features(), chunk.ncols())?;
    match chunk.cells() {
        Cells::Observed(rows) => for_each_listed(parameters, *rows, chunk.weights(), f),
        dense => with_view!(dense, view => for_each_dense(parameters, view, chunk.weights(), f))?,
    }
    Ok(())
}

fn for_each_dense<T: Real>(
    parameters: &LatentParameters,
    view: MatRef<'_, T>,
    weights: Option<&[f64]>,
    f: &mut dyn FnMut(&BlockExpectation<'_>, &[usize]),
) -> Result<()> {
    let factor: Vec<f64> = (0..parameters.n_features()).map(|j| 1.0 / parameters.scale().of(j)).collect();
    let rows = (0..view.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0)).collect();
    let mean = parameters.compensated_mean();
    // Each block passes over all sums of each feature: where these are many, rows are too.
    let block_rows = (packed_len(parameters.n_latent() + 1) / 16).clamp(BLOCK_ROWS, MOST_BLOCK_ROWS);
    for_each_masked_of(block_rows, view, rows, mean, &factor, &mut |block| {
        f(&Expectation::new(parameters.scaled(), block), &block.rows);
        Ok(())
    })
}

fn for_each_listed(
    parameters: &LatentParameters,
    cells: ObservedRows<'_>,
    weights: Option<&[f64]>,
    f: &mut dyn FnMut(&BlockExpectation<'_>, &[usize]),
) {
    let root: Vec<f64> = (0..parameters.n_features()).map(|j| parameters.scale().of(j)).collect();
    let counts = |i: &usize| !cells.row(*i).0.is_empty() && weights.is_none_or(|w| w[*i] > 0.0);
    let counted: Vec<usize> = (0..cells.shape().0).filter(counts).collect();
    for part in counted.chunks(LANES) {
        let mean = parameters.compensated_mean();
        let rows = ListedRows::new(cells, part.iter().copied(), mean, &root);
        f(&Expectation::new(parameters.scaled(), &rows), part);
    }
}

/// What is known of each row of a chunk under some parameters.
pub(crate) struct RowDensities {
    /// Log density of the observed cells; where W and μ are uncertain, the bound of the expectation step.
    pub(crate) log_density: Vec<f64>,
    /// Number of observed cells; 0 also for a row of no weight.
    pub(crate) cells: Vec<usize>,
}

/// Log densities of the rows of a chunk; 0 for rows of no weight and rows without a cell.
pub(crate) fn row_densities(parameters: &LatentParameters, chunk: &Chunk<'_>) -> Result<RowDensities> {
    let n = chunk.nrows();
    let mut found = RowDensities { log_density: vec![0.0; n], cells: vec![0; n] };
    let log_scale: Vec<f64> = (0..parameters.n_features()).map(|j| parameters.scale().of(j).ln()).collect();
    for_each_block(parameters, chunk, &mut |step, rows| {
        let densities = step.log_densities(&step.mahalanobis(&step.squared_residuals()));
        let volumes = step.rows().sums(&log_scale);
        for ((row, pattern), density) in rows.iter().zip(step.rows().pattern()).zip(densities) {
            found.log_density[*row] = density - volumes[*pattern];
            found.cells[*row] = step.rows().observed()[*pattern];
        }
    })?;
    match found.log_density.iter().all(|x| x.is_finite()) {
        true => Ok(found),
        false => Err(chunk.explain_infinite().unwrap_or(Error::Scale)),
    }
}

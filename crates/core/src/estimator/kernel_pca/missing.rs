//! Rows with missing values: what is known of their cells.

use super::super::incomplete::PAIRWISE_FEATURES;
use super::super::{BayesianPca, Ppca, Run};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::{Chunk, RowSource, Rows, Table};
use crate::error::{Error, Result};
use crate::evidence::Census;
use crate::kernel::WIDTH_ROWS;
use crate::linalg::Mat;
use crate::model::LinearGaussian;

/// The most components of the model of the cells where the pairs of features are too many to look at.
const MOST_COMPONENTS: usize = 50;

/// The model of the cells: Bayesian PCA, which finds by itself how many components the rows support, and whose
/// density includes how well it knows them.
pub(super) fn filling(
    source: &dyn RowSource,
    census: &Census,
    run: Run,
    control: &Control<'_>,
) -> Result<LinearGaussian> {
    let components = match source.n_features() <= PAIRWISE_FEATURES {
        true => Components::All,
        false => Components::Count(census.supported_components().clamp(1, MOST_COMPONENTS)),
    };
    let run = Run { tolerance: None, max_iterations: None, ..run };
    let fit = BayesianPca::of(Ppca::new(components).run(run)).fit_with(source, control)?;
    Ok(fit.model.gaussian().clone())
}

/// Rows by which the width of a kernel is chosen: some of the given ones (n × p), each missing cell drawn from what is
/// known of it, because means alone lie too near to each other; divided by `unit`.
pub(super) fn drawn(model: &LinearGaussian, points: &Mat<f64>, unit: f64, seed: u64) -> Result<Mat<f64>> {
    let step = points.nrows().div_ceil(WIDTH_ROWS).max(1);
    let some = Mat::from_fn(points.nrows().div_ceil(step), points.ncols(), |i, j| points[(i * step, j)]);
    let mut draws = model.draw_missing(&some, 0..1, seed)?;
    let drawn = draws.pop().ok_or(Error::NoRows)?;
    Ok(Mat::from_fn(drawn.nrows(), drawn.ncols(), |i, j| drawn[(i, j)] / unit))
}

/// A matrix as a table.
pub(super) fn table_of(rows: &Mat<f64>) -> Result<Table<'_>> {
    match Rows::from(rows) {
        Rows::Table(table) => Ok(table),
        Rows::Source(_) => Err(Error::NoRows),
    }
}

/// The rows that have a cell: others say nothing.
pub(super) struct RowsWithCells<'a>(pub(super) &'a dyn RowSource);

impl RowSource for RowsWithCells<'_> {
    fn n_features(&self) -> usize {
        self.0.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.0.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.0.chunk(index)?;
        let has_cell = |i: &usize| (0..chunk.ncols()).any(|j| !chunk.cells().get(*i, j).is_nan());
        let some: Vec<usize> = (0..chunk.nrows()).filter(has_cell).collect();
        if some.len() == chunk.nrows() { Ok(chunk) } else { chunk.select(&some) }
    }
}

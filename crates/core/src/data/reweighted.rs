//! Rows with other weights, as a source of its own.

use serde::{Deserialize, Serialize};

use super::{Chunk, Parcel, RemoteRows, RowSource, Step, Table, Task, Then, fill_through};
use crate::error::Result;

/// The rows of a source with the weights that a function gives the rows of a chunk.
pub(crate) struct Reweighted<'a, F> {
    source: &'a dyn RowSource,
    weights: F,
}

impl<'a, F: Fn(&Chunk<'_>) -> Result<Vec<f64>> + Sync> Reweighted<'a, F> {
    /// Cells are not copied.
    pub(crate) fn new(source: &'a dyn RowSource, weights: F) -> Self {
        Self { source, weights }
    }
}

impl<F: Fn(&Chunk<'_>) -> Result<Vec<f64>> + Sync> RowSource for Reweighted<'_, F> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let weights = (self.weights)(&chunk)?;
        chunk.with_weights(weights)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }
}

/// The rows of a source with each weight multiplied by a factor: shares become counts. A table stays one.
pub(crate) fn with_weights_times<'a>(
    source: &'a dyn RowSource,
    factor: f64,
) -> Result<Box<dyn RowSource + 'a>> {
    let times = Times(factor);
    let Some(table) = source.as_table() else { return Ok(Box::new(TimesRows { source, times })) };
    let rows = table.shape().0;
    let counted = Table::new(table.cells().part(0, rows)).with_weights(times.of(table.weights(), rows))?;
    Ok(Box::new(match source.feature_names() {
        Some(names) => counted.with_names(names.to_vec())?,
        None => counted,
    }))
}

/// Weights are multiplied by this number.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Times(f64);

impl Times {
    fn of(self, weights: Option<&[f64]>, rows: usize) -> Vec<f64> {
        weights.map_or_else(|| vec![self.0; rows], |weights| weights.iter().map(|w| w * self.0).collect())
    }
}

impl Step for Times {
    const NAME: &'static str = "times";

    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
        then(&TimesRows { source: rows, times: *self })
    }
}

/// The rows of a source that is no table, with such weights.
struct TimesRows<'a> {
    source: &'a dyn RowSource,
    times: Times,
}

impl RowSource for TimesRows<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let weights = self.times.of(chunk.weights(), chunk.nrows());
        chunk.with_weights(weights)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote().map(|_| self as &dyn RemoteRows)
    }
}

impl RemoteRows for TimesRows<'_> {
    fn fill(&self, task: Task) -> Result<Parcel> {
        fill_through(self.source, &self.times, task)
    }
}

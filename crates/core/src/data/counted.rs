//! Rows whose weights are multiplied by a number, as a source of its own.

use super::{Chunk, RowSource, Table};
use crate::error::Result;

/// The rows of a source with each weight multiplied by a factor: shares become counts.
pub(crate) struct CountedRows<'a> {
    source: &'a dyn RowSource,
    factor: f64,
    weights: Option<Vec<f64>>, // when they lie in memory
    table: Option<Table<'a>>,
}

impl<'a> CountedRows<'a> {
    /// Cells are not copied.
    pub(crate) fn new(source: &'a dyn RowSource, factor: f64) -> Result<Self> {
        let weights = source.weights().map(|weights| times(weights, factor));
        let table = match source.as_table() {
            Some(table) => {
                let weights = weights.clone().unwrap_or_else(|| vec![factor; table.shape().0]);
                let counted = Table::new(table.cells().part(0, table.shape().0)).with_weights(weights)?;
                Some(match source.feature_names() {
                    Some(names) => counted.with_names(names.to_vec())?,
                    None => counted,
                })
            }
            None => None,
        };
        Ok(Self { source, factor, weights, table })
    }
}

fn times(weights: &[f64], factor: f64) -> Vec<f64> {
    weights.iter().map(|weight| weight * factor).collect()
}

impl RowSource for CountedRows<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let weights = match chunk.weights() {
            Some(weights) => times(weights, self.factor),
            None => vec![self.factor; chunk.nrows()],
        };
        chunk.with_weights(weights)
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn as_table(&self) -> Option<&Table<'_>> {
        self.table.as_ref()
    }
}

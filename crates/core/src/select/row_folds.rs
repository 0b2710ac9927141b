//! Rows of which a part is held out, for models that are fitted in passes.

use super::folds::fold_of;
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::Result;
use crate::model::Mixture;

/// Rows of which those of one fold count nothing.
pub(super) struct RowsOfFold<'a> {
    pub(super) source: &'a dyn RowSource,
    pub(super) fold: usize,
    pub(super) folds: usize,
    pub(super) seed: u64,
}

impl RowsOfFold<'_> {
    fn is_held_out(&self, row: usize) -> bool {
        fold_of(row, self.folds, self.seed) == self.fold
    }

    /// Mean log density of the rows that do not count.
    pub(super) fn held_out_density(&self, mixture: &Mixture) -> Result<f64> {
        let parts = map_chunks(self.source, |chunk| {
            let held_out = |i: &usize| self.is_held_out(chunk.first_row() + i);
            let rows: Vec<usize> = (0..chunk.nrows()).filter(held_out).collect();
            let some = chunk.select(&rows)?;
            let densities = mixture.log_density(&some)?;
            let weight = |i: usize| some.weights().map_or(1.0, |w| w[i]);
            let sum: f64 = densities.iter().enumerate().map(|(i, l)| weight(i) * l).sum();
            Ok((sum, (0..rows.len()).map(weight).sum::<f64>()))
        })?;
        let (sum, weight) = parts.into_iter().fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        Ok(sum / weight)
    }
}

impl RowSource for RowsOfFold<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let weight = |i: usize| match self.is_held_out(chunk.first_row() + i) {
            true => 0.0,
            false => chunk.weights().map_or(1.0, |w| w[i]),
        };
        let weights: Vec<f64> = (0..chunk.nrows()).map(weight).collect();
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

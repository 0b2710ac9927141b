//! Rows of which a part is held out, for models that are fitted in passes.

use super::folds::fold_of;
use crate::data::{Chunk, Reweighted, RowSource, map_chunks};
use crate::error::Result;
use crate::model::Mixture;

/// Rows of which those of one fold are held out.
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

    /// The rows with a weight of 0 for those that are held out.
    pub(super) fn training(&self) -> impl RowSource + '_ {
        Reweighted::new(self.source, |chunk: &Chunk<'_>| {
            let weight = |i: usize| match self.is_held_out(chunk.first_row() + i) {
                true => 0.0,
                false => chunk.weights().map_or(1.0, |w| w[i]),
            };
            Ok((0..chunk.nrows()).map(weight).collect())
        })
    }

    /// Mean log density of the rows that are held out.
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

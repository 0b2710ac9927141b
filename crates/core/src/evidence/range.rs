//! The smallest and the largest cell of each feature: whether it varies at all, however little.

use serde::{Deserialize, Serialize};

use super::{Accumulator, Travel};
use crate::data::{Chunk, Real, with_view};
use crate::error::Result;

/// Smallest and largest observed cell of each feature; an empty range where there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Range(Vec<(f64, f64)>);

impl Range {
    /// Of no cells.
    pub(crate) fn empty(n_features: usize) -> Self {
        Self(vec![(f64::INFINITY, f64::NEG_INFINITY); n_features])
    }

    /// Whether two cells of the feature differ.
    pub(crate) fn varies(&self, feature: usize) -> bool {
        self.0[feature].0 < self.0[feature].1
    }

    /// Largest minus smallest cell of each feature; 0 where there is none.
    pub(crate) fn widths(&self) -> Vec<f64> {
        self.0.iter().map(|(least, most)| (most - least).max(0.0)).collect()
    }

    fn add(&mut self, feature: usize, cell: f64) {
        let (least, most) = &mut self.0[feature];
        (*least, *most) = (least.min(cell), most.max(cell)); // NaN changes neither
    }
}

impl Accumulator for Range {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("range"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let counts = |i: usize| chunk.weights().is_none_or(|w| w[i] > 0.0);
        with_view!(chunk.cells(), view => {
            for (_, row) in view.row_iter().enumerate().filter(|(i, _)| counts(*i)) {
                row.iter().enumerate().for_each(|(j, x)| self.add(j, Real::to_f64(*x)));
            }
        });
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        for (j, (least, most)) in other.0.iter().enumerate() {
            self.add(j, *least);
            self.add(j, *most);
        }
        Ok(())
    }
}

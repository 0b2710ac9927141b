//! Some of the rows themselves, by their numbers: what a search on a sample needs of rows that lie elsewhere.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Accumulator, Travel};
use crate::data::{Block, Cells, Chunk, Order, Table};
use crate::error::Result;
use crate::linalg::serial::shared;

/// Which rows are picked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Which {
    /// All.
    All,
    /// Every so many runs of so many rows, the first run among them.
    Runs {
        /// Rows of a run.
        length: usize,
        /// Runs of which one is picked.
        every: usize,
    },
    /// Those with these numbers, ascending; one that is named twice is picked once.
    Listed(Vec<usize>),
}

impl Which {
    fn has(&self, row: usize) -> bool {
        match self {
            Self::All => true,
            Self::Runs { length, every } => (row / length).is_multiple_of(*every),
            Self::Listed(rows) => rows.binary_search(&row).is_ok(),
        }
    }
}

/// Copies of some rows, with their numbers and weights.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PickedRows {
    #[serde(with = "shared")]
    which: Arc<Which>,
    width: usize,
    numbers: Vec<usize>,
    cells: Vec<f64>, // row after row
    weights: Vec<f64>,
    weighted: bool,
}

impl PickedRows {
    /// Of no rows.
    pub(crate) fn empty(which: Arc<Which>, width: usize) -> Self {
        Self { which, width, numbers: Vec::new(), cells: Vec::new(), weights: Vec::new(), weighted: false }
    }

    /// The rows in the order of their numbers, and those.
    ///
    /// # Errors
    /// None that rows can cause.
    pub(crate) fn table(self) -> Result<(Vec<usize>, Table<'static>)> {
        let (p, n) = (self.width, self.numbers.len());
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_unstable_by_key(|at| self.numbers[*at]);
        let cells = order.iter().flat_map(|at| &self.cells[at * p..(at + 1) * p]).copied().collect();
        let table = Table::new(Cells::F64(Block::Owned { cells, nrows: n, ncols: p, order: Order::Rows }));
        let numbers = order.iter().map(|at| self.numbers[*at]).collect();
        match self.weighted {
            true => Ok((
                numbers,
                table.with_weights(order.iter().map(|at| self.weights[*at]).collect::<Vec<_>>())?,
            )),
            false => Ok((numbers, table)),
        }
    }
}

impl Accumulator for PickedRows {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::numbered("picked_rows"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.weighted |= chunk.weights().is_some();
        for i in (0..chunk.nrows()).filter(|i| self.which.has(chunk.first_row() + i)) {
            self.numbers.push(chunk.first_row() + i);
            self.cells.extend((0..self.width).map(|j| chunk.cells().get(i, j)));
            self.weights.push(chunk.weights().map_or(1.0, |w| w[i]));
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.weighted |= other.weighted;
        self.numbers.extend_from_slice(&other.numbers);
        self.cells.extend_from_slice(&other.cells);
        self.weights.extend_from_slice(&other.weights);
        Ok(())
    }
}

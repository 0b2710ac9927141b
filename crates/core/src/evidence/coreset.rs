//! A small weighted sample of rows on which sums of squared distances are nearly those of all rows.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::moments::check_features;
use super::{Accumulator, Travel};
use crate::blocks::Frame;
use crate::data::{Block, Cells, Chunk, Order, Table};
use crate::error::Result;
use crate::linalg::serial::shared;

/// The stream of the generator that draws rows.
const STREAM: u64 = 1 << 40;
/// Words of the generator that a row has to itself.
const WORDS: u128 = 2;

/// A lightweight coreset \[BLK18\]: row i is drawn with probability
/// $\pi_i = \min(1, m (w_i/2n + w_i \lVert x_i - \bar x \rVert^2 / 2T))$, T the total sum of squares, and has the
/// weight wᵢ/πᵢ. Rows far out are drawn more often, so that a few of them that make a cluster are not missed.
///
/// Each row has its own place in the stream of random numbers, so the sample does not depend on chunks,
/// threads or where the rows lie.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Coreset {
    #[serde(with = "shared")]
    design: Arc<Design>,
    rows: Vec<f64>, // cells in the frame, row after row
    weights: Vec<f64>,
}

/// How rows are drawn.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Design {
    /// The frame, around the mean of the rows.
    #[serde(with = "shared")]
    pub(crate) frame: Arc<Frame>,
    /// Rows wanted, m; infinite for all.
    pub(crate) size: f64,
    /// Total weight of the rows.
    pub(crate) weight: f64,
    /// Total sum of squares in the frame, T.
    pub(crate) squares: f64,
    pub(crate) seed: u64,
}

impl Design {
    /// The probability of a row; a row of no weight is no row, nor is one without cells.
    fn probability(&self, weight: f64, row: &[f64]) -> f64 {
        if weight == 0.0 || row.iter().all(|x| x.is_nan()) {
            return 0.0;
        }
        let square: f64 = row.iter().filter(|x| !x.is_nan()).map(|x| x * x).sum();
        let share = if self.squares > 0.0 { square / self.squares } else { 0.0 };
        (self.size * 0.5 * weight * (1.0 / self.weight + share)).min(1.0)
    }
}

impl Coreset {
    /// Of no rows.
    pub(crate) fn empty(design: Arc<Design>) -> Self {
        Self { design, rows: Vec::new(), weights: Vec::new() }
    }

    /// The rows in the frame, with their weights.
    ///
    /// # Errors
    /// None that rows can cause.
    pub(crate) fn table(self) -> Result<Table<'static>> {
        let (nrows, ncols) = (self.weights.len(), self.design.frame.n_features());
        let cells = Cells::F64(Block::Owned { cells: self.rows, nrows, ncols, order: Order::Rows });
        Table::new(cells).with_weights(self.weights)
    }
}

impl Accumulator for Coreset {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::numbered("coreset"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let design = Arc::clone(&self.design);
        let p = design.frame.n_features();
        check_features(p, chunk.ncols())?;
        let mut rng = ChaCha8Rng::seed_from_u64(design.seed);
        rng.set_stream(STREAM);
        rng.set_word_pos(WORDS * chunk.first_row() as u128);
        design.frame.for_each_block(chunk.cells(), |first, block| {
            for (i, row) in block.chunks_exact(p.max(1)).enumerate() {
                let draw: f64 = rng.random();
                let weight = chunk.weights().map_or(1.0, |w| w[first + i]);
                let probability = design.probability(weight, row);
                if draw < probability {
                    self.rows.extend_from_slice(row);
                    self.weights.push(weight / probability);
                }
            }
        });
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.rows.extend_from_slice(&other.rows);
        self.weights.extend_from_slice(&other.weights);
        Ok(())
    }
}

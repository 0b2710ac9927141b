//! Evidence of rows whose weights a model decides: responsibilities of a mixture, weights of a robust fit.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Accumulator, Travel};
use crate::data::{Cells, Chunk};
use crate::error::Result;
use crate::linalg::Mat;
use crate::linalg::serial::{self, shared};

/// Shares below this are nothing: in groups that lie apart nearly all are.
const NOTHING: f64 = 1e-10;
/// Where fewer rows than this share count for a part, they are copied instead of all being worked on.
const FEW: f64 = 0.5;

/// Who decides how much rows count: a model, with the parameters of the current step.
pub trait RowWeights: Send + Sync {
    /// What travels with evidence under this name.
    const NAME: &'static str;

    /// The shares of the rows of a chunk. Rows of no weight may have any.
    ///
    /// # Errors
    /// When a cell cannot be used; the error names it.
    fn weigh(&self, chunk: &Chunk<'_>) -> Result<WeightedRows>;
}

/// How much the rows of a chunk count.
#[derive(Debug, Clone)]
pub struct WeightedRows {
    /// What the weight of a row is multiplied by in each part (rows × parts).
    pub shares: Mat<f64>,
    /// Log density of each row.
    pub log_density: Vec<f64>,
    /// Further sums over the rows of the chunk, as many for each chunk.
    pub totals: Vec<f64>,
}

/// Evidence of parts: each row counts in each of them with its weight times its share there.
#[derive(Serialize, Deserialize)]
#[serde(bound = "E: Serialize + DeserializeOwned, W: Serialize + DeserializeOwned")]
pub struct WeightedParts<E, W> {
    #[serde(with = "shared")]
    weights: Arc<W>,
    /// The evidence of each part.
    pub parts: Vec<E>,
    /// Rows of positive weight.
    pub rows: usize,
    /// Their total weight.
    pub weight: f64,
    /// Σ w · log density.
    pub log_likelihood: f64,
    /// Σ w · shareᵢ · shareⱼ (parts × parts): how much two parts have the same rows.
    #[serde(with = "serial")]
    pub overlap: Mat<f64>,
    /// Sums of [`WeightedRows::totals`]; empty before the first chunk.
    pub totals: Vec<f64>,
}

impl<E: Clone, W> Clone for WeightedParts<E, W> {
    fn clone(&self) -> Self {
        Self {
            weights: Arc::clone(&self.weights),
            parts: self.parts.clone(),
            overlap: self.overlap.clone(),
            totals: self.totals.clone(),
            ..*self
        }
    }
}

impl<E, W> WeightedParts<E, W> {
    /// Of no rows.
    pub fn empty(weights: Arc<W>, parts: Vec<E>) -> Self {
        let overlap = Mat::zeros(parts.len(), parts.len());
        Self { weights, parts, rows: 0, weight: 0.0, log_likelihood: 0.0, overlap, totals: Vec::new() }
    }

    /// Adds what is not about single parts, and gives w · share (rows × parts).
    fn add_totals(&mut self, chunk: &Chunk<'_>, found: &WeightedRows) -> Mat<f64> {
        let of = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
        let share = |i: usize, k: usize| {
            let share = found.shares[(i, k)];
            if share < NOTHING || of(i) == 0.0 { 0.0 } else { share }
        };
        for i in (0..chunk.nrows()).filter(|i| of(*i) > 0.0) {
            self.rows += 1;
            self.weight += of(i);
            self.log_likelihood += of(i) * found.log_density[i];
            for k in 0..self.parts.len() {
                let along = of(i) * share(i, k);
                (0..=k).filter(|_| along > 0.0).for_each(|l| self.overlap[(k, l)] += along * share(i, l));
            }
        }
        add(&mut self.totals, &found.totals);
        Mat::from_fn(chunk.nrows(), self.parts.len(), |i, k| of(i) * share(i, k))
    }
}

impl<E, W> Accumulator for WeightedParts<E, W>
where
    E: Accumulator + Serialize + DeserializeOwned,
    W: RowWeights + Serialize + DeserializeOwned,
{
    const TRAVEL: Option<Travel<Self>> = Travel::of_parts::<E>("parts", W::NAME);

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let found = self.weights.weigh(chunk)?;
        let weights = self.add_totals(chunk, &found);
        for (k, part) in self.parts.iter_mut().enumerate() {
            let weights = weights.col_as_slice(k);
            let counted: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
            if counted.is_empty() {
                continue;
            }
            let few = (counted.len() as f64) < FEW * weights.len() as f64;
            if few && !matches!(chunk.cells(), Cells::Observed(_)) {
                let some: Vec<f64> = counted.iter().map(|i| weights[*i]).collect();
                part.update(&chunk.select(&counted)?.with_weights(some)?)?;
            } else {
                part.update(&chunk.borrowed().with_weights(weights)?)?;
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.parts.iter_mut().zip(&other.parts).try_for_each(|(a, b)| a.merge(b))?;
        self.rows += other.rows;
        self.weight += other.weight;
        self.log_likelihood += other.log_likelihood;
        self.overlap += &other.overlap;
        add(&mut self.totals, &other.totals);
        Ok(())
    }
}

/// Adds sums to sums, of which there may be none yet.
fn add(to: &mut Vec<f64>, from: &[f64]) {
    to.resize(to.len().max(from.len()), 0.0);
    to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::evidence::{Moments, gather};

    /// Half of each row to each of two parts, but the rows below 0 to the second alone.
    #[derive(Serialize, Deserialize)]
    struct BySign;

    impl RowWeights for BySign {
        const NAME: &'static str = "signs";

        fn weigh(&self, chunk: &Chunk<'_>) -> Result<WeightedRows> {
            let below = |i: usize| chunk.cells().get(i, 0) < 0.0;
            let share = |i: usize, k: usize| if below(i) { k as f64 } else { 0.5 };
            let n = chunk.nrows();
            let shares = Mat::from_fn(n, 2, share);
            Ok(WeightedRows { shares, log_density: vec![-1.0; n], totals: vec![n as f64] })
        }
    }

    #[test]
    fn each_part_has_its_share_of_the_rows() {
        let cells = [1.0, 3.0, -2.0, -4.0, 5.0];
        let rows = Rows::from_slice(&cells, 1).unwrap();
        let empty = || WeightedParts::empty(Arc::new(BySign), vec![Moments::empty(1); 2]);
        let all = gather(rows.source(), empty, &crate::Control::new()).unwrap();
        let of = |k: usize| (all.parts[k].rows(), all.parts[k].weight(), all.parts[k].mean()[0]);
        assert_eq!(of(0), (3, 1.5, 3.0));
        // (½ · 9 − 6) / 3½
        assert_eq!((of(1).0, of(1).1), (5, 3.5));
        assert!((of(1).2 + 1.5 / 3.5).abs() < 1e-15);
        assert_eq!((all.rows, all.weight, all.log_likelihood), (5, 5.0, -5.0));
        assert_eq!((all.overlap[(0, 0)], all.overlap[(1, 0)], all.overlap[(1, 1)]), (0.75, 0.75, 2.75));
        assert_eq!(all.totals, [5.0]);
    }
}

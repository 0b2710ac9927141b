//! Count, weight and mean of rows, and how two of them merge.

use serde::{Deserialize, Serialize};

use crate::blocks::{ShiftedSum, for_each_block, provisional_mean};
use crate::data::{Chunk, with_view};
use crate::error::{Error, Result};
use crate::linalg::exact_sum;

/// How many rows there were, their total weight and their weighted mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Center {
    /// Rows of positive weight.
    pub(super) rows: usize,
    /// Sum of the weights.
    pub(super) weight: f64,
    /// Weighted mean; zeros when there are no rows.
    pub(super) mean: Vec<f64>,
    /// What rounding has taken off the mean: that of cells near 1e15 is as coarse as the cells.
    pub(super) rest: Vec<f64>,
}

/// What a merge adds to a second moment: `factor · difference · differenceᵀ` \[CGL83\].
pub(super) struct Between {
    pub(super) factor: f64,
    pub(super) difference: Vec<f64>,
}

impl Center {
    pub(super) fn empty(n_features: usize) -> Self {
        Self::exact(0, 0.0, vec![0.0; n_features])
    }

    /// With a mean that rounding has taken nothing off.
    pub(super) fn exact(rows: usize, weight: f64, mean: Vec<f64>) -> Self {
        Self { rows, weight, rest: vec![0.0; mean.len()], mean }
    }

    /// From sums around a shift; also the distance from the shift to the mean.
    pub(super) fn from_shifted(sum: &ShiftedSum, shift: &[f64]) -> (Self, Vec<f64>) {
        if sum.weight == 0.0 {
            return (Self::empty(shift.len()), vec![0.0; shift.len()]);
        }
        let offset: Vec<f64> = sum.total.iter().map(|s| s / sum.weight).collect();
        let (mean, rest) = shift.iter().zip(&offset).map(|(s, d)| exact_sum(*s, *d)).unzip();
        (Self { rows: sum.rows, weight: sum.weight, mean, rest }, offset)
    }

    /// Merges the other in and says what lies between the two means.
    pub(super) fn merge(&mut self, other: &Self) -> Between {
        let weight = self.weight + other.weight;
        self.rows = self.rows.saturating_add(other.rows); // a file may claim any number
        if other.weight == 0.0 || self.weight == 0.0 {
            if self.weight == 0.0 {
                self.mean.clone_from(&other.mean);
                self.rest.clone_from(&other.rest);
            }
            self.weight = weight;
            return Between { factor: 0.0, difference: vec![0.0; self.mean.len()] };
        }
        let apart = |j: usize| other.mean[j] - self.mean[j] + (other.rest[j] - self.rest[j]);
        let difference: Vec<f64> = (0..self.mean.len()).map(apart).collect();
        let share = other.weight / weight;
        for (j, d) in difference.iter().enumerate() {
            (self.mean[j], self.rest[j]) = exact_sum(self.mean[j], self.rest[j] + share * d);
        }
        let factor = self.weight * share;
        self.weight = weight;
        Between { factor, difference }
    }
}

/// Rows of positive weight, total weight, mean and what rounding has taken off it, of a chunk; an error names
/// a cell that is not finite.
pub(crate) fn center_of(chunk: &Chunk<'_>) -> Result<(usize, f64, Vec<f64>, Vec<f64>)> {
    let center = with_view!(chunk.cells(), view => {
        let shift = provisional_mean(view, chunk.weights());
        let sum = for_each_block(view, chunk.weights(), &shift, 1.0, |_| ());
        Center::from_shifted(&sum, &shift).0
    });
    if center.mean.iter().all(|m| m.is_finite()) {
        return Ok((center.rows, center.weight, center.mean, center.rest));
    }
    Err(chunk.explain_not_finite("a covariance").unwrap_or(Error::Scale))
}

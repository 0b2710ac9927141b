//! Weights that are shares: a prior counts beside the rows, so it must be known how many rows they are.

use crate::data::counted_weight;
use crate::error::{Error, Result};

/// Up to this a sum of weights is the number of rows, but for rounding.
const ROUNDING: f64 = 1e-9;

/// What weights that are shares are multiplied by to count rows ([`counted_weight`]); `None` where they count
/// them already.
pub(super) fn count_of_shares(rows: usize, weight: f64) -> Result<Option<f64>> {
    let factor = if weight > 0.0 { counted_weight(rows, weight) / weight } else { 1.0 };
    match factor.is_finite() {
        true => Ok(Some(factor).filter(|factor| *factor > 1.0 + ROUNDING)),
        false => Err(Error::Scale),
    }
}

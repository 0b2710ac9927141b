//! Online EM: one step per batch of rows, from evidence that fades as better parameters come \[CM09\].
//!
//! The expected sufficient statistics of a batch, collected for the parameters so far, are averaged with
//! those of the batches before, $s \leftarrow (1 - \gamma) s + \gamma s_{batch}$, and the maximisation step
//! is made from the average. What is kept of earlier batches is carried over to the coordinates of the new
//! parameters. Complete rows need no average: their moments say what they say for any parameters.

use std::sync::Arc;

use super::em_step;
use crate::error::Result;
use crate::evidence::{Accumulator, Frame, Latent, Moments};

/// Steps shrink as t^-EXPONENT: slowly enough to forget a bad start, fast enough to settle; between ½ and 1
/// \[CM09\].
const EXPONENT: f64 = 0.6;

/// The share of a batch in the average, when rows of weight `seen` have come, the batch among them: t^-0.6
/// for the t-th of batches of one size.
pub(super) fn share(batch: f64, seen: f64) -> f64 {
    (batch / seen).powf(EXPONENT)
}

/// Takes a batch into the average (of weight 1), the `seen` weight of all batches included.
pub(crate) fn average(kept: Option<Latent>, batch: Latent, seen: f64) -> Result<Latent> {
    let weight = batch.weight();
    let Some(kept) = kept else { return Ok(batch.scaled(1.0 / weight)) };
    let share = share(weight, seen);
    let mut out = batch.scaled(share / weight);
    out.merge(&kept.scaled(1.0 - share))?;
    Ok(out)
}

/// The maximisation step from an average that stands for rows of some weight and the moments of complete
/// rows; the average is then about the new parameters.
pub(crate) fn step(average: &Latent, weight: f64, complete: &Moments) -> Result<Latent> {
    let mut all = average.clone().scaled(weight);
    if complete.weight() > 0.0 {
        all.merge(&Latent::of_moments(average.parameters(), complete)?)?;
    }
    let better = Arc::new(em_step(&all)?);
    Ok(average.carried(&better, &Frame::of(&all)?))
}

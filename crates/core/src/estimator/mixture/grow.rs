//! Components join one by one: each of those that are there is split along its leading axes, and the best
//! split stays.
//!
//! A mixture has many optima, and a single start seldom finds the best: growing does nearly always where
//! random starts fail.

use super::fit::Pooled;
use super::search::{Optimum, Search};
use crate::algorithm::mixture::{ComponentEvidence, MixtureMethod, split};
use crate::error::Result;
use crate::model::Mixture;

/// Rows that a component must have to be split, beyond what its halves need.
const SPLIT_ROWS: f64 = 2.0;

impl<M: MixtureMethod> Search<'_, M> {
    /// The optimum with one more component, by splitting or around clusters, and a prior that has settled;
    /// `None` where there are too few rows for that.
    pub(super) fn grown(
        &mut self,
        from: &Optimum<M>,
        pooled: &Pooled,
        seed: u64,
    ) -> Result<Option<Optimum<M>>> {
        let mut starts = self.around_clusters(pooled, from.mixture.n_components() + 1, seed)?;
        for k in 0..from.mixture.n_components() {
            starts.extend(self.splits(&from.mixture, &from.parts, k)?);
        }
        self.best_of(&starts)?.map(|found| self.settle(found)).transpose()
    }

    /// A mixture with component k split, for each axis along which that may gain.
    pub(super) fn splits(&self, mixture: &Mixture, parts: &[M::Evidence], k: usize) -> Result<Vec<Mixture>> {
        let (component, part) = (&mixture.components()[k], &parts[k]);
        if part.weight() < SPLIT_ROWS * (component.n_latent() as f64 + 2.0) {
            return Ok(Vec::new());
        }
        let axes = part.leading_axes(component)?;
        axes.into_iter().map(|(axis, variance)| split(mixture, k, &axis, variance)).collect()
    }
}

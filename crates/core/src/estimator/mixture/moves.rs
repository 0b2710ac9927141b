//! Split and merge: two components that share rows become one, another is split, and what is better stays
//! \[UNGH00\].

use super::search::{Optimum, Search};
use crate::algorithm::mixture::{MixtureMethod, leading_axes, merged, split};
use crate::error::{Error, Result};
use crate::model::Mixture;

/// Rounds of moves.
const ROUNDS: usize = 3;
/// Pairs of components that are merged in a round: those that share most.
const PAIRS: usize = 4;
/// Nats that a move must gain.
const GAIN: f64 = 1e-3;

impl<M: MixtureMethod> Search<'_, M> {
    /// The optimum after all moves that gain.
    pub(super) fn moved(&self, mut from: Optimum<M>) -> Result<Optimum<M>> {
        if from.mixture.n_components() < 2 {
            return Ok(from);
        }
        for _ in 0..ROUNDS {
            self.control.check()?;
            let moved = match self.best_of(&self.moves(&from)?) {
                Err(Error::ShrunkComponent { .. }) => None,
                moved => moved?,
            };
            match moved {
                Some(better) if better.objective > from.objective + GAIN => from = better,
                _ => break,
            }
        }
        Ok(from)
    }

    /// Starts with two components merged and another one, or the merged one, split.
    fn moves(&self, from: &Optimum<M>) -> Result<Vec<Mixture>> {
        let groups = from.mixture.n_components();
        let mut starts = Vec::new();
        for (i, j) in pairs::<M>(from).into_iter().take(PAIRS) {
            let fewer = merged(&from.mixture, i, j)?;
            // The merged one stands last.
            for k in 0..groups - 1 {
                let axes = leading_axes(&fewer.components()[k].covariance())?;
                for (axis, variance) in axes.into_iter().take(1 + usize::from(k + 2 == groups)) {
                    starts.push(split(&fewer, k, &axis, variance)?);
                }
            }
        }
        Ok(starts)
    }
}

/// Pairs of components, those that share most of their rows first.
fn pairs<M: MixtureMethod>(found: &Optimum<M>) -> Vec<(usize, usize)> {
    let o = &found.overlap;
    let shared = |(i, j): &(usize, usize)| o[(*i, *j)] / (o[(*i, *i)] * o[(*j, *j)]).sqrt();
    let mut all: Vec<(usize, usize)> = (0..o.nrows()).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    all.sort_by(|a, b| shared(b).total_cmp(&shared(a)));
    all
}

//! Random starts: a second opinion on the mixture that growing has found, where it is asked for.
//!
//! Growing and clusters find the best optimum nearly always, and a few random starts seldom. Where an optimum is
//! rare, many short runs may find it: rows as means, each run of ten steps, the best two go on.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};

use super::fit::Pooled;
use super::search::{Optimum, Search};
use crate::algorithm::mixture::MixtureMethod;
use crate::data::{RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::{LinearGaussian, Mixture};

/// Nats that a random start must gain.
const GAIN: f64 = 1e-3;
/// Of a generator of its own: the seed of others is the seed of the fit.
const STREAM: u64 = 13;

impl<M: MixtureMethod> Search<'_, M> {
    /// The better of what was found and of the best of so many random starts.
    pub(super) fn second_opinion(
        &mut self,
        found: Optimum<M>,
        pooled: &Pooled,
        (starts, seed): (usize, u64),
    ) -> Result<Optimum<M>> {
        if starts == 0 || found.mixture.n_components() < 2 {
            return Ok(found);
        }
        let drawn = random_mixtures(self.source, &found.mixture, pooled, (starts, seed))?;
        let other = match self.best_of(&drawn) {
            // A component that shrinks from each start is no better opinion.
            Err(Error::ShrunkComponent { .. }) => None,
            other => other?,
        };
        match other {
            Some(other) if other.objective > found.objective + GAIN => {
                let moved = self.moved(other)?;
                self.settle(moved)
            }
            _ => Ok(found),
        }
    }
}

/// Mixtures of as many components and latent variables as another, whose means are rows drawn at random, each with
/// the pooled loadings for one K-th of the variance.
fn random_mixtures(
    source: &dyn RowSource,
    like: &Mixture,
    pooled: &Pooled,
    (starts, seed): (usize, u64),
) -> Result<Vec<Mixture>> {
    let (groups, w) = (like.n_components(), pooled.component.loadings());
    let rows = drawn_rows(source, starts * groups, pooled.component.mean(), seed)?;
    let shrink = (groups as f64).sqrt().recip();
    let component = |mean: &Vec<f64>| {
        let loadings = Mat::from_fn(w.nrows(), w.ncols(), |j, i| shrink * w[(j, i)]);
        LinearGaussian::new(mean.clone(), loadings, pooled.component.noise().clone())
    };
    let mixture = |means: &[Vec<f64>]| {
        Mixture::new(vec![1.0; groups], means.iter().map(component).collect::<Result<_>>()?)
    };
    rows.chunks_exact(groups).map(mixture).collect()
}

/// Rows drawn at random; the given mean stands for cells that are missing and for rows that do not count.
fn drawn_rows(source: &dyn RowSource, count: usize, mean: &[f64], seed: u64) -> Result<Vec<Vec<f64>>> {
    let n: usize = match source.n_rows() {
        Some(n) => n,
        None => map_chunks(source, |chunk| Ok(chunk.nrows()))?.into_iter().sum(),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let mut uniform = || -> f64 { StandardUniform.sample(&mut rng) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below n")]
    let chosen: Vec<usize> = (0..count).map(|_| (uniform() * n as f64) as usize).collect();
    let parts = map_chunks(source, |chunk| {
        let range = chunk.first_row()..chunk.first_row() + chunk.nrows();
        let counts = |i: usize| chunk.weights().is_none_or(|w| w[i] > 0.0);
        let cell = |i: usize, j: usize| Some(chunk.cells().get(i, j)).filter(|x| x.is_finite() && counts(i));
        let row = |i: usize| (0..mean.len()).map(|j| cell(i, j).unwrap_or(mean[j])).collect::<Vec<f64>>();
        let inside = chosen.iter().filter(|row| range.contains(row));
        Ok(inside.map(|at| (*at, row(at - range.start))).collect::<Vec<_>>())
    })?;
    let found: BTreeMap<usize, Vec<f64>> = parts.into_iter().flatten().collect();
    Ok(chosen.iter().map(|at| found.get(at).cloned().unwrap_or_else(|| mean.to_vec())).collect())
}

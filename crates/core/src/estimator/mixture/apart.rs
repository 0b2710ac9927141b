//! Groups that lie apart: clusters of the rows find them at once, and growing would find nothing better.
//!
//! A start from clusters may have cut a group in two and taken two others for one. The halves of a group share
//! rows, and cutting what should be two gains more than merging others loses. Where neither shows, the optimum
//! stands.

use super::fit::Pooled;
use super::search::{Optimum, Search};
use crate::algorithm::mixture::{ComponentEvidence, MixtureMethod, responsibilities};
use crate::data::{Chunk, Reweighted};
use crate::error::{Error, Result};
use crate::estimator::KMeans;
use crate::linalg::{Cholesky, Mat};
use crate::model::{Density, Mixture};
use crate::parallel;

/// Share of the rows that groups which lie apart may have in common.
const SHARED: f64 = 0.01;
/// Responsibilities below this are taken for 0.
const NOTHING: f64 = 1e-3;
/// Steps of a run with two components, after which it shows what a split gains.
const STEPS: usize = 10;
/// A split that gains this share of what the cheapest merger loses may be worth it.
const HOPE: f64 = 0.5;

impl<M: MixtureMethod> Search<'_, M> {
    /// The optimum around clusters of the rows, if its groups lie apart and no merger and split would gain.
    pub(super) fn groups_apart(
        &mut self,
        pooled: &Pooled,
        groups: usize,
        seed: u64,
    ) -> Result<Option<Optimum<M>>> {
        let clusters = KMeans::new(groups).seed(seed).brief();
        let Some(start) = self.around(pooled, groups, &clusters)? else { return Ok(None) };
        let settings = self.settings.clone();
        let found = match self.optimum(start) {
            // Growing says what the rows do not allow.
            Err(Error::ShrunkComponent { .. }) => return Ok(None),
            found => found?,
        };
        if found.starved.is_none() && shared(&found.overlap) <= SHARED {
            let found = self.settle(found)?;
            if !self.may_gain(&found)? {
                return Ok(Some(found));
            }
        }
        self.settings = settings;
        Ok(None)
    }

    /// Whether merging two components and cutting another in two may gain.
    fn may_gain(&self, found: &Optimum<M>) -> Result<bool> {
        let (mixture, groups) = (&found.mixture, found.mixture.n_components());
        let weight: f64 = found.parts.iter().map(ComponentEvidence::weight).sum();
        let mut least = f64::INFINITY;
        for (i, j) in (0..groups).flat_map(|i| (0..i).map(move |j| (i, j))) {
            // Where it cannot be told, growing is to decide.
            let Ok(loss) = merger_loss(mixture, i, j) else { return Ok(true) };
            least = least.min(weight * loss);
        }
        let shares = responsibilities(mixture, self.source)?;
        let gains = parallel::try_map(groups, |k| self.split_gain(found, &shares, k));
        Ok(gains?.into_iter().any(|gain| gain > HOPE * least))
    }

    /// What the log-likelihood gains when component k is cut in two, looked at on its own rows: weighted by its
    /// responsibilities they are a small problem, of a K-th of the rows and two components. Infinite where the rows
    /// do not tell, because they lie in one point.
    fn split_gain(&self, found: &Optimum<M>, shares: &Mat<f64>, k: usize) -> Result<f64> {
        let weights = |chunk: &Chunk<'_>| {
            let share = |i: usize| Some(shares[(chunk.first_row() + i, k)]).filter(|r| *r > NOTHING);
            let own = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
            Ok((0..chunk.nrows()).map(|i| own(i) * share(i).unwrap_or(0.0)).collect())
        };
        let rows = Reweighted::new(self.source, weights);
        let search = Search::<M>::over(&rows, self.settings.clone(), self.control);
        let whole = Mixture::new(vec![1.0], vec![found.mixture.components()[k].clone()])?;
        let starts = self.splits(&whole, &found.parts[k..=k], 0)?;
        let before = match search.short_run(whole, 1) {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(_) => return Ok(f64::INFINITY),
            Ok(end) => end.log_likelihood,
        };
        let mut gain = 0.0_f64;
        for start in starts {
            match search.short_run(start, STEPS) {
                Ok(end) if end.starved.is_none() => gain = gain.max(end.log_likelihood - before),
                Ok(_) | Err(Error::ShrunkComponent { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.count_passes(search.passes());
        Ok(gain)
    }
}

/// Share of the rows whose component is in doubt: 1 − Σ w rₖ² / Σ w, from Σ w rᵢ rⱼ (K × K, lower triangle).
fn shared(overlap: &Mat<f64>) -> f64 {
    let groups = overlap.nrows();
    let own: f64 = (0..groups).map(|k| overlap[(k, k)]).sum();
    let others: f64 = (0..groups).flat_map(|i| (0..i).map(move |j| overlap[(i, j)])).sum();
    2.0 * others / (own + 2.0 * others)
}

/// Nats per row that components which share no rows lose at least when they become one, with C the covariance and π
/// the weight of each: ½(π ln|C| − πᵢ ln|Cᵢ| − πⱼ ln|Cⱼ|) − (π ln π − πᵢ ln πᵢ − πⱼ ln πⱼ), π = πᵢ + πⱼ.
fn merger_loss(mixture: &Mixture, i: usize, j: usize) -> Result<f64> {
    let term = |of: &[usize]| -> Result<f64> {
        let weights: Vec<f64> = of.iter().map(|k| mixture.weights()[*k]).collect();
        let weight: f64 = weights.iter().sum();
        let part = Mixture::new(weights, of.iter().map(|k| mixture.components()[*k].clone()).collect())?;
        let factor = Cholesky::new(part.covariance()?, "the covariance of a component")?;
        Ok(weight * (0.5 * factor.log_det() - weight.ln()))
    };
    Ok(term(&[i, j])? - term(&[i])? - term(&[j])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::model::{LinearGaussian, Noise};

    #[test]
    fn rows_in_doubt_are_shared() {
        // Three rows: one in each group, one half in both.
        let overlap = Mat::from_fn(2, 2, |i, j| {
            if i < j {
                0.0
            } else if i == j {
                1.25
            } else {
                0.25
            }
        });
        assert!((shared(&overlap) - 0.5 / 3.0).abs() < 1e-15);
    }

    /// Against rows of two groups far apart: their log density under the mixture, less that under one normal
    /// distribution of the same mean and covariance.
    #[test]
    fn a_merger_loses_what_the_rows_lose() {
        let component = |mean: [f64; 2], along: [f64; 2]| {
            let w = Mat::from_fn(2, 1, |j, _| along[j]);
            LinearGaussian::new(mean.to_vec(), w, Noise::Isotropic(0.5)).unwrap()
        };
        let components = vec![component([0.0, 30.0], [1.0, 2.0]), component([20.0, 0.0], [3.0, 0.0])];
        let two = Mixture::new(vec![0.3, 0.7], components).unwrap();
        let drawn = two.sample_rows(0..40_000, 0);
        let rows = Rows::from(drawn.as_ref());
        let (c, mean) = (Density::covariance(&two).unwrap(), two.mean());
        let factor = Cholesky::new(c, "the covariance").unwrap();
        let mut e = Mat::from_fn(2, drawn.nrows(), |j, i| drawn[(i, j)] - mean[j]);
        factor.solve_lower(e.as_mut());
        let n = drawn.nrows() as f64;
        let constant = 2.0 * (2.0 * std::f64::consts::PI).ln() + factor.log_det();
        let one = -0.5 * (constant + e.squared_norm_l2() / n);
        let both = two.log_density(rows.source()).unwrap().iter().sum::<f64>() / n;
        let loss = merger_loss(&two, 0, 1).unwrap();
        // The standard error of the difference is below 0.01.
        assert!((loss - (both - one)).abs() < 0.03, "{loss} instead of {}", both - one);
    }
}

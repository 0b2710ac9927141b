//! The density of a mixture: rows that do not belong, and new rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::Mixture;
use super::fill::{CHOICES, uniform};
use crate::control::Control;
use crate::data::{Chunk, Real, RowSource, Rows, map_chunks, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatRef, mirror_lower};
use crate::memory;
use crate::model::questions::upper_tail;
use crate::model::{AnyModel, Density, LinearGaussian, Outliers};

/// Rows that are drawn from each component to see how far the others reach into its tail.
const DRAWS: usize = 256;
/// Levels of the density at which that is looked at, where more rows ask for it.
const LEVELS: usize = 24;
/// Rows that are drawn together.
const SAMPLE_BLOCK: usize = 256;

impl Density for Mixture {
    fn log_density(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        Self::log_density(self, rows)
    }

    /// T² and SPE are those under the most probable component. The p-value is the probability that a row of
    /// the mixture, of which the same cells were observed, has no higher density.
    fn outliers(&self, rows: &dyn RowSource) -> Result<Outliers> {
        let (t2, spe) = self.distances(rows)?;
        let tails = Tails::new(self);
        let parts = map_chunks(rows, |chunk| self.tails_of(chunk, &tails))?;
        Ok(Outliers { t2, spe, p_value: parts.concat() })
    }

    fn distances(&self, rows: &dyn RowSource) -> Result<(Vec<f64>, Vec<f64>)> {
        let parts = map_chunks(rows, |chunk| self.distances_of(chunk))?;
        let column = |j: usize| parts.iter().flat_map(|part| part.col_as_slice(j).to_vec()).collect();
        Ok((column(0), column(1)))
    }

    fn is_proper(&self) -> Result<bool> {
        let proper = self.components.iter().map(Density::is_proper).collect::<Result<Vec<_>>>()?;
        Ok(proper.into_iter().all(|proper| proper))
    }

    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64> {
        let of: Vec<usize> = rows.clone().map(|row| self.component_of(row, seed)).collect();
        let mut out = Mat::zeros(rows.len(), self.n_features());
        for (k, component) in self.components.iter().enumerate() {
            // Each component has random numbers of its own.
            let own = seed.wrapping_add((k as u64).wrapping_mul(CHOICES));
            let drawn = component.sample_rows(rows.clone(), own);
            for i in (0..of.len()).filter(|i| of[*i] == k) {
                (0..self.n_features()).for_each(|j| out[(i, j)] = drawn[(i, j)]);
            }
        }
        out
    }

    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        let p = self.n_features();
        memory::check("the sample", &[2, n, p])?;
        let mut out = Mat::zeros(n, p);
        for start in (0..n).step_by(SAMPLE_BLOCK) {
            control.check()?;
            let rows = start..n.min(start + SAMPLE_BLOCK);
            let len = rows.len();
            out.as_mut().subrows_mut(start, len).copy_from(self.sample_rows(rows, seed));
        }
        Ok(out)
    }

    /// Σ π (C + μμᵀ) − mmᵀ, written with deviations from the mean m so that nothing cancels.
    fn covariance(&self) -> Result<Mat<f64>> {
        let p = self.n_features();
        memory::check("the covariance of all features", &[2, p, p])?;
        let mean = self.mean();
        let mut out: Mat<f64> = Mat::zeros(p, p);
        for (weight, component) in self.weights.iter().zip(&self.components) {
            let (c, m) = (component.covariance(), component.mean());
            let between = |i: usize, j: usize| (m[i] - mean[i]) * (m[j] - mean[j]);
            out += Mat::from_fn(p, p, |i, j| weight * (c[(i, j)] + between(i, j)));
        }
        Ok(out)
    }

    fn precision(&self, control: &Control<'_>) -> Result<Mat<f64>> {
        if let [only] = &self.components[..] {
            return only.precision_with(control);
        }
        let p = self.n_features();
        memory::check("the precision matrix of all features", &[4, p, p])?;
        let covariance = Density::covariance(self)?;
        control.check()?;
        let factor = Cholesky::new(covariance, "the covariance of the mixture")?;
        control.check()?;
        let mut inverse: Mat<f64> = Mat::identity(p, p);
        factor.solve(inverse.as_mut());
        mirror_lower(&mut inverse);
        Ok(inverse)
    }

    fn marginal(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.of_features(features)?))
    }
}

impl Mixture {
    /// Mean of the features, Σ π μ (p).
    pub fn mean(&self) -> Vec<f64> {
        let of = |j: usize| self.weights.iter().zip(&self.components).map(|(w, c)| w * c.mean()[j]).sum();
        (0..self.n_features()).map(of).collect()
    }

    /// The mixture of some of the features, in the given order.
    ///
    /// # Errors
    /// When a feature does not exist.
    pub fn of_features(&self, features: &[usize]) -> Result<Self> {
        let components = self.components.iter().map(|c| c.marginal(features)).collect::<Result<_>>()?;
        Ok(Self { weights: self.weights.clone(), components })
    }

    /// The component that a row of the sample of a seed is drawn from.
    fn component_of(&self, row: usize, seed: u64) -> usize {
        let mut left = uniform(seed ^ CHOICES, row, 0);
        let last = self.weights.len() - 1;
        let passed = |weight: &f64| {
            left -= weight;
            left < 0.0
        };
        self.weights[..last].iter().position(passed).unwrap_or(last)
    }

    /// p-values of the rows of a chunk, those that observe the same cells together.
    fn tails_of(&self, chunk: &Chunk<'_>, complete: &Tails<'_>) -> Result<Vec<f64>> {
        let levels = self.memberships_of(chunk)?.log_density;
        let mut out = vec![1.0; chunk.nrows()];
        for (features, rows) in patterns(chunk) {
            let levels: Vec<f64> = rows.iter().map(|i| levels[*i]).collect();
            let found = match features.len() {
                0 => vec![1.0; rows.len()],
                m if m == self.n_features() => complete.of(&levels)?,
                _ => Tails::new(&self.of_features(&features)?).of(&levels)?,
            };
            rows.iter().zip(found).for_each(|(row, p)| out[*row] = p);
        }
        Ok(out)
    }
}

/// The rows of a chunk by the features that they observe.
fn patterns(chunk: &Chunk<'_>) -> BTreeMap<Vec<usize>, Vec<usize>> {
    let mut found: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    with_view!(chunk.cells(), view => {
        for (i, row) in view.row_iter().enumerate() {
            let observed = row.iter().enumerate().filter(|(_, x)| !x.to_f64().is_nan()).map(|(j, _)| j);
            found.entry(observed.collect()).or_default().push(i);
        }
    });
    found
}

/// How probable rows of low density are.
///
/// A row of component k has density at most t only if its own component alone gives it no more, that is if
/// its squared Mahalanobis distance is at least $\delta_k(t) = 2(\ln\pi_k + c_k - t)$ with $c_k$ the log
/// density at the mean. So $P(\ln p(x) \le t) = \sum_k \pi_k\, P(\chi^2 \ge \delta_k(t))\, \rho_k(t)$, where
/// $\rho_k$ is the share of those rows that the other components do not lift above t. The tails are exact and
/// $\rho_k$ is found by simulation: with one component it is 1, and so it is far out where components lie
/// apart, so that small p-values are as good as large ones.
struct Tails<'m> {
    model: &'m Mixture,
}

/// Rows drawn from a component, as deviations from its mean, with their squared Mahalanobis distances.
struct Drawn {
    deviations: Mat<f64>, // (draws × p)
    distances: Vec<f64>,
}

impl<'m> Tails<'m> {
    fn new(model: &'m Mixture) -> Self {
        Self { model }
    }

    /// P(ln p(x) ≤ t) for each level t.
    fn of(&self, levels: &[f64]) -> Result<Vec<f64>> {
        let mut out = vec![0.0; levels.len()];
        for (k, component) in self.model.components.iter().enumerate() {
            let top = self.model.weights[k].ln() + log_density_at_mean(component)?;
            let beyond = |t: f64| (2.0 * (top - t)).max(0.0);
            let shares = self.shares(k, levels, beyond)?;
            for ((p, t), share) in out.iter_mut().zip(levels).zip(shares) {
                let tail = upper_tail(beyond(*t), self.model.n_features() as f64)?;
                *p += self.model.weights[k] * tail * share;
            }
        }
        Ok(out.into_iter().map(|p| p.min(1.0)).collect())
    }

    /// ρ of a component at each level: looked at directly, or read between levels where these are many.
    fn shares(&self, k: usize, levels: &[f64], beyond: impl Fn(f64) -> f64) -> Result<Vec<f64>> {
        if self.model.n_components() == 1 {
            return Ok(vec![1.0; levels.len()]);
        }
        let drawn = Drawn::from(&self.model.components[k])?;
        let share = |t: f64| self.share(k, &drawn, t, beyond(t));
        if levels.len() <= LEVELS {
            return levels.iter().map(|t| share(*t)).collect();
        }
        let finite = || levels.iter().copied().filter(|t| t.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::MIN, f64::max));
        let at = |l: usize| low + (high - low) * l as f64 / (LEVELS - 1) as f64;
        let shares = (0..LEVELS).map(|l| share(at(l))).collect::<Result<Vec<_>>>()?;
        Ok(levels.iter().map(|t| between(&shares, (t - low) / (high - low))).collect())
    }

    /// Of rows of a component that lie at least so far out, the share of density at most t.
    ///
    /// Directions are those of the draws; distances are spread evenly over the tail of their χ².
    fn share(&self, k: usize, drawn: &Drawn, t: f64, beyond: f64) -> Result<f64> {
        let (n, p) = (drawn.distances.len(), self.model.n_features());
        let chi2 = ChiSquared::new(p as f64).map_err(|_| Error::Decomposition("χ² distribution"))?;
        let tail = chi2.sf(beyond);
        if tail < f64::MIN_POSITIVE {
            return Ok(1.0);
        }
        let stretch: Vec<f64> = (0..n)
            .map(|i| {
                // A fixed permutation, so that distance and direction have nothing to do with each other.
                let u = (((i * 101) % n) as f64 + 0.5) / n as f64;
                let distance = chi2.inverse_cdf(1.0 - u * tail).max(beyond);
                (distance / drawn.distances[i]).sqrt()
            })
            .collect();
        let mean = self.model.components[k].mean();
        let rows = Mat::from_fn(n, p, |i, j| mean[j] + stretch[i] * drawn.deviations[(i, j)]);
        let densities = self.model.log_density(Rows::from(&rows).source())?;
        Ok(densities.iter().filter(|l| **l <= t).count() as f64 / n as f64)
    }
}

impl Drawn {
    fn from(component: &LinearGaussian) -> Result<Self> {
        let rows = component.sample(DRAWS, CHOICES);
        let distances = component.mahalanobis(&rows)?;
        let mean = component.mean();
        let deviations = Mat::from_fn(DRAWS, mean.len(), |i, j| rows[(i, j)] - mean[j]);
        Ok(Self { deviations, distances })
    }
}

/// The largest log density of a component.
fn log_density_at_mean(component: &LinearGaussian) -> Result<f64> {
    let rows = MatRef::from_row_major_slice(component.mean(), 1, component.n_features());
    Ok(component.log_density(rows)?[0])
}

/// A value between evenly spaced ones, at a place from 0 to 1.
fn between(values: &[f64], place: f64) -> f64 {
    let last = values.len() - 1;
    let place = (place * last as f64).clamp(0.0, last as f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the last")]
    let left = (place.floor() as usize).min(last - 1);
    let right = place - left as f64;
    values[left] * (1.0 - right) + values[left + 1] * right
}

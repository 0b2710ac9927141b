//! What a fit of a mixture adds to a report.

use serde::{Deserialize, Serialize};

use crate::algorithm::mixture::MixtureOptimum;
use crate::model::{LinearGaussian, Mixture, Noise};

/// How a mixture was found, and how good it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixtureReport {
    /// Whether the noise is the same in all components.
    pub shared_noise: bool,
    /// Rows that the prior counts as in each component; `None` for maximum likelihood.
    pub prior_rows: Option<f64>,
    /// What was maximised: the log-likelihood and the prior's term.
    pub objective: f64,
    /// Number of free parameters.
    pub parameters: usize,
    /// −2ℓ + parameters · ln n.
    pub bic: f64,
    /// −2ℓ + 2 · parameters.
    pub aic: f64,
    /// BIC and twice the entropy of the responsibilities: components that overlap count less.
    pub icl: f64,
    /// Components that were left with too few rows, and given up.
    pub dropped: usize,
    /// What each number of components that was looked at has reached.
    pub grown: Vec<NumberOfGroups>,
    /// What variational Bayes has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variational: Option<VariationalReport>,
    /// Batches that were each one step, the first of them a fit; `None` when all rows were fitted at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_steps: Option<usize>,
}

/// What variational Bayes has found of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariationalReport {
    /// The lower bound on the log evidence.
    pub bound: f64,
    /// σ² of each component when its mean and loadings are known: 1/E\[τ\].
    pub noise: Vec<f64>,
    /// α of each column of loadings of each component.
    pub precisions: Vec<Vec<f64>>,
}

/// What a number of components has reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberOfGroups {
    /// K.
    pub groups: usize,
    /// Latent variables of a component; the most where they differ.
    pub latent: usize,
    /// Log-likelihood of the rows, of a sample of them where there are very many.
    pub log_likelihood: f64,
    /// −2ℓ + parameters · ln n.
    pub bic: f64,
    /// −2ℓ + 2 · parameters.
    pub aic: f64,
    /// BIC and twice the entropy of the responsibilities.
    pub icl: f64,
    /// The lower bound on the log evidence, of variational Bayes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

impl NumberOfGroups {
    /// What decides how many components there are; smaller is better.
    pub(super) fn criterion(&self) -> f64 {
        self.bound.map_or(self.bic, |bound| -2.0 * bound)
    }

    /// Of an optimum, for so many rows.
    pub(super) fn of<E>(found: &MixtureOptimum<E>, shared: bool, rows: f64) -> Self {
        Self::at(&found.mixture, found.log_likelihood, found.entropy, (shared, rows))
    }

    /// Of a mixture, its log-likelihood and the entropy of its responsibilities; whether noise is shared, and
    /// the number of rows.
    pub(super) fn at(mixture: &Mixture, likelihood: f64, entropy: f64, (shared, rows): (bool, f64)) -> Self {
        let free = parameters(mixture, shared) as f64;
        let bic = -2.0 * likelihood + free * rows.ln();
        Self {
            groups: mixture.n_components(),
            latent: mixture.components().iter().map(LinearGaussian::n_latent).max().unwrap_or(0),
            log_likelihood: likelihood,
            bic,
            aic: -2.0 * likelihood + 2.0 * free,
            icl: bic + 2.0 * entropy,
            bound: None,
        }
    }
}

impl MixtureReport {
    pub(super) fn new<E>(
        found: &MixtureOptimum<E>,
        shared: bool,
        prior_rows: Option<f64>,
        rows: f64,
        (grown, dropped): (Vec<NumberOfGroups>, usize),
    ) -> Self {
        let own = NumberOfGroups::of(found, shared, rows);
        Self {
            shared_noise: shared,
            prior_rows,
            objective: found.objective,
            parameters: parameters(&found.mixture, shared),
            bic: own.bic,
            aic: own.aic,
            icl: own.icl,
            dropped,
            grown,
            variational: None,
            online_steps: None,
        }
    }
}

impl MixtureReport {
    /// The same after the log-likelihood has become smaller by `shift`, in other units.
    pub(in crate::estimator) fn shift(&mut self, shift: f64) {
        self.objective -= shift;
        [&mut self.bic, &mut self.aic, &mut self.icl].into_iter().for_each(|c| *c += 2.0 * shift);
        self.variational.iter_mut().for_each(|found| found.bound -= shift);
        for row in &mut self.grown {
            row.log_likelihood -= shift;
            row.bound.iter_mut().for_each(|bound| *bound -= shift);
            [&mut row.bic, &mut row.aic, &mut row.icl].into_iter().for_each(|c| *c += 2.0 * shift);
        }
    }
}

/// Free parameters of a mixture: K − 1 weights, and of each component p means, pq − q(q − 1)/2 loadings and
/// its noise variances.
pub(super) fn parameters(mixture: &Mixture, shared: bool) -> usize {
    let (groups, p) = (mixture.n_components(), mixture.n_features());
    let noises = match mixture.components()[0].noise() {
        Noise::Isotropic(_) => 1,
        Noise::Diagonal(_) => p,
    };
    let loadings = |q: usize| p * q - q * q.saturating_sub(1) / 2;
    let own: usize = mixture.components().iter().map(|c| p + loadings(c.n_latent())).sum();
    groups - 1 + own + noises * if shared { 1 } else { groups }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    /// K(p + pq − q(q − 1)/2 + 1) + K − 1 for isotropic noise.
    #[test]
    fn parameters_are_counted_as_in_the_literature() {
        let component = |noise: Noise| LinearGaussian::new(vec![0.0; 4], Mat::zeros(4, 2), noise).unwrap();
        let three = |noise: Noise| Mixture::new(vec![1.0; 3], vec![component(noise); 3]).unwrap();
        assert_eq!(parameters(&three(Noise::Isotropic(1.0)), false), 3 * (4 + 8 - 1 + 1) + 2);
        assert_eq!(parameters(&three(Noise::Isotropic(1.0)), true), 3 * (4 + 8 - 1) + 1 + 2);
        assert_eq!(parameters(&three(Noise::Diagonal(vec![1.0; 4])), false), 3 * (4 + 8 - 1 + 4) + 2);
    }
}

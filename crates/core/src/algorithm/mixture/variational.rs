//! Variational Bayes for mixtures of PPCA \[GB00\]: loadings, means, noises and weights have distributions, and
//! what is maximised is a lower bound on the log evidence.
//!
//! Each group k has $q(W_k, \mu_k)$ and $q(\tau_k)$ as Bayesian PCA has them ([`Prior::Group`]), and
//! $q(\pi)$ is a Dirichlet distribution with $a_k = a_0 + n_k$, where $n_k = \sum_i r_{ik}$. With
//! $\ell_{ik}$ the bound on $\ln p(x_i)$ in group k that the expectation step gives,
//!
//! - $\rho_{ik} = \mathrm E \ln \pi_k + \ell_{ik}$ and $r_{ik} = e^{\rho_{ik}} / \sum_l e^{\rho_{il}}$,
//! - the bound is $\sum_i \ln \sum_k e^{\rho_{ik}}$, less the divergence of every distribution from its prior,
//!   plus $\ln K!$, because the groups may stand in any order \[PRML, 10.2.4\].
//!
//! A column of loadings that explains nothing is driven out, and so is a group that no row needs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use statrs::function::gamma::{digamma, ln_gamma};

use super::MixtureOptimum;
use super::component::parameters;
use crate::algorithm::maximise::Maximised;
use crate::algorithm::optimise::Gains;
use crate::algorithm::prior::{GroupPrior, Prior, independent};
use crate::algorithm::{Guard, Objective, RowIteration, Step};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::evidence::{Latent, RowWeights, WeightedParts, WeightedRows, row_densities};
use crate::expectation::{LatentParameters, log_minus_digamma};
use crate::linalg::Mat;
use crate::linalg::serial::shared;
use crate::model::{LinearGaussian, Mixture, Noise};

/// a₀ of each weight: all weights are alike before rows are seen.
const CONCENTRATION: f64 = 1.0;
/// Rows below which nobody needs a group.
const LEAST_ROWS: f64 = 1.0;

/// What is known of one group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GroupPosterior {
    /// Means and covariances of W and μ, and σ² = 1/E τ.
    #[serde(with = "shared")]
    pub(crate) parameters: Arc<LatentParameters>,
    /// Shape of the gamma distribution of τ.
    shape: f64,
    /// nₖ.
    rows: f64,
}

/// What is known of all groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MixturePosterior {
    pub(crate) groups: Vec<GroupPosterior>,
}

impl MixturePosterior {
    /// A start: the parameters of a mixture, known as well as from the share of each group of the rows.
    pub(crate) fn around(mixture: &Mixture, prior: &GroupPrior, rows: f64) -> Self {
        let p = mixture.n_features();
        let group = |(weight, component): (&f64, &LinearGaussian)| {
            let rows = weight * rows;
            let start = parameters(component);
            let variances = vec![start.noise() / rows.max(1.0); start.n_latent() + 1];
            let shape = prior.shape + 0.5 * rows * p as f64;
            let parameters = Arc::new(start.with_spread(Some(independent(&variances, p))));
            GroupPosterior { parameters, shape, rows }
        };
        Self { groups: mixture.weights().iter().zip(mixture.components()).map(group).collect() }
    }

    /// The same with the columns of loadings of each group that are named.
    pub(crate) fn with_components(&self, kept: &[Vec<usize>]) -> Self {
        let group = |(group, kept): (&GroupPosterior, &Vec<usize>)| {
            let parameters = Arc::new(group.parameters.with_components(kept));
            GroupPosterior { parameters, ..group.clone() }
        };
        Self { groups: self.groups.iter().zip(kept).map(group).collect() }
    }

    /// The mixture of the expected parameters.
    fn expected(&self) -> Result<Mixture> {
        let weights = self.groups.iter().map(|group| CONCENTRATION + group.rows).collect();
        let component = |group: &GroupPosterior| {
            let of = &group.parameters;
            LinearGaussian::new(of.mean().to_vec(), of.loadings(), Noise::Isotropic(of.noise_variance(0)))
        };
        Mixture::new(weights, self.groups.iter().map(component).collect::<Result<_>>()?)
    }

    /// E ln πₖ.
    fn log_weights(&self) -> Vec<f64> {
        let all: f64 = self.groups.iter().map(|group| CONCENTRATION + group.rows).sum();
        self.groups.iter().map(|group| digamma(CONCENTRATION + group.rows) - digamma(all)).collect()
    }

    /// −KL of q(π) from its prior, and ln K!.
    fn of_weights(&self) -> f64 {
        let k = self.groups.len() as f64;
        let counts = self.groups.iter().map(|group| group.rows);
        let all: f64 = k * CONCENTRATION + counts.clone().sum::<f64>();
        let each = counts.zip(self.log_weights());
        let terms = each.map(|(rows, log)| ln_gamma(CONCENTRATION + rows) - rows * log).sum::<f64>();
        let prior = ln_gamma(k * CONCENTRATION) - k * ln_gamma(CONCENTRATION);
        terms - ln_gamma(all) + prior + ln_gamma(k + 1.0)
    }

    /// What the distributions of all parameters add to the bound.
    fn of_parameters(&self, prior: &GroupPrior) -> Result<f64> {
        let groups =
            self.groups.iter().map(|group| Prior::Group(prior).of_group(&group.parameters, group.shape));
        Ok(groups.sum::<Result<f64>>()? + self.of_weights())
    }
}

impl RowWeights for MixturePosterior {
    const NAME: &'static str = "posteriors";

    fn weigh(&self, chunk: &Chunk<'_>) -> Result<WeightedRows> {
        let (n, groups) = (chunk.nrows(), self.groups.len());
        let mut shares = Mat::zeros(n, groups); // ρ, then r
        let mut cells = vec![0; n];
        for (k, (group, log_weight)) in self.groups.iter().zip(self.log_weights()).enumerate() {
            let found = row_densities(&group.parameters, chunk)?;
            // E ln τ instead of −ln σ² for each cell.
            let of_cell = 0.5 * log_minus_digamma(group.shape);
            for (i, density) in found.log_density.iter().enumerate() {
                shares[(i, k)] = log_weight + density - of_cell * found.cells[i] as f64;
            }
            cells = found.cells;
        }
        let mut log_density = vec![0.0; n];
        let mut entropy = 0.0;
        for i in 0..n {
            let counts = cells[i] > 0;
            let largest = (0..groups).fold(f64::NEG_INFINITY, |m, k| m.max(shares[(i, k)]));
            let sum: f64 = (0..groups).map(|k| (shares[(i, k)] - largest).exp()).sum();
            for k in 0..groups {
                let r = if counts { (shares[(i, k)] - largest).exp() / sum } else { 0.0 };
                shares[(i, k)] = r;
                entropy += chunk.weights().map_or(1.0, |w| w[i]) * if r > 0.0 { r * r.ln() } else { 0.0 };
            }
            // A row without a cell says nothing.
            log_density[i] = if counts { largest + sum.ln() } else { 0.0 };
        }
        Ok(WeightedRows { shares, log_density, totals: vec![entropy] })
    }
}

/// The iteration. The tolerance of the loop is in nats per row that are left to gain; it also ends when a
/// column or a group is driven out.
pub(crate) struct MixtureVb<'a> {
    prior: &'a GroupPrior,
    current: Arc<MixturePosterior>, // whose evidence the next pass collects
    best: Option<Best>,
    gains: Gains,
}

/// The last point and what a pass has collected for it.
struct Best {
    posterior: Arc<MixturePosterior>,
    objective: f64,
    left: f64, // nats per row that are left to gain
    evidence: WeightedParts<Latent, MixturePosterior>,
    survivors: Option<Vec<Vec<usize>>>,
    starved: Option<usize>,
}

/// Where the iteration has ended.
pub(crate) struct VariationalOptimum {
    pub(crate) posterior: Arc<MixturePosterior>,
    /// The columns of each group that explain something, when others do not any more.
    pub(crate) survivors: Option<Vec<Vec<usize>>>,
    pub(crate) found: MixtureOptimum<Latent>,
}

impl<'a> MixtureVb<'a> {
    pub(crate) fn new(start: MixturePosterior, prior: &'a GroupPrior) -> Self {
        Self { prior, current: Arc::new(start), best: None, gains: Gains::default() }
    }

    /// Better distributions of all parameters.
    fn next(&self, evidence: &WeightedParts<Latent, MixturePosterior>) -> Result<MixturePosterior> {
        let group = |part: &Latent| {
            let found = Maximised::of(part, Prior::Group(self.prior))?;
            let parameters = Arc::new(found.parameters().clone());
            let shape = self.prior.shape + 0.5 * part.totals.cells;
            Ok(GroupPosterior { parameters, shape, rows: part.weight() })
        };
        Ok(MixturePosterior { groups: evidence.parts.iter().map(group).collect::<Result<_>>()? })
    }

    /// The columns that are left, where some are driven out.
    fn survivors(&self, evidence: &WeightedParts<Latent, MixturePosterior>) -> Option<Vec<Vec<usize>>> {
        let each = self.current.groups.iter().zip(&evidence.parts);
        let found: Vec<Option<Vec<usize>>> = each
            .map(|(group, part)| Prior::Group(self.prior).survivors(&group.parameters, part.weight()))
            .collect();
        let all = |k: usize| (0..self.current.groups[k].parameters.n_latent()).collect();
        let fewer = found.iter().any(Option::is_some);
        fewer.then(|| found.into_iter().enumerate().map(|(k, kept)| kept.unwrap_or_else(|| all(k))).collect())
    }
}

impl RowIteration for MixtureVb<'_> {
    type Evidence = WeightedParts<Latent, MixturePosterior>;
    type Output = VariationalOptimum;

    fn objective(&self) -> Objective {
        Objective { name: "bound", guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> WeightedParts<Latent, MixturePosterior> {
        let empty = |group: &GroupPosterior| Latent::empty(Arc::clone(&group.parameters));
        let parts = self.current.groups.iter().map(empty).collect();
        WeightedParts::empty(Arc::clone(&self.current), parts)
    }

    fn update(&mut self, evidence: WeightedParts<Latent, MixturePosterior>) -> Result<Step> {
        let objective = evidence.log_likelihood + self.current.of_parameters(self.prior)?;
        let before = self.best.as_ref().map(|best| best.objective);
        let gain = before.map_or(f64::INFINITY, |before| objective - before);
        let left = self.gains.left_after(gain, objective) / evidence.weight;
        let several = evidence.parts.len() > 1;
        let starved = evidence.parts.iter().position(|part| several && part.weight() < LEAST_ROWS);
        let survivors = self.survivors(&evidence);
        let posterior = Arc::clone(&self.current);
        if starved.is_none() && survivors.is_none() {
            self.current = Arc::new(self.next(&evidence)?);
        }
        self.best = Some(Best { posterior, objective, left, evidence, survivors, starved });
        Ok(Step { objective, change: left })
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.best
            .as_ref()
            .is_some_and(|best| best.survivors.is_some() || best.starved.is_some() || best.left <= tolerance)
    }

    fn finish(self) -> Result<VariationalOptimum> {
        let Best { posterior, objective, evidence, survivors, starved, .. } =
            self.best.ok_or(Error::Interrupted)?;
        let found = MixtureOptimum {
            mixture: posterior.expected()?,
            log_likelihood: evidence.log_likelihood,
            objective,
            entropy: -evidence.totals.first().copied().unwrap_or(0.0),
            overlap: evidence.overlap,
            parts: evidence.parts,
            starved,
        };
        Ok(VariationalOptimum { posterior, survivors, found })
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::algorithm::Limits;
    use crate::algorithm::mixture::{
        CollapsePrior, MixtureMethod, MixtureSettings, NoiseModel, PooledRows, Variational,
    };
    use crate::control::Control;
    use crate::data::Rows;

    /// One feature without latent variables: before rows are seen a mean of 1 ± 2, and noise as one cell of
    /// variance 0.5.
    fn settings() -> MixtureSettings {
        MixtureSettings {
            noise: NoiseModel { diagonal: false, shared: false },
            prior: Some(CollapsePrior { rows: 1.0, variances: vec![0.5] }),
            unexplained: vec![0.5],
            least: 1e-6,
            pooled: Some(PooledRows { mean: vec![1.0], variance: 4.0, weight: 6.0 }),
        }
    }

    fn prior(settings: &MixtureSettings) -> GroupPrior {
        settings.group_prior(settings.pooled.as_ref().unwrap())
    }

    /// ln of ∫∫ Π N(x | μ, 1/τ) N(μ | m, v) Γ(τ | a, a s₀) dτ dμ: the integral over τ is known, that over μ is
    /// a sum over a fine grid.
    fn log_evidence(x: &[f64], prior: &GroupPrior) -> f64 {
        let (n, a, rate) = (x.len() as f64, prior.shape, prior.shape * prior.noise);
        let constant = a * rate.ln() - ln_gamma(a) + ln_gamma(a + 0.5 * n) - 0.5 * n * TAU.ln();
        let (steps, width) = (4000, 12.0 * prior.variance.sqrt());
        let step = 2.0 * width / f64::from(steps);
        let at = |i: i32| {
            let mean = prior.mean[0] - width + step * (f64::from(i) + 0.5);
            let squares: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
            let of_mean =
                -0.5 * ((TAU * prior.variance).ln() + (mean - prior.mean[0]).powi(2) / prior.variance);
            (of_mean - (a + 0.5 * n) * (rate + 0.5 * squares).ln()).exp()
        };
        constant + ((0..steps).map(at).sum::<f64>() * step).ln()
    }

    fn bound(x: &[f64], starts: &[f64], settings: &MixtureSettings) -> f64 {
        let component =
            |mean: &f64| LinearGaussian::new(vec![*mean], Mat::zeros(1, 0), Noise::Isotropic(0.5)).unwrap();
        let start = Mixture::new(vec![1.0; starts.len()], starts.iter().map(component).collect()).unwrap();
        let rows = Rows::from_slice(x, 1).unwrap();
        let limits = Limits { tolerance: 1e-12, iterations: 1000 };
        Variational::run(rows.source(), start, settings, limits, &Control::new()).unwrap().0.objective
    }

    /// What factorising q(μ, τ) costs is small beside a nat, and never a gain.
    #[test]
    fn the_bound_of_one_group_lies_just_below_the_evidence() {
        let (x, settings) = ([0.3, 1.9, 0.7, 1.1, -0.4, 0.9], settings());
        let (bound, evidence) = (bound(&x, &[0.0], &settings), log_evidence(&x, &prior(&settings)));
        assert!(bound < evidence && bound > evidence - 0.1, "{bound} {evidence}");
    }

    /// The evidence of two groups is a sum over all ways to share out the rows; in groups that lie apart the
    /// two orders of the groups are two equal parts of it, for which ln 2! stands.
    #[test]
    fn the_bound_of_two_groups_is_that_of_each_and_lies_below_the_evidence() {
        let (x, settings) = ([-2.0, -2.3, -1.6, 4.1, 3.7, 4.4], settings());
        let prior = prior(&settings);
        let n = x.len();
        let mut evidence = 0.0;
        for ways in 0..1_u32 << n {
            let (a, b): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| ways >> i & 1 == 1);
            let of = |rows: &[usize]| match rows.is_empty() {
                true => 0.0,
                false => log_evidence(&rows.iter().map(|i| x[*i]).collect::<Vec<_>>(), &prior),
            };
            // ∫ πᵃ (1 − π)ᵇ dπ = a! b! / (n + 1)!
            let shares =
                ln_gamma(a.len() as f64 + 1.0) + ln_gamma(b.len() as f64 + 1.0) - ln_gamma(n as f64 + 2.0);
            evidence += (shares + of(&a) + of(&b)).exp();
        }
        let (both, evidence) = (bound(&x, &[-2.0, 4.0], &settings), evidence.ln());
        assert!(both < evidence, "{both} {evidence}");
        // It is certain which group a row belongs to, so that nothing is lost but in each group by itself:
        // a! b! / (n + 1)! in two orders.
        let alone = bound(&x[..3], &[-2.0], &settings) + bound(&x[3..], &[4.0], &settings);
        let orders = (2.0 * 36.0 / 5040.0_f64).ln();
        assert!((both - alone - orders).abs() < 0.01, "{both} {}", alone + orders);
    }
}

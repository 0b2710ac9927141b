//! The iteration: responsibilities, a maximisation step for each component, and bolder steps near the end.

use std::sync::Arc;

use super::coordinates::{aligned, mixture, scale, vector};
use super::{ByResponsibility, CollapsePrior, ComponentEvidence, NoiseModel, Responsibilities};
use crate::algorithm::optimise::{Anderson, Gains};
use crate::algorithm::prior::GroupPrior;
use crate::algorithm::{Guard, Objective, RowIteration, Step};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::Mixture;

/// Nats per row left to gain below which steps are combined: begun earlier, that ends in other optima, which
/// are worse.
const NEAR: f64 = 1e-4;
/// Noise below this share of what the pooled model leaves unexplained has vanished.
const VANISHED: f64 = 1e-9;

/// What stays the same during an iteration.
#[derive(Debug, Clone)]
pub(crate) struct MixtureSettings {
    /// The noise of the components.
    pub(crate) noise: NoiseModel,
    /// What keeps components from shrinking onto a few rows, unless there is only one.
    pub(crate) prior: Option<CollapsePrior>,
    /// What the pooled model leaves unexplained of each feature (p).
    pub(crate) unexplained: Vec<f64>,
    /// Least unexplained variance of a feature that the prior speaks of.
    pub(crate) least: f64,
    /// What variational Bayes takes from all rows; `None` where it is not asked for.
    pub(crate) pooled: Option<PooledRows>,
}

/// All rows as one group.
#[derive(Debug, Clone)]
pub(crate) struct PooledRows {
    /// Their mean (p).
    pub(crate) mean: Vec<f64>,
    /// Their variance, as a mean over the features.
    pub(crate) variance: f64,
    /// Their total weight.
    pub(crate) weight: f64,
}

impl MixtureSettings {
    /// The prior of a mixture: a single component cannot shrink.
    fn prior(&self, mixture: &Mixture) -> Option<&CollapsePrior> {
        self.prior.as_ref().filter(|_| mixture.n_components() > 1)
    }

    /// What variational Bayes assumes of each group: means that spread as all rows do, and noise as the prior
    /// against collapse has it.
    pub(super) fn group_prior(&self, pooled: &PooledRows) -> GroupPrior {
        let p = pooled.mean.len() as f64;
        let (rows, variances) =
            self.prior.as_ref().map_or((1.0, &self.unexplained), |prior| (prior.rows, &prior.variances));
        let noise = variances.iter().sum::<f64>() / p;
        GroupPrior { mean: pooled.mean.clone(), variance: pooled.variance, shape: 0.5 * rows * p, noise }
    }

    /// The same with a prior of the variances that this mixture leaves unexplained, Σ πₖψₖ; `None` where those
    /// are what the prior has, up to a share `near`.
    ///
    /// The pooled model takes what lies between groups for unexplained. Of groups that lie far apart one row of
    /// that would be most of the noise.
    pub(crate) fn settled(&self, mixture: &Mixture, near: f64) -> Option<Self> {
        let prior = self.prior(mixture)?;
        let parts = || mixture.weights().iter().zip(mixture.components());
        let mean = |j: usize| parts().map(|(weight, c)| weight * c.noise().of(j)).sum::<f64>();
        let variances: Vec<f64> = (0..prior.variances.len()).map(|j| mean(j).max(self.least)).collect();
        let changed = |(new, old): (&f64, &f64)| (new / old - 1.0).abs() > near;
        if !variances.iter().zip(&prior.variances).any(changed) {
            return None;
        }
        Some(Self { prior: Some(CollapsePrior { rows: prior.rows, variances }), ..self.clone() })
    }
}

/// EM of a mixture. The tolerance of the loop is in nats per row that are left to gain.
pub(crate) struct MixtureEm<'a, E> {
    settings: &'a MixtureSettings,
    current: Arc<Mixture>,       // whose evidence the next pass collects
    plain: Option<Arc<Mixture>>, // the plain step, where `current` is bolder
    best: Option<Best<E>>,
    gains: Gains,
    anderson: Anderson,
}

/// The best mixture so far and what a pass has collected for it.
struct Best<E> {
    mixture: Arc<Mixture>,
    objective: f64,
    left: [f64; 2], // nats per row that are left to gain, after the last step and the one before
    evidence: ByResponsibility<E>,
    starved: Option<usize>,
}

/// Where the iteration has ended.
pub(crate) struct MixtureOptimum<E> {
    pub(crate) mixture: Mixture,
    /// Log-likelihood of the rows, without the prior's term.
    pub(crate) log_likelihood: f64,
    /// What was maximised.
    pub(crate) objective: f64,
    /// Evidence of each component at the optimum.
    pub(crate) parts: Vec<E>,
    /// Σ w · rᵢ · rⱼ (K × K, lower triangle).
    pub(crate) overlap: Mat<f64>,
    /// −Σ w Σ r ln r: how uncertain it is which component rows belong to.
    pub(crate) entropy: f64,
    /// A component that was left with fewer rows than its parameters need.
    pub(crate) starved: Option<usize>,
}

impl<'a, E: ComponentEvidence> MixtureEm<'a, E> {
    pub(crate) fn new(start: Mixture, settings: &'a MixtureSettings) -> Self {
        let (gains, anderson) = (Gains::default(), Anderson::default());
        Self { settings, current: Arc::new(start), plain: None, best: None, gains, anderson }
    }

    /// The maximisation step of all components and their weights.
    pub(super) fn plain_step(&self, evidence: &ByResponsibility<E>) -> Result<Mixture> {
        let MixtureSettings { noise, unexplained, .. } = self.settings;
        let prior = self.settings.prior(&self.current);
        let weights: Vec<f64> = evidence.parts.iter().map(E::weight).collect();
        let shrunk = |component: usize| Error::ShrunkComponent { component, weight: weights[component] };
        let each = evidence.parts.iter().zip(self.current.components()).enumerate();
        let components = each.map(|(k, (part, before))| {
            part.maximise(before, *noise, prior).map_err(|error| match has_no_variance(&error) {
                true if weights.len() > 1 => shrunk(k),
                _ => error,
            })
        });
        let mut components = components.collect::<Result<Vec<_>>>()?;
        if noise.shared {
            components = E::with_shared_noise(components, &evidence.parts, prior)?;
        }
        let vanished = |component: &crate::model::LinearGaussian| {
            (0..unexplained.len()).any(|j| component.noise().of(j) <= VANISHED * unexplained[j])
        };
        match components.iter().position(vanished) {
            Some(component) => Err(shrunk(component)),
            None => Mixture::new(weights, components),
        }
    }

    /// A component that is left with fewer rows than q + 2.
    fn starved(&self, evidence: &ByResponsibility<E>) -> Option<usize> {
        let least = |k: usize| self.current.components()[k].n_latent() as f64 + 2.0;
        let several = evidence.parts.len() > 1;
        (0..evidence.parts.len()).find(|k| several && evidence.parts[*k].weight() < least(*k))
    }

    /// Chooses the point of the next pass: a combination of past steps near the end, else the plain step.
    fn set_out(&mut self, plain: &Mixture, weight: f64, left: f64) -> Result<()> {
        let plain = aligned(plain, &self.current)?;
        let bold = match left < NEAR && plain.n_components() > 1 {
            true => {
                let (point, image) = (vector(&self.current), vector(&plain));
                self.anderson.propose(&point, &image, &scale(&plain, weight))?
            }
            false => None,
        };
        let bold = bold.and_then(|x| mixture(&x, &plain).ok());
        (self.current, self.plain) = match bold {
            Some(bold) => (Arc::new(bold), Some(Arc::new(plain))),
            None => (Arc::new(plain), None),
        };
        Ok(())
    }
}

/// What a closed form says of rows that lie in one point or a plane.
fn has_no_variance(error: &Error) -> bool {
    matches!(
        error,
        Error::Constant
            | Error::Scale
            | Error::ConstantFeatures { .. }
            | Error::TooFewRows { .. }
            | Error::Components { .. }
    )
}

impl<E: ComponentEvidence> RowIteration for MixtureEm<'_, E> {
    type Evidence = ByResponsibility<E>;
    type Output = MixtureOptimum<E>;

    fn objective(&self) -> Objective {
        let name = if self.settings.prior.is_some() { "objective" } else { "log-likelihood" };
        Objective { name, guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> ByResponsibility<E> {
        let parts = self.current.components().iter().map(E::empty).collect();
        ByResponsibility::empty(Arc::new(Responsibilities(Arc::clone(&self.current))), parts)
    }

    fn update(&mut self, evidence: ByResponsibility<E>) -> Result<Step> {
        let point = Arc::clone(&self.current);
        let prior = self.settings.prior(&point).map_or(Ok(0.0), |prior| prior.log_density(&point))?;
        let objective = evidence.log_likelihood + prior;
        if let (Some(plain), Some(best)) = (self.plain.take(), &self.best) {
            let gain = objective - best.objective;
            if gain.is_nan() || gain < -self.gains.rounding_of(objective) {
                self.current = plain;
                return Ok(Step { objective: best.objective, change: best.left[0] });
            }
        }
        let before = self.best.as_ref().map(|best| (best.objective, best.left[0]));
        let gain = before.map_or(f64::INFINITY, |(before, _)| objective - before);
        let left = self.gains.left_after(gain, objective) / evidence.weight;
        let starved = self.starved(&evidence);
        if starved.is_none() {
            let plain = self.plain_step(&evidence)?;
            self.set_out(&plain, evidence.weight, left)?;
        }
        let before = before.map_or(f64::INFINITY, |(_, left)| left);
        self.best = Some(Best { mixture: point, objective, left: [left, before], evidence, starved });
        Ok(Step { objective, change: left })
    }

    fn converged(&self, tolerance: f64) -> bool {
        // A bold step that gained little says little: two in a row have to.
        let small = |best: &Best<E>| best.left.iter().all(|left| *left <= tolerance);
        self.best.as_ref().is_some_and(|best| best.starved.is_some() || small(best))
    }

    fn finish(self) -> Result<MixtureOptimum<E>> {
        let Best { mixture, objective, evidence, starved, .. } = self.best.ok_or(Error::Interrupted)?;
        Ok(MixtureOptimum {
            mixture: Arc::unwrap_or_clone(mixture),
            log_likelihood: evidence.log_likelihood,
            objective,
            entropy: -evidence.totals.first().copied().unwrap_or(0.0),
            overlap: evidence.overlap,
            parts: evidence.parts,
            starved,
        })
    }
}

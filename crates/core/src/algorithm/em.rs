//! PPCA and factor analysis with missing values: maximum likelihood of the observed cells by accelerated EM.
//!
//! The expectation step is [`Latent`](crate::evidence::Latent) evidence; the maximisation step, with
//! parameter expansion \[LRW98\], is [`super::maximise`]. EM alone creeps where much is missing, so each pass
//! tries a bolder point than the plain step; where that is not better, the plain step is taken, so the
//! likelihood never falls. Anderson's combination of past steps is boldest first: on 20 000 × 50 with a fifth
//! missing it is at the optimum after 5 passes, where a quasi-Newton step took 12. But it aims at any fixed
//! point, saddles included, so once it has led astray the quasi-Newton step takes over: 120 passes instead of
//! 490 on ratings with 10 components.

use std::sync::Arc;

use super::coordinates::{Coordinates, InCoordinates};
use super::maximise::Maximised;
use super::optimise::{Accelerator, Gains, Local, Proposal};
use super::prior::Prior;
use super::{Guard, Objective, RowIteration, Step};
use crate::error::{Error, Result};
use crate::evidence::Latent;
use crate::expectation::LatentParameters;
use crate::spectrum::Spectrum;

/// Steps in a row that gain rounding only after which no more is to be gained, whatever the tolerance.
pub(super) const MOST_IDLE: usize = 30;
/// The same where W and μ have distributions, under a tolerance that rounding allows. What is known of them moves with
/// each step, so the slope along the next one promises more than it holds: on 2007 × 256 pixels the bound stood
/// within 2e-8 nats of its end after 15 passes, and the slope said otherwise for 30 more.
const FEW_IDLE: usize = 3;

/// The iteration.
pub(crate) struct Em {
    current: Arc<LatentParameters>, // whose evidence the next pass collects
    trial: Option<Trial>,           // what `current` is when it is bolder than the plain step
    best: Option<Best>,
    gains: Gains,
    accelerator: Option<Accelerator>, // none: plain steps only
    coordinates: Coordinates,
    prior: Prior<'static>,
    floor: f64, // noise below it is rounding, in units
}

/// The best parameters so far.
struct Best {
    parameters: Arc<LatentParameters>,
    objective: f64,
    change: f64, // nats per row that are left to gain
    weight: f64, // of the rows
    gradient_norm: f64,
    survivors: Option<Vec<usize>>,
}

/// A proposal that is being tried, and the plain step that is taken when it fails.
struct Trial {
    proposal: Proposal,
    plain: Arc<LatentParameters>,
}

/// What the iteration has found.
pub(crate) struct Optimum {
    /// μ, W and σ².
    pub(crate) parameters: Arc<LatentParameters>,
    /// What was maximised, at exactly these parameters: the log-likelihood of the observed cells, and what a
    /// prior adds. Infinite when there is no noise.
    pub(crate) objective: f64,
    /// The components that are left when a prior has driven others out; the fit goes on without those.
    pub(crate) survivors: Option<Vec<usize>>,
    /// Whether the rows lie in the model's plane.
    pub(crate) noiseless: bool,
    /// Euclidean norm of the gradient of −2ℓ per row by the logarithms of the noise variances.
    pub(crate) gradient_norm: f64,
}

impl Optimum {
    /// The same as a spectrum, of so many rows and their weight.
    pub(crate) fn spectrum(&self, rows: (usize, f64)) -> Result<Spectrum> {
        let (mean, loadings) = (self.parameters.mean().to_vec(), self.parameters.loadings());
        let noise = if self.noiseless { 0.0 } else { self.parameters.noise_variance(0) };
        Spectrum::of_model(mean, loadings.as_ref(), noise, rows, self.objective)
    }
}

impl Em {
    /// Starts from the given parameters, of one noise variance for all features.
    ///
    /// The tolerance of the loop is in nats per row that are left to gain. `floor` is the variance, in units
    /// of the parameters, below which noise is rounding.
    pub(crate) fn new(start: LatentParameters, floor: f64) -> Self {
        // Below the floor, where it is plain that there is no noise, and above where numbers leave their
        // range.
        let least = 0.5 * floor * start.scale().of(0).powi(2);
        Self::within(start, floor, &[least])
    }

    /// The same with a noise variance for each feature, none of which goes below its `least`.
    pub(crate) fn bounded(start: LatentParameters, least: &[f64]) -> Self {
        // Near a bound the likelihood is flat, and steps towards a fixed point lead there.
        Self { accelerator: Some(Accelerator::climbing()), ..Self::within(start, 0.0, least) }
    }

    /// The same as [`new`](Self::new) under a prior; ends also when components are driven out.
    ///
    /// Under [`Prior::Averaged`] the start has a covariance of its loadings and means.
    pub(crate) fn under(prior: Prior<'static>, start: LatentParameters, floor: f64) -> Self {
        // Towards a column of 0 the density of the most probable W has no limit: bold steps would go there.
        let accelerator = (prior != Prior::Relevance).then(Accelerator::new);
        Self { prior, accelerator, ..Self::new(start, floor) }
    }

    fn within(start: LatentParameters, floor: f64, least: &[f64]) -> Self {
        let coordinates = Coordinates::around(&start, least);
        Self {
            current: Arc::new(coordinates.bounded(start)),
            trial: None,
            best: None,
            gains: Gains::default(),
            accelerator: Some(Accelerator::new()),
            coordinates,
            prior: Prior::Flat,
            floor,
        }
    }

    /// Goes on from a point that is the best so far.
    fn advance(&mut self, evidence: &Latent, objective: f64) -> Result<Step> {
        let maximised = Maximised::of(evidence, self.prior)?;
        let plain = Arc::new(self.plain_step(&maximised));
        let local = self.local(&maximised, &plain);
        let proposal = match &mut self.accelerator {
            Some(accelerator) => {
                let here = InCoordinates { coordinates: &self.coordinates, maximised: &maximised };
                accelerator.propose(&local, &here)?
            }
            None => None,
        };
        let change = self.left_to_gain(objective, &local, proposal.as_ref()) / evidence.weight();
        self.best = Some(Best {
            parameters: Arc::clone(&self.current),
            objective,
            change,
            weight: evidence.weight(),
            gradient_norm: self.coordinates.norm_of_noises(&local.gradient) * 2.0 / evidence.weight(),
            survivors: self.prior.survivors(&self.current, evidence.weight()),
        });
        self.set_out(proposal, plain);
        Ok(Step { objective, change })
    }

    /// Where the maximisation step leads, within the bounds of the noise.
    fn plain_step(&self, maximised: &Maximised<'_>) -> LatentParameters {
        let found = maximised.parameters();
        self.coordinates.bounded(found.clone()).with_spread(found.spread().cloned())
    }

    /// The current point, the plain step from it and the gradient, in coordinates.
    fn local(&self, maximised: &Maximised<'_>, plain: &LatentParameters) -> Local {
        let (point, image) = (self.coordinates.of(&self.current), self.coordinates.of(plain));
        let gradient = self.coordinates.gradient(maximised, &point);
        Local { point, image, gradient }
    }

    /// An estimate of what is left to gain, in nats: the largest of what the last step gained, what steps at
    /// that rate would add up to, and half of what the slope along the next step promises.
    fn left_to_gain(&mut self, objective: f64, local: &Local, proposal: Option<&Proposal>) -> f64 {
        let before = self.gains.last;
        self.gains
            .add(self.best.as_ref().map_or(f64::INFINITY, |best| objective - best.objective), objective);
        let rest = match (&self.best, &self.accelerator) {
            (Some(_), None) => self.gains.geometric_rest(before),
            _ => 0.0,
        };
        // The maximum of a parabola lies at half of what its slope promises. The plain step can lead down, to
        // where what is known of W and μ has moved since.
        let promised = proposal.map_or(0.0, |to| to.slope).max(local.slope(&local.image).abs());
        self.gains.last.max(0.5 * promised).max(rest)
    }

    /// Chooses the point of the next pass: the proposal, or the plain step.
    fn set_out(&mut self, proposal: Option<Proposal>, plain: Arc<LatentParameters>) {
        self.trial = proposal.map(|proposal| Trial { proposal, plain: Arc::clone(&plain) });
        self.current = match &self.trial {
            // As uncertain as the plain step has them: any covariance gives a bound.
            Some(Trial { proposal, .. }) => {
                let bold = self.coordinates.parameters(&proposal.to);
                Arc::new(bold.with_spread(plain.spread().cloned()))
            }
            None => plain,
        };
    }

    /// Steps in a row that gain rounding only after which the iteration ends.
    fn most_idle(&self, best: &Best, tolerance: f64) -> usize {
        let allowed = tolerance * best.weight > self.gains.rounding_of(best.objective);
        if allowed && best.parameters.spread().is_some() { FEW_IDLE } else { MOST_IDLE }
    }

    /// The trial was worse than the best point by `loss`, more than rounding.
    fn step_back(&mut self, Trial { proposal, plain }: Trial, loss: f64) {
        let shorter = self.accelerator.as_mut().and_then(|accelerator| accelerator.reject(proposal, loss));
        self.set_out(shorter, plain);
    }
}

impl RowIteration for Em {
    type Evidence = Latent;
    type Output = Optimum;

    fn objective(&self) -> Objective {
        let name = if self.prior == Prior::Flat { "log-likelihood" } else { "objective" };
        Objective { name, guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> Latent {
        Latent::empty(Arc::clone(&self.current))
    }

    fn update(&mut self, evidence: Latent) -> Result<Step> {
        let objective = self.prior.objective(&evidence)?;
        self.gains.rounding = self.current.rounding_of_likelihood(evidence.weight());
        if let (Some(trial), Some(best)) = (self.trial.take(), &self.best) {
            let loss = best.objective - objective;
            if loss > self.gains.rounding_of(objective) {
                let step = Step { objective: best.objective, change: best.change };
                self.step_back(trial, loss);
                return Ok(step);
            }
        }
        self.advance(&evidence, objective)
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.best.as_ref().is_some_and(|best| {
            let noiseless = best.parameters.noise() <= self.floor;
            let driven_out = best.survivors.is_some();
            noiseless
                || driven_out
                || best.change <= tolerance
                || self.gains.idle >= self.most_idle(best, tolerance)
        })
    }

    fn rounding(&self) -> f64 {
        self.gains.rounding
    }

    fn finish(self) -> Result<Optimum> {
        let Best { parameters, objective, gradient_norm, survivors, .. } =
            self.best.ok_or(Error::Interrupted)?;
        let noiseless = parameters.noise() <= self.floor;
        let objective = if noiseless { f64::INFINITY } else { objective };
        Ok(Optimum { parameters, objective, survivors, noiseless, gradient_norm })
    }
}

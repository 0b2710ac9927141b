//! From a start to the best bound: fits that lose components on the way.

use std::sync::Arc;

use crate::algorithm::em::{Em, Optimum};
use crate::algorithm::prior::Prior;
use crate::algorithm::{Journey, Limits, Passes, Stop, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::estimator::incomplete::STAGE_TOLERANCE;
use crate::evidence::{Latent, gather};
use crate::expectation::LatentParameters;
use crate::model::Predictive;

/// Below how many times its price the estimated gain of a component is in doubt.
const IN_DOUBT: f64 = 2.0;

/// Rows to pass over.
#[derive(Clone, Copy)]
pub(super) struct IterationRows<'a> {
    /// The rows, or what stands for them.
    pub(super) source: &'a dyn RowSource,
    /// Whether they stand for others, so that no pass is made over those.
    pub(super) stand_in: bool,
}

impl IterationRows<'_> {
    /// Log density of the observed cells under the model.
    pub(super) fn log_density(&self, model: &Predictive, control: &Control<'_>) -> Result<f64> {
        let gaussian = model.gaussian();
        let (mean, w) = (gaussian.mean().to_vec(), gaussian.loadings().as_ref());
        let noises: Vec<f64> = (0..mean.len()).map(|j| gaussian.noise().of(j)).collect();
        let parameters = Arc::new(LatentParameters::with_noises(mean, w, &noises)?); // in units of the noise: any scale will do
        Ok(gather(self.source, || Latent::empty(parameters.clone()), control)?.log_likelihood())
    }
}

/// Fits that lose the components that are driven out, and the passes that all of them took.
pub(super) struct Stages<'a> {
    pub(super) prior: Prior<'static>,
    pub(super) floor: f64, // noise below it is rounding, in units
    pub(super) max_iterations: usize,
    pub(super) given: IterationRows<'a>,
    pub(super) control: &'a Control<'a>,
    pub(super) passes: usize,
}

impl Stages<'_> {
    /// To the optimum near the start, then without the weakest component as long as that is better. `seen` is
    /// the weight of the rows and the share of their cells that is there.
    ///
    /// A column that is driven out ends a stage; the next goes on without it. One that is not may still cost
    /// more than it gives, because the bound has a maximum with it and another without: where its gain is in
    /// doubt both are compared.
    pub(super) fn climb(
        &mut self,
        start: LatentParameters,
        tolerance: f64,
        seen: (f64, f64),
    ) -> Result<(Optimum, Journey)> {
        let mut best = self.run(start, tolerance)?;
        let mut exact = true;
        let averaged = matches!(self.prior, Prior::Averaged { .. });
        while best.1.stop == Stop::Converged && averaged && !best.0.noiseless {
            let Some(without) = without_doubtful(&best.0.parameters, seen) else {
                break;
            };
            let trial = self.run(without, tolerance.max(STAGE_TOLERANCE))?;
            if trial.1.stop != Stop::Converged || trial.0.objective <= best.0.objective {
                break;
            }
            (best, exact) = (trial, false);
        }
        let (found, journey) =
            if exact { best } else { self.run(best.0.parameters.as_ref().clone(), tolerance)? };
        Ok((found, Journey { passes: self.passes, ..journey }))
    }

    /// To the optimum near the start, with the components that are not driven out on the way.
    fn run(&mut self, mut start: LatentParameters, tolerance: f64) -> Result<(Optimum, Journey)> {
        let limits = Limits { tolerance, iterations: self.max_iterations };
        loop {
            let stage = Passes::over(self.given.source, Em::under(self.prior, start, self.floor));
            let (found, journey) = drive(stage, limits, self.control)?;
            self.passes += if self.given.stand_in { 0 } else { journey.passes };
            match &found.survivors {
                Some(kept) if journey.stop == Stop::Converged && !found.noiseless => {
                    start = found.parameters.with_components(kept);
                }
                _ => return Ok((found, journey)),
            }
        }
    }
}

/// The components without the weakest, when it is in doubt whether that one pays: what the rows gain by it,
/// were they complete but as much fewer as cells are missing, against what its parameters cost.
fn without_doubtful(parameters: &LatentParameters, (weight, share): (f64, f64)) -> Option<LatentParameters> {
    let lengths = Prior::lengths(parameters);
    let weakest = (0..lengths.len()).min_by(|a, b| lengths[*a].total_cmp(&lengths[*b]))?;
    let (p, x) = (parameters.n_features() as f64, share * lengths[weakest] / parameters.noise());
    let (gain, price) = (weight * (x - x.ln_1p()), p * (weight * x / p).ln_1p());
    let others: Vec<usize> = (0..lengths.len()).filter(|k| *k != weakest).collect();
    (gain < IN_DOUBT * price).then(|| parameters.with_components(&others))
}

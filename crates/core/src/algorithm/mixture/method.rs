//! By what a mixture is fitted, from a given start: maximum likelihood, or variational Bayes.

use std::marker::PhantomData;
use std::sync::Arc;

use super::variational::{MixturePosterior, MixtureVb};
use super::{ComponentEvidence, MixtureEm, MixtureOptimum, MixtureSettings};
use crate::algorithm::{Journey, Limits, Passes, Stop, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::Latent;
use crate::expectation::LatentParameters;
use crate::model::Mixture;

/// A way from a start to the optimum near it.
pub(crate) trait MixtureMethod {
    /// What a pass collects about each component.
    type Evidence: ComponentEvidence;

    /// Runs until the limits.
    fn run(
        source: &dyn RowSource,
        start: Mixture,
        settings: &MixtureSettings,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(MixtureOptimum<Self::Evidence>, Journey)>;

    /// What is known of the parameters of each component, where they have distributions.
    fn posteriors(_: &MixtureOptimum<Self::Evidence>) -> Option<Vec<Arc<LatentParameters>>> {
        None
    }
}

/// Maximum likelihood, with a prior against collapse.
pub(crate) struct MaximumLikelihood<E>(PhantomData<fn() -> E>);

impl<E: ComponentEvidence> MixtureMethod for MaximumLikelihood<E> {
    type Evidence = E;

    fn run(
        source: &dyn RowSource,
        start: Mixture,
        settings: &MixtureSettings,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(MixtureOptimum<E>, Journey)> {
        drive(Passes::over(source, MixtureEm::new(start, settings)), limits, control)
    }
}

/// Variational Bayes: columns of loadings that explain nothing are driven out on the way.
pub(crate) struct Variational;

impl MixtureMethod for Variational {
    type Evidence = Latent;

    fn run(
        source: &dyn RowSource,
        start: Mixture,
        settings: &MixtureSettings,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(MixtureOptimum<Latent>, Journey)> {
        let Some(pooled) = &settings.pooled else { return Err(Error::NoRows) };
        let prior = settings.group_prior(pooled);
        let mut start = MixturePosterior::around(&start, &prior, pooled.weight);
        let (mut passes, mut trace) = (0, Vec::new());
        loop {
            let (end, journey) = drive(Passes::over(source, MixtureVb::new(start, &prior)), limits, control)?;
            passes += journey.passes;
            trace.extend(journey.trace);
            match end.survivors {
                Some(kept) if journey.stop == Stop::Converged && end.found.starved.is_none() => {
                    start = end.posterior.with_components(&kept);
                }
                _ => return Ok((end.found, Journey { passes, trace, stop: journey.stop })),
            }
        }
    }
    fn posteriors(found: &MixtureOptimum<Latent>) -> Option<Vec<Arc<LatentParameters>>> {
        Some(found.parts.iter().map(|part| Arc::clone(part.parameters())).collect())
    }
}

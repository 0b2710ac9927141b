//! The best mixtures of every number of components, as growing passes through them: what a choice is made from.

use super::fit::Pooled;
use super::report::NumberOfGroups;
use super::search::Search;
use super::{Mixture, MixturePpca};
use crate::algorithm::mixture::{MaximumLikelihood, MixtureMethod};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Latent, Moments};
use crate::parallel;

/// The best mixture of a number of components.
pub(crate) struct GrownMixture {
    /// It.
    pub(crate) mixture: Mixture,
    /// What it has reached.
    pub(crate) reached: NumberOfGroups,
    /// Number of its free parameters.
    pub(crate) parameters: usize,
}

impl MixturePpca {
    /// The best mixtures of 1, 2, … components with q latent variables each, up to `most`, or fewer where the
    /// rows do not feed more or `enough` says so.
    pub(crate) fn path(
        &self,
        (q, most): (usize, usize),
        source: &dyn RowSource,
        enough: &dyn Fn(&[GrownMixture]) -> bool,
        control: &Control<'_>,
    ) -> Result<Vec<GrownMixture>> {
        let pooled = self.pooled(q, source, &control.quiet())?;
        match self.goes_by_cells(&pooled, source) {
            true => self.path_of::<MaximumLikelihood<Latent>>(&pooled, most, source, enough, control),
            false => self.path_of::<MaximumLikelihood<Moments>>(&pooled, most, source, enough, control),
        }
    }

    fn path_of<M: MixtureMethod>(
        &self,
        pooled: &Pooled,
        most: usize,
        source: &dyn RowSource,
        enough: &dyn Fn(&[GrownMixture]) -> bool,
        control: &Control<'_>,
    ) -> Result<Vec<GrownMixture>> {
        let mut search = Search::<M>::over(source, self.settings(pooled), control);
        let mut current = search.optimum(Mixture::new(vec![1.0], vec![pooled.component.clone()])?)?;
        let mut found = Vec::new();
        loop {
            let reached = self.row(&current, pooled);
            let parameters = super::report::parameters(&current.mixture, self.noise.shared);
            found.push(GrownMixture { mixture: current.mixture.clone(), reached, parameters });
            if found.len() >= most || enough(&found) {
                return Ok(found);
            }
            control.check()?;
            let next = match search.grown(&current, pooled, self.run.seed) {
                // The rows do not feed one more.
                Err(Error::ShrunkComponent { .. }) => None,
                next => next?,
            };
            let Some(next) = next else { return Ok(found) };
            let moved = search.moved(next)?;
            current = search.settle(moved)?;
        }
    }

    /// The optima on some rows near mixtures of q latent variables that others were grown on; `None` where the
    /// rows do not feed one.
    pub(crate) fn refitted(
        &self,
        q: usize,
        starts: &[&Mixture],
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Vec<Option<Mixture>>> {
        let pooled = self.pooled(q, source, &control.quiet())?;
        match self.goes_by_cells(&pooled, source) {
            true => self.refitted_by::<MaximumLikelihood<Latent>>(&pooled, starts, source, control),
            false => self.refitted_by::<MaximumLikelihood<Moments>>(&pooled, starts, source, control),
        }
    }

    fn refitted_by<M: MixtureMethod>(
        &self,
        pooled: &Pooled,
        starts: &[&Mixture],
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Vec<Option<Mixture>>> {
        let refit = |start: &Mixture| {
            let mut search = Search::<M>::over(source, self.settings(pooled), control);
            let found = search.optimum(start.clone()).and_then(|found| match found.starved {
                Some(_) => Ok(found),
                None => search.settle(found),
            });
            match found {
                Err(Error::ShrunkComponent { .. }) => Ok(None),
                found => found.map(|found| Some(found.mixture).filter(|_| found.starved.is_none())),
            }
        };
        parallel::try_map(starts.len(), |i| refit(starts[i]))
    }
}

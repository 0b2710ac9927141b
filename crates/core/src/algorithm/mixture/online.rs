//! Online EM of a mixture: one step per batch of rows \[CM09\].
//!
//! What is kept of the batches before is evidence about the mixture so far, of total weight 1, in which earlier
//! batches fade. Responsibilities of rows that are gone stay what they were. Moments of a component say the same
//! for any of its parameters; latent evidence is carried over to the coordinates of the new ones.

use std::sync::Arc;

use super::component::parameters;
use super::evidence::{Collected, empty, stepped, with_parts};
use super::{
    ByResponsibility, CollapsePrior, ComponentEvidence, MixtureEvidence, MixtureSettings, NoiseModel,
};
use crate::algorithm::online::share;
use crate::error::Result;
use crate::evidence::{Accumulator, Frame, Latent, Moments};
use crate::model::{LinearGaussian, Mixture};

/// Least unexplained variance of a feature that the prior speaks of, as a share of all variance.
const LEAST_UNEXPLAINED: f64 = 1e-6;

/// Evidence that can fade.
trait Fading: ComponentEvidence {
    /// The same with every weight multiplied.
    fn times(&self, factor: f64) -> Self;

    /// The same about the component after a step that was made from it, as rows of some total weight.
    fn carried(
        &self,
        before_and_after: (&LinearGaussian, &LinearGaussian),
        weight: f64,
        prior: Option<&CollapsePrior>,
    ) -> Result<Self>;
}

impl Fading for Moments {
    fn times(&self, factor: f64) -> Self {
        Self::times(self, factor)
    }

    fn carried(
        &self,
        _: (&LinearGaussian, &LinearGaussian),
        _: f64,
        _: Option<&CollapsePrior>,
    ) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Fading for Latent {
    fn times(&self, factor: f64) -> Self {
        self.clone().scaled(factor)
    }

    fn carried(
        &self,
        (before, after): (&LinearGaussian, &LinearGaussian),
        weight: f64,
        prior: Option<&CollapsePrior>,
    ) -> Result<Self> {
        let mut all = self.clone().scaled(weight);
        if let Some(prior) = prior {
            all.update(&prior.stand_in(before.mean())?)?;
        }
        Ok(Self::carried(self, &Arc::new(parameters(after)), &Frame::of(&all)?))
    }
}

/// The mixture after a batch, and the evidence about it that is kept. What was kept is about the same mixture as
/// the batch; `seen` is the weight of all rows so far, the batch among them.
pub(crate) fn online_step(
    kept: &MixtureEvidence,
    batch: &MixtureEvidence,
    seen: f64,
    (noise, prior_rows): (NoiseModel, Option<f64>),
) -> Result<MixtureEvidence> {
    let mixture = batch.mixture();
    let settings = settings(mixture, noise, prior_rows);
    match (&kept.collected, &batch.collected) {
        (Collected::Complete(kept), Collected::Complete(batch)) => {
            // What rows say about a single component does not depend on its parameters.
            let share = if mixture.n_components() == 1 { exact_share } else { share };
            after(mixture, average(kept, batch, seen, share)?, seen, &settings)
        }
        (Collected::Incomplete(kept), Collected::Incomplete(batch)) => {
            after(mixture, average(kept, batch, seen, share)?, seen, &settings)
        }
        (Collected::Complete(_), Collected::Incomplete(_)) => {
            online_step(&kept.by_cells()?, batch, seen, (noise, prior_rows))
        }
        (Collected::Incomplete(_), Collected::Complete(_)) => {
            online_step(kept, &batch.by_cells()?, seen, (noise, prior_rows))
        }
    }
}

fn exact_share(batch: f64, seen: f64) -> f64 {
    batch / seen
}

/// s ← (1 − γ) s + γ s of the batch, of total weight 1.
fn average<E: Fading>(
    kept: &ByResponsibility<E>,
    batch: &ByResponsibility<E>,
    seen: f64,
    share: fn(f64, f64) -> f64,
) -> Result<ByResponsibility<E>> {
    let weight: f64 = batch.parts.iter().map(E::weight).sum();
    let share = share(weight, seen);
    let mut out = times(batch, share / weight);
    if share < 1.0 {
        out.merge(&times(kept, 1.0 - share))?;
    }
    Ok(out)
}

fn times<E: Fading>(evidence: &ByResponsibility<E>, factor: f64) -> ByResponsibility<E> {
    let mut out = evidence.clone();
    out.parts.iter_mut().for_each(|part| *part = Fading::times(part, factor));
    out.weight *= factor;
    out.log_likelihood *= factor;
    out.overlap.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= factor));
    out.totals.iter_mut().for_each(|x| *x *= factor);
    out
}

/// The step from an average that stands for rows of weight `seen`, and the average about its end.
fn after<E: Fading>(
    before: &Arc<Mixture>,
    average: ByResponsibility<E>,
    seen: f64,
    settings: &MixtureSettings,
) -> Result<MixtureEvidence>
where
    ByResponsibility<E>: Into<Collected>,
{
    let mixture = stepped(before, &times(&average, seen), settings)?;
    let prior = settings.prior.as_ref();
    let pairs = before.components().iter().zip(mixture.components());
    let parts = pairs.zip(&average.parts).map(|(pair, part)| part.carried(pair, seen, prior));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let order = mixture.order();
    let mixture = Arc::new(mixture.sorted());
    let mut kept = empty(&mixture);
    kept.parts = order.iter().map(|k| parts[*k].clone()).collect();
    let overlap = |i: usize, j: usize| average.overlap[(order[i].max(order[j]), order[i].min(order[j]))];
    (kept.rows, kept.weight, kept.log_likelihood) = (average.rows, average.weight, average.log_likelihood);
    for (i, j) in (0..order.len()).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        kept.overlap[(i, j)] = overlap(i, j);
    }
    kept.totals = average.totals;
    Ok(MixtureEvidence::of(mixture, kept.into()))
}

/// A prior of the variances that the mixture so far leaves unexplained, Σ πₖψₖ.
fn settings(mixture: &Mixture, noise: NoiseModel, prior_rows: Option<f64>) -> MixtureSettings {
    let p = mixture.n_features();
    let parts = || mixture.weights().iter().zip(mixture.components());
    let variance = |c: &LinearGaussian, j: usize| c.noise().of(j) + c.loadings().row(j).squared_norm_l2();
    let of = |f: &dyn Fn(&LinearGaussian) -> f64| parts().map(|(weight, c)| weight * f(c)).sum::<f64>();
    let total = of(&|c| (0..p).map(|j| variance(c, j)).sum());
    let least = LEAST_UNEXPLAINED * total / p as f64;
    let unexplained: Vec<f64> = (0..p).map(|j| of(&|c| c.noise().of(j)).max(least)).collect();
    let several = mixture.n_components() > 1;
    let prior =
        prior_rows.filter(|_| several).map(|rows| CollapsePrior { rows, variances: unexplained.clone() });
    MixtureSettings { noise, prior, unexplained, least, pooled: None }
}

impl MixtureEvidence {
    fn of(mixture: Arc<Mixture>, collected: Collected) -> Self {
        Self { mixture, collected }
    }

    /// As if rows of total weight 1 had exactly the means and covariances of the mixture: for one that has no
    /// evidence of its own rows.
    pub(crate) fn of_model(mixture: Arc<Mixture>, rows: usize) -> Result<Self> {
        let mut of = empty::<Moments>(&mixture);
        for (part, (weight, component)) in
            of.parts.iter_mut().zip(mixture.weights().iter().zip(mixture.components()))
        {
            let mut scatter = component.covariance();
            scatter.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= *weight));
            *part = Moments::from_parts(rows.max(1), *weight, component.mean().to_vec(), scatter)?;
        }
        (of.rows, of.weight) = (rows, 1.0);
        Ok(Self::of(mixture, of.into()))
    }

    /// The same with every weight divided by what all parts have, so that it is 1.
    pub(crate) fn normalised(&self) -> Self {
        let factor = 1.0 / self.component_weights().iter().sum::<f64>();
        let mixture = Arc::clone(&self.mixture);
        with_parts!(&self.collected, of => Self::of(mixture, times(of, factor).into()))
    }

    /// What complete rows say, in the form that rows with missing values have.
    fn by_cells(&self) -> Result<Self> {
        let Collected::Complete(from) = &self.collected else { return Ok(self.clone()) };
        let mut to = empty::<Latent>(&self.mixture);
        for (part, moments) in to.parts.iter_mut().zip(&from.parts) {
            if moments.weight() > 0.0 {
                *part = Latent::of_moments(part.parameters(), moments)?;
            }
        }
        (to.rows, to.weight, to.log_likelihood) = (from.rows, from.weight, from.log_likelihood);
        (to.overlap, to.totals) = (from.overlap.clone(), from.totals.clone());
        Ok(Self::of(Arc::clone(&self.mixture), to.into()))
    }
}

impl From<ByResponsibility<Moments>> for Collected {
    fn from(parts: ByResponsibility<Moments>) -> Self {
        Self::Complete(parts)
    }
}

impl From<ByResponsibility<Latent>> for Collected {
    fn from(parts: ByResponsibility<Latent>) -> Self {
        Self::Incomplete(parts)
    }
}

//! What rows say about a mixture of given parameters, and the step to a better one: all that a fit in passes over
//! parts of the data needs, wherever the parts lie.

use std::sync::Arc;

use super::{ByResponsibility, ComponentEvidence, MixtureEm, MixtureSettings, NoiseModel, Responsibilities};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Latent, Moments};
use crate::linalg::Mat;
use crate::model::{Mixture, Noise};

/// Evidence about a mixture of given parameters: of each component that of its rows, weighted by
/// responsibility.
///
/// Evidence for other parameters cannot be merged.
#[derive(Clone)]
pub struct MixtureEvidence {
    pub(super) mixture: Arc<Mixture>,
    pub(crate) collected: Collected,
}

/// The evidence of the components.
#[derive(Clone)]
pub(crate) enum Collected {
    /// Of complete rows.
    Complete(ByResponsibility<Moments>),
    /// Of rows that may have missing values.
    Incomplete(ByResponsibility<Latent>),
}

/// The same for both kinds of parts.
macro_rules! with_parts {
    ($collected:expr, $parts:ident => $result:expr) => {
        match $collected {
            Collected::Complete($parts) => $result,
            Collected::Incomplete($parts) => $result,
        }
    };
}
pub(super) use with_parts;

/// Sums over rows that are not about single components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MixtureTotals<'a> {
    /// Rows of positive weight.
    pub(crate) rows: usize,
    /// Their total weight.
    pub(crate) weight: f64,
    /// Σ w · log density.
    pub(crate) log_likelihood: f64,
    /// Σ w · rᵢ · rⱼ (K × K, lower triangle).
    pub(crate) overlap: &'a Mat<f64>,
    /// Σ w Σ r ln r.
    pub(crate) negative_entropy: f64,
}

impl MixtureEvidence {
    /// Of no rows, none of which will have missing values: moments of each component.
    pub fn complete(mixture: Arc<Mixture>) -> Self {
        let collected = Collected::Complete(empty(&mixture));
        Self { mixture, collected }
    }

    /// Of no rows, which may have missing values: the sums of the expectation step of each component.
    pub fn incomplete(mixture: Arc<Mixture>) -> Self {
        let collected = Collected::Incomplete(empty(&mixture));
        Self { mixture, collected }
    }

    /// What it was collected for.
    pub fn mixture(&self) -> &Arc<Mixture> {
        &self.mixture
    }

    /// Log-likelihood of the observed cells under the mixture.
    pub fn log_likelihood(&self) -> f64 {
        self.totals().log_likelihood
    }

    /// Total weight of the rows.
    pub fn weight(&self) -> f64 {
        self.totals().weight
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.totals().rows
    }

    /// Total weight of the rows of each component that have a cell, Σ w · r (K).
    pub fn component_weights(&self) -> Vec<f64> {
        with_parts!(&self.collected, of => of.parts.iter().map(ComponentEvidence::weight).collect())
    }

    pub(crate) fn totals(&self) -> MixtureTotals<'_> {
        with_parts!(&self.collected, of => MixtureTotals {
            rows: of.rows,
            weight: of.weight,
            log_likelihood: of.log_likelihood,
            overlap: &of.overlap,
            negative_entropy: of.totals.first().copied().unwrap_or(0.0),
        })
    }

    pub(crate) fn set_totals(&mut self, totals: MixtureTotals<'_>) {
        with_parts!(&mut self.collected, of => {
            (of.rows, of.weight) = (totals.rows, totals.weight);
            (of.log_likelihood, of.overlap) = (totals.log_likelihood, totals.overlap.clone());
            of.totals = vec![totals.negative_entropy];
        });
    }
}

/// Of no rows.
pub(super) fn empty<E: ComponentEvidence>(mixture: &Arc<Mixture>) -> ByResponsibility<E> {
    let parts = mixture.components().iter().map(E::empty).collect();
    ByResponsibility::empty(Arc::new(Responsibilities(Arc::clone(mixture))), parts)
}

impl Accumulator for MixtureEvidence {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        with_parts!(&mut self.collected, of => of.update(chunk))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.mixture, &other.mixture) && self.mixture != other.mixture {
            let (name, value) = ("the parameters of evidence", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        match (&mut self.collected, &other.collected) {
            (Collected::Complete(a), Collected::Complete(b)) => a.merge(b),
            (Collected::Incomplete(a), Collected::Incomplete(b)) => a.merge(b),
            _ => {
                let (name, value) = ("evidence to merge", "of complete and of incomplete rows".into());
                Err(Error::Parameter { name, value, allowed: "both of the same kind" })
            }
        }
    }
}

/// One step of EM of maximum likelihood from evidence: a better mixture for the rows that it is about, of as many
/// components and latent variables.
///
/// Each component has noise of its own, of the kind that the mixture has. The likelihood never falls.
///
/// ```
/// use std::sync::Arc;
/// use covary::algorithm::{MixtureEvidence, mixture_step};
/// use covary::data::Rows;
/// use covary::evidence::{Accumulator, gather};
/// use covary::linalg::Mat;
/// use covary::model::{LinearGaussian, Mixture, Noise};
/// use covary::persist::Portable;
///
/// // Two parts of the rows, which may lie in two places.
/// let parts = [
///     [0.0, 0.3, 1.0, 0.8, 2.0, 2.1, 9.0, 0.2, 8.0, 1.3],
///     [3.0, 3.2, -1.0, -0.9, 7.1, 2.0, 6.0, 2.8, 5.2, 4.0],
/// ];
/// let around = |x: f64| {
///     LinearGaussian::new(vec![x, 1.0], Mat::from_fn(2, 1, |_, _| 1.0), Noise::Isotropic(1.0))
/// };
/// let mut mixture = Arc::new(Mixture::new(vec![0.5, 0.5], vec![around(2.0)?, around(6.0)?])?);
/// let mut last = f64::NEG_INFINITY;
/// for _ in 0..5 {
///     let mut all = MixtureEvidence::complete(mixture.clone());
///     for part in &parts {
///         let rows = Rows::from_slice(part, 2)?;
///         let evidence = gather(rows.source(), || MixtureEvidence::complete(mixture.clone()), &Default::default())?;
///         // What travels from place to place.
///         let bytes = evidence.to_bytes(&["x".into(), "y".into()])?;
///         all.merge(&MixtureEvidence::from_bytes(&bytes)?.evidence)?;
///     }
///     assert!(all.log_likelihood() >= last);
///     last = all.log_likelihood();
///     mixture = Arc::new(mixture_step(&all)?);
/// }
/// assert!(last > -40.0);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When there are no rows, or a component has shrunk onto too few of them: the error names it.
pub fn mixture_step(evidence: &MixtureEvidence) -> Result<Mixture> {
    let mixture = evidence.mixture();
    let diagonal = matches!(mixture.components()[0].noise(), Noise::Diagonal(_));
    let noise = NoiseModel { diagonal, shared: false };
    let unexplained = vec![0.0; mixture.n_features()];
    let settings = MixtureSettings { noise, prior: None, unexplained, least: 0.0, pooled: None };
    with_parts!(&evidence.collected, of => stepped(mixture, of, &settings))
}

/// The maximisation step of all components and their weights.
pub(super) fn stepped<E: ComponentEvidence>(
    mixture: &Arc<Mixture>,
    evidence: &ByResponsibility<E>,
    settings: &MixtureSettings,
) -> Result<Mixture> {
    let weights: Vec<f64> = evidence.parts.iter().map(E::weight).collect();
    if weights.iter().all(|w| *w == 0.0) {
        return Err(Error::NoRows);
    }
    match weights.iter().position(|w| *w == 0.0) {
        Some(component) if settings.prior.is_none() => Err(Error::ShrunkComponent { component, weight: 0.0 }),
        _ => MixtureEm::new(Mixture::clone(mixture), settings).plain_step(evidence),
    }
}

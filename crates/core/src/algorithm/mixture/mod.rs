//! Maximum likelihood of mixtures of PPCA and of factor analysers \[TB99b, GH96\].
//!
//! Each pass over the rows finds the responsibilities of the components and collects, for each of them, the
//! evidence that a single model needs, with rows weighted by their responsibility
//! ([`WeightedParts`](crate::evidence::WeightedParts)): moments of complete rows, whose maximisation step is
//! PPCA's closed form, or latent evidence of rows with missing values, whose step is that of EM.
//!
//! A [`CollapsePrior`] keeps components from shrinking onto a few rows. The objective is the log-likelihood
//! and the prior's term, so that it never falls.

mod component;
mod coordinates;
mod em;
mod evidence;
mod method;
mod online;
mod prior;
mod reshape;
mod variational;

pub(crate) use variational::MixturePosterior;

pub(crate) use component::{ComponentEvidence, NoiseModel};
pub(crate) use em::{MixtureEm, MixtureOptimum, MixtureSettings, PooledRows};
pub(crate) use evidence::{Collected as MixtureCollected, MixtureTotals};
pub use evidence::{MixtureEvidence, mixture_step};
pub(crate) use method::{MaximumLikelihood, MixtureMethod, Variational};
pub(crate) use online::online_step;
pub(crate) use prior::CollapsePrior;
pub(crate) use reshape::{leading_axes, merged, split};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::Result;
use crate::evidence::{Moments, RowWeights, WeightedParts, WeightedRows, gather};
use crate::linalg::Mat;
use crate::linalg::serial::shared;
use crate::model::Mixture;

/// Log-likelihood of the rows under a mixture, and −Σ w Σ r ln r.
pub(crate) fn measured(
    mixture: &Mixture,
    source: &dyn RowSource,
    control: &Control<'_>,
) -> Result<(f64, f64)> {
    let weights = Arc::new(Responsibilities(Arc::new(mixture.clone())));
    let found =
        gather(source, || ByResponsibility::<Moments>::empty(Arc::clone(&weights), Vec::new()), control)?;
    Ok((found.log_likelihood, -found.totals.first().copied().unwrap_or(0.0)))
}

/// Responsibilities of the components for each row (n × K); 0 for rows of no weight.
pub(crate) fn responsibilities(mixture: &Mixture, source: &dyn RowSource) -> Result<Mat<f64>> {
    let weights = Responsibilities(Arc::new(mixture.clone()));
    let parts = map_chunks(source, |chunk| Ok((chunk.first_row(), weights.weigh(chunk)?.shares)))?;
    let rows = parts.iter().map(|(_, part)| part.nrows()).sum();
    let mut all = Mat::zeros(rows, mixture.n_components());
    for (first, part) in &parts {
        all.as_mut().subrows_mut(*first, part.nrows()).copy_from(part);
    }
    Ok(all)
}

/// The responsibilities of a mixture as weights of rows, and Σ w Σ r ln r as the only further sum.
#[derive(Serialize, Deserialize)]
pub(crate) struct Responsibilities(#[serde(with = "shared")] Arc<Mixture>);

/// Evidence of the components of a mixture, in which rows count by their responsibilities.
pub(crate) type ByResponsibility<E> = WeightedParts<E, Responsibilities>;

impl RowWeights for Responsibilities {
    const NAME: &'static str = "responsibilities";

    fn weigh(&self, chunk: &Chunk<'_>) -> Result<WeightedRows> {
        let (n, groups) = (chunk.nrows(), self.0.n_components());
        let Some(weights) = chunk.weights().filter(|w| w.contains(&0.0)) else {
            let found = self.0.memberships_of(chunk)?;
            let totals = vec![self.entropy(&found.probabilities, chunk.weights())];
            return Ok(WeightedRows { shares: found.probabilities, log_density: found.log_density, totals });
        };
        // A row of no weight is no row, whatever it holds.
        let counted: Vec<usize> = (0..n).filter(|i| weights[*i] > 0.0).collect();
        let some = chunk.select(&counted)?;
        let found = self.0.memberships_of(&some)?;
        let totals = vec![self.entropy(&found.probabilities, some.weights())];
        let (mut shares, mut log_density) = (Mat::zeros(n, groups), vec![0.0; n]);
        for (at, row) in counted.iter().enumerate() {
            log_density[*row] = found.log_density[at];
            (0..groups).for_each(|k| shares[(*row, k)] = found.probabilities[(at, k)]);
        }
        Ok(WeightedRows { shares, log_density, totals })
    }
}

impl Responsibilities {
    /// Σ w Σ r ln r.
    fn entropy(&self, probabilities: &Mat<f64>, weights: Option<&[f64]>) -> f64 {
        let term = |r: f64| if r > 0.0 { r * r.ln() } else { 0.0 };
        let of_row = |i: usize| (0..probabilities.ncols()).map(|k| term(probabilities[(i, k)])).sum::<f64>();
        (0..probabilities.nrows()).map(|i| weights.map_or(1.0, |w| w[i]) * of_row(i)).sum()
    }
}

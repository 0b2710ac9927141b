//! Starts from clusters of rows: a second opinion beside growing.
//!
//! Growing splits one component at a time, and where the rows of two groups have been shared out wrongly no
//! split may lead out of that. Clusters know nothing of what was before.

use super::fit::Pooled;
use super::search::Search;
use crate::algorithm::mixture::MixtureMethod;
use crate::algorithm::seeding::Seeding;
use crate::error::{Error, Result};
use crate::estimator::{ClusterReport, Fit, KMeans};
use crate::linalg::Mat;
use crate::model::{Clustering, LinearGaussian, Mixture};

/// Least share of the variance that clusters may leave to a component.
const LEAST_WITHIN: f64 = 1e-3;

impl<M: MixtureMethod> Search<'_, M> {
    /// Mixtures of so many components around the centres of clusters: those of least inertia, and those that a
    /// random start leads to. None where the rows do not have so many.
    pub(super) fn around_clusters(&self, pooled: &Pooled, groups: usize, seed: u64) -> Result<Vec<Mixture>> {
        let best = KMeans::new(groups).seed(seed);
        let other =
            KMeans::new(groups).seeding(Seeding::Random).polish(false).starts(1).seed(seed.wrapping_add(1));
        let starts = [best, other].map(|clusters| self.around(pooled, groups, &clusters));
        Ok(starts.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The mixture around the centres that k-means finds; `None` where the rows do not have so many clusters.
    pub(super) fn around(
        &self,
        pooled: &Pooled,
        groups: usize,
        clusters: &KMeans,
    ) -> Result<Option<Mixture>> {
        match clusters.fit_with(self.source, &self.control.quiet()) {
            Ok(Fit { model, report }) if model.centres().nrows() == groups => {
                let explained = report.clusters().and_then(ClusterReport::explained).unwrap_or(0.0);
                around(&model, 1.0 - explained, &pooled.component).map(Some)
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // Growing says what the rows do not allow.
            _ => Ok(None),
        }
    }
}

/// Components around the centres, each with the pooled loadings for the share of the variance that is left.
fn around(clusters: &Clustering, within: f64, pooled: &LinearGaussian) -> Result<Mixture> {
    let (w, shrink) = (pooled.loadings(), within.max(LEAST_WITHIN).sqrt());
    let component = |k: usize| {
        let mean = clusters.centres().row(k).iter().copied().collect();
        let loadings = Mat::from_fn(w.nrows(), w.ncols(), |j, i| shrink * w[(j, i)]);
        LinearGaussian::new(mean, loadings, pooled.noise().clone())
    };
    let components = (0..clusters.centres().nrows()).map(component).collect::<Result<_>>()?;
    Mixture::new(clusters.shares().to_vec(), components)
}

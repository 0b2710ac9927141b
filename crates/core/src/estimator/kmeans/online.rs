//! k-means of rows that come in batches: each batch moves the centres towards the means of its rows.

use super::super::{Details, Fit, MissingCells, Report};
use super::{ClusterReport, KMeans};
use crate::algorithm::Stop;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Clusters, Survey, gather};
use crate::linalg::{Mat, descending};
use crate::model::Clustering;
use std::sync::Arc;

impl KMeans {
    /// Takes in a batch of rows: a fit of the first, and for each other one step
    /// $c_k \leftarrow (n_k c_k + \sum x) / (n_k + m_k)$ over the m rows of the batch that are nearest to
    /// centre k \[M67; S10\]. It needs no second look at earlier rows, and comes near to a fit of all rows,
    /// nearer when batches are given several times.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); when the model before is not of these features.
    pub fn step(
        &self,
        before: Option<&Fit<Clustering>>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<Clustering>> {
        let Some(before) = before else { return with_steps(self.fit_with(rows, control)?, 1) };
        let (expected, found) = (before.model.mean().len(), rows.n_features());
        if expected != found {
            return Err(Error::FeatureCount { expected, found });
        }
        let nearest = before.model.comparer();
        let batch = gather(rows, || Clusters::about(Arc::clone(nearest)), control)?;
        let census = gather(rows, || Survey::empty(found), control)?.census();
        let holes = (census.missing() > 0).then(|| MissingCells::new(&census, None));
        moved(before, &batch, holes)
    }
}

fn with_steps(fit: Fit<Clustering>, steps: usize) -> Result<Fit<Clustering>> {
    let Fit { model, mut report } = fit;
    if let Some(Details::Clusters(details)) = &mut report.details {
        details.online_steps = Some(steps);
    }
    Ok(Fit { model, report })
}

/// The model after a batch.
fn moved(before: &Fit<Clustering>, batch: &Clusters, holes: Option<MissingCells>) -> Result<Fit<Clustering>> {
    let Fit { model, report } = before;
    let (k, p) = (model.centres().nrows(), model.mean().len());
    let seen: Vec<f64> = model.shares().iter().map(|s| s * report.weight).collect();
    let means = batch.means();
    let total: f64 = report.weight + batch.weight().iter().sum::<f64>();
    let step = |c: usize, j: usize| {
        let added = batch.weight_of(j, c);
        let share = if added > 0.0 { added / (seen[c] + added) } else { 0.0 };
        model.centres()[(c, j)] + share * (means[(c, j)] - model.centres()[(c, j)])
    };
    let weight: Vec<f64> = seen.iter().zip(batch.weight()).map(|(a, b)| a + b).collect();
    let within: Vec<f64> = model.within().iter().zip(batch.within()).map(|(a, b)| a + b).collect();
    let order = descending(&weight);
    let centres = Mat::from_fn(k, p, |c, j| step(order[c], j));
    let pick = |of: &[f64]| order.iter().map(|c| of[*c]).collect::<Vec<_>>();
    let all = if total > 0.0 { total } else { 1.0 };
    let shares: Vec<f64> = pick(&weight).iter().map(|w| w / all).collect();
    let (mean, divisors) = (model.mean().to_vec(), model.divisors().to_vec());
    let model = Clustering::with_frame(centres, mean, shares, pick(&within), divisors)?;
    let report = after(report, &model, batch, holes);
    Ok(Fit { model, report })
}

fn after(before: &Report, model: &Clustering, batch: &Clusters, holes: Option<MissingCells>) -> Report {
    let mut report = before.clone();
    report.rows += batch.rows();
    report.weight += batch.weight().iter().sum::<f64>();
    report.stop = Stop::Converged;
    report.passes += 1;
    report.trace.push(model.inertia());
    report.holes = MissingCells::joined(report.holes.take(), holes);
    let known = before.clusters();
    let steps = known.and_then(|known| known.online_steps).unwrap_or(1) + 1;
    let found = model.centres().nrows();
    let details = ClusterReport {
        inertia: model.inertia(),
        total: known.map_or(0.0, |known| known.total),
        asked: known.map_or(found, |known| known.asked),
        found,
        starts: known.map_or(0, |known| known.starts),
        swaps: known.map_or(0, |known| known.swaps),
        sample: None,
        online_steps: Some(steps),
        chosen: None,
    };
    report.details = Some(Details::Clusters(details));
    report
}

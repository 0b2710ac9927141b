//! From what a solver has found to a model in the units of the data, turned as asked, and a report.

use std::time::Instant;

use super::FactorAnalysis;
use super::assess::Comparison;
use super::starts::Tries;
use crate::algorithm::Stop;
use crate::assess::FactorModel;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::estimator::{Details, FactorReport, Fit, MissingCells, Plan, Report, turned_with};
use crate::linalg::Mat;
use crate::model::{Factors, LinearGaussian, Noise};

/// What a solver gives, with what is needed to go back to the scale of the data.
pub(super) struct FactorSolution {
    pub(super) plan: Plan,
    pub(super) tries: Tries,
    pub(super) mean: Vec<f64>,
    pub(super) deviations: Vec<f64>,
    pub(super) weights: Vec<f64>,  // of each feature's cells
    pub(super) seen: (usize, f64), // rows, weight
    pub(super) passes: usize,
    pub(super) holes: Option<MissingCells>,
    pub(super) comparison: Comparison,
}

impl FactorAnalysis {
    /// When the caller stops it during the rotation, the factors stay as they were found.
    pub(super) fn finish(
        &self,
        solved: FactorSolution,
        started: Instant,
        control: &Control<'_>,
    ) -> Result<Fit<Factors>> {
        let (of_correlations, log_likelihood) = solved.log_likelihoods();
        let assessment = solved.assessment(log_likelihood)?;
        let FactorSolution { plan, tries, mean, deviations: d, seen: (rows, weight), passes, holes, .. } =
            solved;
        let Tries { best, lower, starts, agreeing } = tries;
        let (p, q) = (mean.len(), self.factors());
        let loadings = Mat::from_fn(p, q, |j, k| best.loadings[(j, k)] * d[j]);
        let noise = (0..p).map(|j| best.uniquenesses[j] * d[j] * d[j]).collect();
        let mean = (0..p).map(|j| mean[j] + best.mean[j] * d[j]).collect();
        let model = LinearGaussian::new(mean, loadings, Noise::Diagonal(noise)).map_err(|_| Error::Scale)?;
        let unrotated = Factors::new(model);
        let (model, rotation, stop) = match &self.rotation {
            Some(rotate) => match turned_with(unrotated.clone(), rotate, control) {
                Err(Error::Interrupted) => (unrotated, None, Stop::Interrupted),
                other => other.map(|(model, report)| (model, Some(report), best.stop))?,
            },
            None => (unrotated, None, best.stop),
        };
        let factor = FactorReport {
            discrepancy: best.discrepancy,
            dof: FactorModel::new(best.loadings.as_ref(), None, &best.uniquenesses)?.dof(),
            correlation_log_likelihood: of_correlations,
            gradient_norm: best.gradient_norm,
            iterations: best.trace.len(),
            starts,
            agreeing,
            lower,
            heywood: best.heywood,
            unused: best.unused,
            assessment,
        };
        let report = Report {
            redundant: None,
            plan,
            rows,
            weight,
            features: p,
            components: q,
            log_likelihood: Some(log_likelihood),
            total_variance: d.iter().map(|d| d * d).sum(),
            holes,
            details: Some(Details::Factor(Box::new(factor))),
            rotation,
            scaled: None,
            choice: None,
            stop,
            passes,
            trace: best.trace,
            seconds: started.elapsed().as_secs_f64(),
            spectrum: None,
        };
        Ok(Fit { model, report })
    }
}

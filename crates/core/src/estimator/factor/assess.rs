//! How well fitted factors fit: the indices that tables of factor analyses carry, from what a fit has seen.

use super::FactorAnalysis;
use super::finish::FactorSolution;
use crate::assess::{Adequacy, Assessment, FactorModel, FitIndices, Likelihoods};
use crate::control::Control;
use crate::data::{RowSource, ScaledRows, counted_weight};
use crate::error::Result;
use crate::estimator::{Ppca, Solver};
use crate::evidence::Census;
use crate::linalg::Mat;

/// Features up to which the best of all covariances is worth looking for when values are
/// missing: it is a fit of p − 1 components.
const SATURATED_FEATURES: usize = 60;

/// What a model is compared with.
pub(super) enum Comparison {
    /// The correlations of complete rows (p × p).
    Correlations(Mat<f64>),
    /// Correlations and log-likelihood of the best of all covariances for rows with missing values.
    Saturated(Mat<f64>, f64),
    /// No p × p matrix was formed, or the cells do not tell one.
    Nothing,
}

impl FactorAnalysis {
    /// The best of all covariances: PPCA with p − 1 components, since any covariance is W Wᵀ + σ² I with σ²
    /// its smallest eigenvalue. It is looked for on features divided by their deviations, so that units do
    /// not matter: ℓ of the data is ℓ of those minus Σⱼ wⱼ ln dⱼ, with wⱼ the weight of the observed cells of
    /// feature j.
    pub(super) fn saturated(
        &self,
        census: &Census,
        (weights, deviations): (&[f64], &[f64]),
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(Comparison, usize)> {
        let p = deviations.len();
        if p > SATURATED_FEATURES || census.supported_components() < p - 1 || control.is_cancelled() {
            return Ok((Comparison::Nothing, 0));
        }
        let ppca = Ppca::new(p - 1)
            .solver(Solver::Em)
            .max_iterations(self.run.iterations())
            .tolerance(self.limits().tolerance);
        let fit = ppca.fit_with(&ScaledRows::new(source, deviations, false)?, control)?;
        let volume: f64 = weights.iter().zip(deviations).map(|(w, d)| w * d.ln()).sum();
        let found = fit.report.log_likelihood.filter(|_| fit.report.converged());
        let comparison = found
            .map_or(Comparison::Nothing, |ell| Comparison::Saturated(fit.model.covariance(), ell - volume));
        Ok((comparison, fit.report.passes))
    }
}

impl FactorSolution {
    /// Log-likelihood of the features divided by their deviations, and as they are.
    pub(super) fn log_likelihoods(&self) -> (f64, f64) {
        let normal = self.mean.len() as f64 * std::f64::consts::TAU.ln();
        let of_correlations = -0.5 * self.seen.1 * (normal + self.tries.best.value);
        let volume: f64 = self.weights.iter().zip(&self.deviations).map(|(w, d)| w * d.ln()).sum();
        (of_correlations, of_correlations - volume)
    }

    /// Of the best of the tries, whose log-likelihood in the units of the data is given.
    pub(super) fn assessment(&self, log_likelihood: f64) -> Result<Option<Assessment>> {
        let best = &self.tries.best;
        let model = FactorModel::new(best.loadings.as_ref(), None, &best.uniquenesses)?;
        let rows = counted_weight(self.seen.0, self.seen.1);
        let counted = |ell: f64| ell * (rows / self.seen.1); // of as many rows as are counted
        let (matrix, fit) = match &self.comparison {
            Comparison::Nothing => return Ok(None),
            Comparison::Correlations(r) => {
                (r, FitIndices::of(r.as_ref(), Some(rows), &model, Some(counted(log_likelihood)))?)
            }
            Comparison::Saturated(r, saturated) => {
                let [model_value, saturated, independent] =
                    [log_likelihood, *saturated, self.independent_log_likelihood()].map(counted);
                let likelihoods = Likelihoods { model: model_value, saturated, independent };
                (r, FitIndices::of_incomplete(r.as_ref(), rows, &model, likelihoods)?)
            }
        };
        Ok(Some(Assessment {
            fit,
            adequacy: Adequacy::of(matrix.as_ref(), Some(rows)).ok(),
            precision: None,
        }))
    }

    /// Of features that have nothing to do with each other.
    fn independent_log_likelihood(&self) -> f64 {
        let of = |(w, d): (&f64, &f64)| -0.5 * w * (std::f64::consts::TAU.ln() + 2.0 * d.ln() + 1.0);
        self.weights.iter().zip(&self.deviations).map(of).sum()
    }
}

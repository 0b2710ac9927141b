//! What a fit gives back: the model and how it went.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    BayesReport, ClusterReport, GplvmReport, IcaReport, KernelReport, MixtureReport, NetworkReport, Plan,
    RobustReport, Scaled, Solver,
};
use crate::algorithm::{Journey, RedundantFeatures, Stop};
use crate::assess::Assessment;
use crate::data::{counted_rows, counted_weight};
use crate::error::Result;
use crate::evidence::Census;
use crate::model::{AnyModel, Model};
use crate::rotate::{Rotate, Rotated};
use crate::spectrum::Spectrum;

/// A fitted model with its provenance.
#[derive(Debug, Clone)]
pub struct Fit<M> {
    /// The model.
    pub model: M,
    /// How the fit went.
    pub report: Report,
}

impl<M> Fit<M> {
    /// Eigenvalues and directions of the data, where the fit found them.
    pub fn spectrum(&self) -> Option<&Spectrum> {
        self.report.spectrum.as_ref()
    }
}

impl<M: Model> From<Fit<M>> for Fit<AnyModel> {
    fn from(fit: Fit<M>) -> Self {
        Self { model: Arc::new(fit.model), report: fit.report }
    }
}

/// How a fit went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Solver, reason and memory.
    pub plan: Plan,
    /// Rows of positive weight.
    pub rows: usize,
    /// Total weight: the number of rows when no weights were given.
    pub weight: f64,
    /// Number of features, p.
    pub features: usize,
    /// Number of components, q.
    pub components: usize,
    /// Total log-likelihood of the rows: infinite when they lie in the model's plane, `None` when it is not
    /// known, because a caller stopped before it was, or the numbers were given.
    #[serde(with = "super::infinite")]
    pub log_likelihood: Option<f64>,
    /// Trace of the covariance, divisor n.
    pub total_variance: f64,
    /// What is missing; `None` for complete rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holes: Option<MissingCells>,
    /// What the family of the model has to say besides.
    #[serde(flatten)]
    pub details: Option<Details>,
    /// Features that were left out when the number of components was chosen; `None` when there were none or
    /// it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundant: Option<RedundantFeatures>,
    /// How the loadings were turned, in the fit or afterwards, whatever the model; `None` when they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<RotationReport>,
    /// How features were divided before the fit; `None` when they were not. Total variance and eigenvalues
    /// are those of the divided features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<Scaled>,
    /// Why so many components, where their number was chosen for the data. Not part of a model file: it is
    /// the same model when the number is given.
    #[serde(skip)]
    pub choice: Option<String>,
    /// Why the fit ended.
    pub stop: Stop,
    /// Passes over the rows.
    pub passes: usize,
    /// The objective after each iteration; empty for a closed form. Of the last component to join, where they
    /// join one by one.
    pub trace: Vec<f64>,
    /// Wall time. Not part of a model file: the same model must give the same bytes.
    #[serde(skip)]
    pub seconds: f64,
    /// Eigenvalues and directions of the data, where the fit found them. Not part of a report in a file.
    #[serde(skip)]
    pub spectrum: Option<Spectrum>,
}

/// What a family adds to a report: one line for each that does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Details {
    /// Of factor analysis.
    Factor(Box<FactorReport>),
    /// Of Bayesian PCA.
    Bayes(BayesReport),
    /// Of mixtures.
    Mixture(Box<MixtureReport>),
    /// Of robust PPCA.
    Robust(RobustReport),
    /// Of k-means.
    Clusters(ClusterReport),
    /// Of independent components.
    Ica(IcaReport),
    /// Of kernel PCA.
    Kernel(KernelReport),
    /// Of autoassociative networks.
    Network(NetworkReport),
    /// Of GP-LVMs.
    Gplvm(Box<GplvmReport>),
}

/// What a fit of factors adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorReport {
    /// The discrepancy log |C| + tr(S C⁻¹) − log |S| − p at the optimum, the same for covariances and
    /// correlations; `None` when S is singular, where it is infinite, or was never formed.
    pub discrepancy: Option<f64>,
    /// Degrees of freedom, ((p − q)² − (p + q))/2; negative when the loadings are not determined.
    pub dof: i64,
    /// Total log-likelihood of features divided by their standard deviations: that of the correlation matrix.
    pub correlation_log_likelihood: f64,
    /// Euclidean norm of the gradient of the discrepancy by log ψ, without the features that are held at the
    /// bound.
    pub gradient_norm: f64,
    /// Iterations of the start that won.
    pub iterations: usize,
    /// Starts that were tried.
    pub starts: usize,
    /// Starts that ended at the same optimum as the best.
    pub agreeing: usize,
    /// The least uniqueness that was allowed.
    pub lower: f64,
    /// Features whose uniqueness is at that bound (Heywood cases), counted from 0.
    pub heywood: Vec<usize>,
    /// Factors of no length: the data hold fewer than were asked for.
    pub unused: usize,
    /// How well the model fits; `None` when no p × p matrix was formed, or the cells that are there do not
    /// tell one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Assessment>,
}

/// How loadings, on the scale of correlations, were turned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotationReport {
    /// Name of the rotation.
    pub method: String,
    /// Promax's power, oblimin's γ, geomin's δ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<f64>,
    /// Whether rows of the loadings were brought to length 1 before.
    pub kaiser: bool,
    /// Whether the best descent came to rest.
    pub converged: bool,
    /// Starts that were tried.
    pub starts: usize,
    /// Starts that ended at the same optimum as the best.
    pub agreeing: usize,
}

impl RotationReport {
    /// Of a rotation and what came out.
    pub fn new(rotate: &Rotate, rotated: &Rotated) -> Self {
        Self {
            method: rotate.method().name().into(),
            parameter: rotate.method().parameter(),
            kaiser: rotate.is_kaiser(),
            converged: rotated.converged,
            starts: rotated.starts.len(),
            agreeing: rotated.agreeing,
        }
    }
}

/// What a table lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCells {
    /// Cells that are there.
    pub observed: u64,
    /// Cells that are not.
    pub missing: u64,
    /// Different patterns of missing values among the rows; `None` when there are more than a million.
    pub patterns: Option<usize>,
    /// Rows without a single cell: they say nothing and count for nothing.
    pub empty_rows: u64,
    /// Pairs of features that no row has both of, so that their covariance rests on the model alone; `None`
    /// when that was not counted.
    pub unseen_pairs: Option<usize>,
    /// Batches that were each one step of online EM, so that the fit comes near the maximum but is not at it;
    /// `None` when the fit is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_steps: Option<usize>,
}

impl MissingCells {
    pub(crate) fn new(census: &Census, unseen_pairs: Option<usize>) -> Self {
        Self {
            observed: census.observed(),
            missing: census.missing(),
            patterns: census.patterns(),
            empty_rows: census.empty_rows(),
            unseen_pairs,
            online_steps: None,
        }
    }

    /// Share of the cells that are missing.
    pub fn share(&self) -> f64 {
        self.missing as f64 / (self.missing + self.observed).max(1) as f64
    }
}

impl Report {
    pub(super) fn new(plan: Plan, spectrum: Spectrum, journey: Option<Journey>, seconds: f64) -> Self {
        let journey = journey.unwrap_or(Journey { stop: Stop::Converged, trace: Vec::new(), passes: 1 });
        Self {
            plan,
            rows: spectrum.rows(),
            weight: spectrum.weight(),
            features: spectrum.n_features(),
            components: spectrum.n_components(),
            log_likelihood: known(spectrum.log_likelihood()),
            total_variance: spectrum.total_variance(),
            holes: None,
            details: None,
            redundant: None,
            rotation: None,
            scaled: None,
            choice: None,
            stop: journey.stop,
            passes: journey.passes,
            trace: journey.trace,
            seconds,
            spectrum: Some(spectrum),
        }
    }

    /// Of a model whose numbers were given instead of fitted.
    ///
    /// # Errors
    /// When arithmetic breaks down.
    pub fn of_numbers(model: &dyn Model) -> Result<Self> {
        let total_variance = model.as_loadings().map_or(0.0, |loadings| {
            let (factors, noise) = (loadings.factors(), loadings.factors().gaussian().noise().clone());
            let w = factors.gaussian().loadings().clone();
            (0..w.nrows()).map(|j| noise.of(j) + w.row(j).squared_norm_l2()).sum()
        });
        Ok(Self {
            plan: Plan { solver: Solver::Given, reason: "the parameters were given".into(), memory: 0 },
            rows: 0,
            weight: 0.0,
            features: model.n_features(),
            components: model.n_latent(),
            log_likelihood: None,
            total_variance,
            holes: None,
            details: None,
            redundant: None,
            rotation: None,
            scaled: None,
            choice: None,
            stop: Stop::Converged,
            passes: 0,
            trace: Vec::new(),
            seconds: 0.0,
            spectrum: None,
        })
    }

    /// The same fit of rows with another total weight.
    pub(super) fn with_weight(self, weight: f64) -> Self {
        let log_likelihood = self.log_likelihood.map(|value| value * (weight / self.weight));
        let spectrum = self.spectrum.map(|spectrum| spectrum.with_weight(weight));
        Self { weight, log_likelihood, spectrum, ..self }
    }

    /// What factor analysis adds; `None` for other models.
    pub fn factor(&self) -> Option<&FactorReport> {
        match &self.details {
            Some(Details::Factor(report)) => Some(report),
            _ => None,
        }
    }

    /// What Bayesian PCA adds; `None` for other models.
    pub fn bayes(&self) -> Option<&BayesReport> {
        match &self.details {
            Some(Details::Bayes(report)) => Some(report),
            _ => None,
        }
    }

    /// What a mixture adds; `None` for other models.
    pub fn mixture(&self) -> Option<&MixtureReport> {
        match &self.details {
            Some(Details::Mixture(report)) => Some(report),
            _ => None,
        }
    }

    /// What robust PPCA adds; `None` for other models.
    pub fn robust(&self) -> Option<&RobustReport> {
        match &self.details {
            Some(Details::Robust(report)) => Some(report),
            _ => None,
        }
    }

    /// What k-means adds; `None` for other models.
    pub fn clusters(&self) -> Option<&ClusterReport> {
        match &self.details {
            Some(Details::Clusters(report)) => Some(report),
            _ => None,
        }
    }

    /// What independent components add; `None` for other models.
    pub fn ica(&self) -> Option<&IcaReport> {
        match &self.details {
            Some(Details::Ica(report)) => Some(report),
            _ => None,
        }
    }

    /// What kernel PCA adds; `None` for other models.
    pub fn kernel(&self) -> Option<&KernelReport> {
        match &self.details {
            Some(Details::Kernel(report)) => Some(report),
            _ => None,
        }
    }

    /// What an autoassociative network adds; `None` for other models.
    pub fn network(&self) -> Option<&NetworkReport> {
        match &self.details {
            Some(Details::Network(report)) => Some(report),
            _ => None,
        }
    }

    /// What a GP-LVM adds; `None` for other models.
    pub fn gplvm(&self) -> Option<&GplvmReport> {
        match &self.details {
            Some(Details::Gplvm(report)) => Some(report),
            _ => None,
        }
    }

    /// Batches of rows that were each one step, so that the fit comes near the maximum but is not at it; `None`
    /// when the fit is exact.
    pub fn online_steps(&self) -> Option<usize> {
        let of_holes = self.holes.as_ref().and_then(|holes| holes.online_steps);
        of_holes.or(match &self.details {
            Some(Details::Mixture(report)) => report.online_steps,
            Some(Details::Robust(report)) => report.online_steps,
            Some(Details::Clusters(report)) => report.online_steps,
            _ => None,
        })
    }

    /// Number of rows that the weighted rows stand for: one of weight 2 is one written twice. Weights below 1
    /// take none away.
    pub fn counted_rows(&self) -> usize {
        counted_rows(self.rows, self.weight)
    }

    /// n of criteria, standard errors and intervals: [`counted_weight`].
    pub fn counted_weight(&self) -> f64 {
        counted_weight(self.rows, self.weight)
    }

    /// Whether the method ended by itself.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Converged
    }
}

/// The number, unless arithmetic or a caller left it undefined.
pub(super) fn known(value: f64) -> Option<f64> {
    Some(value).filter(|v| !v.is_nan())
}

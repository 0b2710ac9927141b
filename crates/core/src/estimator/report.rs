//! What a fit gives back: the model, the spectrum it came from and how it went.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::algorithm::{Journey, Stop};
use crate::model::Spectrum;

/// A fitted model with its provenance.
#[derive(Debug, Clone)]
pub struct Fit<M> {
    /// The model.
    pub model: M,
    /// Eigenvalues and directions of the data.
    pub spectrum: Spectrum,
    /// How the fit went.
    pub report: Report,
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
    /// Total log-likelihood of the rows; `None` when it is infinite, because the rows lie in the model's plane.
    pub log_likelihood: Option<f64>,
    /// Trace of the covariance, divisor n.
    pub total_variance: f64,
    /// Why the fit ended.
    pub stop: Stop,
    /// Passes over the rows.
    pub passes: usize,
    /// The objective after each iteration; empty for a closed form.
    pub trace: Vec<f64>,
    /// Wall time. Not part of a model file: the same model must give the same bytes.
    #[serde(skip)]
    pub seconds: f64,
}

impl Report {
    pub(super) fn new(plan: Plan, spectrum: &Spectrum, journey: Option<Journey>, seconds: f64) -> Self {
        let log_likelihood = spectrum.log_likelihood();
        let journey = journey.unwrap_or(Journey { stop: Stop::Converged, trace: Vec::new(), passes: 1 });
        Self {
            plan,
            rows: spectrum.rows(),
            weight: spectrum.weight(),
            features: spectrum.n_features(),
            components: spectrum.n_components(),
            log_likelihood: log_likelihood.is_finite().then_some(log_likelihood),
            total_variance: spectrum.total_variance(),
            stop: journey.stop,
            passes: journey.passes,
            trace: journey.trace,
            seconds,
        }
    }

    /// Whether the method ended by itself.
    pub fn converged(&self) -> bool {
        self.stop == Stop::Converged
    }
}

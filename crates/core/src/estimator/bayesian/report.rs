//! How Bayesian PCA finds its precisions, and what it adds to a report.

use serde::{Deserialize, Serialize};

/// How the precisions of the columns of W are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BayesMethod {
    /// Variational Bayes: a distribution of W and μ, by the highest bound on the evidence.
    #[default]
    #[serde(rename = "vb")]
    Variational,
    /// Automatic relevance determination: the most probable W.
    #[serde(rename = "ard")]
    Relevance,
}

impl BayesMethod {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variational => "vb",
            Self::Relevance => "ard",
        }
    }
}

/// What Bayesian PCA adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BayesReport {
    /// How.
    pub method: BayesMethod,
    /// The lower bound on the log evidence, or the logarithm of the posterior density of W for
    /// relevance determination; infinite when the rows lie in the model's plane. Weights that are shares are
    /// scaled first, so that they count rows ([`counted_weight`](crate::data::counted_weight)).
    #[serde(with = "crate::estimator::infinite")]
    pub objective: Option<f64>,
    /// The most components that were allowed.
    pub allowed: usize,
}

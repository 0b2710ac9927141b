//! What comes out: one line for each number of components, what each method chooses, and a recommendation
//! that says why.

use serde::{Deserialize, Serialize};

use crate::algorithm::RedundantFeatures;
use crate::estimator::MissingCells;

/// What each number of components gives; `None` where a method says nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// q.
    pub components: usize,
    /// λ of the last of them, divisor n; `None` for none. With missing values, of the covariance that the fit
    /// of q components has found.
    pub eigenvalue: Option<f64>,
    /// Share of the variance that they explain.
    pub explained: f64,
    /// Noise variance σ² that they leave.
    pub noise_variance: f64,
    /// Total log-likelihood of PPCA; with missing values, of the observed cells. Of n rows, n as in
    /// [`counted_weight`](crate::data::counted_weight).
    pub log_likelihood: Option<f64>,
    /// −2ℓ + 2k.
    pub aic: Option<f64>,
    /// −2ℓ + k ln n, k = pq − q(q − 1)/2 + p + 1; n is the [`counted_weight`](crate::data::counted_weight)
    /// of the rows that have a cell.
    pub bic: Option<f64>,
    /// ln of Minka's evidence up to a constant \[Min00\].
    pub log_evidence: Option<f64>,
    /// Mean log density of held-out rows.
    pub cross_validated: Option<f64>,
    /// Its standard error over the folds.
    pub cross_validated_error: Option<f64>,
    /// Q² of hidden cells: 1 − PRESS/Σ(x − mean)², each cell in units of its feature's standard deviation,
    /// mean over the folds.
    pub q2: Option<f64>,
    /// Its standard error over the folds.
    pub q2_error: Option<f64>,
    /// Mean log predictive density of a hidden cell.
    pub cell_log_density: Option<f64>,
    /// Eigenvalue of the correlations.
    pub correlation_eigenvalue: Option<f64>,
    /// What it must exceed to be more than noise.
    pub noise_eigenvalue: Option<f64>,
}

/// What a method chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its name.
    pub method: String,
    /// q.
    pub components: usize,
    /// What it goes by.
    pub reason: String,
}

impl Choice {
    pub(super) fn new(method: &str, components: usize, reason: impl Into<String>) -> Self {
        Self { method: method.into(), components, reason: reason.into() }
    }
}

/// A method that chooses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub method: String,
    /// Why.
    pub reason: String,
}

impl Absent {
    pub(super) fn new(method: &str, reason: impl Into<String>) -> Self {
        Self { method: method.into(), reason: reason.into() }
    }
}

/// The table, the choices and the recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Rows of positive weight.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// Features that are left out of all this because they add no direction; `None` when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundant: Option<RedundantFeatures>,
    /// What is missing; `None` for complete rows.
    pub holes: Option<MissingCells>,
    /// From no component to the largest number that was looked at.
    pub table: Vec<Line>,
    /// One per method.
    pub choices: Vec<Choice>,
    /// Methods that choose nothing here.
    pub absent: Vec<Absent>,
    /// The number to take; at least 1.
    pub recommended: usize,
    /// Why.
    pub reason: String,
    /// Whether every fit that this took came to its end.
    pub converged: bool,
}

impl Selection {
    /// What a method chooses, by its name.
    pub fn choice(&self, method: &str) -> Option<&Choice> {
        self.choices.iter().find(|c| c.method == method)
    }
}

/// Held-out rows where there are some, else hidden cells, else the information criterion that is consistent.
pub(super) fn recommend(choices: &[Choice]) -> (usize, String) {
    let of = |method: &str| choices.iter().find(|c| c.method == method);
    let first = ["cross-validation", "cells", "bic"].into_iter().find_map(of);
    first.map_or((1, String::new()), |c| {
        let least = if c.components == 0 { "; a model needs one component all the same" } else { "" };
        (c.components.max(1), format!("{}: {}{least}", c.method, c.reason))
    })
}

//! What a fit of a GP-LVM adds to a report.

use serde::{Deserialize, Serialize};

/// What a fit of a GP-LVM adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GplvmReport {
    /// Name of the method: bayes or map.
    pub method: String,
    /// Name of the kernel: rbf or linear.
    pub kernel: String,
    /// Variance of the kernel, in the units of the fit.
    pub kernel_variance: f64,
    /// Noise variance of a cell, in the units of the fit.
    pub noise_variance: f64,
    /// Points that stand for the function.
    pub inducing: usize,
    /// How many were asked for, where that was more than there are rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// What was maximised, at the end: the lower bound on log p(Y), or log p(Y, X), or log p(Y | X) of dual PPCA.
    pub objective: f64,
    /// Relevance of each dimension relative to the largest.
    pub relevance: Vec<f64>,
    /// Kullback–Leibler divergence of the positions from N(0, I) along each dimension, per row: near 0 where a dimension
    /// carries nothing. Of positions that are points there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Vec<f64>>,
    /// Steps of the start that won.
    pub iterations: usize,
    /// Starts that were tried.
    pub starts: usize,
}

impl GplvmReport {
    /// Below this divergence, in nats per row, a dimension carries nothing.
    const NOTHING: f64 = 0.01;

    /// Which dimensions carry something.
    pub fn in_use(&self) -> Vec<bool> {
        match &self.divergence {
            Some(each) => each.iter().map(|d| *d > Self::NOTHING).collect(),
            None => vec![true; self.relevance.len()],
        }
    }
}

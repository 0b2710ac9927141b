//! What a fit of independent components adds to a report.

use serde::{Deserialize, Serialize};

/// What a fit of independent components adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IcaReport {
    /// Name of the method: picard, infomax, fastica.
    pub method: String,
    /// Steps of the start that won.
    pub iterations: usize,
    /// Starts that were tried.
    pub starts: usize,
    /// What the method maximises, per row: the log-likelihood of whitened sources, or FastICA's negentropy.
    pub objective: f64,
    /// How well each source was found again from other starts: the mean of its absolute correlation with the one
    /// that matches it; `None` with a single start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<Vec<f64>>,
    /// E log cosh of each source minus that of a normal variable, in standard errors: below 0 for heavy tails,
    /// above for light ones.
    pub contrast: Vec<f64>,
    /// Up to this size of the contrast, a source cannot be told from a normal one.
    pub normal_below: f64,
    /// Whether whitened rows were kept in memory between passes. Not part of a model file: the same model must give
    /// the same bytes.
    #[serde(skip)]
    pub kept: Option<bool>,
}

impl IcaReport {
    /// Sources that look normal, counted from 0. Two of them are not told apart: any turn of them will do.
    pub fn looks_normal(&self) -> Vec<bool> {
        self.contrast.iter().map(|c| c.abs() <= self.normal_below).collect()
    }
}

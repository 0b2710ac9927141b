//! What a fit of an autoassociative network adds to a report.

use serde::{Deserialize, Serialize};

/// What a fit of an autoassociative network adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkReport {
    /// tanh or linear.
    pub activation: String,
    /// Hidden units of the decoder, and of the encoder where there is one.
    pub hidden: usize,
    /// Whether there is an encoder.
    pub encoder: bool,
    /// Weights of the network.
    pub weights: usize,
    /// Decay of the weights towards PCA.
    pub alpha: f64,
    /// Steps: of adam, epochs.
    pub iterations: usize,
    /// Share of the variance that reconstructions hold: 1 − Σ(x − x̂)²/Σ(x − μ)² over the observed cells.
    pub explained: f64,
    /// The same of PCA, where the fit began.
    pub explained_by_pca: f64,
    /// σ², in the units of the divided features.
    pub noise_variance: f64,
    /// The objective at the start and at the end; `None` where a caller stopped before there was any training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<(f64, f64)>,
    /// Root of the mean squared error of the part that was hidden from the fit, at the start (PCA) and at the end, in
    /// the units of the divided features; `None` where nothing was hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_error: Option<(f64, f64)>,
}

//! What kernel PCA adds to a report.

use serde::{Deserialize, Serialize};

use crate::kernel::{Kernel, KernelForm};

/// Where landmarks came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandmarkMethod {
    /// Drawn from the rows by randomly pivoted Cholesky.
    Pivoted,
    /// Centres of clusters of the rows.
    KMeans,
    /// Given.
    Given,
}

/// What kernel PCA adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// Name of the kernel.
    pub kernel: String,
    /// γ; `None` where the kernel has none.
    pub gamma: Option<f64>,
    /// Degree of a polynomial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// The constant of a polynomial or sigmoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coef0: Option<f64>,
    /// Rows or landmarks that the model holds.
    pub points: usize,
    /// Where landmarks came from; `None` when the model is exact and holds the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landmarks: Option<LandmarkMethod>,
    /// Landmarks that were asked for, or chosen; more than there are different rows are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<usize>,
    /// Share of the trace of the centred kernel that the landmarks leave out; 0 when exact.
    pub left_out: f64,
    /// Components of the model of missing cells; `None` for complete rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling_components: Option<usize>,
    /// Components of positive variance among those of the model.
    pub rank: usize,
    /// (trace of the centred kernel − kept)/(n − 1 − q).
    pub noise_variance: f64,
    /// The most negative eigenvalue of the centred kernel; `None` where none is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<f64>,
}

impl KernelReport {
    /// Of an exact fit with so many rows.
    pub(super) fn new(kernel: Kernel, points: usize) -> Self {
        let (degree, coef0) = match kernel.form() {
            KernelForm::Polynomial { degree, coef0 } => (Some(degree), Some(coef0)),
            KernelForm::Sigmoid { coef0 } => (None, Some(coef0)),
            _ => (None, None),
        };
        Self {
            kernel: kernel.form().name().into(),
            gamma: kernel.form().has_gamma().then_some(kernel.gamma()),
            degree,
            coef0,
            points,
            landmarks: None,
            asked: None,
            left_out: 0.0,
            filling_components: None,
            rank: 0,
            noise_variance: 0.0,
            negative: None,
        }
    }
}

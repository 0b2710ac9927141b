//! A Gaussian process from latent coordinates to features: what a GP-LVM finds.

mod file;
mod hill;
mod place;
mod predict;
mod questions;

use std::sync::{Arc, OnceLock};

pub use place::Placement;

use super::arrays::{Arrays, StoredArrays};
use super::capability::{Decode, Encode, Fill, Generate, LatentPosterior, Reconstruct};
use super::{AnyModel, Capability, Kind, Model};
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel, Psi};
use crate::linalg::{Mat, packed, packed_len};
use place::Candidates;

/// Its kind.
pub static KIND: Kind = Kind {
    name: "gplvm",
    title: "a GP-LVM",
    about: "latent coordinates and a Gaussian process from them to the features: curved surfaces",
    components: "latent dimensions",
    capabilities: &[
        Capability::Encode,
        Capability::Posterior,
        Capability::Decode,
        Capability::Reconstruct,
        Capability::Sample,
        Capability::Fill,
    ],
    read: |file: &dyn StoredArrays| Ok(Arc::new(file::read(file)?)),
};

/// The numbers of a Gaussian process latent variable model.
#[derive(Debug, Clone)]
pub struct ProcessParts {
    /// What is taken off each feature (p).
    pub mean: Vec<f64>,
    /// What features are divided by (p); ones when they are not. All other numbers are in those units.
    pub divisors: Vec<f64>,
    /// k(x, x′) of latent coordinates.
    pub kernel: LatentKernel,
    /// Variance of a constant that is added to the kernel: 0 without one.
    pub bias: f64,
    /// Noise variance of a cell.
    pub noise: f64,
    /// Points Z that stand for the function (M × q).
    pub inducing: Mat<f64>,
    /// The function's mean at x is (k(x, Z) + bias) times these (M × p).
    pub weights: Mat<f64>,
    /// Its variance at x is k(x, x) + bias less the quadratic form of k(x, Z) + bias with this symmetric matrix (M × M), of
    /// which the lower triangle stands row after row in a column; one for all features, or one for each.
    pub reduction: Mat<f64>,
    /// Latent positions of the rows of the fit: means (n × q).
    pub latent_mean: Mat<f64>,
    /// Their variances (n × q); zeros where positions are points.
    pub latent_variance: Mat<f64>,
}

/// A Gaussian process latent variable model: x ~ N(0, I) in q dimensions, each feature a function of x with a Gaussian
/// process prior, and noise \[L05, TL10\].
///
/// What is known of the functions stands in `weights` and `reduction`, so that new rows need no rows of the fit. A
/// new row is placed by maximising a bound on its density over the mean and variance of its position
/// ([`place`](Self::place)).
#[derive(Debug, Clone)]
pub struct LatentProcess {
    parts: ProcessParts,
    psi: Arc<Psi>,
    candidates: Arc<OnceLock<Candidates>>,
}

impl LatentProcess {
    /// A model of these numbers.
    ///
    /// # Errors
    /// When lengths disagree, or a number is not possible.
    pub fn new(parts: ProcessParts) -> Result<Self> {
        check_lengths(&parts)?;
        check_numbers(&parts)?;
        let psi = Psi::new(parts.kernel.clone(), parts.inducing.clone());
        Ok(Self { parts, psi: Arc::new(psi), candidates: Arc::default() })
    }

    /// Its numbers.
    pub fn parts(&self) -> &ProcessParts {
        &self.parts
    }

    /// Number of inducing points, M.
    pub fn n_inducing(&self) -> usize {
        self.parts.inducing.nrows()
    }

    /// Noise variance of each feature, in the units of the data (p).
    pub fn noise_variances(&self) -> Vec<f64> {
        self.parts.divisors.iter().map(|d| d * d * self.parts.noise).collect()
    }

    /// Relevance of each dimension relative to the largest (q): how fast the surface bends along it, times the variance of
    /// the positions.
    pub fn relevance(&self) -> Vec<f64> {
        let each = relevances(self.parts.kernel.relevance(), &self.parts.latent_mean);
        let largest = each.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        each.iter().map(|r| r / largest).collect()
    }

    /// Whether positions are points, not distributions.
    pub fn has_points(&self) -> bool {
        self.parts.latent_variance.norm_max() == 0.0
    }

    /// The group of a feature among those with a reduction of their own.
    fn group(&self, feature: usize) -> usize {
        if self.parts.reduction.ncols() == 1 { 0 } else { feature }
    }

    /// The reduction of a group as a matrix (M × M).
    fn reduction(&self, group: usize) -> Mat<f64> {
        let (m, column) = (self.n_inducing(), self.parts.reduction.col_as_slice(group));
        Mat::from_fn(m, m, |i, j| column[packed(i.max(j), i.min(j))])
    }
}

/// Relevance of each dimension: αₖ times the second moment of the positions around their mean (q).
pub(crate) fn relevances(alpha: &[f64], positions: &Mat<f64>) -> Vec<f64> {
    let n = positions.nrows().max(1) as f64;
    let spread = |k: usize| -> f64 {
        let column = positions.col_as_slice(k);
        let mean = column.iter().sum::<f64>() / n;
        column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
    };
    alpha.iter().enumerate().map(|(k, a)| a * spread(k)).collect()
}

fn check_lengths(parts: &ProcessParts) -> Result<()> {
    let (m, q, p) = (parts.inducing.nrows(), parts.kernel.n_latent(), parts.mean.len());
    if p == 0 || m == 0 {
        return Err(if p == 0 { Error::NoFeatures } else { Error::NoRows });
    }
    let groups = parts.reduction.ncols();
    let lengths = [
        ("divisors", p, parts.divisors.len()),
        ("coordinates of inducing points", q, parts.inducing.ncols()),
        ("weights of inducing points", m, parts.weights.nrows()),
        ("features of the weights", p, parts.weights.ncols()),
        ("pairs of inducing points", packed_len(m), parts.reduction.nrows()),
        ("groups of features", if groups == 1 { 1 } else { p }, groups),
        ("coordinates of positions", q, parts.latent_mean.ncols()),
        ("variances of positions", parts.latent_mean.nrows(), parts.latent_variance.nrows()),
        ("coordinates of variances", q, parts.latent_variance.ncols()),
    ];
    match lengths.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(Error::Length { what, expected, found }),
        None => Ok(()),
    }
}

fn check_numbers(parts: &ProcessParts) -> Result<()> {
    let matrices =
        [&parts.inducing, &parts.weights, &parts.reduction, &parts.latent_mean, &parts.latent_variance];
    let finite =
        matrices.iter().all(|m| m.as_ref().is_all_finite()) && parts.mean.iter().all(|x| x.is_finite());
    if !finite {
        let (name, value) = ("a number of the GP-LVM", "not finite".into());
        return Err(Error::Parameter { name, value, allowed: "finite" });
    }
    let wrong = |name, value: f64, allowed| Err(Error::Parameter { name, value: value.to_string(), allowed });
    let positive = |x: f64| x.is_finite() && x > 0.0 && (1.0 / x).is_finite();
    if let Some(d) = parts.divisors.iter().find(|d| !positive(**d)) {
        return wrong("what a feature is divided by", *d, "finite and positive");
    }
    if !positive(parts.noise) {
        return wrong("the noise variance of the GP-LVM", parts.noise, "finite and positive");
    }
    if !(parts.bias.is_finite() && parts.bias >= 0.0) {
        return wrong("the bias of the kernel", parts.bias, "finite and not negative");
    }
    match parts.latent_variance.col_iter().flat_map(|c| c.iter().copied()).find(|v| *v < 0.0) {
        Some(v) => wrong("the variance of a latent position", v, "not negative"),
        None if parts.bias > 0.0 && parts.latent_variance.norm_max() > 0.0 => {
            wrong("the bias of the kernel of positions with a variance", parts.bias, "0")
        }
        None => Ok(()),
    }
}

impl Model for LatentProcess {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.parts.mean.len()
    }

    fn n_latent(&self) -> usize {
        self.parts.kernel.n_latent()
    }

    fn arrays(&self) -> Arrays {
        file::arrays(&self.parts)
    }

    /// One noise for all features is one only in the units of the fit, so the factors stay with the model.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let times = |of: &[f64]| of.iter().zip(scale).map(|(x, d)| x * d).collect::<Vec<_>>();
        let (mean, divisors) = (times(&self.parts.mean), times(&self.parts.divisors));
        Ok(Arc::new(Self::new(ProcessParts { mean, divisors, ..self.parts.clone() })?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_posterior(&self) -> Option<&dyn LatentPosterior> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_generate(&self) -> Option<&dyn Generate> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }
}

/// The form of a kernel as it stands in files.
fn code(form: LatentForm) -> f64 {
    match form {
        LatentForm::Linear => 0.0,
        LatentForm::Rbf => 1.0,
    }
}

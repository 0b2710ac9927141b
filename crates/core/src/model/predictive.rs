//! Bayesian PCA: what a new row looks like when the parameters are known up to a distribution.

use super::{LinearGaussian, Noise};
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// Standard deviations of the parameters.
#[derive(Debug, Clone)]
pub struct Uncertainty {
    /// Of W (p × q).
    pub loadings: Mat<f64>,
    /// Of μ (p).
    pub mean: Vec<f64>,
}

/// A linear-Gaussian model whose columns of W have a precision α each, with the uncertainty of W and μ in its density.
///
/// With $w_j \sim N(\bar w_j, S_j)$ and $\mu_j \sim N(\bar\mu_j, s_j)$ a new row has mean $\bar\mu$ and covariance
/// $\bar W \bar W^\top + \operatorname{diag}(\sigma^2 + \operatorname{tr} S_j + s_j)$; the normal density of that mean and covariance
/// answers every question, so deviations of imputed cells, log densities, T² and p-values include what is not known.
#[derive(Debug, Clone)]
pub struct Predictive {
    gaussian: LinearGaussian,
    noise: f64,
    precisions: Vec<f64>,
    uncertainty: Option<Uncertainty>,
}

impl Predictive {
    /// Of the means of μ (p) and W (p × q), the noise variance σ² and the precision α of each column (q); without uncertainty, W and μ are
    /// points.
    ///
    /// # Errors
    /// When shapes disagree, or a number is not finite or negative.
    pub fn new(
        mean: Vec<f64>,
        loadings: Mat<f64>,
        noise: f64,
        precisions: Vec<f64>,
        uncertainty: Option<Uncertainty>,
    ) -> Result<Self> {
        let (p, q) = (loadings.nrows(), loadings.ncols());
        check_length("precisions", q, precisions.len())?;
        if let Some(known) = &uncertainty {
            check_length("deviations of the mean", p, known.mean.len())?;
            check_length("rows of the deviations of the loadings", p, known.loadings.nrows())?;
            check_length("columns of the deviations of the loadings", q, known.loadings.ncols())?;
        }
        let negative = |x: &&f64| x.is_nan() || **x < 0.0;
        let known = uncertainty.iter();
        let columns = known.clone().flat_map(|known| (0..q).map(|k| known.loadings.col_as_slice(k)));
        let deviations = known.map(|known| known.mean.as_slice()).chain(columns).flatten();
        if let Some(bad) = precisions.iter().chain(deviations).find(negative) {
            let (name, value) = ("a precision or deviation", bad.to_string());
            return Err(Error::Parameter { name, value, allowed: "0 or positive" });
        }
        let gaussian = LinearGaussian::new(mean, loadings, predictive_noise(noise, uncertainty.as_ref()))?;
        Ok(Self { gaussian, noise, precisions, uncertainty })
    }

    /// The density of a new row.
    pub fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    /// Mean of μ (p).
    pub fn mean(&self) -> &[f64] {
        self.gaussian.mean()
    }

    /// Number of components that are left, q.
    pub fn n_latent(&self) -> usize {
        self.gaussian.n_latent()
    }

    /// Variance of the noise of a cell when W and μ are known: 1/E\[τ\].
    pub fn noise_variance(&self) -> f64 {
        self.noise
    }

    /// α of each column of W (q): the reciprocal of its mean square.
    pub fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// How well W and μ are known; `None` when they are points (ARD).
    pub fn uncertainty(&self) -> Option<&Uncertainty> {
        self.uncertainty.as_ref()
    }
}

/// The noise and what is not known of each feature; one number where it is the same for all.
fn predictive_noise(noise: f64, uncertainty: Option<&Uncertainty>) -> Noise {
    let Some(known) = uncertainty else { return Noise::Isotropic(noise) };
    let of = |(w, mean): (f64, &f64)| noise + w + mean * mean;
    let rows = known.loadings.row_iter().map(|w| w.squared_norm_l2());
    let each: Vec<f64> = rows.zip(&known.mean).map(of).collect();
    match each.iter().all(|v| *v == each[0]) {
        true => Noise::Isotropic(each.first().copied().unwrap_or(noise)),
        false => Noise::Diagonal(each),
    }
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

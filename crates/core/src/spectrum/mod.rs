//! The leading eigenvalues and directions of a covariance: what every closed-form solver returns.

pub(crate) mod criteria;
pub(crate) mod minka;

use crate::error::{Error, Result};
use crate::linalg::{
    Eigen, Mat, MatRef, comparable, complete_basis, graded_columns, negligible, right_singular,
    standard_signs,
};
use crate::model::{LinearGaussian, Noise, PrincipalComponents};

/// Eigenvalues λ (divisor n, descending), the leading directions u and the total variance of weighted rows.
///
/// Four solvers make it and one formula each makes PPCA, PCA, whitening and the likelihood from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    mean: Vec<f64>,
    eigenvalues: Vec<f64>,
    vectors: Mat<f64>, // (p × q)
    total_variance: f64,
    rows: usize,
    weight: f64,
    distortion: Option<f64>,     // when measured on the rows themselves
    log_likelihood: Option<f64>, // when values are missing
    own_scale: bool,             // whether each eigenvalue is known to its own scale
}

/// What a solver has found, before conventions are applied.
pub(crate) struct RawSpectrum {
    pub(crate) mean: Vec<f64>,
    /// Descending; all that can differ from 0, or as many as there are vectors.
    pub(crate) eigenvalues: Vec<f64>,
    /// (p × q).
    pub(crate) vectors: Mat<f64>,
    pub(crate) total_variance: f64,
    pub(crate) rows: usize,
    pub(crate) weight: f64,
    /// What the vectors leave, when measured on the rows themselves.
    pub(crate) distortion: Option<f64>,
    /// Of the observed cells, when values are missing: no closed form has it.
    pub(crate) log_likelihood: Option<f64>,
    /// Whether each eigenvalue is known to its own scale, and those that are not there are exactly 0.
    pub(crate) own_scale: bool,
}

impl RawSpectrum {
    /// From complete rows, of which there were `(rows, weight)`; what the vectors leave follows from the
    /// total.
    pub(crate) fn new(
        mean: Vec<f64>,
        (eigenvalues, vectors): (Vec<f64>, Mat<f64>),
        total_variance: f64,
        (rows, weight): (usize, f64),
    ) -> Self {
        let (distortion, log_likelihood) = (None, None);
        let own_scale = false;
        Self {
            mean,
            eigenvalues,
            vectors,
            total_variance,
            rows,
            weight,
            distortion,
            log_likelihood,
            own_scale,
        }
    }
}

impl Spectrum {
    /// Applies the conventions: at most min(rows − 1, p) eigenvalues, rounding below the rank set to 0,
    /// directions of eigenvalue 0 completed in one fixed way, the largest entry of each direction positive.
    pub(crate) fn new(raw: RawSpectrum) -> Result<Self> {
        let RawSpectrum { mean, mut eigenvalues, mut vectors, total_variance, rows, weight, .. } = raw;
        let (distortion, log_likelihood, own_scale) = (raw.distortion, raw.log_likelihood, raw.own_scale);
        check_variance(rows, total_variance)?;
        let p = mean.len();
        eigenvalues.truncate(p.min(rows - 1));
        let largest = eigenvalues.first().copied().unwrap_or(total_variance);
        let floor = if own_scale { 0.0 } else { negligible(rows, p, largest) };
        eigenvalues.iter_mut().filter(|v| **v <= floor).for_each(|v| *v = 0.0);
        let rank = eigenvalues.iter().take(vectors.ncols()).filter(|v| **v > 0.0).count();
        complete_basis(&mut vectors, rank);
        standard_signs(&mut vectors);
        Ok(Self {
            mean,
            eigenvalues,
            vectors,
            total_variance,
            rows,
            weight,
            distortion,
            log_likelihood,
            own_scale,
        })
    }

    /// The spectrum of the covariance W Wᵀ + σ²I that a fit with missing values has found, with the
    /// log-likelihood of the observed cells; loadings (p × q).
    pub(crate) fn of_model(
        mean: Vec<f64>,
        loadings: MatRef<'_, f64>,
        noise: f64,
        (rows, weight): (usize, f64),
        log_likelihood: f64,
    ) -> Result<Self> {
        let (squares, vectors) = principal_axes(loadings, noise)?;
        let eigenvalues: Vec<f64> = squares.iter().map(|s| s + noise).collect();
        let distortion = noise * (mean.len() - squares.len()) as f64;
        let total_variance = eigenvalues.iter().sum::<f64>() + distortion;
        Self::new(RawSpectrum {
            mean,
            eigenvalues,
            vectors,
            total_variance,
            rows,
            weight,
            distortion: Some(distortion),
            log_likelihood: Some(log_likelihood),
            own_scale: true,
        })
    }

    /// The same eigenvalues with fewer directions kept; with none, all variance is noise.
    pub(crate) fn leading(&self, q: usize) -> Self {
        let vectors = self.vectors.as_ref().subcols(0, q).to_owned();
        let given_up: f64 = self.eigenvalues[q..self.n_components()].iter().sum();
        let distortion = if q == 0 { self.total_variance } else { self.distortion() + given_up };
        Self { vectors, distortion: Some(distortion), log_likelihood: None, ..self.clone() }
    }

    /// Whether each eigenvalue is known to its own scale.
    pub(crate) fn own_scale(&self) -> bool {
        self.own_scale
    }

    /// As if the same rows had another total weight.
    pub(crate) fn with_weight(self, weight: f64) -> Self {
        let log_likelihood = self.log_likelihood.map(|value| value * (weight / self.weight));
        Self { weight, log_likelihood, ..self }
    }

    /// Mean of the rows (p).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Eigenvalues with divisor n, descending: all that can differ from 0 when the solver computed them, else
    /// the leading [`n_components`](Self::n_components).
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// The leading unit directions (p × q).
    pub fn vectors(&self) -> &Mat<f64> {
        &self.vectors
    }

    /// Number of leading directions, q.
    pub fn n_components(&self) -> usize {
        self.vectors.ncols()
    }

    /// Number of features, p.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// Trace of the covariance.
    pub fn total_variance(&self) -> f64 {
        self.total_variance
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Total weight: the number of rows when no weights were given.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether all eigenvalues that can differ from 0 are known.
    pub fn is_whole(&self) -> bool {
        self.eigenvalues.len() == self.n_features().min(self.rows - 1)
    }

    /// Share of the total variance along each of the q directions.
    pub fn explained_ratio(&self) -> Vec<f64> {
        self.eigenvalues[..self.n_components()].iter().map(|v| v / self.total_variance).collect()
    }

    /// The distortion J: mean squared distance of rows from the subspace of the first q directions, Σ of the
    /// discarded eigenvalues (PRML 12.1.2).
    pub fn distortion(&self) -> f64 {
        let q = self.n_components();
        let rest = match self.distortion {
            Some(measured) => measured,
            // No cancellation: the parts are there to be added.
            None if self.is_whole() => self.eigenvalues[q..].iter().sum(),
            None => self.total_variance - self.eigenvalues[..q].iter().sum::<f64>(),
        };
        if rest <= self.rounding() { 0.0 } else { rest }
    }

    /// A sum of variances up to this is rounding.
    pub(crate) fn rounding(&self) -> f64 {
        if self.own_scale { 0.0 } else { negligible(self.rows, self.n_features(), self.total_variance) }
    }

    /// The maximum-likelihood noise variance, $\sigma^2 = J / (p - q)$ \[TB99, eq. 8\]; 0 when q = p.
    pub fn noise_variance(&self) -> f64 {
        match self.n_features() - self.n_components() {
            0 => 0.0,
            left => self.distortion() / left as f64,
        }
    }

    /// The maximum-likelihood PPCA model: $W = U(\Lambda - \sigma^2 I)^{1/2}$ \[TB99, eq. 7\].
    ///
    /// # Errors
    /// When a number overflows.
    pub fn ppca(&self) -> Result<LinearGaussian> {
        let noise = self.noise_variance();
        let mut loadings = self.vectors.clone();
        for (j, value) in self.eigenvalues[..self.n_components()].iter().enumerate() {
            let length = (value - noise).max(0.0).sqrt();
            loadings.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= length);
        }
        LinearGaussian::new(self.mean.clone(), loadings, Noise::Isotropic(noise))
    }

    /// Classical PCA from the same numbers.
    ///
    /// # Errors
    /// When a number overflows.
    pub fn pca(&self) -> Result<PrincipalComponents> {
        PrincipalComponents::new(
            self.mean.clone(),
            self.vectors.clone(),
            self.eigenvalues[..self.n_components()].to_vec(),
            self.noise_variance(),
        )
    }

    /// Log-likelihood of the rows under [`ppca`](Self::ppca), in closed form:
    /// $-\frac n2 \left( p \ln 2\pi + \sum_{i \le q} \ln\lambda_i + (p-q) \ln\sigma^2 + p \right)$.
    ///
    /// Of rows with missing values it is that of the observed cells, as the fit has found it. Infinite when
    /// the rows lie in a subspace that the model spans without noise.
    pub fn log_likelihood(&self) -> f64 {
        if let Some(of_observed_cells) = self.log_likelihood {
            return of_observed_cells;
        }
        let (p, q) = (self.n_features(), self.n_components());
        let noise = if p > q { (p - q) as f64 * self.noise_variance().ln() } else { 0.0 };
        let log_det = noise + self.eigenvalues[..q].iter().map(|v| v.ln()).sum::<f64>();
        let p = p as f64;
        -0.5 * self.weight * (p * (2.0 * std::f64::consts::PI).ln() + log_det + p)
    }
}

/// Squared lengths and directions (p × q) of the principal axes of W Wᵀ, each to the scale of its own
/// features.
fn principal_axes(loadings: MatRef<'_, f64>, noise: f64) -> Result<(Vec<f64>, Mat<f64>)> {
    let scales: Vec<f64> = loadings.row_iter().map(|w| w.squared_norm_l2() + noise).collect();
    if comparable(scales.iter().copied()) {
        let (values, vectors) = right_singular(loadings.transpose())?;
        return Ok((values.iter().map(|s| s * s).collect(), vectors));
    }
    let Eigen { values, vectors } = graded_columns(loadings);
    Ok((values, vectors))
}

fn check_variance(rows: usize, total: f64) -> Result<()> {
    if rows < 2 {
        return Err(if rows == 0 { Error::NoRows } else { Error::TooFewRows { rows, needed: 2 } });
    }
    if total == 0.0 {
        return Err(Error::Constant);
    }
    if total.is_normal() { Ok(()) } else { Err(Error::Scale) }
}

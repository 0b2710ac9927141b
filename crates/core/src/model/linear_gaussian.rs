//! The linear-Gaussian model x = W z + μ + ε: probabilistic PCA with equal noise, factor analysis with noise per feature.

use crate::error::{Error, Result};
use crate::linalg::{Mat, orthonormality_error, product};

/// Variance of the noise ε.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// The same σ² for every feature: PPCA, and PCA in the limit 0.
    Isotropic(f64),
    /// ψ, one per feature: factor analysis.
    Diagonal(Vec<f64>),
}

impl Noise {
    /// Variance of the noise of a feature.
    pub fn of(&self, feature: usize) -> f64 {
        match self {
            Self::Isotropic(v) => *v,
            Self::Diagonal(psi) => psi[feature],
        }
    }

    fn select(&self, features: &[usize]) -> Self {
        match self {
            Self::Isotropic(v) => Self::Isotropic(*v),
            Self::Diagonal(psi) => Self::Diagonal(features.iter().map(|&j| psi[j]).collect()),
        }
    }
}

/// x = W z + μ + ε with z ~ N(0, I), ε ~ N(0, noise): three immutable fields and all that follows from them.
///
/// Rows may have holes (NaN): every question is then answered from the observed cells, with the others integrated out.
/// Costs are O(n·p·q); nothing p × p is ever formed unless [`covariance`](Self::covariance) is asked for.
///
/// ```
/// use covary::linalg::Mat;
/// use covary::model::{LinearGaussian, Noise};
/// use covary::data::Rows;
///
/// let w = Mat::from_fn(2, 1, |i, _| [1.0, 2.0][i]);
/// let model = LinearGaussian::new(vec![0.0, 0.0], w, Noise::Isotropic(0.5))?;
/// let rows = [1.0, 2.0, 1.0, f64::NAN];
/// let log_density = model.log_density(Rows::from_slice(&rows, 2)?)?;
/// // The second row is judged by its first cell alone: N(0, 1 + 0.5).
/// let expected = -0.5 * ((2.0 * std::f64::consts::PI * 1.5).ln() + 1.0 / 1.5);
/// assert!((log_density[1] - expected).abs() < 1e-14);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinearGaussian {
    mean: Vec<f64>,
    loadings: Mat<f64>, // W (p × q)
    noise: Noise,
}

impl LinearGaussian {
    /// A model of given numbers: mean (p), loadings (p × q) and noise.
    ///
    /// # Errors
    /// When shapes disagree, a number is not finite, an isotropic noise is negative or a diagonal one not positive.
    pub fn new(mean: Vec<f64>, loadings: Mat<f64>, noise: Noise) -> Result<Self> {
        let p = mean.len();
        if loadings.nrows() != p {
            return Err(Error::Length { what: "rows of the loadings", expected: p, found: loadings.nrows() });
        }
        let finite = mean.iter().all(|m| m.is_finite())
            && (0..loadings.ncols()).all(|j| loadings.col_as_slice(j).iter().all(|x| x.is_finite()));
        if !finite {
            return Err(parameter("the mean or the loadings", &"not finite", "finite numbers"));
        }
        check_noise(&noise, p)?;
        Ok(Self { mean, loadings, noise })
    }

    /// μ (p).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// W (p × q).
    pub fn loadings(&self) -> &Mat<f64> {
        &self.loadings
    }

    /// Variance of ε.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.loadings.ncols()
    }

    /// C = W Wᵀ + noise (p × p).
    pub fn covariance(&self) -> Mat<f64> {
        let mut c = product(self.loadings.as_ref(), self.loadings.transpose());
        (0..self.n_features()).for_each(|j| c[(j, j)] += self.noise.of(j));
        c
    }

    /// The model of some of the features, in the given order.
    ///
    /// # Errors
    /// When a feature does not exist.
    pub fn marginal(&self, features: &[usize]) -> Result<Self> {
        if let Some(j) = features.iter().find(|j| **j >= self.n_features()) {
            return Err(parameter("a feature", &j, "an index below the number of features"));
        }
        Ok(Self {
            mean: features.iter().map(|&j| self.mean[j]).collect(),
            loadings: Mat::from_fn(features.len(), self.n_latent(), |i, j| self.loadings[(features[i], j)]),
            noise: self.noise.select(features),
        })
    }

    /// The same distribution with latent axes turned by an orthogonal R (q × q): W ← W R.
    ///
    /// # Errors
    /// When R is not orthogonal.
    pub fn rotate(&self, rotation: &Mat<f64>) -> Result<Self> {
        let q = self.n_latent();
        if (rotation.nrows(), rotation.ncols()) != (q, q) {
            return Err(Error::Length { what: "rows of the rotation", expected: q, found: rotation.nrows() });
        }
        let error = orthonormality_error(rotation.as_ref());
        if error.is_nan() || error > 1e-8 {
            return Err(parameter("RᵀR − I of the rotation", &error, "0: the matrix must be orthogonal"));
        }
        let loadings = product(self.loadings.as_ref(), rotation.as_ref());
        Self::new(self.mean.clone(), loadings, self.noise.clone())
    }
}

fn check_noise(noise: &Noise, p: usize) -> Result<()> {
    match noise {
        Noise::Isotropic(v) if !v.is_finite() || *v < 0.0 => {
            Err(parameter("the noise variance", &v, "finite and not negative"))
        }
        Noise::Diagonal(psi) if psi.len() != p => {
            Err(Error::Length { what: "noise variances", expected: p, found: psi.len() })
        }
        Noise::Diagonal(psi) => match psi.iter().find(|v| !v.is_finite() || **v <= 0.0) {
            Some(v) => Err(parameter("a noise variance", &v, "finite and positive")),
            None => Ok(()),
        },
        Noise::Isotropic(_) => Ok(()),
    }
}

fn parameter(name: &'static str, value: &dyn std::fmt::Display, allowed: &'static str) -> Error {
    Error::Parameter { name, value: value.to_string(), allowed }
}

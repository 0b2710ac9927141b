//! The linear-Gaussian model x = W z + μ + ε: probabilistic PCA with equal noise, factor analysis with noise
//! per feature.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linalg::serial;
use crate::linalg::{
    Mat, column_norm, complete_basis, orthonormality_error, product, right_singular, standard_signs,
};
use crate::memory;

/// Variance of the noise ε.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

    /// Its mean over the features; 0 when there are none.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Isotropic(v) => *v,
            Self::Diagonal(psi) => psi.iter().sum::<f64>() / psi.len().max(1) as f64,
        }
    }

    pub(super) fn select(&self, features: &[usize]) -> Self {
        match self {
            Self::Isotropic(v) => Self::Isotropic(*v),
            Self::Diagonal(psi) => Self::Diagonal(features.iter().map(|&j| psi[j]).collect()),
        }
    }
}

impl From<f64> for Noise {
    fn from(variance: f64) -> Self {
        Self::Isotropic(variance)
    }
}

/// x = W z + μ + ε with z ~ N(0, I), ε ~ N(0, noise): three immutable fields and all that follows from them.
///
/// Rows may have missing values (NaN): every question is then answered from the observed cells, with the
/// others integrated out. Costs are O(n·p·q); nothing p × p is ever formed unless
/// [`covariance`](Self::covariance) is asked for.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinearGaussian {
    mean: Vec<f64>,
    #[serde(with = "serial")]
    loadings: Mat<f64>, // W (p × q)
    noise: Noise,
}

impl LinearGaussian {
    /// A model of given numbers: mean (p), loadings (p × q) and noise.
    ///
    /// # Errors
    /// When shapes disagree, a number or the sum of all variances is not finite, an isotropic noise is
    /// negative or a diagonal one not positive.
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
        let variance = loadings.squared_norm_l2() + noise.mean() * p as f64;
        if !variance.is_finite() {
            return Err(parameter("the variance of all features", &variance, "finite: scale the features"));
        }
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

    /// The same with other noise.
    ///
    /// # Errors
    /// When a variance is not finite or negative, or there is not one for each feature.
    pub(crate) fn with_noise(self, noise: Noise) -> Result<Self> {
        check_noise(&noise, self.n_features())?;
        Ok(Self { noise, ..self })
    }

    /// C = W Wᵀ + noise (p × p).
    pub fn covariance(&self) -> Mat<f64> {
        let mut c = product(self.loadings.as_ref(), self.loadings.transpose());
        (0..self.n_features()).for_each(|j| c[(j, j)] += self.noise.of(j));
        c
    }

    /// The same, refused before it is made when memory is not enough.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn try_covariance(&self) -> Result<Mat<f64>> {
        memory::check("the covariance of all features", &[self.n_features(), self.n_features()])?;
        Ok(self.covariance())
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

impl LinearGaussian {
    /// Orthonormal directions u of the plane (p × q) in descending order of the loadings along them, and the
    /// variance uᵀCu along each.
    ///
    /// The columns of W scaled to length 1 where they are orthogonal already, as those of a fit are;
    /// otherwise its left singular vectors.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn principal_axes(&self) -> Result<(Mat<f64>, Vec<f64>)> {
        let w = self.loadings();
        let (p, q) = (w.nrows(), w.ncols());
        let lengths: Vec<f64> = (0..q).map(|j| column_norm(w.as_ref(), j)).collect();
        let rank = lengths.iter().filter(|l| **l > 0.0).count();
        let scaled = Mat::from_fn(p, q, |i, j| if lengths[j] > 0.0 { w[(i, j)] / lengths[j] } else { 0.0 });
        let descending = lengths.windows(2).all(|pair| pair[0] >= pair[1]);
        let mut axes = match descending && orthonormality_error(scaled.as_ref().subcols(0, rank)) < 1e-8 {
            true => scaled,
            // The right singular vectors of Wᵀ.
            false => right_singular(w.transpose())?.1,
        };
        if axes.ncols() < q {
            axes = Mat::from_fn(p, q, |i, j| if j < axes.ncols() { axes[(i, j)] } else { 0.0 });
        }
        complete_basis(&mut axes, rank.min(p));
        standard_signs(&mut axes);
        let along = product(w.transpose(), axes.as_ref()); // (q × q)
        let noise = |j: usize| (0..p).map(|i| axes[(i, j)].powi(2) * self.noise.of(i)).sum::<f64>();
        let variances = (0..q).map(|j| along.col(j).squared_norm_l2() + noise(j)).collect();
        Ok((axes, variances))
    }
}

fn check_noise(noise: &Noise, p: usize) -> Result<()> {
    match noise {
        Noise::Isotropic(v) if !v.is_finite() || *v < 0.0 => {
            Err(parameter("the noise variance", &v, "finite and not negative"))
        }
        // Its reciprocal is beyond all numbers.
        Noise::Isotropic(v) if v.is_subnormal() => {
            Err(parameter("the noise variance", &v, "0 or at least 2.3e-308: scale the features"))
        }
        Noise::Diagonal(psi) if psi.len() != p => {
            Err(Error::Length { what: "noise variances", expected: p, found: psi.len() })
        }
        Noise::Diagonal(psi) => match psi.iter().find(|v| !v.is_normal() || **v <= 0.0) {
            Some(v) => Err(parameter("a noise variance", &v, "finite and at least 2.3e-308")),
            None => Ok(()),
        },
        Noise::Isotropic(_) => Ok(()),
    }
}

fn parameter(name: &'static str, value: &dyn std::fmt::Display, allowed: &'static str) -> Error {
    Error::Parameter { name, value: value.to_string(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(w: Mat<f64>) -> LinearGaussian {
        LinearGaussian::new(vec![0.0; w.nrows()], w, Noise::Isotropic(0.5)).unwrap()
    }

    #[test]
    fn axes_do_not_depend_on_the_rotation_of_the_loadings() {
        let w = Mat::from_fn(3, 2, |i, j| [[2.0, 0.0], [1.0, -1.0], [2.0, 0.5]][i][j]);
        let (c, s) = (0.6, 0.8);
        let turn = Mat::from_fn(2, 2, |i, j| [[c, -s], [s, c]][i][j]);
        let (u, variances) = model(product(w.as_ref(), turn.as_ref())).principal_axes().unwrap();
        let (straight, _) = model(w.clone()).principal_axes().unwrap();
        assert!(orthonormality_error(u.as_ref()) < 1e-12);
        // Cu = λu: eigenvectors of the covariance that the model stands for.
        let c = model(w).covariance();
        for j in 0..2 {
            let image = product(c.as_ref(), u.as_ref().subcols(j, 1));
            for i in 0..3 {
                assert!((image[(i, 0)] - variances[j] * u[(i, j)]).abs() < 1e-12);
                assert!((u[(i, j)] - straight[(i, j)]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn loadings_of_no_length_get_directions_too() {
        let w = Mat::from_fn(3, 2, |i, j| if (i, j) == (1, 0) { -2.0 } else { 0.0 });
        let (u, variances) = model(w).principal_axes().unwrap();
        assert_eq!((u[(1, 0)], variances), (1.0, vec![4.5, 0.5]));
        assert!(orthonormality_error(u.as_ref()) < 1e-14);
    }
}

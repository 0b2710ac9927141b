//! Classical PCA: an orthogonal projection on the directions of largest variance.

use super::{LinearGaussian, Noise, Reconstruction};
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, complete_basis, orthonormality_error};

/// Directions of largest variance, the variance along each (divisor n) and the noise variance of the rest.
///
/// The same numbers as PPCA read in another way: [`gaussian`](Self::gaussian) gives the density, and the projection is
/// the limit of its posterior mean as the noise goes to 0.
#[derive(Debug, Clone)]
pub struct PrincipalComponents {
    mean: Vec<f64>,
    components: Mat<f64>, // U (p × q), orthonormal columns
    variances: Vec<f64>,  // λ (q)
    noise_variance: f64,
}

impl PrincipalComponents {
    /// From given numbers: mean (p), orthonormal directions (p × q), the variance along each (q) and that of the rest.
    ///
    /// # Errors
    /// When shapes disagree, the directions are not orthonormal or a variance is negative.
    pub fn new(
        mean: Vec<f64>,
        components: Mat<f64>,
        variances: Vec<f64>,
        noise_variance: f64,
    ) -> Result<Self> {
        let q = components.ncols();
        if components.nrows() != mean.len() {
            let (expected, found) = (mean.len(), components.nrows());
            return Err(Error::Length { what: "cells of each direction", expected, found });
        }
        if variances.len() != q {
            return Err(Error::Length { what: "variances", expected: q, found: variances.len() });
        }
        let error = orthonormality_error(components.as_ref());
        if error.is_nan() || error > 1e-8 {
            let value = error.to_string();
            return Err(Error::Parameter {
                name: "UᵀU − I", value, allowed: "0: orthonormal directions"
            });
        }
        if let Some(v) = variances.iter().find(|v| !v.is_finite() || **v < 0.0) {
            let allowed = "finite and not negative";
            return Err(Error::Parameter { name: "a variance", value: v.to_string(), allowed });
        }
        let model = Self { mean, components, variances, noise_variance };
        model.gaussian().map(|_| model)
    }

    /// μ (p).
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Directions in the columns (p × q).
    pub fn components(&self) -> &Mat<f64> {
        &self.components
    }

    /// Variance along each direction, divisor n (q).
    pub fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// Mean variance along the directions that were left out.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// q.
    pub fn n_components(&self) -> usize {
        self.variances.len()
    }

    /// The same directions with variances, that of the rest too, of divisor n − 1 instead of n: unbiased where rows are a
    /// sample. `weight` is n, the total weight of the rows.
    ///
    /// # Errors
    /// When n is not above 1.
    pub fn unbiased(&self, weight: f64) -> Result<Self> {
        if weight.is_nan() || weight <= 1.0 {
            let (name, value) = ("the total weight of the rows", weight.to_string());
            let allowed = "above 1, because variances are divided by the weight minus 1";
            return Err(Error::Parameter { name, value, allowed });
        }
        let factor = weight / (weight - 1.0);
        let variances = self.variances.iter().map(|v| v * factor).collect();
        Ok(Self { variances, noise_variance: self.noise_variance * factor, ..self.clone() })
    }

    /// With directions of no variance added until there are q, orthogonal to the others: n rows lie in a plane of n − 1
    /// directions, yet some expect n of them.
    ///
    /// # Errors
    /// When q is above the number of features, or there is variance that the directions leave out.
    pub fn completed(&self, q: usize) -> Result<Self> {
        let (p, have) = (self.n_features(), self.n_components());
        if q <= have {
            return Ok(self.clone());
        }
        if q > p || self.noise_variance > 0.0 {
            let (name, value) = ("the number of directions", q.to_string());
            return Err(Error::Parameter {
                name,
                value,
                allowed: "those that hold all variance, and some without",
            });
        }
        let mut components = Mat::from_fn(p, q, |i, j| if j < have { self.components[(i, j)] } else { 0.0 });
        complete_basis(&mut components, have);
        let mut variances = self.variances.clone();
        variances.resize(q, 0.0);
        Ok(Self { components, variances, ..self.clone() })
    }

    /// The density that goes with it: PPCA with $W = U(\Lambda - \sigma^2 I)^{1/2}$.
    ///
    /// # Errors
    /// When a number is not finite.
    pub fn gaussian(&self) -> Result<LinearGaussian> {
        let length = |j: usize| (self.variances[j] - self.noise_variance).max(0.0).sqrt();
        let w =
            Mat::from_fn(self.n_features(), self.n_components(), |i, j| self.components[(i, j)] * length(j));
        LinearGaussian::new(self.mean.clone(), w, Noise::Isotropic(self.noise_variance))
    }

    /// Scores Uᵀ(x − μ) of each row (n × q); of a row with holes the least-squares ones.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn project<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.plane()?.latent_mean(rows)
    }

    /// μ + U t for scores t (n × q).
    ///
    /// # Errors
    /// When the scores are not q to a row.
    pub fn embed(&self, scores: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.plane()?.decode(scores)
    }

    /// The nearest point of the plane to each row (n × p).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn reconstruct<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.plane()?.reconstruct(rows, Reconstruction::Orthogonal)
    }

    /// Scores divided by their deviation, $\Lambda^{-1/2} U^\top (x - \mu)$ (n × q): uncorrelated and of unit variance
    /// (PRML 12.1.3). A direction without variance gives 0.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn whiten<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let mut scores = self.project(rows)?;
        self.scale(&mut scores, |deviation| if deviation > 0.0 { 1.0 / deviation } else { 0.0 });
        Ok(scores)
    }

    /// The inverse of [`whiten`](Self::whiten): rows (n × p) of whitened scores (n × q).
    ///
    /// # Errors
    /// When the scores are not q to a row.
    pub fn unwhiten(&self, whitened: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut scores = whitened.to_owned();
        if scores.ncols() == self.n_components() {
            self.scale(&mut scores, |deviation| deviation);
        }
        self.embed(scores.as_ref())
    }

    fn scale(&self, scores: &mut Mat<f64>, factor: impl Fn(f64) -> f64) {
        for (mut column, v) in scores.col_iter_mut().zip(&self.variances) {
            let factor = factor(v.sqrt());
            column.as_mut().iter_mut().for_each(|t| *t *= factor);
        }
    }

    /// The plane of the directions, as a model without noise.
    fn plane(&self) -> Result<LinearGaussian> {
        LinearGaussian::new(self.mean.clone(), self.components.clone(), Noise::Isotropic(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(noise: f64) -> PrincipalComponents {
        let u = Mat::from_fn(4, 2, |i, j| if i == j { 1.0 } else { 0.0 });
        PrincipalComponents::new(vec![0.0; 4], u, vec![6.0, 3.0], noise).unwrap()
    }

    #[test]
    fn unbiased_variances_have_the_other_divisor() {
        let ours = plane(0.75).unbiased(4.0).unwrap();
        assert_eq!((ours.variances(), ours.noise_variance()), (&[8.0, 4.0][..], 1.0));
        assert!(plane(0.75).unbiased(1.0).is_err());
    }

    #[test]
    fn added_directions_are_orthonormal_and_without_variance() {
        let ours = plane(0.0).completed(4).unwrap();
        assert_eq!(ours.variances(), [6.0, 3.0, 0.0, 0.0]);
        assert!(orthonormality_error(ours.components().as_ref()) < 1e-14);
        assert_eq!(plane(1.0).completed(2).unwrap().n_components(), 2);
        assert!(plane(1.0).completed(3).is_err() && plane(0.0).completed(5).is_err());
    }
}

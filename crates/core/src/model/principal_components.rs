//! Classical PCA: an orthogonal projection on the directions of largest variance.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{Decode, Density, Encode, Explain, Fill, Loadings, Reconstruct, numbered};
use super::gaussian::Gaussian;
use super::{AnyModel, Capability, Factors, Kind, LinearGaussian, Model, Noise, Reconstruction, ppca};
use crate::data::{RowSource, Rows, ScaledRows};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, complete_basis, orthonormality_error};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "pca",
    title: "classical PCA",
    about: "an orthogonal projection",
    components: "components",
    // Its coordinates are projections, not means of a posterior.
    capabilities: &[
        Capability::Encode,
        Capability::Decode,
        Capability::Reconstruct,
        Capability::Density,
        Capability::Sample,
        Capability::Explain,
        Capability::Fill,
        Capability::Loadings,
    ],
    read: |file| Ok(Arc::new(read(file)?)),
};

fn read(file: &dyn StoredArrays) -> Result<PrincipalComponents> {
    let mean = file.mean()?;
    let p = mean.len();
    let components = file.matrix("components", [None, Some(p)])?.transpose().to_owned();
    let mut variances = file.vector("eigenvalues", None)?;
    variances.truncate(components.ncols());
    let noise = file.vector("noise_variance", Some(1))?[0];
    let model = PrincipalComponents::new(mean, components, variances, noise)?;
    match file.has("scale") {
        true => model.of_scaled(file.vector("scale", Some(p))?),
        false => Ok(model),
    }
}

/// Directions of largest variance, the variance along each (divisor n) and the noise variance of the rest.
///
/// The same numbers as PPCA read in another way: [`gaussian`](Self::gaussian) gives the density, and the
/// projection is the limit of its posterior mean as the noise goes to 0.
#[derive(Debug, Clone)]
pub struct PrincipalComponents {
    mean: Vec<f64>,
    components: Mat<f64>, // U (p × q), orthonormal columns
    variances: Vec<f64>,  // λ (q)
    noise_variance: f64,
    scale: Option<Vec<f64>>, // what each feature was divided by before directions were found (p)
    whiten: bool,
    gaussian: LinearGaussian, // the density, in units of the data
}

impl PrincipalComponents {
    /// From given numbers: mean (p), orthonormal directions (p × q), the variance along each (q) and that of
    /// the rest.
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
        let gaussian = density(&mean, &components, &variances, noise_variance)?;
        Ok(Self { mean, components, variances, noise_variance, scale: None, whiten: false, gaussian })
    }

    /// The same directions of features that were divided by `scale` (p numbers above 0) before: mean and
    /// answers are in the units of the data, directions and variances in those of the divided features.
    ///
    /// # Errors
    /// When there is not one number for each feature, or one is not positive.
    pub fn of_scaled(self, scale: Vec<f64>) -> Result<Self> {
        if scale.len() != self.n_features() {
            let (expected, found) = (self.n_features(), scale.len());
            return Err(Error::Length { what: "scales of features", expected, found });
        }
        if let Some(bad) = scale.iter().find(|d| !(d.is_finite() && **d > 0.0)) {
            let (name, value) = ("the scale of a feature", bad.to_string());
            return Err(Error::Parameter { name, value, allowed: "finite and positive" });
        }
        let mean: Vec<f64> = self.mean.iter().zip(&scale).map(|(m, d)| m / d).collect();
        let inner = density(&mean, &self.components, &self.variances, self.noise_variance)?;
        let gaussian = ppca::rescaled(&inner, &scale)?;
        Ok(Self { scale: Some(scale), gaussian, ..self })
    }

    /// What each feature was divided by before the directions were found (p); `None` when nothing was.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// Whether coordinates are scaled to unit variance.
    pub fn whitened(self, whiten: bool) -> Self {
        Self { whiten, ..self }
    }

    /// Whether coordinates are scaled to unit variance.
    pub fn is_whitened(&self) -> bool {
        self.whiten
    }

    /// The same with other directions, variances and noise.
    fn with(&self, components: Mat<f64>, variances: Vec<f64>, noise_variance: f64) -> Result<Self> {
        let changed =
            Self::new(self.mean.clone(), components, variances, noise_variance)?.whitened(self.whiten);
        self.scale.clone().map_or(Ok(changed.clone()), |scale| changed.of_scaled(scale))
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

    /// The same directions with variances, that of the rest too, of divisor n − 1 instead of n: unbiased
    /// where rows are a sample. `weight` is n, the total weight of the rows.
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
        self.with(self.components.clone(), variances, self.noise_variance * factor)
    }

    /// With directions of no variance added until there are q, orthogonal to the others: n rows lie in a
    /// plane of n − 1 directions, yet some expect n of them.
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
        self.with(components, variances, self.noise_variance)
    }

    /// The density that goes with it: PPCA with $W = U(\Lambda - \sigma^2 I)^{1/2}$, in the units of the
    /// data.
    pub fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    /// Scores Uᵀ(x − μ) of each row (n × q); of a row with missing values the least-squares ones.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn project<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.in_plane(rows, |plane, rows| plane.latent_mean(rows))
    }

    /// μ + U t for scores t (n × q).
    ///
    /// # Errors
    /// When the scores are not q to a row.
    pub fn embed(&self, scores: MatRef<'_, f64>) -> Result<Mat<f64>> {
        Ok(self.in_units_of_data(self.plane()?.decode(scores)?))
    }

    /// The nearest point of the plane to each row (n × p).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn reconstruct<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let nearest =
            self.in_plane(rows, |plane, rows| plane.reconstruct(rows, Reconstruction::Orthogonal))?;
        Ok(self.in_units_of_data(nearest))
    }

    /// Scores divided by their deviation, $\Lambda^{-1/2} U^\top (x - \mu)$ (n × q): uncorrelated and of unit
    /// variance (PRML 12.1.3). A direction without variance gives 0.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn whiten<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let mut scores = self.project(rows)?;
        self.stretch(&mut scores, |deviation| if deviation > 0.0 { 1.0 / deviation } else { 0.0 });
        Ok(scores)
    }

    /// The inverse of [`whiten`](Self::whiten): rows (n × p) of whitened scores (n × q).
    ///
    /// # Errors
    /// When the scores are not q to a row.
    pub fn unwhiten(&self, whitened: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut scores = whitened.to_owned();
        if scores.ncols() == self.n_components() {
            self.stretch(&mut scores, |deviation| deviation);
        }
        self.embed(scores.as_ref())
    }

    fn stretch(&self, scores: &mut Mat<f64>, factor: impl Fn(f64) -> f64) {
        for (mut column, v) in scores.col_iter_mut().zip(&self.variances) {
            let factor = factor(v.sqrt());
            column.as_mut().iter_mut().for_each(|t| *t *= factor);
        }
    }

    /// The plane of the directions, as a model without noise, of features as they were divided.
    fn plane(&self) -> Result<LinearGaussian> {
        let mean = match &self.scale {
            None => self.mean.clone(),
            Some(scale) => self.mean.iter().zip(scale).map(|(m, d)| m / d).collect(),
        };
        LinearGaussian::new(mean, self.components.clone(), Noise::Isotropic(0.0))
    }

    /// Asks the plane about rows whose features are divided as they were before the directions were found.
    fn in_plane<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        ask: impl FnOnce(&LinearGaussian, &dyn RowSource) -> Result<Mat<f64>>,
    ) -> Result<Mat<f64>> {
        let (rows, plane) = (rows.into(), self.plane()?);
        // Rows of another number of features are refused by the plane.
        match self.scale.as_ref().filter(|scale| scale.len() == rows.source().n_features()) {
            Some(scale) => ask(&plane, &ScaledRows::new(rows.source(), scale, false)?),
            None => ask(&plane, rows.source()),
        }
    }

    /// Divided features (n × p) times what they were divided by.
    fn in_units_of_data(&self, mut rows: Mat<f64>) -> Mat<f64> {
        for (mut column, d) in rows.col_iter_mut().zip(self.scale.iter().flatten()) {
            column.as_mut().iter_mut().for_each(|x| *x *= d);
        }
        rows
    }
}

/// PPCA of the same directions.
fn density(
    mean: &[f64],
    components: &Mat<f64>,
    variances: &[f64],
    noise_variance: f64,
) -> Result<LinearGaussian> {
    let length = |j: usize| (variances[j] - noise_variance).max(0.0).sqrt();
    let w = Mat::from_fn(components.nrows(), components.ncols(), |i, j| components[(i, j)] * length(j));
    LinearGaussian::new(mean.to_vec(), w, Noise::Isotropic(noise_variance))
}

impl Model for PrincipalComponents {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.mean.len()
    }

    fn n_latent(&self) -> usize {
        self.n_components()
    }

    fn arrays(&self) -> Arrays {
        let mut arrays = Arrays::from([
            ("mean", Array::Vector(self.mean.clone())),
            ("components", Array::Matrix(self.components.transpose().to_owned())),
            ("noise_variance", Array::Vector(vec![self.noise_variance])),
        ]);
        if let Some(scale) = &self.scale {
            arrays.insert("scale", Array::Vector(scale.clone()));
        }
        arrays
    }

    /// The directions of features divided by `scale` are kept, with the scale.
    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        let mean = self.mean.iter().zip(scale).map(|(m, d)| m * d).collect();
        let before = self.scale.iter().flatten().copied().chain(std::iter::repeat(1.0));
        let scale = scale.iter().zip(before).map(|(a, b)| a * b).collect();
        let unscaled = Self { mean, scale: None, ..self.clone() };
        Ok(Arc::new(unscaled.of_scaled(scale)?))
    }

    fn as_encode(&self) -> Option<&dyn Encode> {
        Some(self)
    }

    fn as_decode(&self) -> Option<&dyn Decode> {
        Some(self)
    }

    fn as_reconstruct(&self) -> Option<&dyn Reconstruct> {
        Some(self)
    }

    fn as_density(&self) -> Option<&dyn Density> {
        Some(self)
    }

    fn as_explain(&self) -> Option<&dyn Explain> {
        Some(self)
    }

    fn as_fill(&self) -> Option<&dyn Fill> {
        Some(self)
    }

    fn as_loadings(&self) -> Option<&dyn Loadings> {
        Some(self)
    }
}

impl Gaussian for PrincipalComponents {
    fn gaussian(&self) -> &LinearGaussian {
        &self.gaussian
    }

    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.gaussian.marginal(features)?))
    }
}

impl Encode for PrincipalComponents {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', self.n_components())
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        if self.whiten { self.whiten(rows) } else { self.project(rows) }
    }
}

impl Decode for PrincipalComponents {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        if self.whiten { self.unwhiten(latent) } else { self.embed(latent) }
    }
}

impl Reconstruct for PrincipalComponents {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        match kind {
            Reconstruction::Orthogonal => Self::reconstruct(self, rows),
            Reconstruction::Posterior => self.gaussian.reconstruct(rows, kind),
        }
    }
}

impl Loadings for PrincipalComponents {
    fn mean(&self) -> &[f64] {
        &self.mean
    }

    fn loadings(&self) -> &Mat<f64> {
        self.gaussian.loadings()
    }

    fn shown(&self) -> &Mat<f64> {
        &self.components
    }

    fn noise(&self) -> Noise {
        self.gaussian.noise().clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.components.clone())
    }

    fn variances(&self) -> Result<Vec<f64>> {
        Ok(self.variances.clone())
    }

    fn factors(&self) -> Factors {
        Factors::new(self.gaussian.clone())
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

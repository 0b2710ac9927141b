//! Probabilistic PCA as a kind of model: a linear-Gaussian model itself.

use std::sync::Arc;

use super::arrays::{Array, Arrays, StoredArrays};
use super::capability::{
    Decode, Density, Encode, Explain, Fill, LatentPosterior, Loadings, Reconstruct, numbered,
};
use super::gaussian::Gaussian;
use super::{AnyModel, Capability, Factors, Kind, LinearGaussian, Model, Noise, Posterior, Reconstruction};
use crate::data::RowSource;
use crate::error::Result;
use crate::linalg::{Mat, MatRef};

/// Its kind.
pub static KIND: Kind = Kind {
    name: "ppca",
    title: "probabilistic PCA",
    about: "a density over rows, with noise",
    components: "components",
    capabilities: &Capability::LINEAR_GAUSSIAN,
    read: |file| Ok(Arc::new(read(file)?)),
};

/// A linear-Gaussian model of the arrays `mean`, `loadings` and `noise_variance`.
pub(super) fn read(file: &dyn StoredArrays) -> Result<LinearGaussian> {
    let (mean, noise) = (file.mean()?, file.vector("noise_variance", None)?);
    let loadings = file.matrix("loadings", [Some(mean.len()), None])?;
    LinearGaussian::new(mean, loadings, noise_of(noise))
}

/// One variance for all features, or one for each.
pub(super) fn noise_of(variances: Vec<f64>) -> Noise {
    match variances.as_slice() {
        [v] => Noise::Isotropic(*v),
        _ => Noise::Diagonal(variances),
    }
}

/// The way back.
pub(super) fn noise_variances(model: &LinearGaussian) -> Vec<f64> {
    match model.noise() {
        Noise::Isotropic(v) => vec![*v],
        Noise::Diagonal(psi) => psi.clone(),
    }
}

/// The arrays that [`read`] reads.
pub(super) fn arrays(model: &LinearGaussian) -> Arrays {
    Arrays::from([
        ("mean", Array::Vector(model.mean().to_vec())),
        ("loadings", Array::Matrix(model.loadings().clone())),
        ("noise_variance", Array::Vector(noise_variances(model))),
    ])
}

/// μ ← Dμ, W ← DW, noise ← D² noise. No noise stays no noise.
pub(super) fn rescaled(model: &LinearGaussian, scale: &[f64]) -> Result<LinearGaussian> {
    let w = model.loadings();
    let mean = model.mean().iter().zip(scale).map(|(m, d)| m * d).collect();
    let noise = match model.noise() {
        Noise::Isotropic(0.0) => Noise::Isotropic(0.0),
        noise => Noise::Diagonal(scale.iter().enumerate().map(|(j, d)| noise.of(j) * d * d).collect()),
    };
    LinearGaussian::new(mean, Mat::from_fn(w.nrows(), w.ncols(), |j, k| w[(j, k)] * scale[j]), noise)
}

impl Model for LinearGaussian {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn n_features(&self) -> usize {
        self.mean().len()
    }

    fn n_latent(&self) -> usize {
        Self::loadings(self).ncols()
    }

    fn arrays(&self) -> Arrays {
        arrays(self)
    }

    fn rescaled(&self, scale: &[f64]) -> Result<AnyModel> {
        Ok(Arc::new(rescaled(self, scale)?))
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

impl Gaussian for LinearGaussian {
    fn gaussian(&self) -> &LinearGaussian {
        self
    }

    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel> {
        Ok(Arc::new(self.marginal(features)?))
    }
}

impl Encode for LinearGaussian {
    fn coordinate_names(&self) -> Vec<String> {
        numbered('z', Self::n_latent(self))
    }

    fn encode(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.latent_mean(rows)
    }
}

impl LatentPosterior for LinearGaussian {
    fn posterior(&self, rows: &dyn RowSource) -> Result<Posterior> {
        Self::posterior(self, rows)
    }
}

impl Decode for LinearGaussian {
    fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        Self::decode(self, latent)
    }
}

impl Reconstruct for LinearGaussian {
    fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> Result<Mat<f64>> {
        Self::reconstruct(self, rows, kind)
    }
}

impl Loadings for LinearGaussian {
    fn mean(&self) -> &[f64] {
        Self::mean(self)
    }

    fn loadings(&self) -> &Mat<f64> {
        Self::loadings(self)
    }

    fn noise(&self) -> Noise {
        Self::noise(self).clone()
    }

    fn axes(&self) -> Result<Mat<f64>> {
        Ok(self.principal_axes()?.0)
    }

    fn variances(&self) -> Result<Vec<f64>> {
        Ok(self.principal_axes()?.1)
    }

    fn factors(&self) -> Factors {
        Factors::new(self.clone())
    }
}

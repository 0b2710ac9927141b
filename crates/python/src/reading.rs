//! A saved model as Python reads it: PCA with scikit-learn's divisor, everything else as it is.

use covary::data::RowSource;
use covary::linalg::{Mat, MatRef};
use covary::model::{
    Factors, LinearGaussian, Model as AnyModel, Posterior, PrincipalComponents, Reconstruction, Scores,
};
use covary::persist::SavedModel;

/// The model as Python reads it.
pub(crate) enum Reading {
    Gaussian(LinearGaussian),
    /// Read through factors, turned or not.
    Factors(Factors),
    /// With the divisor n − 1, as scikit-learn has it; and the density that goes with it.
    Components(PrincipalComponents, LinearGaussian),
}

impl Reading {
    pub(crate) fn new(saved: &SavedModel) -> covary::Result<Self> {
        match &saved.model {
            AnyModel::Ppca(m) => Ok(Self::Gaussian(m.clone())),
            AnyModel::Fa(m) => Ok(Self::Factors(m.clone())),
            AnyModel::Bpca(m) => Ok(Self::Gaussian(m.gaussian().clone())),
            AnyModel::Pca(m) => {
                // Given numbers were never divided by anything.
                let given = saved.report.rows == 0;
                let m = if given { m.clone() } else { m.unbiased(saved.report.weight)? };
                let gaussian = m.gaussian()?;
                Ok(Self::Components(m, gaussian))
            }
        }
    }

    pub(crate) fn gaussian(&self) -> &LinearGaussian {
        match self {
            Self::Gaussian(m) | Self::Components(_, m) => m,
            Self::Factors(m) => m.gaussian(),
        }
    }

    pub(crate) fn posterior(&self, rows: &dyn RowSource) -> covary::Result<Posterior> {
        match self {
            Self::Factors(m) => m.posterior(rows),
            _ => self.gaussian().posterior(rows),
        }
    }

    pub(crate) fn transform(&self, rows: &dyn RowSource, whiten: bool) -> covary::Result<Mat<f64>> {
        match self {
            Self::Gaussian(m) => m.latent_mean(rows),
            Self::Factors(m) => m.transform(rows, Scores::Regression),
            Self::Components(m, _) if whiten => m.whiten(rows),
            Self::Components(m, _) => m.project(rows),
        }
    }

    pub(crate) fn inverse_transform(
        &self,
        latent: MatRef<'_, f64>,
        whiten: bool,
    ) -> covary::Result<Mat<f64>> {
        match self {
            Self::Gaussian(m) => m.decode(latent),
            Self::Factors(m) => m.decode(latent),
            Self::Components(m, _) if whiten => m.unwhiten(latent),
            Self::Components(m, _) => m.embed(latent),
        }
    }

    pub(crate) fn reconstruct(&self, rows: &dyn RowSource, kind: Reconstruction) -> covary::Result<Mat<f64>> {
        match (self, kind) {
            (Self::Components(m, _), Reconstruction::Orthogonal) => m.reconstruct(rows),
            _ => self.gaussian().reconstruct(rows, kind),
        }
    }
}

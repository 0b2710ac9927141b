//! Any model that a file can hold, and what can be asked of all of them.

use std::borrow::Cow;
use std::ops::Range;

use super::{
    Factors, Imputed, LinearGaussian, Predicted, Predictive, PrincipalComponents, Reconstruction, Scores,
};
use crate::data::{Observed, Rows};
use crate::error::Result;
use crate::linalg::Mat;

/// A model of any kind.
#[derive(Debug, Clone)]
pub enum Model {
    /// Probabilistic PCA.
    Ppca(LinearGaussian),
    /// Classical PCA.
    Pca(PrincipalComponents),
    /// Factor analysis, or the loadings of PPCA turned.
    Fa(Factors),
    /// Bayesian PCA.
    Bpca(Predictive),
}

impl From<LinearGaussian> for Model {
    fn from(model: LinearGaussian) -> Self {
        Self::Ppca(model)
    }
}

impl From<PrincipalComponents> for Model {
    fn from(model: PrincipalComponents) -> Self {
        Self::Pca(model)
    }
}

impl From<Factors> for Model {
    fn from(model: Factors) -> Self {
        Self::Fa(model)
    }
}

impl From<Predictive> for Model {
    fn from(model: Predictive) -> Self {
        Self::Bpca(model)
    }
}

impl Model {
    /// As people type it: `ppca`, `pca`, `fa`, `bpca`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ppca(_) => "ppca",
            Self::Pca(_) => "pca",
            Self::Fa(_) => "fa",
            Self::Bpca(_) => "bpca",
        }
    }

    /// μ (p).
    pub fn mean(&self) -> &[f64] {
        match self {
            Self::Ppca(m) => m.mean(),
            Self::Pca(m) => m.mean(),
            Self::Fa(m) => m.mean(),
            Self::Bpca(m) => m.mean(),
        }
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.mean().len()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        match self {
            Self::Ppca(m) => m.n_latent(),
            Self::Pca(m) => m.n_components(),
            Self::Fa(m) => m.n_factors(),
            Self::Bpca(m) => m.n_latent(),
        }
    }

    /// The density of the model.
    ///
    /// # Errors
    /// When a number is not finite.
    pub fn gaussian(&self) -> Result<Cow<'_, LinearGaussian>> {
        match self {
            Self::Ppca(m) => Ok(Cow::Borrowed(m)),
            Self::Pca(m) => m.gaussian().map(Cow::Owned),
            Self::Fa(m) => Ok(Cow::Borrowed(m.gaussian())),
            Self::Bpca(m) => Ok(Cow::Borrowed(m.gaussian())),
        }
    }

    /// Latent coordinates of each row (n × q): posterior means (of the turned factors, when they are turned), or the
    /// scores of classical PCA.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn transform<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        match self {
            Self::Ppca(m) => m.latent_mean(rows),
            Self::Pca(m) => m.project(rows),
            Self::Fa(m) => m.transform(rows, Scores::Regression),
            Self::Bpca(m) => m.gaussian().latent_mean(rows),
        }
    }

    /// Each row rebuilt (n × p).
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn reconstruct<'a>(&self, rows: impl Into<Rows<'a>>, kind: Reconstruction) -> Result<Mat<f64>> {
        match (self, kind) {
            (Self::Pca(m), Reconstruction::Orthogonal) => m.reconstruct(rows),
            _ => self.gaussian()?.reconstruct(rows, kind),
        }
    }

    /// The rows with each hole filled: [`LinearGaussian::impute`].
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn impute<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.gaussian()?.impute(rows)
    }

    /// The same with standard deviations: [`LinearGaussian::impute_with_std`].
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn impute_with_std<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Imputed> {
        self.gaussian()?.impute_with_std(rows)
    }

    /// Draws of the missing cells: [`LinearGaussian::draw_missing`].
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn draw_missing<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        draws: Range<usize>,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        self.gaussian()?.draw_missing(rows, draws, seed)
    }

    /// Mean and standard deviation of named cells: [`LinearGaussian::predict`].
    ///
    /// # Errors
    /// When a row or feature does not exist or the rows have another number of features.
    pub fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        self.gaussian()?.predict(rows, cells)
    }
}

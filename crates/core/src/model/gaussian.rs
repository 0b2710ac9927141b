//! Models whose density is one linear-Gaussian model: what can be asked of it follows from that.

use std::ops::Range;

use super::capability::{Density, Explain, Fill};
use super::{
    AnyModel, Conditional, Contributions, Imputed, Limits, LinearGaussian, Outliers, Predicted, Sample,
};
use crate::control::Control;
use crate::data::{Observed, RowSource, Rows};
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// A model whose density is one linear-Gaussian model: densities and imputation follow from that.
pub trait Gaussian: Sync {
    /// The density.
    fn gaussian(&self) -> &LinearGaussian;

    /// The model of some of the features.
    ///
    /// # Errors
    /// When a feature does not exist.
    fn marginal_model(&self, features: &[usize]) -> Result<AnyModel>;
}

impl<M: Gaussian> Density for M {
    fn log_density(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        self.gaussian().log_density(rows)
    }

    fn outliers(&self, rows: &dyn RowSource) -> Result<Outliers> {
        self.gaussian().outliers(rows)
    }

    fn distances(&self, rows: &dyn RowSource) -> Result<(Vec<f64>, Vec<f64>)> {
        self.gaussian().t2_spe(rows)
    }

    fn is_proper(&self) -> Result<bool> {
        is_proper(self.gaussian())
    }

    fn sample_rows(&self, rows: Range<usize>, seed: u64) -> Mat<f64> {
        self.gaussian().sample_rows(rows, seed)
    }

    fn sample(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        self.gaussian().sample_with(n, seed, control)
    }

    fn covariance(&self) -> Result<Mat<f64>> {
        self.gaussian().try_covariance()
    }

    fn precision(&self, control: &Control<'_>) -> Result<Mat<f64>> {
        self.gaussian().precision_with(control)
    }

    fn marginal(&self, features: &[usize]) -> Result<AnyModel> {
        self.marginal_model(features)
    }
}

impl<M: Gaussian> Explain for M {
    fn contributions(&self, rows: &dyn RowSource) -> Result<Contributions> {
        self.gaussian().contributions(rows)
    }

    fn limits(&self, rows: &dyn RowSource, level: f64, sample: Option<Sample>) -> Result<Limits> {
        self.gaussian().limits(rows, level, sample)
    }
}

impl<M: Gaussian> Fill for M {
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        self.gaussian().impute(rows)
    }

    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed> {
        self.gaussian().impute_with_std(rows)
    }

    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>> {
        self.gaussian().draw_missing(rows, draws, seed)
    }

    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        self.gaussian().conditional_with(row, control)
    }

    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        self.gaussian().predict(rows, cells)
    }
}

/// Whether rows have a density: asks about the mean, which every model has.
pub(super) fn is_proper(model: &LinearGaussian) -> Result<bool> {
    match model.log_density(Rows::from_slice(model.mean(), model.n_features())?) {
        Ok(_) => Ok(true),
        Err(Error::NoDensity { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

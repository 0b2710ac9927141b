//! A covariance matrix brought to unit diagonal and factored, with an error that says why when it cannot be.

use super::parameters::{check_finite, check_length, parameter};
use crate::error::{Error, Feature, Result};
use crate::linalg::{Cholesky, Mat, MatRef, symmetric_eigenvalues};

/// Correlations closer to ±1 than this are those of a feature and its copy.
const COPY: f64 = 1e-10;

/// The correlation matrix of a covariance (or correlation) matrix, with the deviations that were divided out.
#[derive(Debug, Clone)]
pub(super) struct Correlation {
    pub(super) matrix: Mat<f64>,     // (p × p), unit diagonal
    pub(super) deviations: Vec<f64>, // (p)
}

impl Correlation {
    /// Checks a symmetric matrix and divides rows and columns by the roots of its diagonal.
    pub(super) fn new(s: MatRef<'_, f64>) -> Result<Self> {
        let p = s.nrows();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        check_length("columns of the covariance", p, s.ncols())?;
        check_finite("the covariance", s)?;
        check_variances(s)?;
        let deviations: Vec<f64> = (0..p).map(|j| s[(j, j)].sqrt()).collect();
        let matrix =
            Mat::from_fn(p, p, |i, j| if i == j { 1.0 } else { s[(i, j)] / deviations[i] / deviations[j] });
        check_symmetry(&matrix, s)?;
        Ok(Self { matrix, deviations })
    }

    /// R = LLᵀ.
    pub(super) fn factor(&self) -> Result<Cholesky> {
        match self.try_factor() {
            Some(factor) => Ok(factor),
            None => Err(self.singular()?),
        }
    }

    /// log |R|; `None` when it is singular.
    pub(super) fn log_det(&self) -> Option<f64> {
        self.try_factor().map(|f| f.log_det())
    }

    /// Singular within rounding counts as singular: a pivot is the share of a feature's variance that those
    /// before it do not explain, and known to p·ε only.
    fn try_factor(&self) -> Option<Cholesky> {
        let rounding = 4.0 * self.matrix.nrows() as f64 * f64::EPSILON;
        let factor = Cholesky::new(self.matrix.clone(), "the correlation matrix").ok()?;
        (factor.smallest_pivot().powi(2) > rounding).then_some(factor)
    }

    fn singular(&self) -> Result<Error> {
        let eigenvalues = symmetric_eigenvalues(self.matrix.as_ref())?;
        let eigenvalue = eigenvalues.last().copied().unwrap_or(0.0);
        let rounding = 4.0 * self.matrix.nrows() as f64 * f64::EPSILON;
        Ok(match eigenvalue < -rounding {
            true => Error::Indefinite { eigenvalue },
            false => Error::Singular { eigenvalue, copies: self.copies() },
        })
    }

    /// Pairs of features that are copies of each other, up to scale and sign.
    fn copies(&self) -> Vec<(Feature, Feature)> {
        let p = self.matrix.nrows();
        let copy = |&(i, j): &(usize, usize)| self.matrix[(j, i)].abs() >= 1.0 - COPY;
        (0..p)
            .flat_map(|i| (i + 1..p).map(move |j| (i, j)))
            .filter(copy)
            .map(|(i, j)| ((i, None), (j, None)))
            .collect()
    }
}

/// Variances are positive, or the features that have none are named.
fn check_variances(s: MatRef<'_, f64>) -> Result<()> {
    let constant: Vec<Feature> = (0..s.nrows()).filter(|&j| s[(j, j)] == 0.0).map(|j| (j, None)).collect();
    if !constant.is_empty() {
        return Err(Error::ConstantFeatures { features: constant });
    }
    match (0..s.nrows()).find(|&j| s[(j, j)] < 0.0) {
        Some(j) => Err(parameter("a variance on the diagonal", &s[(j, j)], "positive")),
        None => Ok(()),
    }
}

fn check_symmetry(r: &Mat<f64>, s: MatRef<'_, f64>) -> Result<()> {
    // What printing to nine digits leaves.
    let apart = |&(i, j): &(usize, usize)| (r[(i, j)] - r[(j, i)]).abs() > 1e-8;
    match (0..r.ncols()).flat_map(|j| (0..j).map(move |i| (i, j))).find(apart) {
        Some((row, column)) => {
            Err(Error::Asymmetric { row, column, value: s[(row, column)], mirrored: s[(column, row)] })
        }
        None => Ok(()),
    }
}

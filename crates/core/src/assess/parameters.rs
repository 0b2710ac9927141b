//! The numbers of a factor model that this module judges: loadings, factor correlations and uniquenesses.

use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatRef, product};

/// Σ = ΛΦΛᵀ + Ψ, as plain numbers.
#[derive(Debug, Clone, Copy)]
pub struct FactorModel<'a> {
    loadings: MatRef<'a, f64>,
    correlation: Option<MatRef<'a, f64>>,
    uniquenesses: &'a [f64],
}

impl<'a> FactorModel<'a> {
    /// The pattern Λ (p × q), the correlation Φ (q × q) of the factors unless they are uncorrelated, and ψ
    /// (p).
    ///
    /// # Errors
    /// When shapes disagree, a number is not finite, ψ is not positive, or Φ is not symmetric with a diagonal
    /// of 1.
    pub fn new(
        loadings: MatRef<'a, f64>,
        correlation: Option<MatRef<'a, f64>>,
        uniquenesses: &'a [f64],
    ) -> Result<Self> {
        let (p, q) = (loadings.nrows(), loadings.ncols());
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        check_length("uniquenesses", p, uniquenesses.len())?;
        check_finite("the loadings", loadings)?;
        if let Some(psi) = uniquenesses.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(parameter("a uniqueness", psi, "positive and finite"));
        }
        correlation.map_or(Ok(()), |phi| check_correlation(phi, q))?;
        Ok(Self { loadings, correlation, uniquenesses })
    }

    /// Λ (p × q).
    pub fn loadings(&self) -> MatRef<'a, f64> {
        self.loadings
    }

    /// Φ (q × q); `None` when the factors are uncorrelated.
    pub fn correlation(&self) -> Option<MatRef<'a, f64>> {
        self.correlation
    }

    /// ψ (p).
    pub fn uniquenesses(&self) -> &'a [f64] {
        self.uniquenesses
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.loadings.nrows()
    }

    /// q.
    pub fn n_factors(&self) -> usize {
        self.loadings.ncols()
    }

    /// Degrees of freedom: ((p − q)² − p − q)/2, negative when there are more parameters than covariances.
    pub fn dof(&self) -> i64 {
        let (p, q) = (signed(self.n_features()), signed(self.n_factors()));
        ((p - q).pow(2) - p - q) / 2
    }

    /// Free parameters: p + pq − q(q − 1)/2 of the covariance (a rotation is no freedom), and p means.
    pub fn parameters(&self) -> i64 {
        let (p, q) = (signed(self.n_features()), signed(self.n_factors()));
        2 * p + p * q - q * (q - 1) / 2
    }

    /// ΛΦ, the structure (p × q).
    pub(super) fn structure(&self) -> Mat<f64> {
        match self.correlation {
            Some(phi) => product(self.loadings, phi),
            None => self.loadings.to_owned(),
        }
    }

    /// ΛK with Φ = KKᵀ (p × q): uncorrelated factors behind the same covariance.
    pub(super) fn unrotated(&self) -> Result<Mat<f64>> {
        match self.correlation {
            Some(phi) => {
                let root = Cholesky::new(phi.to_owned(), "the factor correlation")?;
                Ok(product(self.loadings, root.lower().as_ref()))
            }
            None => Ok(self.loadings.to_owned()),
        }
    }

    /// Σ (p × p).
    pub(super) fn covariance(&self) -> Mat<f64> {
        let mut sigma = product(self.structure().as_ref(), self.loadings.transpose());
        self.uniquenesses.iter().enumerate().for_each(|(j, psi)| sigma[(j, j)] += psi);
        sigma
    }

    /// √Σⱼⱼ, the standard deviation of each feature under the model.
    pub(super) fn deviations(&self) -> Vec<f64> {
        let structure = self.structure();
        let common =
            |j: usize| (0..self.n_factors()).map(|k| structure[(j, k)] * self.loadings[(j, k)]).sum::<f64>();
        self.uniquenesses.iter().enumerate().map(|(j, psi)| (common(j) + psi).sqrt()).collect()
    }
}

#[allow(clippy::cast_possible_wrap, reason = "a count of columns in memory")]
fn signed(count: usize) -> i64 {
    count as i64
}

fn check_correlation(phi: MatRef<'_, f64>, q: usize) -> Result<()> {
    check_length("rows of the factor correlation", q, phi.nrows())?;
    check_length("columns of the factor correlation", q, phi.ncols())?;
    check_finite("the factor correlation", phi)?;
    for j in 0..q {
        if (phi[(j, j)] - 1.0).abs() > 1e-8 {
            return Err(parameter("the diagonal of the factor correlation", &phi[(j, j)], "1"));
        }
        if (0..j).any(|i| (phi[(i, j)] - phi[(j, i)]).abs() > 1e-8) {
            return Err(parameter("the factor correlation", &"not symmetric", "symmetric"));
        }
    }
    Cholesky::new(phi.to_owned(), "the factor correlation").map(|_| ())
}

pub(super) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

pub(super) fn check_finite(name: &'static str, a: MatRef<'_, f64>) -> Result<()> {
    let bad = |x: &f64| !x.is_finite();
    match (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)])).find(bad) {
        Some(value) => Err(parameter(name, &value, "finite numbers throughout")),
        None => Ok(()),
    }
}

pub(super) fn parameter(name: &'static str, value: &dyn ToString, allowed: &'static str) -> Error {
    Error::Parameter { name, value: value.to_string(), allowed }
}

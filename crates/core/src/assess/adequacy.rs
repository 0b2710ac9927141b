//! Whether correlations are worth a factor analysis: sampling adequacy, sphericity, squared multiple
//! correlations.

use serde::{Deserialize, Serialize};
use statrs::function::gamma::checked_gamma_ur;

use super::correlation::Correlation;
use super::parameters::parameter;
use crate::error::Result;
use crate::linalg::{Mat, MatRef};

/// Kaiser, Meyer and Olkin's measure of sampling adequacy \[KR74\].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kmo {
    /// Of all features together.
    pub overall: f64,
    /// Of each feature with all others.
    pub features: Vec<f64>,
}

/// A χ² test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chi2Test {
    /// The statistic.
    pub chi2: f64,
    /// Degrees of freedom.
    pub dof: u64,
    /// Probability of a larger statistic when the hypothesis holds; `None` without degrees of freedom.
    pub p_value: Option<f64>,
}

/// Whether correlations are worth a factor analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adequacy {
    /// Sampling adequacy.
    pub kmo: Kmo,
    /// Bartlett's test that all correlations are 0; `None` when the number of rows is unknown or too small
    /// for it.
    pub sphericity: Option<Chi2Test>,
    /// Squared multiple correlation of each feature with all others.
    pub smc: Vec<f64>,
}

impl Adequacy {
    /// Of a covariance or correlation matrix (p × p) and the number of rows behind it, when known.
    ///
    /// ```
    /// use covary::assess::Adequacy;
    /// use covary::linalg::Mat;
    ///
    /// let r = Mat::from_fn(3, 3, |i, j| if i == j { 1.0 } else { 0.5 });
    /// let adequacy = Adequacy::of(r.as_ref(), Some(100.0))?;
    /// // Partial correlations of three features that correlate 1/2 are 1/3: 1/4 / (1/4 + 1/9).
    /// assert!((adequacy.kmo.overall - 9.0 / 13.0).abs() < 1e-12);
    /// assert!((adequacy.smc[0] - 1.0 / 3.0).abs() < 1e-12);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the matrix is not a covariance matrix, or singular: the error names its smallest eigenvalue and
    /// the features that are constant or copies of each other.
    pub fn of(covariance: MatRef<'_, f64>, rows: Option<f64>) -> Result<Self> {
        check_rows(rows)?;
        let correlation = Correlation::new(covariance)?;
        let factor = correlation.factor()?;
        let p = correlation.matrix.nrows();
        let mut inverse = Mat::identity(p, p);
        factor.solve(inverse.as_mut());
        Ok(Self {
            kmo: sampling_adequacy(&correlation.matrix, &inverse),
            sphericity: rows.and_then(|n| sphericity_test(p, n, factor.log_det())),
            smc: (0..p).map(|j| (1.0 - 1.0 / inverse[(j, j)]).clamp(0.0, 1.0)).collect(),
        })
    }
}

/// Kaiser, Meyer and Olkin's measure of sampling adequacy of a covariance or correlation matrix \[KR74\].
///
/// Σr²/(Σr² + Σu²) over pairs of features, r their correlation and u their partial correlation given all
/// others: near 1 when few factors lie behind many features. It tends to 1/2 as correlations vanish, and is
/// that where they are all 0.
///
/// # Errors
/// As [`Adequacy::of`].
pub fn kmo(covariance: MatRef<'_, f64>) -> Result<Kmo> {
    Adequacy::of(covariance, None).map(|a| a.kmo)
}

/// Bartlett's test that all correlations are 0 \[B50\]: χ² = −(n − 1 − (2p + 5)/6) log |R| with p(p − 1)/2
/// degrees of freedom.
///
/// # Errors
/// As [`Adequacy::of`], and when there are too few rows for the statistic.
pub fn sphericity(covariance: MatRef<'_, f64>, rows: f64) -> Result<Chi2Test> {
    Adequacy::of(covariance, Some(rows))?.sphericity.ok_or_else(|| {
        parameter("the number of rows", &rows, "above 1 + (2p + 5)/6 for Bartlett's test of p features")
    })
}

/// Squared multiple correlation of each feature with all others, 1 − 1/(R⁻¹)ⱼⱼ.
///
/// # Errors
/// As [`Adequacy::of`].
pub fn smc(covariance: MatRef<'_, f64>) -> Result<Vec<f64>> {
    Adequacy::of(covariance, None).map(|a| a.smc)
}

/// The number of rows, when given, is positive and finite.
pub(super) fn check_rows(rows: Option<f64>) -> Result<()> {
    match rows {
        Some(n) if !(n.is_finite() && n > 0.0) => {
            Err(parameter("the number of rows", &n, "positive and finite"))
        }
        _ => Ok(()),
    }
}

fn sampling_adequacy(r: &Mat<f64>, inverse: &Mat<f64>) -> Kmo {
    let p = r.nrows();
    let partial = |i: usize, j: usize| inverse[(i, j)] / (inverse[(i, i)] * inverse[(j, j)]).sqrt();
    let sums = |j: usize| {
        let others = || (0..p).filter(move |i| *i != j);
        (others().map(|i| r[(i, j)].powi(2)).sum(), others().map(|i| partial(i, j).powi(2)).sum())
    };
    let each: Vec<(f64, f64)> = (0..p).map(sums).collect();
    let all = each.iter().fold((0.0, 0.0), |(a, b), (r, u)| (a + r, b + u));
    Kmo { overall: share(all), features: each.into_iter().map(share).collect() }
}

/// r/(r + u), and its limit as both vanish.
fn share((r, u): (f64, f64)) -> f64 {
    if r + u == 0.0 { 0.5 } else { r / (r + u) }
}

fn sphericity_test(p: usize, rows: f64, log_det: f64) -> Option<Chi2Test> {
    let multiplier = rows - 1.0 - (2.0 * p as f64 + 5.0) / 6.0;
    let dof = p as u64 * (p as u64 - 1) / 2;
    let chi2 = (-log_det * multiplier).max(0.0);
    (multiplier > 0.0).then(|| Chi2Test { chi2, dof, p_value: upper_tail(chi2, dof as f64) })
}

/// Pr(X > x) for X central χ²; `None` without degrees of freedom.
pub(super) fn upper_tail(x: f64, dof: f64) -> Option<f64> {
    match (dof > 0.0, x > 0.0) {
        (false, _) => None,
        (true, false) => Some(1.0),
        (true, true) => checked_gamma_ur(dof / 2.0, x / 2.0).ok(),
    }
}

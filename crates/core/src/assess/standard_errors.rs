//! Standard errors of loadings, factor correlations and uniquenesses, rotated or not, from the expected
//! information.

use serde::{Deserialize, Serialize};

use super::adequacy::check_rows;
use super::derivative::jacobian;
use super::identification::{Identification, RowScale, Standard, communalities};
use super::information::{Layout, information};
use super::parameters::{FactorModel, parameter};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatRef, product};

/// Matrices of the size of the number of parameters squared are formed: more than this many are refused.
pub const MOST_PARAMETERS: usize = 4000;

/// A pivot of the scaled information below this (in square) means that a parameter is not determined.
const UNDETERMINED: f64 = 1e-12;

/// Standard errors of the numbers of a factor model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandardErrors {
    /// Of Λ (p × q).
    #[serde(with = "super::serde_rows")]
    pub loadings: Mat<f64>,
    /// Of Φ (q × q); 0 where it is fixed: on the diagonal, and everywhere when factors are uncorrelated.
    #[serde(with = "super::serde_rows")]
    pub correlation: Mat<f64>,
    /// Of ψ (p); 0 where it is fixed (standardised, a fixed ψ is divided by a variance that is estimated).
    pub uniquenesses: Vec<f64>,
}

/// Standard errors on both scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Of the numbers as given.
    pub given: StandardErrors,
    /// Of the standardised solution, λⱼₖ/√Σⱼⱼ and ψⱼ/Σⱼⱼ: loadings of the correlation matrix.
    ///
    /// Not the given ones divided by deviations: the deviations are estimated as well.
    pub standardised: StandardErrors,
    /// Features whose ψ was taken as fixed.
    pub fixed: Vec<usize>,
    /// How far the loadings are from what pins the axes down, in units of standardised loadings. Standard
    /// errors of rotated loadings mean something only when this is near 0: the criterion must be the one that
    /// the loadings were rotated by.
    pub off_axis: f64,
}

/// A second step that follows: from loadings to Λ (p × q) and Φ (q × q).
pub type SecondStep<'a> = dyn Fn(MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>)> + 'a;

/// Standard errors from n rows: the expected information of the normal likelihood about Λ, Φ and ψ, bordered
/// by the derivatives of the equations that pin the axes down \[J74\].
///
/// With I the information of one row and E those derivatives, the covariance of the estimates is the upper
/// left block of $\begin{pmatrix} nI & E^T \\ E & 0 \end{pmatrix}^{-1}$; for standardised numbers the delta
/// method follows. Derivatives of the equations are taken by central differences of fourth order, so that any
/// criterion with a gradient will do.
///
/// A uniqueness in `fixed` (at its bound: a Heywood case) is treated as known; then the others' errors are
/// conditional on it.
///
/// ```
/// use covary::assess::{FactorModel, Identification, standard_errors};
/// use covary::linalg::Mat;
///
/// let loadings = Mat::from_fn(4, 1, |j, _| [0.9, 0.8, 0.7, 0.6][j]);
/// let psi = [0.19, 0.36, 0.51, 0.64];
/// let model = FactorModel::new(loadings.as_ref(), None, &psi)?;
/// let errors = standard_errors(&model, 500.0, Identification::Canonical, &[])?;
/// // The better a feature is explained, the surer is its standardised loading.
/// assert!(errors.standardised.loadings[(0, 0)] < errors.standardised.loadings[(3, 0)]);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When the parameters are not determined (negative degrees of freedom, axes that nothing pins down), more
/// than [`MOST_PARAMETERS`], or a feature has zero loadings under Kaiser's normalisation.
pub fn standard_errors(
    model: &FactorModel<'_>,
    rows: f64,
    identification: Identification<'_>,
    fixed: &[usize],
) -> Result<Precision> {
    standard_errors_with(model, rows, identification, fixed, &Control::new())
}

/// The same under the eyes of a caller.
///
/// # Errors
/// As [`standard_errors`], and [`Error::Interrupted`].
pub fn standard_errors_with(
    model: &FactorModel<'_>,
    rows: f64,
    identification: Identification<'_>,
    fixed: &[usize],
    control: &Control<'_>,
) -> Result<Precision> {
    Estimate::new(model, rows, identification, fixed, control)?.precision(None, control)
}

/// The same after a second step, such as promax's, by the delta method: `model` and `identification` are
/// those of the first step.
///
/// The answer is about the numbers after the second step, which sees loadings that are standardised or not,
/// as `standardised` says.
///
/// # Errors
/// As [`standard_errors`], and what the second step says.
pub fn standard_errors_after(
    model: &FactorModel<'_>,
    rows: f64,
    identification: Identification<'_>,
    fixed: &[usize],
    then: &SecondStep<'_>,
    standardised: bool,
) -> Result<Precision> {
    standard_errors_after_with(model, rows, identification, fixed, then, standardised, &Control::new())
}

/// The same under the eyes of a caller.
///
/// # Errors
/// As [`standard_errors_after`], and [`Error::Interrupted`].
pub fn standard_errors_after_with(
    model: &FactorModel<'_>,
    rows: f64,
    identification: Identification<'_>,
    fixed: &[usize],
    then: &SecondStep<'_>,
    standardised: bool,
    control: &Control<'_>,
) -> Result<Precision> {
    let scale = if standardised { RowScale::Standardised } else { RowScale::Given };
    Estimate::new(model, rows, identification, fixed, control)?.precision(Some((then, scale)), control)
}

/// A model in units in which every feature has variance 1, and what is known about its parameters.
struct Estimate {
    layout: Layout,
    units: Vec<f64>,
    psi: Vec<f64>,
    theta: Vec<f64>,
    sizes: Vec<f64>,
    spread: Spread,
    off_axis: f64,
}

impl Estimate {
    fn new(
        m: &FactorModel<'_>,
        rows: f64,
        identification: Identification<'_>,
        fixed: &[usize],
        control: &Control<'_>,
    ) -> Result<Self> {
        check_rows(Some(rows))?;
        let layout = layout(m, &identification, fixed)?;
        let units = m.deviations();
        let loadings = Mat::from_fn(m.n_features(), m.n_factors(), |j, k| m.loadings()[(j, k)] / units[j]);
        check_kaiser(&loadings, &identification)?;
        let psi: Vec<f64> = m.uniquenesses().iter().zip(&units).map(|(v, d)| v / d / d).collect();
        let phi =
            m.correlation().map_or_else(|| Mat::identity(m.n_factors(), m.n_factors()), |c| c.to_owned());
        let theta = layout.flatten(&loadings, &phi, &psi);
        let sizes = layout.flatten(&ones(&loadings), &ones(&phi), &psi);
        let scaled = FactorModel::new(loadings.as_ref(), m.correlation(), &psi)?;
        let standard = Standard { layout: &layout, psi: &psi, units: &units };
        let equations = |t: &[f64]| standard.equations(t, &identification);
        let count = identification.equations(m.n_factors());
        let border = jacobian(&theta, &sizes, count, control, equations)?;
        let off_axis = off_axis(&equations(&theta)?, &border);
        control.check()?;
        let spread = Spread::new(information(&scaled, &layout)?, border, rows)?;
        Ok(Self { layout, units, psi, theta, sizes, spread, off_axis })
    }

    fn precision(
        &self,
        then: Option<(&SecondStep<'_>, RowScale)>,
        control: &Control<'_>,
    ) -> Result<Precision> {
        let (p, q) = (self.layout.features, self.layout.factors);
        let fixed: Vec<usize> = (0..p).filter(|j| !self.layout.free.contains(j)).collect();
        let count = p * q + q * q + p;
        let slopes = jacobian(&self.theta, &self.sizes, 2 * count, control, |t| self.outputs(t, then))?;
        let errors = self.spread.deviations(slopes);
        let (mut given, standardised) = (self.shaped(&errors[..count]), self.shaped(&errors[count..]));
        for (j, unit) in self.units.iter().enumerate() {
            (0..q).for_each(|k| given.loadings[(j, k)] *= unit);
            given.uniquenesses[j] *= unit * unit;
        }
        fixed.iter().for_each(|&j| given.uniquenesses[j] = 0.0);
        Ok(Precision { given, standardised, fixed, off_axis: self.off_axis })
    }

    /// Λ, Φ and ψ of the last step at θ as one vector: first in fixed units, then standardised by their own
    /// variances.
    fn outputs(&self, theta: &[f64], then: Option<(&SecondStep<'_>, RowScale)>) -> Result<Vec<f64>> {
        let (l, phi, psi) = self.layout.unflatten(theta, &self.psi);
        let variance: Vec<f64> = communalities(&l, &phi).iter().zip(&psi).map(|(h, v)| h + v).collect();
        let (l, phi) = match then {
            Some((step, scale)) => self.stepped(&l, &variance, step, scale)?,
            None => (l, phi),
        };
        let mut out = Vec::new();
        for units in [&vec![1.0; psi.len()], &variance] {
            let column = |k: usize| l.col_as_slice(k).iter().zip(units).map(|(l, v)| l / v.sqrt());
            out.extend((0..l.ncols()).flat_map(column));
            out.extend((0..phi.ncols()).flat_map(|k| phi.col_as_slice(k)));
            out.extend(psi.iter().zip(units).map(|(psi, v)| psi / v));
        }
        Ok(out)
    }

    /// What a second step makes of Λ, in the units of Λ.
    fn stepped(
        &self,
        l: &Mat<f64>,
        variance: &[f64],
        step: &SecondStep<'_>,
        scale: RowScale,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let unit = |j: usize| if scale == RowScale::Given { self.units[j] } else { 1.0 / variance[j].sqrt() };
        let seen = Mat::from_fn(l.nrows(), l.ncols(), |j, k| l[(j, k)] * unit(j));
        let (l, phi) = step(seen.as_ref())?;
        Ok((Mat::from_fn(l.nrows(), l.ncols(), |j, k| l[(j, k)] / unit(j)), phi))
    }

    fn shaped(&self, errors: &[f64]) -> StandardErrors {
        let (p, q) = (self.layout.features, self.layout.factors);
        StandardErrors {
            loadings: Mat::from_fn(p, q, |j, k| errors[j + p * k]),
            correlation: Mat::from_fn(q, q, |r, s| if r == s { 0.0 } else { errors[p * q + r + q * s] }),
            uniquenesses: errors[p * q + q * q..].to_vec(),
        }
    }
}

fn ones(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |_, _| 1.0)
}

fn layout(m: &FactorModel<'_>, identification: &Identification<'_>, fixed: &[usize]) -> Result<Layout> {
    let (features, factors) = (m.n_features(), m.n_factors());
    if let Some(j) = fixed.iter().find(|j| **j >= features) {
        return Err(parameter("a feature", j, "an index below the number of features"));
    }
    let correlated = |phi: MatRef<'_, f64>| (0..factors).any(|s| (0..s).any(|r| phi[(r, s)].abs() > 1e-8));
    let oblique = identification.is_oblique();
    if !oblique && m.correlation().is_some_and(correlated) {
        return Err(parameter("the factor correlation", &"not 0", "0 unless the rotation is oblique"));
    }
    let free = (0..features).filter(|j| !fixed.contains(j)).collect();
    let layout = Layout { features, factors, oblique, free };
    if layout.len() > MOST_PARAMETERS {
        return Err(parameter("the number of parameters", &layout.len(), "at most 4000 for standard errors"));
    }
    Ok(layout)
}

/// Under Kaiser's normalisation, every feature has a loading.
fn check_kaiser(loadings: &Mat<f64>, identification: &Identification<'_>) -> Result<()> {
    let normalised = identification.rows() == Some(RowScale::Kaiser) && loadings.ncols() > 0;
    let zero = |j: &usize| (0..loadings.ncols()).all(|k| loadings[(*j, k)] == 0.0);
    match (0..loadings.nrows()).find(zero) {
        Some(j) if normalised => Err(Error::ZeroLoadings { feature: (j, None) }),
        _ => Ok(()),
    }
}

/// The largest left side of an equation, divided by its slope.
fn off_axis(values: &[f64], border: &Mat<f64>) -> f64 {
    let slope = |i: usize| (0..border.ncols()).map(|k| border[(i, k)].powi(2)).sum::<f64>().sqrt();
    values.iter().enumerate().map(|(i, v)| v.abs() / slope(i)).fold(0.0, f64::max)
}

/// The covariance of estimated parameters that satisfy equations, as a factor.
struct Spread {
    rows: f64,
    /// Parameters are divided by these so that each has information 1 (K).
    scale: Vec<f64>,
    /// LLᵀ = I + EᵀE, scaled.
    factor: Cholesky,
    /// L⁻¹Eᵀ (K × m) and the factor of its Gram matrix (m × m).
    border: Mat<f64>,
    gram: Cholesky,
}

impl Spread {
    fn new(mut information: Mat<f64>, mut border: Mat<f64>, rows: f64) -> Result<Self> {
        let k = information.ncols();
        let scale: Vec<f64> = (0..k).map(|a| 1.0 / information[(a, a)].sqrt()).collect();
        for b in 0..k {
            (b..k).for_each(|a| information[(a, b)] *= scale[a] * scale[b]);
            (0..border.nrows()).for_each(|i| border[(i, b)] *= scale[b]);
        }
        unit_rows(&mut border);
        // On the equations' surface EᵀE adds nothing; off it, it makes the singular I definite.
        let added = product(border.transpose(), border.as_ref());
        for b in 0..k {
            (b..k).for_each(|a| information[(a, b)] += added[(a, b)]);
        }
        let factor = determined(information)?;
        let mut border = border.transpose().to_owned();
        factor.solve_lower(border.as_mut());
        let gram = determined(product(border.transpose(), border.as_ref()))?;
        Ok(Self { rows, scale, factor, border, gram })
    }

    /// Standard deviations of functions of the parameters with these slopes (outputs × K).
    fn deviations(&self, slopes: Mat<f64>) -> Vec<f64> {
        let mut u = Mat::from_fn(slopes.ncols(), slopes.nrows(), |k, o| slopes[(o, k)] * self.scale[k]);
        drop(slopes);
        self.factor.solve_lower(u.as_mut());
        // The part of L⁻¹g along L⁻¹Eᵀ is not free to vary.
        let mut along = product(self.border.transpose(), u.as_ref());
        self.gram.solve(along.as_mut());
        let fixed = product(self.border.as_ref(), along.as_ref());
        let free = |o: usize| (0..u.nrows()).map(|k| (u[(k, o)] - fixed[(k, o)]).powi(2)).sum::<f64>();
        (0..u.ncols()).map(|o| (free(o) / self.rows).sqrt()).collect()
    }
}

fn unit_rows(a: &mut Mat<f64>) {
    for i in 0..a.nrows() {
        let norm = (0..a.ncols()).map(|k| a[(i, k)].powi(2)).sum::<f64>().sqrt();
        (0..a.ncols()).for_each(|k| a[(i, k)] /= norm);
    }
}

/// The factor of a matrix of unit size, if everything in it is determined.
fn determined(a: Mat<f64>) -> Result<Cholesky> {
    const WHAT: &str = "the information about the parameters (too many factors, or axes that the rotation \
        does not determine)";
    let k = a.nrows();
    if (0..k).any(|i| !a[(i, i)].is_finite()) {
        return Err(Error::NotPositiveDefinite { what: WHAT, index: 0 });
    }
    let factor = Cholesky::new(a, WHAT)?;
    match (0..k).find(|&i| factor.lower()[(i, i)].powi(2) < UNDETERMINED) {
        Some(index) => Err(Error::NotPositiveDefinite { what: WHAT, index }),
        None => Ok(factor),
    }
}

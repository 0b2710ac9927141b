//! The rotations by name, with their parameters.

use std::fmt;
use std::str::FromStr;

use super::criterion::Criterion;
use super::normalise::Normalisation;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};

/// Names that [`FromStr`] understands; targets are matrices and cannot be typed.
const NAMES: &str = "varimax, quartimax, equamax, parsimax, promax, oblimin, quartimin, geomin (oblique) or \
                     geomin-orthogonal; target and procrustes need the matrix they aim at";
/// Random and other starts of a criterion that rarely has a second optimum, and of geomin, which often has.
const STARTS: (usize, usize) = (10, 30);

/// What makes loadings simple.
///
/// | name | turn | minimises |
/// |---|---|---|
/// | `varimax`, `quartimax`, `equamax`, `parsimax` | orthogonal | κ = 1/p, 0, q/2p, (q−1)/(p+q−2) \[CF70\] |
/// | `promax` | oblique | distance from powers of the varimax loadings, in closed form \[HW64\] |
/// | `oblimin`, `quartimin` (γ = 0) | oblique | direct oblimin \[JS66\] |
/// | `geomin`, `geomin-orthogonal` | either | geometric means of squared loadings of a feature \[Y87\] |
/// | `target` | either | distance from a target in the cells where it is a number \[B72\] |
/// | `procrustes` | either | distance from a whole target, in closed form \[S66\] \[HC62\] |
///
/// Names are those of R and are read in any case ([`FromStr`]). `geomin` alone is oblique, as in Mplus and
/// lavaan; `geominT` and `geominQ` are read as in R's GPArotation and psych.
///
/// ```
/// use covary::rotate::Method;
///
/// let method: Method = "oblimin".parse()?;
/// assert!(method.is_oblique());
/// assert_eq!("geominT".parse::<Method>()?.name(), "geomin-orthogonal");
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Method {
    /// Orthogonal; few large loadings for each factor (κ = 1/p).
    Varimax,
    /// Orthogonal; few large loadings for each feature (κ = 0).
    Quartimax,
    /// Orthogonal; between the two (κ = q/2p).
    Equamax,
    /// Orthogonal; weighs features and factors equally (κ = (q−1)/(p+q−2)).
    Parsimax,
    /// Oblique: least squares towards signed powers of the varimax loadings, then factors of unit variance.
    Promax {
        /// The power, above 1; usually 4.
        power: f64,
    },
    /// Oblique: covariances of squared loadings.
    Oblimin {
        /// At most 0 for a criterion that is bounded below \[J79\]; 0 is quartimin, the lower the less
        /// oblique.
        gamma: f64,
    },
    /// Geometric means of the squared loadings of each feature.
    Geomin {
        /// Added to the squared loadings (the normalised ones under Kaiser's normalisation), in their unit;
        /// usually 0.01. The smaller the more local optima.
        delta: f64,
        /// Whether factors may be correlated.
        oblique: bool,
    },
    /// Least squares in the cells where the target is not NaN.
    Target {
        /// p × q; NaN where the loading is free.
        target: Mat<f64>,
        /// Whether factors may be correlated.
        oblique: bool,
    },
    /// Least squares in closed form: the nearest turn, or the regression on the target with factors of unit
    /// variance.
    Procrustes {
        /// p × q, without NaN.
        target: Mat<f64>,
        /// Whether factors may be correlated.
        oblique: bool,
    },
}

impl Method {
    /// Promax with its usual power, 4.
    pub fn promax() -> Self {
        Self::Promax { power: 4.0 }
    }

    /// Oblimin with γ = 0.
    pub fn quartimin() -> Self {
        Self::Oblimin { gamma: 0.0 }
    }

    /// Oblique geomin with its usual δ, 0.01.
    pub fn geomin() -> Self {
        Self::Geomin { delta: 0.01, oblique: true }
    }

    /// Orthogonal geomin with its usual δ, 0.01.
    pub fn geomin_orthogonal() -> Self {
        Self::Geomin { delta: 0.01, oblique: false }
    }

    /// As people type it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Varimax => "varimax",
            Self::Quartimax => "quartimax",
            Self::Equamax => "equamax",
            Self::Parsimax => "parsimax",
            Self::Promax { .. } => "promax",
            Self::Oblimin { .. } => "oblimin",
            Self::Geomin { oblique: true, .. } => "geomin",
            Self::Geomin { .. } => "geomin-orthogonal",
            Self::Target { .. } => "target",
            Self::Procrustes { .. } => "procrustes",
        }
    }

    /// Promax's power, oblimin's γ, geomin's δ.
    pub fn parameter(&self) -> Option<f64> {
        match self {
            Self::Promax { power: value }
            | Self::Oblimin { gamma: value }
            | Self::Geomin { delta: value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Whether factors may be correlated.
    pub fn is_oblique(&self) -> bool {
        match self {
            Self::Promax { .. } | Self::Oblimin { .. } => true,
            Self::Geomin { oblique, .. }
            | Self::Target { oblique, .. }
            | Self::Procrustes { oblique, .. } => *oblique,
            _ => false,
        }
    }

    /// Whether rows are normalised unless told: as R's `varimax` and `promax` do, and GPArotation does not.
    pub fn kaiser_by_default(&self) -> bool {
        matches!(self, Self::Varimax | Self::Promax { .. })
    }

    /// Starts unless told: 30 for geomin, 1 for closed forms, otherwise 10.
    pub fn starts_by_default(&self) -> usize {
        match self {
            Self::Geomin { .. } => STARTS.1,
            Self::Procrustes { .. } => 1,
            _ => STARTS.0,
        }
    }

    /// The matrix that is aimed at.
    pub fn target(&self) -> Option<&Mat<f64>> {
        match self {
            Self::Target { target, .. } | Self::Procrustes { target, .. } => Some(target),
            _ => None,
        }
    }

    /// Value and gradient of the criterion at a pattern (p × q), in the pattern's own units; `None` for
    /// closed forms.
    pub(crate) fn gradient(&self, pattern: MatRef<'_, f64>) -> Option<(f64, Mat<f64>)> {
        let given = Normalisation::equal(pattern.nrows(), 1.0);
        Some(Criterion::of(self, pattern.ncols(), &given)?.at(pattern))
    }

    /// Whether parameters make sense for loadings of this shape.
    pub(super) fn check(&self, p: usize, q: usize) -> Result<()> {
        match self {
            Self::Promax { power } if !(power.is_finite() && *power > 1.0) => {
                Err(parameter("the power of promax", power, "finite and above 1"))
            }
            Self::Oblimin { gamma } if !(gamma.is_finite() && *gamma <= 1.0) => {
                Err(parameter("gamma of oblimin", gamma, "at most 1, and better not above 0"))
            }
            Self::Geomin { delta, .. } if !(delta.is_finite() && *delta > 0.0) => {
                Err(parameter("delta of geomin", delta, "finite and positive"))
            }
            _ => self.target().map_or(Ok(()), |t| self.check_target(t, p, q)),
        }
    }

    fn check_target(&self, target: &Mat<f64>, p: usize, q: usize) -> Result<()> {
        let shape = [("rows of the target", p, target.nrows()), ("columns of the target", q, target.ncols())];
        if let Some((what, expected, found)) = shape.into_iter().find(|(_, a, b)| a != b) {
            return Err(Error::Length { what, expected, found });
        }
        let mut cells = (0..q).flat_map(|j| target.col_as_slice(j));
        let free = matches!(self, Self::Target { .. });
        match cells.find(|x| x.is_infinite() || (x.is_nan() && !free)) {
            Some(x) if x.is_nan() => Err(parameter(
                "a cell of the target",
                x,
                "a number for procrustes; the rotation for targets with free cells is target",
            )),
            Some(x) => Err(parameter("a cell of the target", x, "finite, or NaN where the loading is free")),
            None => Ok(()),
        }
    }
}

pub(super) fn parameter(name: &'static str, value: &dyn fmt::Display, allowed: &'static str) -> Error {
    Error::Parameter { name, value: value.to_string(), allowed }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "varimax" => Self::Varimax,
            "quartimax" => Self::Quartimax,
            "equamax" | "equimax" => Self::Equamax,
            "parsimax" => Self::Parsimax,
            "promax" => Self::promax(),
            "oblimin" | "quartimin" => Self::quartimin(),
            "geomin" | "geominq" | "geomin-oblique" => Self::geomin(),
            "geomint" | "geomin-orthogonal" => Self::geomin_orthogonal(),
            _ => return Err(Error::Parameter { name: "the rotation", value: name.into(), allowed: NAMES }),
        })
    }
}

/// The name, with parameters in brackets when there are any.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Promax { power } => write!(f, " (power {power})"),
            Self::Oblimin { gamma } => write!(f, " (gamma {gamma})"),
            Self::Geomin { delta, .. } => write!(f, " (delta {delta})"),
            Self::Target { oblique: true, .. } | Self::Procrustes { oblique: true, .. } => {
                f.write_str(" (oblique)")
            }
            _ => Ok(()),
        }
    }
}

//! What pins the axes of the factors down: the equations that unrotated and rotated loadings satisfy.

use super::information::Layout;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, MatRef, product};

/// ∂Q/∂Λ (p × q) of a rotation criterion Q at loadings Λ (p × q).
pub type Gradient<'a> = dyn Fn(MatRef<'_, f64>) -> Mat<f64> + 'a;

/// How the rows of the loadings were scaled for the rotation criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowScale {
    /// Not at all.
    Given,
    /// By the feature's standard deviation under the model: loadings of the correlation matrix.
    Standardised,
    /// By the root of the communality, to length 1 (Kaiser's normalisation).
    Kaiser,
}

/// What pins the axes of the factors down.
#[derive(Clone, Copy)]
pub enum Identification<'a> {
    /// ΛᵀΨ⁻¹Λ is diagonal: unrotated maximum-likelihood loadings.
    Canonical,
    /// A stationary point of a criterion among orthogonal rotations: Λᵀ∂Q/∂Λ is symmetric \[AJ73\].
    Orthogonal(&'a Gradient<'a>, RowScale),
    /// A stationary point of a criterion among oblique rotations: Λᵀ(∂Q/∂Λ)Φ⁻¹ is diagonal \[J73\].
    Oblique(&'a Gradient<'a>, RowScale),
}

impl std::fmt::Debug for Identification<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Canonical => f.write_str("Canonical"),
            Self::Orthogonal(_, rows) => write!(f, "Orthogonal(_, {rows:?})"),
            Self::Oblique(_, rows) => write!(f, "Oblique(_, {rows:?})"),
        }
    }
}

impl Identification<'_> {
    /// Whether the factors may correlate.
    pub fn is_oblique(&self) -> bool {
        matches!(self, Self::Oblique(..))
    }

    /// How rows were scaled for the criterion, where there is one.
    pub(super) fn rows(&self) -> Option<RowScale> {
        match self {
            Self::Canonical => None,
            Self::Orthogonal(_, rows) | Self::Oblique(_, rows) => Some(*rows),
        }
    }

    /// Number of equations for q factors.
    pub(super) fn equations(&self, q: usize) -> usize {
        let pairs = q * q.saturating_sub(1) / 2;
        if self.is_oblique() { 2 * pairs } else { pairs }
    }
}

/// Parameters in units in which every feature has variance 1, with what leads back.
pub(super) struct Standard<'a> {
    pub(super) layout: &'a Layout,
    /// ψ, of which the fixed ones are used.
    pub(super) psi: &'a [f64],
    /// Standard deviations that were divided out.
    pub(super) units: &'a [f64],
}

impl Standard<'_> {
    /// The left sides of the equations at θ; all 0 where the axes are as the rotation leaves them.
    pub(super) fn equations(&self, theta: &[f64], identification: &Identification<'_>) -> Result<Vec<f64>> {
        let (l, phi, psi) = self.layout.unflatten(theta, self.psi);
        match identification {
            Identification::Canonical => {
                let scaled = Mat::from_fn(l.nrows(), l.ncols(), |j, k| l[(j, k)] / psi[j]);
                let m = product(l.transpose(), scaled.as_ref());
                Ok(below(l.ncols()).map(|rs| m[rs]).collect())
            }
            Identification::Orthogonal(gradient, rows) => {
                let m = self.stationarity(&l, &phi, &psi, gradient, *rows)?;
                Ok(below(l.ncols()).map(|(r, s)| m[(r, s)] - m[(s, r)]).collect())
            }
            Identification::Oblique(gradient, rows) => {
                let mut m = self.stationarity(&l, &phi, &psi, gradient, *rows)?.transpose().to_owned();
                // (MΦ⁻¹)ᵀ = Φ⁻¹Mᵀ
                Cholesky::new(phi, "the factor correlation")?.solve(m.as_mut());
                Ok(below(l.ncols()).flat_map(|(r, s)| [m[(r, s)], m[(s, r)]]).collect())
            }
        }
    }

    /// Λᵀ∂Q/∂Λ (q × q) at the loadings that the criterion saw.
    fn stationarity(
        &self,
        l: &Mat<f64>,
        phi: &Mat<f64>,
        psi: &[f64],
        gradient: &Gradient<'_>,
        rows: RowScale,
    ) -> Result<Mat<f64>> {
        let seen = self.scaled(l, phi, psi, rows);
        let g = gradient(seen.as_ref());
        if (g.nrows(), g.ncols()) != (l.nrows(), l.ncols()) {
            return Err(Error::Length {
                what: "rows of the gradient",
                expected: l.nrows(),
                found: g.nrows(),
            });
        }
        Ok(product(seen.transpose(), g.as_ref()))
    }

    /// Λ with its rows scaled.
    fn scaled(&self, l: &Mat<f64>, phi: &Mat<f64>, psi: &[f64], rows: RowScale) -> Mat<f64> {
        let factors: Vec<f64> = match rows {
            RowScale::Given => self.units.to_vec(),
            RowScale::Standardised => {
                communalities(l, phi).iter().zip(psi).map(|(h, v)| 1.0 / (h + v).sqrt()).collect()
            }
            RowScale::Kaiser => communalities(l, phi).iter().map(|h| 1.0 / h.sqrt()).collect(),
        };
        Mat::from_fn(l.nrows(), l.ncols(), |j, k| l[(j, k)] * factors[j])
    }
}

/// The diagonal of ΛΦΛᵀ (p).
pub(super) fn communalities(l: &Mat<f64>, phi: &Mat<f64>) -> Vec<f64> {
    let structure = product(l.as_ref(), phi.as_ref());
    let mut out = vec![0.0; l.nrows()];
    for k in 0..l.ncols() {
        let pairs = l.col_as_slice(k).iter().zip(structure.col_as_slice(k));
        out.iter_mut().zip(pairs).for_each(|(o, (l, s))| *o += l * s);
    }
    out
}

/// Positions below the diagonal of a q × q matrix.
fn below(q: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..q).flat_map(move |s| (s + 1..q).map(move |r| (r, s)))
}

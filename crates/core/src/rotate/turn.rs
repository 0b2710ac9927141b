//! Where the turn T lives and how it moves: orthogonal matrices, or columns of length 1.

use super::Method;
use super::criterion::Criterion;
use crate::linalg::{Mat, MatRef, inverse, orthonormal_columns, product, unit_columns};

/// Largest entry of T⁻¹ before factors are said to have fallen together: correlations are then about 0.9999,
/// and ΛΦΛᵀ loses digits.
const LARGEST: f64 = 100.0;

/// The set of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// TᵀT = I.
    Orthogonal,
    /// diag TᵀT = I.
    Oblique,
}

/// A turn with the criterion there.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) turn: Mat<f64>,     // T (q × q)
    pub(super) value: f64,         // of the criterion, per feature
    pub(super) gradient: Mat<f64>, // along the space (q × q), per feature
    pub(super) collapsed: bool,    // whether factors have as good as fallen together
}

impl Space {
    /// The turns that a method allows.
    pub(super) fn of(method: &Method) -> Self {
        if method.is_oblique() { Self::Oblique } else { Self::Orthogonal }
    }

    /// The criterion and its gradient along the space for loadings A turned by T; `None` when T is singular.
    ///
    /// Orthogonal: with Λ = AT and G = AᵀdQ/dΛ, the projection is G − T sym(TᵀG) \[J01\]. Oblique: with
    /// Λ = AT⁻ᵀ and G = −(ΛᵀdQ/dΛ T⁻¹)ᵀ, it is G − T diag(TᵀG) \[J02\].
    pub(super) fn at(
        self,
        loadings: MatRef<'_, f64>,
        criterion: &Criterion,
        turn: Mat<f64>,
    ) -> Option<Point> {
        let inverse = self.inverse(turn.as_ref())?;
        let collapsed = inverse.norm_max() > LARGEST;
        let pattern = product(loadings, inverse.transpose());
        let (value, slope) = criterion.at(pattern.as_ref());
        let p = loadings.nrows() as f64;
        let g = match self {
            Self::Orthogonal => product(loadings.transpose(), slope.as_ref()),
            Self::Oblique => {
                let inner = product(slope.transpose(), pattern.as_ref()); // (dQ/dΛ)ᵀΛ
                -product(inverse.transpose(), inner.as_ref())
            }
        };
        let gradient = self.along(&turn, &g) * (1.0 / p);
        (value.is_finite() && gradient.norm_max().is_finite()).then_some(Point {
            turn,
            value: value / p,
            gradient,
            collapsed,
        })
    }

    fn inverse(self, turn: MatRef<'_, f64>) -> Option<Mat<f64>> {
        match self {
            Self::Orthogonal => Some(turn.transpose().to_owned()),
            Self::Oblique => inverse(turn),
        }
    }

    /// T⁻¹, unless factors have fallen together.
    pub(super) fn sound_inverse(self, turn: MatRef<'_, f64>) -> Option<Mat<f64>> {
        self.inverse(turn).filter(|t| t.norm_max() <= LARGEST)
    }

    /// The part of a direction that stays in the space to first order.
    fn along(self, turn: &Mat<f64>, g: &Mat<f64>) -> Mat<f64> {
        let inner = product(turn.transpose(), g.as_ref()); // TᵀG (q × q)
        let q = inner.nrows();
        let outward = Mat::from_fn(q, q, |i, j| match self {
            Self::Orthogonal => 0.5 * (inner[(i, j)] + inner[(j, i)]),
            Self::Oblique if i == j => inner[(i, i)],
            Self::Oblique => 0.0,
        });
        g - product(turn.as_ref(), outward.as_ref())
    }

    /// The point of the space to which T − step·G leads.
    pub(super) fn moved(self, from: &Point, step: f64) -> Mat<f64> {
        let there = &from.turn - &from.gradient * step;
        match self {
            Self::Orthogonal => orthonormal_columns(there),
            Self::Oblique => unit_columns(there),
        }
    }
}

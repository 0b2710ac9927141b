//! The two sets that an unmixing matrix is looked for in, orthogonal and all invertible ones: loss, gradient,
//! second derivatives and steps of each.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::evidence::ContrastMeans;
use crate::linalg::{Cholesky, Mat, inverse, product};

/// Least second derivative: below, a step would be too long to be trusted.
const LEAST_CURVATURE: f64 = 0.01;
/// E sech ν of a standard normal ν: what makes φ(y) sech(y) a density.
const MEAN_SECH: f64 = 0.741_264_274_125_495_6;

/// Where W is looked for, and the densities of the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Whether W is orthogonal (Picard-O), so that sources are uncorrelated; otherwise it is infomax.
    pub(crate) orthogonal: bool,
    /// Whether each source has the density φ(y) sech(y) or φ(y) cosh(y), whichever fits; otherwise all have
    /// sech(y)/π, which suits heavy tails only.
    pub(crate) extended: bool,
}

/// A matrix W with what the rows say there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) matrix: Arc<Mat<f64>>,
    pub(super) means: ContrastMeans,
    /// 1 for sources of heavy tails, −1 for those of light ones.
    pub(super) signs: Vec<f64>,
    /// Γ, the relative gradient of the loss: L((I + D) W) ≈ L(W) + Σ Γᵢⱼ Dᵢⱼ (q × q).
    pub(super) gradient: Mat<f64>,
    pub(super) loss: f64,
    curvature: Mat<f64>, // second derivatives (q × q)
}

impl Place {
    /// Largest entry of the gradient.
    pub(super) fn gradient_size(&self) -> f64 {
        self.gradient.norm_max()
    }
}

impl Geometry {
    /// Signs that fit the sources: E ψ′(y) E y² − E ψ(y) y is positive for heavy tails \[LGS99\].
    pub(super) fn signs(self, matrix: &Mat<f64>, means: &ContrastMeans) -> Vec<f64> {
        let q = matrix.nrows();
        if !self.extended {
            return vec![1.0; q];
        }
        let along = |i: usize| -> f64 { (0..q).map(|j| means.slope[(i, j)] * matrix[(i, j)]).sum() };
        let square = |i: usize| -> f64 { (0..q).map(|j| matrix[(i, j)].powi(2)).sum() };
        (0..q).map(|i| if means.bend[i] * square(i) < along(i) { -1.0 } else { 1.0 }).collect()
    }

    /// Loss, gradient and second derivatives.
    ///
    /// With G = E ψ(y) yᵀ and signs s, orthogonal: Γ = ½(sG − (sG)ᵀ) and second derivatives
    /// ½(κᵢ + κⱼ), κᵢ = sᵢ(E ψ′(yᵢ) − Gᵢᵢ) \[ACG18\]. Otherwise Γ = sG + E yyᵀ − I (without E yyᵀ unless
    /// extended) and hᵢⱼ = E ψ′(yᵢ) E yⱼ² \[ACG18b\].
    ///
    /// # Errors
    /// When W is singular.
    pub(super) fn place(self, matrix: Arc<Mat<f64>>, means: ContrastMeans, signs: Vec<f64>) -> Result<Place> {
        let q = matrix.nrows();
        let mut slopes = product(means.slope.as_ref(), matrix.transpose()); // G
        (0..q).for_each(|i| (0..q).for_each(|j| slopes[(i, j)] *= signs[i]));
        let bend = |i: usize| signs[i] * means.bend[i];
        let mut loss: f64 = means.value.iter().zip(&signs).map(|(v, s)| v * s).sum();
        let (gradient, curvature) = if self.orthogonal {
            let gradient = Mat::from_fn(q, q, |i, j| 0.5 * (slopes[(i, j)] - slopes[(j, i)]));
            let kappa = |i: usize| bend(i) - slopes[(i, i)];
            (gradient, Mat::from_fn(q, q, |i, j| (0.5 * (kappa(i) + kappa(j))).max(LEAST_CURVATURE)))
        } else {
            let squares = product((*matrix).as_ref(), matrix.transpose()); // E yyᵀ
            let own = f64::from(u8::from(self.extended));
            loss += 0.5 * own * (0..q).map(|i| squares[(i, i)]).sum::<f64>();
            loss -= 0.5 * Cholesky::new(squares.clone(), "the unmixing matrix")?.log_det();
            let identity = |i: usize, j: usize| f64::from(u8::from(i == j));
            let entry = |i: usize, j: usize| slopes[(i, j)] + own * squares[(i, j)] - identity(i, j);
            (Mat::from_fn(q, q, entry), Mat::from_fn(q, q, |i, j| (bend(i) + own) * squares[(j, j)]))
        };
        Ok(Place { matrix, means, signs, gradient, loss, curvature })
    }

    /// Mean log density of the whitened rows.
    pub(super) fn log_likelihood(self, place: &Place) -> f64 {
        let own = if self.orthogonal { 0.5 } else { 0.0 }; // E y²/2
        let constant = |s: &f64| match self.extended {
            false => PI.ln(),
            true => 0.5 * TAU.ln() + own + if *s > 0.0 { MEAN_SECH.ln() } else { 0.5 },
        };
        0.0 - place.loss - place.signs.iter().map(constant).sum::<f64>()
    }

    /// The free entries of a relative step or gradient: those below the diagonal, or all.
    pub(super) fn coordinates(self, of: &Mat<f64>) -> Vec<f64> {
        let q = of.nrows();
        let first = |j: usize| if self.orthogonal { j + 1 } else { 0 };
        (0..q).flat_map(|j| (first(j)..q).map(move |i| of[(i, j)])).collect()
    }

    /// The matrix of free entries.
    pub(super) fn matrix(self, q: usize, coordinates: &[f64]) -> Mat<f64> {
        let mut out = Mat::zeros(q, q);
        let mut next = coordinates.iter();
        for j in 0..q {
            for i in if self.orthogonal { j + 1 } else { 0 }..q {
                let Some(x) = next.next() else { return out };
                out[(i, j)] = *x;
                if self.orthogonal {
                    out[(j, i)] = -x;
                }
            }
        }
        out
    }

    /// A gradient divided by the second derivatives.
    pub(super) fn preconditioned(self, place: &Place, gradient: &Mat<f64>) -> Mat<f64> {
        let (q, h) = (gradient.nrows(), &place.curvature);
        if self.orthogonal {
            return Mat::from_fn(q, q, |i, j| gradient[(i, j)] / h[(i, j)]);
        }
        // (i, j) and (j, i) belong together: [[hᵢⱼ, 1], [1, hⱼᵢ]] (Dᵢⱼ, Dⱼᵢ) = (Γᵢⱼ, Γⱼᵢ).
        Mat::from_fn(q, q, |i, j| {
            let (a, b) = (h[(i, j)], h[(j, i)]);
            if i == j {
                return gradient[(i, i)] / (a + 1.0).max(LEAST_CURVATURE);
            }
            let least = 0.5 * (a + b - ((a - b).powi(2) + 4.0).sqrt()); // eigenvalue
            let more = (LEAST_CURVATURE - least).max(0.0);
            let (a, b) = (a + more, b + more);
            (b * gradient[(i, j)] - gradient[(j, i)]) / (a * b - 1.0)
        })
    }

    /// W after a relative step D: (I − D/2)⁻¹(I + D/2) W, which stays orthogonal (Cayley's transform), or
    /// (I + D) W.
    ///
    /// # Errors
    /// When the step is so long that arithmetic breaks down.
    pub(super) fn moved(self, matrix: &Mat<f64>, step: &Mat<f64>) -> Result<Mat<f64>> {
        let q = matrix.nrows();
        let shifted =
            |factor: f64| Mat::from_fn(q, q, |i, j| f64::from(u8::from(i == j)) + factor * step[(i, j)]);
        if !self.orthogonal {
            return Ok(product(shifted(1.0).as_ref(), matrix.as_ref()));
        }
        let below =
            inverse(shifted(-0.5).as_ref()).ok_or(Error::Decomposition("step of the unmixing matrix"))?;
        Ok(product(product(below.as_ref(), shifted(0.5).as_ref()).as_ref(), matrix.as_ref()))
    }
}

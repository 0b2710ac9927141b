//! The maximisation step of parameter-expanded EM: from evidence to better parameters, and to the slope of the likelihood.
//!
//! Each feature is regressed on (z, 1) over the rows that have it, which re-estimates the mean too \[TB99, IR10\]. Then z,
//! whose mean and covariance over the rows have drifted from 0 and I, is standardised and the change given to μ and W
//! \[LRW98\]: $\mu \leftarrow \mu + W \bar z$, $W \leftarrow W V^{1/2}$.

use crate::error::{Error, Result};
use crate::evidence::{Latent, LatentParameters};
use crate::linalg::{Lanes, Mat, MatRef, packed, packed_len, product, symmetric_eigen};

/// Features whose normal equations are solved together.
const LANES: usize = 64;

/// One step of parameter-expanded EM from evidence: better parameters for the rows that it is about.
///
/// Together with mergeable [`Latent`] evidence this is all that a fit in passes over parts of the data needs, wherever the
/// parts lie.
///
/// ```
/// use std::sync::Arc;
/// use covary::algorithm::em_step;
/// use covary::data::Rows;
/// use covary::evidence::{Latent, LatentParameters, gather};
/// use covary::linalg::Mat;
///
/// let cells = [1.0, 2.1, 2.0, f64::NAN, 3.0, 6.2, f64::NAN, 7.8, 5.0, 9.9];
/// let rows = Rows::from_slice(&cells, 2)?;
/// let start = LatentParameters::new(vec![3.0, 6.0], Mat::from_fn(2, 1, |_, _| 1.0).as_ref(), 1.0)?;
/// let mut parameters = Arc::new(start);
/// let mut last = f64::NEG_INFINITY;
/// for _ in 0..5 {
///     let evidence = gather(rows.source(), || Latent::empty(parameters.clone()), &Default::default())?;
///     assert!(evidence.log_likelihood() >= last);
///     last = evidence.log_likelihood();
///     parameters = Arc::new(em_step(&evidence)?);
/// }
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When a decomposition fails, or there are no rows.
pub fn em_step(evidence: &Latent) -> Result<LatentParameters> {
    Maximised::of(evidence).map(|m| m.parameters)
}

/// The maximisation step, and the slope of the likelihood where it started.
pub(super) struct Maximised<'a> {
    evidence: &'a Latent,
    parameters: LatentParameters,
    residual: Mat<f64>, // Σ w E[(x − μ − Wz)(z, 1)] (q + 1 × p): σ² times the gradient
    expected: f64,      // Σ w E‖x − μ − Wz‖²
}

impl<'a> Maximised<'a> {
    pub(super) fn of(evidence: &'a Latent) -> Result<Self> {
        if evidence.weight() == 0.0 {
            return Err(Error::NoRows);
        }
        let residual = residual(evidence);
        let step = normal_equations(evidence, residual.as_ref()); // (q + 1 × p)
        let each = step.col_iter().zip(residual.col_iter());
        let reduction: f64 = each.map(|(s, r)| s.iter().zip(r.iter()).map(|(s, r)| s * r).sum::<f64>()).sum();
        let totals = &evidence.totals;
        let expected = totals.squares + evidence.parameters().noise() * totals.determined;
        // What is left is a sum of squares: where rounding takes it, it is as small as rounding.
        let noise = ((expected - reduction) / totals.cells).max(f64::EPSILON * expected / totals.cells);
        let parameters = standardise(evidence, step.as_ref(), noise.max(f64::MIN_POSITIVE))?;
        Ok(Self { evidence, parameters, residual, expected })
    }

    pub(super) fn parameters(&self) -> &LatentParameters {
        &self.parameters
    }

    pub(super) fn into_parameters(self) -> LatentParameters {
        self.parameters
    }

    /// ∂ℓ/∂(wⱼ, μⱼ) of each feature and ∂ℓ/∂ log σ² at the start: by Fisher's identity those of the expected complete-data
    /// likelihood.
    pub(super) fn gradient(&self) -> Vec<f64> {
        let noise = self.evidence.parameters().noise();
        let features = self.residual.col_iter().flat_map(|c| c.iter().map(|r| r / noise));
        features.chain([0.5 * (self.expected / noise - self.evidence.totals.cells)]).collect()
    }

    /// A gradient divided by what the information would be if z were known.
    pub(super) fn precondition(&self, gradient: &[f64]) -> Vec<f64> {
        let noise = self.evidence.parameters().noise();
        let (size, p) = (self.residual.nrows(), self.residual.ncols());
        let right = MatRef::from_column_major_slice(&gradient[..size * p], size, p);
        let solved = normal_equations(self.evidence, right);
        let features = solved.col_iter().flat_map(|c| c.iter().map(|x| x * noise));
        features.chain([gradient[size * p] / (0.5 * self.evidence.totals.cells)]).collect()
    }

    /// Square roots of about that information, one number per coordinate: the natural lengths of steps.
    pub(super) fn scale(&self) -> Vec<f64> {
        let parameters = self.evidence.parameters();
        let (q, noise) = (parameters.n_latent(), parameters.noise());
        let length = |j: usize| (self.evidence.second[(packed(q, q), j)] / noise).sqrt();
        let features = (0..self.residual.ncols()).flat_map(|j| std::iter::repeat_n(length(j), q + 1));
        features.chain([(0.5 * self.evidence.totals.cells).sqrt()]).collect()
    }
}

/// Σ w E[(x − μ − Wz)(z, 1)] of each feature: what the normal equations of the step have on their right (q + 1 × p).
fn residual(evidence: &Latent) -> Mat<f64> {
    let w = evidence.parameters().loadings_transposed();
    let q = w.nrows();
    let mut out = evidence.cross.clone();
    for j in 0..out.ncols() {
        let (out, second, w) = (out.col_as_slice_mut(j), evidence.second.col_as_slice(j), w.col(j));
        for (i, out) in out.iter_mut().enumerate() {
            let entry = |k: usize| second[packed(i.max(k), i.min(k))];
            *out -= (0..q).map(|k| entry(k) * w[k]).sum::<f64>();
        }
    }
    out
}

/// Solves each feature's normal equations (q + 1 × p).
fn normal_equations(evidence: &Latent, right: MatRef<'_, f64>) -> Mat<f64> {
    let (size, p) = (right.nrows(), right.ncols());
    let mut out = Mat::zeros(size, p);
    for first in (0..p).step_by(LANES) {
        let lanes = LANES.min(p - first);
        let matrices = Mat::from_fn(lanes, packed_len(size), |l, k| evidence.second[(k, first + l)]);
        let mut step = Mat::from_fn(lanes, size, |l, i| right[(i, first + l)]);
        Lanes::new(matrices, size, 0.0).solve(&mut step);
        out.as_mut().subcols_mut(first, lanes).copy_from(step.transpose());
    }
    out
}

/// Takes the step and gives the mean and covariance that z has over the rows to μ and W.
fn standardise(evidence: &Latent, step: MatRef<'_, f64>, noise: f64) -> Result<LatentParameters> {
    let start = evidence.parameters();
    let (p, q, unit) = (start.n_features(), start.n_latent(), start.unit());
    let (second, weight) = (&evidence.totals.second, evidence.weight());
    let center: Vec<f64> = (0..q).map(|i| second[packed(q, i)] / weight).collect();
    let spread = |i: usize, j: usize| second[packed(i.max(j), i.min(j))] / weight - center[i] * center[j];
    let root = square_root(Mat::from_fn(q, q, spread).as_ref())?;
    let w = Mat::from_fn(q, p, |i, j| start.loadings_transposed()[(i, j)] + step[(i, j)]);
    let moved = |j: usize| step[(q, j)] + dot(w.col_as_slice(j), &center);
    let mean = start.mean().iter().enumerate().map(|(j, m)| m + unit * moved(j)).collect();
    Ok(LatentParameters::in_units(mean, &product(root.as_ref(), w.as_ref()), noise, unit))
}

/// The symmetric square root: of all roots the one nearest to I, so that coordinates of z do not turn without need.
fn square_root(matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    let eigen = symmetric_eigen(matrix)?;
    let roots: Vec<f64> = eigen.values.iter().map(|v| v.max(0.0).sqrt()).collect();
    let scaled = Mat::from_fn(matrix.nrows(), roots.len(), |i, j| eigen.vectors[(i, j)] * roots[j]);
    Ok(product(scaled.as_ref(), eigen.vectors.transpose()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

//! The maximisation step of parameter-expanded EM: from evidence to better parameters, and to the slope of
//! the likelihood.
//!
//! Each feature is regressed on (z, 1) over the rows that have it, which re-estimates the mean too
//! \[TB99, IR10\]: the change Δ (q + 1) of $(w_j, \mu_j)$ solves $A_j \Delta = r_j$ with
//! $A_j = \sum \mathrm E[(z, 1)(z, 1)^\top]$ (q + 1 × q + 1) and
//! $r_j = \sum \mathrm E[(x - \mu_j - w_j^\top z)(z, 1)]$. The noise variance is what is left of the squares,
//! $\sigma^2 \leftarrow (\sum \mathrm E(x - \mu - w^\top z)^2 - \sum_j \Delta_j^\top r_j) / \text{cells}$: a
//! small correction of a sum of squares, not a difference of large numbers.
//!
//! Then z, whose mean z̄ and covariance V over the rows have drifted from 0 and I, is standardised and the
//! change given to μ and W \[LRW98\]: $\mu \leftarrow \mu + W \bar z$, $W \leftarrow W V^{1/2}$. A [`Prior`]
//! adds to the normal equations ([`PriorTerms`]); where W keeps a distribution, its covariance is $\sigma^2$
//! times the inverse of their left side.

use super::prior::{Prior, PriorTerms, carried};
use crate::error::{Error, Result};
use crate::evidence::Latent;
use crate::expectation::{FeatureScale, LatentParameters};
use crate::linalg::{Lanes, Mat, MatRef, covariance_eigen, packed, packed_len, product};

/// Features whose normal equations are solved together.
const LANES: usize = 64;
/// Share of the noise that rounding of a feature's normal equations may add.
const ADDED_NOISE: f64 = 1e-6;
/// A latent variable that varies by this share of its variance beside the others is told from them, however
/// small the noise.
const TOLD_APART: f64 = 1e-2;

/// One step of parameter-expanded EM from evidence: better parameters for the rows that it is about.
///
/// Together with mergeable [`Latent`] evidence this is all that a fit in passes over parts of the data needs,
/// wherever the parts lie.
///
/// ```
/// use std::sync::Arc;
/// use covary::algorithm::em_step;
/// use covary::data::Rows;
/// use covary::evidence::{Latent, gather};
/// use covary::expectation::LatentParameters;
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
    Maximised::of(evidence, Prior::Flat).map(|m| m.parameters)
}

/// The maximisation step, and the slope of the likelihood where it started.
pub(super) struct Maximised<'a> {
    evidence: &'a Latent,
    parameters: LatentParameters,
    residual: Mat<f64>,           // rⱼ − gⱼ (q + 1 × p): the noise times the gradient
    noises: Vec<NoiseStatistics>, // one for all features, or one for each
    ridge: Vec<f64>,              // R of the prior, packed
}

/// What the cells that share a noise variance say about it.
struct NoiseStatistics {
    squares: f64, // Σ w E(x − μ − wᵀz)²
    cells: f64,   // Σ w
}

impl<'a> Maximised<'a> {
    pub(super) fn of(evidence: &'a Latent, prior: Prior<'_>) -> Result<Self> {
        if evidence.weight() == 0.0 {
            return Err(Error::NoRows);
        }
        let terms = prior.terms(evidence.parameters())?;
        let residual = residual(evidence, &terms);
        let step = normal_equations(evidence, &terms.ridge, residual.as_ref()); // Δ (q + 1 × p)
        let averaged = matches!(prior, Prior::Averaged { .. } | Prior::Group(_));
        let spread = averaged.then(|| covariances(evidence, &terms.ridge));
        let each = step.col_iter().zip(residual.col_iter());
        let reductions = each.map(|(s, r)| s.iter().zip(r.iter()).map(|(s, r)| s * r).sum::<f64>());
        let (noises, reductions) = match evidence.parameters().scale() {
            FeatureScale::Common(_) => {
                let added = prior_squares(evidence, &terms, step.as_ref(), spread.as_ref());
                (vec![NoiseStatistics::of_all(evidence, prior)], vec![reductions.sum::<f64>() - added])
            }
            FeatureScale::NoiseDeviations(_) => {
                (NoiseStatistics::of_each(evidence, residual.as_ref()), reductions.collect())
            }
        };
        let after: Vec<f64> = noises.iter().zip(&reductions).map(|(of, r)| of.variance_after(*r)).collect();
        let parameters = standardise(evidence, (prior, &terms), step.as_ref(), &after, spread)?;
        Ok(Self { evidence, parameters, residual, noises, ridge: terms.ridge })
    }

    /// Where the step begins.
    pub(super) fn start(&self) -> &LatentParameters {
        self.evidence.parameters()
    }

    /// Where it ends.
    pub(super) fn parameters(&self) -> &LatentParameters {
        &self.parameters
    }

    /// ∂ℓ/∂(wⱼ, μⱼ) = (rⱼ − gⱼ)/σ² of each feature and ∂ℓ/∂ log σ² = (squares/σ² − cells)/2 of each noise
    /// variance at the start: by Fisher's identity those of the expected complete-data likelihood.
    pub(super) fn gradient(&self) -> Vec<f64> {
        let noise = self.start().noise();
        let features = self.residual.col_iter().flat_map(|c| c.iter().map(|r| r / noise));
        features.chain(self.noises.iter().map(|of| 0.5 * (of.squares / noise - of.cells))).collect()
    }

    /// A gradient divided by what the information would be if z were known.
    pub(super) fn precondition(&self, gradient: &[f64]) -> Vec<f64> {
        let noise = self.start().noise();
        let (size, p) = (self.residual.nrows(), self.residual.ncols());
        let (features, noises) = gradient.split_at(size * p);
        let right = MatRef::from_column_major_slice(features, size, p);
        let solved = normal_equations(self.evidence, &self.ridge, right);
        let features = solved.col_iter().flat_map(|c| c.iter().map(|x| x * noise));
        features.chain(noises.iter().zip(&self.noises).map(|(g, of)| g / (0.5 * of.cells))).collect()
    }

    /// Square roots of about that information, one number per coordinate: the natural lengths of steps.
    pub(super) fn scale(&self) -> Vec<f64> {
        let (q, noise) = (self.start().n_latent(), self.start().noise());
        let length = |j: usize| (self.evidence.second[(packed(q, q), j)] / noise).sqrt();
        let features = (0..self.residual.ncols()).flat_map(|j| std::iter::repeat_n(length(j), q + 1));
        features.chain(self.noises.iter().map(|of| (0.5 * of.cells).sqrt())).collect()
    }
}

impl NoiseStatistics {
    /// Of all cells: a sum of squares and what z leaves open, without cancellation.
    fn of_all(evidence: &Latent, prior: Prior<'_>) -> Self {
        let (totals, parameters) = (&evidence.totals, evidence.parameters());
        let (squares, cells) = match prior {
            Prior::Group(prior) => prior.noise_statistics(parameters),
            _ => (0.0, 0.0),
        };
        let squares = squares + totals.squares + parameters.noise() * totals.determined;
        Self { squares, cells: cells + totals.cells }
    }

    /// Of each feature. The cells are in units of the noise, so what cancels is at most a feature's variance
    /// over its noise.
    fn of_each(evidence: &Latent, residual: MatRef<'_, f64>) -> Vec<Self> {
        let w = evidence.parameters().loadings_transposed();
        let q = w.nrows();
        let explained =
            |j: usize| (0..q).map(|i| w[(i, j)] * (evidence.cross[(i, j)] + residual[(i, j)])).sum::<f64>();
        let squares = evidence.squares.iter().enumerate().map(|(j, s)| s - explained(j));
        let cells = |j: usize| evidence.second[(packed(q, q), j)];
        squares.enumerate().map(|(j, squares)| Self { squares, cells: cells(j) }).collect()
    }

    /// The variance when a step has taken `reduction` off the squares.
    fn variance_after(&self, reduction: f64) -> f64 {
        if self.cells == 0.0 {
            return 1.0; // nothing was said about it
        }
        // What is left is a sum of squares: where rounding takes it, it is as small as rounding.
        let least = f64::EPSILON * self.squares / self.cells;
        ((self.squares - reduction) / self.cells).max(least).max(f64::MIN_POSITIVE)
    }
}

/// rⱼ − gⱼ of each feature, the right side of the normal equations (q + 1 × p). The evidence has Σ
/// E[(x − μⱼ)(z, 1)], of which Aⱼ (wⱼ, 0) is taken off.
fn residual(evidence: &Latent, terms: &PriorTerms) -> Mat<f64> {
    let w = evidence.parameters().loadings_transposed();
    let q = w.nrows();
    let mut out = evidence.cross.clone();
    for j in 0..out.ncols() {
        let (out, second, w) = (out.col_as_slice_mut(j), evidence.second.col_as_slice(j), w.col(j));
        let prior = terms.gradient(j, w);
        for (i, out) in out.iter_mut().enumerate() {
            let entry = |k: usize| second[packed(i.max(k), i.min(k))];
            *out -= (0..q).map(|k| entry(k) * w[k]).sum::<f64>() + prior[i];
        }
    }
    out
}

/// Calls `f` with the factors of the normal equations of some features and the first of them: one factor for
/// all of them where they are the same, as those of complete rows are.
fn for_each_factor(evidence: &Latent, ridge: &[f64], mut f: impl FnMut(usize, &Lanes)) {
    let (size, p) = (evidence.parameters().n_latent() + 1, evidence.second.ncols());
    if alike(&evidence.second) {
        let only = Mat::from_fn(1, packed_len(size), |_, k| evidence.second[(k, 0)] + ridge[k]);
        return f(0, &Lanes::new_any(only, size, 0.0));
    }
    for first in (0..p).step_by(LANES) {
        let lanes = LANES.min(p - first);
        let entry = |l: usize, k: usize| evidence.second[(k, first + l)] + ridge[k];
        f(first, &Lanes::new(Mat::from_fn(lanes, packed_len(size), entry), size, 0.0));
    }
}

/// Whether all columns are the same.
pub(super) fn alike(columns: &Mat<f64>) -> bool {
    let first = columns.col_as_slice(0);
    (1..columns.ncols()).all(|j| columns.col_as_slice(j) == first)
}

/// The share of the variance of a latent variable beside the others from which on a feature's loading of it
/// is known, for each feature; `None` where rounding does not matter.
///
/// The right side is known to $\varepsilon$ times the feature's scale, which adds the square of that over the
/// share to the noise. This matters where the noise is small beside a feature, and all rows that have it give
/// the latent variables values that lie in a plane.
fn unknown_shares(evidence: &Latent) -> Option<Vec<f64>> {
    let parameters = evidence.parameters();
    let share = |scale: &f64| f64::EPSILON.powi(2) * scale / (ADDED_NOISE * parameters.noise());
    let shares: Vec<f64> = parameters.squared_scales().iter().map(share).collect();
    let matters = parameters.graded() && shares.iter().any(|share| *share > f64::EPSILON);
    matters.then(|| shares.iter().map(|share| share.min(TOLD_APART)).collect())
}

/// Solves each feature's normal equations (q + 1 × p).
fn normal_equations(evidence: &Latent, ridge: &[f64], right: MatRef<'_, f64>) -> Mat<f64> {
    let (size, p) = (right.nrows(), right.ncols());
    let mut out = Mat::zeros(size, p);
    if let Some(unknown) = unknown_shares(evidence) {
        let matrices = Mat::from_fn(p, packed_len(size), |j, k| evidence.second[(k, j)] + ridge[k]);
        let mut step = right.transpose().to_owned();
        Lanes::of_known(matrices, size, &unknown).solve(&mut step);
        return step.transpose().to_owned();
    }
    for_each_factor(evidence, ridge, |first, factors| {
        let lanes = if factors.lanes() == 1 { p - first } else { factors.lanes() };
        let lane: Vec<usize> = (0..lanes).map(|l| l.min(factors.lanes() - 1)).collect();
        let step = factors.solved(&lane, &Mat::from_fn(lanes, size, |l, i| right[(i, first + l)]));
        out.as_mut().subcols_mut(first, lanes).copy_from(step.transpose());
    });
    out
}

/// The covariance of (wⱼ, μⱼ) of each feature: the noise times the inverse of its normal equations, packed.
fn covariances(evidence: &Latent, ridge: &[f64]) -> Mat<f64> {
    let mut out = Mat::zeros(ridge.len(), evidence.second.ncols());
    for_each_factor(evidence, ridge, |first, factors| {
        let inverse = factors.inverse(evidence.parameters().noise());
        let lanes = if factors.lanes() == 1 { out.ncols() - first } else { factors.lanes() };
        for l in 0..lanes {
            let from = inverse.row(l.min(inverse.nrows() - 1));
            out.col_as_slice_mut(first + l).iter_mut().zip(from.iter()).for_each(|(to, x)| *to = *x);
        }
    });
    out
}

/// By how much the squares end higher than Σ Δᵀ(r − g) less, because of the prior.
///
/// Along the step the squares of a feature change by −2Δᵀr + ΔᵀAΔ. With (A + R)Δ = r − g that is
/// −Δᵀ(r − g) − Δᵀ(2g + RΔ), and the covariance S of (w, μ) adds tr(SA), before and after.
fn prior_squares(
    evidence: &Latent,
    terms: &PriorTerms,
    step: MatRef<'_, f64>,
    spread: Option<&Mat<f64>>,
) -> f64 {
    let w = evidence.parameters().loadings_transposed();
    let taken = |j: usize| {
        let (s, prior) = (step.col(j), terms.gradient(j, w.col(j)));
        let each = prior.iter().enumerate();
        each.map(|(i, g)| s[i] * (2.0 * g + terms.ridge_times(i, s.iter().copied()))).sum::<f64>()
    };
    let added = |spread: Option<&Mat<f64>>| spread.map_or(0.0, |s| traces_with_second_moments(evidence, s));
    let taken: f64 = (0..step.ncols()).map(taken).sum();
    added(spread) - added(evidence.parameters().spread()) - taken
}

/// Σ tr(Sⱼ Aⱼ) of packed covariances Sⱼ, one in each column, and the second moments Aⱼ of each feature.
fn traces_with_second_moments(evidence: &Latent, spread: &Mat<f64>) -> f64 {
    let size = evidence.parameters().n_latent() + 1;
    let pairs = (0..size).flat_map(|i| (0..=i).map(move |k| (i, k)));
    let term = |(i, k): (usize, usize)| {
        let (s, a) = (spread.row(packed(i, k)), evidence.second.row(packed(i, k)));
        let sum: f64 = s.iter().zip(a.iter()).map(|(s, a)| s * a).sum();
        if i == k { sum } else { 2.0 * sum }
    };
    pairs.map(term).sum()
}

/// Takes the step and gives the mean and covariance that z has over the rows to μ and W; the new noises are
/// in units.
fn standardise(
    evidence: &Latent,
    (prior, terms): (Prior<'_>, &PriorTerms),
    step: MatRef<'_, f64>,
    noises: &[f64],
    spread: Option<Mat<f64>>,
) -> Result<LatentParameters> {
    let start = evidence.parameters();
    let (p, q, units) = (start.n_features(), start.n_latent(), start.scale());
    let w = Mat::from_fn(q, p, |i, j| start.loadings_transposed()[(i, j)] + step[(i, j)]);
    let frame = prior.frame(evidence, terms, (w.as_ref(), spread.as_ref()))?;
    let center: Vec<f64> = frame.row(q).iter().copied().collect();
    let moved = |j: usize| step[(q, j)] + dot(w.col_as_slice(j), &center);
    let steps: Vec<f64> = (0..p).map(|j| units.of(j) * moved(j)).collect();
    let mean = start.mean().to_vec();
    let w = product(frame.as_ref().subrows(0, q), w.as_ref());
    let found = match units {
        FeatureScale::Common(unit) => {
            let spread = spread.map(|spread| carried(&spread, frame.as_ref()));
            LatentParameters::in_units(mean, &w, noises[0], *unit).with_spread(spread)
        }
        FeatureScale::NoiseDeviations(deviations) => {
            let roots: Vec<f64> = noises.iter().map(|v| v.sqrt()).collect();
            let w = Mat::from_fn(q, p, |i, j| w[(i, j)] / roots[j]);
            let deviations = deviations.iter().zip(&roots).map(|(d, root)| d * root).collect();
            LatentParameters::in_noise(mean, &w, deviations)
        }
    };
    Ok(found.moved(&steps, start))
}

/// The symmetric square root: of all roots the one nearest to I, so that coordinates of z do not turn without
/// need.
///
/// A component that all rows hold to be nearly 0 has a variance far below that of the others. The root keeps
/// it, because it says how long the component is.
pub(super) fn square_root(matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    let eigen = covariance_eigen(matrix)?;
    let roots: Vec<f64> = eigen.values.iter().map(|v| v.max(0.0).sqrt()).collect();
    let scaled = Mat::from_fn(matrix.nrows(), roots.len(), |i, j| eigen.vectors[(i, j)] * roots[j]);
    Ok(product(scaled.as_ref(), eigen.vectors.transpose()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

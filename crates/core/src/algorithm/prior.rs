//! What is assumed of the loadings before rows are seen, and what that adds to a step of EM.
//!
//! Columns of W are normal around 0 with a precision $\alpha_k$ each, which is found from the data: a column
//! that explains nothing has its precision grow without limit and is driven out (automatic relevance
//! determination \[B99a\]). With W as its most probable value, $\alpha_k = p / \lVert w_k \rVert^2$.
//! Variational Bayes \[B99b, IR10\] keeps a normal distribution of each feature's $(w_j, \mu_j)$ instead,
//! with covariance $S_j$ (q + 1 × q + 1); then $\alpha_k = p / \mathrm E \lVert w_k \rVert^2$, and what is
//! maximised is a lower bound on the log evidence. Where W is a point μ has a flat prior; where it is not,
//! that of [`MeanRow`]. σ² and α have the scale-free ones (∝ 1/τ, 1/α), so that no unit of measurement and no
//! constant of ours matters; the free constant of the prior of α is such that a column that is driven out
//! counts nothing.

use std::f64::consts::TAU;

use statrs::function::gamma::ln_gamma;

use super::maximise::{alike, square_root};
use super::mean_row::MeanRow;
use crate::error::Result;
use crate::evidence::Latent;
use crate::expectation::LatentParameters;
use crate::linalg::{
    ColRef, Lanes, Mat, MatRef, clean_zeros, comparable, complete_basis, graded_right_singular,
    nearest_places, packed, packed_len, padded, product, symmetric_eigen,
};

/// A column whose squared mean is below this share of its variance is driven out.
const DRIVEN_OUT: f64 = 1e-3;

/// The prior of the loadings, and what is kept of their posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Prior {
    /// None: maximum likelihood.
    Flat,
    /// Normal columns; the most probable W.
    Relevance,
    /// Normal columns; the distribution of W and μ.
    Averaged {
        /// The smallest noise of the row of means, a variance.
        least: f64,
    },
}

/// What a prior adds to the normal equations of each feature, in units.
///
/// The step Δ (q + 1) of a feature's $\theta_j = (w_j, \mu_j)$ solves $(A_j + R) \Delta = r_j - g_j$ with
/// $A_j = \sum \mathrm E[(z, 1)(z, 1)^\top]$ and $r_j = \sum \mathrm E[(x - \mu_j - w_j^\top z)(z, 1)]$ over
/// the rows that have the cell. The prior adds
///
/// - $R = \sigma^2 \operatorname{diag}(\alpha, 0) + \frac{\sigma^2}{v} B$ with
///   $B = \mathrm E[(z_0, 1)(z_0, 1)^\top]$ of the [`MeanRow`], of noise v,
/// - $g_j = R (w_j, 0) - \frac{\sigma^2}{v} (m - \mu_j) \mathrm E(z_0, 1)$, σ² times the slope of −log p(θⱼ).
pub(crate) struct PriorTerms {
    /// R, packed.
    pub(crate) ridge: Vec<f64>,
    /// σ²/v · E(z₀, 1) (q + 1).
    row_latent: Vec<f64>,
    /// m − μⱼ of each feature.
    offsets: Vec<f64>,
    /// B, packed, when there is a row of means.
    row_second: Option<Vec<f64>>,
}

impl PriorTerms {
    /// gⱼ (q + 1).
    pub(crate) fn gradient(&self, feature: usize, w: ColRef<'_, f64>) -> Vec<f64> {
        let of_loadings = |i: usize| self.ridge_times(i, w.iter().copied());
        let of_mean = |i: usize| self.row_latent[i] * self.offsets[feature];
        (0..self.row_latent.len()).map(|i| of_loadings(i) - of_mean(i)).collect()
    }

    /// Row i of R times a vector, whose last entries may be left out where they are 0.
    pub(crate) fn ridge_times(&self, i: usize, vector: impl Iterator<Item = f64>) -> f64 {
        vector.enumerate().map(|(k, x)| self.ridge[packed(i.max(k), i.min(k))] * x).sum()
    }
}

impl Prior {
    /// E‖w_k‖² of each column, in units.
    pub(crate) fn lengths(parameters: &LatentParameters) -> Vec<f64> {
        let w = parameters.loadings_transposed();
        let spread = |k: usize| parameters.variances(k).iter().sum::<f64>();
        (0..w.nrows()).map(|k| w.row(k).squared_norm_l2() + spread(k)).collect()
    }

    /// What the prior adds to the normal equations.
    pub(crate) fn terms(self, parameters: &LatentParameters) -> Result<PriorTerms> {
        let (p, q, noise) = (parameters.n_features(), parameters.n_latent(), parameters.noise());
        let mut terms = PriorTerms {
            ridge: vec![0.0; packed_len(q + 1)],
            row_latent: vec![0.0; q + 1],
            offsets: vec![0.0; p],
            row_second: None,
        };
        if self == Self::Flat {
            return Ok(terms);
        }
        for (k, length) in Self::lengths(parameters).into_iter().enumerate() {
            terms.ridge[packed(k, k)] = noise * p as f64 / length.max(f64::MIN_POSITIVE);
        }
        if let Some(row) = self.mean_row(parameters)? {
            let weight = noise / row.noise;
            terms.ridge.iter_mut().zip(&row.second).for_each(|(ridge, second)| *ridge += weight * second);
            terms.row_latent = (0..=q).map(|i| weight * row.second[packed(q, i)]).collect();
            (terms.offsets, terms.row_second) = (row.offsets, Some(row.second));
        }
        Ok(terms)
    }

    /// The row of means, where W has a distribution.
    fn mean_row(self, parameters: &LatentParameters) -> Result<Option<MeanRow>> {
        let Self::Averaged { least } = self else { return Ok(None) };
        let unit = parameters.scale().of(0);
        MeanRow::of(parameters, least / unit / unit)
    }

    /// What a fit maximises at the parameters of the evidence.
    pub(crate) fn objective(self, evidence: &Latent) -> Result<f64> {
        let (parameters, fit) = (evidence.parameters(), evidence.log_likelihood());
        let (p, q) = (parameters.n_features() as f64, parameters.n_latent() as f64);
        let unit = parameters.scale().of(0).ln();
        // p/2 (log α − log 2π) − α E‖w‖²/2 at the best α
        let column = |length: f64| 0.5 * p * ((p / length.max(f64::MIN_POSITIVE)).ln() - TAU.ln() - 1.0);
        let columns = || Self::lengths(parameters).into_iter().map(column).sum::<f64>() - p * q * unit;
        Ok(match (self, parameters.spread()) {
            (Self::Flat, _) => fit,
            (Self::Relevance, _) => fit + columns(),
            (Self::Averaged { .. }, None) => f64::NEG_INFINITY,
            (Self::Averaged { .. }, Some(spread)) => {
                let volume: f64 = log_determinants(spread, parameters.n_latent() + 1).iter().sum();
                let entropy = 0.5 * (volume + p * (q + 1.0) * (1.0 + TAU.ln())) + p * (q + 1.0) * unit;
                // τ has a gamma distribution of shape c; all that depends on its scale is in the fit.
                let c = 0.5 * evidence.totals.cells;
                let means = self.mean_row(parameters)?.map_or(0.0, |row| row.objective - (p - 1.0) * unit);
                fit + entropy + columns() + means + c + ln_gamma(c) - c * c.ln()
            }
        })
    }

    /// How the latent variables are standardised, as what happens to W: w ← B w with the first q rows of
    /// (q + 1 × q), and μ ← μ + bᵀw with the last. `w` (q × p) and `spread`, packed, are what the step has
    /// led to.
    ///
    /// EM gives the mean and covariance that z has over the rows to μ and W \[LRW98\]. Fit and prior together
    /// are best under $z \leftarrow R z$, $W \leftarrow W R^{-1}$ when $\mathrm E W^\top W$ is diagonal and
    /// $R Z R^\top = n I$, with Z the second moments of z over the rows, that of means among them; a W that
    /// is a point has no entropy to lose, and $R Z R^\top = (n + p) I$.
    pub(crate) fn frame(
        self,
        evidence: &Latent,
        terms: &PriorTerms,
        (w, spread): (MatRef<'_, f64>, Option<&Mat<f64>>),
    ) -> Result<Mat<f64>> {
        let q = w.nrows();
        let (mut second, mut weight) = (evidence.totals.second.clone(), evidence.weight());
        if let Some(row) = &terms.row_second {
            second.iter_mut().zip(row).for_each(|(sum, row)| *sum += row);
            weight += 1.0;
        }
        let center: Vec<f64> = (0..q).map(|i| second[packed(q, i)] / weight).collect();
        let divisor = if self == Self::Relevance { weight + w.ncols() as f64 } else { weight };
        let covariance = |i: usize, j: usize| {
            (second[packed(i.max(j), i.min(j))] - weight * center[i] * center[j]) / divisor
        };
        let root = square_root(Mat::from_fn(q, q, covariance).as_ref())?;
        let frame = match self {
            Self::Flat => root,
            _ => diagonalising(root.as_ref(), w, spread)?,
        };
        Ok(Mat::from_fn(q + 1, q, |i, j| if i < q { frame[(i, j)] } else { center[j] }))
    }

    /// The columns that explain something, when others do not any more.
    pub(crate) fn survivors(self, parameters: &LatentParameters, weight: f64) -> Option<Vec<usize>> {
        let (p, w) = (parameters.n_features() as f64, parameters.loadings_transposed());
        let variance = |k: usize| match self {
            Self::Averaged { .. } => parameters.variances(k).iter().sum(),
            _ => p * parameters.noise() / weight,
        };
        let alive = |k: &usize| w.row(*k).squared_norm_l2() > DRIVEN_OUT * variance(*k);
        let kept: Vec<usize> = (0..w.nrows()).filter(alive).collect();
        (self != Self::Flat && kept.len() < w.nrows()).then_some(kept)
    }
}

/// Oᵀ · root, with O the directions in which root · E WᵀW · root is diagonal, each in the place where it
/// turns least.
fn diagonalising(root: MatRef<'_, f64>, w: MatRef<'_, f64>, spread: Option<&Mat<f64>>) -> Result<Mat<f64>> {
    let scales: Vec<f64> = w.col_iter().map(|w| w.squared_norm_l2()).collect();
    let vectors = match comparable(scales.iter().copied()) {
        true => {
            let products = expected_products(w, spread);
            symmetric_eigen(product(product(root, products.as_ref()).as_ref(), root).as_ref())?.vectors
        }
        false => graded_axes(root, w, spread)?,
    };
    Ok(product(nearest_places(vectors.as_ref()).as_ref(), root))
}

/// The same directions where features differ in scale by orders of magnitude: from the rows of W · root and
/// of a root of what the covariances add, without forming products.
fn graded_axes(root: MatRef<'_, f64>, w: MatRef<'_, f64>, spread: Option<&Mat<f64>>) -> Result<Mat<f64>> {
    let (p, q) = (w.ncols(), w.nrows());
    let added = expected_products(Mat::zeros(q, 1).as_ref(), spread);
    let added = product(square_root(added.as_ref())?.as_ref(), root);
    let turned = product(w.transpose(), root); // (p × q)
    let rows = Mat::from_fn(p + q, q, |i, k| if i < p { turned[(i, k)] } else { added[(i - p, k)] });
    let mut axes = padded(graded_right_singular(rows.as_ref(), f64::EPSILON));
    let rank = axes.values.iter().filter(|v| **v > 0.0).count();
    complete_basis(&mut axes.vectors, rank);
    Ok(axes.vectors)
}

/// E WᵀW (q × q) of Wᵀ (q × p) with a packed covariance in each column.
pub(super) fn expected_products(w: MatRef<'_, f64>, spread: Option<&Mat<f64>>) -> Mat<f64> {
    let (q, mut products) = (w.nrows(), product(w, w.transpose()));
    if let Some(spread) = spread {
        for (i, j) in (0..q).flat_map(|i| (0..q).map(move |j| (i, j))) {
            products[(i, j)] += spread.row(packed(i.max(j), i.min(j))).iter().sum::<f64>();
        }
    }
    products
}

/// log |S| of packed matrices, one in each column.
fn log_determinants(packed: &Mat<f64>, size: usize) -> Vec<f64> {
    if alike(packed) {
        let only = Mat::from_fn(1, packed.nrows(), |_, k| packed[(k, 0)]);
        return vec![Lanes::new_any(only, size, 0.0).log_det()[0]; packed.ncols()];
    }
    Lanes::new(packed.transpose().to_owned(), size, 0.0).log_det()
}

/// K S Kᵀ of packed covariances of (w, μ), one in each column, where (w, μ) ↦ K (w, μ) by a [`Prior::frame`].
pub(crate) fn carried(spread: &Mat<f64>, frame: MatRef<'_, f64>) -> Mat<f64> {
    let q = frame.ncols();
    let k = Mat::from_fn(q + 1, q + 1, |i, j| match j < q {
        true => frame[(i, j)],
        false => f64::from(u8::from(i == q)),
    });
    let mut out = clean_zeros(spread.nrows(), spread.ncols());
    let different = if alike(spread) { 1 } else { spread.ncols() };
    for (j, from) in spread.col_iter().enumerate().take(different) {
        let s = Mat::from_fn(q + 1, q + 1, |a, b| from[packed(a.max(b), a.min(b))]);
        let turned = product(product(k.as_ref(), s.as_ref()).as_ref(), k.transpose());
        for (a, b) in (0..=q).flat_map(|a| (0..=a).map(move |b| (a, b))) {
            out[(packed(a, b), j)] = turned[(a, b)];
        }
    }
    let first = out.col_as_slice(0).to_vec();
    (different..out.ncols()).for_each(|j| out.col_as_slice_mut(j).copy_from_slice(&first));
    out
}

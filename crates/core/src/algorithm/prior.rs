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

use statrs::function::gamma::{digamma, ln_gamma};

use super::maximise::{alike, square_root};
use super::mean_row::MeanRow;
use crate::error::Result;
use crate::evidence::Latent;
use crate::expectation::{LatentParameters, log_minus_digamma};
use crate::linalg::{
    ColRef, Lanes, Mat, MatRef, clean_zeros, comparable, complete_basis, graded_right_singular,
    nearest_places, packed, packed_len, padded, product, symmetric_eigen,
};

/// A column whose squared mean is below this share of its variance is driven out.
const DRIVEN_OUT: f64 = 1e-3;

/// The prior of the loadings, and what is kept of their posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Prior<'a> {
    /// None: maximum likelihood.
    Flat,
    /// Normal columns; the most probable W.
    Relevance,
    /// Normal columns; the distribution of W and μ.
    Averaged {
        /// The smallest noise of the row of means, a variance.
        least: f64,
    },
    /// The same for one group of rows among others, whose mean and noise have priors of their own.
    Group(&'a GroupPrior),
}

/// What is assumed of the mean and the noise of a group of rows: as much as one row tells.
///
/// Bounds of different numbers of groups can be compared only if every prior is a proper one. The mean lies
/// around that of all rows, $\mu_j = m_j - w_j^\top z_0 + \varepsilon_j$ with $z_0 \sim \mathcal N(0, I)$ and
/// $\varepsilon_j \sim \mathcal N(0, v)$ ([`MeanRow::around`]); the precision of the noise is
/// $\tau = 1/\sigma^2 \sim \Gamma(a, a s_0)$, of mean about $1/s_0$.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupPrior {
    /// m (p).
    pub(crate) mean: Vec<f64>,
    /// v.
    pub(crate) variance: f64,
    /// a: half the number of cells that the prior of the noise counts as.
    pub(crate) shape: f64,
    /// s₀.
    pub(crate) noise: f64,
}

impl GroupPrior {
    /// Squares and cells that the prior of the noise counts as, in units of the parameters.
    pub(crate) fn noise_statistics(&self, parameters: &LatentParameters) -> (f64, f64) {
        let unit = parameters.scale().of(0);
        (2.0 * self.shape * self.noise / unit / unit, 2.0 * self.shape)
    }

    /// −KL of q(τ), a gamma distribution of shape c and mean 1/σ², from the prior.
    ///
    /// With $\mathrm E \ln \tau = \psi(c) - \ln(c \sigma^2)$ it is
    /// $a \ln(a s_0) - \ln\Gamma(a) + (a - 1) \mathrm E \ln \tau - a s_0 / \sigma^2$ and the entropy
    /// $c - \ln(c \sigma^2) + \ln\Gamma(c) + (1 - c) \psi(c)$.
    fn of_noise(&self, shape: f64, noise: f64) -> f64 {
        let (a, rate) = (self.shape, self.shape * self.noise);
        let expected_log = digamma(shape) - (shape * noise).ln();
        let entropy = shape - (shape * noise).ln() + ln_gamma(shape) + (1.0 - shape) * digamma(shape);
        a * rate.ln() - ln_gamma(a) + (a - 1.0) * expected_log - rate / noise + entropy
    }
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

impl Prior<'_> {
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
        match self {
            Self::Flat | Self::Relevance => Ok(None),
            Self::Averaged { least } => {
                let unit = parameters.scale().of(0);
                MeanRow::of(parameters, least / unit / unit)
            }
            Self::Group(prior) => MeanRow::around(parameters, &prior.mean, prior.variance).map(Some),
        }
    }

    /// What a fit maximises at the parameters of the evidence.
    pub(crate) fn objective(self, evidence: &Latent) -> Result<f64> {
        let (parameters, fit) = (evidence.parameters(), evidence.log_likelihood());
        let half = 0.5 * evidence.totals.cells;
        Ok(match self {
            Self::Flat => fit,
            Self::Relevance => fit + columns(parameters),
            Self::Averaged { .. } => {
                // τ has a gamma distribution of this shape; all that depends on its scale is in the fit.
                fit + self.of_loadings(parameters)? + half + ln_gamma(half) - half * half.ln()
            }
            Self::Group(prior) => {
                let shape = prior.shape + half;
                fit - half * log_minus_digamma(shape) + self.of_group(parameters, shape)?
            }
        })
    }

    /// What the distributions of W, μ and τ of a group add to the bound; τ has one of shape c.
    pub(crate) fn of_group(self, parameters: &LatentParameters, shape: f64) -> Result<f64> {
        let Self::Group(prior) = self else { return Ok(0.0) };
        Ok(self.of_loadings(parameters)? + prior.of_noise(shape, parameters.noise_variance(0)))
    }

    /// E ln p(W, μ) and the entropy of both.
    fn of_loadings(self, parameters: &LatentParameters) -> Result<f64> {
        let Some(spread) = parameters.spread() else { return Ok(f64::NEG_INFINITY) };
        let (p, q) = (parameters.n_features() as f64, parameters.n_latent() as f64);
        let unit = parameters.scale().of(0).ln();
        let volume: f64 = log_determinants(spread, parameters.n_latent() + 1).iter().sum();
        let entropy = 0.5 * (volume + p * (q + 1.0) * (1.0 + TAU.ln())) + p * (q + 1.0) * unit;
        let row = self.mean_row(parameters)?.map(|row| row.objective);
        let means = match self {
            Self::Group(_) => row.map(|row| row - p * (unit + 0.5 * TAU.ln())),
            _ => row.map(|row| row - (p - 1.0) * unit),
        };
        Ok(entropy + columns(parameters) + means.unwrap_or(0.0))
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
            Self::Averaged { .. } | Self::Group(_) => parameters.variances(k).iter().sum(),
            _ => p * parameters.noise() / weight,
        };
        let alive = |k: &usize| w.row(*k).squared_norm_l2() > DRIVEN_OUT * variance(*k);
        let kept: Vec<usize> = (0..w.nrows()).filter(alive).collect();
        (self != Self::Flat && kept.len() < w.nrows()).then_some(kept)
    }
}

/// E ln p(W): p/2 (ln α − ln 2π) − α E‖w‖²/2 of each column at the best α.
fn columns(parameters: &LatentParameters) -> f64 {
    let (p, unit) = (parameters.n_features() as f64, parameters.scale().of(0).ln());
    let column =
        |length: f64| 0.5 * p * ((p / length.max(f64::MIN_POSITIVE)).ln() - TAU.ln() - 1.0) - p * unit;
    Prior::lengths(parameters).into_iter().map(column).sum()
}

/// Covariances of (w, μ) of each of p features whose entries have these variances and say nothing about each
/// other, packed.
pub(crate) fn independent(variances: &[f64], p: usize) -> Mat<f64> {
    let mut spread = Mat::zeros(packed_len(variances.len()), p);
    for (k, variance) in variances.iter().enumerate() {
        (0..p).for_each(|j| spread[(packed(k, k), j)] = *variance);
    }
    spread
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

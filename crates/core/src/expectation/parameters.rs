//! The parameters of an expectation step, and the scale of the features that they are for.

use serde::{Deserialize, Serialize};

use super::ScaledModel;
use crate::blocks::{FeatureLoadings, Mean};
use crate::error::{Error, Result};
use crate::linalg::serial;
use crate::linalg::{GradedFactor, Mat, MatRef, exact_sum, negligible, packed, packed_len, product};

/// Where features differ by orders of magnitude, a squared scale counts up to this multiple of the smallest.
const SMALL_FEATURES: f64 = 100.0;

/// The parameters that an expectation step is made for: μ, W and the variance of the noise, one for all
/// features (PPCA) or one for each (factor analysis). "Scaled" means divided by the `FeatureScale`. Where W
/// and μ are uncertain, they are the means, with a covariance for each feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatentParameters {
    mean: Vec<f64>,
    mean_rest: Vec<f64>, // what rounding has taken off the mean: μ = mean + mean_rest
    #[serde(with = "serial")]
    loadings: FeatureLoadings, // scaled
    noise: f64,          // scaled
    scale: FeatureScale,
    #[serde(with = "serial")]
    spread: Option<Mat<f64>>, // scaled covariance of (wⱼ, μⱼ), packed ((q+1)(q+2)/2 × p)
}

/// What deviations and loadings of a feature are divided by, so that the noise is the same for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum FeatureScale {
    /// A power of two, which rounds nothing.
    Common(f64),
    /// The deviation of its own noise.
    NoiseDeviations(Vec<f64>),
}

impl FeatureScale {
    pub(crate) fn of(&self, feature: usize) -> f64 {
        match self {
            Self::Common(unit) => *unit,
            Self::NoiseDeviations(deviations) => deviations[feature],
        }
    }
}

impl LatentParameters {
    /// μ (p), W (p × q) and σ² > 0.
    ///
    /// # Errors
    /// When shapes disagree or a number is not finite or not positive.
    pub fn new(mean: Vec<f64>, loadings: MatRef<'_, f64>, noise: f64) -> Result<Self> {
        check(&mean, loadings, &[noise])?;
        Ok(Self::in_units(mean, &loadings.transpose().to_owned(), noise, 1.0))
    }

    /// μ (p), W (p × q) and ψ > 0 (p), a noise variance for each feature.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_noises(mean: Vec<f64>, loadings: MatRef<'_, f64>, noises: &[f64]) -> Result<Self> {
        let (expected, found) = (mean.len(), noises.len());
        if expected != found {
            return Err(Error::Length { what: "noise variances", expected, found });
        }
        check(&mean, loadings, noises)?;
        let deviations: Vec<f64> = noises.iter().map(|v| v.sqrt()).collect();
        let scaled = Mat::from_fn(loadings.ncols(), found, |i, j| loadings[(j, i)] / deviations[j]);
        Ok(Self::in_noise(mean, &scaled, deviations))
    }

    /// One noise for all, with cells, loadings Wᵀ (q × p) and √noise in multiples of a unit, so that squares
    /// stay in range; the mean is not.
    pub(crate) fn in_units(mean: Vec<f64>, loadings: &Mat<f64>, noise: f64, unit: f64) -> Self {
        Self::of(mean, loadings, noise, FeatureScale::Common(unit))
    }

    /// A noise for each feature, of the given deviations, and loadings Wᵀ (q × p) in multiples of those.
    pub(crate) fn in_noise(mean: Vec<f64>, loadings: &Mat<f64>, deviations: Vec<f64>) -> Self {
        Self::of(mean, loadings, 1.0, FeatureScale::NoiseDeviations(deviations))
    }

    fn of(mean: Vec<f64>, loadings: &Mat<f64>, noise: f64, scale: FeatureScale) -> Self {
        let (loadings, mean_rest) = (FeatureLoadings::new(loadings), vec![0.0; mean.len()]);
        Self { mean, mean_rest, loadings, noise, scale, spread: None }
    }

    /// The same with what rounding has taken off the mean.
    pub(crate) fn with_mean_rest(self, mean_rest: Vec<f64>) -> Self {
        Self { mean_rest, ..self }
    }

    /// The same with means that are so much larger, kept to the last bit: beside a mean of 1e15 the steps of
    /// an iteration are below its rounding.
    pub(crate) fn moved(mut self, steps: &[f64], from: &Self) -> Self {
        for (j, step) in steps.iter().enumerate() {
            let (mean, rest) = exact_sum(from.mean[j], from.mean_rest[j] + step);
            (self.mean[j], self.mean_rest[j]) = (mean, rest);
        }
        self
    }

    /// The same with noise that is so many times as large.
    pub(crate) fn with_noise_times(self, factor: f64) -> Self {
        Self { noise: self.noise * factor, ..self }
    }

    /// Whether features differ so much in scale that the large ones would drown the small in sums over both.
    pub(crate) fn graded(&self) -> bool {
        self.loadings.graded(self.noise)
    }

    /// ‖wⱼ‖² + σ² of each feature, scaled.
    pub(crate) fn squared_scales(&self) -> Vec<f64> {
        self.loadings.squares().iter().map(|square| square + self.noise).collect()
    }

    /// The scaled variance below which noise is rounding in sums over so many rows.
    pub(crate) fn rounding(&self, rows: usize) -> f64 {
        let scales = self.squared_scales();
        let least = scales.iter().copied().fold(f64::INFINITY, f64::min);
        // Where scales differ by orders of magnitude the noise of the small features counts.
        let most = if self.graded() { SMALL_FEATURES * least } else { f64::INFINITY };
        negligible(rows, scales.len(), scales.iter().map(|s| s.min(most)).sum())
    }

    /// What rounding does to the log-likelihood of rows of such a weight, with a margin.
    ///
    /// The fitted value of a feature of scale ‖a‖ is known to δ = ε‖a‖, and so is its residual r. That adds δ²/s
    /// to the squared Mahalanobis distance of a row, and 2rδ/s of either sign.
    pub(crate) fn rounding_of_likelihood(&self, weight: f64) -> f64 {
        let largest = self.squared_scales().into_iter().fold(0.0, f64::max);
        let squares = 16.0 * weight * f64::EPSILON.powi(2) * largest / self.noise;
        if !self.graded() {
            return squares;
        }
        squares + 64.0 * weight.sqrt() * f64::EPSILON * self.largest_residual()
    }

    /// The largest ‖a‖ times the deviation r/s of the residual of a complete row, over the features.
    ///
    /// var(r) = s (1 − h) with h = aᵀM⁻¹a: nothing where the feature is the only one that tells of some
    /// latent variable, s where others tell the same.
    fn largest_residual(&self) -> f64 {
        let a = &self.loadings.a;
        let roots = GradedFactor::new(a.transpose(), self.noise).root;
        let known = product(roots.transpose(), a.as_ref()); // √s times what each feature shares (q × p)
        let of = |j: usize| {
            let share = (1.0 - known.col(j).squared_norm_l2() / self.noise).max(0.0);
            (self.loadings.squares()[j] * share / self.noise).sqrt()
        };
        (0..a.ncols()).map(of).fold(0.0, f64::max)
    }

    /// The same with the first q components only.
    pub(crate) fn leading(&self, q: usize) -> Self {
        let loadings = self.loadings.a.as_ref().subrows(0, q).to_owned();
        Self { loadings: FeatureLoadings::new(&loadings), spread: None, ..self.clone() }
    }

    /// The same with one more component: the one that stands in its place in `other`.
    pub(crate) fn joined_by(&self, other: &Self) -> Self {
        let (p, q) = (self.n_features(), self.n_latent());
        let theirs = |i: usize, j: usize| other.loadings.a[(i, j)] * (other.scale.of(j) / self.scale.of(j));
        let entry = |i: usize, j: usize| if i < q { self.loadings.a[(i, j)] } else { theirs(i, j) };
        Self { loadings: FeatureLoadings::new(&Mat::from_fn(q + 1, p, entry)), spread: None, ..self.clone() }
    }

    /// The same components, those of them that are named, in that order.
    pub(crate) fn with_components(&self, kept: &[usize]) -> Self {
        let (p, q) = (self.n_features(), self.n_latent());
        let loadings = Mat::from_fn(kept.len(), p, |i, j| self.loadings.a[(kept[i], j)]);
        let old = |i: usize| if i < kept.len() { kept[i] } else { q };
        let spread = self.spread.as_ref().map(|from| {
            let mut to = Mat::zeros(packed_len(kept.len() + 1), p);
            for (i, k) in (0..=kept.len()).flat_map(|i| (0..=i).map(move |k| (i, k))) {
                let at = packed(old(i).max(old(k)), old(i).min(old(k)));
                (0..p).for_each(|j| to[(packed(i, k), j)] = from[(at, j)]);
            }
            to
        });
        Self { loadings: FeatureLoadings::new(&loadings), spread, ..self.clone() }
    }

    /// The same with a scaled covariance of (wⱼ, μⱼ), packed ((q+1)(q+2)/2 × p), or without.
    pub(crate) fn with_spread(self, spread: Option<Mat<f64>>) -> Self {
        Self { spread, ..self }
    }

    /// Scaled covariance of (wⱼ, μⱼ) of each feature, packed ((q+1)(q+2)/2 × p), when they are uncertain.
    pub(crate) fn spread(&self) -> Option<&Mat<f64>> {
        self.spread.as_ref()
    }

    /// Variances of one of (wⱼ, μⱼ), counted from 0, of all features, scaled; 0 when they are certain.
    pub(crate) fn variances(&self, at: usize) -> Vec<f64> {
        let row = |spread: &Mat<f64>| spread.row(packed(at, at)).iter().copied().collect();
        self.spread.as_ref().map_or_else(|| vec![0.0; self.n_features()], row)
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.loadings.q()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// μ with what rounding has taken off it.
    pub(crate) fn compensated_mean(&self) -> Mean<'_> {
        Mean { value: &self.mean, rest: Some(&self.mean_rest) }
    }

    /// What rounding has taken off μ.
    pub(crate) fn mean_rest(&self) -> &[f64] {
        &self.mean_rest
    }

    /// Wᵀ (q × p), scaled.
    pub(crate) fn loadings_transposed(&self) -> MatRef<'_, f64> {
        self.loadings.a.as_ref()
    }

    /// W (p × q).
    pub fn loadings(&self) -> Mat<f64> {
        Mat::from_fn(self.n_features(), self.n_latent(), |i, j| self.loadings.a[(j, i)] * self.scale.of(i))
    }

    /// Variance of the noise of a feature.
    pub fn noise_variance(&self, feature: usize) -> f64 {
        self.noise * self.scale.of(feature).powi(2)
    }

    /// Variance of the noise of any feature, scaled.
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    /// The model that the expectation step works with.
    pub(crate) fn scaled(&self) -> ScaledModel<'_> {
        ScaledModel { loadings: &self.loadings, noise: self.noise, uncertainty: self.spread.as_ref() }
    }

    /// What cells are divided by.
    pub(crate) fn scale(&self) -> &FeatureScale {
        &self.scale
    }
}

fn check(mean: &[f64], loadings: MatRef<'_, f64>, noises: &[f64]) -> Result<()> {
    let (expected, found) = (mean.len(), loadings.nrows());
    if expected != found {
        return Err(Error::Length { what: "rows of the loadings", expected, found });
    }
    let finite = loadings.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
    let bad = noises.iter().find(|v| !(**v > 0.0 && v.is_finite()));
    if bad.is_none() && finite && mean.iter().all(|m| m.is_finite()) {
        return Ok(());
    }
    let (name, value) =
        ("the start of an iteration", format!("noise variance {}", bad.unwrap_or(&noises[0])));
    Err(Error::Parameter { name, value, allowed: "finite, with a positive noise variance" })
}

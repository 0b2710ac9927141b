//! The maximisation step of one component: from evidence with responsibilities as weights to a better model.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CollapsePrior, leading_axes};
use crate::algorithm::{Components, Limits, Search, Start, eigen, em_step, newton_factor};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Latent, Moments};
use crate::expectation::LatentParameters;
use crate::linalg::{Mat, power_of_two};
use crate::model::{LinearGaussian, Noise};

/// Least uniqueness of a feature, as in factor analysis of all rows.
const LEAST_UNIQUENESS: f64 = 0.005;
/// Norm of the gradient at which the search for uniquenesses ends, and its most steps.
const NEWTON: Limits = Limits { tolerance: 1e-9, iterations: 30 };

/// The noise of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoiseModel {
    /// One variance for each feature (factor analysers) instead of one for all (PPCA).
    pub(crate) diagonal: bool,
    /// The same in all components.
    pub(crate) shared: bool,
}

/// Evidence about one component.
pub(crate) trait ComponentEvidence: Accumulator + Clone + Sync + Serialize + DeserializeOwned {
    /// Of no rows.
    fn empty(component: &LinearGaussian) -> Self;

    /// Σ w · r of the rows that have a cell.
    fn weight(&self) -> f64;

    /// Unit vectors (p) along which the component varies most, at most two, with the variances along them.
    fn leading_axes(&self, component: &LinearGaussian) -> Result<Vec<(Vec<f64>, f64)>> {
        leading_axes(&component.covariance())
    }

    /// A better component of as many latent variables.
    fn maximise(
        &self,
        before: &LinearGaussian,
        noise: NoiseModel,
        prior: Option<&CollapsePrior>,
    ) -> Result<LinearGaussian>;

    /// The components with the noise that is best for all of them together.
    fn with_shared_noise(
        components: Vec<LinearGaussian>,
        parts: &[Self],
        prior: Option<&CollapsePrior>,
    ) -> Result<Vec<LinearGaussian>>;
}

/// Complete rows: the closed form on the weighted covariance, or Newton's method for diagonal noise.
impl ComponentEvidence for Moments {
    fn empty(component: &LinearGaussian) -> Self {
        Self::empty(component.n_features())
    }

    fn weight(&self) -> f64 {
        Self::weight(self)
    }

    /// Those of the rows themselves, which a component without latent variables does not know.
    fn leading_axes(&self, _: &LinearGaussian) -> Result<Vec<(Vec<f64>, f64)>> {
        leading_axes(&self.covariance())
    }

    fn maximise(
        &self,
        before: &LinearGaussian,
        noise: NoiseModel,
        prior: Option<&CollapsePrior>,
    ) -> Result<LinearGaussian> {
        let moments = match prior {
            Some(prior) => self.with_more_rows(prior.rows, &prior.variances),
            None => self.clone(),
        };
        match noise.diagonal {
            true => factors(&moments, before),
            false => principal(&moments, before.n_latent()),
        }
    }

    /// For isotropic noise. With λ the kept eigenvalues, σ² is what all components leave, and a direction
    /// whose λ lies below it is given to the noise.
    fn with_shared_noise(
        components: Vec<LinearGaussian>,
        parts: &[Self],
        prior: Option<&CollapsePrior>,
    ) -> Result<Vec<LinearGaussian>> {
        let added = prior.map_or(0.0, |prior| prior.rows);
        let counts: Vec<f64> = parts.iter().map(|part| Self::weight(part) + added).collect();
        let noise = shared_noise(&components, &counts);
        components.into_iter().map(|component| with_noise(&component, noise)).collect()
    }
}

/// σ² that is best for all components, of so many rows each, given the directions of each.
fn shared_noise(components: &[LinearGaussian], counts: &[f64]) -> f64 {
    let lengths = |c: &LinearGaussian| -> Vec<f64> {
        c.loadings().col_iter().map(|w| w.squared_norm_l2() + c.noise().mean()).collect()
    };
    let eigenvalues: Vec<Vec<f64>> = components.iter().map(lengths).collect();
    let mut noise = 0.0;
    // Each round gives at most all kept directions to the noise.
    for _ in 0..=eigenvalues.iter().map(Vec::len).sum() {
        let (mut squares, mut directions) = (0.0, 0.0);
        for ((component, count), kept) in components.iter().zip(counts).zip(&eigenvalues) {
            let left = (component.n_features() - kept.len()) as f64;
            let given_up = kept.iter().filter(|v| **v <= noise);
            squares += count * (left * component.noise().mean() + given_up.clone().sum::<f64>());
            directions += count * (left + given_up.count() as f64);
        }
        let next = squares / directions;
        if next <= noise {
            break;
        }
        noise = next;
    }
    noise
}

/// The same directions with other noise: W = U(Λ − σ²)^½.
fn with_noise(component: &LinearGaussian, noise: f64) -> Result<LinearGaussian> {
    let (w, before) = (component.loadings(), component.noise().mean());
    let length = |k: usize| w.col(k).squared_norm_l2();
    let factor = |k: usize| match length(k) {
        0.0 => 0.0,
        square => ((square + before - noise).max(0.0) / square).sqrt(),
    };
    let loadings = Mat::from_fn(w.nrows(), w.ncols(), |j, k| w[(j, k)] * factor(k));
    LinearGaussian::new(component.mean().to_vec(), loadings, Noise::Isotropic(noise))
}

/// PPCA in closed form \[TB99, eq. 7\].
fn principal(moments: &Moments, q: usize) -> Result<LinearGaussian> {
    let spectrum = eigen::solve(moments, Components::Count(q.max(1)), 0)?;
    if q == 0 { spectrum.leading(0).ppca() } else { spectrum.ppca() }
}

/// Factors of the correlations, from the uniquenesses of the component before.
fn factors(moments: &Moments, before: &LinearGaussian) -> Result<LinearGaussian> {
    let (p, q, s) = (moments.n_features(), before.n_latent(), moments.covariance());
    let deviations: Vec<f64> = (0..p).map(|j| s[(j, j)].sqrt()).collect();
    if let Some(j) = deviations.iter().position(|d| d.is_nan() || *d <= 0.0) {
        return Err(Error::ConstantFeatures { features: vec![(j, None)] });
    }
    let entry = |i: usize, j: usize| if i == j { 1.0 } else { s[(i, j)] / deviations[i] / deviations[j] };
    let r = Mat::from_fn(p, p, entry);
    let start: Vec<f64> = (0..p).map(|j| (before.noise().of(j) / s[(j, j)]).min(1.0)).collect();
    // Where the component before has less noise already, a bound above it would lead down.
    let lower = start.iter().copied().fold(LEAST_UNIQUENESS, f64::min);
    let search = Search { factors: q, lower, limits: NEWTON };
    let found = newton_factor::solve(r.as_ref(), &search, &Start::At(start), &Control::new())?;
    let loadings = Mat::from_fn(p, q, |j, k| found.loadings[(j, k)] * deviations[j]);
    let noise = (0..p).map(|j| found.uniquenesses[j] * s[(j, j)]).collect();
    LinearGaussian::new(moments.mean().to_vec(), loadings, Noise::Diagonal(noise))
}

/// Rows with missing values: a step of EM with parameter expansion.
impl ComponentEvidence for Latent {
    fn empty(component: &LinearGaussian) -> Self {
        Self::empty(Arc::new(parameters(component)))
    }

    fn weight(&self) -> f64 {
        Self::weight(self)
    }

    fn maximise(
        &self,
        before: &LinearGaussian,
        noise: NoiseModel,
        prior: Option<&CollapsePrior>,
    ) -> Result<LinearGaussian> {
        let found = match prior {
            Some(prior) => {
                let mut evidence = self.clone();
                evidence.update(&prior.stand_in(before.mean())?)?;
                em_step(&evidence)?
            }
            None => em_step(self)?,
        };
        let noise = match noise.diagonal {
            true => Noise::Diagonal((0..before.n_features()).map(|j| found.noise_variance(j)).collect()),
            false => Noise::Isotropic(found.noise_variance(0)),
        };
        LinearGaussian::new(found.mean().to_vec(), found.loadings(), noise)
    }

    /// The step of W and μ does not depend on the noise, which is then what all cells leave.
    fn with_shared_noise(
        components: Vec<LinearGaussian>,
        parts: &[Self],
        prior: Option<&CollapsePrior>,
    ) -> Result<Vec<LinearGaussian>> {
        let (added, p) = (prior.map_or(0.0, |prior| prior.rows), components[0].n_features());
        let cells: Vec<Vec<f64>> = parts.iter().map(Self::weights_of_features).collect();
        let pooled = |features: std::ops::Range<usize>| {
            let (mut squares, mut total) = (0.0, 0.0);
            for (component, cells) in components.iter().zip(&cells) {
                for j in features.clone() {
                    squares += (cells[j] + added) * component.noise().of(j);
                    total += cells[j] + added;
                }
            }
            squares / total
        };
        let noise = match components[0].noise() {
            Noise::Isotropic(_) => Noise::Isotropic(pooled(0..p)),
            Noise::Diagonal(_) => Noise::Diagonal((0..p).map(|j| pooled(j..j + 1)).collect()),
        };
        let same =
            |c: &LinearGaussian| LinearGaussian::new(c.mean().to_vec(), c.loadings().clone(), noise.clone());
        components.iter().map(same).collect()
    }
}

/// A component as parameters of an expectation step, in units near the deviation of its noise.
pub(super) fn parameters(component: &LinearGaussian) -> LatentParameters {
    let (mean, w) = (component.mean().to_vec(), component.loadings());
    match component.noise() {
        Noise::Diagonal(noises) => {
            let deviations: Vec<f64> = noises.iter().map(|v| v.sqrt()).collect();
            let scaled = Mat::from_fn(w.ncols(), w.nrows(), |i, j| w[(j, i)] / deviations[j]);
            LatentParameters::in_noise(mean, &scaled, deviations)
        }
        Noise::Isotropic(noise) => {
            let unit = power_of_two(noise.sqrt());
            let scaled = Mat::from_fn(w.ncols(), w.nrows(), |i, j| w[(j, i)] / unit);
            LatentParameters::in_units(mean, &scaled, noise / unit / unit, unit)
        }
    }
}

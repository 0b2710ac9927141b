//! The parameters of an iteration as one vector in fixed units: what accelerated steps are made on.

use super::maximise::Maximised;
use super::optimise::{Local, Metric};
use crate::expectation::{FeatureScale, LatentParameters};
use crate::linalg::Mat;

/// How far the logarithm of a noise variance may go in one step.
const FURTHEST: f64 = 50.0;
/// How near to its bound the logarithm of a noise variance lies on it.
const ON_BOUND: f64 = 1e-12;

/// Features of so many times the squared scale of the smallest are moved by plain steps only.
///
/// Their slopes are differences of sums that are as many times larger, and lost in rounding, but a plain step
/// is all that they need: the noise is so small beside them that they determine a latent variable each.
const HELD: f64 = 1e8;

/// With a fixed unit uⱼ for each feature: (wⱼ/uⱼ, (μⱼ − μ⁰ⱼ)/uⱼ) of each, (q + 1) p numbers, then log ψ/u² of
/// each noise variance, one for all features or one for each.
///
/// The units dⱼ in which evidence is collected move with the noise of factor analysis; these do not. A
/// gradient by the numbers in units dⱼ becomes one by coordinates when it is multiplied by the stretch uⱼ/dⱼ.
pub(super) struct Coordinates {
    start: LatentParameters, // means are counted from its own
    units: Vec<f64>,         // loadings, means and deviations of a feature are divided by it
    q: usize,
    least: Vec<f64>, // bounds of the logarithms
    held: Vec<bool>, // features that only plain steps move
    common: Option<f64>,
}

impl Coordinates {
    /// Around the given parameters; `least` is the smallest variance of each noise that they have.
    pub(super) fn around(start: &LatentParameters, least: &[f64]) -> Self {
        let units: Vec<f64> = (0..start.n_features()).map(|j| start.scale().of(j)).collect();
        let common = match start.scale() {
            FeatureScale::Common(unit) => Some(*unit),
            FeatureScale::NoiseDeviations(_) => None,
        };
        let scales = start.squared_scales();
        let smallest = scales.iter().copied().fold(f64::INFINITY, f64::min);
        let held = scales.iter().map(|s| common.is_some() && *s > HELD * smallest).collect();
        let least = least.iter().zip(&units).map(|(v, unit)| (v / unit / unit).ln()).collect();
        Self { start: start.clone().with_spread(None), units, q: start.n_latent(), least, held, common }
    }

    /// Where parameters lie.
    pub(super) fn of(&self, parameters: &LatentParameters) -> Vec<f64> {
        let (w, stretch) = (parameters.loadings_transposed(), self.stretch(parameters));
        let mut out = Vec::with_capacity(w.ncols() * (w.nrows() + 1) + self.least.len());
        let rest = |j: usize| parameters.mean_rest()[j] - self.start.mean_rest()[j];
        for (j, (mean, origin)) in parameters.mean().iter().zip(self.start.mean()).enumerate() {
            out.extend(w.col(j).iter().map(|x| x / stretch[j]));
            out.push((mean - origin + rest(j)) / self.units[j]);
        }
        let noise = |j: usize| parameters.noise().ln() - 2.0 * stretch[j].ln();
        out.extend((0..self.least.len()).map(noise));
        out
    }

    /// The parameters at a point, or at the nearest one that the bounds of the noise allow.
    pub(super) fn parameters(&self, point: &[f64]) -> LatentParameters {
        let p = self.units.len();
        let (features, noises) = point.split_at(p * (self.q + 1));
        let each = features.chunks_exact(self.q + 1).zip(&self.units);
        let steps: Vec<f64> = each.map(|(c, unit)| c[self.q] * unit).collect();
        let mean = self.start.mean().to_vec();
        let log_noise = |j: usize| noises[j].max(self.least[j]);
        let loading = |i: usize, j: usize| features[j * (self.q + 1) + i];
        if let Some(unit) = self.common {
            let loadings = Mat::from_fn(self.q, p, loading);
            let found = LatentParameters::in_units(mean, &loadings, log_noise(0).exp(), unit);
            return found.moved(&steps, &self.start);
        }
        let roots: Vec<f64> = (0..p).map(|j| (0.5 * log_noise(j)).exp()).collect();
        let loadings = Mat::from_fn(self.q, p, |i, j| loading(i, j) / roots[j]);
        let deviations = roots.iter().zip(&self.units).map(|(root, unit)| root * unit).collect();
        LatentParameters::in_noise(mean, &loadings, deviations).moved(&steps, &self.start)
    }

    /// The same parameters with noise that the bounds allow.
    pub(super) fn bounded(&self, parameters: LatentParameters) -> LatentParameters {
        let point = self.of(&parameters);
        let noises = &point[point.len() - self.least.len()..];
        let within = noises.iter().zip(&self.least).all(|(noise, least)| noise >= least);
        if within { parameters } else { self.parameters(&point) }
    }

    /// Moves a point within the bounds.
    fn clip(&self, point: &mut [f64]) {
        let first = point.len() - self.least.len();
        point[first..].iter_mut().zip(&self.least).for_each(|(noise, least)| *noise = noise.max(*least));
    }

    /// Shortens a step in which the logarithm of a noise variance goes further than anything known of it
    /// reaches: numbers would leave their range.
    fn shorten(&self, from: &[f64], to: &mut [f64]) {
        let first = to.len() - self.least.len();
        let length = (first..to.len()).map(|k| (to[k] - from[k]).abs()).fold(0.0, f64::max);
        if length > FURTHEST {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from + (*to - from) * (FURTHEST / length));
        }
    }

    /// The gradient of the log-likelihood, 0 where a bound holds.
    pub(super) fn gradient(&self, maximised: &Maximised<'_>, point: &[f64]) -> Vec<f64> {
        let mut gradient = maximised.gradient();
        self.stretch_features(maximised, &mut gradient, |x, stretch| x * stretch);
        self.fill_held(&mut gradient, |_| 0.0);
        let first = point.len() - self.least.len();
        let noises = gradient[first..].iter_mut().zip(point[first..].iter().zip(&self.least));
        let held = |noise: f64, least: f64| noise <= least + ON_BOUND;
        noises.filter(|(g, (noise, least))| **g < 0.0 && held(**noise, **least)).for_each(|(g, _)| *g = 0.0);
        gradient
    }

    /// Euclidean norm of the part of a gradient that is about noise.
    pub(super) fn norm_of_noises(&self, gradient: &[f64]) -> f64 {
        let first = gradient.len() - self.least.len();
        gradient[first..].iter().map(|g| g * g).sum::<f64>().sqrt()
    }

    /// [`Maximised::precondition`] in these coordinates.
    fn precondition(&self, maximised: &Maximised<'_>, gradient: &[f64]) -> Vec<f64> {
        let mut inner = gradient.to_vec();
        self.stretch_features(maximised, &mut inner, |x, stretch| x / stretch);
        let mut out = maximised.precondition(&inner);
        self.stretch_features(maximised, &mut out, |x, stretch| x / stretch);
        out
    }

    /// [`Maximised::scale`] in these coordinates.
    fn scale(&self, maximised: &Maximised<'_>) -> Vec<f64> {
        let mut out = maximised.scale();
        self.stretch_features(maximised, &mut out, |x, stretch| x * stretch);
        self.fill_held(&mut out, |_| 0.0);
        out
    }

    /// Takes a point's coordinates of the features that only plain steps move from the plain step.
    fn hold(&self, point: &mut [f64], plain: &[f64]) {
        self.fill_held(point, |k| plain[k]);
    }

    fn fill_held(&self, vector: &mut [f64], value: impl Fn(usize) -> f64) {
        let size = self.q + 1;
        for j in (0..self.held.len()).filter(|j| self.held[*j]) {
            (j * size..(j + 1) * size).for_each(|k| vector[k] = value(k));
        }
    }

    /// uⱼ/dⱼ: units of these coordinates in units of the parameters.
    fn stretch(&self, parameters: &LatentParameters) -> Vec<f64> {
        self.units.iter().enumerate().map(|(j, unit)| unit / parameters.scale().of(j)).collect()
    }

    fn stretch_features(&self, at: &Maximised<'_>, vector: &mut [f64], f: impl Fn(f64, f64) -> f64) {
        let stretch = self.stretch(at.start());
        for (feature, stretch) in vector.chunks_exact_mut(self.q + 1).zip(stretch) {
            feature.iter_mut().for_each(|x| *x = f(*x, stretch));
        }
    }
}

/// The coordinates at the start of a maximisation step.
pub(super) struct InCoordinates<'a> {
    pub(super) coordinates: &'a Coordinates,
    pub(super) maximised: &'a Maximised<'a>,
}

impl Metric for InCoordinates<'_> {
    fn scale(&self) -> Vec<f64> {
        self.coordinates.scale(self.maximised)
    }

    fn precondition(&self, gradient: &[f64]) -> Vec<f64> {
        self.coordinates.precondition(self.maximised, gradient)
    }

    fn admit(&self, from: &Local, to: &mut [f64]) {
        self.coordinates.hold(to, &from.image);
        self.coordinates.shorten(&from.point, to);
        self.coordinates.clip(to);
    }
}

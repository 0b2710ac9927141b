//! Parameters of Bayesian PCA: where an iteration starts, and the model that one has found.

use super::stages::IterationRows;
use crate::algorithm::prior::{Prior, independent};
use crate::algorithm::relevance::Supported;
use crate::algorithm::{Journey, Stop, em};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::expectation::LatentParameters;
use crate::linalg::{Mat, descending, power_of_two};
use crate::model::{Predictive, Uncertainty};
use crate::spectrum::Spectrum;

/// What a flat prior of μ leads to, as a start.
pub(super) fn supported_start(spectrum: &Spectrum, found: &Supported) -> LatentParameters {
    let (p, q, u) = (spectrum.n_features(), found.lengths.len(), spectrum.vectors());
    let unit = power_of_two((spectrum.total_variance() / p as f64).sqrt());
    let square = unit * unit;
    let loadings = Mat::from_fn(q, p, |k, j| u[(j, k)] * found.lengths[k].sqrt() / unit);
    let of_mean = found.noise / spectrum.weight();
    let variances: Vec<f64> = found.variances.iter().chain([&of_mean]).map(|v| v / square).collect();
    LatentParameters::in_units(spectrum.mean().to_vec(), &loadings, found.noise / square, unit)
        .with_spread(Some(independent(&variances, p)))
}

/// The model with its longest component first, its log density, NaN when a caller stopped before it was
/// known, and the way with it.
pub(super) fn conclude(
    found: &em::Optimum,
    mut journey: Journey,
    given: IterationRows<'_>,
    control: &Control<'_>,
) -> Result<(Predictive, f64, Journey)> {
    let lengths = Prior::lengths(&found.parameters);
    let order = descending(&lengths);
    let model = averaged(&found.parameters.with_components(&order), found.noiseless)?;
    let log_density = match (found.noiseless, journey.stop) {
        (true, _) => Ok(f64::INFINITY),
        (_, Stop::Interrupted) => Err(Error::Interrupted),
        _ => given.log_density(&model, control),
    };
    // The model is there all the same.
    let log_density = match log_density {
        Err(Error::Interrupted) => {
            journey.stop = Stop::Interrupted;
            f64::NAN
        }
        other => other?,
    };
    journey.passes += usize::from(!given.stand_in);
    Ok((model, log_density, journey))
}

/// The model of complete rows whose W is a point: most probable, or a plane that holds them.
pub(super) fn most_probable(spectrum: &Spectrum, found: &Supported) -> Result<Predictive> {
    let (p, q) = (spectrum.n_features(), found.lengths.len());
    let u = spectrum.vectors();
    let loadings = Mat::from_fn(p, q, |j, k| u[(j, k)] * found.lengths[k].sqrt());
    let precisions = found.lengths.iter().map(|length| p as f64 / length).collect();
    Predictive::new(spectrum.mean().to_vec(), loadings, found.noise, precisions, None)
}

/// The model of parameters that an iteration has found.
pub(crate) fn averaged(parameters: &LatentParameters, noiseless: bool) -> Result<Predictive> {
    let (p, q, unit) = (parameters.n_features(), parameters.n_latent(), parameters.scale().of(0));
    let deviations: Vec<Vec<f64>> =
        (0..=q).map(|k| parameters.variances(k).iter().map(|v| v.sqrt() * unit).collect()).collect();
    let known = parameters.spread().map(|_| Uncertainty {
        loadings: Mat::from_fn(p, q, |j, k| deviations[k][j]),
        mean: deviations[q].clone(),
    });
    let precisions =
        Prior::lengths(parameters).iter().map(|length| p as f64 / length / unit / unit).collect();
    let noise = if noiseless { 0.0 } else { parameters.noise_variance(0) };
    Predictive::new(parameters.mean().to_vec(), parameters.loadings(), noise, precisions, known)
}

/// Log density of complete rows under the model, from their spectrum.
pub(super) fn log_likelihood(spectrum: &Spectrum, model: &Predictive) -> f64 {
    let (p, q) = (spectrum.n_features(), spectrum.n_components());
    let noise = model.gaussian().noise().of(0);
    let w = model.gaussian().loadings();
    let along = |k: usize| {
        let variance = w.col(k).squared_norm_l2() + noise;
        variance.ln() + spectrum.eigenvalues()[k] / variance
    };
    let kept: f64 = (0..q).map(along).sum();
    let rest = if p > q { (p - q) as f64 * noise.ln() + spectrum.distortion() / noise } else { 0.0 };
    -0.5 * spectrum.weight() * (p as f64 * std::f64::consts::TAU.ln() + kept + rest)
}

//! What is told of PPCA besides: its noise without bias, and how sure its numbers are.

use serde::Serialize;

use super::components::{self, feature_table, largest_loadings};
use super::number::{level, number};
use super::{Detail, Errors, Line, Part, PartFacts, Table};
use crate::assess::{PpcaErrors, PpcaEstimate, PpcaIntervals};
use crate::error::Result;
use crate::estimator::ppca_estimate;
use crate::model::LinearGaussian;
use crate::persist::SavedModel;

/// σ² without bias, and the interval around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoiseEstimate {
    pub(super) unbiased: f64,
    pub(super) interval: (f64, f64),
}

/// How sure the numbers are.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Precision {
    standard_errors: PpcaErrors,
    intervals: PpcaIntervals,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(model) = saved.model.downcast_ref() else { return Ok(part) };
    let noise = noise_estimate(model, saved);
    let precision = detail.errors.map(|errors| precision(model, saved, errors)).transpose()?;
    part.lines = vec![Line::new(components::NOISE, noise_in_words(saved, noise, precision.as_ref()))];
    if let Some(precision) = precision.as_ref().filter(|_| detail.loadings && model.n_latent() > 0) {
        let errors = ("standard error", &precision.standard_errors.loadings);
        part.tables.truncate(1);
        part.tables.extend(largest_loadings(saved, Some(errors)));
        part.tables.push(means(model, saved, precision));
    }
    part.facts = PartFacts { noise, precision, ..PartFacts::default() };
    Ok(part)
}

/// For complete rows.
fn noise_estimate(model: &LinearGaussian, saved: &SavedModel) -> Option<NoiseEstimate> {
    let estimate = ppca_estimate(model, &saved.report).ok()?;
    let interval = estimate.noise_interval(PpcaEstimate::LEVEL).ok().flatten()?;
    Some(NoiseEstimate { unbiased: estimate.unbiased_noise()?, interval })
}

fn precision(model: &LinearGaussian, saved: &SavedModel, errors: Errors<'_>) -> Result<Precision> {
    let estimate = ppca_estimate(model, &saved.report)?;
    let intervals = estimate.intervals(errors.level.unwrap_or(PpcaEstimate::LEVEL))?;
    Ok(Precision { standard_errors: estimate.standard_errors(), intervals })
}

/// σ² of the model and, with the interval that was asked for, the estimate that the interval belongs to.
fn noise_in_words(saved: &SavedModel, noise: Option<NoiseEstimate>, precision: Option<&Precision>) -> String {
    let of_model = components::noise_in_words(saved).unwrap_or_default();
    let Some(NoiseEstimate { unbiased, interval }) = noise else { return of_model };
    let asked = precision.map(|p| (p.intervals.level, p.intervals.noise_variance));
    let (probability, interval) = asked.unwrap_or((PpcaEstimate::LEVEL, Some(interval)));
    let Some((low, high)) = interval else { return of_model };
    format!(
        "{of_model} by maximum likelihood; without its bias {} ({} interval {} to {})",
        number(unbiased),
        level(probability),
        number(low),
        number(high)
    )
}

/// The mean of each feature with its standard error and interval.
fn means(model: &LinearGaussian, saved: &SavedModel, precision: &Precision) -> Table {
    let Precision { standard_errors: errors, intervals } = precision;
    let row = |j: usize| {
        let (low, high) = intervals.mean[j];
        let numbers = [model.mean()[j], errors.mean[j], low, high].map(number);
        numbers.into_iter().chain([saved.features[j].clone()]).collect()
    };
    let interval = format!("{} from", level(intervals.level));
    feature_table(&["mean", "standard error", &interval, "to", "feature"], saved.features.len(), row)
}

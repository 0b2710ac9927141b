//! `covary inspect`: what is in a model or in moments.

use covary::assess::PpcaEstimate;
use covary::estimator::{ppca_estimate, standard_errors_with};
use covary::evidence::Moments;
use covary::model::{Factors, LinearGaussian};
use covary::persist::{SavedEvidence, SavedModel};
use serde::Serialize;

use crate::args::CUT;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::factors::rows;
use crate::files::{Saved, read_saved};
use crate::flags::Inspect;
use crate::interrupt;
use crate::phrase::about_features;
use crate::summary::{Facts, Precision, json};
use crate::table::{columns, level, number, pairs};

/// Components and features that the table of loadings shows.
const SHOWN: usize = 8;

/// Shows the file for people, or as JSON.
pub(super) fn run(flags: &Inspect) -> Result<Code> {
    let text = match (read_saved(&flags.model)?, flags.json) {
        (Saved::Model(saved), true) => json(&Whole::new(flags, &saved)?)?,
        (Saved::Model(saved), false) => model_text(flags, &saved)?,
        (Saved::Moments(_), _) if flags.cut.is_some() || flags.errors => {
            return Err(only("--cut and --errors are for models", "moments"));
        }
        (Saved::Moments(part), true) => json(&MomentsFacts::new(part))?,
        (Saved::Moments(part), false) => moments_text(&MomentsFacts::new(part)),
    };
    print(&text)?;
    Ok(Code::Done)
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    facts: Facts,
    feature_names: &'a [String],
    mean: &'a [f64],
    loadings: Vec<Vec<f64>>,
}

impl<'a> Whole<'a> {
    fn new(flags: &Inspect, saved: &'a SavedModel) -> Result<Self> {
        Ok(Self {
            facts: facts(flags, saved)?,
            feature_names: &saved.features,
            mean: saved.model.with_loadings()?.mean(),
            loadings: rows(saved.model.with_loadings()?.shown().as_ref()),
        })
    }
}

/// What is told of the model, with what was asked for.
fn facts(flags: &Inspect, saved: &SavedModel) -> Result<Facts> {
    let mut facts = Facts::new(saved)?;
    match facts.factors.take() {
        Some(factors) => facts.factors = Some(factors.with_cut(flags.cut.unwrap_or(CUT))),
        None if flags.cut.is_some() => {
            return Err(only("--cut is for models of factors", saved.model.kind().name));
        }
        None => (),
    }
    if flags.errors {
        add_errors(&mut facts, flags, saved)?;
    }
    Ok(facts)
}

/// Standard errors, where they can be told.
fn add_errors(facts: &mut Facts, flags: &Inspect, saved: &SavedModel) -> Result<()> {
    let in_words = about_features(&flags.model, &saved.features);
    let model = &*saved.model;
    if let Some(factors) = model.downcast_ref::<Factors>() {
        if flags.level.is_some() {
            return Err(only("--level is for ppca", model.kind().name));
        }
        let errors = standard_errors_with(factors, &saved.report, &interrupt::control()).map_err(in_words)?;
        facts.factors = facts.factors.take().map(|factors| factors.with_errors(errors));
        return Ok(());
    }
    let Some(gaussian) = model.downcast_ref::<LinearGaussian>() else {
        return Err(only("--errors is for ppca and fa", model.kind().name));
    };
    let estimate = ppca_estimate(gaussian, &saved.report).map_err(&in_words)?;
    let intervals = estimate.intervals(flags.level.unwrap_or(PpcaEstimate::LEVEL)).map_err(in_words)?;
    facts.precision = Some(Precision { standard_errors: estimate.standard_errors(), intervals });
    Ok(())
}

fn only(what: &str, kind: &str) -> Failure {
    Failure::usage(format!("{what}, and this file holds {kind}"))
}

fn model_text(flags: &Inspect, saved: &SavedModel) -> Result<String> {
    let facts = facts(flags, saved)?;
    if facts.factors.is_some() {
        return Ok(facts.text(None, Vec::new()));
    }
    let text = facts.text(None, vec![("features", names(&saved.features))]);
    if saved.model.n_latent() == 0 {
        return Ok(text);
    }
    let errors = facts.precision.as_ref();
    let means = errors.map(|precision| Ok::<_, Failure>(format!("\n{}", means_text(saved, precision)?)));
    let means = means.transpose()?;
    Ok(format!("{text}\n{}{}", loadings_text(saved, errors)?, means.unwrap_or_default()))
}

/// For each component the features that weigh most in it, with their loadings and, where they are known, their deviations.
fn loadings_text(saved: &SavedModel, errors: Option<&Precision>) -> Result<String> {
    let loadings = saved.model.with_loadings()?;
    let w = loadings.shown();
    let (errors, heading) = match (errors, loadings.deviations()) {
        (Some(p), _) => (Some(&p.standard_errors.loadings), "largest loadings (standard error)"),
        (None, Some(known)) => (Some(known), "largest loadings (standard deviation)"),
        (None, None) => (None, "largest loadings"),
    };
    let error = |i: usize, j: usize| errors.map(|e| e[(i, j)]);
    let shown = |i: usize, j: usize| match error(i, j) {
        None => format!("{} {:+.4}", saved.features[i], w[(i, j)]),
        Some(error) => format!("{} {:+.4} ({error:.4})", saved.features[i], w[(i, j)]),
    };
    let rows = (0..w.ncols().min(SHOWN)).map(|j| {
        let mut order: Vec<usize> = (0..w.nrows()).collect();
        order.sort_by(|a, b| w[(*b, j)].abs().total_cmp(&w[(*a, j)].abs()));
        let undetermined = error(0, j) == Some(f64::INFINITY);
        let largest: Vec<String> = order.iter().take(SHOWN).map(|&i| shown(i, j)).collect();
        let direction =
            if undetermined { "; not determined: another direction has this variance" } else { "" };
        [format!("z{}", j + 1), largest.join(", ") + direction]
    });
    Ok(columns(&["component", heading], rows.collect::<Vec<_>>()))
}

/// The mean of each feature with its standard error and interval.
fn means_text(saved: &SavedModel, precision: &Precision) -> Result<String> {
    let mean = saved.model.with_loadings()?.mean();
    let Precision { standard_errors: errors, intervals } = precision;
    let row = |j: usize| {
        let (low, high) = intervals.mean[j];
        let numbers = [mean[j], errors.mean[j], low, high].map(number);
        numbers.into_iter().chain([saved.features[j].clone()])
    };
    let interval = format!("{} from", level(intervals.level));
    let header = ["mean", "standard error", &interval, "to", "feature"];
    Ok(listed(&header, saved.features.len(), row))
}

/// A line for each of so many features, as far as they are listed.
fn listed<R: IntoIterator<Item = String>>(
    header: &[&str],
    features: usize,
    row: impl Fn(usize) -> R,
) -> String {
    const LISTED: usize = 50;
    let rows: Vec<Vec<String>> = (0..features.min(LISTED)).map(|j| row(j).into_iter().collect()).collect();
    let more = features.saturating_sub(LISTED);
    let tail = if more > 0 { format!(" … and {more} more\n") } else { String::new() };
    format!("{}{tail}", columns(header, rows))
}

fn names(features: &[String]) -> String {
    const LISTED: usize = 20;
    let listed = features.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    match features.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[derive(Serialize)]
struct MomentsFacts {
    model: &'static str,
    rows: usize,
    weight: f64,
    features: usize,
    total_variance: f64,
    feature_names: Vec<String>,
    mean: Vec<f64>,
    variances: Vec<f64>,
}

impl MomentsFacts {
    fn new(part: SavedEvidence<Moments>) -> Self {
        let moments = part.evidence;
        let variance = |i| moments.scatter_lower()[(i, i)] / moments.weight();
        Self {
            model: "moments",
            rows: moments.rows(),
            weight: moments.weight(),
            features: moments.n_features(),
            total_variance: moments.total_variance(),
            mean: moments.mean().to_vec(),
            variances: (0..moments.n_features()).map(variance).collect(),
            feature_names: part.features,
        }
    }
}

fn moments_text(facts: &MomentsFacts) -> String {
    let head = pairs(&[
        ("moments of", format!("{} rows, total weight {}", facts.rows, number(facts.weight))),
        ("features (p)", facts.features.to_string()),
        ("total variance", number(facts.total_variance)),
    ]);
    let row =
        |j: usize| [number(facts.mean[j]), number(facts.variances[j].sqrt()), facts.feature_names[j].clone()];
    format!("{head}\n{}", listed(&["mean", "deviation", "feature"], facts.features, row))
}

//! What is told of every model: what it is, its rows, how it was found.

use std::fmt::Write;

use serde::Serialize;

use super::number::{count, number, percent};
use super::{Advice, Line, Part, PartFacts, Words, rows};
use crate::algorithm::{RedundantFeatures, Stop};
use crate::estimator::{MissingCells, Report, Scale};
use crate::persist::SavedModel;

/// The facts about a model.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ModelFacts {
    model: &'static str,
    rows: usize,
    weight: f64,
    features: usize,
    components: usize,
    solver: &'static str,
    solver_reason: String,
    noise_variance: Option<f64>,
    noise_variance_unbiased: Option<f64>,
    noise_interval: Option<(f64, f64)>,
    log_likelihood: Option<f64>,
    scaled: Option<Scale>,
    total_variance: f64,
    eigenvalues: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
    holes: Option<HoleFacts>,
    redundant: Option<RedundantFacts>,
    #[serde(flatten)]
    part: PartFacts,
    converged: bool,
    stop: Stop,
    iterations: usize,
    passes: usize,
    #[serde(flatten)]
    numbers: Option<Numbers>,
}

/// The features and the numbers that belong to them.
#[derive(Debug, Clone, Serialize)]
struct Numbers {
    feature_names: Vec<String>,
    mean: Vec<f64>,
    loadings: Vec<Vec<f64>>,
}

/// What the rows lack.
#[derive(Debug, Clone, Serialize)]
struct HoleFacts {
    #[serde(flatten)]
    holes: MissingCells,
    share: f64,
}

/// Features that had no say in the number of components, by name.
#[derive(Debug, Clone, Serialize)]
struct RedundantFacts {
    constant: Vec<String>,
    repeated: Vec<(String, String)>,
}

impl ModelFacts {
    /// With the features, their means and loadings, or without.
    pub(super) fn new(saved: &SavedModel, part: PartFacts, with_numbers: bool) -> Self {
        let report = &saved.report;
        let loadings = saved.model.as_loadings();
        Self {
            model: saved.model.kind().name,
            rows: report.rows,
            weight: report.weight,
            features: report.features,
            components: report.components,
            solver: report.plan.solver.name(),
            solver_reason: report.plan.reason.clone(),
            noise_variance: loadings.map(|loadings| loadings.noise().mean()),
            noise_variance_unbiased: part.noise.map(|noise| noise.unbiased),
            noise_interval: part.noise.map(|noise| noise.interval),
            log_likelihood: report.log_likelihood.filter(|v| v.is_finite()),
            scaled: report.scaled.as_ref().map(|scaled| scaled.scale),
            total_variance: report.total_variance,
            eigenvalues: saved.eigenvalues.iter().take(saved.model.n_latent()).copied().collect(),
            explained_variance_ratio: saved.explained_ratio(),
            holes: report.holes.clone().map(|holes| HoleFacts { share: holes.share(), holes }),
            redundant: report.redundant.as_ref().map(|found| RedundantFacts::new(found, &saved.features)),
            part,
            converged: report.converged(),
            stop: report.stop,
            iterations: report.trace.len(),
            passes: report.passes,
            numbers: with_numbers.then(|| Numbers {
                feature_names: saved.features.clone(),
                mean: loadings.map(|loadings| loadings.mean().to_vec()).unwrap_or_default(),
                loadings: loadings.map(|loadings| rows(loadings.shown().as_ref())).unwrap_or_default(),
            }),
        }
    }
}

impl RedundantFacts {
    fn new(found: &RedundantFeatures, names: &[String]) -> Self {
        let name = |j: &usize| names.get(*j).cloned().unwrap_or_else(|| j.to_string());
        Self {
            constant: found.constant.iter().map(name).collect(),
            repeated: found.repeated.iter().map(|(j, k)| (name(j), name(k))).collect(),
        }
    }
}

/// How it went and what came out.
pub(super) fn lines(saved: &SavedModel, because: Option<&str>, part: &Part) -> Vec<Line> {
    let report = &saved.report;
    let plan = &report.plan;
    let mut lines = vec![
        Line::new("model", saved.model.kind().name),
        Line::new("rows (n)", rows_in_words(report)),
        Line::new("features (p)", report.features.to_string()),
    ];
    lines.extend(report.holes.as_ref().map(|holes| Line::new("missing values", missing_in_words(holes))));
    lines.extend(report.scaled.as_ref().map(|scaled| {
        Line::new("scaled", format!("each feature divided by {} for the fit", scaled.scale.in_words()))
    }));
    // Of clusters the groups themselves are counted, of a mixture the latent variables within them.
    let clusters = saved.model.as_assign().is_some() && saved.model.as_density().is_none();
    let symbol = if clusters { "K" } else { "q" };
    let axes = format!("{} ({symbol})", saved.model.kind().components);
    let because = because.map(|words| format!(": {words}")).unwrap_or_default();
    lines.push(Line::new(axes, format!("{}{because}", part.components)));
    let redundant = report.redundant.as_ref().map(|found| found.in_words(&saved.features));
    lines.extend(redundant.map(|words| Line::new("not used to choose q", words)));
    lines.push(Line::new("solver", format!("{}: {}", plan.solver.name(), plan.reason)));
    lines.extend(part.lines.iter().cloned());
    if saved.model.as_density().is_some() {
        lines.push(Line::new("log-likelihood", log_likelihood_in_words(report)));
    }
    lines.push(Line::new("total variance", number(report.total_variance)));
    if !report.trace.is_empty() {
        let words = format!("{}{}", report.trace.len(), passes_in_words(report.passes));
        lines.push(Line::new("iterations", words));
    }
    lines.extend(unfinished(report, &part.so_far).map(|words| Line::new("not converged", words)));
    lines
}

fn rows_in_words(report: &Report) -> String {
    let weighted = report.weight != report.rows as f64;
    let weight = if weighted { format!(", total weight {}", number(report.weight)) } else { String::new() };
    format!("{}{weight}", report.rows)
}

fn missing_in_words(holes: &MissingCells) -> String {
    let MissingCells { missing, patterns, empty_rows, unseen_pairs, .. } = holes;
    let patterns = patterns.map_or("very many patterns".into(), |n| count(n, "pattern"));
    let mut text = format!("{missing} cells ({}) in {patterns}", percent(holes.share()));
    if *empty_rows > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "; rows without any cell: {empty_rows}");
    }
    if let Some(pairs) = unseen_pairs.filter(|n| *n > 0) {
        let _ = write!(text, "; features never seen together: {}", count(pairs, "pair"));
    }
    text
}

fn log_likelihood_in_words(report: &Report) -> String {
    let of = if report.holes.is_some() { ", of the observed cells" } else { "" };
    match report.log_likelihood {
        Some(value) if value.is_infinite() => {
            "infinite: the rows lie in the plane of the components, without noise".into()
        }
        Some(value) if value.is_finite() => {
            format!("{} ({} per row{of})", number(value), number(value / report.weight))
        }
        _ if report.stop == Stop::Interrupted => "not known, because the fit was interrupted".into(),
        _ => "not known".into(),
    }
}

fn passes_in_words(passes: usize) -> String {
    match passes {
        0 => String::new(),
        1 => " in one pass over the rows".into(),
        n => format!(" in {n} passes over the rows"),
    }
}

/// What to say when the method did not end by itself.
fn unfinished(report: &Report, so_far: &str) -> Option<Words> {
    let steps = report.online_steps();
    match report.stop {
        Stop::Converged => None,
        Stop::Interrupted => Some(format!("interrupted after {so_far}").into()),
        Stop::Stalled => Some(Words::advised(
            format!("stalled after {so_far}: no better point can be found"),
            Advice::LargerTolerance,
        )),
        // There are as many steps as there were batches, and no limit that could be raised.
        Stop::IterationLimit if steps.is_some() => {
            Some(format!("{} of online EM end near the maximum", count(steps?, "step")).into())
        }
        Stop::IterationLimit => {
            Some(Words::advised(format!("stopped at the limit after {so_far}"), Advice::MoreIterations))
        }
    }
}

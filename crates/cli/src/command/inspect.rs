//! `covary inspect`: what is in a model or in moments.

use covary::assess::Precision;
use covary::estimator::standard_errors;
use covary::evidence::Moments;
use covary::linalg::Mat;
use covary::model::Model;
use covary::persist::{SavedEvidence, SavedModel};
use serde::Serialize;

use crate::args::CUT;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::factors::rows;
use crate::files::{Saved, read_saved};
use crate::flags::Inspect;
use crate::phrase::about_features;
use crate::summary::{Facts, json};
use crate::table::{columns, number, pairs};

/// Components and features that the table of loadings shows.
const SHOWN: usize = 8;

/// Shows the file for people, or as JSON.
pub(super) fn run(flags: &Inspect) -> Result<Code> {
    let text = match (read_saved(&flags.model)?, flags.json) {
        (Saved::Model(saved), true) => json(&Whole::new(flags, &saved)?)?,
        (Saved::Model(saved), false) => model_text(flags, &saved)?,
        (Saved::Moments(_), _) if flags.cut.is_some() || flags.errors => return Err(only_factors("moments")),
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
            mean: saved.model.mean(),
            loadings: rows(loadings(&saved.model).as_ref()),
        })
    }
}

/// What is told of the model, with what was asked for of factors.
fn facts(flags: &Inspect, saved: &SavedModel) -> Result<Facts> {
    let mut facts = Facts::new(saved)?;
    match facts.factors.take() {
        Some(factors) => {
            let factors = factors.with_cut(flags.cut.unwrap_or(CUT));
            facts.factors =
                Some(if flags.errors { factors.with_errors(errors(flags, saved)?) } else { factors });
        }
        None if flags.cut.is_some() || flags.errors => return Err(only_factors(saved.model.kind())),
        None => (),
    }
    Ok(facts)
}

/// Standard errors, where they can be told.
fn errors(flags: &Inspect, saved: &SavedModel) -> Result<Precision> {
    let Model::Fa(model) = &saved.model else { return Err(only_factors(saved.model.kind())) };
    standard_errors(model, &saved.report).map_err(about_features(&flags.model, &saved.features))
}

fn only_factors(kind: &str) -> Failure {
    Failure::usage(format!("--cut and --errors are for models of factors, and this file holds {kind}"))
}

/// What stands for the loadings: W of PPCA and its mean of Bayesian PCA, the directions of PCA, the pattern of factors (p × q).
fn loadings(model: &Model) -> &Mat<f64> {
    match model {
        Model::Ppca(m) => m.loadings(),
        Model::Pca(m) => m.components(),
        Model::Fa(m) => m.pattern(),
        Model::Bpca(m) => m.gaussian().loadings(),
    }
}

fn model_text(flags: &Inspect, saved: &SavedModel) -> Result<String> {
    let facts = facts(flags, saved)?;
    if facts.factors.is_some() {
        return Ok(facts.text(None, Vec::new()));
    }
    let facts = facts.text(None, vec![("features", names(&saved.features))]);
    Ok(format!("{facts}\n{}", loadings_text(saved)))
}

/// For each component the features that weigh most in it, with their loadings.
fn loadings_text(saved: &SavedModel) -> String {
    let w = loadings(&saved.model);
    let rows = (0..w.ncols().min(SHOWN)).map(|j| {
        let mut order: Vec<usize> = (0..w.nrows()).collect();
        order.sort_by(|a, b| w[(*b, j)].abs().total_cmp(&w[(*a, j)].abs()));
        let largest: Vec<String> =
            order.iter().take(SHOWN).map(|&i| format!("{} {:+.4}", saved.features[i], w[(i, j)])).collect();
        [format!("z{}", j + 1), largest.join(", ")]
    });
    columns(&["component", "largest loadings"], rows.collect::<Vec<_>>())
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
    const LISTED: usize = 50;
    let head = pairs(&[
        ("moments of", format!("{} rows, total weight {}", facts.rows, number(facts.weight))),
        ("features (p)", facts.features.to_string()),
        ("total variance", number(facts.total_variance)),
    ]);
    let row =
        |j: usize| [number(facts.mean[j]), number(facts.variances[j].sqrt()), facts.feature_names[j].clone()];
    let rows: Vec<_> = (0..facts.features.min(LISTED)).map(row).collect();
    let more = facts.features.saturating_sub(LISTED);
    let tail = if more > 0 { format!(" … and {more} more\n") } else { String::new() };
    format!("{head}\n{}{tail}", columns(&["mean", "deviation", "feature"], rows))
}

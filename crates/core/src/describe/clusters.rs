//! What is told of clusters: their sizes, their centres, and how much of the variation lies between them.

use serde::Serialize;

use super::number::{bar, number, numbers, percent};
use super::{Detail, Line, Part, PartFacts, Table, components, rows};
use crate::error::Result;
use crate::estimator::{ClusterReport, KTable};
use crate::linalg::descending;
use crate::model::Clustering;
use crate::persist::SavedModel;

/// Clusters that are listed one by one.
const LISTED: usize = 50;
/// Features whose means are shown beside the sizes; of more, those in which the clusters differ most.
const SHOWN: usize = 6;

/// The facts about clusters.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ClusterFacts {
    #[serde(flatten)]
    report: Option<ClusterReport>,
    explained: Option<f64>,
    sizes: Vec<f64>,
    shares: Vec<f64>,
    within: Vec<f64>,
    centres: Vec<Vec<f64>>,
    feature_names: Vec<String>,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let Some(model) = saved.model.downcast_ref::<Clustering>() else {
        return components::part(saved, detail);
    };
    let report = saved.report.clusters();
    let facts = PartFacts { clusters: Some(ClusterFacts::new(saved, model)), ..PartFacts::default() };
    let mut tables = vec![sizes(saved, model)];
    tables.extend(report.and_then(|report| report.chosen.as_ref()).map(numbers_of_clusters));
    Ok(Part {
        components: found(model, report),
        lines: report.map(lines).unwrap_or_default(),
        so_far: format!("{} passes", saved.report.passes),
        last: Vec::from_iter(detail.loadings.then(|| components::feature_line(&saved.features))),
        tables,
        facts,
    })
}

impl ClusterFacts {
    fn new(saved: &SavedModel, model: &Clustering) -> Self {
        let report = saved.report.clusters();
        Self {
            explained: report.and_then(ClusterReport::explained),
            report: report.cloned(),
            sizes: weights(saved, model),
            shares: model.shares().to_vec(),
            within: model.within().to_vec(),
            centres: rows(model.centres().as_ref()),
            feature_names: saved.features.clone(),
        }
    }
}

/// Weight of the rows of each cluster.
fn weights(saved: &SavedModel, model: &Clustering) -> Vec<f64> {
    let empty = saved.report.holes.as_ref().map_or(0, |holes| holes.empty_rows);
    // Rows without any cell have no weight. Where weights were given, theirs is not known.
    let counted = saved.report.rows as f64 == saved.report.weight;
    let total = if counted { saved.report.weight - empty as f64 } else { saved.report.weight };
    let whole = |w: f64| if counted { w.round() } else { w };
    model.shares().iter().map(|share| whole(share * total)).collect()
}

fn found(model: &Clustering, report: Option<&ClusterReport>) -> String {
    match report {
        Some(report) if report.found < report.asked => {
            format!("{} of {} asked for: there are no more different rows", report.found, report.asked)
        }
        _ => model.centres().nrows().to_string(),
    }
}

fn lines(report: &ClusterReport) -> Vec<Line> {
    let explained = report.explained().map(|share| format!("; {} lie between clusters", percent(share)));
    let inertia = format!(
        "{} of {} about the mean{}",
        number(report.inertia),
        number(report.total),
        explained.unwrap_or_default()
    );
    let search = match (report.starts, report.online_steps) {
        (_, Some(steps)) => format!("{steps} batches, each of which moved the centres once"),
        (0, None) => "from given centres".into(),
        (starts, None) => {
            format!(
                "best of {}, {}",
                super::count(starts, "start"),
                super::count(report.swaps, "useful swap")
            )
        }
    };
    vec![Line::new("sum of squares (inertia)", inertia), Line::new("search", search)]
}

/// One line for each cluster: size, share, sum of squares, means.
fn sizes(saved: &SavedModel, model: &Clustering) -> Table {
    let (centres, k) = (model.centres(), model.centres().nrows());
    let shown = told_apart_by(model);
    let columns: Vec<Vec<String>> =
        shown.iter().map(|j| numbers(&(0..k).map(|k| centres[(k, *j)]).collect::<Vec<_>>())).collect();
    let (sizes, within) = (weights(saved, model), numbers(model.within()));
    let row = |k: usize| {
        let first = [(k + 1).to_string(), short(sizes[k]), percent(model.shares()[k]), within[k].clone()];
        let means = columns.iter().map(|column| column[k].clone());
        first.into_iter().chain(means).chain([bar(model.shares()[k])]).collect::<Vec<_>>()
    };
    let names = shown.iter().map(|j| saved.features[*j].clone());
    let header = ["cluster", "rows", "share", "sum of squares"].map(str::to_owned).into_iter();
    let header = header.chain(names).chain([String::new()]).collect();
    let table = Table::with_text_last(header, (0..k.min(LISTED)).map(row).collect());
    let more = k.saturating_sub(LISTED);
    Table { note: (more > 0).then(|| format!("… and {more} more").into()), ..table }
}

fn short(weight: f64) -> String {
    if weight.fract() == 0.0 && weight.abs() < 1e15 { format!("{weight:.0}") } else { number(weight) }
}

/// All features where they are few, else those of which most of the distance between centres comes.
fn told_apart_by(model: &Clustering) -> Vec<usize> {
    let (centres, mean) = (model.centres(), model.mean());
    let p = centres.ncols();
    let spread = |j: usize| {
        let each = model.shares().iter().enumerate();
        each.map(|(k, s)| s * ((centres[(k, j)] - mean[j]) / model.divisors()[j]).powi(2)).sum::<f64>()
    };
    if p <= SHOWN {
        return (0..p).collect();
    }
    let mut order = descending(&(0..p).map(spread).collect::<Vec<_>>());
    order.truncate(SHOWN);
    order
}

/// The numbers of clusters that a choice was made from.
pub fn numbers_of_clusters(chosen: &KTable) -> Table {
    let inertia = numbers(&chosen.rows.iter().map(|row| row.inertia).collect::<Vec<_>>());
    let row = |(row, inertia): (&crate::estimator::KTableRow, String)| {
        let gap = row.gap.map_or("infinite".into(), |gap| format!("{gap:.4}"));
        vec![row.clusters.to_string(), inertia, gap, format!("{:.4}", row.error)]
    };
    let header = ["K", "inertia", "gap", "standard error"].map(str::to_owned).to_vec();
    Table::with_text_last(header, chosen.rows.iter().zip(inertia).map(row).collect())
}

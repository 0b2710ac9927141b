//! What is told of GP-LVMs: the kernel, the bound, and how much each dimension matters.

use serde::Serialize;

use super::number::{count, number};
use super::{Detail, Line, Part, Table, components};
use crate::error::Result;
use crate::estimator::GplvmReport;
use crate::model::LatentProcess;
use crate::persist::SavedModel;

/// The facts about a GP-LVM.
#[derive(Debug, Clone, Serialize)]
pub(super) struct GplvmFacts {
    #[serde(flatten)]
    report: Option<GplvmReport>,
    /// Rows whose positions the file holds.
    positions: usize,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(model) = saved.model.downcast_ref::<LatentProcess>() else { return Ok(part) };
    let report = saved.report.gplvm();
    part.facts.gplvm =
        Some(GplvmFacts { report: report.cloned(), positions: model.parts().latent_mean.nrows() });
    part.tables = vec![dimensions(model, report)];
    let Some(report) = report else { return Ok(part) };
    part.lines = lines(saved, report);
    part.so_far = format!("{} steps", report.iterations);
    let used = report.in_use().iter().filter(|used| **used).count();
    if used < report.relevance.len() {
        part.components = format!("{}, of which {used} carry something", report.relevance.len());
    }
    Ok(part)
}

fn lines(saved: &SavedModel, report: &GplvmReport) -> Vec<Line> {
    let dual = report.method == "map" && report.kernel == "linear";
    let what = match (report.method.as_str(), dual) {
        ("bayes", _) => "lower bound on the evidence",
        (_, true) => "log-likelihood of the columns",
        _ => "log posterior of the positions",
    };
    let kernel = match report.kernel.as_str() {
        "rbf" => format!("rbf: variance {}", number(report.kernel_variance)),
        other => other.into(),
    };
    let per = number(report.objective / saved.report.weight.max(1.0));
    let mut lines = vec![
        Line::new("kernel", kernel),
        Line::new(what, format!("{} ({per} per row)", number(report.objective))),
        Line::new(components::NOISE, number(report.noise_variance)),
    ];
    if report.method == "bayes" && report.kernel == "rbf" {
        let fewer = report.asked.map(|asked| format!(", as many as there are rows ({asked} asked for)"));
        let words = format!("{}{}", count(report.inducing, "point"), fewer.unwrap_or_default());
        lines.insert(1, Line::new("inducing points", words));
    }
    if report.starts > 1 {
        lines.push(Line::new("starts", report.starts.to_string()));
    }
    lines
}

/// Relevance, spread and divergence of each dimension.
fn dimensions(model: &LatentProcess, report: Option<&GplvmReport>) -> Table {
    let relevance = model.relevance();
    let divergence = report.and_then(|report| report.divergence.as_ref());
    let used = report.map(GplvmReport::in_use);
    let mut header = vec!["dimension".into(), "relevance".into()];
    if divergence.is_some() {
        header.extend(["nats per row".into(), String::new()]);
    }
    let row = |k: usize| {
        let mut row = vec![format!("z{}", k + 1), number(relevance[k])];
        if let Some(divergence) = divergence {
            let idle = used.as_ref().is_some_and(|used| !used[k]);
            row.extend([number(divergence[k]), if idle { "carries nothing".into() } else { String::new() }]);
        }
        row
    };
    let right = 1..if divergence.is_some() { 3 } else { 2 };
    let rows = (0..relevance.len()).map(row).collect();
    Table { header, rows, right, wraps: false, note: None }
}

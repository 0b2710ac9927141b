//! What is told of independent components besides: how stable each source is, and which look normal.

use serde::Serialize;

use super::number::{number, numbers, percent};
use super::{Detail, Line, Part, PartFacts, Table, components, rows};
use crate::error::Result;
use crate::estimator::IcaReport;
use crate::model::IndependentComponents;
use crate::persist::SavedModel;

/// Sources that are listed one by one.
const LISTED: usize = 50;

/// The facts about a model of independent components.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SourceFacts {
    method: Option<String>,
    starts: Option<usize>,
    objective: Option<f64>,
    variances: Vec<f64>,
    stability: Option<Vec<f64>>,
    contrast: Option<Vec<f64>>,
    normal_below: Option<f64>,
    looks_normal: Option<Vec<bool>>,
    correlation: Vec<Vec<f64>>,
    kept: Option<bool>,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(model) = saved.model.downcast_ref::<IndependentComponents>() else { return Ok(part) };
    let report = saved.report.ica();
    part.facts = PartFacts { sources: Some(SourceFacts::new(model, report)), ..PartFacts::default() };
    part.lines.extend(report.map(|report| Line::new("method", method(report))));
    part.lines.extend(report.and_then(normal).map(|words| Line::new("sources that look normal", words)));
    part.tables[0] = table(saved, model, report);
    Ok(part)
}

impl SourceFacts {
    fn new(model: &IndependentComponents, report: Option<&IcaReport>) -> Self {
        Self {
            method: report.map(|r| r.method.clone()),
            starts: report.map(|r| r.starts),
            objective: report.map(|r| r.objective),
            variances: model.source_variances(),
            stability: report.and_then(|r| r.stability.clone()),
            contrast: report.map(|r| r.contrast.clone()),
            normal_below: report.map(|r| r.normal_below),
            looks_normal: report.map(IcaReport::looks_normal),
            correlation: rows(model.correlation().as_ref()),
            kept: report.and_then(|r| r.kept),
        }
    }
}

fn method(report: &IcaReport) -> String {
    let IcaReport { method, iterations, starts, .. } = report;
    match starts {
        1 => format!("{method}: {iterations} iterations from one start"),
        _ => format!("{method}: {iterations} iterations of the best of {starts} starts"),
    }
}

/// Which sources look normal, and what that means.
fn normal(report: &IcaReport) -> Option<String> {
    let flags = report.looks_normal();
    let which: Vec<String> =
        flags.iter().enumerate().filter(|(_, flag)| **flag).map(|(k, _)| format!("s{}", k + 1)).collect();
    match which.len() {
        0 => None,
        1 => Some(which.join(", ")),
        _ => Some(format!("{}; any turn of them fits as well", which.join(", "))),
    }
}

/// One line for each source: variance, share, stability, how far from normal.
fn table(saved: &SavedModel, model: &IndependentComponents, report: Option<&IcaReport>) -> Table {
    let (variances, total) = (model.source_variances(), saved.report.total_variance);
    let stability = report.and_then(|r| r.stability.as_ref());
    let shown = numbers(&variances);
    let row = |k: usize| {
        let mut cells = vec![format!("s{}", k + 1), shown[k].clone()];
        // Of scaled features the total is that of the fit.
        cells.push(if saved.report.scaled.is_some() { String::new() } else { percent(variances[k] / total) });
        cells.push(stability.map_or_else(String::new, |s| format!("{:.3}", s[k])));
        cells.push(report.map_or_else(String::new, |r| tails(r, k)));
        cells
    };
    let header = ["source", "variance", "share", "stability", "tails"].map(str::to_owned).to_vec();
    let more = variances.len().saturating_sub(LISTED);
    let note = (more > 0).then(|| format!("… and {more} more").into());
    Table { note, ..Table::with_text_last(header, (0..variances.len().min(LISTED)).map(row).collect()) }
}

/// Heavy, light, or like those of a normal variable, and by how many standard errors.
fn tails(report: &IcaReport, source: usize) -> String {
    let contrast = report.contrast[source];
    let size = number(contrast.abs());
    match contrast {
        c if c.abs() <= report.normal_below => format!("normal ({size} standard errors)"),
        c if c < 0.0 => format!("heavy ({size} standard errors)"),
        _ => format!("light ({size} standard errors)"),
    }
}

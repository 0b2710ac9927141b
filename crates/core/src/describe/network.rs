//! What is told of an autoassociative network: its shape, what it explains beside PCA, and how the fit ended.

use super::number::{count, number, percent};
use super::{Detail, Line, Part, components};
use crate::error::Result;
use crate::estimator::NetworkReport;
use crate::persist::SavedModel;

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(report) = saved.report.network() else { return Ok(part) };
    part.facts.network = Some(report.clone());
    part.lines = lines(report);
    part.so_far = format!("{} steps, {} passes", report.iterations, saved.report.passes);
    Ok(part)
}

fn lines(report: &NetworkReport) -> Vec<Line> {
    let mut lines = vec![
        Line::new("network", shape(report)),
        Line::new("explained", explained(report)),
        Line::new(components::NOISE, number(report.noise_variance)),
    ];
    if let Some((before, after)) = report.hidden_error {
        let what = if report.encoder { "rows" } else { "cells" };
        let text = format!(
            "a tenth of the {what}: error {} (PCA {}), which ended the fit",
            number(after),
            number(before)
        );
        lines.push(Line::new("hidden from the fit", text));
    }
    lines
}

fn shape(report: &NetworkReport) -> String {
    let weights = count(report.weights, "weight");
    let units = match report.hidden {
        0 => "linear".to_owned(),
        hidden => format!("{} hidden units ({})", hidden, report.activation),
    };
    let parts = if report.encoder { "encoder and decoder" } else { "decoder only" };
    format!("{parts}, {units}, {weights}")
}

fn explained(report: &NetworkReport) -> String {
    format!(
        "{} of the variance; PCA with as many components {}",
        percent(report.explained),
        percent(report.explained_by_pca)
    )
}

//! What is told of kernel PCA: its kernel, what it holds, and what landmarks leave out.

use serde::Serialize;

use super::number::{count, number, percent};
use super::{Detail, Line, Part, components};
use crate::error::Result;
use crate::estimator::{KernelReport, LandmarkMethod};
use crate::model::KernelComponents;
use crate::persist::SavedModel;

/// The facts about a kernel model.
#[derive(Debug, Clone, Serialize)]
pub(super) struct KernelFacts {
    #[serde(flatten)]
    report: Option<KernelReport>,
    /// Numbers that the file holds for points and coefficients, in bytes.
    bytes: usize,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(model) = saved.model.downcast_ref::<KernelComponents>() else { return Ok(part) };
    let report = saved.report.kernel();
    part.facts.kernel = Some(KernelFacts { report: report.cloned(), bytes: bytes(model) });
    part.lines = report.map(|report| lines(saved, model, report)).unwrap_or_default();
    if let Some(report) = report.filter(|report| report.rank < saved.report.components) {
        let (q, rank) = (saved.report.components, report.rank);
        part.components = format!("{q}, of which {rank} have a variance above 0");
    }
    Ok(part)
}

/// Bytes of the arrays that grow with the points.
fn bytes(model: &KernelComponents) -> usize {
    let parts = model.parts();
    8 * model.n_points() * (parts.points.ncols() + parts.offset.len() + 1)
}

fn lines(saved: &SavedModel, model: &KernelComponents, report: &KernelReport) -> Vec<Line> {
    let mut lines = vec![Line::new("kernel", kernel(report)), Line::new("holds", holds(model, report))];
    if report.landmarks.is_some() {
        let share = match report.left_out {
            share if share > 0.0 && share < 1e-3 => format!("{} %", number(100.0 * share)),
            share => percent(share),
        };
        let share = format!("{share} of the trace of the centred kernel");
        lines.push(Line::new("landmarks leave out", share));
    }
    if let Some(filling) = report.filling_components {
        let text = format!("known by a Bayesian PCA of {}", count(filling, "component"));
        lines.push(Line::new("missing cells", text));
    }
    if saved.report.rows > 0 {
        lines.push(Line::new(components::NOISE, number(report.noise_variance)));
    }
    if let Some(negative) = report.negative {
        let text = format!(
            "the kernel is not positive semidefinite: its most negative eigenvalue is {}; components of \
             negative eigenvalue have no coordinates",
            number(negative)
        );
        lines.push(Line::new("indefinite", text));
    }
    lines
}

fn kernel(report: &KernelReport) -> String {
    let settings = [
        report.gamma.map(|gamma| format!("gamma {}", number(gamma))),
        report.degree.map(|degree| format!("degree {degree}")),
        report.coef0.map(|coef0| format!("coef0 {}", number(coef0))),
    ];
    let settings: Vec<String> = settings.into_iter().flatten().collect();
    match settings.is_empty() {
        true => report.kernel.clone(),
        false => format!("{}: {}", report.kernel, settings.join(", ")),
    }
}

fn holds(model: &KernelComponents, report: &KernelReport) -> String {
    let points = match report.landmarks {
        None => format!("all {}", count(report.points, "row")),
        Some(method) => {
            let how = match method {
                LandmarkMethod::Pivoted => "drawn by randomly pivoted Cholesky",
                LandmarkMethod::KMeans => "centres of clusters",
                LandmarkMethod::Given => "given",
            };
            let fewer = report.asked.filter(|asked| *asked > report.points);
            let fewer = fewer.map(|asked| format!(" of {asked} asked for: others would be copies"));
            format!("{} landmarks, {how}{}", report.points, fewer.unwrap_or_default())
        }
    };
    format!("{points} ({:.1} MB)", bytes(model) as f64 / 1e6)
}

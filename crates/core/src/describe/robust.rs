//! What is told of robust PPCA besides: how heavy the tails are, and how many rows lie far out.

use serde::Serialize;

use super::number::number;
use super::{Detail, Line, Part, PartFacts, components};
use crate::error::Result;
use crate::estimator::RobustReport;
use crate::model::LinearStudent;
use crate::persist::SavedModel;

/// The facts about a model of robust PPCA.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RobustFacts {
    degrees_of_freedom: Option<f64>, // nothing: infinite
    found: Option<bool>,
    low_weight_rows: Option<usize>,
    least_weight: Option<f64>,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let mut part = components::part(saved, detail)?;
    let Some(model) = saved.model.downcast_ref::<LinearStudent>() else { return Ok(part) };
    let report = saved.report.robust();
    part.facts = PartFacts { robust: Some(RobustFacts::new(model, report)), ..PartFacts::default() };
    part.lines.push(Line::new("degrees of freedom (ν)", tails(model.degrees_of_freedom(), report)));
    part.lines.extend(report.map(|report| Line::new("rows far out", far_out(report, saved.report.rows))));
    Ok(part)
}

impl RobustFacts {
    fn new(model: &LinearStudent, report: Option<&RobustReport>) -> Self {
        Self {
            degrees_of_freedom: Some(model.degrees_of_freedom()).filter(|nu| nu.is_finite()),
            found: report.map(|r| r.found),
            low_weight_rows: report.map(|r| r.low_rows),
            least_weight: report.map(|r| r.least_weight),
        }
    }
}

/// ν, and what it says.
fn tails(nu: f64, report: Option<&RobustReport>) -> String {
    let how = report.map_or("", |r| if r.found { ", found" } else { ", given" });
    match nu {
        nu if nu.is_infinite() => format!("infinite{how}: the normal distribution, all rows count alike"),
        nu if nu <= 2.0 => format!("{}{how}: tails so heavy that there is no covariance", number(nu)),
        nu => format!("{}{how}", number(nu)),
    }
}

fn far_out(report: &RobustReport, rows: usize) -> String {
    let least = number(report.least_weight);
    match report.low_rows {
        0 => format!("none has a weight below 1/2; the smallest is {least}"),
        n => format!("{n} of {rows} have a weight below 1/2; the smallest is {least}"),
    }
}

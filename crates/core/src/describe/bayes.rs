//! What is told of Bayesian PCA besides: its method, the precisions of the components, how well W and μ are
//! known.

use serde::Serialize;

use super::number::{number, numbers};
use super::{Detail, Line, Part, PartFacts, components, rows};
use crate::error::Result;
use crate::estimator::{BayesMethod, BayesReport};
use crate::model::Predictive;
use crate::persist::SavedModel;

/// The facts about a model of Bayesian PCA.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BayesFacts {
    method: Option<&'static str>,
    objective: Option<f64>,
    allowed: Option<usize>,
    precisions: Vec<f64>,
    loadings_std: Option<Vec<Vec<f64>>>,
    mean_std: Option<Vec<f64>>,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let Some(model) = saved.model.downcast_ref::<Predictive>() else {
        return components::part(saved, detail);
    };
    let report = saved.report.bayes();
    let precisions = ("precision (α)", numbers(model.precisions()));
    let mut part = components::with_columns(saved, detail, Some(precisions));
    part.facts = PartFacts { bayes: Some(BayesFacts::new(model, report)), ..PartFacts::default() };
    if let Some(report) = report {
        part.components = format!("{} kept of {} allowed", part.components, report.allowed);
        part.lines.extend(method_lines(report));
    }
    Ok(part)
}

impl BayesFacts {
    fn new(model: &Predictive, report: Option<&BayesReport>) -> Self {
        Self {
            method: report.map(|r| r.method.name()),
            objective: report.and_then(|r| r.objective).filter(|v| v.is_finite()),
            allowed: report.map(|r| r.allowed),
            precisions: model.precisions().to_vec(),
            loadings_std: model.uncertainty().map(|known| rows(known.loadings.as_ref())),
            mean_std: model.uncertainty().map(|known| known.mean.clone()),
        }
    }
}

/// The method and what it has reached.
fn method_lines(report: &BayesReport) -> [Line; 2] {
    let reached = match report.objective {
        Some(value) if value.is_finite() => number(value),
        Some(_) => "infinite: the rows lie in the plane of the components, without noise".into(),
        None => "not known, because the fit was interrupted".into(),
    };
    let (method, objective) = match report.method {
        BayesMethod::Variational => ("vb: variational Bayes", "bound on log evidence"),
        BayesMethod::Relevance => ("ard: automatic relevance determination", "log posterior of W"),
    };
    [Line::new("method", method), Line::new(objective, reached)]
}

//! What Bayesian PCA has to say, for people and for programs.

use covary::BayesMethod;
use covary::estimator::BayesReport;
use covary::model::Predictive;
use covary::persist::SavedModel;
use serde::Serialize;

use crate::factors::rows;
use crate::table::{number, numbers};

/// The facts about a model of Bayesian PCA; the keys are part of the command's contract.
#[derive(Debug, Serialize)]
pub(crate) struct BayesFacts {
    method: Option<&'static str>,
    objective: Option<f64>,
    allowed: Option<usize>,
    precisions: Vec<f64>,
    loadings_std: Option<Vec<Vec<f64>>>,
    mean_std: Option<Vec<f64>>,
    #[serde(skip)]
    report: Option<BayesReport>,
}

impl BayesFacts {
    /// Of a model of Bayesian PCA; `None` for other models.
    pub(crate) fn new(saved: &SavedModel) -> Option<Self> {
        let model: &Predictive = saved.model.downcast_ref()?;
        let report = saved.report.bayes().cloned();
        Some(Self {
            method: report.as_ref().map(|r| r.method.name()),
            objective: report.as_ref().and_then(|r| r.objective).filter(|v| v.is_finite()),
            allowed: report.as_ref().map(|r| r.allowed),
            precisions: model.precisions().to_vec(),
            loadings_std: model.uncertainty().map(|known| rows(known.loadings.as_ref())),
            mean_std: model.uncertainty().map(|known| known.mean.clone()),
            report,
        })
    }

    /// How many components are left of how many.
    pub(crate) fn kept(&self, components: usize) -> String {
        let of = self.allowed.map(|allowed| format!(" kept of {allowed} allowed"));
        format!("{components}{}", of.unwrap_or_default())
    }

    /// The method and what it has reached, as names and values.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let Some(BayesReport { method, objective, .. }) = &self.report else { return Vec::new() };
        let reached = match objective {
            Some(value) if value.is_finite() => number(*value),
            Some(_) => "infinite: the rows lie in the plane of the components, without noise".into(),
            None => "not known, because the fit was interrupted".into(),
        };
        match method {
            BayesMethod::Variational => {
                vec![("method", "vb: variational Bayes".into()), ("bound on log evidence", reached)]
            }
            BayesMethod::Relevance => {
                vec![
                    ("method", "ard: automatic relevance determination".into()),
                    ("log posterior of W", reached),
                ]
            }
        }
    }

    /// α of each component, for a column of a table.
    pub(crate) fn precisions(&self) -> Vec<String> {
        numbers(&self.precisions)
    }
}

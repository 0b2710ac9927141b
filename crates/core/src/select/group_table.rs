//! What comes out about groups: one line for each number of groups and of latent variables.

use serde::{Deserialize, Serialize};

use super::table::Absent;
use crate::estimator::{GrownMixture, MissingCells};

/// What a number of groups and of latent variables gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupLine {
    /// K.
    pub groups: usize,
    /// q of each group.
    pub latent: usize,
    /// Number of free parameters.
    pub parameters: usize,
    /// Log-likelihood of the rows.
    pub log_likelihood: f64,
    /// −2ℓ + parameters · ln n.
    pub bic: f64,
    /// −2ℓ + 2 · parameters.
    pub aic: f64,
    /// BIC and twice the entropy of the responsibilities.
    pub icl: f64,
    /// Mean log density of held-out rows, and its standard error over the folds.
    pub cross_validated: Option<f64>,
    /// Its standard error over the folds.
    pub cross_validated_error: Option<f64>,
    /// Q² of hidden cells, in units of each feature's deviation.
    pub q2: Option<f64>,
    /// Its standard error over the folds.
    pub q2_error: Option<f64>,
}

/// What a method chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChoice {
    /// Its name.
    pub method: String,
    /// K.
    pub groups: usize,
    /// q.
    pub latent: usize,
    /// What it goes by.
    pub reason: String,
}

/// The table, the choices and the recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSelection {
    /// Rows of positive weight.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// What is missing; `None` for complete rows.
    pub holes: Option<MissingCells>,
    /// In ascending number of parameters.
    pub table: Vec<GroupLine>,
    /// One per method.
    pub choices: Vec<GroupChoice>,
    /// Methods that choose nothing here.
    pub absent: Vec<Absent>,
    /// What to take.
    pub recommended: GroupChoice,
}

impl GroupLine {
    /// In words.
    pub(super) fn name(&self) -> String {
        format!("{} groups of {} latent variables", self.groups, self.latent)
    }

    pub(super) fn of(grown: &GrownMixture) -> Self {
        let reached = &grown.reached;
        Self {
            groups: reached.groups,
            latent: reached.latent,
            parameters: grown.parameters,
            log_likelihood: reached.log_likelihood,
            bic: reached.bic,
            aic: reached.aic,
            icl: reached.icl,
            cross_validated: None,
            cross_validated_error: None,
            q2: None,
            q2_error: None,
        }
    }
}

impl GroupChoice {
    pub(super) fn new(method: &str, line: &GroupLine, reason: String) -> Self {
        Self { method: method.into(), groups: line.groups, latent: line.latent, reason }
    }
}

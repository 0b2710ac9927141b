//! Units: what features are divided by before a fit, and the way back.

use serde::{Deserialize, Serialize};

use super::{Details, Fit, Report};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Moments, Range, Survey, gather};
use crate::model::{AnyModel, Model};

/// What each feature is divided by before a fit. Answers of the model are in the units of the data all the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Nothing.
    #[default]
    None,
    /// Its standard deviation (divisor n): features count alike, and components are those of the
    /// correlations.
    Unit,
    /// The square root of its standard deviation: between the two \[BHWSW06\].
    Pareto,
    /// Its range, largest minus smallest cell.
    Range,
}

impl Scale {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Unit, Self::Pareto, Self::Range];

    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unit => "unit",
            Self::Pareto => "pareto",
            Self::Range => "range",
        }
    }

    fn of_deviations(self, deviations: &[f64]) -> Vec<f64> {
        deviations.iter().map(|d| if self == Self::Pareto { d.sqrt() } else { *d }).collect()
    }

    /// What each feature is divided by, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Unit => "its standard deviation",
            Self::Pareto => "the square root of its standard deviation",
            Self::Range => "its range",
        }
    }
}

impl std::str::FromStr for Scale {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|scale| scale.name() == name).ok_or_else(|| Error::Parameter {
            name: "the scale",
            value: name.into(),
            allowed: "none, unit, pareto or range",
        })
    }
}

/// How features were divided before a fit, as reports have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// By what.
    pub scale: Scale,
    /// The numbers (p). Files hold them as an array.
    #[serde(skip)]
    pub factors: Vec<f64>,
}

/// Features that are divided for a fit.
pub(crate) struct Scaling {
    scale: Scale,
    factors: Vec<f64>, // d (p), above 0
    weights: Vec<f64>, // of the observed cells of each feature (p)
}

impl Scaling {
    /// For rows, in one pass; `None` when nothing is to be divided. A constant feature stays as it is.
    pub(crate) fn of_rows(scale: Scale, rows: &dyn RowSource, control: &Control<'_>) -> Result<Option<Self>> {
        if scale == Scale::None {
            return Ok(None);
        }
        let p = rows.n_features();
        let (_, margins) = gather(rows, || Survey::empty(p), control)?.finish()?;
        let deviations: Vec<f64> = margins.variance().iter().map(|v| v.sqrt()).collect();
        let factors = match scale {
            Scale::Range => gather(rows, || Range::empty(p), control)?.widths(),
            other => other.of_deviations(&deviations),
        };
        Self::new(scale, factors, margins.weight().to_vec()).map(Some)
    }

    /// For moments.
    pub(crate) fn of_moments(scale: Scale, moments: &Moments) -> Result<Option<Self>> {
        match scale {
            Scale::None => return Ok(None),
            Scale::Range => {
                let allowed = "none, unit or pareto: moments do not tell the range of a feature";
                return Err(Error::Parameter { name: "the scale", value: "range".into(), allowed });
            }
            Scale::Unit | Scale::Pareto => {}
        }
        let deviation = |j: usize| (moments.scatter_lower()[(j, j)] / moments.weight()).sqrt();
        let p = moments.n_features();
        let deviations: Vec<f64> = (0..p).map(deviation).collect();
        Self::new(scale, scale.of_deviations(&deviations), vec![moments.weight(); p]).map(Some)
    }

    fn new(scale: Scale, factors: Vec<f64>, weights: Vec<f64>) -> Result<Self> {
        let factors: Vec<f64> = factors.into_iter().map(|d| if d > 0.0 { d } else { 1.0 }).collect();
        match factors.iter().all(|d| d.is_finite()) {
            true => Ok(Self { scale, factors, weights }),
            false => Err(Error::Scale),
        }
    }

    /// What each feature was divided by (p).
    pub(crate) fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// A model of the data as a model of the divided features.
    pub(crate) fn divided(&self, model: &dyn Model) -> Result<AnyModel> {
        let inverse: Vec<f64> = self.factors.iter().map(|d| 1.0 / d).collect();
        model.rescaled(&inverse)
    }

    /// A fit of divided features in the units of the data. The density of x is that of x/d divided by Πd, for
    /// each cell that was observed.
    pub(crate) fn undone(&self, fit: Fit<AnyModel>) -> Result<Fit<AnyModel>> {
        let Fit { model, mut report } = fit;
        let shift: f64 = self.factors.iter().zip(&self.weights).map(|(d, w)| w * d.ln()).sum();
        report.log_likelihood = report.log_likelihood.map(|l| l - shift);
        match &mut report.details {
            Some(Details::Bayes(details)) => details.objective = details.objective.map(|l| l - shift),
            Some(Details::Mixture(details)) => details.shift(shift),
            Some(Details::Gplvm(details)) => details.objective -= shift,
            _ => {}
        }
        let model = model.rescaled(&self.factors)?;
        let scaled = Some(Scaled { scale: self.scale, factors: self.factors.clone() });
        Ok(Fit { model, report: Report { scaled, ..report } })
    }
}

//! What is told of factors: how they were turned, their loadings, how well they fit.

use serde::Serialize;

use super::loadings::{self, Loadings};
use super::number::{count, number};
use super::{Advice, Description, Detail, Facts, Line, Part, PartFacts, Table, Told, Words, rows};
use crate::assess::{Adequacy, FitIndices, Precision};
use crate::error::Result;
use crate::estimator::{FactorReport, Report, RotationReport, standard_errors_with};
use crate::linalg::Mat;
use crate::model::Factors;
use crate::persist::SavedModel;

/// The facts about factors.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FactorFacts {
    rotation: Option<RotationReport>,
    discrepancy: Option<f64>,
    dof: Option<i64>,
    correlation_log_likelihood: Option<f64>,
    gradient_norm: Option<f64>,
    starts: Option<usize>,
    agreeing: Option<usize>,
    lower: Option<f64>,
    heywood: Vec<String>,
    unused: usize,
    noise_variances: Vec<f64>,
    uniquenesses: Vec<f64>,
    communalities: Vec<f64>,
    complexities: Vec<f64>,
    standardised_loadings: Vec<Vec<f64>>,
    structure: Vec<Vec<f64>>,
    factor_correlation: Vec<Vec<f64>>,
    factor_variances: Vec<f64>,
    proportions: Vec<f64>,
    cumulative: Vec<f64>,
    fit: Option<FitIndices>,
    adequacy: Option<Adequacy>,
    standard_errors: Option<Precision>,
}

/// The facts about loadings that were turned.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RotatedFacts {
    feature_names: Vec<String>,
    loadings: Vec<Vec<f64>>,
    #[serde(flatten)]
    factors: FactorFacts,
}

pub(super) fn part(saved: &SavedModel, detail: &Detail<'_>) -> Result<Part> {
    let Some(model) = saved.model.downcast_ref::<Factors>() else {
        return super::components::part(saved, detail);
    };
    let mut facts = FactorFacts::new(model, &saved.report, &saved.features);
    if let Some(errors) = detail.errors {
        facts.standard_errors = Some(standard_errors_with(model, &saved.report, errors.control)?);
    }
    let mut tables = facts.tables(model, &saved.features, detail.cut);
    tables.extend(facts.assessment(&saved.report, &saved.features));
    Ok(Part {
        components: saved.report.components.to_string(),
        lines: facts.lines(),
        so_far: count(saved.report.trace.len(), "iteration"),
        last: Vec::new(),
        tables,
        facts: PartFacts { factors: Some(facts), ..PartFacts::default() },
    })
}

/// Describes loadings that were turned, or turned back, whatever the model. Standardised loadings below `cut`
/// are left blank.
///
/// # Errors
/// When the model has no loadings.
pub fn describe_rotated(saved: &SavedModel, cut: f64) -> Result<Description> {
    let model = saved.model.with_loadings()?.factors();
    let factors = FactorFacts::new(&model, &saved.report, &saved.features);
    let (lines, tables) = (factors.lines(), factors.tables(&model, &saved.features, cut));
    let (feature_names, loadings) = (saved.features.clone(), rows(model.pattern().as_ref()));
    let facts = Facts(Told::Rotated(Box::new(RotatedFacts { feature_names, loadings, factors })));
    Ok(Description { facts, lines, tables })
}

impl FactorFacts {
    fn new(model: &Factors, report: &Report, features: &[String]) -> Self {
        let rotation = report.rotation.clone();
        let report = report.factor();
        let told = |f: fn(&FactorReport) -> f64| report.map(f);
        let counted = |f: fn(&FactorReport) -> usize| report.map(f);
        let assessment = report.and_then(|r| r.assessment.as_ref());
        let heywood = report.map(|r| r.heywood.as_slice()).unwrap_or_default();
        let noise = model.gaussian().noise();
        let pattern = model.standardised_pattern();
        let factor_variances = model.factor_variances();
        let proportions: Vec<f64> = factor_variances.iter().map(|v| v / model.n_features() as f64).collect();
        Self {
            rotation,
            discrepancy: report.and_then(|r| r.discrepancy),
            dof: report.map(|r| r.dof),
            correlation_log_likelihood: told(|r| r.correlation_log_likelihood),
            gradient_norm: told(|r| r.gradient_norm),
            starts: counted(|r| r.starts),
            agreeing: counted(|r| r.agreeing),
            lower: told(|r| r.lower),
            heywood: heywood.iter().map(|&j| features[j].clone()).collect(),
            unused: report.map_or(0, |r| r.unused),
            noise_variances: (0..model.n_features()).map(|j| noise.of(j)).collect(),
            uniquenesses: model.uniquenesses(),
            communalities: model.communalities(),
            complexities: complexities(&pattern),
            standardised_loadings: rows(pattern.as_ref()),
            structure: rows(model.standardised_structure().as_ref()),
            factor_correlation: rows(model.correlation().as_ref()),
            cumulative: running_sum(&proportions),
            proportions,
            factor_variances,
            fit: assessment.map(|a| a.fit.clone()),
            adequacy: assessment.and_then(|a| a.adequacy.clone()),
            standard_errors: None,
        }
    }

    /// How the factors were found.
    fn lines(&self) -> Vec<Line> {
        let mut lines = vec![Line::new("rotation", self.rotation_in_words())];
        if let Some((starts, agreeing)) = self.starts.zip(self.agreeing).filter(|(starts, _)| *starts > 1) {
            lines.push(Line::new("starts", format!("{starts}, of which {agreeing} ended at this optimum")));
        }
        if !self.heywood.is_empty() {
            lines.push(Line::new("Heywood case", self.heywood_in_words()));
        }
        if self.unused > 0 {
            lines.push(Line::new("unused", self.unused_in_words()));
        }
        lines
    }

    fn rotation_in_words(&self) -> String {
        let Some(r) = &self.rotation else { return "none".into() };
        let parameter = r.parameter.map(|x| format!(" ({} {x})", parameter_name(&r.method)));
        let kaiser = if r.kaiser { ", Kaiser's normalisation" } else { "" };
        let starts = match (r.starts, r.converged) {
            (_, false) => "; it did not come to rest".into(),
            (0 | 1, _) => String::new(),
            (n, _) => format!("; {} of {n} starts agree", r.agreeing),
        };
        format!("{}{}{kaiser}{starts}", r.method, parameter.unwrap_or_default())
    }

    fn heywood_in_words(&self) -> String {
        let names: Vec<String> = self.heywood.iter().map(|name| format!("'{name}'")).collect();
        format!(
            "{} at the least uniqueness, {}: the factors explain all of it, which is rarely true; \
             ask for fewer factors, or leave a feature out that only repeats others",
            names.join(", "),
            self.lower.map(number).unwrap_or_default()
        )
    }

    fn unused_in_words(&self) -> Words {
        let q = self.factor_variances.len();
        let held = q - self.unused;
        Words::advised(
            format!("{} of {q} explain nothing: the data hold {}", self.unused, count(held, "factor")),
            Advice::Factors(held.max(1)),
        )
    }

    /// Loadings, what the factors explain, and their correlations.
    fn tables(&self, model: &Factors, features: &[String], cut: f64) -> Vec<Table> {
        let loadings = Loadings {
            features,
            pattern: &model.standardised_pattern(),
            errors: self.standard_errors.as_ref().map(|p| &p.standardised.loadings),
            communalities: &self.communalities,
            uniquenesses: &self.uniquenesses,
            complexities: &self.complexities,
            cut,
        };
        let explained = loadings::explained(&self.factor_variances, &self.proportions, &self.cumulative);
        let phi = &self.factor_correlation;
        let oblique = (0..phi.len()).any(|i| phi[i][..i].iter().any(|r| r.abs() > 1e-8));
        let correlations = oblique.then(|| loadings::correlations(phi));
        [loadings.table(), explained].into_iter().chain(correlations).collect()
    }

    /// How well the factors fit, and whether the correlations were worth it; nothing for numbers that were
    /// given.
    fn assessment(&self, report: &Report, features: &[String]) -> Option<Table> {
        report.factor()?;
        let mut all = match &self.fit {
            Some(fit) => fit_pairs(fit),
            None => vec![("fit indices", "none: no covariance of all features to compare with".into())],
        };
        all.extend(self.adequacy.iter().flat_map(|adequacy| adequacy_pairs(adequacy, features)));
        Some(Table::of_pairs(all))
    }
}

fn adequacy_pairs(adequacy: &Adequacy, features: &[String]) -> Vec<(&'static str, String)> {
    let lowest = adequacy.kmo.features.iter().zip(features).min_by(|a, b| a.0.total_cmp(b.0));
    let lowest = lowest.map(|(value, name)| format!(", lowest {value:.3} for '{name}'"));
    let kmo = format!("{:.3}{}", adequacy.kmo.overall, lowest.unwrap_or_default());
    let mut all = vec![("KMO", kmo)];
    if let Some(test) = &adequacy.sphericity {
        all.push(("Bartlett's sphericity", chi2(test.chi2, test.dof as i64, test.p_value)));
    }
    all
}

/// The indices that tables of factor analyses carry.
fn fit_pairs(fit: &FitIndices) -> Vec<(&'static str, String)> {
    let three = |x: Option<f64>| x.map(|x| format!("{x:.3}"));
    let rmsea = fit.rmsea.map(|x| match fit.rmsea_interval {
        Some((low, high)) => format!("{x:.3} (90 % interval {low:.3} to {high:.3})"),
        None => format!("{x:.3}"),
    });
    let test = match fit.chi2 {
        Some(value) => Some(chi2(value, fit.dof, fit.p_value)),
        None => Some("none: the sample's covariance is singular, or there are too few rows".into()),
    };
    let all = [
        ("χ²", test),
        ("RMSEA", rmsea),
        ("CFI", three(fit.cfi)),
        ("TLI", three(fit.tli)),
        ("SRMR", three(Some(fit.srmr))),
        ("AIC", fit.aic.map(number)),
        ("BIC", fit.bic.map(number)),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn chi2(value: f64, dof: i64, p: Option<f64>) -> String {
    let p = p.map(|p| match p {
        p if p < 1e-300 => ", p < 1e-300".into(),
        p if p < 1e-4 => format!(", p = {p:.2e}"),
        p => format!(", p = {p:.4}"),
    });
    format!("{value:.3} with {dof} degrees of freedom{}", p.unwrap_or_default())
}

fn parameter_name(method: &str) -> &'static str {
    match method {
        "promax" => "power",
        "oblimin" => "gamma",
        _ => "delta",
    }
}

/// Hofmann's index (Σλ²)²/Σλ⁴ of each feature: on how many factors it loads. 1 for a feature without
/// loadings.
fn complexities(pattern: &Mat<f64>) -> Vec<f64> {
    let sum = |j: usize, power: i32| pattern.row(j).iter().map(|x| x.powi(power)).sum::<f64>();
    let of = |j: usize| sum(j, 2).powi(2) / sum(j, 4);
    (0..pattern.nrows()).map(|j| Some(of(j)).filter(|x| x.is_finite()).unwrap_or(1.0)).collect()
}

fn running_sum(values: &[f64]) -> Vec<f64> {
    let add = |sum: &mut f64, v: &f64| {
        *sum += v;
        Some(*sum)
    };
    values.iter().scan(0.0, add).collect()
}

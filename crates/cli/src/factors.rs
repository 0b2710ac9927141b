//! What a model of factors is, for people as tables and for programs as JSON.

use covary::assess::{Adequacy, FitIndices, Precision};
use covary::estimator::{FactorReport, RotationReport};
use covary::linalg::{Mat, MatRef};
use covary::model::Factors;
use covary::persist::SavedModel;
use serde::Serialize;

use crate::args::CUT;
use crate::loadings::{self, Loadings};
use crate::phrase::count;
use crate::table::{number, pairs};

/// The facts about factors; the keys are part of the command's contract.
#[derive(Debug, Serialize)]
pub(crate) struct FactorFacts {
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
    #[serde(skip)]
    table: ForTable,
}

/// What tables need besides.
#[derive(Debug)]
struct ForTable {
    features: Vec<String>,
    pattern: Mat<f64>,
    fitted: bool,
    oblique: bool,
    cut: f64,
}

impl FactorFacts {
    /// Of a model of factors; `None` for other models.
    pub(crate) fn new(saved: &SavedModel) -> Option<Self> {
        let model: &Factors = saved.model.downcast_ref()?;
        let report = saved.report.factor();
        let told = |f: fn(&FactorReport) -> f64| report.map(f);
        let counted = |f: fn(&FactorReport) -> usize| report.map(f);
        let assessment = report.and_then(|r| r.assessment.as_ref());
        let heywood = report.map(|r| r.heywood.as_slice()).unwrap_or_default();
        let noise = model.gaussian().noise();
        let (pattern, correlation) = (model.standardised_pattern(), model.correlation());
        let factor_variances = model.factor_variances();
        let proportions: Vec<f64> = factor_variances.iter().map(|v| v / model.n_features() as f64).collect();
        Some(Self {
            rotation: saved.report.rotation.clone(),
            discrepancy: report.and_then(|r| r.discrepancy),
            dof: report.map(|r| r.dof),
            correlation_log_likelihood: told(|r| r.correlation_log_likelihood),
            gradient_norm: told(|r| r.gradient_norm),
            starts: counted(|r| r.starts),
            agreeing: counted(|r| r.agreeing),
            lower: told(|r| r.lower),
            heywood: heywood.iter().map(|&j| saved.features[j].clone()).collect(),
            unused: report.map_or(0, |r| r.unused),
            noise_variances: (0..model.n_features()).map(|j| noise.of(j)).collect(),
            uniquenesses: model.uniquenesses(),
            communalities: model.communalities(),
            complexities: complexities(&pattern),
            standardised_loadings: rows(pattern.as_ref()),
            structure: rows(model.standardised_structure().as_ref()),
            factor_correlation: rows(correlation.as_ref()),
            cumulative: running_sum(&proportions),
            proportions,
            factor_variances,
            fit: assessment.map(|a| a.fit.clone()),
            adequacy: assessment.and_then(|a| a.adequacy.clone()),
            standard_errors: None,
            table: ForTable::new(saved, model, pattern),
        })
    }

    /// The same with another limit for loadings that are shown.
    pub(crate) fn with_cut(mut self, cut: f64) -> Self {
        self.table.cut = cut;
        self
    }

    /// The same with standard errors.
    pub(crate) fn with_errors(mut self, precision: Precision) -> Self {
        self.standard_errors = Some(precision);
        self
    }

    /// How the factors were found, as names and values.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("rotation", self.rotation_in_words())];
        if let Some((starts, agreeing)) = self.starts.zip(self.agreeing).filter(|(starts, _)| *starts > 1) {
            pairs.push(("starts", format!("{starts}, of which {agreeing} ended at this optimum")));
        }
        if !self.heywood.is_empty() {
            pairs.push(("Heywood case", self.heywood_in_words()));
        }
        if self.unused > 0 {
            pairs.push(("unused", self.unused_in_words()));
        }
        pairs
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
            "{} at the least uniqueness, {}: the factors explain all of it, which is rarely true; ask for fewer factors, or leave a feature out that only repeats others",
            names.join(", "),
            self.lower.map(number).unwrap_or_default()
        )
    }

    fn unused_in_words(&self) -> String {
        let q = self.factor_variances.len();
        format!(
            "{} of {q} explain nothing: the data hold {}; ask for -q {}",
            self.unused,
            count(q - self.unused, "factor"),
            (q - self.unused).max(1)
        )
    }

    /// Loadings, what the factors explain, and their correlations.
    pub(crate) fn tables(&self) -> String {
        let table = Loadings {
            features: &self.table.features,
            pattern: &self.table.pattern,
            errors: self.standard_errors.as_ref().map(|p| &p.standardised.loadings),
            communalities: &self.communalities,
            uniquenesses: &self.uniquenesses,
            complexities: &self.complexities,
            cut: self.table.cut,
        };
        let explained = loadings::explained(&self.factor_variances, &self.proportions, &self.cumulative);
        let correlations = match self.table.oblique {
            true => format!("\n{}", loadings::correlations(&self.factor_correlation)),
            false => String::new(),
        };
        format!("{}\n{explained}{correlations}", table.text())
    }

    /// How well the factors fit, and whether the correlations were worth it.
    pub(crate) fn assessment(&self) -> String {
        let mut all = match &self.fit {
            Some(fit) => fit_pairs(fit),
            None if self.table.fitted => {
                vec![("fit indices", "none: no covariance of all features to compare with".into())]
            }
            None => return String::new(),
        };
        if let Some(adequacy) = &self.adequacy {
            all.extend(self.adequacy_pairs(adequacy));
        }
        format!("\n{}", pairs(&all))
    }

    fn adequacy_pairs(&self, adequacy: &Adequacy) -> Vec<(&'static str, String)> {
        let each = adequacy.kmo.features.iter().zip(&self.table.features);
        let lowest = each.min_by(|a, b| a.0.total_cmp(b.0));
        let lowest = lowest.map(|(value, name)| format!(", lowest {value:.3} for '{name}'"));
        let kmo = format!("{:.3}{}", adequacy.kmo.overall, lowest.unwrap_or_default());
        let mut all = vec![("KMO", kmo)];
        if let Some(test) = &adequacy.sphericity {
            all.push(("Bartlett's sphericity", chi2(test.chi2, test.dof as i64, test.p_value)));
        }
        all
    }
}

impl ForTable {
    fn new(saved: &SavedModel, model: &Factors, pattern: Mat<f64>) -> Self {
        let phi = model.correlation();
        let oblique = (0..phi.nrows()).any(|i| (0..i).any(|j| phi[(i, j)].abs() > 1e-8));
        let fitted = saved.report.factor().is_some();
        Self { features: saved.features.clone(), pattern, fitted, oblique, cut: CUT }
    }
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

/// Hofmann's index (Σλ²)²/Σλ⁴ of each feature: on how many factors it loads. 1 for a feature without loadings.
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

/// A matrix for JSON.
pub(crate) fn rows(matrix: MatRef<'_, f64>) -> Vec<Vec<f64>> {
    matrix.row_iter().map(|row| row.iter().copied().collect()).collect()
}

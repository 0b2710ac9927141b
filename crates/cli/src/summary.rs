//! What a model is, for people as a table and for programs as JSON.

use std::fmt::Write;

use covary::Scale;
use covary::algorithm::RedundantFeatures;
use covary::assess::{PpcaErrors, PpcaEstimate, PpcaIntervals};
use covary::estimator::{Holes, ppca_estimate};
use covary::model::LinearGaussian;
use covary::persist::SavedModel;
use serde::Serialize;

use crate::bayes::BayesFacts;
use crate::escape;
use crate::exit::{Failure, Result};
use crate::factors::FactorFacts;
use crate::phrase::count;
use crate::table::{bar, columns, level as percentage, number, numbers, pairs, percent};

/// Components that are listed one by one.
const LISTED: usize = 24;

/// The facts about a model that `fit` and `inspect` tell; the keys are part of the command's contract.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    model: &'static str,
    rows: usize,
    weight: f64,
    features: usize,
    components: usize,
    solver: &'static str,
    solver_reason: String,
    noise_variance: f64,
    noise_variance_unbiased: Option<f64>,
    noise_interval: Option<(f64, f64)>,
    log_likelihood: Option<f64>,
    #[serde(skip)]
    infinite: bool,
    scaled: Option<Scale>,
    total_variance: f64,
    eigenvalues: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
    holes: Option<HoleFacts>,
    redundant: Option<RedundantFacts>,
    pub(crate) factors: Option<FactorFacts>,
    bayes: Option<BayesFacts>,
    #[serde(flatten)]
    pub(crate) precision: Option<Precision>,
    converged: bool,
    stop: serde_json::Value,
    iterations: usize,
    passes: usize,
}

/// How sure the numbers of PPCA are.
#[derive(Debug, Serialize)]
pub(crate) struct Precision {
    pub(crate) standard_errors: PpcaErrors,
    pub(crate) intervals: PpcaIntervals,
}

/// What the rows lack.
#[derive(Debug, Serialize)]
struct HoleFacts {
    #[serde(flatten)]
    holes: Holes,
    share: f64,
}

/// Features that had no say in the number of components, by name.
#[derive(Debug, Serialize)]
struct RedundantFacts {
    constant: Vec<String>,
    repeated: Vec<(String, String)>,
    #[serde(skip)]
    text: String,
}

impl RedundantFacts {
    fn new(found: &RedundantFeatures, names: &[String]) -> Self {
        let name = |j: &usize| names.get(*j).cloned().unwrap_or_else(|| j.to_string());
        Self {
            constant: found.constant.iter().map(name).collect(),
            repeated: found.repeated.iter().map(|(j, k)| (name(j), name(k))).collect(),
            text: found.in_words(names),
        }
    }
}

impl HoleFacts {
    fn new(holes: &Holes) -> Self {
        Self { share: holes.share(), holes: holes.clone() }
    }

    fn text(&self) -> String {
        let Holes { missing, patterns, empty_rows, unseen_pairs, .. } = &self.holes;
        let patterns = patterns.map_or("very many patterns".into(), |n| count(n, "pattern"));
        let mut text = format!("{missing} cells ({}) in {patterns}", percent(self.share));
        if *empty_rows > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "; rows without any cell: {empty_rows}");
        }
        if let Some(pairs) = unseen_pairs.filter(|n| *n > 0) {
            let _ = write!(text, "; features never seen together: {}", count(pairs, "pair"));
        }
        text
    }
}

impl Facts {
    pub(crate) fn new(saved: &SavedModel) -> Result<Self> {
        let report = &saved.report;
        let eigenvalues = saved.eigenvalues[..saved.model.n_latent()].to_vec();
        let (noise_variance_unbiased, noise_interval) = noise_estimate(saved).unzip();
        Ok(Self {
            model: saved.model.kind().name,
            rows: report.rows,
            weight: report.weight,
            features: report.features,
            components: report.components,
            solver: report.plan.solver.name(),
            solver_reason: report.plan.reason.clone(),
            noise_variance: saved.model.with_loadings()?.noise().mean(),
            noise_variance_unbiased,
            noise_interval,
            log_likelihood: report.log_likelihood.filter(|v| v.is_finite()),
            infinite: report.log_likelihood.is_some_and(f64::is_infinite),
            scaled: report.scaled.as_ref().map(|scaled| scaled.scale),
            total_variance: report.total_variance,
            explained_variance_ratio: saved.explained_ratio(),
            eigenvalues,
            holes: report.holes.as_ref().map(HoleFacts::new),
            redundant: report.redundant.as_ref().map(|found| RedundantFacts::new(found, &saved.features)),
            factors: FactorFacts::new(saved),
            bayes: BayesFacts::new(saved),
            precision: None,
            converged: report.converged(),
            stop: serde_json::to_value(report.stop).unwrap_or_default(),
            iterations: report.trace.len(),
            passes: report.passes,
        })
    }

    /// How it went and what came out, as names and values.
    fn pairs(&self, because: &str) -> Vec<(&'static str, String)> {
        let weighted = self.weight != self.rows as f64;
        let weight = if weighted { format!(", total weight {}", number(self.weight)) } else { String::new() };
        let mut pairs = vec![
            ("model", self.model.into()),
            ("rows (n)", format!("{}{weight}", self.rows)),
            ("features (p)", self.features.to_string()),
            (self.axes(), format!("{}{because}", self.components_in_words())),
            ("solver", format!("{}: {}", self.solver, self.solver_reason)),
        ];
        match &self.factors {
            Some(factors) => pairs.extend(factors.pairs()),
            None => pairs.push(("noise variance (σ²)", self.noise_in_words())),
        }
        pairs.extend(self.bayes.iter().flat_map(BayesFacts::pairs));
        pairs.push(("log-likelihood", self.log_likelihood_in_words()));
        pairs.push(("total variance", number(self.total_variance)));
        if let Some(scale) = self.scaled {
            pairs.insert(3, ("scaled", format!("each feature divided by {} for the fit", scale.in_words())));
        }
        if let Some(redundant) = &self.redundant {
            pairs.insert(4, ("not used to choose q", redundant.text.clone()));
        }
        if let Some(holes) = &self.holes {
            pairs.insert(3, ("holes", holes.text()));
        }
        if self.iterations > 0 {
            pairs.push(("iterations", format!("{}{}", self.iterations, self.passes_in_words())));
        }
        if let Some(words) = self.unfinished() {
            pairs.push(("not converged", words));
        }
        pairs
    }

    fn components_in_words(&self) -> String {
        self.bayes.as_ref().map_or_else(|| self.components.to_string(), |bayes| bayes.kept(self.components))
    }

    /// σ² of the model and, with the interval that was asked for, the estimate that the interval belongs to.
    fn noise_in_words(&self) -> String {
        let asked = self.precision.as_ref().map(|p| (p.intervals.level, p.intervals.noise_variance));
        let (level, interval) = asked.unwrap_or((PpcaEstimate::LEVEL, self.noise_interval));
        let of_model = number(self.noise_variance);
        match self.noise_variance_unbiased.zip(interval) {
            None => of_model,
            Some((unbiased, (low, high))) => format!(
                "{of_model} by maximum likelihood; without its bias {} ({} interval {} to {})",
                number(unbiased),
                percentage(level),
                number(low),
                number(high)
            ),
        }
    }

    fn passes_in_words(&self) -> String {
        match self.passes {
            0 => String::new(),
            1 => " in one pass over the rows".into(),
            n => format!(" in {n} passes over the rows"),
        }
    }

    fn axes(&self) -> &'static str {
        if self.factors.is_some() { "factors (q)" } else { "components (q)" }
    }

    fn log_likelihood_in_words(&self) -> String {
        let of = if self.holes.is_some() { ", of the observed cells" } else { "" };
        match self.log_likelihood {
            Some(value) => format!("{} ({} per row{of})", number(value), number(value / self.weight)),
            None if self.infinite => {
                "infinite: the rows lie in the plane of the components, without noise".into()
            }
            None if self.interrupted() => "not known, because the fit was interrupted".into(),
            None => "not known".into(),
        }
    }

    /// What to say when the method did not end by itself.
    fn unfinished(&self) -> Option<String> {
        match self.converged {
            true => None,
            false if self.interrupted() => Some(format!("interrupted after {}", self.so_far())),
            false if self.stop.as_str() == Some("stalled") => {
                let so_far = self.so_far();
                Some(format!(
                    "stalled after {so_far}: no better point can be found; --tol says what is good enough"
                ))
            }
            false => Some(format!("stopped at the limit after {}; raise --max-iter or --tol", self.so_far())),
        }
    }

    fn interrupted(&self) -> bool {
        self.stop.as_str() == Some("interrupted")
    }

    fn so_far(&self) -> String {
        match self.factors {
            Some(_) => count(self.iterations, "iteration"),
            None => format!("{} passes", self.passes),
        }
    }

    /// One line for each component: variance, share, cumulative share, bar.
    fn components(&self) -> String {
        if self.components == 0 {
            return " no component is left: no direction stands out from noise\n".into();
        }
        let mut so_far = 0.0;
        let variances = numbers(&self.eigenvalues);
        let precisions = self.bayes.as_ref().map(BayesFacts::precisions).unwrap_or_default();
        let row = |(i, (variance, share)): (usize, (String, &f64))| {
            so_far += share;
            let alpha = precisions.get(i).cloned();
            let first = [format!("z{}", i + 1), variance].into_iter().chain(alpha);
            first.chain([percent(*share), percent(so_far), bar(*share)]).collect::<Vec<_>>()
        };
        let rows = variances.into_iter().zip(&self.explained_variance_ratio).enumerate().map(row);
        let alpha = self.bayes.is_some().then_some("precision (α)");
        let header: Vec<&str> =
            ["component", "variance"].into_iter().chain(alpha).chain(["share", "cumulative", ""]).collect();
        let mut text = columns(&header, rows.take(LISTED).collect::<Vec<_>>());
        if let Some(more) = self.components.checked_sub(LISTED).filter(|more| *more > 0) {
            let all: f64 = self.explained_variance_ratio.iter().sum();
            // Writing to a string cannot fail.
            let _ = writeln!(text, " … and {more} more, {} in all", percent(all));
        }
        text
    }

    /// The whole, for people.
    pub(crate) fn text(&self, because: Option<&str>, more: Vec<(&'static str, String)>) -> String {
        let mut all = self.pairs(&because.map(|words| format!(": {words}")).unwrap_or_default());
        all.extend(more);
        match &self.factors {
            Some(factors) => format!("{}\n{}{}", pairs(&all), factors.tables(), factors.assessment()),
            None => format!("{}\n{}", pairs(&all), self.components()),
        }
    }
}

/// σ² without bias and the interval around it, for PPCA of complete rows.
fn noise_estimate(saved: &SavedModel) -> Option<(f64, (f64, f64))> {
    let model: &LinearGaussian = saved.model.downcast_ref()?;
    let estimate = ppca_estimate(model, &saved.report).ok()?;
    estimate.unbiased_noise().zip(estimate.noise_interval(PpcaEstimate::LEVEL).ok().flatten())
}

/// JSON for programs, readable for people.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| escape::json(&text).into_owned() + "\n")
        .map_err(|error| Failure::file(format!("cannot write JSON: {error}")))
}

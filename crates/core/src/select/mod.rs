//! How many components: one table over q, what each method chooses, and a recommendation that says why.
//!
//! All numbers of components share one spectrum, so one pass over the rows decides everything: likelihoods and information criteria,
//! Minka's evidence, thresholds for noise, and cross-validation from the moments of each fold.

mod folds;
mod information;
pub(crate) mod minka;
mod parallel;
mod threshold;

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::data::{RowSource, RowStream, Rows};
use crate::error::{Error, Result};
use crate::evidence::{Moments, gather, gather_stream};
use crate::linalg::symmetric_eigen;
use crate::model::negligible;
use folds::Folds;
use information::Eigenvalues;

/// Parts that rows are dealt to unless told.
pub const FOLDS: usize = 10;
/// Features for which p × p decompositions of each fold are worth their time.
const MOST_FEATURES: usize = 2000;

/// What is asked: how far to look, and how carefully.
///
/// ```
/// use covary::data::Rows;
/// use covary::select::Select;
///
/// // Two directions of large variance among five features.
/// let cell = |i: usize, j: usize| {
///     let wave = |k: usize| ((i * (7 + 4 * k) + 3 * j * k) as f64 * 0.7).sin();
///     [4.0 * wave(0), 3.0 * wave(1)][j % 2] + 0.1 * ((i * 31 + j * 17) as f64).sin()
/// };
/// let cells: Vec<f64> = (0..200).flat_map(|i| (0..5).map(move |j| cell(i, j))).collect();
/// let selection = Select::new().run(Rows::from_slice(&cells, 5)?)?;
/// assert_eq!(selection.table.len(), 5); // q = 0 … 4
/// assert!(selection.recommended >= 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Select {
    max: Option<usize>,
    folds: usize,
    samples: usize,
    fraction: f64,
    seed: u64,
}

impl Default for Select {
    fn default() -> Self {
        Self::new()
    }
}

/// What each number of components gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// q.
    pub components: usize,
    /// λ of the last of them, divisor n; `None` for none.
    pub eigenvalue: Option<f64>,
    /// Share of the variance that they explain.
    pub explained: f64,
    /// Noise variance σ² that they leave.
    pub noise_variance: f64,
    /// Total log-likelihood of PPCA.
    pub log_likelihood: Option<f64>,
    /// −2ℓ + 2k.
    pub aic: Option<f64>,
    /// −2ℓ + k ln n, k = pq − q(q − 1)/2 + p + 1.
    pub bic: Option<f64>,
    /// ln of Minka's evidence up to a constant \[Min00\].
    pub log_evidence: Option<f64>,
    /// Mean log density of held-out rows.
    pub cross_validated: Option<f64>,
    /// Its standard error over the folds.
    pub cross_validated_error: Option<f64>,
    /// Eigenvalue of the correlations.
    pub correlation_eigenvalue: Option<f64>,
    /// What it must exceed to be more than noise.
    pub noise_eigenvalue: Option<f64>,
}

/// What a method chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its name.
    pub method: String,
    /// q.
    pub components: usize,
    /// What it goes by.
    pub reason: String,
}

/// The table, the choices and the recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Rows of positive weight.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// From no component to the largest number that leaves noise.
    pub table: Vec<Line>,
    /// One per method.
    pub choices: Vec<Choice>,
    /// The number to take; at least 1.
    pub recommended: usize,
    /// Why.
    pub reason: String,
}

impl Select {
    /// All numbers of components, ten folds, fifty samples of noise.
    pub fn new() -> Self {
        Self { max: None, folds: FOLDS, samples: 50, fraction: 0.9, seed: 0 }
    }

    /// The largest number of components to look at; all that leave noise by default.
    pub fn max(mut self, components: usize) -> Self {
        self.max = Some(components);
        self
    }

    /// Parts that rows are dealt to for cross-validation, at least 2; 10 by default.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// Samples of noise for parallel analysis; 50 by default.
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// Share of the variance for the choice that goes by it; 0.9 by default.
    pub fn fraction(mut self, fraction: f64) -> Self {
        self.fraction = fraction;
        self
    }

    /// Seed of the folds and of the samples of noise; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Looks at the rows once.
    ///
    /// # Errors
    /// When the options make no sense, rows have holes, or nothing varies.
    pub fn run<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Selection> {
        self.run_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`].
    pub fn run_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Selection> {
        let rows = rows.into();
        let source: &dyn RowSource = rows.source();
        self.check(source.n_features())?;
        let p = source.n_features();
        let folds = gather(source, || Folds::empty(p, self.folds, self.seed), control)?;
        self.tabulate(&folds.all()?, Some(&folds))
    }

    /// Rows that pass once.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with).
    pub fn run_stream(&self, stream: &mut dyn RowStream, control: &Control<'_>) -> Result<Selection> {
        let p = stream.n_features();
        self.check(p)?;
        let folds = gather_stream(stream, || Folds::empty(p, self.folds, self.seed), control)?;
        self.tabulate(&folds.all()?, Some(&folds))
    }

    /// From moments alone: everything but cross-validation.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_moments(&self, moments: &Moments) -> Result<Selection> {
        self.check(moments.n_features())?;
        self.tabulate(moments, None)
    }

    fn check(&self, p: usize) -> Result<()> {
        let bad = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        match (p, self.folds, self.samples) {
            (0, _, _) => Err(Error::NoFeatures),
            (1, _, _) => {
                bad("the number of features", p.to_string(), "at least 2: one leaves nothing to choose")
            }
            (p, _, _) if p > MOST_FEATURES => {
                bad("the number of features", p.to_string(), "at most 2000 to choose a number of components")
            }
            (_, 0 | 1, _) => bad("the number of folds", self.folds.to_string(), "at least 2"),
            (_, _, 0) => bad("the number of samples of noise", "0".into(), "at least 1"),
            _ if !(self.fraction > 0.0 && self.fraction < 1.0) => {
                bad("the share of the variance", self.fraction.to_string(), "above 0 and below 1")
            }
            _ => Ok(()),
        }
    }

    fn tabulate(&self, moments: &Moments, folds: Option<&Folds>) -> Result<Selection> {
        let found = Found::new(self, moments, folds)?;
        let table: Vec<Line> = (0..=found.max).map(|q| found.line(q)).collect();
        let choices = found.choices(self);
        let (recommended, reason) = recommend(&choices);
        Ok(Selection {
            rows: moments.rows(),
            features: moments.n_features(),
            table,
            choices,
            recommended,
            reason,
        })
    }
}

/// All that the table is made of.
struct Found {
    values: Eigenvalues,
    max: usize,
    tall: bool, // enough rows for the evidence
    held_out: Vec<Vec<f64>>,
    correlations: Vec<f64>,
    noise: Vec<f64>,
}

impl Found {
    fn new(select: &Select, moments: &Moments, folds: Option<&Folds>) -> Result<Self> {
        let (rows, p) = (moments.rows(), moments.n_features());
        if rows < 2 {
            return Err(if rows == 0 { Error::NoRows } else { Error::TooFewRows { rows, needed: 2 } });
        }
        let covariance = moments.covariance();
        let eigen = symmetric_eigen(covariance.as_ref())?;
        if eigen.values[0] <= 0.0 {
            return Err(Error::Constant);
        }
        let floor = negligible(rows, p, eigen.values[0]);
        let values = eigen.values.iter().map(|v| if *v > floor { *v } else { 0.0 }).collect();
        let values = Eigenvalues::new(values, moments.weight());
        // The last number that leaves noise.
        let possible = (values.rank().max(1) - 1).min(p - 1);
        let max = select.max.map_or(possible, |max| max.min(possible));
        let correlations = symmetric_eigen(parallel::correlations(covariance.as_ref()).as_ref())?.values;
        Ok(Self {
            tall: rows > p && values.rank() == p,
            held_out: folds.map_or(Ok(Vec::new()), |folds| folds.held_out(max))?,
            noise: parallel::thresholds(p, rows, select.samples, select.seed)?,
            values,
            max,
            correlations,
        })
    }

    fn line(&self, q: usize) -> Line {
        let last = |values: &[f64]| q.checked_sub(1).map(|k| values[k]);
        let finite = |x: f64| x.is_finite().then_some(x);
        let (mean, error) = self.cross_validated(q).unzip();
        Line {
            components: q,
            eigenvalue: last(self.values.values()),
            explained: self.values.explained(q),
            noise_variance: self.values.noise(q),
            log_likelihood: finite(self.values.log_likelihood(q)),
            aic: finite(self.values.aic(q)),
            bic: finite(self.values.bic(q)),
            log_evidence: self.log_evidence(q),
            cross_validated: mean,
            cross_validated_error: error,
            correlation_eigenvalue: last(&self.correlations),
            noise_eigenvalue: last(&self.noise),
        }
    }

    fn log_evidence(&self, q: usize) -> Option<f64> {
        (self.tall && q > 0).then(|| {
            minka::log_evidence(self.values.values(), self.values.values().len(), q, self.values.rows())
        })
    }

    /// Mean over the folds and its standard error.
    fn cross_validated(&self, q: usize) -> Option<(f64, f64)> {
        mean_and_error(self.held_out.iter().map(|fold| fold[q]))
    }

    /// The fewest components that do no worse than the best, by less than the standard error of the difference.
    fn cross_validation_choice(&self) -> Option<(usize, usize)> {
        let means: Option<Vec<f64>> =
            (0..=self.max).map(|q| self.cross_validated(q).map(|(m, _)| m)).collect();
        let means = means?;
        let best = (0..means.len()).max_by(|a, b| means[*a].total_cmp(&means[*b]))?;
        let close = |q: &usize| {
            let loss = self.held_out.iter().map(|fold| fold[best] - fold[*q]);
            mean_and_error(loss).is_some_and(|(loss, error)| loss <= error)
        };
        (0..=best).find(close).map(|q| (q, best))
    }

    fn choices(&self, select: &Select) -> Vec<Choice> {
        let choice = |method: &str, components: usize, reason: String| Choice {
            method: method.into(),
            components,
            reason,
        };
        let all = || 0..=self.max;
        let least = |of: &dyn Fn(usize) -> f64| all().min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(0);
        let share = all().find(|q| self.values.explained(*q) >= select.fraction).unwrap_or(self.max);
        let mut out = Vec::new();
        if let Some((q, best)) = self.cross_validation_choice() {
            let reason =
                format!("predicts held-out rows as well as {best}, the best, within a standard error");
            out.push(choice("cross-validation", q, reason));
        }
        out.push(choice("bic", least(&|q| self.values.bic(q)), "least −2ℓ + k ln n".into()));
        out.push(choice("aic", least(&|q| self.values.aic(q)), "least −2ℓ + 2k".into()));
        if self.tall {
            let evidence = |q: &usize| self.log_evidence(*q).unwrap_or(f64::NEG_INFINITY);
            let best = (1..=self.max).max_by(|a, b| evidence(a).total_cmp(&evidence(b)));
            out.extend(
                best.map(|q| choice("evidence", q, "largest evidence by Minka's approximation".into())),
            );
        }
        let parallel = parallel::dimension(&self.correlations, &self.noise);
        out.push(choice("parallel", parallel, "eigenvalues of correlations above those of noise".into()));
        let threshold = threshold::dimension(self.values.values(), self.values.rows());
        out.push(choice("threshold", threshold, "singular values above the optimal hard threshold".into()));
        let reason = format!("at least {} % of the variance", 100.0 * select.fraction);
        out.push(choice("variance", share, reason));
        out
    }
}

/// Mean and standard error; `None` for fewer than two numbers or one that is not finite.
fn mean_and_error(numbers: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let n = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    let variance = numbers.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (n > 1.0 && variance.is_finite()).then(|| (mean, (variance / n).sqrt()))
}

/// Held-out rows where there are some, else the information criterion that is consistent.
fn recommend(choices: &[Choice]) -> (usize, String) {
    let first = choices.iter().find(|c| c.method == "cross-validation" || c.method == "bic");
    first.map_or((1, String::new()), |c| (c.components.max(1), format!("{}: {}", c.method, c.reason)))
}

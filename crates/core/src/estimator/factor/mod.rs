//! Factor analysis by maximum likelihood: options, checked into a plan, run by an algorithm.

mod assess;
mod finish;
mod incomplete;
mod plan;
mod solve;
mod standard_errors;
mod starts;

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::family::no_warm_start;
use super::run::run_options;
use super::{Chooser, Family, Fit, Run, explained, with_threads};
use crate::algorithm::{Components, Limits, Search};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::model::{AnyModel, Factors, Kind, kind};
use crate::rotate::Rotate;
use finish::FactorSolution;
use plan::{FactorProblem, choose_factor};

pub use standard_errors::{standard_errors, standard_errors_with};

/// Norm of the gradient, or nats per row, at which a fit ends.
const TOLERANCE: f64 = 1e-8;

/// How the noise variances are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorSolver {
    /// Chosen by shape and memory.
    #[default]
    Auto,
    /// Newton's method on log ψ with whole decompositions of the p × p correlations: a few hundred features.
    Newton,
    /// Leading eigenvectors by block Krylov and limited-memory BFGS on log ψ: many features; no p × p matrix
    /// where there are rows.
    Krylov,
    /// Expectation and maximisation on the p × p covariance: simple and slow.
    Em,
}

/// Factor analysis by maximum likelihood: x = W z + μ + ε with a noise variance ψ for each feature.
///
/// Minimises the discrepancy $F = \ln|C| + \operatorname{tr}(SC^{-1}) - \ln|S| - p$ of $C = WW^\top + \Psi$
/// and the covariance S of the data (divisor n) over log ψ, the loadings being known in closed form for given
/// noise \[J67\]. The scale of features does not matter: a fit to correlations is the same fit. Rows with
/// missing values are fitted by maximum likelihood of their observed cells, known as FIML, starting from the
/// optimum for the correlations of the available cases.
///
/// ```
/// use covary::FactorAnalysis;
/// use covary::evidence::Moments;
/// use covary::linalg::Mat;
///
/// // Four tests and their correlations in a class of 30: one factor.
/// let r = [[1.0, 0.56, 0.48, 0.4], [0.56, 1.0, 0.42, 0.35], [0.48, 0.42, 1.0, 0.3], [0.4, 0.35, 0.3, 1.0]];
/// let r = Mat::from_fn(4, 4, |i, j| r[i][j]);
/// let fit = FactorAnalysis::new(1).fit_moments(&Moments::from_covariance(r.as_ref(), None, 30)?)?;
/// let expected = [0.8, 0.7, 0.6, 0.5];
/// assert!((0..4).all(|j| (fit.model.pattern()[(j, 0)] - expected[j]).abs() < 1e-6));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FactorAnalysis {
    components: Components,
    solver: FactorSolver,
    lower: Option<f64>,
    starts: Option<usize>,
    rotation: Option<Rotate>,
    undetermined: bool,
    run: Run,
}

impl FactorAnalysis {
    /// So many factors. No share of the variance says how many there are, because factors explain
    /// covariances.
    pub fn new(factors: impl Into<Components>) -> Self {
        Self {
            components: factors.into(),
            solver: FactorSolver::Auto,
            lower: None,
            starts: None,
            rotation: None,
            undetermined: false,
            run: Run::default(),
        }
    }

    /// How the optimum is found; chosen automatically by default.
    pub fn solver(mut self, solver: FactorSolver) -> Self {
        self.solver = solver;
        self
    }

    /// How the factors are turned; not at all by default. The loadings on the scale of correlations are
    /// turned, so that the unit of a feature does not matter.
    pub fn rotation(mut self, rotate: Rotate) -> Self {
        self.rotation = Some(rotate);
        self
    }

    /// Least uniqueness ψ/variance of a feature.
    ///
    /// By default 0.005, as R's factanal has it. At a maximum of the likelihood of regular data no more than
    /// q uniquenesses can vanish, so where more than q features end at the bound, it is the data that have
    /// less noise: it is then lowered, a hundredfold at a time.
    pub fn lower(mut self, lower: f64) -> Self {
        self.lower = Some(lower);
        self
    }

    /// Number of starts, of which the best is kept. By default one, and five where it ends at a bound or does
    /// not converge, except in passes over the rows. With missing values they are starts of the search on the
    /// available cases (five by default), and up to three different optima of that are gone on from.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = Some(starts);
        self
    }

    /// Whether any number of factors from none to p is fitted; by default, none and more than leave degrees
    /// of freedom are refused.
    ///
    /// Of too many there are more numbers than covariances to tell them from: the covariance of the model is
    /// a good one, but the loadings are some of many that give it.
    pub fn undetermined(mut self, allowed: bool) -> Self {
        self.undetermined = allowed;
        self
    }

    run_options! {
        /// When the fit ends; 1e-8 by default. Complete rows: norm of the gradient by log ψ. Rows with
        /// missing values: nats per row of log-likelihood that are left to gain, extrapolated.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<Factors>> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Fit<Factors>> {
        let rows = rows.into();
        let source = rows.source();
        with_threads(self.run.threads, || self.fit_source(source, control))
    }

    /// Fits moments: no rows are needed. They may come from rows, from parts merged, or from a covariance or
    /// correlation matrix ([`Moments::from_covariance`]).
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_moments(&self, moments: &Moments) -> Result<Fit<Factors>> {
        self.fit_moments_with(moments, &Control::new())
    }

    /// Fits moments under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_moments_with(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<Factors>> {
        let started = Instant::now();
        let factors = self.check(moments.n_features())?;
        let problem = FactorProblem::of_moments(moments.n_features(), factors);
        let plan = choose_factor(self.solver, &problem)?.plan;
        let solved = with_threads(self.run.threads, || self.solve_moments(plan, moments, control))?;
        self.finish(FactorSolution { passes: 0, ..solved }, started, control)
    }

    fn fit_source(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<Factors>> {
        let started = Instant::now();
        let p = source.n_features();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        let factors = self.check(p)?;
        control.check()?;
        if let Some(n) = source.n_rows() {
            Components::Count(factors).check_possible(n, p)?;
        }
        let problem = FactorProblem {
            rows: source.n_rows(),
            features: p,
            factors,
            in_memory: source.as_table().is_some(),
            memory: self.run.bytes(),
        };
        let choice = choose_factor(self.solver, &problem)?;
        choice.plan.check_memory()?;
        let solved = self.solve_any(choice, source, control).map_err(|e| explained(e, source, control))?;
        self.finish(solved, started, control)
    }

    /// The number of factors, when it was given.
    fn factors(&self) -> usize {
        self.components.count().unwrap_or(0)
    }

    /// The number of factors, unless something makes no sense whatever the data.
    fn check(&self, p: usize) -> Result<usize> {
        self.run.check()?;
        let Components::Count(q) = self.components else {
            let (name, value) = ("the number of factors", self.components.to_string());
            let allowed =
                "a whole number: factors explain covariances, so no share of the variance says how many";
            return Err(Error::Parameter { name, value, allowed });
        };
        if q == 0 && !self.undetermined {
            let (name, value) = ("the number of factors", "0".into());
            return Err(Error::Parameter { name, value, allowed: "at least 1" });
        }
        if q > most_factors(p) && !(self.undetermined && q <= p) {
            return Err(Error::Factors { requested: q, possible: most_factors(p), features: p });
        }
        if let Some(lower) = self.lower.filter(|l| !(*l > 0.0 && *l < 1.0)) {
            let (name, value) = ("the least uniqueness", lower.to_string());
            return Err(Error::Parameter { name, value, allowed: "above 0 and below 1" });
        }
        match self.starts {
            Some(0) => Err(Error::Parameter {
                name: "the number of starts",
                value: "0".into(),
                allowed: "at least 1",
            }),
            _ => Ok(q),
        }
    }

    fn limits(&self) -> Limits {
        Limits { tolerance: self.run.tolerance.unwrap_or(TOLERANCE), iterations: self.run.iterations() }
    }

    fn search(&self, lower: f64) -> Search {
        Search { factors: self.factors(), lower, limits: self.limits() }
    }
}

impl Family for FactorAnalysis {
    fn kind(&self) -> &'static Kind {
        &kind::FA
    }

    fn components(&self) -> Components {
        self.components
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        Arc::new(Self { components, ..self.clone() })
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, _: &AnyModel) -> Result<Arc<dyn Family>> {
        Err(no_warm_start(
            "one of ppca, pca or bpca; factor analysis starts from the data, from several places",
        ))
    }

    fn chooser(&self) -> Chooser {
        Chooser::ParallelAnalysis
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn fit_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_moments_with(moments, control)?.into())
    }
}

/// The most factors of p features that leave degrees of freedom: the largest q with ((p − q)² − (p + q))/2 ≥
/// 0.
pub fn most_factors(p: usize) -> usize {
    (0..p).take_while(|q| (p - q).pow(2) >= p + q).last().unwrap_or(0)
}

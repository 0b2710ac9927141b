//! Factor analysis by maximum likelihood: options, checked into a plan, run by an algorithm.

mod assess;
mod finish;
mod incomplete;
mod plan;
mod precision;
mod solve;
mod starts;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Report, explained, with_threads};
use crate::algorithm::{Components, Limits, Search};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::model::Factors;
use crate::rotate::Rotate;
use finish::Solved;
use plan::{FactorRequest, choose_factor};

pub use precision::{standard_errors, standard_errors_with};

/// How the noise variances are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorSolver {
    /// Chosen by shape and memory.
    #[default]
    Auto,
    /// Newton's method on log ψ with whole decompositions of the p × p correlations: a few hundred features.
    Newton,
    /// Leading eigenvectors by block Krylov and limited-memory BFGS on log ψ: many features; no p × p matrix where there are rows.
    Krylov,
    /// Expectation and maximisation on the p × p covariance: simple and slow.
    Em,
}

/// A fitted model of factors with its provenance.
#[derive(Debug, Clone)]
pub struct FactorFit {
    /// The model, on the scale of the data.
    pub model: Factors,
    /// How the fit went; `factor` has what is particular to factors.
    pub report: Report,
}

/// Factor analysis by maximum likelihood: x = W z + μ + ε with a noise variance ψ for each feature.
///
/// Minimises the discrepancy $F = \ln|C| + \operatorname{tr}(SC^{-1}) - \ln|S| - p$ of $C = WW^\top + \Psi$ and the covariance S of the data
/// (divisor n) over log ψ, the loadings being known in closed form for given noise \[J67\]. The scale of features does not matter:
/// a fit to correlations is the same fit. Rows with holes are fitted by maximum likelihood of their observed cells, known as FIML, starting
/// from the optimum for the correlations of the available cases.
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
    factors: usize,
    solver: FactorSolver,
    lower: Option<f64>,
    starts: Option<usize>,
    memory: usize,
    tolerance: f64,
    max_iterations: usize,
    seed: u64,
    rotation: Option<Rotate>,
    undetermined: bool,
    threads: Option<usize>,
}

impl FactorAnalysis {
    /// So many factors.
    pub fn new(factors: usize) -> Self {
        Self {
            factors,
            solver: FactorSolver::Auto,
            lower: None,
            starts: None,
            memory: usize::MAX,
            tolerance: 1e-8,
            max_iterations: 1000,
            seed: 0,
            rotation: None,
            undetermined: false,
            threads: None,
        }
    }

    /// How the optimum is found; chosen automatically by default.
    pub fn solver(mut self, solver: FactorSolver) -> Self {
        self.solver = solver;
        self
    }

    /// How the factors are turned; not at all by default. The loadings on the scale of correlations are turned, so that the unit of
    /// a feature does not matter.
    pub fn rotation(mut self, rotate: Rotate) -> Self {
        self.rotation = Some(rotate);
        self
    }

    /// Least uniqueness ψ/variance of a feature.
    ///
    /// By default 0.005, as R's factanal has it. At a maximum of the likelihood of regular data no more than q uniquenesses can vanish,
    /// so where more than q features end at the bound, it is the data that have less noise: it is then lowered, a hundredfold at a time.
    pub fn lower(mut self, lower: f64) -> Self {
        self.lower = Some(lower);
        self
    }

    /// Number of starts, of which the best is kept. By default one, and five where it ends at a bound or does not converge, except
    /// in passes over the rows. With holes they are starts of the search on the available cases (five by default), and up to three
    /// different optima of that are gone on from.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = Some(starts);
        self
    }

    /// Bytes that the fit may hold besides rows that are in memory already; no limit by default.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// When the fit ends; 1e-8 by default. Complete rows: norm of the gradient by log ψ. Rows with holes: nats per row of log-likelihood
    /// that are left to gain, extrapolated.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Limit on the iterations from each start.
    pub fn max_iterations(mut self, limit: usize) -> Self {
        self.max_iterations = limit;
        self
    }

    /// Seed of the starts after the first; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Whether any number of factors from none to p is fitted; by default, none and more than leave degrees of freedom are refused.
    ///
    /// Of too many there are more numbers than covariances to tell them from: the covariance of the model is a good one, but the loadings are some of
    /// many that give it.
    pub fn undetermined(mut self, allowed: bool) -> Self {
        self.undetermined = allowed;
        self
    }

    /// Number of threads; all cores by default. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<FactorFit> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<FactorFit> {
        let rows = rows.into();
        let source = rows.source();
        with_threads(self.threads, || self.run(source, control))
    }

    /// Fits moments: no rows are needed. They may come from rows, from parts merged, or from a covariance or correlation matrix
    /// ([`Moments::from_covariance`]).
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_moments(&self, moments: &Moments) -> Result<FactorFit> {
        self.fit_moments_with(moments, &Control::new())
    }

    /// Fits moments under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_moments_with(&self, moments: &Moments, control: &Control<'_>) -> Result<FactorFit> {
        let started = Instant::now();
        self.check(moments.n_features())?;
        let plan =
            choose_factor(self.solver, &FactorRequest::of_moments(moments.n_features(), self.factors))?.plan;
        let solved = with_threads(self.threads, || self.solve_moments(plan, moments, control))?;
        self.finish(Solved { passes: 0, ..solved }, started, control)
    }

    fn run(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<FactorFit> {
        let started = Instant::now();
        let p = source.n_features();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        self.check(p)?;
        control.check()?;
        if let Some(n) = source.n_rows() {
            Components::Count(self.factors).check_possible(n, p)?;
        }
        let request = FactorRequest {
            rows: source.n_rows(),
            features: p,
            factors: self.factors,
            in_memory: source.as_table().is_some(),
            memory: self.memory,
        };
        let choice = choose_factor(self.solver, &request)?;
        choice.plan.check_memory()?;
        let solved = self.solve_any(choice, source, control).map_err(|e| explained(e, source, control))?;
        self.finish(solved, started, control)
    }

    /// What makes no sense whatever the data.
    fn check(&self, p: usize) -> Result<()> {
        let q = self.factors;
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
        self.limits().check()?;
        match self.starts {
            Some(0) => Err(Error::Parameter {
                name: "the number of starts",
                value: "0".into(),
                allowed: "at least 1",
            }),
            _ => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        Limits { tolerance: self.tolerance, iterations: self.max_iterations }
    }

    fn search(&self, lower: f64) -> Search {
        Search { factors: self.factors, lower, limits: self.limits() }
    }
}

/// The most factors of p features that leave degrees of freedom: the largest q with ((p − q)² − (p + q))/2 ≥ 0.
pub fn most_factors(p: usize) -> usize {
    (0..p).take_while(|q| (p - q).pow(2) >= p + q).last().unwrap_or(0)
}

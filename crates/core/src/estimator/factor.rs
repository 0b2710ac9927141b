//! Factor analysis by maximum likelihood: options, checked into a plan, run by an algorithm.

use serde::{Deserialize, Serialize};

use super::Report;
use crate::control::Control;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::model::Factors;

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
#[derive(Debug, Clone)]
pub struct FactorAnalysis {
    factors: usize,
    solver: FactorSolver,
    lower: f64,
    starts: Option<usize>,
    memory: usize,
    tolerance: f64,
    max_iterations: usize,
    seed: u64,
    threads: Option<usize>,
}

impl FactorAnalysis {
    /// So many factors.
    pub fn new(factors: usize) -> Self {
        Self {
            factors,
            solver: FactorSolver::Auto,
            lower: 0.005,
            starts: None,
            memory: usize::MAX,
            tolerance: 1e-8,
            max_iterations: 1000,
            seed: 0,
            threads: None,
        }
    }

    /// How the optimum is found; chosen automatically by default.
    pub fn solver(mut self, solver: FactorSolver) -> Self {
        self.solver = solver;
        self
    }

    /// Least uniqueness ψ/variance of a feature; 0.005 by default.
    pub fn lower(mut self, lower: f64) -> Self {
        self.lower = lower;
        self
    }

    /// Number of starts, of which the best is kept; by default one, and more when it ends at a bound.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = Some(starts);
        self
    }

    /// Bytes that the fit may hold besides rows that are in memory already; no limit by default.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Norm of the gradient at which the fit ends; 1e-8 by default.
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
        let _ = (rows.into(), control, self.threads);
        Err(Error::Solver { solver: "factor analysis", reason: "not yet".into() })
    }

    /// Fits moments: no rows are needed.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_moments(&self, moments: &Moments) -> Result<FactorFit> {
        let _ = moments;
        Err(Error::Solver { solver: "factor analysis", reason: "not yet".into() })
    }
}

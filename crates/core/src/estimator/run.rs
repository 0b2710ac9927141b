//! How a fit is to run: what every family understands, checked once.

use crate::algorithm::Limits;
use crate::error::{Error, Result};

/// Limit on the iterations when nobody gives one.
const MAX_ITERATIONS: usize = 1000;

/// Seed, limits and resources of a fit. What is not given has the family's default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Run {
    /// Seed of random starts; 0 by default.
    pub seed: u64,
    /// When an iteration has converged; each family says what it measures.
    pub tolerance: Option<f64>,
    /// Limit on its iterations; 1000 by default.
    pub max_iterations: Option<usize>,
    /// Bytes that the fit may hold besides rows that are in memory already; no limit by default.
    pub memory: Option<usize>,
    /// Number of threads; all cores by default. The result does not depend on it.
    pub threads: Option<usize>,
}

impl Run {
    /// What makes no sense whatever the family.
    pub(crate) fn check(&self) -> Result<()> {
        Limits { tolerance: self.tolerance.unwrap_or(1.0), iterations: self.iterations() }.check()?;
        match self.threads {
            Some(0) => {
                let (name, value) = ("the number of threads", "0".into());
                Err(Error::Parameter { name, value, allowed: "at least 1" })
            }
            _ => Ok(()),
        }
    }

    /// The limit on the iterations.
    pub(crate) fn iterations(&self) -> usize {
        self.max_iterations.unwrap_or(MAX_ITERATIONS)
    }

    /// The limit on memory.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.unwrap_or(usize::MAX)
    }
}

/// Consuming setters for the fields of `run`; `tolerance` says what the family measures.
macro_rules! run_options {
    ($(#[$tolerance:meta])*) => {
        /// All at once.
        pub fn run(mut self, run: $crate::estimator::Run) -> Self {
            self.run = run;
            self
        }

        /// Bytes that the fit may hold besides rows that are in memory already; no limit by default.
        pub fn memory(mut self, bytes: usize) -> Self {
            self.run.memory = Some(bytes);
            self
        }

        $(#[$tolerance])*
        pub fn tolerance(mut self, tolerance: f64) -> Self {
            self.run.tolerance = Some(tolerance);
            self
        }

        /// Limit on the iterations, from each start and of each stage; 1000 by default.
        pub fn max_iterations(mut self, limit: usize) -> Self {
            self.run.max_iterations = Some(limit);
            self
        }

        /// Seed of random starts; 0 by default.
        pub fn seed(mut self, seed: u64) -> Self {
            self.run.seed = seed;
            self
        }

        /// Number of threads; all cores by default. The result does not depend on it.
        pub fn threads(mut self, threads: usize) -> Self {
            self.run.threads = Some(threads);
            self
        }
    };
}
pub(super) use run_options;

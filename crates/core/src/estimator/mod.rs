//! The front doors: options, checked into a plan, run by an algorithm, giving a model and a report.

mod bayesian;
mod factor;
mod growth;
mod incomplete;
mod online;
mod plan;
mod precision;
mod report;
mod spectral;
mod turn;

pub use bayesian::{BayesMethod, BayesReport, BayesianPca};
pub use factor::{FactorAnalysis, FactorFit, FactorSolver, most_factors, standard_errors};
pub(crate) use growth::{Grown, Growth, Outlook};
pub use online::{Batch, Online, Tally};
pub use plan::{Plan, Request, Solver, choose};
pub use precision::ppca_estimate;
pub use report::{FactorReport, Fit, Holes, Report, RotationReport};
pub use spectral::{FromSpectrum, Pca, Ppca, Spectral};
pub use turn::turned;

use crate::error::{Error, Result};

/// Runs on so many threads.
pub(crate) fn with_threads<T: Send>(
    threads: Option<usize>,
    run: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let Some(threads) = threads else { return run() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::Parameter {
        name: "the number of threads",
        value: format!("{threads} ({e})"),
        allowed: "what the system can start",
    })?;
    pool.install(run)
}

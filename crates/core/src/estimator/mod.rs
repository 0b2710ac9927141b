//! The front doors: options, checked into a plan, run by an algorithm, giving a model and a report.

mod factor;
mod incomplete;
mod online;
mod plan;
mod report;
mod spectral;

pub use factor::{FactorAnalysis, FactorFit, FactorSolver};
pub use online::{Batch, Online, Tally};
pub use plan::{Plan, Request, Solver, choose};
pub use report::{FactorReport, Fit, Holes, Report};
pub use spectral::{FromSpectrum, Pca, Ppca, Spectral};

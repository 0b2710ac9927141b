//! The front doors: options, checked into a plan, run by an algorithm, giving a model and a report.

mod factor;
mod factor_incomplete;
mod factor_plan;
mod incomplete;
mod plan;
mod report;
mod spectral;

pub use factor::{FactorAnalysis, FactorFit, FactorSolver};
pub use plan::{Plan, Request, Solver, choose};
pub use report::{FactorReport, Fit, Holes, Report, RotationReport};
pub use spectral::{FromSpectrum, Pca, Ppca, Spectral};

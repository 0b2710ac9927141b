//! The front doors: options, checked into a plan, run by an algorithm, giving a model and a report.

mod autoencoder;
mod bayesian;
mod factor;
mod family;
mod gplvm;
mod groups;
mod growth;
mod ica;
mod incomplete;
mod infinite;
mod kernel_pca;
mod kmeans;
mod mixture;
mod online;
mod online_fit;
mod plan;
mod report;
mod robust;
mod run;
mod scale;
mod shares;
mod spectral;
mod standard_errors;
mod turn;

pub use autoencoder::{Activation, Autoencoder, NetworkReport};
pub use bayesian::{BayesMethod, BayesReport, BayesianPca};
pub use factor::{FactorAnalysis, FactorSolver, most_factors, standard_errors, standard_errors_with};
pub use family::{Chooser, Family};
pub use gplvm::{Gplvm, GplvmMethod, GplvmReport};
pub use groups::Groups;
pub(crate) use growth::{Grown, Growth, IncompleteSummary};
pub(crate) use ica::Whitening;
pub use ica::{Ica, IcaMethod, IcaReport};
pub(crate) use kernel_pca::RowsToChoose;
pub use kernel_pca::{KernelPca, KernelReport, LandmarkMethod, Landmarks};
pub use kmeans::{ClusterReport, KMeans, KTable, KTableRow};
pub(crate) use mixture::{GrownMixture, rows_to_choose, sample};
pub use mixture::{MixturePpca, MixtureReport, NumberOfGroups, VariationalReport};
pub use online::{Batch, BatchCounts, Online};
pub use online_fit::{KeptEvidence, OnlineFit};
pub use plan::{Plan, Problem, Solver, choose};
pub use report::{Details, FactorReport, Fit, MissingCells, Report, RotationReport};
pub(crate) use robust::StudentWeights;
pub use robust::{DegreesOfFreedom, RobustPpca, RobustReport};
pub use run::Run;
pub(crate) use scale::Scaling;
pub use scale::{Scale, Scaled};
pub use spectral::{Completion, FromSpectrum, Pca, Ppca, Spectral, SpectralModel};
pub use standard_errors::ppca_estimate;
pub use turn::{turned, turned_with};

use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Range, gather};

/// The error of a fit with the names of features; what was called constant but varies is too small to be
/// squared.
pub(crate) fn explained(error: Error, source: &dyn RowSource, control: &Control<'_>) -> Error {
    let p = source.n_features();
    let suspects: Vec<usize> = match &error {
        Error::Constant => (0..p).collect(),
        Error::ConstantFeatures { features } => features.iter().map(|(j, _)| *j).collect(),
        _ => return error.named(source.feature_names()),
    };
    match gather(source, || Range::empty(p), control) {
        Ok(range) if suspects.iter().any(|j| range.varies(*j)) => Error::Scale,
        _ => error.named(source.feature_names()),
    }
}

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

//! How well a factor model fits, how sure its numbers and those of PPCA are, and whether the data are worth
//! one.
//!
//! Everything here takes plain numbers (a covariance or correlation matrix, the number of rows, loadings,
//! factor correlations and uniquenesses) and knows nothing of rows or of how a model was found.

mod adequacy;
mod correlation;
mod derivative;
mod identification;
mod indices;
mod information;
mod noncentral;
mod parameters;
mod principal;
mod quantile;
mod rotation;
mod serde_rows;
mod standard_errors;

use serde::{Deserialize, Serialize};

pub use adequacy::{Adequacy, Chi2Test, Kmo, kmo, smc, sphericity};
pub use identification::{Gradient, Identification, RowScale};
pub use indices::{FitIndices, Likelihoods};
pub use parameters::FactorModel;
pub use principal::{PpcaErrors, PpcaEstimate, PpcaIntervals};
pub use rotation::Rotation;
pub use standard_errors::{
    MOST_PARAMETERS, Precision, SecondStep, StandardErrors, standard_errors, standard_errors_after,
    standard_errors_after_with, standard_errors_with,
};

/// What a report of a factor analysis holds beside the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// How well the model fits.
    pub fit: FitIndices,
    /// Whether the correlations were worth it; `None` when their matrix is singular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adequacy: Option<Adequacy>,
    /// Standard errors; `None` when they were not asked for or cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

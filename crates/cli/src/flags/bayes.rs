//! The flags of Bayesian methods.

use clap::{Args, ValueEnum};
use covary::BayesMethod;

/// What only Bayesian PCA and mixtures have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bayesian PCA and mixtures")]
pub(crate) struct Bayes {
    /// How components that the data do not support are driven out [default of bpca: vb; of a mixture: nothing
    /// is driven out, and -k and -q are what it has]
    #[arg(long, value_name = "METHOD", value_enum)]
    pub(crate) method: Option<Method>,
}

/// How the precisions of the components are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Variational Bayes: a distribution of the loadings and the mean, by the highest bound on the evidence
    Vb,
    /// Automatic relevance determination: the most probable loadings
    Ard,
}

impl From<Method> for BayesMethod {
    fn from(method: Method) -> Self {
        match method {
            Method::Vb => Self::Variational,
            Method::Ard => Self::Relevance,
        }
    }
}

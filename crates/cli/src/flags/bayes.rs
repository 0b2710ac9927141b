//! The flags of methods of which a kind of model has several.

use clap::{Args, ValueEnum};
use covary::BayesMethod;

/// What only Bayesian PCA, mixtures, independent components and GP-LVMs have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bayesian PCA, mixtures, independent components and GP-LVMs")]
pub(crate) struct Bayes {
    /// How components that the data do not support are driven out [default of bpca: vb; of a mixture: nothing
    /// is driven out, and -k and -q are what it has]. How sources are found [default of ica: picard], or latent positions [default of gplvm: bayes]
    #[arg(long, value_name = "METHOD", value_enum)]
    pub(crate) method: Option<Method>,
    /// Of independent components: mix rows from sources exactly, without PPCA's noise
    #[arg(long)]
    pub(crate) no_noise: bool,
    /// Of --method fastica: what measures how far from normal a source is [default: logcosh]
    #[arg(long, value_name = "FUNCTION", value_enum)]
    pub(crate) contrast: Option<ContrastName>,
    /// Of --method fastica: find sources one after the other instead of all at once
    #[arg(long)]
    pub(crate) deflation: bool,
}

/// A contrast function by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContrastName {
    /// log cosh y: good for most sources
    Logcosh,
    /// -exp(-y²/2): for sources of very heavy tails
    Exp,
    /// y⁴/4: kurtosis, which outliers disturb
    Cube,
}

/// How precisions of components, or sources, are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// Variational Bayes: a distribution of the loadings and the mean, by the highest bound on the evidence
    Vb,
    /// Automatic relevance determination: the most probable loadings
    Ard,
    /// Uncorrelated sources of largest likelihood
    Picard,
    /// Sources of largest likelihood, which may be correlated
    Infomax,
    /// Fixed points of a contrast function, log cosh unless --contrast says another
    Fastica,
    /// A distribution of each latent position, by a bound on the evidence: of gplvm
    Bayes,
    /// The most probable latent positions, of at most 2000 rows: of gplvm
    Map,
}

impl Method {
    /// The method of Bayesian PCA, if it is one.
    pub(crate) fn bayesian(self) -> Option<BayesMethod> {
        match self {
            Self::Vb => Some(BayesMethod::Variational),
            Self::Ard => Some(BayesMethod::Relevance),
            Self::Picard | Self::Infomax | Self::Fastica | Self::Bayes | Self::Map => None,
        }
    }
}

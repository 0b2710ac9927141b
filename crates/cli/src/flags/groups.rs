//! The flags of models that put rows into groups.

use clap::{Args, ValueEnum};
use covary::estimator::Groups as Wanted;

use super::{Question, TRIPLES_HELP};
use crate::args;
use covary_io::TripleColumns;

/// What only models with groups have.
#[derive(Debug, Args)]
#[command(next_help_heading = "Groups")]
pub(crate) struct Groups {
    /// Number of clusters, or of components of a mixture: a number (3), or a range (2-8) or auto (1-10) of
    /// which the best is taken
    #[arg(short = 'k', long = "groups", value_name = "K|A-B|auto", value_parser = args::groups)]
    pub(crate) groups: Option<Wanted>,
    /// Of a mixture: noise of the same variance in every feature (PPCA), or of one for each (factor
    /// analysers) [default: isotropic]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) noise: Option<Noise>,
    /// Of a mixture: the noise is the same in all components
    #[arg(long)]
    pub(crate) shared_noise: bool,
    /// Of a mixture: how many rows the prior counts as that keeps components from shrinking onto a few rows;
    /// none for maximum likelihood alone [default: 1]
    #[arg(long, value_name = "N|none", value_parser = args::prior_rows)]
    pub(crate) prior: Option<PriorRows>,
    /// How k-means draws its first centres [default: k-means++]
    #[arg(long, value_name = "HOW")]
    pub(crate) init: Option<Init>,
    /// Leave k-means where Lloyd's method ends, without the swaps of centres that nearly always lead to a better
    /// end
    #[arg(long)]
    pub(crate) no_polish: bool,
}

/// How first centres are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Init {
    /// Rows far from each other: greedy k-means++
    #[value(name = "k-means++")]
    PlusPlus,
    /// Any rows
    Random,
}

impl From<Init> for covary::Seeding {
    fn from(init: Init) -> Self {
        match init {
            Init::PlusPlus => Self::PlusPlus,
            Init::Random => Self::Random,
        }
    }
}

/// The noise of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Noise {
    /// The same variance in every feature: components of PPCA
    Isotropic,
    /// A variance for each feature: factor analysers
    Diagonal,
}

/// How many rows the prior counts as; `None` for no prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PriorRows(pub(crate) Option<f64>);

/// The cluster or mixture component of each row
///
/// One row out for each row in, with the column group, counted from 1 in the order in which the model lists
/// its groups: the largest first. Of a row with missing values the observed cells decide; a row without any
/// belongs to the largest group.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary assign flowers.covary iris.csv --id species > groups.csv
  covary assign flowers.covary new.parquet --probabilities -o groups.parquet")]
pub(crate) struct Assign {
    #[command(flatten)]
    pub(crate) question: Question,
    /// Add the probability of each group, as columns p1, p2, …
    #[arg(long)]
    pub(crate) probabilities: bool,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
}

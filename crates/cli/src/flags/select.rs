//! The flags of `covary select`.

use std::path::PathBuf;

use clap::Args;

use super::{Columns, DATA_HELP, Running};
use crate::args;

/// How many components: what each method would take, and a recommendation
///
/// One pass over complete rows gives a table over the number of components: variance explained, information criteria,
/// Minka's evidence, the likelihood of held-out rows, and what pure noise would show. Moments will do too, without
/// held-out rows.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary select wine.csv
  covary select wine.csv --max 6 --json
  covary select week.moments

Keys of --json: data, rows, features, recommended, reason, choices (method, components, reason), table (components,
eigenvalue, explained, noise_variance, log_likelihood, aic, bic, log_evidence, cross_validated, cross_validated_error,
correlation_eigenvalue, noise_eigenvalue; null where a method says nothing).")]
pub(crate) struct Select {
    #[arg(help = DATA_HELP)]
    pub(crate) data: PathBuf,
    /// Largest number of components to look at [default: all that leave noise]
    #[arg(long, value_name = "Q", value_parser = args::positive)]
    pub(crate) max: Option<usize>,
    /// Parts that rows are dealt to: each is predicted from the others [default: 10]
    #[arg(long, value_name = "K", value_parser = args::positive)]
    pub(crate) folds: Option<usize>,
    /// Seed of the folds and of the samples of noise
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = "Running")]
    pub(crate) seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Column that holds a weight for each row
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) weights: Option<String>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Most memory to use, such as 512M or 4G [default: 60 % of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = args::memory, help_heading = "Running")]
    pub(crate) memory: Option<usize>,
    #[command(flatten)]
    pub(crate) running: Running,
}

//! The flags of `covary select`.

use clap::Args;

use super::Pass;
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
    #[command(flatten)]
    pub(crate) pass: Pass,
}

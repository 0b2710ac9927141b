//! The flags of `covary select`.

use clap::Args;
use covary_io::TripleColumns;

use super::{Pass, TRIPLES_HELP};
use crate::args;

/// How many components: what each method would take, and a recommendation
///
/// One pass over complete rows gives a table over the number of components: variance explained, information
/// criteria, Minka's evidence, the likelihood of held-out rows, and what pure noise would show. Moments will
/// do too, without held-out rows.
///
/// Rows with missing values are fitted once for each number, up to 10 unless --max says more, and so is what
/// is left when a fifth of the cells is hidden: the number that predicts hidden cells best is recommended, or
/// fewer if they do as well within a standard error. This ends when three more components have predicted no
/// better. With --cells complete rows are asked the same.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary select wine.csv
  covary select wine.csv --max 6 --json
  covary select wine.csv --cells
  covary select ratings.csv.gz --triples user,film,stars --max 5
  covary select week.moments

Keys of --json: data, rows, features, holes (as for covary fit; null without), recommended, reason, converged, choices
(method, components, reason), absent (method, reason: what chooses nothing here), table (components, eigenvalue,
explained, noise_variance, log_likelihood, aic, bic, log_evidence, cross_validated, cross_validated_error, q2, q2_error,
cell_log_density, correlation_eigenvalue, noise_eigenvalue; null where a method says nothing).")]
pub(crate) struct Select {
    /// Largest number of components to look at [default: all that leave noise; 10 where cells are hidden]
    #[arg(long, value_name = "Q", value_parser = args::positive)]
    pub(crate) max: Option<usize>,
    /// Parts that rows or cells are dealt to: each is predicted from the others [default: 10 of rows, 5 of
    /// cells]
    #[arg(long, value_name = "K", value_parser = args::positive)]
    pub(crate) folds: Option<usize>,
    /// Hide and predict cells of complete rows too; it takes many fits
    #[arg(long)]
    pub(crate) cells: bool,
    /// Seed of the folds and of the samples of noise
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = "Running")]
    pub(crate) seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on without the features that have no value in any row, instead of giving up
    #[arg(long, help_heading = "Columns")]
    pub(crate) drop_empty: bool,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id", "weights"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
    #[command(flatten)]
    pub(crate) pass: Pass,
}

//! The flags of `covary impute`.

use std::path::PathBuf;

use clap::Args;
use covary_io::TripleColumns;

use covary::Components;
use covary::model::Kind;

use super::{Columns, OUT_HELP, Running, Scaling};
use crate::args;

/// Fill the missing values of a table, predict named cells, or say how well that goes
///
/// Each missing value becomes what the model expects, given the other cells of its row; observed cells stay
/// as they are, and columns that the model does not have are carried along. With --holdout nothing is filled:
/// a share of the observed cells is hidden, predicted from the others and compared. Given DATA alone, a model
/// is fitted to what is not hidden, which is the honest way; a MODEL that has seen the hidden cells is judged
/// too kindly.
#[derive(Debug, Args)]
#[command(
    override_usage = "covary impute MODEL DATA [-o OUT] [--std | --draws N]\n       \
        covary impute MODEL DATA --triples USER,ITEM,VALUE --pairs FILE [-o OUT] [--std]\n       \
        covary impute DATA --holdout SHARE [-q N] [--triples USER,ITEM,VALUE] [--json]\n       \
        covary impute MODEL DATA --holdout SHARE [--json]",
    after_help = "\
Examples:
  covary impute air.covary air.csv -o whole.csv
  covary impute air.covary air.csv --std --id day
  covary impute air.covary air.csv --draws 20 --seed 1 -o twenty.parquet
  covary impute films.covary ratings.csv --triples user,film,stars --pairs wanted.csv
  covary impute air.csv --holdout 0.1 -q 2
  covary impute ratings.csv --triples user,film,stars --holdout 0.1 -q 5 --json

Keys of --json: data, model_file, model, components, share, seed, hidden, observed, rmse,
baseline_rmse, mean_log_density (null without noise), coverage_95, converged, seconds."
)]
pub(crate) struct Impute {
    /// Model file, as written by covary fit; with --holdout it may be left out
    #[arg(value_name = "MODEL")]
    pub(crate) first: PathBuf,
    /// Table with missing values, formats as for covary fit
    #[arg(value_name = "DATA")]
    pub(crate) second: Option<PathBuf>,
    #[arg(short, long, value_name = "OUT", help = OUT_HELP)]
    pub(crate) output: Option<PathBuf>,
    /// Add the standard deviation of each missing value: a column NAME_std for each feature behind all
    /// features, 0 where a cell was observed; with --pairs, a column std
    #[arg(long)]
    pub(crate) std: bool,
    /// Instead of what is expected, draw each missing value N times: N whole tables below each other, with a
    /// first column draw
    #[arg(long, value_name = "N", value_parser = args::positive, conflicts_with = "std")]
    pub(crate) draws: Option<usize>,
    /// Predict the cells named in FILE instead: it has the columns USER and ITEM of --triples, and others are
    /// carried along. A cell that DATA have is known, and users that DATA do not have get the mean
    #[arg(long, value_name = "FILE", requires = "triples", conflicts_with = "draws")]
    pub(crate) pairs: Option<PathBuf>,
    /// Hide this share of the observed cells, predict them and compare
    #[arg(long, value_name = "SHARE", value_parser = args::share, conflicts_with_all = ["std", "draws", "pairs", "output"])]
    pub(crate) holdout: Option<f64>,
    /// Number of components of the model that is fitted for --holdout, as for covary fit
    #[arg(short = 'q', long = "components", value_name = "N|SHARE|auto", value_parser = args::components, allow_negative_numbers = true, requires = "holdout")]
    pub(crate) components: Option<Components>,
    /// Which model is fitted for --holdout
    #[arg(long, value_name = "KIND", value_parser = super::kinds(), default_value = "ppca", requires = "holdout")]
    pub(crate) model: &'static Kind,
    #[command(flatten)]
    pub(crate) scaling: Scaling,
    /// Seed of the draws and of the choice of hidden cells
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print the result of --holdout as JSON
    #[arg(long, requires = "holdout")]
    pub(crate) json: bool,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = super::TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Most memory to use with --holdout, such as 512M or 4G [default: 60 % of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = args::memory, help_heading = "Running")]
    pub(crate) memory: Option<usize>,
    #[command(flatten)]
    pub(crate) running: Running,
}

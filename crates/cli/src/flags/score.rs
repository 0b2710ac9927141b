//! The flags of `covary score`.

use clap::Args;
use covary_io::TripleColumns;

use super::{Question, TRIPLES_HELP};
use crate::args;

/// How well each row fits the model
///
/// Columns: log_density; t2, the squared distance within the plane of the components in units of their
/// variance; spe, the squared distance from that plane; p_value, the probability that a row of the model lies
/// at least as far out. Of a row with missing values only the observed cells count; a row without any has
/// log_density 0.
///
/// With --contributions one line for each observed cell: its value; what the rest of the row expects of it and
/// the deviation of that; its shares of t2 and spe, which add up to those of the row; and cell, by how much the
/// squared distance of the row would fall if the cell were missing (χ² with one degree of freedom: above 6.6 in
/// one of a hundred).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary score wine.covary wine.csv --id name -o scores.csv
  covary score wine.covary new.parquet | awk -F, '$4 < 0.001'
  covary score wine.covary wine.csv --worst 5 --words     which rows do not belong, and why
  covary score wine.covary wine.csv --contributions -o cells.parquet
  covary score wine.covary new.csv --limits 0.99          with control limits of t2 and spe")]
pub(crate) struct Score {
    #[command(flatten)]
    pub(crate) question: Question,
    /// Only the N least likely rows, the least likely first (smallest p_value; largest spe where there is no
    /// density), behind their number
    #[arg(long, value_name = "N", value_parser = args::positive)]
    pub(crate) worst: Option<usize>,
    /// One line for each cell: what it adds to t2 and spe, and what the rest of its row expects
    #[arg(long)]
    pub(crate) contributions: bool,
    /// The rows of --worst as sentences on standard output: which of their cells stand out
    #[arg(long, requires = "worst", conflicts_with = "output")]
    pub(crate) words: bool,
    /// Add the limits that t2 and spe of a new row stay below with this probability, by the cells that it has
    #[arg(long, value_name = "LEVEL", value_parser = args::level, conflicts_with_all = ["contributions", "words"])]
    pub(crate) limits: Option<f64>,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
}

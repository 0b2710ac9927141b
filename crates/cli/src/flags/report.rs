//! The flags of `covary report`.

use std::path::PathBuf;

use clap::Args;
use covary_io::TripleColumns;
use covary_report::Image;

use super::{Columns, DATA_HELP, Running, TRIPLES_HELP};
use crate::args;

/// Write one interactive page about a model and its rows
///
/// The page is a single file that opens by double click in any browser, without a network: what the model says in
/// words, how many components and why, loadings, a latent plot to drag and zoom, a latent explorer that shows the row
/// at any place of the plane, the rows that do not belong and why, missing values, and how well the model fits.
/// Columns that the model does not have are carried along, to colour and label the rows.
///
/// A page holds up to 100000 rows, of wide tables fewer (3.2 million cells); of more, a sample that keeps the 1000 most
/// unusual rows. Cells are kept in 65535 steps of each feature: whoever has the page has the data, nearly as exactly.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary report wine.covary wine.csv -o wine.html
  covary report digits.covary digits.csv --id digit --image 8x8 -o digits.html
  covary report run.covary run.csv --stick links.csv -o run.html
  covary report genes.covary genes.parquet --no-rows -o genes.html

links.csv has two names on each line, the markers that a line joins; the marker HEAD has the
features HEAD:X, HEAD:Y and HEAD:Z (or HEAD_x, …).")]
pub(crate) struct Report {
    /// Model file, as written by covary fit
    pub(crate) model: PathBuf,
    #[arg(help = DATA_HELP)]
    pub(crate) data: PathBuf,
    /// Where to write the page; the name must end in .html
    #[arg(short, long, value_name = "PAGE.html")]
    pub(crate) output: PathBuf,
    /// Most rows that the page holds [default: 100000, fewer of wide tables]
    #[arg(long, value_name = "N", value_parser = args::positive)]
    pub(crate) rows: Option<usize>,
    /// Leave all rows out: the page has the model and counts only
    #[arg(long, conflicts_with = "rows")]
    pub(crate) no_rows: bool,
    /// The same seed keeps the same rows where there are too many
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Title of the page [default: the model and the data]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The features are the pixels of an image, row by row: its height and width
    #[arg(long, value_name = "HxW", value_parser = args::image, conflicts_with = "stick")]
    pub(crate) image: Option<Image>,
    /// The features are coordinates of markers in space: a file of the lines between them
    #[arg(long, value_name = "LINKS.csv")]
    pub(crate) stick: Option<PathBuf>,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) running: Running,
}

//! The flags as people type them; completions, man pages and help come from here.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are help texts: backticks would show in the terminal"
)]

mod bayes;
mod curved;
mod factor;
mod fit;
mod groups;
mod impute;
mod kernel;
mod network;
mod report;
mod robust;
mod score;
mod select;
mod text;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::args;
pub(crate) use bayes::{Bayes, ContrastName, Method};
use covary::Scale;
use covary::model::{KINDS, Kind};
use covary_io::{Selection, TripleColumns};
pub(crate) use curved::Curved;
pub(crate) use factor::{Factor, Rotate, Scores};
pub(crate) use fit::Fit;
pub(crate) use groups::{Assign, Groups, Noise, PriorRows};
pub(crate) use impute::Impute;
pub(crate) use kernel::{KernelFlags, KernelName};
pub(crate) use network::{ActivationName, NetworkFlags};
pub(crate) use report::Report;
pub(crate) use robust::Robust;
pub(crate) use score::Score;
pub(crate) use select::Select;
pub(crate) use text::Text;

const DATA_HELP: &str = "Table of numbers: .csv .tsv (also .gz, .zst), .parquet, .arrow, .feather, .npy, \
    .xlsx, .ods, or - for CSV on standard input";
const OUT_HELP: &str = "Where to write the rows, format by ending; CSV on standard output if left out";
const TRIPLES_HELP: &str = "The data give one cell in each row: these three columns, by name or by position, \
    say whose it is, which, and its value";
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 done but not converged, 2 usage, 3 bad data, 4 numerical failure, 5 file or model trouble, 130 interrupted.

First steps:
  covary demo                          a tour on real data
  covary fit wine.csv -o wine.covary   fit a model
  covary score wine.covary wine.csv    find the rows that do not belong";

/// Explain the covariance of a table of numbers with a few hidden variables
///
/// covary fits principal components (PCA), probabilistic principal components (PPCA, and by the rules of
/// Bayes BPCA), factors (FA) and clusters (k-means) to a table whose rows are samples and whose columns are
/// features. A fitted
/// model compresses rows, rebuilds them, imputes their missing values, says how likely they are, finds the
/// ones that do not belong, and draws new ones. Cells may be missing everywhere. Columns that are not numeric
/// are carried along, not modelled.
#[derive(Debug, Parser)]
#[command(name = "covary", version, propagate_version = true, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(Box<Fit>),
    Transform(Transform),
    Reconstruct(Reconstruct),
    Impute(Impute),
    Score(Box<Score>),
    Assign(Assign),
    Sample(Sample),
    Select(Select),
    Rotate(Rotate),
    Inspect(Inspect),
    Report(Box<Report>),
    Moments(Moments),
    Merge(Merge),
    Demo(Demo),
    Completions(Completions),
    Man(Man),
}

/// How to find the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Solver {
    /// The cheapest one for the shape of the data and the memory
    Auto,
    /// From the covariance of the features: one pass over the rows
    Eigen,
    /// From the centred table itself: rows and a copy in memory
    Svd,
    /// From the inner products of the rows: for fewer rows than features, in memory
    Dual,
    /// Block Krylov iteration: a few components in several passes, little memory
    Krylov,
    /// Expectation and maximisation: for rows with missing values, in passes; slow for factor analysis of
    /// complete rows
    Em,
    /// Newton's method on the noise variances of factor analysis: a few hundred features
    Newton,
    /// Limited-memory BFGS on all rows at once: networks
    Lbfgs,
    /// Adam on batches of rows: networks of many rows
    Adam,
}

/// The kinds of models, with what they are.
fn kinds() -> impl TypedValueParser<Value = &'static Kind> {
    let value = |kind: &&'static Kind| {
        let mut title = kind.title.to_owned();
        title[..1].make_ascii_uppercase();
        PossibleValue::new(kind.name).help(format!("{title}: {}", kind.about))
    };
    PossibleValuesParser::new(KINDS.iter().map(value))
        .try_map(|name| Kind::named(&name).ok_or_else(|| format!("'{name}' is no kind of model")))
}

/// What features are divided by.
fn scales() -> impl TypedValueParser<Value = Scale> {
    let value = |scale: Scale| PossibleValue::new(scale.name()).help(scale.in_words());
    PossibleValuesParser::new(Scale::ALL.map(value)).try_map(|name| name.parse::<Scale>())
}

/// What features are divided by before the fit.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Scaling {
    /// Divide each feature by its standard deviation before the fit, so that all count alike; the same as
    /// --scale unit. Every answer of the model is in the units of the data all the same
    #[arg(long, visible_alias = "standardize", conflicts_with = "scale")]
    standardise: bool,
    /// What each feature is divided by before the fit
    #[arg(long, value_name = "SCALE", value_parser = scales(), default_value = "none")]
    scale: Scale,
}

impl Scaling {
    /// What was asked for.
    pub(crate) fn scale(self) -> Scale {
        if self.standardise { Scale::Unit } else { self.scale }
    }
}

/// Columns of the data.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns")]
pub(crate) struct Columns {
    /// Use only these columns, by name or by position counted from 1: a,b,c or 3-20
    #[arg(long, value_name = "LIST", value_parser = args::selection)]
    pub(crate) columns: Option<Selection>,
    /// Leave these columns out altogether
    #[arg(long, value_name = "LIST", value_parser = args::selection)]
    pub(crate) drop: Option<Selection>,
    /// Carry this column through to the output instead of modelling it
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) text: Text,
}

/// What the work may take, and what it says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct Running {
    /// Number of threads; all cores if left out. Results do not depend on it
    #[arg(long, value_name = "N", value_parser = args::threads)]
    pub(crate) threads: Option<usize>,
    /// Say nothing but errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Rows that are read once, within a memory limit.
#[derive(Debug, Args)]
pub(crate) struct Pass {
    #[arg(help = DATA_HELP)]
    pub(crate) data: PathBuf,
    /// Column with a weight for each row: how often it was seen, or shares that sum to 1
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

/// A model, the rows to ask it about, and where the answers go.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Model file, as written by covary fit
    pub(crate) model: PathBuf,
    #[arg(help = DATA_HELP)]
    pub(crate) data: PathBuf,
    #[arg(short, long, value_name = "OUT", help = OUT_HELP)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// Latent coordinates of each row
///
/// One row out for each row in, with columns z1, z2, …: posterior means for ppca, scores for pca. Of factors,
/// f1, f2, … are the scores, on the rotated factors where they were rotated. Columns are matched to the model
/// by name (by position where the data have no names); id and text columns are carried along. A row with
/// missing values is placed by the cells that it has; one without any gets the prior.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary transform wine.covary wine.csv > z.csv
  covary transform genes.covary genes.parquet --id sample --std -o z.parquet
  covary transform items.covary items.csv --scores bartlett")]
pub(crate) struct Transform {
    #[command(flatten)]
    pub(crate) question: Question,
    /// How factor scores are estimated [default: regression]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) scores: Option<Scores>,
    /// Add the posterior standard deviations, as columns z1_std, z2_std, …; of a GP-LVM also ambiguous, 1 where a second
    /// place explains the row about as well
    #[arg(long)]
    pub(crate) std: bool,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
}

/// Each row rebuilt from its latent coordinates
///
/// Writes the model's features: the nearest point that the components can express.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary reconstruct wine.covary wine.csv -o smooth.csv
  covary reconstruct wine.covary wine.csv --posterior | head")]
pub(crate) struct Reconstruct {
    #[command(flatten)]
    pub(crate) question: Question,
    /// Rebuild from the posterior mean, which lies nearer to the model's mean than the nearest point does
    #[arg(long)]
    pub(crate) posterior: bool,
}

/// Draw new rows from a model
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  covary sample wine.covary -n 1000 --seed 7 -o new.csv")]
pub(crate) struct Sample {
    /// Model file, as written by covary fit
    pub(crate) model: PathBuf,
    /// Number of rows to draw
    #[arg(short = 'n', long = "rows", value_name = "N", value_parser = args::positive)]
    pub(crate) rows: usize,
    /// The same seed draws the same rows on every machine
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    #[arg(short, long, value_name = "OUT", help = OUT_HELP)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// What is in a model, for people or as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary inspect wine.covary
  covary inspect wine.covary --json | jq .noise_variance
  covary inspect items.covary --cut 0.4 --errors
  covary inspect wine.covary --errors --level 0.99 --json | jq .intervals.mean

With --errors --json, ppca of complete rows has standard_errors (mean, noise_variance,
eigenvalues, loadings) and intervals (the same as pairs, loadings_lower and loadings_upper,
and their level); null is infinite: the rows do not tell the direction of that component.

Keys of --json under factors (null for other models): rotation, discrepancy, dof,
correlation_log_likelihood, gradient_norm, starts, agreeing, lower, heywood, unused,
noise_variances, uniquenesses, communalities, complexities, standardised_loadings,
structure (standardised), factor_correlation, factor_variances (of features of variance 1:
the SS loadings), proportions, cumulative, fit (chi2, dof, p_value, rmsea, rmsea_interval,
cfi, tli, srmr, aic, bic, …), adequacy (kmo, sphericity, smc), standard_errors (with
--errors: given and standardised).")]
pub(crate) struct Inspect {
    /// Model file, or a .moments file
    pub(crate) model: PathBuf,
    /// Print everything as JSON: what covary fit --json tells, and feature_names, mean and loadings (features
    /// × components)
    #[arg(long)]
    pub(crate) json: bool,
    /// Of factors: leave out standardised loadings below this size [default: 0.3]
    #[arg(long, value_name = "X", value_parser = args::cut)]
    pub(crate) cut: Option<f64>,
    /// Of factors: standard errors of the loadings beside them. Of ppca: standard errors and intervals of the
    /// mean, the noise variance and the loadings
    #[arg(long)]
    pub(crate) errors: bool,
    /// Of ppca: probability with which each interval holds its number [default: 0.95]
    #[arg(long, value_name = "X", value_parser = args::level, requires = "errors")]
    pub(crate) level: Option<f64>,
}

/// Summarise one part of the data, to be merged with others
///
/// Count, mean and covariance are all that a fit needs. Parts may be summarised on different machines or
/// days.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  covary moments monday.csv -o monday.moments
  covary moments tuesday.csv -o tuesday.moments
  covary merge monday.moments tuesday.moments -o week.moments
  covary fit week.moments -q 3 -o week.covary")]
pub(crate) struct Moments {
    /// Where to write the moments; the name must end in .moments
    #[arg(short, long, value_name = "PART.moments")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) pass: Pass,
}

/// Merge the moments of several parts of the data
///
/// All parts must have the same features. `covary fit` on the result gives the model of all rows together.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  covary merge part-*.moments -o all.moments")]
pub(crate) struct Merge {
    /// The parts, as written by covary moments
    #[arg(required = true, value_name = "PART")]
    pub(crate) parts: Vec<PathBuf>,
    /// Where to write the whole; the name must end in .moments
    #[arg(short, long, value_name = "ALL.moments")]
    pub(crate) output: PathBuf,
    /// Say nothing but errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// A tour of the whole command on data that the program carries
///
/// Fits handwritten digits, rebuilds some from a few numbers, finds the strangest and draws new ones. Every
/// step shows the command that does it. The files stay in DIR.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Folder for the files of the tour
    #[arg(default_value = "covary-demo")]
    pub(crate) dir: PathBuf,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  covary completions bash > ~/.local/share/bash-completion/completions/covary")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the man page, or write all pages to a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary man | man -l -
  covary man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for covary.1, covary-fit.1, …
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_and_every_flag_is_explained() {
        let mut flags = Flags::command();
        flags.build();
        for command in flags.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for flag in command.get_arguments() {
                assert!(flag.get_help().is_some(), "{} {}", command.get_name(), flag.get_id());
            }
        }
    }

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }
}

//! The flags as people type them; completions, man pages and help come from here.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are help texts: backticks would show in the terminal"
)]

mod bayes;
mod factor;
mod groups;
mod impute;
mod robust;
mod select;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::args;
pub(crate) use bayes::{Bayes, Method};
use covary::model::{KINDS, Kind};
use covary::{Components, Scale};
use covary_io::{Selection, TripleColumns};
pub(crate) use factor::{Factor, Rotate, Scores};
pub(crate) use groups::{Assign, Groups, Noise, PriorRows};
pub(crate) use impute::Impute;
pub(crate) use robust::Robust;
pub(crate) use select::Select;

const DATA_HELP: &str = "Table of numbers: .csv .tsv (also .gz, .zst), .parquet, .arrow, .feather, .npy, or \
    - for CSV on standard input";
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
    Fit(Fit),
    Transform(Transform),
    Reconstruct(Reconstruct),
    Impute(Impute),
    Score(Score),
    Assign(Assign),
    Sample(Sample),
    Select(Select),
    Rotate(Rotate),
    Inspect(Inspect),
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
    /// Whether the first line of a text is a header [default: guessed, and said where it is not obvious]
    #[arg(long, value_name = "yes|no", value_parser = args::yes_or_no)]
    pub(crate) header: Option<bool>,
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

/// Fit a model to a table
///
/// Without -q, the smallest number of components that explains 90 % of the variance is kept. Without -o, the
/// summary is shown and the model is not kept. Cells may be missing (empty, NA, NaN, null): the model is then
/// the one that makes the observed cells most likely, found in passes over the rows.
///
/// Factor analysis (--model fa) needs the number of factors. Its summary has the table of standardised
/// loadings, sorted and without the small ones, how well the factors fit, and whether the correlations were
/// worth it.
///
/// Bayesian PCA (--model bpca) finds out by itself how many components the data support: -q is the most that
/// it may keep, all that the data allow if it is left out. What it does not know about the model is part of
/// every answer, so that it does not overfit where cells are few.
///
/// Robust PPCA (--model robust) has Student's t in place of the normal distribution: rows that lie far out
/// hardly count, so that gross errors in the data move neither the mean nor the components. --nu says how
/// heavy the tails are, and is found if it is left out.
///
/// A mixture (--model mixture) puts rows into groups, each with a mean, latent variables and noise of its own:
/// -k is the number of groups, -q that of the latent variables in each. covary assign names the group of a row.
///
/// k-means (--model kmeans) needs the number of clusters: -k 3, or the best of a range, -k 2-8, or -k auto, by
/// the gap statistic. covary assign then tells the cluster of each row.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary fit wine.csv -q 3 -o wine.covary
  covary fit wine.csv -q auto -o wine.covary
  covary fit genes.parquet -q 0.95 --id sample -o genes.covary
  covary fit huge.csv -q 10 --memory 512M -o huge.covary
  covary fit ratings.csv.gz --triples user,film,stars -q 5 -o films.covary
  zcat data.csv.gz | covary fit - --json
  covary fit items.csv --model fa -q 5 --rotate oblimin -o items.covary
  covary fit ratings.csv --triples user,film,stars --model bpca -q 10 -o films.covary
  covary fit sensors.csv --model robust -q 2 -o sensors.covary
  covary fit iris.csv --model kmeans -k 3 -o flowers.covary
  covary fit correlations.csv --matrix --rows 145 --model fa -q 4 --rotate varimax
  covary fit iris.csv --model mixture -k 2-5 -q 1 -o iris.covary

With missing values, --json says under holes how many cells are observed and missing, their share,
how many patterns (null: more than a million) and empty_rows there are, and how many
unseen_pairs of features no row has both of (null: not counted); of complete rows it is null.

Factor analysis has under factors what covary inspect --json tells of it; otherwise it is
null. Its noise_variance is the mean over the features.

Bayesian PCA has under bayes its method, objective (the bound on the log evidence of vb, the
log posterior density of W of ard; null when infinite), allowed (the most components),
precisions (α of each component that is left), and of vb loadings_std (features ×
components) and mean_std; otherwise it is null.

Robust PPCA has under robust its degrees_of_freedom (null when infinite), whether they were
found, low_weight_rows (rows whose weight is below 1/2) and least_weight; otherwise it is
null. Its variances are those of the scale of the t distribution.

A mixture has under mixture its weights, means, latent (variables of each group), noise (isotropic or
diagonal), noise_variances, explained (share of each group's variance), separation (distance of the
nearest other mean in deviations), shared_noise, prior_rows, objective, parameters, bic, aic, icl,
dropped (groups without enough rows) and grown (what each number of groups has reached); otherwise
it is null.

k-means has under clusters its inertia, the total sum of squares and the explained share of it,
asked and found clusters, starts, useful swaps, sample (rows on which the start was found; left out:
all), sizes, shares, within (sum of squares of each cluster), centres and, where K was chosen, the
table; otherwise it is null.

Keys of --json: data, model_file, model, rows, weight, features, components,
components_because, solver, solver_reason, noise_variance, noise_variance_unbiased (null
unless ppca of complete rows), noise_interval (of 95 % around the unbiased one; null unless
ppca of complete rows), log_likelihood (null when infinite or a fit was interrupted before
it was known), scaled (unit or pareto or range; null: features were not scaled), total_variance,
eigenvalues, explained_variance_ratio (both of the scaled features if they were), holes,
redundant (features left out when q was chosen; null: none), factors,
bayes, mixture, robust, clusters, converged, stop, iterations, passes, carried, left_out, seconds.")]
pub(crate) struct Fit {
    #[arg(value_name = "DATA", help = DATA_HELP, long_help = concat!(
        "Table of numbers, format by ending: .csv .tsv (also .gz, .zst), .parquet, .arrow, .feather, .npy, \
         or - for CSV ",
        "on standard input. Also a .moments file, as made by covary moments: then no rows are needed"))]
    pub(crate) data: PathBuf,
    /// Number of components or factors, as a number (5) or, of components, as the share of the variance that
    /// they must explain (0.95); auto takes what covary select recommends, for factors what parallel analysis
    /// finds
    #[arg(short = 'q', long = "components", value_name = "N|SHARE|auto", value_parser = args::components, allow_negative_numbers = true)]
    pub(crate) components: Option<Components>,
    /// Which model
    #[arg(long, value_name = "KIND", value_parser = kinds(), default_value = "ppca")]
    pub(crate) model: &'static Kind,
    /// Where to write the model, such as wine.covary
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) output: Option<PathBuf>,
    /// How to find the components
    #[arg(long, value_enum, default_value_t = Solver::Auto)]
    pub(crate) solver: Solver,
    /// DATA are no rows but their covariances or correlations: a square table with the names of the features
    /// in the header and, if you like, in a first column. The mean is then taken as 0
    #[arg(long, conflicts_with_all = ["id", "weights", "triples", "drop_empty"])]
    pub(crate) matrix: bool,
    /// How many rows the matrix was computed from
    #[arg(long, value_name = "N", value_parser = args::positive, requires = "matrix")]
    pub(crate) rows: Option<usize>,
    /// Model to start from, with the same features: the fit of new rows, or of more of them, is then sooner
    /// done
    #[arg(long, value_name = "MODEL")]
    pub(crate) start: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scaling: Scaling,
    #[command(flatten)]
    pub(crate) groups: Groups,
    #[command(flatten)]
    pub(crate) bayes: Bayes,
    #[command(flatten)]
    pub(crate) robust: Robust,
    #[command(flatten)]
    pub(crate) factor: Factor,
    /// Go on without the features that have no value in any row, instead of giving up
    #[arg(long, help_heading = "Columns")]
    pub(crate) drop_empty: bool,
    /// Column with a weight for each row: how often it was seen, or shares that sum to 1
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) weights: Option<String>,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id", "weights"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
    #[command(flatten)]
    pub(crate) columns: Columns,
    /// Most memory to use, such as 512M or 4G; larger files are read in parts [default: 60 % of the
    /// machine's]
    #[arg(long, value_name = "SIZE", value_parser = args::memory, help_heading = "Running")]
    pub(crate) memory: Option<usize>,
    #[command(flatten)]
    pub(crate) running: Running,
    /// Print the summary as JSON on standard output
    #[arg(long, help_heading = "Running")]
    pub(crate) json: bool,
    /// Seed of random starts: of the krylov solver, of k-means, and of factor analysis after its first
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = "Running")]
    pub(crate) seed: u64,
    /// When an iteration stops. em: log-likelihood per row that is left to gain [default: 1e-8]. krylov:
    /// residual relative to the largest variance [default: 1e-12]. Factor analysis: length of the gradient
    /// [default: 1e-8]. k-means: squared steps of the centres relative to the mean variance of a feature
    /// [default: until no row changes its cluster]
    #[arg(long, value_name = "X", value_parser = args::tolerance, help_heading = "Running")]
    pub(crate) tol: Option<f64>,
    /// Most iterations of k-means and of the em, krylov and newton solvers [default: 1000]
    #[arg(long, value_name = "N", value_parser = args::positive, help_heading = "Running")]
    pub(crate) max_iter: Option<usize>,
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
    /// Add the posterior standard deviations, as columns z1_std, z2_std, …
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

/// How well each row fits the model
///
/// Columns: log_density; t2, the squared distance within the plane of the components in units of their
/// variance; spe, the squared distance from that plane; p_value, the probability that a row of the model lies
/// at least as far out. Of a row with missing values only the observed cells count; a row without any has
/// log_density 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary score wine.covary wine.csv --id name -o scores.csv
  covary score wine.covary new.parquet | awk -F, '$4 < 0.001'")]
pub(crate) struct Score {
    #[command(flatten)]
    pub(crate) question: Question,
    #[arg(long, value_name = "USER,ITEM,VALUE", value_parser = args::triples, conflicts_with_all = ["columns", "drop", "id"],
        help_heading = "Columns", help = TRIPLES_HELP)]
    pub(crate) triples: Option<TripleColumns>,
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

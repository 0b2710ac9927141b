//! The flags of factor analysis, of rotations and of factor scores.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Running;
use crate::args::{self, RotationName};

/// What only factor analysis has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Factor analysis")]
pub(crate) struct Factor {
    /// Turn the factors so that their loadings can be read: varimax, quartimax, equamax, parsimax,
    /// geomin-orthogonal, or with correlated factors promax, oblimin, quartimin, geomin
    #[arg(long, value_name = "METHOD", value_parser = args::rotation)]
    pub(crate) rotate: Option<RotationName>,
    /// Let all features count alike in the rotation (Kaiser's normalisation) [default: for varimax and
    /// promax]
    #[arg(long, requires = "rotate", overrides_with = "no_kaiser")]
    pub(crate) kaiser: bool,
    /// Rotate the loadings as they are
    #[arg(long, requires = "rotate")]
    pub(crate) no_kaiser: bool,
    /// Number of starts of factor analysis, k-means or independent components, of which the best is kept
    /// [default: 1, of ica 5, and 5 where factor analysis ends at a bound]
    #[arg(long, value_name = "N", value_parser = args::positive)]
    pub(crate) starts: Option<usize>,
    /// Least uniqueness, the share of a feature's variance that is its own [default: 0.005]
    #[arg(long, value_name = "X", value_parser = args::share)]
    pub(crate) lower: Option<f64>,
}

/// Rotate loadings so that they can be read
///
/// Turns the factors of fa, or the components of ppca and pca, without changing what the model says about
/// rows. Loadings are rotated on the scale of correlations. Shows the rotated loadings, sorted and without
/// the small ones, and the correlations of the factors; with -o the rotated model, of kind fa, is written.
/// What was rotated before is rotated from where it was found, so that --method none undoes a rotation.
#[derive(Debug, Args)]
#[command(after_help = "\
Methods:
  orthogonal    varimax, quartimax, equamax, parsimax, geomin-orthogonal
  oblique       promax, oblimin (quartimin is oblimin with gamma 0), geomin
  to a target   target (its empty cells are free) and procrustes, with --target FILE
  none          as the loadings were found

Examples:
  covary rotate items.covary --method varimax
  covary rotate items.covary --method oblimin --gamma -0.5 -o oblique.covary
  covary rotate items.covary --method geomin --starts 100 --cut 0.4
  covary rotate items.covary --target wanted.csv --oblique

A target has a row for each feature and a column for each factor; names of features in a
first column are matched to the model's.

--json tells model_file, feature_names, loadings in the units of the data, and what covary
inspect --json has under factors.")]
pub(crate) struct Rotate {
    /// Model file, as written by covary fit
    pub(crate) model: PathBuf,
    /// What makes loadings simple
    #[arg(long, value_parser = args::rotation, required_unless_present = "target")]
    pub(crate) method: Option<RotationName>,
    /// Where to write the rotated model
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) output: Option<PathBuf>,
    /// Let all features count alike (Kaiser's normalisation) [default: for varimax and promax]
    #[arg(long, overrides_with = "no_kaiser")]
    pub(crate) kaiser: bool,
    /// Rotate the loadings as they are
    #[arg(long)]
    pub(crate) no_kaiser: bool,
    /// Of oblimin: at most 0; the lower, the less factors correlate [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) gamma: Option<f64>,
    /// Of promax: the power, above 1 [default: 4]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) power: Option<f64>,
    /// Of geomin: what is added to squared loadings [default: 0.01]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) delta: Option<f64>,
    /// Loadings to aim at, as a table; empty cells are free
    #[arg(long, value_name = "FILE")]
    pub(crate) target: Option<PathBuf>,
    /// Let factors correlate on the way to a target
    #[arg(long, requires = "target")]
    pub(crate) oblique: bool,
    /// Number of starts, of which the best is kept [default: 10, of geomin 30]
    #[arg(long, value_name = "N", value_parser = args::positive)]
    pub(crate) starts: Option<usize>,
    /// Seed of the starts after the first
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Leave out standardised loadings below this size
    #[arg(long, value_name = "X", value_parser = args::cut, default_value_t = covary::describe::CUT)]
    pub(crate) cut: f64,
    /// Print the rotated loadings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) running: Running,
}

/// How factor scores are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scores {
    /// The posterior mean: nearest to the factors on average
    Regression,
    /// Weighted least squares: right on average for every value of the factors; empty where a row does not
    /// determine them
    Bartlett,
}

//! The flags of `covary select`.

use clap::Args;
use covary::estimator::Groups;
use covary::model::Kind;
use covary_io::TripleColumns;

use super::{KernelFlags, Noise, Pass, TRIPLES_HELP, kinds};
use crate::args;

/// How many components or groups: what each method would take, and a recommendation
///
/// One pass over complete rows gives a table over the number of components: variance explained, information
/// criteria, Minka's evidence, the likelihood of held-out rows, and what pure noise would show. Moments will
/// do too, without held-out rows.
///
/// Rows with missing values are fitted once for each number, up to 10 unless --max says more, and so is what
/// is left when a fifth of the cells is hidden: the number that predicts hidden cells best is recommended, or
/// fewer if they do as well within a standard error. This ends when three more components have predicted no
/// better. With --cells complete rows are asked the same.
///
/// With --model mixture the table is over the number of groups and of latent variables in each, and with
/// --model kmeans over the number of clusters.
///
/// With --model kpca it is over widths of the kernel: at each, the components whose eigenvalues exceed those of rows
/// with permuted columns (kernel parallel analysis). The width at which they exceed them most is recommended. 500
/// rows are looked at where there are more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  covary select wine.csv
  covary select wine.csv --max 6 --json
  covary select wine.csv --cells
  covary select ratings.csv.gz --triples user,film,stars --max 5
  covary select week.moments
  covary select iris.csv --model mixture -k 1-5 --max 2
  covary select iris.csv --model kmeans -k 1-8
  covary select digits.csv --model kpca

Keys of --json: data, rows, features, holes (as for covary fit; null without), recommended, reason, converged, choices
(method, components, reason), absent (method, reason: what chooses nothing here), table (components, eigenvalue,
explained, noise_variance, log_likelihood, aic, bic, log_evidence, cross_validated, cross_validated_error, q2, q2_error,
cell_log_density, correlation_eigenvalue, noise_eigenvalue; null where a method says nothing). Of mixtures choices,
recommended and table have groups and latent; of k-means rows has clusters, inertia, gap, error.
Of kpca: rows, sampled, features, kernel, holes, recommended (gamma, components), reason, table (gamma, components,
excess, explained, eigenvalue, noise_eigenvalue).")]
pub(crate) struct Select {
    /// Kind of model: ppca, mixture, kmeans or kpca
    #[arg(long, value_name = "KIND", value_parser = kinds(), default_value = "ppca", hide_possible_values = true)]
    pub(crate) model: &'static Kind,
    /// Numbers of groups to look at: the most (8) or a range (2-8) [default: up to 8 of a mixture, 10 of k-means]
    #[arg(short = 'k', long = "groups", value_name = "K|A-B", value_parser = args::groups)]
    pub(crate) groups: Option<Groups>,
    /// Of a mixture: noise of the same variance in every feature, or of one for each [default: isotropic]
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) noise: Option<Noise>,
    /// Of a mixture: the noise is the same in all components
    #[arg(long)]
    pub(crate) shared_noise: bool,
    /// Largest number of components, or of latent variables of a mixture, to look at [default: all that leave
    /// noise; 10 where cells are hidden; 4 of a mixture]
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
    pub(crate) kernel: KernelFlags,
    #[command(flatten)]
    pub(crate) pass: Pass,
}

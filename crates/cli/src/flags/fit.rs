//! The flags of `covary fit`.

use std::path::PathBuf;

use clap::Args;
use covary::Components;
use covary::model::Kind;
use covary_io::TripleColumns;

use super::{
    Bayes, Columns, Curved, DATA_HELP, Factor, Groups, KernelFlags, NetworkFlags, Robust, Running, Scaling,
    Solver, TRIPLES_HELP, kinds,
};
use crate::args;

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
/// Independent components (--model ica) turn the components of PPCA to sources that are independent, not only
/// uncorrelated: loadings are the mixing matrix, and covary transform gives the sources of each row. Several
/// starts say how stable each source is; sources that look normal cannot be told apart and are named.
///
/// k-means (--model kmeans) needs the number of clusters: -k 3, or the best of a range, -k 2-8, or -k auto, by
/// the gap statistic. covary assign then tells the cluster of each row.
///
/// Kernel PCA (--model kpca) finds components in the feature space of a kernel, so that they may bend: --kernel says
/// how alike two rows are, --gamma over which distance. It is exact while the kernel matrix of all rows fits in
/// memory; beyond that, or with --landmarks, some rows stand for all, and the summary says what share of the trace
/// they leave out. covary score then tells how far each row lies from the components.
///
/// An autoassociative network (--model autoencoder) bends the plane of PCA by --hidden units: it starts as PCA and only
/// gets better. Rows with missing values are fitted without an encoder, and covary impute fills their cells along the
/// surface. covary score tells the squared error of each row.
///
/// A GP-LVM (--model gplvm) gives each row a position in a few latent dimensions and lets each feature be a smooth function of
/// the position: a curved surface where PPCA has a plane. Without -q it may use ten dimensions, and the summary names those that
/// carry nothing. Cells may be missing. One noise variance serves all features, so use --standardise where units differ.
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
  covary fit ecg.csv --model ica -q 8 -o ecg.covary
  covary fit correlations.csv --matrix --rows 145 --model fa -q 4 --rotate varimax
  covary fit iris.csv --model mixture -k 2-5 -q 1 -o iris.covary
  covary fit iris.csv --model mixture -k auto --method vb -o iris.covary
  covary fit digits.csv --model kpca -q 40 -o digits.covary
  covary fit huge.parquet --model kpca -q 10 --kernel laplacian --landmarks 300 -o huge.covary
  covary fit curve.csv --model autoencoder -q 1 --hidden 20 -o curve.covary
  covary fit walking.csv --model gplvm -q 3 -o walking.covary

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
dropped (groups without enough rows), grown (what each number of groups has reached) and, with
--method vb, variational (the bound, noise and precisions of each group); otherwise it is null.

k-means has under clusters its inertia, the total sum of squares and the explained share of it,
asked and found clusters, starts, useful swaps, sample (rows on which the start was found; left out:
all), sizes, shares, within (sum of squares of each cluster), centres and, where K was chosen, the
table; otherwise it is null.

Independent components have under sources their method, starts, objective (log-likelihood of whitened
sources per row; negentropy of fastica), variances (what each source adds to the variance of the
features), stability (mean absolute correlation with the matching source of other starts; null with one
start), contrast (how far from normal in standard errors: below 0 heavy tails), normal_below, looks_normal,
correlation of the sources and kept (whether whitened rows were held in memory); otherwise it is null.
Kernel PCA has under kernel its kernel, gamma, degree and coef0, points (rows or landmarks that the model
holds), landmarks (how they were found; left out: all rows), asked (landmarks), left_out (share of the
trace), rank (components of positive variance), noise_variance (mean of the eigenvalues that were left
out), negative (the most negative eigenvalue; left out: none) and bytes (of points and coefficients);
otherwise it is null.
A GP-LVM has under gplvm its method, kernel, kernel_variance, noise_variance, inducing (points), asked (where
that was more than rows), objective (the lower bound on the evidence; of --method map the log posterior of the
positions, with the linear kernel the log-likelihood of the columns), relevance of each dimension relative to the
largest, divergence (of the positions from N(0, 1), per row; null of --method map), iterations, starts and positions
(rows whose position the file holds); otherwise it is null.

An autoassociative network has under network its activation, hidden units, encoder (whether it has one),
weights (how many), alpha, iterations, explained and explained_by_pca (shares of the variance),
noise_variance, objective (at the start and at the end; left out: no step was made) and hidden_error (of
the part that was hidden from the fit, of PCA and of the network; left out: nothing was); otherwise it is
null.

Keys of --json: data, model_file, model, rows, weight, features, components,
components_because, solver, solver_reason, noise_variance, noise_variance_unbiased (null
unless ppca of complete rows), noise_interval (of 95 % around the unbiased one; null unless
ppca of complete rows), log_likelihood (null when infinite or a fit was interrupted before
it was known), scaled (unit or pareto or range; null: features were not scaled), total_variance,
eigenvalues, explained_variance_ratio (both of the scaled features if they were), holes,
redundant (features left out when q was chosen; null: none), factors,
bayes, mixture, robust, clusters, sources, kernel, gplvm, network, converged, stop, iterations, passes, carried,
left_out, seconds.")]
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
    pub(crate) kernel: KernelFlags,
    #[command(flatten)]
    pub(crate) network: NetworkFlags,
    #[command(flatten)]
    pub(crate) curved: Curved,
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
    /// Seed of random starts: of the krylov solver, of k-means, of ica, and of factor analysis after its first
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = "Running")]
    pub(crate) seed: u64,
    /// When an iteration stops. em: log-likelihood per row that is left to gain [default: 1e-8]. krylov:
    /// residual relative to the largest variance [default: 1e-12]. Factor analysis: length of the gradient
    /// [default: 1e-8]. k-means: squared steps of the centres relative to the mean variance of a feature
    /// [default: until no row changes its cluster]. ica: largest entry of the gradient, with fastica the angle
    /// by which a step turns a source [default: 1e-7]. gplvm: mean gain of the last ten steps per observed cell
    /// [default: 1e-5]
    #[arg(long, value_name = "X", value_parser = args::tolerance, help_heading = "Running")]
    pub(crate) tol: Option<f64>,
    /// Most iterations of k-means and of the em, krylov and newton solvers [default: 1000], and of ica
    /// [default: 500]
    #[arg(long, value_name = "N", value_parser = args::positive, help_heading = "Running")]
    pub(crate) max_iter: Option<usize>,
}

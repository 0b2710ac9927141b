//! Rows that each observe other cells: their q × q factors side by side, one for each pattern of missing
//! values.

use super::factored::{relative_noise, typical_noise};
use super::{LinearGaussian, Noise};
use crate::blocks::{FeatureLoadings, IncompleteRows};
use crate::expectation::{Expectation, ScaledModel};
use crate::linalg::{Lanes, Mat, packed};

/// With fewer cells than latent variables the noise alone keeps M regular: this far below AᵀA it may be.
const LITTLE_NOISE: f64 = 1e-4;
/// Condition of AᵀA up to which its Cholesky factor gives the least-squares solution.
const CONDITION: f64 = 1e8;

/// The features of a model in units of the noise: e = D^-½ (x − μ) and A = D^-½ W, with noise s D.
pub(super) struct ScaledFeatures {
    /// μ.
    pub(super) mean: Vec<f64>,
    /// √d.
    pub(super) root: Vec<f64>,
    /// 1/√d.
    pub(super) scale: Vec<f64>,
    log_d: Option<Vec<f64>>, // ln d, unless all are 0
    loadings: FeatureLoadings,
    noise: f64,
}

impl ScaledFeatures {
    pub(super) fn new(model: &LinearGaussian) -> Self {
        let (p, q, w) = (model.n_features(), model.n_latent(), model.loadings());
        let noise = typical_noise(model);
        let d: Vec<f64> = (0..p).map(|j| relative_noise(model, noise, j)).collect();
        let root: Vec<f64> = d.iter().map(|d| d.sqrt()).collect();
        let scale = root.iter().map(|r| 1.0 / r).collect();
        let log_d = matches!(model.noise(), Noise::Diagonal(_)).then(|| d.iter().map(|d| d.ln()).collect());
        let a = Mat::from_fn(q, p, |k, j| w[(j, k)] / root[j]);
        let (mean, loadings) = (model.mean().to_vec(), FeatureLoadings::new(&a));
        Self { mean, root, scale, log_d, loadings, noise }
    }

    /// q.
    pub(super) fn q(&self) -> usize {
        self.loadings.q()
    }

    /// A.
    pub(super) fn loadings(&self) -> &FeatureLoadings {
        &self.loadings
    }

    /// s.
    pub(super) fn noise(&self) -> f64 {
        self.noise
    }

    /// Whether there are cells, and the expectation step is as good for them as it can be.
    pub(super) fn is_regular(&self, cells: usize, features: impl Iterator<Item = usize>) -> bool {
        let signal = || features.map(|j| self.loadings.squares()[j]).sum::<f64>();
        let enough = || cells >= self.q() || self.noise >= LITTLE_NOISE * signal();
        self.noise > 0.0 && cells > 0 && (self.loadings.graded(self.noise) || enough())
    }

    /// Whether the least-squares solution of each row follows from the Cholesky factor of G = AᵀA over its
    /// cells: tr G · tr G⁻¹ bounds the condition.
    pub(super) fn well_posed(&self, rows: &dyn IncompleteRows) -> Vec<bool> {
        if self.loadings.graded(self.noise) {
            return vec![false; rows.pattern().len()];
        }
        let grams = rows.grams(&self.loadings);
        let trace = |m: &Mat<f64>, k: usize| (0..self.q()).map(|i| m[(k, packed(i, i))]).sum::<f64>();
        let before: Vec<f64> = (0..grams.nrows()).map(|k| trace(&grams, k)).collect();
        let inverse = Lanes::new(grams, self.q(), 0.0).inverse(1.0);
        let good = |k: usize| before[k] * trace(&inverse, k) <= CONDITION;
        rows.pattern().iter().map(|k| good(*k)).collect()
    }
}

/// Some rows of a chunk and the posteriors of their latent variables.
pub(super) struct ManyPatterns<'a> {
    pub(super) features: &'a ScaledFeatures,
    /// Which rows of the chunk.
    pub(super) rows: Vec<usize>,
    step: Expectation<'a, dyn IncompleteRows + 'a>,
}

impl<'a> ManyPatterns<'a> {
    pub(super) fn new(
        features: &'a ScaledFeatures,
        rows: Vec<usize>,
        cells: &'a (dyn IncompleteRows + 'a),
    ) -> Self {
        let model = ScaledModel { loadings: &features.loadings, noise: features.noise, uncertainty: None };
        Self { features, rows, step: Expectation::reproducible(model, cells) }
    }

    /// Their cells.
    pub(super) fn cells(&self) -> &'a (dyn IncompleteRows + 'a) {
        self.step.rows()
    }

    /// The pattern of each row.
    pub(super) fn pattern(&self) -> &[usize] {
        self.step.rows().pattern()
    }

    /// Posterior means (rows × q).
    pub(super) fn latent(&self) -> &Mat<f64> {
        self.step.mean()
    }

    /// Number of observed cells of each row.
    pub(super) fn observed(&self) -> Vec<usize> {
        let of_pattern = self.step.rows().observed();
        self.pattern().iter().map(|k| of_pattern[*k]).collect()
    }

    /// Squared Mahalanobis distance of each row.
    pub(super) fn mahalanobis(&self) -> Vec<f64> {
        self.step.mahalanobis(&self.step.squared_residuals())
    }

    /// Log density of each row.
    pub(super) fn log_density(&self) -> Vec<f64> {
        self.log_density_at(&self.mahalanobis())
    }

    /// The same at other distances: that of e, and −½ log |D| over the observed cells.
    pub(super) fn log_density_at(&self, distances: &[f64]) -> Vec<f64> {
        let mut densities = self.step.log_densities(distances);
        if let Some(log_d) = &self.features.log_d {
            let of_pattern = self.step.rows().sums(log_d);
            densities.iter_mut().zip(self.pattern()).for_each(|(l, k)| *l -= 0.5 * of_pattern[*k]);
        }
        densities
    }

    /// Roots R of the posterior covariances RRᵀ, one column for each pattern (q² × patterns).
    pub(super) fn roots(&self) -> Mat<f64> {
        self.step.roots()
    }

    /// Draws of the latent variables from standard normals, one of each for each row (rows × q).
    pub(super) fn draw(&self, normals: Mat<f64>) -> Mat<f64> {
        self.step.draws(normals)
    }

    /// The least-squares solutions G⁻¹Aᵀe of rows for which they are well posed (rows × q).
    pub(super) fn least_squares(&self) -> Mat<f64> {
        let grams = self.step.rows().grams(&self.features.loadings);
        Lanes::new(grams, self.features.q(), 0.0).solved(self.pattern(), self.step.projections())
    }

    /// T² and SPE of each row.
    ///
    /// T² = zᵀ (I + s G⁻¹)⁻¹ z of least-squares coordinates z is their product with the posterior means M⁻¹G
    /// z.
    pub(super) fn t2_spe(&self) -> (Vec<f64>, Vec<f64>) {
        let (z, root) = (self.least_squares(), Some(&self.features.root[..]));
        let spe = self.step.rows().squared_residuals(&self.features.loadings, &z, root);
        (row_products(&z, self.latent()), spe)
    }
}

/// aᵢᵀbᵢ of each row.
fn row_products(a: &Mat<f64>, b: &Mat<f64>) -> Vec<f64> {
    let mut out = vec![0.0; a.nrows()];
    for k in 0..a.ncols() {
        let terms = a.col_as_slice(k).iter().zip(b.col_as_slice(k));
        out.iter_mut().zip(terms).for_each(|(o, (a, b))| *o += a * b);
    }
    out
}

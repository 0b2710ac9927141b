//! Rows that each have other cells: their q × q factors side by side, one lane for each different set of features.

use super::kernel::{or_beyond, relative_noise, typical_noise};
use super::listed::Listed;
use super::{LinearGaussian, Noise};
use crate::blocks::{FeatureLoadings, HoleyRows, ListedRows};
use crate::data::ObservedRows;
use crate::linalg::{Lanes, Mat, packed};

/// With fewer cells than latent variables the noise alone keeps M regular: this far below AᵀA it may be.
const LITTLE_NOISE: f64 = 1e-4;
/// Condition of AᵀA up to which its Cholesky factor gives the least-squares solution.
const CONDITION: f64 = 1e8;

/// What a model says of each feature, in units of the noise: e = D^-½ (x − μ) and A = D^-½ W.
pub(super) struct Features {
    /// μ.
    mean: Vec<f64>,
    /// √d.
    root: Vec<f64>,
    /// ln d, unless all are 0.
    log_d: Option<Vec<f64>>,
    /// A.
    loadings: FeatureLoadings,
    /// Lengths of the columns of Aᵀ, squared.
    square: Vec<f64>,
    /// s.
    noise: f64,
}

impl Features {
    pub(super) fn new(model: &LinearGaussian) -> Self {
        let (p, q, w) = (model.n_features(), model.n_latent(), model.loadings());
        let noise = typical_noise(model);
        let d: Vec<f64> = (0..p).map(|j| relative_noise(model, noise, j)).collect();
        let root: Vec<f64> = d.iter().map(|d| d.sqrt()).collect();
        let log_d = matches!(model.noise(), Noise::Diagonal(_)).then(|| d.iter().map(|d| d.ln()).collect());
        let a = Mat::from_fn(q, p, |k, j| w[(j, k)] / root[j]);
        let square = a.col_iter().map(|a| a.squared_norm_l2()).collect();
        Self { mean: model.mean().to_vec(), root, log_d, loadings: FeatureLoadings::new(&a), square, noise }
    }

    /// q.
    pub(super) fn q(&self) -> usize {
        self.loadings.q()
    }

    /// Listed rows as scaled deviations.
    pub(super) fn listed<'a>(&self, cells: ObservedRows<'a>, rows: &[Listed]) -> ListedRows<'a> {
        ListedRows::new(cells, rows.iter().map(|r| r.at), self.mean[..].into(), &self.root)
    }

    /// Whether there are features, and the Cholesky factor of s I + AᵀA over them is as good as it can be.
    pub(super) fn regular(&self, count: usize, columns: impl Iterator<Item = usize>) -> bool {
        let signal = || columns.map(|j| self.square[j]).sum::<f64>();
        self.noise > 0.0 && count > 0 && (count >= self.q() || self.noise >= LITTLE_NOISE * signal())
    }
}

/// Some rows of a chunk and the posteriors of their latent variables.
pub(super) struct Patchy<'a> {
    features: &'a Features,
    /// Which rows of the chunk.
    pub(super) rows: Vec<usize>,
    cells: &'a dyn HoleyRows,
    factors: Lanes,        // of s I + AᵀA of each pattern
    projections: Mat<f64>, // Aᵀe (rows × q)
    latent: Mat<f64>,      // (rows × q)
}

impl<'a> Patchy<'a> {
    pub(super) fn new(features: &'a Features, rows: Vec<usize>, cells: &'a dyn HoleyRows) -> Self {
        let factors = Lanes::new(cells.grams(&features.loadings), features.q(), features.noise);
        let projections = cells.projections(&features.loadings);
        let latent = factors.solved(cells.pattern(), &projections);
        Self { features, rows, cells, factors, projections, latent }
    }

    /// The pattern of each row.
    pub(super) fn pattern(&self) -> &[usize] {
        self.cells.pattern()
    }

    /// Posterior means (rows × q).
    pub(super) fn latent(&self) -> &Mat<f64> {
        &self.latent
    }

    /// Number of observed cells of each row.
    pub(super) fn observed(&self) -> Vec<usize> {
        let of_pattern = self.cells.observed();
        self.pattern().iter().map(|k| of_pattern[*k]).collect()
    }

    /// log |C| of each row: log |D| + (observed − q) log s + log |M|.
    pub(super) fn log_det(&self) -> Vec<f64> {
        let (q, log_s) = (self.features.q() as f64, self.features.noise.ln());
        let of_m = self.factors.log_det();
        let of_d = match &self.features.log_d {
            Some(log_d) => self.cells.sums(log_d),
            None => vec![0.0; of_m.len()],
        };
        let parts = self.cells.observed().iter().zip(of_d).zip(of_m);
        let of_pattern: Vec<f64> = parts.map(|((k, d), m)| d + (*k as f64 - q) * log_s + m).collect();
        self.pattern().iter().map(|k| of_pattern[*k]).collect()
    }

    /// ‖e − Az‖²/s + ‖z‖² of each row.
    pub(super) fn mahalanobis(&self) -> Vec<f64> {
        let rest = self.cells.squared_residuals(&self.features.loadings, &self.latent, None);
        let length = row_products(&self.latent, &self.latent);
        rest.iter().zip(length).map(|(r, z)| or_beyond(r / self.features.noise + z)).collect()
    }

    /// Posterior covariances s M⁻¹, one column for each pattern (q² × patterns).
    pub(super) fn covariances(&self) -> Mat<f64> {
        let q = self.features.q();
        let inverse = self.factors.inverse(self.features.noise).transpose().to_owned(); // (packed × patterns)
        let mut out = Mat::zeros(q * q, inverse.ncols());
        for k in 0..inverse.ncols() {
            let (from, to) = (inverse.col_as_slice(k), out.col_as_slice_mut(k));
            for j in 0..q {
                let entry = |i: usize| from[packed(i.max(j), i.min(j))];
                to[j * q..(j + 1) * q].iter_mut().enumerate().for_each(|(i, c)| *c = entry(i));
            }
        }
        out
    }

    /// Draws of the latent variables from standard normals, one of each for each row (rows × q).
    pub(super) fn draw(&self, mut normals: Mat<f64>) -> Mat<f64> {
        self.factors.select(self.pattern()).solve_transposed(&mut normals);
        let deviation = self.features.noise.sqrt();
        let draw = |i, k| self.latent[(i, k)] + deviation * normals[(i, k)];
        Mat::from_fn(normals.nrows(), normals.ncols(), draw)
    }

    /// Whether the least-squares solution of each row follows from the Cholesky factor of AᵀA: tr G · tr G⁻¹ bounds the
    /// condition.
    pub(super) fn well_posed(&self) -> Vec<bool> {
        let q = self.features.q();
        let grams = self.cells.grams(&self.features.loadings);
        let trace = |m: &Mat<f64>, k: usize| (0..q).map(|i| m[(k, packed(i, i))]).sum::<f64>();
        let before: Vec<f64> = (0..grams.nrows()).map(|k| trace(&grams, k)).collect();
        let inverse = Lanes::new(grams, q, 0.0).inverse(1.0);
        let good = |k: usize| before[k] * trace(&inverse, k) <= CONDITION;
        self.pattern().iter().map(|k| good(*k)).collect()
    }

    /// The least-squares solutions G⁻¹Aᵀe of rows for which they are well posed (rows × q).
    pub(super) fn least_squares(&self) -> Mat<f64> {
        let factors = Lanes::new(self.cells.grams(&self.features.loadings), self.features.q(), 0.0);
        factors.solved(self.pattern(), &self.projections)
    }

    /// T² and SPE of each row.
    ///
    /// T² = zᵀ (I + s G⁻¹)⁻¹ z of least-squares coordinates z is their product with the posterior means M⁻¹G z.
    pub(super) fn t2_spe(&self) -> (Vec<f64>, Vec<f64>) {
        let z = self.least_squares();
        let spe = self.cells.squared_residuals(&self.features.loadings, &z, Some(&self.features.root));
        (row_products(&z, &self.latent), spe)
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

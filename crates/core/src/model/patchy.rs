//! Rows that each have other cells: their q × q factors side by side, one lane for each different set of features.
//!
//! A row is the list of its observed features, so the work is in proportion to the observed cells. Each row is added up
//! by itself and in the order of its features: answers do not depend, to the last bit, on which rows stand beside it.

use super::LinearGaussian;
use super::groups::Listed;
use super::kernel::{or_beyond, relative_noise, typical_noise};
use crate::data::ObservedRows;
use crate::linalg::{Lanes, Mat, packed, packed_len, pair_products};

/// Rows that are worked on together.
pub(super) const LANES: usize = 64;
/// Packed products of loadings are kept when they are at most this many numbers.
const KEPT_PRODUCTS: usize = 1 << 20;
/// With fewer cells than latent variables the noise alone keeps M regular: this far below AᵀA it may be.
const LITTLE_NOISE: f64 = 1e-4;

/// What a model says of each feature, in units of the noise: e = D^-½ (x − μ) and A = D^-½ W.
pub(super) struct Features {
    mean: Vec<f64>,
    root: Vec<f64>,  // √d
    log_d: Vec<f64>, // ln d
    a: Mat<f64>,     // Aᵀ (q × p): those of a feature side by side
    square: Vec<f64>,
    pairs: Option<Mat<f64>>, // packed products of the columns of Aᵀ
    noise: f64,              // s
}

impl Features {
    pub(super) fn new(model: &LinearGaussian) -> Self {
        let (p, q, w) = (model.n_features(), model.n_latent(), model.loadings());
        let noise = typical_noise(model);
        let d: Vec<f64> = (0..p).map(|j| relative_noise(model, noise, j)).collect();
        let root: Vec<f64> = d.iter().map(|d| d.sqrt()).collect();
        let a = Mat::from_fn(q, p, |k, j| w[(j, k)] / root[j]);
        let square = a.col_iter().map(|a| a.squared_norm_l2()).collect();
        let pairs = (packed_len(q) * p <= KEPT_PRODUCTS).then(|| pair_products(a.as_ref()));
        Self {
            mean: model.mean().to_vec(),
            log_d: d.iter().map(|d| d.ln()).collect(),
            root,
            a,
            square,
            pairs,
            noise,
        }
    }

    fn q(&self) -> usize {
        self.a.nrows()
    }

    /// Whether the Cholesky factor of s I + AᵀA over these features is as good as it can be.
    pub(super) fn regular(&self, columns: &[u32]) -> bool {
        let signal = || columns.iter().map(|j| self.square[*j as usize]).sum::<f64>();
        self.noise > 0.0 && (columns.len() >= self.q() || self.noise >= LITTLE_NOISE * signal())
    }

    /// Appends the scaled deviations of a row.
    fn scale(&self, (columns, values): (&[u32], &[f64]), e: &mut Vec<f64>) {
        let scaled = |(j, x): (&u32, &f64)| (x - self.mean[*j as usize]) / self.root[*j as usize];
        e.extend(columns.iter().zip(values).map(scaled));
    }

    /// Adds aⱼaⱼᵀ of each feature to a packed matrix.
    #[inline(always)]
    fn add_products(&self, sum: &mut [f64], columns: &[u32]) {
        for &j in columns {
            match &self.pairs {
                Some(pairs) => add(sum, 1.0, pairs.col_as_slice(j as usize)),
                None => {
                    let a = self.a.col_as_slice(j as usize);
                    (0..a.len()).for_each(|i| add(&mut sum[packed(i, 0)..], a[i], &a[..=i]));
                }
            }
        }
    }

    /// Adds aⱼ eⱼ of each feature.
    #[inline(always)]
    fn add_projections(&self, sum: &mut [f64], columns: &[u32], e: &[f64]) {
        columns.iter().zip(e).for_each(|(j, e)| add(sum, *e, self.a.col_as_slice(*j as usize)));
    }

    /// ‖e − A z‖² over these features.
    #[inline(always)]
    fn squared_residual(&self, columns: &[u32], e: &[f64], z: &[f64]) -> f64 {
        let fitted = |j: u32| self.a.col_as_slice(j as usize).iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        columns.iter().zip(e).map(|(j, e)| (e - fitted(*j)).powi(2)).sum()
    }
}

#[inline(always)]
fn add(sum: &mut [f64], factor: f64, terms: &[f64]) {
    sum.iter_mut().zip(terms).for_each(|(s, t)| *s += factor * t);
}

/// Some rows of a chunk, those that have the same features side by side, and the posteriors of their latent variables.
pub(super) struct Patchy<'a> {
    features: &'a Features,
    /// Which rows of the chunk.
    pub(super) rows: Vec<usize>,
    /// The pattern of each row.
    pub(super) pattern: Vec<usize>,
    columns: Vec<&'a [u32]>, // of each row
    starts: Vec<usize>,
    e: Vec<f64>,      // row after row
    factors: Lanes,   // of s I + AᵀA of each pattern
    latent: Mat<f64>, // (rows × q)
}

impl<'a> Patchy<'a> {
    /// Of listed rows, at most [`LANES`] of them.
    pub(super) fn new(features: &'a Features, cells: ObservedRows<'a>, listed: &[Listed]) -> Self {
        let columns: Vec<&[u32]> = listed.iter().map(|r| cells.row(r.at).0).collect();
        let (pattern, firsts) = runs(&columns);
        let (mut starts, mut e) = (vec![0], Vec::new());
        for r in listed {
            features.scale(cells.row(r.at), &mut e);
            starts.push(e.len());
        }
        let q = features.q();
        let grams = gather(&firsts, packed_len(q), |sum, i| features.add_products(sum, columns[*i]));
        let factors = Lanes::new(grams, q, features.noise);
        let rows = listed.iter().map(|r| r.row).collect();
        let mut block =
            Self { features, rows, pattern, columns, starts, e, factors, latent: Mat::zeros(0, 0) };
        block.latent = block.solved();
        block
    }

    fn e(&self, i: usize) -> &[f64] {
        &self.e[self.starts[i]..self.starts[i + 1]]
    }

    /// M⁻¹Aᵀe of each row (rows × q).
    fn solved(&self) -> Mat<f64> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let mut z = gather(&all, self.features.q(), |sum, i| {
            self.features.add_projections(sum, self.columns[*i], self.e(*i));
        });
        self.of_rows().as_ref().unwrap_or(&self.factors).solve(&mut z);
        z
    }

    /// A factor for each row, when rows share some.
    fn of_rows(&self) -> Option<Lanes> {
        (self.factors.lanes() < self.rows.len()).then(|| self.factors.select(&self.pattern))
    }

    /// Posterior means (rows × q).
    pub(super) fn latent(&self) -> &Mat<f64> {
        &self.latent
    }

    /// Number of observed cells of each row.
    pub(super) fn observed(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|c| c.len())
    }

    /// log |C| of each row: log |D| + (observed − q) log s + log |M|.
    pub(super) fn log_det(&self) -> Vec<f64> {
        let (q, log_s) = (self.features.q() as f64, self.features.noise.ln());
        let of_m = self.factors.log_det();
        let of_d = |columns: &[u32]| columns.iter().map(|j| self.features.log_d[*j as usize]).sum::<f64>();
        let all = self.columns.iter().zip(&self.pattern);
        all.map(|(c, pattern)| of_d(c) + (c.len() as f64 - q) * log_s + of_m[*pattern]).collect()
    }

    /// ‖e − Az‖²/s + ‖z‖² of each row.
    pub(super) fn mahalanobis(&self) -> Vec<f64> {
        let arch = pulp::Arch::new();
        let distance = |i: usize| {
            let z: Vec<f64> = self.latent.row(i).iter().copied().collect();
            let rest = arch.dispatch(|| self.features.squared_residual(self.columns[i], self.e(i), &z));
            or_beyond(rest / self.features.noise + z.iter().map(|z| z * z).sum::<f64>())
        };
        (0..self.rows.len()).map(distance).collect()
    }

    /// Posterior covariances s M⁻¹, one column for each pattern (q² × patterns).
    pub(super) fn covariances(&self) -> Mat<f64> {
        let q = self.features.q();
        let inverse = self.factors.inverse(self.features.noise);
        Mat::from_fn(q * q, inverse.nrows(), |k, pattern| {
            let (i, j) = (k % q, k / q);
            inverse[(pattern, packed(i.max(j), i.min(j)))]
        })
    }

    /// Draws of the latent variables from standard normals, one of each for each row (rows × q).
    pub(super) fn draw(&self, mut normals: Mat<f64>) -> Mat<f64> {
        self.of_rows().as_ref().unwrap_or(&self.factors).solve_transposed(&mut normals);
        let deviation = self.features.noise.sqrt();
        Mat::from_fn(normals.nrows(), normals.ncols(), |i, k| {
            self.latent[(i, k)] + deviation * normals[(i, k)]
        })
    }
}

/// Numbers runs of the same columns: the run of each row, and the first row of each run.
fn runs(columns: &[&[u32]]) -> (Vec<usize>, Vec<usize>) {
    let (mut run, mut firsts) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
    for (i, c) in columns.iter().enumerate() {
        if i == 0 || columns[i - 1] != *c {
            firsts.push(i);
        }
        run.push(firsts.len() - 1);
    }
    (run, firsts)
}

/// Sums of `width` numbers, one row for each item.
fn gather<T>(items: &[T], width: usize, add: impl Fn(&mut [f64], &T)) -> Mat<f64> {
    let mut out = Mat::zeros(items.len(), width);
    let mut sum = vec![0.0; width];
    let arch = pulp::Arch::new();
    for (at, item) in items.iter().enumerate() {
        sum.fill(0.0);
        arch.dispatch(|| add(&mut sum, item));
        sum.iter().enumerate().for_each(|(k, s)| out[(at, k)] = *s);
    }
    out
}

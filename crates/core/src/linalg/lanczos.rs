//! The leading eigenpairs of a large symmetric matrix that has to be read from memory for each product: block Lanczos
//! iteration with a few vectors at a time.
//!
//! The basis Q grows by the images of its last vectors, made orthogonal to all before (\[GU77\]), so that AQ = QT + N C Eᵀ:
//! what the basis misses lies along the next block N, and residuals of Ritz pairs follow from the small matrices T and
//! C. Fewer columns are multiplied in all than with blocks that hold every wanted vector: 104 instead of 132 for ten
//! vectors of a kernel matrix, 152 to 160 instead of 352 for thirty.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::krylov::{LeadingEigen, orthonormal_outside, orthonormal_outside_along};
use super::{BlockKrylov, Eigen, Mat, MatRef, column_norm, product, symmetric_eigen};
use crate::error::Result;

/// Vectors that are multiplied at once: so few that the product takes as long as reading the matrix.
const WIDTH: usize = 8;
/// A residual below this, relative to the largest eigenvalue, is rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;
/// Eigenvalues that differ by less, relative to the largest, may be one that has several vectors.
const EQUAL: f64 = 1e-9;

struct BlockLanczos {
    wanted: usize,
    starts: usize, // vectors that were drawn: of an eigenvalue with more vectors than that, only so many are seen
    limit: usize,  // of columns of the basis
    basis: Mat<f64>, // Q (n × m), orthonormal, in the first columns
    filled: usize, // m
    projected: Mat<f64>, // T = QᵀAQ (m × m), lower triangle
    next: Mat<f64>, // N (n × b), orthonormal and outside Q
    rng: ChaCha8Rng,
}

/// The `wanted` largest eigenpairs of an n × n matrix that is known by its products with blocks of vectors, until more
/// products would not pay. Its numbers should be neither huge nor tiny.
pub(crate) fn leading_eigen_by_reading(
    (n, wanted, seed): (usize, usize, u64),
    multiply: impl Fn(MatRef<'_, f64>) -> Result<Mat<f64>>,
) -> Result<LeadingEigen> {
    let mut lanczos = BlockLanczos::new(n, wanted, seed);
    let mut columns = 0;
    // Products and bases of this size cost about as much as the whole decomposition.
    while columns < n && lanczos.next.ncols() > 0 {
        let image = multiply(lanczos.next.as_ref())?;
        columns += lanczos.next.ncols();
        if let Some(eigen) = lanczos.absorb(&image)? {
            return Ok(LeadingEigen { best: Some(eigen), done: true });
        }
    }
    Ok(LeadingEigen { best: None, done: false })
}

impl BlockLanczos {
    fn new(n: usize, wanted: usize, seed: u64) -> Self {
        let limit = (4 * wanted + 12 * WIDTH).min(n);
        let mut out = Self {
            wanted,
            starts: 0,
            limit,
            basis: Mat::zeros(n, limit),
            filled: 0,
            projected: Mat::zeros(limit, limit),
            next: Mat::zeros(n, 0),
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        out.draw();
        out
    }

    /// Q (n × m).
    fn basis(&self) -> MatRef<'_, f64> {
        self.basis.subcols(0, self.filled)
    }

    /// Puts new vectors at random beside the next block.
    fn draw(&mut self) {
        let (n, b) = (self.next.nrows(), self.next.ncols());
        let drawn = WIDTH.min(n - (self.filled + b).min(n));
        let mut block = Mat::zeros(n, b + drawn);
        block.as_mut().subcols_mut(0, b).copy_from(self.next.as_ref());
        for j in b..b + drawn {
            block.col_as_slice_mut(j).iter_mut().for_each(|x| *x = StandardNormal.sample(&mut self.rng));
        }
        self.next = orthonormal_outside(&block, self.basis());
        self.starts += drawn;
    }

    /// Takes A N (n × b); the wanted pairs where they are found.
    fn absorb(&mut self, image: &Mat<f64>) -> Result<Option<Eigen>> {
        let last = self.filled;
        let along = self.extend(image); // Qᵀ A N (m × b)
        let outside = orthonormal_outside_along(image, self.basis(), &along); // the next N (n × b′)
        let coupling = product(outside.transpose(), image.as_ref()); // C (b′ × b)
        let small = symmetric_eigen(self.projected.submatrix(0, 0, self.filled, self.filled))?;
        let wanted = self.wanted.min(self.filled);
        // ‖A Q y − θ Q y‖ = ‖C y_last‖
        let residuals = product(coupling.as_ref(), small.vectors.submatrix(last, 0, image.ncols(), wanted));
        let found = self.filled >= self.wanted && is_found(&small.values[..wanted], &residuals);
        let complete = self.filled == self.basis.nrows();
        self.next = outside;
        if complete || (found && self.copies(&small.values[..wanted]) < self.starts) {
            let vectors = product(self.basis(), small.vectors.subcols(0, wanted));
            return Ok(Some(Eigen { values: small.values[..wanted].to_vec(), vectors }));
        }
        if self.filled + self.next.ncols() > self.limit {
            self.restart(&small);
        }
        // All vectors that the starts lead to are there, and others are wanted.
        if found || self.filled + self.next.ncols() < self.wanted || self.next.ncols() == 0 {
            self.draw();
        }
        Ok(None)
    }

    /// Joins the block to the basis and borders T with Qᵀ A N (m × b), which is returned.
    fn extend(&mut self, image: &Mat<f64>) -> Mat<f64> {
        let (first, b) = (self.filled, self.next.ncols());
        self.filled += b;
        if self.filled > self.basis.ncols() {
            self.basis = enlarged(&self.basis, self.basis.nrows(), self.filled);
            self.projected = enlarged(&self.projected, self.filled, self.filled);
        }
        self.basis.as_mut().subcols_mut(first, b).copy_from(self.next.as_ref());
        let along = product(self.basis().transpose(), image.as_ref()); // (m × b)
        for (i, j) in (0..b).flat_map(|j| (0..self.filled).map(move |i| (i, j))) {
            let (row, column) = (i.max(first + j), i.min(first + j));
            self.projected[(row, column)] = along[(i, j)];
        }
        along
    }

    /// Goes on from the best Ritz vectors alone.
    fn restart(&mut self, small: &Eigen) {
        let keep = (self.wanted + WIDTH).min(self.filled);
        let ritz = product(self.basis(), small.vectors.subcols(0, keep));
        self.basis.as_mut().subcols_mut(0, keep).copy_from(ritz);
        let m = self.projected.nrows();
        self.projected = Mat::from_fn(m, m, |i, j| if i == j && i < keep { small.values[i] } else { 0.0 });
        self.filled = keep;
    }

    /// The largest number of eigenvalues that are equal, 0 aside. Where they are as many as the starts there may be
    /// more.
    fn copies(&self, values: &[f64]) -> usize {
        let size = values[0].abs();
        let is_equal = |a: &f64, b: &f64| (a - b).abs() <= EQUAL * size && a.abs() > EQUAL * size;
        values.chunk_by(is_equal).map(<[f64]>::len).max().unwrap_or(0)
    }
}

/// Whether residuals, the norms of columns, are small beside their eigenvalues.
fn is_found(values: &[f64], residuals: &Mat<f64>) -> bool {
    let largest = values[0].abs();
    (0..values.len()).all(|j| {
        let residual = column_norm(residuals.as_ref(), j);
        residual <= (ROUNDING * largest).max(BlockKrylov::TOLERANCE * values[j].abs())
    })
}

/// The same with more rows and columns, of zeros.
fn enlarged(matrix: &Mat<f64>, rows: usize, columns: usize) -> Mat<f64> {
    let mut out = Mat::zeros(rows, columns);
    out.as_mut().submatrix_mut(0, 0, matrix.nrows(), matrix.ncols()).copy_from(matrix);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H diag(values) H with Householder's H = I − 2/n 11ᵀ.
    fn with_spectrum(values: &[f64]) -> Mat<f64> {
        let n = values.len() as f64;
        let all = 4.0 * values.iter().sum::<f64>() / (n * n);
        let own = |i: usize, j: usize| if i == j { values[i] } else { 0.0 };
        Mat::from_fn(values.len(), values.len(), |i, j| own(i, j) - 2.0 / n * (values[i] + values[j]) + all)
    }

    fn finds(values: &[f64], wanted: usize) {
        let a = with_spectrum(values);
        let found =
            leading_eigen_by_reading((values.len(), wanted, 0), |b| Ok(product(a.as_ref(), b))).unwrap();
        let found = found.converged().expect("converges");
        assert_eq!(found.values.len(), wanted);
        let largest = values[0].abs();
        for (j, value) in values[..wanted].iter().enumerate() {
            assert!((found.values[j] - value).abs() < 1e-13 * largest, "{j}: {} {value}", found.values[j]);
            let image = &a * found.vectors.col(j);
            let error = (0..values.len()).map(|i| (image[i] - value * found.vectors[(i, j)]).abs());
            assert!(error.fold(0.0, f64::max) < 1e-11 * largest, "pair {j}");
        }
        let gram = product(found.vectors.transpose(), found.vectors.as_ref());
        let identity = |i: usize, j: usize| f64::from(u8::from(i == j));
        for (i, j) in (0..wanted).flat_map(|i| (0..wanted).map(move |j| (i, j))) {
            assert!((gram[(i, j)] - identity(i, j)).abs() < 1e-12, "{i} {j}");
        }
    }

    #[test]
    fn finds_the_leading_pairs_of_a_known_matrix() {
        let falling: Vec<f64> = (0..300).map(|i| 50.0 * 0.9_f64.powi(i)).collect();
        [1, 4, 12, 40].into_iter().for_each(|wanted| finds(&falling, wanted));
        let slowly: Vec<f64> = (0..400).map(|i| 1.0 / (1 + i) as f64).collect();
        finds(&slowly, 10);
    }

    /// A start of eight vectors sees eight vectors of an eigenvalue that has twenty.
    #[test]
    fn eigenvalues_with_more_vectors_than_a_block() {
        let mut values: Vec<f64> = (0..300).map(|i| 0.5 * 0.8_f64.powi(i)).collect();
        values.splice(0..20, [1.0; 20]);
        [5, 12, 20, 24].into_iter().for_each(|wanted| finds(&values, wanted));
        let mut flat = vec![1.0; 200];
        flat[199] = 0.0;
        [3, 30].into_iter().for_each(|wanted| finds(&flat, wanted));
    }

    #[test]
    fn rank_below_what_is_wanted() {
        let mut values = vec![0.0; 150];
        values[..3].copy_from_slice(&[3.0, 2.0, 2.0]);
        [2, 3, 12].into_iter().for_each(|wanted| finds(&values, wanted));
    }

    #[test]
    fn gives_up_where_the_whole_decomposition_is_cheaper() {
        let values: Vec<f64> = (0..100).map(|i| 1.0 + 1e-3 * (100 - i) as f64).collect();
        let a = with_spectrum(&values);
        let found = leading_eigen_by_reading((100, 30, 0), |b| Ok(product(a.as_ref(), b))).unwrap();
        if let Some(found) = found.converged() {
            found.values.iter().zip(&values).for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
        }
    }
}

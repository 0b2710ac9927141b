//! The leading eigenpairs of a large symmetric matrix that is known only by its products with blocks of
//! vectors.
//!
//! Block Krylov iteration with Rayleigh–Ritz \[MM15\], grown by the residuals of the Ritz vectors and
//! restarted from them when the basis gets too large: in exact arithmetic the same subspace as thick-restart
//! block Lanczos. The matrix is multiplied by whoever holds it: [`leading_eigen`] for a matrix in memory, a
//! pass over rows for data.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::basis::orthonormalise;
use super::{Cholesky, Eigen, Mat, MatRef, column_norm, product, symmetric_eigen};
use crate::error::Result;

/// A residual below this, relative to the largest eigenvalue, is rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;
/// Steps without progress after which residuals below the tolerance of the largest eigenvalue count as
/// rounding too.
const PATIENCE: usize = 3;

/// Products that only make a better start.
const WARM_UPS: usize = 3;
/// Blocks that the basis holds at most.
const BLOCKS: usize = 6;

/// The state of the iteration.
#[derive(Debug, Clone)]
pub(crate) struct BlockKrylov {
    wanted: usize,
    tolerance: f64,
    block: usize,
    limit: usize,        // of columns of the basis
    basis: Mat<f64>,     // Q (n × m), orthonormal
    image: Mat<f64>,     // A Q (n × m)
    projected: Mat<f64>, // T = QᵀAQ (m × m)
    next: Mat<f64>,      // the block to be multiplied (n × b)
    ritz: Mat<f64>,      // all Ritz vectors that a block holds (n × b)
    found: Option<Eigen>,
    best: f64,    // smallest residual so far
    stale: usize, // steps since it fell
}

/// What one product brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KrylovStep {
    /// Sum of the wanted Ritz values: grows towards the sum of the wanted eigenvalues.
    pub(crate) captured: f64,
    /// Largest residual of a wanted pair, relative to its eigenvalue.
    pub(crate) residual: f64,
    /// Whether the wanted pairs are found, or nothing is left to look for.
    pub(crate) done: bool,
}

impl BlockKrylov {
    /// Residual, relative to its own eigenvalue, at which a pair counts as found unless told.
    pub(crate) const TOLERANCE: f64 = 1e-12;

    /// Looks for the `wanted` largest eigenpairs of an n × n matrix.
    pub(crate) fn new(n: usize, wanted: usize, seed: u64) -> Self {
        // Oversampling: the gap that matters is to the first eigenvalue outside the block.
        let block = (wanted + 8 + wanted / 4).min(n);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let start = Mat::from_fn(n, block, |_, _| StandardNormal.sample(&mut rng));
        let empty = Mat::zeros(n, 0);
        Self {
            wanted,
            tolerance: Self::TOLERANCE,
            block,
            limit: (BLOCKS * block).min(n),
            next: orthonormal_outside(&start, empty.as_ref()),
            basis: empty.clone(),
            image: empty,
            projected: Mat::zeros(0, 0),
            ritz: Mat::zeros(n, 0),
            found: None,
            best: f64::INFINITY,
            stale: 0,
        }
    }

    /// Starts from the Ritz vectors of a neighbouring matrix, `wanted` or more.
    pub(crate) fn starting_from(mut self, ritz: &Mat<f64>) -> Self {
        if ritz.ncols() > 0 {
            self.next = orthonormal_outside(ritz, self.basis.as_ref());
        }
        self
    }

    /// The Ritz vectors of the last step: where a neighbouring matrix may start.
    pub(crate) fn ritz(&self) -> &Mat<f64> {
        &self.ritz
    }

    /// Counts a pair as found at another residual.
    pub(crate) fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Starts from the product of the matrix with the first block instead: worth it where products are cheap.
    ///
    /// A product that has lost directions (a matrix of low rank) is no better start, and is not taken.
    fn warm_up(&mut self, image: &Mat<f64>) {
        let start = orthonormal_outside(image, self.basis.as_ref());
        if start.ncols() == self.next.ncols() {
            self.next = start;
        }
    }

    /// The block whose product with the matrix is wanted next.
    pub(crate) fn next_block(&self) -> MatRef<'_, f64> {
        self.next.as_ref()
    }

    /// Takes the product of the matrix with [`Self::next_block`].
    pub(crate) fn absorb(&mut self, image: MatRef<'_, f64>) -> Result<KrylovStep> {
        self.extend(image);
        let small = symmetric_eigen(self.projected.as_ref())?;
        let keep = self.block.min(small.values.len());
        let y = small.vectors.subcols(0, keep); // (m × k)
        let ritz = product(self.basis.as_ref(), y); // (n × k)
        let ritz_image = product(self.image.as_ref(), y); // (n × k)
        let mut residual = ritz_image.clone();
        for j in 0..keep {
            let theta = small.values[j];
            let x = ritz.col(j);
            residual.col_mut(j).iter_mut().zip(x.iter()).for_each(|(r, x)| *r -= theta * x);
        }
        let step = self.judge(&small.values, &residual);
        self.plan_next(&small.values[..keep], &ritz, ritz_image, &residual, step.done);
        let wanted = self.wanted.min(keep);
        self.ritz = ritz.subcols(0, keep).to_owned();
        self.found = Some(Eigen {
            values: small.values[..wanted].to_vec(),
            vectors: ritz.subcols(0, wanted).to_owned(),
        });
        Ok(KrylovStep { done: step.done || self.next.ncols() == 0, ..step })
    }

    /// The best pairs so far.
    pub(crate) fn into_eigen(self) -> Option<Eigen> {
        self.found
    }

    /// Appends the block and its image to the basis, and borders T.
    fn extend(&mut self, image: MatRef<'_, f64>) {
        let old = self.basis.ncols();
        self.basis = beside(self.basis.as_ref(), self.next.as_ref());
        self.image = beside(self.image.as_ref(), image);
        let border = product(self.basis.transpose(), image); // (m × b)
        let before = std::mem::replace(&mut self.projected, Mat::zeros(0, 0));
        let m = self.basis.ncols();
        // Only the lower triangle is read: T below `old` rows is the transposed border.
        self.projected = Mat::from_fn(m, m, |i, j| match (i < old, j < old) {
            (true, true) => before[(i, j)],
            (false, true) => border[(j, i - old)],
            (_, false) => border[(i, j - old)],
        });
    }

    fn judge(&mut self, values: &[f64], residual: &Mat<f64>) -> KrylovStep {
        let wanted = self.wanted.min(residual.ncols());
        let largest = values[0].abs().max(f64::MIN_POSITIVE);
        let norms: Vec<f64> = (0..wanted).map(|j| column_norm(residual.as_ref(), j)).collect();
        let own = |(r, value): (&f64, &f64)| if *r <= ROUNDING * largest { 0.0 } else { r / value.abs() };
        let worst = norms.iter().zip(values).map(own).fold(0.0, f64::max);
        self.stale = if worst < 0.7 * self.best { 0 } else { self.stale + 1 };
        self.best = self.best.min(worst);
        let exhausted = self.stale >= PATIENCE && norms.iter().all(|r| *r <= Self::TOLERANCE * largest);
        KrylovStep {
            captured: values[..wanted].iter().sum(),
            residual: worst,
            done: wanted == self.wanted && (worst <= self.tolerance || exhausted),
        }
    }

    /// Chooses the next block from the residuals, restarting from the Ritz vectors when the basis is full.
    fn plan_next(
        &mut self,
        values: &[f64],
        ritz: &Mat<f64>,
        ritz_image: Mat<f64>,
        residual: &Mat<f64>,
        done: bool,
    ) {
        if done {
            self.next = Mat::zeros(residual.nrows(), 0);
            return;
        }
        let room = ritz.nrows() - self.basis.ncols();
        if room > 0 && self.basis.ncols() + self.block > self.limit.max(2 * self.block) {
            self.basis = ritz.clone();
            self.image = ritz_image;
            self.projected =
                Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 });
        }
        let room = ritz.nrows() - self.basis.ncols();
        let largest = values[0].abs();
        let open: Vec<usize> = (0..residual.ncols())
            .filter(|&j| column_norm(residual.as_ref(), j) > 1e-15 * largest)
            .take(room)
            .collect();
        let residual = Mat::from_fn(residual.nrows(), open.len(), |i, j| residual[(i, open[j])]);
        self.next = orthonormal_outside(&residual, self.basis.as_ref());
    }
}

/// `[a b]`.
fn beside(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), a.ncols() + b.ncols());
    out.as_mut().subcols_mut(0, a.ncols()).copy_from(a);
    out.as_mut().subcols_mut(a.ncols(), b.ncols()).copy_from(b);
    out
}

/// An orthonormal basis of what the columns add to the span of `basis`; directions lost to rounding are left
/// out.
pub(super) fn orthonormal_outside(columns: &Mat<f64>, basis: MatRef<'_, f64>) -> Mat<f64> {
    let along = product(basis.transpose(), columns.as_ref());
    orthonormal_outside_along(columns, basis, &along)
}

/// The same where BᵀC (m × b) of the basis B and the columns C is known.
pub(super) fn orthonormal_outside_along(
    columns: &Mat<f64>,
    basis: MatRef<'_, f64>,
    along: &Mat<f64>,
) -> Mat<f64> {
    let mut block = columns - product(basis, along.as_ref());
    divide_by_norms(&mut block, columns); // of what they were: the size of the rest tells whether it is rounding
    let along = product(basis.transpose(), block.as_ref()); // what rounding has left (m × b)
    block -= product(basis, along.as_ref());
    let mut out = orthonormal(block);
    // Once more against the basis: normalising may have blown up what was left of it.
    let along = product(basis.transpose(), out.as_ref());
    out -= product(basis, along.as_ref());
    out
}

/// An orthonormal basis of the columns, directions lost to rounding left out.
fn orthonormal(mut block: Mat<f64>) -> Mat<f64> {
    if orthonormal_by_cholesky(&mut block).is_some() {
        return block;
    }
    let kept: Vec<usize> = (0..block.ncols()).filter(|&j| orthonormalise(&mut block, j)).collect();
    Mat::from_fn(block.nrows(), kept.len(), |i, j| block[(i, kept[j])])
}

/// B ← B L⁻ᵀ with BᵀB = L Lᵀ, twice: whole products instead of column by column. `None` when columns are too
/// nearly dependent; the block is then some other basis of the same columns.
fn orthonormal_by_cholesky(block: &mut Mat<f64>) -> Option<()> {
    for _ in 0..2 {
        let gram = product(block.transpose(), block.as_ref());
        let factor = Cholesky::new(gram, "a Gram matrix").ok().filter(|l| l.smallest_pivot() > 1e-5)?;
        factor.solve_lower(block.transpose_mut());
    }
    Some(())
}

/// Divides each column by the norm of another, 0 aside.
fn divide_by_norms(block: &mut Mat<f64>, others: &Mat<f64>) {
    for j in 0..block.ncols() {
        let norm = column_norm(others.as_ref(), j);
        if norm > 0.0 {
            block.col_mut(j).iter_mut().for_each(|x| *x /= norm);
        }
    }
}

/// The `wanted` largest eigenpairs of a symmetric matrix (both triangles filled), or `None` when the
/// iteration does not pay and the whole decomposition should be done instead.
pub(crate) fn leading_eigen(matrix: MatRef<'_, f64>, wanted: usize, seed: u64) -> Result<Option<Eigen>> {
    let unit = super::power_of_two(super::max_abs_lower(matrix));
    let krylov = BlockKrylov::new(matrix.nrows(), wanted, seed);
    let found = leading_eigen_of(krylov, |block| {
        let mut image = product(matrix, block);
        image.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
        Ok(image)
    })?;
    Ok(found.converged().map(|e| rescaled(e, unit)))
}

/// The leading eigenpairs as far as they were found.
pub(crate) struct LeadingEigen {
    /// The best pairs.
    pub(crate) best: Option<Eigen>,
    /// Whether they are found.
    pub(crate) done: bool,
}

impl LeadingEigen {
    /// The pairs, if they are found.
    pub(crate) fn converged(self) -> Option<Eigen> {
        self.best.filter(|_| self.done)
    }
}

/// The same of a matrix that is known by its products with blocks of vectors (n × b), until more products would
/// not pay. Its numbers should be neither huge nor tiny.
pub(crate) fn leading_eigen_of(
    mut krylov: BlockKrylov,
    multiply: impl Fn(MatRef<'_, f64>) -> Result<Mat<f64>>,
) -> Result<LeadingEigen> {
    let n = krylov.next_block().nrows();
    for _ in 0..WARM_UPS {
        let image = multiply(krylov.next_block())?;
        krylov.warm_up(&image);
    }
    // Products and bases of this size cost about as much as the whole decomposition.
    let mut columns = 0;
    while columns < n {
        let image = multiply(krylov.next_block())?;
        columns += krylov.next_block().ncols();
        if krylov.absorb(image.as_ref())?.done {
            return Ok(LeadingEigen { best: krylov.into_eigen(), done: true });
        }
    }
    Ok(LeadingEigen { best: krylov.into_eigen(), done: false })
}

fn rescaled(mut eigen: Eigen, unit: f64) -> Eigen {
    eigen.values.iter_mut().for_each(|v| *v *= unit);
    eigen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Q diag(values) Qᵀ with a Householder Q.
    fn with_spectrum(values: &[f64]) -> Mat<f64> {
        let n = values.len();
        let h = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 / n as f64;
        Mat::from_fn(n, n, |i, j| (0..n).map(|k| h(i, k) * values[k] * h(j, k)).sum())
    }

    #[test]
    fn finds_the_leading_pairs_of_a_known_matrix() {
        let values: Vec<f64> =
            (0..120).map(|i| if i < 4 { 50.0 - 9.0 * i as f64 } else { 1.0 / (1 + i) as f64 }).collect();
        let a = with_spectrum(&values);
        let found = leading_eigen(a.as_ref(), 4, 0).unwrap().expect("converges");
        for (j, value) in values[..4].iter().enumerate() {
            assert!((found.values[j] - value).abs() < 1e-12 * 50.0);
            let image = &a * found.vectors.col(j);
            let error =
                (0..120).map(|i| (image[i] - value * found.vectors[(i, j)]).abs()).fold(0.0, f64::max);
            assert!(error < 1e-10, "pair {j}: {error}");
        }
    }

    #[test]
    fn gives_up_on_a_flat_spectrum() {
        let values: Vec<f64> = (0..80).map(|i| 1.0 + 1e-3 * (80 - i) as f64).collect();
        if let Some(found) = leading_eigen(with_spectrum(&values).as_ref(), 10, 0).unwrap() {
            found.values.iter().zip(&values).for_each(|(a, b)| assert!((a - b).abs() < 1e-10));
        }
    }

    #[test]
    fn exact_rank_below_what_is_wanted() {
        let mut values = vec![0.0; 60];
        values[..2].copy_from_slice(&[3.0, 2.0]);
        let found = leading_eigen(with_spectrum(&values).as_ref(), 5, 0).unwrap().expect("finishes");
        assert!((found.values[0] - 3.0).abs() < 1e-13 && (found.values[1] - 2.0).abs() < 1e-13);
        assert!(found.values[2..].iter().all(|v| v.abs() < 1e-13));
    }
}

//! Linear algebra: the only module that imports faer.
//!
//! Matrices are faer's. Kernels that run inside a chunk are sequential; whole-matrix work splits into a fixed
//! number of tasks, so that results never depend on how many threads there are.

mod basis;
mod cholesky;
mod eigen;
mod elementary;
mod graded;
mod krylov;
mod lanczos;
mod lanes;
mod latent;
mod line_search;
mod narrow;
mod quasi_newton;
mod roots;
pub(crate) mod serial;
mod square;
mod stiff;
mod svd;
mod tiles;

use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Par};

pub(crate) use basis::{
    complete_basis, descending, leading_entry, nearest_places, orthonormal_columns, orthonormality_error,
    standard_signs, unit_columns,
};
pub(crate) use cholesky::Cholesky;
pub use eigen::Eigen;
pub(crate) use eigen::{symmetric_eigen, symmetric_eigenvalues};
pub(crate) use elementary::{exp, exp_of, tanh, tanh_and_log_cosh, tanh_and_sum_of_log_cosh};
pub(crate) use faer::ColRef;
pub(crate) use faer::traits::RealField;
pub use faer::{Mat, MatMut, MatRef};
pub(crate) use graded::{
    Determined, covariance_eigen, determined_by_earlier, dot, graded_columns, graded_eigen,
    graded_eigen_of_rests, graded_right_singular, padded,
};
pub(crate) use krylov::{BlockKrylov, leading_eigen, leading_eigen_of};
pub(crate) use lanczos::leading_eigen_by_reading;
pub(crate) use lanes::{Lanes, packed, packed_len, pair_products};
pub(crate) use latent::{GradedFactor, LatentFactor};
pub(crate) use line_search::halved;
pub(crate) use quasi_newton::QuasiNewton;
pub(crate) use roots::{ObservedCell, RootLanes};
pub(crate) use square::{inverse, nearest_orthogonal};
pub(crate) use stiff::StiffLeastSquares;
pub(crate) use svd::right_singular;
pub(crate) use tiles::SymmetricTiles;

/// Tasks into which whole-matrix work is split, whatever the number of threads.
const TASKS: usize = 8;
/// Largest ratio of squared scales that sums and decompositions over all features can hold.
const COMPARABLE: f64 = 1e6;

/// How whole-matrix work is split: the same on every machine.
pub(crate) fn split(work: usize) -> Par {
    // Below this many multiplications the hand-over costs more than it brings.
    if work < 1 << 22 { Par::Seq } else { Par::rayon(TASKS) }
}

/// Zeros, also in the rows that faer adds so that columns are aligned.
///
/// Kernels load whole vectors and so compute on those rows too. What happens to lie there is thrown away, but
/// numbers below the normal range make the processor take a hundred cycles each: measured, a product of 6 ×
/// 64 by 64 × 50 took 44 µs for 3.
pub(crate) fn clean_zeros(nrows: usize, ncols: usize) -> Mat<f64> {
    const VECTOR: usize = 8;
    let mut out = Mat::zeros(nrows.next_multiple_of(VECTOR), ncols);
    out.truncate(nrows, ncols);
    out
}

/// `a · b`, split over threads when large.
pub(crate) fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    let par = split(a.nrows() * a.ncols() * b.ncols());
    faer::linalg::matmul::matmul(out.as_mut(), Accum::Replace, a, b, 1.0, par);
    out
}

/// `out ← out + alpha · a · b` on the calling thread: for kernels inside a chunk.
pub(crate) fn add_product<T: RealField>(out: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>, alpha: T) {
    faer::linalg::matmul::matmul(out, Accum::Add, a, b, alpha, Par::Seq);
}

/// `out ← a · b` on the calling thread.
pub(crate) fn set_product(out: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    faer::linalg::matmul::matmul(out, Accum::Replace, a, b, 1.0, Par::Seq);
}

/// Lower triangle of `out ← [out +] block ᵀ · block` on the calling thread.
pub(crate) fn lower_crossproduct<T: RealField>(out: MatMut<'_, T>, block: MatRef<'_, T>, add: bool) {
    triangular_matmul(
        out,
        BlockStructure::TriangularLower,
        if add { Accum::Add } else { Accum::Replace },
        block.transpose(),
        BlockStructure::Rectangular,
        block,
        BlockStructure::Rectangular,
        T::one_impl(),
        Par::Seq,
    );
}

/// The largest power of two not above `x`, kept well inside the exponent range; 1 for 0.
///
/// Multiplying by its reciprocal is exact, which makes it the right unit for scaling.
pub(crate) fn power_of_two(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return 1.0;
    }
    #[allow(clippy::cast_possible_truncation, reason = "exponents of doubles are small")]
    let exponent = (x.log2().floor() as i32).clamp(-1000, 1000);
    2f64.powi(exponent)
}

/// Below this, an eigenvalue of a covariance of such a shape is rounding.
///
/// The decomposition errs by p·ε; sums over n rows err by about √n·ε, because rounding goes either way. A
/// bound that grew with n itself would take a noise of 1e-12 of the signal for 0 as soon as there are 5000
/// rows.
pub(crate) fn negligible(rows: usize, features: usize, largest: f64) -> f64 {
    2.0 * (features as f64 + (rows as f64).sqrt()) * f64::EPSILON * largest
}

/// Whether squared scales, those of 0 aside, are so near each other that one plain decomposition can hold all
/// of them.
pub(crate) fn comparable(squares: impl Iterator<Item = f64>) -> bool {
    let range = |(least, most): (f64, f64), v: f64| (least.min(v), most.max(v));
    let (least, most) = squares.filter(|v| *v > 0.0).fold((f64::INFINITY, 0.0), range);
    most <= COMPARABLE * least
}

/// a + b as a rounded sum and what rounding has taken off it (Knuth).
pub(crate) fn exact_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Largest magnitude in the lower triangle.
pub(crate) fn max_abs_lower(a: MatRef<'_, f64>) -> f64 {
    (0..a.ncols()).flat_map(|j| (j..a.nrows()).map(move |i| (i, j))).fold(0.0, |m, ij| a[ij].abs().max(m))
}

/// Copies the lower triangle onto the upper one.
pub(crate) fn mirror_lower(a: &mut Mat<f64>) {
    for j in 0..a.ncols() {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
}

/// Euclidean norm of a column, safe for any scale that its square allows.
pub(crate) fn column_norm(a: MatRef<'_, f64>, j: usize) -> f64 {
    a.col(j).norm_l2()
}

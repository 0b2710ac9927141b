//! Least squares whose equations differ in scale by orders of magnitude ("stiff"), without normal equations.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::householder::{
    apply_block_householder_sequence_transpose_on_the_left_in_place_scratch as scratch_of_reflections,
    apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj as apply_reflections,
};
use faer::linalg::solvers::ColPivQr;
use faer::{Conj, Par};

use super::graded::large_rows_first;
use super::{Eigen, Mat, MatRef, complete_basis, graded_right_singular, padded, product};

/// min ‖e − Az‖ for A (p × q), and of its solutions the shortest.
///
/// Householder's reflections with the larger rows first and columns exchanged keep the scale of each row
/// \[CH98\]; they are applied to e as they were to A.
#[derive(Debug, Clone)]
pub(crate) struct StiffLeastSquares {
    sorted: Vec<usize>, // rows of A, larger ones first
    qr: ColPivQr<f64>,  // of A in the directions that it sees
    span: Mat<f64>,     // those, orthonormal (q × rank)
}

impl StiffLeastSquares {
    /// Of A, with the eigenvalues and vectors of AᵀA and their number that is not rounding.
    pub(crate) fn new(a: MatRef<'_, f64>) -> (Self, Eigen, usize) {
        let (p, q) = (a.nrows(), a.ncols());
        let mut eigen = padded(graded_right_singular(a, f64::EPSILON * p.max(q) as f64));
        let rank = eigen.values.iter().filter(|v| **v > 0.0).count();
        complete_basis(&mut eigen.vectors, rank);
        let span = eigen.vectors.subcols(0, rank).to_owned();
        let seen = product(a, span.as_ref()); // (p × rank)
        let sorted = large_rows_first(seen.as_ref());
        let qr = ColPivQr::new(Mat::from_fn(p, rank, |i, k| seen[(sorted[i], k)]).as_ref());
        (Self { sorted, qr, span }, eigen, rank)
    }

    /// z (q × rows) of each row of e (rows × p).
    pub(crate) fn solve(&self, e: MatRef<'_, f64>) -> Mat<f64> {
        let (rank, rows) = (self.span.ncols(), e.nrows());
        let (r, order) = (self.qr.R(), self.qr.P().arrays().0); // (A span)[sorted, order] = Q R
        let mut turned = Mat::from_fn(self.sorted.len(), rows, |i, row| e[(row, self.sorted[i])]);
        let (basis, coefficients) = (self.qr.Q_basis(), self.qr.Q_coeff());
        let scratch = scratch_of_reflections::<f64>(basis.nrows(), coefficients.nrows(), rows);
        let mut memory = MemBuffer::new(scratch);
        let stack = MemStack::new(&mut memory);
        apply_reflections(basis, coefficients, Conj::No, turned.as_mut(), Par::Seq, stack);
        let mut y = Mat::zeros(rank, rows);
        for row in 0..rows {
            for i in (0..rank).rev() {
                let known: f64 = (i + 1..rank).map(|k| r[(i, k)] * y[(order[k], row)]).sum();
                y[(order[i], row)] = (turned[(i, row)] - known) / r[(i, i)];
            }
        }
        product(self.span.as_ref(), y.as_ref())
    }
}

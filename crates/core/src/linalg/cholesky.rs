//! Cholesky factor of a small positive definite matrix: solves and log-determinant, never an inverse or a
//! determinant.

use faer::Par;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};

use super::{Mat, MatMut};
use crate::error::{Error, Result};

/// `A = L Lᵀ`.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    l: Mat<f64>, // lower triangle; the upper one is zero
}

impl Cholesky {
    /// Factors the matrix whose lower triangle is given; `what` names it in the error.
    pub(crate) fn new(mut a: Mat<f64>, what: &'static str) -> Result<Self> {
        let n = a.nrows();
        let scratch = cholesky_in_place_scratch::<f64>(n, Par::Seq, Default::default());
        cholesky_in_place(
            a.as_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        )
        .map_err(|LltError::NonPositivePivot { index }| Error::NotPositiveDefinite { what, index })?;
        for j in 0..n {
            for i in 0..j {
                a[(i, j)] = 0.0;
            }
        }
        Ok(Self { l: a })
    }

    /// The lower factor L.
    pub(crate) fn lower(&self) -> &Mat<f64> {
        &self.l
    }

    /// `b ← A⁻¹ b`.
    pub(crate) fn solve(&self, mut b: MatMut<'_, f64>) {
        solve_lower_triangular_in_place(self.l.as_ref(), b.as_mut(), Par::Seq);
        solve_upper_triangular_in_place(self.l.transpose(), b, Par::Seq);
    }

    /// `b ← L⁻¹ b`.
    pub(crate) fn solve_lower(&self, b: MatMut<'_, f64>) {
        solve_lower_triangular_in_place(self.l.as_ref(), b, Par::Seq);
    }

    /// `b ← L⁻ᵀ b`.
    pub(crate) fn solve_upper(&self, b: MatMut<'_, f64>) {
        solve_upper_triangular_in_place(self.l.transpose(), b, Par::Seq);
    }

    /// Smallest entry of the diagonal of L.
    pub(crate) fn smallest_pivot(&self) -> f64 {
        (0..self.l.nrows()).map(|i| self.l[(i, i)]).fold(f64::INFINITY, f64::min)
    }

    /// ‖L⁻¹‖², the sum of the squared entries: the trace of A⁻¹.
    pub(crate) fn inverse_size(&self) -> f64 {
        let n = self.l.nrows();
        let mut inverse = Mat::identity(n, n);
        self.solve_lower(inverse.as_mut());
        inverse.squared_norm_l2()
    }

    /// log |A|.
    pub(crate) fn log_det(&self) -> f64 {
        2.0 * (0..self.l.nrows()).map(|i| self.l[(i, i)].ln()).sum::<f64>()
    }
}

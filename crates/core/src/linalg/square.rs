//! Small square matrices: the inverse, and the nearest orthogonal matrix.

use faer::Par;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::{factor, inverse as inverted};

use super::svd::singular_vectors;
use super::{Mat, MatRef, product};
use crate::error::Result;

/// A⁻¹ of a small square matrix (LU with partial pivoting, on the calling thread); `None` when it is
/// singular.
///
/// For matrices whose inverse is itself the answer. Systems are solved by factors.
pub(crate) fn inverse(a: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let n = a.nrows();
    let (mut lu, mut out) = (a.to_owned(), Mat::zeros(n, n));
    let (mut order, mut back) = (vec![0_usize; n], vec![0_usize; n]);
    let scratch = factor::lu_in_place_scratch::<usize, f64>(n, n, Par::Seq, Default::default())
        .or(inverted::inverse_scratch::<usize, f64>(n, Par::Seq));
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    let (_, rows) =
        factor::lu_in_place(lu.as_mut(), &mut order, &mut back, Par::Seq, stack, Default::default());
    if (0..n).any(|i| lu[(i, i)] == 0.0 || !lu[(i, i)].is_finite()) {
        return None;
    }
    inverted::inverse(out.as_mut(), lu.as_ref(), lu.as_ref(), rows, Par::Seq, stack);
    Some(out)
}

/// The orthogonal matrix nearest to A in the sum of squares: UVᵀ for A = USVᵀ.
///
/// # Errors
/// When the decomposition does not converge.
pub(crate) fn nearest_orthogonal(a: MatRef<'_, f64>) -> Result<Mat<f64>> {
    let (u, v) = singular_vectors(a)?;
    Ok(product(u.as_ref(), v.transpose()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::orthonormality_error;

    #[test]
    fn the_inverse_undoes() {
        let a = Mat::from_fn(3, 3, |i, j| [[0.0, 2.0, 1.0], [1.0, 0.5, 0.0], [3.0, 0.0, -1.0]][i][j]);
        let back = product(inverse(a.as_ref()).unwrap().as_ref(), a.as_ref());
        (0..9).for_each(|k| {
            let (i, j) = (k / 3, k % 3);
            assert!((back[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-15);
        });
        assert!(inverse(Mat::zeros(2, 2).as_ref()).is_none());
    }

    #[test]
    fn a_stretched_turn_is_turned_back() {
        let turn = Mat::from_fn(2, 2, |i, j| [[0.6, -0.8], [0.8, 0.6]][i][j]);
        let stretch = Mat::from_fn(2, 2, |i, j| [[3.0, 1.0], [1.0, 2.0]][i][j]);
        let found = nearest_orthogonal(product(turn.as_ref(), stretch.as_ref()).as_ref()).unwrap();
        assert!(orthonormality_error(found.as_ref()) < 1e-15);
        assert!((&found - &turn).norm_max() < 1e-15);
    }
}

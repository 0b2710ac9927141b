//! Symmetric eigendecomposition, in descending order and safe for any scale.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};

use faer::Par;

use super::{Mat, MatMut, MatRef, max_abs_lower, power_of_two, split};
use crate::error::{Error, Result};

/// Eigenvalues in descending order with their vectors.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// Eigenvalues, descending.
    pub values: Vec<f64>,
    /// Unit eigenvectors in the columns, in the same order.
    pub vectors: Mat<f64>,
}

/// All eigenvalues and vectors of the symmetric matrix whose lower triangle is given.
pub(crate) fn symmetric_eigen(lower: MatRef<'_, f64>) -> Result<Eigen> {
    let n = lower.nrows();
    let mut vectors = Mat::zeros(n, n);
    // Small ones stay on one thread: 132 rows take 1.6 ms there, and waking others showed in the profile.
    let values = decompose(lower, Some(vectors.as_mut()), split(n * n * n / 4))?;
    // faer sorts ascending
    Ok(Eigen { values, vectors: vectors.reverse_cols().to_owned() })
}

/// The eigenvalues alone, descending, on the calling thread: 300 rows take a third of the time that vectors
/// take.
pub(crate) fn symmetric_eigenvalues(lower: MatRef<'_, f64>) -> Result<Vec<f64>> {
    decompose(lower, None, Par::Seq)
}

/// Eigenvalues, descending; vectors, when asked for, ascending.
fn decompose(lower: MatRef<'_, f64>, vectors: Option<MatMut<'_, f64>>, par: Par) -> Result<Vec<f64>> {
    let n = lower.nrows();
    if n == 0 {
        return Ok(Vec::new());
    }
    let unit = power_of_two(max_abs_lower(lower));
    let scaled = Mat::from_fn(n, n, |i, j| if i >= j { lower[(i, j)] / unit } else { 0.0 });
    let mut values = Diag::zeros(n);
    let wanted = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let scratch = self_adjoint_evd_scratch::<f64>(n, wanted, par, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    self_adjoint_evd(scaled.as_ref(), values.as_mut(), vectors, par, stack, Default::default())
        .map_err(|_| Error::Decomposition("symmetric eigendecomposition"))?;
    Ok((0..n).rev().map(|i| values.column_vector()[i] * unit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_by_two_by_hand() {
        // [[2, 1], [1, 2]] has eigenvalues 3 and 1 with vectors (1, ±1)/√2.
        for scale in [1.0, 1e300, 1e-300] {
            let a = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 * scale } else { scale });
            let e = symmetric_eigen(a.as_ref()).unwrap();
            assert!((e.values[0] / scale - 3.0).abs() < 1e-15);
            assert!((e.values[1] / scale - 1.0).abs() < 1e-15);
            assert!((e.vectors[(0, 0)] - e.vectors[(1, 0)]).abs() < 1e-15);
            let alone = symmetric_eigenvalues(a.as_ref()).unwrap();
            assert!(alone.iter().zip([3.0, 1.0]).all(|(a, b)| (a / scale - b).abs() < 1e-15));
        }
    }
}

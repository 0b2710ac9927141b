//! Singular values and vectors of a matrix.

use faer::Par;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};

use super::{Mat, MatRef, split};
use crate::error::{Error, Result};

/// Singular values (descending) and right singular vectors of `a` (n × p): min(n, p) of each.
pub(crate) fn right_singular(a: MatRef<'_, f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let (n, p) = (a.nrows(), a.ncols());
    let size = n.min(p);
    let mut values = Diag::zeros(size);
    let mut v = Mat::zeros(p, size); // (p × min(n, p))
    let par = split(n * p * size);
    let scratch =
        svd_scratch::<f64>(n, p, ComputeSvdVectors::No, ComputeSvdVectors::Thin, par, Default::default());
    svd(
        a,
        values.as_mut(),
        None,
        Some(v.as_mut()),
        par,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .map_err(|_| Error::Decomposition("singular value decomposition"))?;
    Ok(((0..size).map(|i| values.column_vector()[i]).collect(), v))
}

/// All left and right singular vectors of a small square matrix, on the calling thread.
pub(super) fn singular_vectors(a: MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>)> {
    let n = a.nrows();
    let (mut values, mut u, mut v) = (Diag::zeros(n), Mat::zeros(n, n), Mat::zeros(n, n));
    let full = ComputeSvdVectors::Full;
    let scratch = svd_scratch::<f64>(n, n, full, full, Par::Seq, Default::default());
    svd(
        a,
        values.as_mut(),
        Some(u.as_mut()),
        Some(v.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    )
    .map_err(|_| Error::Decomposition("singular value decomposition"))?;
    Ok((u, v))
}

//! Rotations in closed form: towards a target by least squares.

use crate::error::Result;
use crate::linalg::{Cholesky, Mat, MatRef, inverse, nearest_orthogonal, product, unit_columns};

/// The orthogonal T that brings AT nearest to B: UVᵀ for AᵀB = USVᵀ \[S66\].
pub(super) fn orthogonal(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Result<Mat<f64>> {
    nearest_orthogonal(product(a.transpose(), b).as_ref())
}

/// The oblique T for which AT⁻ᵀ is the regression of B on A up to the lengths of its columns \[HC62\], which
/// follow from diag TᵀT = I; `None` when A or the regression is singular.
pub(super) fn oblique(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let mut coefficients = product(a.transpose(), b); // AᵀB, then (AᵀA)⁻¹AᵀB (q × q)
    Cholesky::new(product(a.transpose(), a), "the loadings' crossproduct").ok()?.solve(coefficients.as_mut());
    Some(unit_columns(inverse(coefficients.as_ref())?.transpose().to_owned()))
}

/// Signed powers of loadings, in units of the largest: what promax aims at \[HW64\].
pub(super) fn powers(loadings: &Mat<f64>, power: f64) -> Mat<f64> {
    let largest = loadings.norm_max();
    Mat::from_fn(loadings.nrows(), loadings.ncols(), |i, j| {
        let x = loadings[(i, j)] / largest;
        x * x.abs().powf(power - 1.0)
    })
}

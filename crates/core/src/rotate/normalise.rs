//! Scales in which rotations work: rows of length 1 (Kaiser), or all rows divided by one power of two.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, power_of_two};

/// What the rows of loadings are divided by.
#[derive(Debug, Clone)]
pub(super) struct Normalisation {
    /// One for each row (p).
    pub(super) divisors: Vec<f64>,
    /// The divisor that all rows share; 1 when they differ.
    pub(super) common: f64,
}

impl Normalisation {
    /// The lengths of the rows \[K58\]: features of small communality count as much as others.
    ///
    /// # Errors
    /// When a row is zero.
    pub(super) fn kaiser(a: MatRef<'_, f64>) -> Result<Self> {
        let divisors: Vec<f64> = (0..a.nrows()).map(|i| length(a.subrows(i, 1))).collect();
        match divisors.iter().position(|r| *r == 0.0) {
            Some(i) => Err(Error::ZeroLoadings { feature: (i, None) }),
            None => Ok(Self { divisors, common: 1.0 }),
        }
    }

    /// A power of two, so that division is exact, that brings the rows' mean square near 1.
    pub(super) fn typical(a: MatRef<'_, f64>) -> Self {
        Self::equal(a.nrows(), power_of_two(length(a) / (a.nrows() as f64).sqrt()))
    }

    /// The same divisor for all rows.
    pub(super) fn equal(p: usize, divisor: f64) -> Self {
        Self { divisors: vec![divisor; p], common: divisor }
    }

    /// A matrix (p × q), each row divided.
    pub(super) fn apply(&self, a: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / self.divisors[i])
    }
}

/// Euclidean length of all cells, whatever their scale.
fn length(cells: MatRef<'_, f64>) -> f64 {
    let largest = cells.norm_max();
    if largest == 0.0 {
        return 0.0;
    }
    let square = |x: &f64| (x / largest).powi(2);
    largest * cells.col_iter().map(|c| c.iter().map(square).sum::<f64>()).sum::<f64>().sqrt()
}

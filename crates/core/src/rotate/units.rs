//! Units in which rotations work: rows of length 1 (Kaiser), or all rows by one power of two.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, power_of_two};

/// What loadings are divided by.
#[derive(Debug, Clone)]
pub(super) struct Units {
    /// One for each row (p).
    pub(super) rows: Vec<f64>,
    /// The unit of them all; 1 when rows differ.
    pub(super) whole: f64,
}

impl Units {
    /// The lengths of the rows \[K58\]: features of small communality count as much as others.
    ///
    /// # Errors
    /// When a row is zero.
    pub(super) fn kaiser(a: MatRef<'_, f64>) -> Result<Self> {
        let rows: Vec<f64> = (0..a.nrows()).map(|i| length(a.subrows(i, 1))).collect();
        match rows.iter().position(|r| *r == 0.0) {
            Some(i) => Err(Error::ZeroLoadings { feature: (i, None) }),
            None => Ok(Self { rows, whole: 1.0 }),
        }
    }

    /// A power of two, so that division is exact, that brings the rows' mean square near 1.
    pub(super) fn typical(a: MatRef<'_, f64>) -> Self {
        Self::equal(a.nrows(), power_of_two(length(a) / (a.nrows() as f64).sqrt()))
    }

    /// The same unit for all rows.
    pub(super) fn equal(p: usize, unit: f64) -> Self {
        Self { rows: vec![unit; p], whole: unit }
    }

    /// A matrix (p × q) in these units.
    pub(super) fn of(&self, a: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / self.rows[i])
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

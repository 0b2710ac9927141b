//! Loadings in units in which rotations work: rows of length 1 (Kaiser), or all rows by one power of two.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, power_of_two};

/// Loadings with each row divided by a number.
#[derive(Debug, Clone)]
pub(super) struct Scaled {
    pub(super) loadings: Mat<f64>, // (p × q)
    pub(super) rows: Vec<f64>,     // what rows were divided by (p)
}

impl Scaled {
    /// Rows of length 1 \[K58\]: features of small communality count as much as others.
    ///
    /// # Errors
    /// When a row is zero.
    pub(super) fn by_rows(a: MatRef<'_, f64>) -> Result<Self> {
        let rows: Vec<f64> = (0..a.nrows()).map(|i| length(a.subrows(i, 1))).collect();
        match rows.iter().position(|r| *r == 0.0) {
            Some(i) => Err(Error::ZeroLoadings { feature: (i, None) }),
            None => Ok(Self::new(a, rows)),
        }
    }

    /// The rows' mean square is about 1, and the division is exact.
    pub(super) fn as_a_whole(a: MatRef<'_, f64>) -> Self {
        let unit = power_of_two(length(a) / (a.nrows() as f64).sqrt());
        Self::new(a, vec![unit; a.nrows()])
    }

    fn new(a: MatRef<'_, f64>, rows: Vec<f64>) -> Self {
        Self { loadings: Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / rows[i]), rows }
    }

    /// Another matrix of the same shape in the same units.
    pub(super) fn likewise(&self, b: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(i, j)] / self.rows[i])
    }
}

/// Euclidean length of all cells, whatever their scale.
fn length(cells: MatRef<'_, f64>) -> f64 {
    match cells.norm_max() {
        0.0 => 0.0,
        largest => {
            let square = |c: &f64| (c / largest).powi(2);
            largest * cells.col_iter().map(|c| c.iter().map(square).sum::<f64>()).sum::<f64>().sqrt()
        }
    }
}

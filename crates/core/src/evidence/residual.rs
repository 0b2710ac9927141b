//! What given directions leave of the rows, measured row by row: no cancellation, however small it is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Accumulator, Travel, gather};
use crate::blocks::for_each_block;
use crate::control::Control;
use crate::data::{Chunk, RowSource};
use crate::error::Result;
use crate::linalg::serial;
use crate::linalg::{Mat, MatRef, add_product, set_product};

/// Sums over weighted rows d = x − mean and orthonormal directions U: Σ w (uᵢᵀd)² for each direction, and
/// Σ w ‖d − UUᵀd‖².
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Residual {
    mean: Vec<f64>,
    #[serde(with = "serial")]
    directions: Arc<Mat<f64>>, // U (p × q)
    along: Vec<f64>,
    left: f64,
}

impl Residual {
    fn add(&mut self, view: MatRef<'_, f64>, weights: Option<&[f64]>) {
        let directions = (*self.directions).as_ref();
        for_each_block(view, weights, &self.mean, 1.0, |e| {
            let mut t = Mat::zeros(e.nrows(), directions.ncols()); // coordinates (rows × q)
            set_product(t.as_mut(), e, directions);
            let mut r = e.transpose().to_owned(); // (p × rows)
            add_product(r.as_mut(), directions, t.transpose(), -1.0);
            self.left += r.squared_norm_l2();
            self.along.iter_mut().zip(t.col_iter()).for_each(|(a, t)| *a += t.squared_norm_l2());
        });
    }
}

impl Accumulator for Residual {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("residual"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        chunk.with_wide(|view| self.add(view, chunk.weights()));
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.left += other.left;
        self.along.iter_mut().zip(&other.along).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

/// Variance along each direction and mean squared distance from their plane, in one pass over the rows.
///
/// The trace of a covariance minus its leading eigenvalues is the same number, but with the rounding of the
/// largest of them: when little is left, this is the way to know how little.
pub(crate) fn measure(
    source: &dyn RowSource,
    mean: &[f64],
    directions: MatRef<'_, f64>,
    weight: f64,
    control: &Control<'_>,
) -> Result<(Vec<f64>, f64)> {
    let (directions, along) = (Arc::new(directions.to_owned()), vec![0.0; directions.ncols()]);
    let empty = || Residual {
        mean: mean.to_vec(),
        directions: Arc::clone(&directions),
        along: along.clone(),
        left: 0.0,
    };
    let sums = gather(source, empty, control)?;
    Ok((sums.along.iter().map(|a| a / weight).collect(), sums.left / weight))
}

//! A few rows that stand for many: they have the same weight, mean and covariance, and so say the same about
//! every normal model.

use crate::algorithm::resolution::whole;
use crate::data::{Block, Cells, Table};
use crate::error::Result;
use crate::evidence::Moments;
use crate::linalg::Mat;

/// Deviations from 0 beyond which a mean is too far for rows to stand around it.
const FAR: f64 = 1e10;

/// Two rows for each direction in which the rows of some moments vary, one on each side of the mean.
pub(super) struct StandIn {
    rows: Mat<f64>,
    weight: f64, // of each
}

impl StandIn {
    /// Whether rows around these means are as exact as the moments: beside means of more deviations their
    /// cells are rounded.
    pub(super) fn fits(moments: &Moments) -> bool {
        let deviation = |j: usize| (moments.scatter_lower()[(j, j)] / moments.weight()).sqrt();
        let near = |(j, mean): (usize, &f64)| deviation(j) == 0.0 || mean.abs() <= FAR * deviation(j);
        moments.mean().iter().enumerate().all(near)
    }

    /// For complete rows of these moments.
    pub(super) fn of(moments: &Moments) -> Result<Self> {
        let eigen = whole(moments)?;
        let along: Vec<usize> = (0..eigen.values.len()).filter(|k| eigen.values[*k] > 0.0).collect();
        let half = along.len().max(1) as f64;
        let cell = |i: usize, j: usize| {
            let (k, side) = (along[i / 2], [1.0, -1.0][i % 2]);
            moments.mean()[j] + side * (half * eigen.values[k]).sqrt() * eigen.vectors[(j, k)]
        };
        let rows = Mat::from_fn(2 * along.len(), moments.n_features(), cell);
        Ok(Self { rows, weight: 0.5 * moments.weight() / half })
    }

    /// As something to pass over.
    pub(super) fn table(&self) -> Result<Table<'_>> {
        let weights = vec![self.weight; self.rows.nrows()];
        Table::new(Cells::F64(Block::View(self.rows.as_ref()))).with_weights(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::data::{RowSource, Rows};
    use crate::evidence::gather;

    #[test]
    fn they_have_the_moments_that_they_stand_for() {
        let (n, p) = (40, 4);
        let wave = |i: usize, j: usize| ((i * (j + 2)) as f64 * 0.7).sin() * 3.0 + 5.0 * j as f64;
        let x = Mat::from_fn(n, p, |i, j| if j == 3 { 7.0 } else { wave(i, j) }); // one is constant
        let moments = |source: &dyn RowSource| gather(source, || Moments::empty(p), &Control::new()).unwrap();
        let all = moments(Rows::from(&x).source());
        let found = moments(&StandIn::of(&all).unwrap().table().unwrap());
        assert_eq!(found.rows(), 6);
        assert!((found.weight() - 40.0).abs() < 1e-13);
        found.mean().iter().zip(all.mean()).for_each(|(a, b)| assert!((a - b).abs() < 1e-13));
        assert!((found.covariance() - all.covariance()).norm_max() < 1e-13);
    }
}

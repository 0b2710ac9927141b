//! The covariance of mean-imputed rows times a block of vectors: a start for wide data with missing values.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::moments::check_features;
use super::{Accumulator, Travel};
use crate::blocks::for_each_masked;
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::serial::{self, shared};
use crate::linalg::{Mat, MatRef, add_product, set_product};

/// `Σ w y yᵀ · B` where y is a row's deviation from given means, 0 where a cell is missing.
///
/// Costs O(p·b) memory and, of observed cells only, O(b) time per cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FilledSketch {
    #[serde(with = "shared")]
    mean: Arc<Vec<f64>>,
    #[serde(with = "serial")]
    block: Arc<Mat<f64>>, // B (p × b)
    #[serde(with = "serial")]
    image: Mat<f64>, // (b × p)
}

impl FilledSketch {
    /// Of no rows.
    pub(crate) fn empty(mean: Arc<Vec<f64>>, block: Arc<Mat<f64>>) -> Self {
        let image = Mat::zeros(block.ncols(), block.nrows());
        Self { mean, block, image }
    }

    /// The scatter of the filled rows times the block (p × b).
    pub(crate) fn image(&self) -> MatRef<'_, f64> {
        self.image.transpose()
    }

    fn add_dense<T: Real>(&mut self, view: MatRef<'_, T>, weights: Option<&[f64]>) -> Result<()> {
        let rows = (0..view.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0)).collect();
        let (mean, block) = (Arc::clone(&self.mean), Arc::clone(&self.block));
        for_each_masked(view, rows, mean[..].into(), &vec![1.0; mean.len()], &mut |part| {
            let mut along = Mat::zeros(block.ncols(), part.rows.len()); // (b × rows)
            set_product(along.as_mut(), block.transpose(), part.deviations());
            for (at, &row) in part.rows.iter().enumerate() {
                let weight = weights.map_or(1.0, |w| w[row]);
                along.col_as_slice_mut(at).iter_mut().for_each(|a| *a *= weight);
            }
            add_product(self.image.as_mut(), along.as_ref(), part.deviations().transpose(), 1.0);
            Ok(())
        })
    }

    fn add_observed(&mut self, rows: ObservedRows<'_>, weights: Option<&[f64]>) {
        let mut along = vec![0.0; self.block.ncols()]; // yᵀB
        for i in 0..rows.shape().0 {
            let (columns, values) = rows.row(i);
            let weight = weights.map_or(1.0, |w| w[i]);
            for (b, along) in along.iter_mut().enumerate() {
                let block = self.block.col_as_slice(b);
                let term = |(j, x): (&u32, &f64)| (x - self.mean[*j as usize]) * block[*j as usize];
                *along = weight * columns.iter().zip(values).map(term).sum::<f64>();
            }
            for (j, x) in columns.iter().zip(values) {
                let (j, y) = (*j as usize, x - self.mean[*j as usize]);
                self.image.col_as_slice_mut(j).iter_mut().zip(&along).for_each(|(s, a)| *s += y * a);
            }
        }
    }
}

impl Accumulator for FilledSketch {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("filled_sketch"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.mean.len(), chunk.ncols())?;
        match chunk.cells() {
            Cells::Observed(rows) => {
                self.add_observed(*rows, chunk.weights()); // finite: they were checked when they came in
                return Ok(());
            }
            dense => with_view!(dense, view => self.add_dense(view, chunk.weights()))?,
        }
        let finite = self.image.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
        if finite { Ok(()) } else { Err(chunk.explain_infinite().unwrap_or(Error::Scale)) }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        check_features(self.mean.len(), other.mean.len())?;
        self.image += &other.image;
        Ok(())
    }
}

//! The covariance applied to a block of vectors, without ever forming it: what a Krylov iteration needs of
//! the rows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::center::Center;
use super::moments::check_features;
use super::{Accumulator, Travel};
use crate::blocks::{ShiftedSum, for_each_block, provisional_mean};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::linalg::serial;
use crate::linalg::{Mat, MatRef, add_product, set_product};

/// `S·B` for the scatter S of weighted rows and a given block B, with the exact trace of S.
///
/// Costs O(n·p·b) time and O(p·b) memory where the scatter itself would take O(p²).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sketch {
    #[serde(with = "serial")]
    block: Arc<Mat<f64>>, // B (p × b)
    center: Center,
    trace: f64,
    #[serde(with = "serial")]
    image: Mat<f64>, // S·B (p × b)
}

impl Sketch {
    /// Of no rows.
    pub fn empty(block: Arc<Mat<f64>>) -> Self {
        let (p, b) = (block.nrows(), block.ncols());
        Self { block, center: Center::empty(p), trace: 0.0, image: Mat::zeros(p, b) }
    }

    /// From given numbers: the block, rows of positive weight, total weight, mean, trace and image of the
    /// scatter.
    ///
    /// # Errors
    /// When the shapes disagree or a number is not finite.
    pub fn from_parts(
        block: Arc<Mat<f64>>,
        rows: usize,
        weight: f64,
        mean: Vec<f64>,
        trace: f64,
        image: Mat<f64>,
    ) -> Result<Self> {
        let shape = |m: &Mat<f64>| (m.nrows(), m.ncols());
        let finite = |m: &Mat<f64>| m.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
        let fits = shape(&block) == shape(&image) && block.nrows() == mean.len();
        let counted = weight.is_finite() && weight >= 0.0 && (rows > 0) == (weight > 0.0);
        let possible = counted && trace.is_finite() && trace >= 0.0;
        if !fits || !possible || !finite(&block) || !finite(&image) || !mean.iter().all(|m| m.is_finite()) {
            return Err(Error::Format("a sketch that no rows can have".into()));
        }
        Ok(Self { block, center: Center::exact(rows, weight, mean), trace, image })
    }

    /// The block B (p × b).
    pub fn block(&self) -> &Mat<f64> {
        &self.block
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.center.rows
    }

    /// Total weight.
    pub fn weight(&self) -> f64 {
        self.center.weight
    }

    /// Weighted mean.
    pub fn mean(&self) -> &[f64] {
        &self.center.mean
    }

    /// Trace of the scatter.
    pub fn trace(&self) -> f64 {
        self.trace
    }

    /// The scatter times the block (p × b).
    pub fn image(&self) -> MatRef<'_, f64> {
        self.image.as_ref()
    }

    fn of_view(block: &Arc<Mat<f64>>, view: MatRef<'_, f64>, weights: Option<&[f64]>) -> Self {
        let shift = provisional_mean(view, weights);
        let mut part = Self::empty(Arc::clone(block));
        let mut coordinates = Mat::zeros(0, 0);
        let sum = for_each_block(view, weights, &shift, 1.0, |rows| {
            part.trace += rows.squared_norm_l2();
            if coordinates.nrows() != rows.nrows() {
                coordinates = Mat::zeros(rows.nrows(), block.ncols());
            }
            set_product(coordinates.as_mut(), rows, block.as_ref().as_ref()); // (rows × b)
            add_product(part.image.as_mut(), rows.transpose(), coordinates.as_ref(), 1.0);
        });
        part.recentre(&sum, &shift);
        part
    }

    /// Moves from the shift to the mean.
    fn recentre(&mut self, sum: &ShiftedSum, shift: &[f64]) {
        let (center, offset) = Center::from_shifted(sum, shift);
        self.add_between(-center.weight, &offset);
        self.center = center;
    }

    /// Adds `factor · d dᵀ` to the scatter that this is a sketch of.
    fn add_between(&mut self, factor: f64, d: &[f64]) {
        if factor == 0.0 {
            return;
        }
        self.trace += factor * d.iter().map(|d| d * d).sum::<f64>();
        for j in 0..self.block.ncols() {
            let along: f64 = self.block.col(j).iter().zip(d).map(|(b, d)| b * d).sum();
            self.image.col_mut(j).iter_mut().zip(d).for_each(|(y, d)| *y += factor * along * d);
        }
    }
}

impl Accumulator for Sketch {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("sketch"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.block.nrows(), chunk.ncols())?;
        // In double precision always: the iteration cannot converge in single.
        let part = chunk.with_wide(|view| Self::of_view(&self.block, view, chunk.weights()));
        if !part.trace.is_finite() {
            return Err(chunk.explain_not_finite("a covariance").unwrap_or(Error::Scale));
        }
        self.merge(&part)
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        check_features(self.block.nrows(), other.block.nrows())?;
        if !Arc::ptr_eq(&self.block, &other.block) && self.block != other.block {
            let (name, value) = ("the block of a sketch", "another one".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        let between = self.center.merge(&other.center);
        self.trace += other.trace;
        self.image += &other.image;
        self.add_between(between.factor, &between.difference);
        Ok(())
    }
}

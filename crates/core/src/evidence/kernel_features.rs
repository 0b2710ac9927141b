//! Moments of rows in the feature space of landmarks, and the trace that the landmarks leave out.

use std::sync::Arc;

use super::moments::check_features;
use super::{Accumulator, Moments};
use crate::data::{Chunk, Order};
use crate::error::{Error, Result};
use crate::kernel::FeatureMap;

/// Moments of φ(x), and Σ w k(x, x): kernel PCA of any number of rows is PCA of these.
#[derive(Debug, Clone)]
pub struct KernelFeatures {
    map: Arc<FeatureMap>,
    moments: Moments, // of φ (m)
    diagonal: f64,    // Σ w k(x, x)
}

impl KernelFeatures {
    /// Of no rows.
    pub fn empty(map: Arc<FeatureMap>) -> Self {
        let moments = Moments::empty(map.n_features());
        Self { map, moments, diagonal: 0.0 }
    }

    /// From numbers that were kept.
    ///
    /// # Errors
    /// When they are not of as many features as there are landmarks, or the diagonal is not finite.
    pub(crate) fn from_parts(map: Arc<FeatureMap>, moments: Moments, diagonal: f64) -> Result<Self> {
        check_features(map.n_features(), moments.n_features())?;
        match diagonal.is_finite() {
            true => Ok(Self { map, moments, diagonal }),
            false => Err(Error::Scale),
        }
    }

    /// The map whose features they are of.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// Moments of the rows in the feature space (m).
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Σ w k(x, x): the trace of the kernel matrix of the rows.
    pub fn diagonal(&self) -> f64 {
        self.diagonal
    }

    /// Σ w (k(x, x) − ‖φ(x)‖²): the trace that the landmarks leave out.
    pub fn left_out(&self) -> f64 {
        let mean: f64 = self.moments.mean().iter().map(|m| m * m).sum();
        let held = self.moments.weight() * (self.moments.total_variance() + mean);
        let rounding = 1e-14 * self.diagonal.abs();
        Some(self.diagonal - held).filter(|left| *left > rounding).unwrap_or(0.0)
    }
}

impl Accumulator for KernelFeatures {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.map.n_inputs(), chunk.ncols())?;
        let (map, m) = (Arc::clone(&self.map), self.map.n_features());
        map.for_each_block(chunk, |first, features, diagonal| {
            let cells: Vec<f64> = features.col_iter().flat_map(|c| c.iter().copied()).collect();
            let rows = Chunk::from_rows(chunk.first_row() + first, cells, m, Order::Rows)?;
            let rows = match chunk.weights() {
                Some(weights) => rows.with_weights(&weights[first..first + diagonal.len()])?,
                None => rows,
            };
            let weight = |i: usize| chunk.weights().map_or(1.0, |w| w[first + i]);
            self.diagonal += diagonal.iter().enumerate().map(|(i, k)| weight(i) * k).sum::<f64>();
            self.moments.update(&rows)
        })
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if self.map.n_features() != other.map.n_features() {
            return Err(Error::FeatureCount {
                expected: self.map.n_features(),
                found: other.map.n_features(),
            });
        }
        if !Arc::ptr_eq(&self.map, &other.map) && !self.map.is_same(&other.map) {
            let (name, value) = ("the landmarks of evidence that is merged", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same, with the same kernel" });
        }
        self.diagonal += other.diagonal;
        self.moments.merge(&other.moments)
    }
}

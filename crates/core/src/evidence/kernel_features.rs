//! Moments of rows in the feature space of landmarks, and the trace that the landmarks leave out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::moments::{ShiftedProducts, check_features};
use super::{Accumulator, Moments, Travel};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::kernel::FeatureMap;
use crate::linalg::serial;

/// Moments of φ(x), and Σ w k(x, x): kernel PCA of any number of rows is PCA of these.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KernelFeatures {
    #[serde(with = "serial")]
    map: Arc<FeatureMap>,
    moments: Moments, // of φ, or of kernel values with the landmarks (m)
    mapped: bool,     // which of the two
    diagonal: f64,    // Σ w k(x, x)
}

impl KernelFeatures {
    /// Of no rows.
    pub fn empty(map: Arc<FeatureMap>) -> Self {
        let moments = Moments::empty(map.n_features());
        Self { mapped: !map.maps_moments(), map, moments, diagonal: 0.0 }
    }

    /// From numbers that were kept: moments of φ where they are `mapped`, otherwise of kernel values.
    ///
    /// # Errors
    /// When they are not of as many features as there are landmarks, or the diagonal is not finite.
    pub(crate) fn from_parts(
        map: Arc<FeatureMap>,
        (moments, mapped): (Moments, bool),
        diagonal: f64,
    ) -> Result<Self> {
        check_features(map.n_features(), moments.n_features())?;
        match diagonal.is_finite() {
            true => Ok(Self { map, moments, mapped, diagonal }),
            false => Err(Error::Scale),
        }
    }

    /// Moments as they are added up, and whether they are those of φ.
    pub(crate) fn sums(&self) -> (&Moments, bool) {
        (&self.moments, self.mapped)
    }

    /// The map whose features they are of.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// Moments of the rows in the feature space (m).
    pub fn moments(&self) -> Moments {
        if self.mapped { self.moments.clone() } else { self.moments.solved(self.map.factor()) }
    }

    /// Σ w k(x, x): the trace of the kernel matrix of the rows.
    pub fn diagonal(&self) -> f64 {
        self.diagonal
    }

    /// Σ w (k(x, x) − ‖φ(x)‖²): the trace that the landmarks leave out.
    pub fn left_out(&self) -> f64 {
        self.left_out_of(&self.moments())
    }

    /// The same, given the moments of φ.
    pub(crate) fn left_out_of(&self, moments: &Moments) -> f64 {
        let mean: f64 = moments.mean().iter().map(|m| m * m).sum();
        let held = moments.weight() * (moments.total_variance() + mean);
        let rounding = self.map.trace_rounding() * self.diagonal.abs();
        Some(self.diagonal - held).filter(|left| *left > rounding).unwrap_or(0.0)
    }
}

impl Accumulator for KernelFeatures {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("kernel_features"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.map.n_inputs(), chunk.ncols())?;
        let map = Arc::clone(&self.map);
        // One shift for the whole chunk: a merge costs m² as every row does.
        let mut sums: Option<ShiftedProducts<f64>> = None;
        map.for_each_block(chunk, |first, mut features, diagonal| {
            if self.mapped {
                map.factor().solve_lower(features.as_mut());
            }
            let rows = features.as_ref().transpose(); // (b × m)
            let weights = chunk.weights().map(|w| &w[first..first + rows.nrows()]);
            sums.get_or_insert_with(|| ShiftedProducts::around(rows, weights)).add(rows, weights);
            let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
            self.diagonal += diagonal.iter().enumerate().map(|(i, k)| weight(i) * k).sum::<f64>();
            Ok(())
        })?;
        let Some(sums) = sums else { return Ok(()) };
        let part = sums.finish();
        if part.is_finite() { self.moments.merge(&part) } else { Err(Error::Scale) }
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
        if self.mapped == other.mapped {
            return self.moments.merge(&other.moments);
        }
        (self.moments, self.mapped) = (self.moments(), true);
        self.moments.merge(&other.moments())
    }
}

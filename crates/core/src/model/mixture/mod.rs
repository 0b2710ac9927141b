//! Mixtures of linear-Gaussian models: of PPCA where the noise is isotropic, of factor analysers where it is
//! diagonal \[TB99b, GH96\].
//!
//! $p(x) = \sum_k \pi_k\, N(x \mid \mu_k, W_k W_k^\top + \Psi_k)$. Everything about a row goes through its
//! responsibilities $r_k = \pi_k p_k(x) / p(x)$, computed from the observed cells with the largest logarithm
//! taken off first.

mod density;
mod fill;
mod kind;
mod latent;

use serde::{Deserialize, Serialize};

use super::LinearGaussian;
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::{Mat, descending};

pub use kind::KIND;

/// Weights and components of a mixture: what a row is drawn from first, and what then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mixture {
    weights: Vec<f64>, // π (K), which add up to 1
    components: Vec<LinearGaussian>,
}

/// What is known of the rows of a chunk.
pub struct ChunkMemberships {
    /// Responsibility of each component for each row (rows × K).
    pub probabilities: Mat<f64>,
    /// Log density of each row, over its observed cells.
    pub log_density: Vec<f64>,
}

impl Mixture {
    /// Weights (K), made to add up to 1, and as many components of the same features.
    ///
    /// # Errors
    /// When there is none, their numbers or features disagree, some noise is isotropic and some diagonal, or
    /// a weight is not finite and positive.
    pub fn new(mut weights: Vec<f64>, components: Vec<LinearGaussian>) -> Result<Self> {
        if weights.is_empty() || weights.len() != components.len() {
            let (expected, found) = (components.len().max(1), weights.len());
            return Err(Error::Length { what: "weights of components", expected, found });
        }
        let p = components[0].n_features();
        if let Some(other) = components.iter().find(|c| c.n_features() != p) {
            return Err(Error::FeatureCount { expected: p, found: other.n_features() });
        }
        let isotropic = |c: &LinearGaussian| matches!(c.noise(), super::Noise::Isotropic(_));
        if components.iter().any(|c| isotropic(c) != isotropic(&components[0])) {
            let (name, value) = ("the noise of the components", "of two kinds".into());
            return Err(Error::Parameter { name, value, allowed: "isotropic in all, or diagonal in all" });
        }
        let total: f64 = weights.iter().sum();
        if !total.is_finite() || weights.iter().any(|w| w.is_nan() || *w <= 0.0) {
            let (name, value) = ("the weights of the components", format!("{weights:?}"));
            return Err(Error::Parameter { name, value, allowed: "finite and positive" });
        }
        // Weights of a mixture that was written come back to the last bit.
        if (total - 1.0).abs() > weights.len() as f64 * f64::EPSILON {
            weights.iter_mut().for_each(|w| *w /= total);
        }
        Ok(Self { weights, components })
    }

    /// π (K).
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The components (K).
    pub fn components(&self) -> &[LinearGaussian] {
        &self.components
    }

    /// K.
    pub fn n_components(&self) -> usize {
        self.weights.len()
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.components[0].n_features()
    }

    /// The same with components in descending weight; equal ones stay in their order.
    pub fn sorted(&self) -> Self {
        let order = self.order();
        Self {
            weights: order.iter().map(|k| self.weights[*k]).collect(),
            components: order.iter().map(|k| self.components[*k].clone()).collect(),
        }
    }

    /// The components in descending weight; equal ones stay in their order.
    pub(crate) fn order(&self) -> Vec<usize> {
        descending(&self.weights)
    }

    /// Responsibilities and log density of the rows of a chunk.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or a component has no density.
    pub fn memberships_of(&self, chunk: &Chunk<'_>) -> Result<ChunkMemberships> {
        let (n, k) = (chunk.nrows(), self.weights.len());
        let mut joint = Mat::zeros(n, k); // ln π + ln p of each component
        for (k, (weight, component)) in self.weights.iter().zip(&self.components).enumerate() {
            let (log_weight, densities) = (weight.ln(), component.log_density(chunk)?);
            joint.col_as_slice_mut(k).iter_mut().zip(densities).for_each(|(j, l)| *j = log_weight + l);
        }
        let mut log_density = vec![f64::NEG_INFINITY; n];
        for (i, log_density) in log_density.iter_mut().enumerate() {
            let largest = (0..k).fold(f64::NEG_INFINITY, |m, k| m.max(joint[(i, k)]));
            if largest == f64::NEG_INFINITY {
                // Beyond all numbers from every component: the row tells nothing about which.
                (0..k).for_each(|k| joint[(i, k)] = self.weights[k]);
                continue;
            }
            let sum: f64 = (0..k).map(|k| (joint[(i, k)] - largest).exp()).sum();
            *log_density = largest + sum.ln();
            (0..k).for_each(|k| joint[(i, k)] = (joint[(i, k)] - largest).exp() / sum);
        }
        Ok(ChunkMemberships { probabilities: joint, log_density })
    }

    /// Log density of the observed cells of each row. A row with none scores 0.
    ///
    /// # Errors
    /// As [`memberships_of`](Self::memberships_of).
    pub fn log_density(&self, rows: &dyn RowSource) -> Result<Vec<f64>> {
        Ok(map_chunks(rows, |chunk| Ok(self.memberships_of(chunk)?.log_density))?.concat())
    }

    /// The rows of a chunk by their most probable component, and the responsibilities.
    fn by_component(&self, chunk: &Chunk<'_>) -> Result<(Vec<Vec<usize>>, ChunkMemberships)> {
        let found = self.memberships_of(chunk)?;
        let mut rows = vec![Vec::new(); self.weights.len()];
        for i in 0..chunk.nrows() {
            rows[most_probable(&found.probabilities, i)].push(i);
        }
        Ok((rows, found))
    }
}

/// The component of largest responsibility for a row; the first of equal ones.
fn most_probable(probabilities: &Mat<f64>, row: usize) -> usize {
    (0..probabilities.ncols()).fold(0, |best, k| match probabilities[(row, k)] > probabilities[(row, best)] {
        true => k,
        false => best,
    })
}

//! The way back of the bound's derivatives to the positions of rows: one more pass.

use std::sync::Arc;

use super::bound::Collapsed;
use crate::data::Chunk;
use crate::error::Result;
use crate::evidence::{Accumulator, LatentPositions};
use crate::kernel::{PsiAdjoint, RowAdjoint};
use crate::linalg::{Mat, set_product};

/// Derivatives of the bound by the positions of rows, and what rows add to those by all else.
pub(crate) struct Slopes {
    at: Arc<LatentPositions>,
    bound: Arc<Collapsed>,
    pub(crate) sums: PsiAdjoint,
    parts: Vec<Part>,
}

/// Those of the rows of a chunk.
#[derive(Clone)]
struct Part {
    first: usize,
    mean: Vec<f64>,     // by μ, row after row
    variance: Vec<f64>, // by S, row after row
}

impl Slopes {
    pub(crate) fn empty(at: Arc<LatentPositions>, bound: Arc<Collapsed>) -> Self {
        let sums = at.psi.no_adjoint();
        Self { at, bound, sums, parts: Vec::new() }
    }

    /// Derivatives by μ and S of all rows (n · q each).
    pub(crate) fn by_positions(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.at.mean.len();
        let (mut mean, mut variance) = (vec![0.0; n], vec![0.0; n]);
        for part in &self.parts {
            let (from, to) =
                (part.first * self.at.n_latent(), part.first * self.at.n_latent() + part.mean.len());
            mean[from..to].copy_from_slice(&part.mean);
            variance[from..to].copy_from_slice(&part.variance);
        }
        (mean, variance)
    }
}

impl Accumulator for Slopes {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (at, bound, sums) = (Arc::clone(&self.at), Arc::clone(&self.bound), &mut self.sums);
        let q = at.n_latent();
        let size = chunk.nrows() * q;
        let mut part = Part { first: chunk.first_row(), mean: vec![0.0; size], variance: vec![0.0; size] };
        at.for_each_block(chunk, |first, block| {
            let b = block.rows.len();
            let (mean, variance) = at.of_rows(first, b);
            let psi = at.psi.of(mean, variance);
            let (mut one, mut two) = (Mat::zeros(psi.one.nrows(), b), Mat::zeros(psi.two.nrows(), b));
            set_product(one.as_mut(), bound.by_one.as_ref(), block.weighted.as_ref());
            set_product(two.as_mut(), bound.by_two.as_ref(), block.weights.as_ref());
            let dot = |w: &[f64]| w.iter().zip(&bound.by_zero).map(|(w, z)| w * z).sum();
            let zero: Vec<f64> = (0..b).map(|i| dot(block.weights.col_as_slice(i))).collect();
            let at_rows = (first - part.first) * q..(first - part.first + b) * q;
            let (by_mean, by_variance) = (&mut part.mean[at_rows.clone()], &mut part.variance[at_rows]);
            for (i, w) in block.rows.iter().enumerate() {
                for k in i * q..(i + 1) * q {
                    // of −KL = −½ Σ (μ² + S − log S − 1)
                    by_mean[k] = -w * mean[k];
                    by_variance[k] = 0.5 * w * (1.0 / variance[k] - 1.0);
                }
            }
            let by = RowAdjoint { zero: &zero, one, two, mean: by_mean, variance: by_variance };
            at.psi.pull_back(&psi, (mean, variance), by, Some(&mut *sums));
        })?;
        self.parts.push(part);
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.sums.add(&other.sums);
        self.parts.extend(other.parts.iter().cloned());
        Ok(())
    }
}

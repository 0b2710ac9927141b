//! Rows drawn from a model: endless samples that belong to a seed.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::LinearGaussian;
use super::questions::stack;
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Mat;
use crate::memory;

/// Rows drawn from one stream of the generator.
const SAMPLE_BLOCK: usize = 256;

impl LinearGaussian {
    /// Draws `n` rows (n × p): x = μ + W z + ε. The same seed gives the same rows on every machine.
    pub fn sample(&self, n: usize, seed: u64) -> Mat<f64> {
        self.sample_rows(0..n, seed)
    }

    /// Rows `range` of the endless sample that belongs to a seed, so that a long one can be drawn in parts.
    pub fn sample_rows(&self, range: Range<usize>, seed: u64) -> Mat<f64> {
        let parts: Vec<Mat<f64>> = blocks(&range).map(|b| self.sample_part(&range, seed, b)).collect();
        stack(self.n_features(), parts.iter().map(Mat::as_ref))
    }

    /// As [`sample`](Self::sample), under the eyes of a caller, and refused at once when memory is not
    /// enough.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) and [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn sample_with(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        memory::check("the sample", &[2, n, self.n_features()])?;
        let watched = |b| control.check().map(|()| self.sample_part(&(0..n), seed, b));
        let parts = blocks(&(0..n)).map(watched).collect::<Result<Vec<_>>>()?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
    }

    /// The rows of a block that are in the range.
    fn sample_part(&self, range: &Range<usize>, seed: u64, block: usize) -> Mat<f64> {
        let first = range.start.max(block * SAMPLE_BLOCK) - block * SAMPLE_BLOCK;
        let end = range.end.min((block + 1) * SAMPLE_BLOCK) - block * SAMPLE_BLOCK;
        self.sample_block(seed, block).subrows(first, end - first).to_owned()
    }

    /// Each block of rows has a stream of the generator to itself.
    fn sample_block(&self, seed: u64, block: usize) -> Mat<f64> {
        let (p, q) = (self.n_features(), self.n_latent());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(block as u64);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let z = Mat::from_fn(SAMPLE_BLOCK, q, |_, _| normal());
        let mut x =
            Mat::from_fn(SAMPLE_BLOCK, p, |_, j| self.mean()[j] + self.noise().of(j).sqrt() * normal());
        // Plain loops: a product's order of additions depends on the processor.
        for j in 0..p {
            for k in 0..q {
                let (x, z, w) = (x.col_as_slice_mut(j), z.col_as_slice(k), self.loadings()[(j, k)]);
                x.iter_mut().zip(z).for_each(|(x, z)| *x += w * z);
            }
        }
        x
    }
}

/// The blocks that rows of a range are in.
fn blocks(range: &Range<usize>) -> rayon::range::Iter<usize> {
    let end = if range.is_empty() { 0 } else { range.end.div_ceil(SAMPLE_BLOCK) };
    (range.start / SAMPLE_BLOCK..end).into_par_iter()
}

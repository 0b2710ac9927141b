//! Rows drawn from a model: endless samples that belong to a seed.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal};

use super::LinearGaussian;
use super::questions::stack;
use crate::control::Control;
use crate::error::Result;
use crate::linalg::Mat;
use crate::memory;
use crate::parallel;

/// Rows drawn from one stream of the generator.
pub(super) const SAMPLE_BLOCK: usize = 256;
/// Degrees of freedom of the t distribution that is normal.
pub(super) const NORMAL: f64 = f64::INFINITY;

impl LinearGaussian {
    /// Draws `n` rows (n × p): x = μ + W z + ε. The same seed gives the same rows on every machine.
    pub fn sample(&self, n: usize, seed: u64) -> Mat<f64> {
        self.sample_rows(0..n, seed)
    }

    /// Rows `range` of the endless sample that belongs to a seed, so that a long one can be drawn in parts.
    pub fn sample_rows(&self, range: Range<usize>, seed: u64) -> Mat<f64> {
        self.sample_student_rows(range, seed, NORMAL)
    }

    /// The same of the t distribution with so many degrees of freedom: x = μ + (W z + ε)/√u.
    pub(super) fn sample_student_rows(&self, range: Range<usize>, seed: u64, dof: f64) -> Mat<f64> {
        sample_in_blocks(self.n_features(), &range, |block| self.sample_block(seed, dof, block))
    }

    /// As [`sample`](Self::sample), under the eyes of a caller, and refused at once when memory is not
    /// enough.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) and [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn sample_with(&self, n: usize, seed: u64, control: &Control<'_>) -> Result<Mat<f64>> {
        self.sample_student_with(n, seed, NORMAL, control)
    }

    /// The same of the t distribution with so many degrees of freedom.
    pub(super) fn sample_student_with(
        &self,
        n: usize,
        seed: u64,
        dof: f64,
        control: &Control<'_>,
    ) -> Result<Mat<f64>> {
        sample_watched(self.n_features(), n, control, |block| self.sample_block(seed, dof, block))
    }

    /// Each block of rows has a stream of the generator to itself.
    fn sample_block(&self, seed: u64, dof: f64, block: usize) -> Mat<f64> {
        let (p, q) = (self.n_features(), self.n_latent());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(block as u64);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut z = Mat::from_fn(SAMPLE_BLOCK, q, |_, _| normal());
        let mut x = Mat::from_fn(SAMPLE_BLOCK, p, |_, j| self.noise().of(j).sqrt() * normal());
        let stretch: Vec<f64> = (0..SAMPLE_BLOCK).map(|_| stretch(dof, dof, &mut rng)).collect();
        for column in z.col_iter_mut().chain(x.col_iter_mut()) {
            column.iter_mut().zip(&stretch).for_each(|(x, s)| *x *= s);
        }
        (0..p).for_each(|j| x.col_as_slice_mut(j).iter_mut().for_each(|x| *x += self.mean()[j]));
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

/// 1/√u for a draw of u ~ Γ(shape/2, rate/2); 1 for the normal distribution, without a draw.
pub(super) fn stretch(shape: f64, rate: f64, rng: &mut ChaCha8Rng) -> f64 {
    if shape.is_infinite() {
        return 1.0;
    }
    let scale = if rate.is_finite() { 2.0 / rate } else { 0.0 };
    Gamma::new(0.5 * shape, scale).map_or(f64::INFINITY, |gamma| gamma.sample(rng).sqrt().recip())
}

/// Rows of a range (n × p) from the blocks that they are in, each of [`SAMPLE_BLOCK`] rows.
pub(super) fn sample_in_blocks(
    features: usize,
    range: &Range<usize>,
    draw: impl Fn(usize) -> Mat<f64> + Sync,
) -> Mat<f64> {
    let first = range.start / SAMPLE_BLOCK;
    let end = if range.is_empty() { first } else { range.end.div_ceil(SAMPLE_BLOCK) };
    let parts = parallel::map(end - first, |i| inside(range, first + i, &draw(first + i)));
    stack(features, parts.iter().map(Mat::as_ref))
}

/// The first n rows of a sample, under the eyes of a caller, and refused at once when memory is not enough.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory) and [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn sample_watched(
    features: usize,
    n: usize,
    control: &Control<'_>,
    draw: impl Fn(usize) -> Mat<f64> + Sync,
) -> Result<Mat<f64>> {
    memory::check("the sample", &[2, n, features])?;
    let watched = |block| control.check().map(|()| inside(&(0..n), block, &draw(block)));
    let parts = parallel::try_map(n.div_ceil(SAMPLE_BLOCK), watched)?;
    Ok(stack(features, parts.iter().map(Mat::as_ref)))
}

/// The rows of a block that are in the range.
fn inside(range: &Range<usize>, block: usize, rows: &Mat<f64>) -> Mat<f64> {
    let first = range.start.max(block * SAMPLE_BLOCK) - block * SAMPLE_BLOCK;
    let end = range.end.min((block + 1) * SAMPLE_BLOCK) - block * SAMPLE_BLOCK;
    rows.subrows(first, end - first).to_owned()
}

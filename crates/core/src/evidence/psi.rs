//! What rows say about a function on latent positions that are known as normal distributions: sums of ψ-statistics.

use std::sync::Arc;

use super::Accumulator;
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::kernel::{LatentKernel, Psi};
use crate::linalg::{Mat, MatRef, add_product, packed_len};

/// Rows of a block, whose pairs of Ψ₂ stay in a core's own cache.
pub(crate) const BLOCK_ROWS: usize = 32;

/// Where rows lie in the latent space, a normal distribution for each, and the inducing points that stand for the
/// function from there to the features.
#[derive(Debug, Clone)]
pub struct LatentPositions {
    pub(crate) psi: Psi,
    pub(crate) mean: Vec<f64>,     // μ, row after row (n · q)
    pub(crate) variance: Vec<f64>, // S, row after row (n · q)
    pub(crate) centre: Vec<f64>,   // what is taken off each feature (p)
    pub(crate) masked: bool,       // whether cells may be missing
}

/// For rows y of given positions N(μ, diag S), their cells taken around a centre: the sums over weighted rows of ψ₀, of
/// Ψ₂, of Ψ₁ᵀy, of y² and of the Kullback–Leibler divergence of the position from N(0, I).
///
/// That is all that the collapsed bound of a Bayesian GP-LVM needs of the rows \[TL10, eqs 14–17\]. Where cells may be
/// missing, ψ₀ and Ψ₂ are summed for each feature over the rows that have it.
///
/// A chunk says which rows it holds, and so which positions they have.
#[derive(Debug, Clone)]
pub struct PsiSums {
    pub(crate) at: Arc<LatentPositions>,
    pub(crate) rows: usize,
    pub(crate) weight: Vec<f64>,     // Σ w of each group of features (g)
    pub(crate) zero: Vec<f64>,       // Σ w ψ₀ (g)
    pub(crate) two: Mat<f64>,        // Σ w Ψ₂, pairs (P × g)
    pub(crate) one: Mat<f64>,        // Σ w Ψ₁ᵀ y (M × p)
    pub(crate) squares: Vec<f64>,    // Σ w y² (p)
    pub(crate) divergence: Vec<f64>, // Σ w KL of each latent dimension (q)
}

impl LatentPositions {
    /// Positions of n rows, row after row (n · q), and inducing points (M × q).
    ///
    /// # Errors
    /// When lengths do not fit, a number is not finite, or a variance is not positive.
    pub fn new(
        kernel: LatentKernel,
        inducing: Mat<f64>,
        (mean, variance): (Vec<f64>, Vec<f64>),
        centre: Vec<f64>,
        masked: bool,
    ) -> Result<Self> {
        let q = kernel.n_latent();
        let lengths = [
            ("coordinates of inducing points", q, inducing.ncols()),
            ("variances of positions", mean.len(), variance.len()),
            ("coordinates of whole positions", 0, mean.len() % q),
        ];
        if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
            return Err(Error::Length { what, expected, found });
        }
        let finite = mean.iter().chain(&centre).all(|x| x.is_finite()) && inducing.as_ref().is_all_finite();
        if !finite || !variance.iter().all(|s| s.is_finite() && *s > 0.0) || inducing.nrows() == 0 {
            let (name, value) = ("a latent position", "not finite, or of no variance".into());
            return Err(Error::Parameter { name, value, allowed: "finite, of positive variance" });
        }
        Ok(Self { psi: Psi::new(kernel, inducing), mean, variance, centre, masked })
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.psi.kernel().n_latent()
    }

    /// Number of rows that have a position.
    pub fn n_rows(&self) -> usize {
        self.mean.len() / self.n_latent()
    }

    /// Number of groups of features that are observed in the same rows: all are one group where no cell is missing.
    pub(crate) fn groups(&self) -> usize {
        if self.masked { self.centre.len() } else { 1 }
    }

    /// Means and variances of some rows.
    pub(crate) fn of_rows(&self, first: usize, rows: usize) -> (&[f64], &[f64]) {
        let (from, to) = (first * self.n_latent(), (first + rows) * self.n_latent());
        (&self.mean[from..to], &self.variance[from..to])
    }

    /// Calls `f` with each block of a chunk's rows: the first row among all, the cells around the centre times the
    /// weight of their row (p × b, 0 where missing), the cells alone (p × b), and weights by group (g × b).
    pub(crate) fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, &CellBlock),
    ) -> Result<()> {
        let (p, found) = (self.centre.len(), chunk.ncols());
        if p != found {
            return Err(Error::FeatureCount { expected: p, found });
        }
        let end = chunk.first_row() + chunk.nrows();
        if end > self.n_rows() {
            return Err(Error::Length {
                what: "rows with a latent position",
                expected: self.n_rows(),
                found: end,
            });
        }
        let mut finite = true;
        chunk.with_wide(|view| {
            for first in (0..view.nrows()).step_by(BLOCK_ROWS) {
                let rows = view.subrows(first, BLOCK_ROWS.min(view.nrows() - first));
                let weights = chunk.weights().map(|w| &w[first..first + rows.nrows()]);
                let block = CellBlock::of(rows, weights, &self.centre, self.masked);
                finite = finite && block.finite;
                f(chunk.first_row() + first, &block);
            }
        });
        match finite {
            true => Ok(()),
            false if self.masked => Err(chunk.explain_infinite().unwrap_or(Error::Scale)),
            false => Err(chunk.explain_not_finite("a fit without missing values").unwrap_or(Error::Scale)),
        }
    }
}

/// The cells of a block of rows, around a centre.
pub(crate) struct CellBlock {
    pub(crate) cells: Mat<f64>,    // y, 0 where missing (p × b)
    pub(crate) weighted: Mat<f64>, // w y (p × b)
    pub(crate) weights: Mat<f64>,  // w of each group, 0 where missing (g × b)
    pub(crate) rows: Vec<f64>,     // w (b)
    finite: bool,
}

impl CellBlock {
    fn of(rows: MatRef<'_, f64>, weights: Option<&[f64]>, centre: &[f64], masked: bool) -> Self {
        let (b, p) = (rows.nrows(), rows.ncols());
        let row_weights = weights.map_or_else(|| vec![1.0; b], <[f64]>::to_vec);
        let (mut cells, mut weighted) = (Mat::zeros(p, b), Mat::zeros(p, b));
        let mut by_group = Mat::zeros(if masked { p } else { 1 }, b);
        let mut finite = true;
        for i in (0..b).filter(|i| row_weights[*i] > 0.0) {
            by_group[(0, i)] = row_weights[i];
            for j in 0..p {
                let cell = rows[(i, j)] - centre[j];
                if masked {
                    let seen = !cell.is_nan();
                    by_group[(j, i)] = if seen { row_weights[i] } else { 0.0 };
                    if !seen {
                        continue;
                    }
                }
                finite = finite && cell.is_finite();
                (cells[(j, i)], weighted[(j, i)]) = (cell, row_weights[i] * cell);
            }
        }
        Self { cells, weighted, weights: by_group, rows: row_weights, finite }
    }
}

impl PsiSums {
    /// Of no rows.
    pub fn empty(at: Arc<LatentPositions>) -> Self {
        let (m, q, p, g) = (at.psi.points().nrows(), at.n_latent(), at.centre.len(), at.groups());
        Self {
            at,
            rows: 0,
            weight: vec![0.0; g],
            zero: vec![0.0; g],
            two: Mat::zeros(packed_len(m), g),
            one: Mat::zeros(m, p),
            squares: vec![0.0; p],
            divergence: vec![0.0; q],
        }
    }

    fn add_block(&mut self, first: usize, block: &CellBlock) {
        let at = Arc::clone(&self.at);
        let (b, q) = (block.rows.len(), at.n_latent());
        let (mean, variance) = at.of_rows(first, b);
        let psi = at.psi.of(mean, variance);
        add_product(self.two.as_mut(), psi.two.as_ref(), block.weights.transpose(), 1.0);
        add_product(self.one.as_mut(), psi.one.as_ref(), block.weighted.transpose(), 1.0);
        for (i, w) in block.rows.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            self.rows += 1;
            for (g, w) in block.weights.col_as_slice(i).iter().enumerate() {
                self.weight[g] += w;
                self.zero[g] += w * psi.zero[i];
            }
            for (sum, (y, wy)) in self
                .squares
                .iter_mut()
                .zip(block.cells.col_as_slice(i).iter().zip(block.weighted.col_as_slice(i)))
            {
                *sum += y * wy;
            }
            for k in 0..q {
                let (mu, s) = (mean[i * q + k], variance[i * q + k]);
                self.divergence[k] += 0.5 * w * (mu * mu + s - s.ln() - 1.0);
            }
        }
    }
}

impl Accumulator for PsiSums {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let at = Arc::clone(&self.at);
        at.for_each_block(chunk, |first, block| self.add_block(first, block))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let same = Arc::ptr_eq(&self.at, &other.at)
            || (self.at.mean == other.at.mean
                && self.at.variance == other.at.variance
                && self.at.psi.points() == other.at.psi.points()
                && self.at.psi.kernel() == other.at.psi.kernel()
                && self.at.centre == other.at.centre
                && self.at.masked == other.at.masked);
        if !same {
            let (name, value) = ("the latent positions of rows", "other ones".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        let add = |to: &mut [f64], of: &[f64]| to.iter_mut().zip(of).for_each(|(a, b)| *a += b);
        self.rows = self.rows.saturating_add(other.rows);
        add(&mut self.weight, &other.weight);
        add(&mut self.zero, &other.zero);
        add(&mut self.squares, &other.squares);
        add(&mut self.divergence, &other.divergence);
        self.two += &other.two;
        self.one += &other.one;
        Ok(())
    }
}

//! The posterior of latent variables: a mean for each row, a covariance for each pattern of missing values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::LinearGaussian;
use super::inference::{Inference, Purpose};
use super::questions::{room_for, scatter_rows, stack};
use crate::data::{Cells, Chunk, Real, Rows, map_chunks};
use crate::error::Result;
use crate::linalg::{Mat, MatRef, product};
use crate::memory;

/// The posterior of the latent variables of some rows.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Means (n × q).
    pub mean: Mat<f64>,
    /// Covariances (q × q).
    pub covariance: LatentCovariance,
}

/// Posterior covariances: they depend on which cells of a row were observed, not on their values.
#[derive(Debug, Clone)]
pub enum LatentCovariance {
    /// No row has missing values.
    Shared(Mat<f64>),
    /// One for each pattern of missing values.
    PerPattern {
        /// q² numbers for each pattern, pattern after pattern.
        cells: Vec<f64>,
        /// The pattern of each row.
        pattern: Vec<usize>,
        /// q.
        latent: usize,
    },
}

impl LatentCovariance {
    /// Of one row (q × q).
    pub fn of(&self, row: usize) -> MatRef<'_, f64> {
        match self {
            Self::Shared(c) => c.as_ref(),
            Self::PerPattern { cells, pattern, latent: q } => square_at(cells, pattern[row], *q),
        }
    }

    /// Each covariance turned into another of the same size.
    pub(super) fn map(self, f: impl Fn(MatRef<'_, f64>) -> Mat<f64>) -> Self {
        match self {
            Self::Shared(c) => Self::Shared(f(c.as_ref())),
            Self::PerPattern { cells, pattern, latent: q } => {
                let patterns = cells.len().checked_div(q * q).unwrap_or(0);
                let each = (0..patterns).flat_map(|k| numbers(&f(square_at(&cells, k, q))));
                Self::PerPattern { cells: each.collect(), pattern, latent: q }
            }
        }
    }
}

/// The matrix of one pattern (q × q).
fn square_at(cells: &[f64], pattern: usize, q: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(&cells[pattern * q * q..(pattern + 1) * q * q], q, q)
}

/// The entries of a matrix, column after column.
fn numbers(c: &Mat<f64>) -> Vec<f64> {
    c.col_iter().flat_map(|column| column.iter().copied()).collect()
}

impl LinearGaussian {
    /// Posterior mean and covariance of the latent variables of each row.
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn posterior<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Posterior> {
        let (rows, q) = (rows.into(), self.n_latent());
        room_for("the table of coordinates", rows.source(), q)?;
        let (inference, kept) = (Inference::new(self, Purpose::Posterior), AtomicUsize::new(0));
        let parts = map_chunks(rows.source(), |chunk| {
            let part = posterior_of(&inference, chunk, &|| rows.source().check())?;
            let found = part.roots.as_ref().map_or(0, |roots| roots.places.len());
            let patterns = kept.fetch_add(found, Ordering::Relaxed) + found;
            memory::check("the table of posterior covariances", &[patterns, q, q])?;
            Ok(part)
        })?;
        let mean = stack(q, parts.iter().map(|part| part.mean.as_ref()));
        let complete = inference.complete()?;
        if parts.iter().all(|part| part.roots.is_none()) {
            let covariance = LatentCovariance::Shared(complete.factor().covariance());
            return Ok(Posterior { mean, covariance });
        }
        let (mut all, full) = (PatternRoots::default(), complete.posterior_root()?);
        for part in parts {
            rows.source().check()?;
            all.append(part, full.col_as_slice(0), q);
        }
        let PatternRoots { cells, pattern, .. } = all;
        let roots = LatentCovariance::PerPattern { cells, pattern, latent: q };
        Ok(Posterior { mean, covariance: roots.map(|root| product(root, root.transpose())) })
    }
}

/// What is known of the latent variables of the rows of a chunk.
pub(super) struct ChunkPosterior {
    /// Means (n × q).
    pub(super) mean: Mat<f64>,
    /// When a row has missing values.
    pub(super) roots: Option<PatternRoots>,
}

/// Which cells of a row are missing, as words that differ between the patterns of one source; `None` for
/// none.
type Pattern = Option<Vec<u32>>;

/// Roots R of the covariances RRᵀ of the patterns that rows have.
///
/// Where features are of very different scales, wᵀRRᵀw of a large one is lost in the rounding of RRᵀ.
#[derive(Default)]
pub(super) struct PatternRoots {
    cells: Vec<f64>, // q² numbers for each pattern
    places: HashMap<Pattern, usize>,
    pattern: Vec<usize>, // of each row
}

impl PatternRoots {
    /// Of one row, column after column.
    pub(super) fn of(&self, row: usize, q: usize) -> &[f64] {
        &self.cells[self.pattern[row] * q * q..(self.pattern[row] + 1) * q * q]
    }

    /// The pattern of a row.
    pub(super) fn pattern(&self, row: usize) -> usize {
        self.pattern[row]
    }

    /// The place of a pattern, which gets this root when it is new.
    fn place(&mut self, pattern: Pattern, root: &[f64]) -> usize {
        let (next, cells) = (self.places.len(), &mut self.cells);
        *self.places.entry(pattern).or_insert_with(|| {
            cells.extend(root);
            next
        })
    }

    /// Takes in the rows of the next chunk; `full` is the root of complete rows.
    fn append(&mut self, part: ChunkPosterior, full: &[f64], q: usize) {
        let rows = part.mean.nrows();
        let Some(part) = part.roots else {
            let place = self.place(None, full);
            return self.pattern.extend((0..rows).map(|_| place));
        };
        let mut patterns: Vec<(Pattern, usize)> = part.places.into_iter().collect();
        patterns.sort_by_key(|(_, place)| *place);
        let cells = |at: usize| &part.cells[at * q * q..(at + 1) * q * q];
        let places: Vec<usize> = patterns.into_iter().map(|(k, at)| self.place(k, cells(at))).collect();
        self.pattern.extend(part.pattern.iter().map(|k| places[*k]));
    }
}

/// `check` ends it between groups of rows.
pub(super) fn posterior_of(
    inference: &Inference<'_>,
    chunk: &Chunk<'_>,
    check: &dyn Fn() -> Result<()>,
) -> Result<ChunkPosterior> {
    let mut mean = Mat::zeros(chunk.nrows(), inference.n_latent());
    let mut complete: Vec<usize> = Vec::new();
    let mut found = PatternRoots { pattern: vec![0; chunk.nrows()], ..PatternRoots::default() };
    inference.for_each_group(chunk, &mut |g| {
        check()?;
        scatter_rows(&mut mean, g.rows(), g.latent().as_ref());
        if g.is_complete() {
            complete.extend(g.rows());
            return Ok(());
        }
        let (roots, pattern) = g.roots()?;
        for (row, k) in g.rows().iter().zip(pattern) {
            found.pattern[*row] = found.place(Some(missing(chunk, *row)), roots.col_as_slice(k));
        }
        Ok(())
    })?;
    if found.places.is_empty() {
        return Ok(ChunkPosterior { mean, roots: None });
    }
    if !complete.is_empty() {
        let place = found.place(None, inference.complete()?.posterior_root()?.col_as_slice(0));
        complete.iter().for_each(|row| found.pattern[*row] = place);
    }
    Ok(ChunkPosterior { mean, roots: Some(found) })
}

/// The missing cells of a row: a bit for each feature, or where only observed cells are stored the list of
/// those.
fn missing(chunk: &Chunk<'_>, row: usize) -> Vec<u32> {
    match chunk.cells() {
        Cells::Observed(cells) => cells.row(row).0.to_vec(),
        Cells::F64(block) => missing_bits(block.view(), row),
        Cells::F32(block) => missing_bits(block.view(), row),
    }
}

fn missing_bits<T: Real>(cells: MatRef<'_, T>, row: usize) -> Vec<u32> {
    let mut bits = vec![0; cells.ncols().div_ceil(32)];
    for j in (0..cells.ncols()).filter(|j| Real::to_f64(cells[(row, *j)]).is_nan()) {
        bits[j / 32] |= 1 << (j % 32);
    }
    bits
}

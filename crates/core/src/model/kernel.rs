//! The batched arithmetic behind every question: rows in blocks, one q × q factor for all rows that miss the same cells.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::LinearGaussian;
use crate::data::{Chunk, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{ColRef, LatentFactor, Mat, MatRef, add_product};

/// Rows of a block: deviations and products stay in cache.
const BLOCK_ROWS: usize = 128;

/// A model restricted to the features that some rows have, ready to be applied to them.
pub(super) struct Kernel {
    mean: Vec<f64>,
    root: Vec<f64>, // √d, the noise deviations relative to √s
    a: Mat<f64>,    // A = D^-½ W (p × q)
    /// Of s I + AᵀA: the posterior.
    factor: LatentFactor,
    /// Of AᵀA, made when it is first asked for.
    least_squares: OnceCell<LatentFactor>,
    log_det_d: f64,
}

impl Kernel {
    pub(super) fn new(model: &LinearGaussian) -> Result<Self> {
        let p = model.n_features();
        let s = typical_noise(model);
        let relative = |j: usize| if s > 0.0 { model.noise().of(j) / s } else { 1.0 };
        let root: Vec<f64> = (0..p).map(|j| relative(j).sqrt()).collect();
        let w = model.loadings();
        let a = Mat::from_fn(p, w.ncols(), |i, j| w[(i, j)] / root[i]);
        let factor = LatentFactor::new(a.as_ref(), s)?;
        let log_det_d = (0..p).map(|j| relative(j).ln()).sum();
        let least_squares = OnceCell::new();
        Ok(Self { mean: model.mean().to_vec(), root, a, factor, least_squares, log_det_d })
    }

    pub(super) fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// D^-½ (x − μ) of one row (1 × p).
    pub(super) fn deviations(&self, row: &[f64]) -> Mat<f64> {
        Mat::from_fn(1, row.len(), |_, j| (row[j] - self.mean[j]) / self.root[j])
    }

    /// √d: noise deviation of each feature relative to √s.
    pub(super) fn root(&self) -> &[f64] {
        &self.root
    }

    pub(super) fn factor(&self) -> &LatentFactor {
        &self.factor
    }

    /// The same with the noise gone: its solution is the weighted least-squares one, z = (AᵀA)⁺Aᵀe.
    pub(super) fn least_squares(&self) -> Result<&LatentFactor> {
        if let Some(factor) = self.least_squares.get() {
            return Ok(factor);
        }
        let factor = LatentFactor::new(self.a.as_ref(), 0.0)?;
        Ok(self.least_squares.get_or_init(|| factor))
    }

    /// log |C|, or the error that there is no density.
    pub(super) fn log_det(&self) -> Result<f64> {
        let p = self.n_features();
        match self.factor.log_det(p) {
            Some(v) => Ok(v + self.log_det_d),
            None => Err(Error::NoDensity { rank: self.factor.rank(p), features: p }),
        }
    }

    /// Latent coordinates (q × rows) of scaled deviations e (rows × p) by the given factor.
    pub(super) fn latent(&self, factor: &LatentFactor, e: MatRef<'_, f64>) -> Mat<f64> {
        factor.latent(self.a.as_ref(), e)
    }

    /// e − A z: what the latent coordinates leave (rows × p), in units of the relative noise.
    pub(super) fn residual(&self, e: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Mat<f64> {
        let mut r = e.transpose().to_owned(); // (p × rows): rows contiguous
        add_product(r.as_mut(), self.a.as_ref(), z, -1.0);
        r
    }

    /// Squared Mahalanobis distances: ‖e − Az‖²/s + ‖z‖², a sum of squares without cancellation.
    ///
    /// Equal to eᵀC⁻¹e because the posterior mean z minimises that sum.
    pub(super) fn mahalanobis(&self, e: MatRef<'_, f64>) -> Vec<f64> {
        if let Some(distances) = self.factor.distances(e) {
            return distances;
        }
        let z = self.latent(&self.factor, e);
        let s = self.factor.noise();
        let r = if s > 0.0 { self.residual(e, z.as_ref()) } else { Mat::zeros(0, e.nrows()) };
        let inverse = if s > 0.0 { 1.0 / s } else { 0.0 };
        let distance = |i: usize| r.col(i).squared_norm_l2() * inverse + z.col(i).squared_norm_l2();
        // Cells are finite: where a square is not, the distance is beyond all numbers.
        let or_beyond = |d: f64| if d.is_nan() { f64::INFINITY } else { d };
        (0..e.nrows()).map(|i| or_beyond(distance(i))).collect()
    }

    /// Squared length in the data's own units of each column of a residual (p × rows).
    pub(super) fn squared_error(&self, residual: MatRef<'_, f64>) -> Vec<f64> {
        let square = |c: ColRef<'_, f64>| -> f64 {
            c.iter().zip(&self.root).map(|(r, root)| (r * root).powi(2)).sum()
        };
        residual.col_iter().map(square).collect()
    }
}

/// s: the noise of PPCA, the mean noise of factor analysis.
fn typical_noise(model: &LinearGaussian) -> f64 {
    let p = model.n_features();
    match model.noise() {
        super::Noise::Isotropic(v) => *v,
        super::Noise::Diagonal(psi) => psi.iter().sum::<f64>() / p.max(1) as f64,
    }
}

/// Rows of a chunk that share a set of observed features, as scaled deviations.
pub(super) struct Group<'a> {
    /// Made for exactly the features that these rows have.
    pub(super) kernel: &'a Kernel,
    /// Which rows of the chunk.
    pub(super) rows: &'a [usize],
    /// D^-½ (x − μ) of the observed features (rows × observed).
    pub(super) e: MatRef<'a, f64>,
}

/// Cuts a chunk into groups of rows that miss the same cells, complete rows in blocks, and calls `f` with each.
pub(super) fn for_each_group(
    model: &LinearGaussian,
    chunk: &Chunk<'_>,
    mut f: impl FnMut(Group<'_>) -> Result<()>,
) -> Result<()> {
    let p = model.n_features();
    if chunk.ncols() != p {
        return Err(Error::FeatureCount { expected: p, found: chunk.ncols() });
    }
    let full = Kernel::new(model)?;
    let mut buffer = Mat::zeros(p, BLOCK_ROWS.min(chunk.nrows())); // (p × rows)
    let mut holey: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
    for start in (0..chunk.nrows()).step_by(BLOCK_ROWS) {
        let len = BLOCK_ROWS.min(chunk.nrows() - start);
        with_view!(chunk.cells(), v => scaled_deviations(v.subrows(start, len), &full, &mut buffer));
        let finite = |i: &usize| buffer.col(*i).squared_norm_l2().is_finite();
        let complete: Vec<usize> = (0..len).filter(finite).collect();
        if complete.len() == len {
            let rows: Vec<usize> = (start..start + len).collect();
            f(Group { kernel: &full, rows: &rows, e: buffer.as_ref().subcols(0, len).transpose() })?;
            continue;
        }
        let rows: Vec<usize> = complete.iter().map(|i| start + i).collect();
        let packed = Mat::from_fn(p, complete.len(), |j, i| buffer[(j, complete[i])]);
        if !rows.is_empty() {
            f(Group { kernel: &full, rows: &rows, e: packed.transpose() })?;
        }
        for row in (start..start + len).filter(|i| !rows.contains(i)) {
            holey.entry(observed(chunk, row)?).or_default().push(row);
        }
    }
    each_pattern(model, chunk, holey, f)
}

/// The rows with holes, pattern by pattern (in the order of their first rows).
fn each_pattern(
    model: &LinearGaussian,
    chunk: &Chunk<'_>,
    patterns: HashMap<Vec<usize>, Vec<usize>>,
    mut f: impl FnMut(Group<'_>) -> Result<()>,
) -> Result<()> {
    let mut patterns: Vec<_> = patterns.into_iter().collect();
    patterns.sort_by_key(|(_, rows)| rows[0]);
    for (features, rows) in &patterns {
        let kernel = Kernel::new(&model.marginal(features)?)?;
        for rows in rows.chunks(BLOCK_ROWS) {
            let cell = |j: usize, i: usize| {
                (chunk.cells().get(rows[i], features[j]) - kernel.mean[j]) / kernel.root[j]
            };
            let e = Mat::from_fn(features.len(), rows.len(), cell);
            f(Group { kernel: &kernel, rows, e: e.transpose() })?;
        }
    }
    Ok(())
}

/// Fills the buffer (p × rows) with D^-½ (x − μ).
fn scaled_deviations<T: Real>(view: MatRef<'_, T>, kernel: &Kernel, buffer: &mut Mat<f64>) {
    let arch = pulp::Arch::new();
    for (i, row) in view.row_iter().enumerate() {
        let out = buffer.col_as_slice_mut(i);
        match row.transpose().try_as_col_major() {
            Some(side_by_side) => arch.dispatch(|| scale_row(out, side_by_side.as_slice().iter(), kernel)),
            None => scale_row(out, row.iter(), kernel),
        }
    }
}

#[inline(always)]
fn scale_row<'a, T: Real>(out: &mut [f64], row: impl Iterator<Item = &'a T>, kernel: &Kernel) {
    let terms = row.zip(&kernel.mean).zip(&kernel.root);
    out.iter_mut().zip(terms).for_each(|(o, ((x, m), r))| *o = (x.to_f64() - m) / r);
}

/// The features that a row has: all of them when only its square is not finite. An infinite cell is an error.
fn observed(chunk: &Chunk<'_>, row: usize) -> Result<Vec<usize>> {
    let mut features = Vec::with_capacity(chunk.ncols());
    for column in 0..chunk.ncols() {
        let value = chunk.cells().get(row, column);
        if value.is_infinite() {
            let cell = crate::error::Cell { row: chunk.first_row() + row, column, name: None };
            return Err(Error::Infinite { value, cell });
        }
        if !value.is_nan() {
            features.push(column);
        }
    }
    Ok(features)
}

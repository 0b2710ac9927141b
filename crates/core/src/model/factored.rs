//! A model with its q × q factor, for rows that observe the same cells: products of whole blocks.

use std::sync::OnceLock;

use super::LinearGaussian;
use super::cells::CellFactor;
use crate::data::Real;
use crate::error::{Error, Result};
use crate::expectation::or_infinite;
use crate::linalg::{ColRef, LatentFactor, Mat, MatRef, add_product, clean_zeros};

/// A model of the cells that some rows observe, ready to be applied to them.
pub(super) struct FactoredModel {
    mean: Vec<f64>,
    root: Vec<f64>,  // √d, the noise deviations relative to √s
    scale: Vec<f64>, // 1/√d
    a: Mat<f64>,     // A = D^-½ W (p × q)
    /// Of s I + AᵀA: the posterior.
    factor: LatentFactor,
    /// Of AᵀA, made when it is first asked for.
    least_squares: OnceLock<LatentFactor>,
    /// What the other cells of a row say of each, made when it is first asked for.
    cells: OnceLock<CellFactor>,
    log_det_d: f64,
}

impl FactoredModel {
    pub(super) fn new(model: &LinearGaussian) -> Result<Self> {
        let p = model.n_features();
        let s = typical_noise(model);
        let root: Vec<f64> = (0..p).map(|j| relative_noise(model, s, j).sqrt()).collect();
        let scale = root.iter().map(|r| 1.0 / r).collect();
        let w = model.loadings();
        let mut a = clean_zeros(p, w.ncols());
        a.as_mut().copy_from(Mat::from_fn(p, w.ncols(), |i, j| w[(i, j)] / root[i]));
        let factor = LatentFactor::new(a.as_ref(), s)?;
        let log_det_d = (0..p).map(|j| relative_noise(model, s, j).ln()).sum();
        let (least_squares, cells) = (OnceLock::new(), OnceLock::new());
        Ok(Self { mean: model.mean().to_vec(), root, scale, a, factor, least_squares, cells, log_det_d })
    }

    pub(super) fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// D^-½ (x − μ) of one row.
    pub(super) fn scale(&self, row: &[f64], out: &mut [f64]) {
        scale_row(out, row.iter(), self);
    }

    /// Fills the buffer (p × rows) with D^-½ (x − μ).
    pub(super) fn scaled_deviations<T: Real>(&self, view: MatRef<'_, T>, buffer: &mut Mat<f64>) {
        let arch = pulp::Arch::new();
        for (i, row) in view.row_iter().enumerate() {
            let out = buffer.col_as_slice_mut(i);
            match row.transpose().try_as_col_major() {
                Some(side_by_side) => arch.dispatch(|| scale_row(out, side_by_side.as_slice().iter(), self)),
                None => scale_row(out, row.iter(), self),
            }
        }
    }

    /// √d: noise deviation of each feature relative to √s.
    pub(super) fn root(&self) -> &[f64] {
        &self.root
    }

    pub(super) fn factor(&self) -> &LatentFactor {
        &self.factor
    }

    /// R with RRᵀ the posterior covariance, column after column (q² × 1).
    pub(super) fn posterior_root(&self) -> Result<Mat<f64>> {
        let (root, q) = (self.factor.root()?, self.factor.n_latent());
        let entry = |i: usize, k: usize| if k < root.ncols() { root[(i, k)] } else { 0.0 };
        Ok(Mat::from_fn(q * q, 1, |at, _| entry(at % q, at / q)))
    }

    /// The same with the noise gone: its solution is the weighted least-squares one, z = (AᵀA)⁺Aᵀe.
    pub(super) fn least_squares(&self) -> Result<&LatentFactor> {
        if let Some(factor) = self.least_squares.get() {
            return Ok(factor);
        }
        let factor = LatentFactor::new(self.a.as_ref(), 0.0)?;
        Ok(self.least_squares.get_or_init(|| factor))
    }

    /// What the other cells of a row say of each.
    pub(super) fn cells(&self) -> Result<&CellFactor> {
        if let Some(cells) = self.cells.get() {
            return Ok(cells);
        }
        let cells = CellFactor::new(self.a.as_ref(), &self.factor)?;
        Ok(self.cells.get_or_init(|| cells))
    }

    /// μ of each feature.
    pub(super) fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// A (p × q).
    pub(super) fn loadings(&self) -> MatRef<'_, f64> {
        self.a.as_ref()
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
        (0..e.nrows()).map(|i| or_infinite(distance(i))).collect()
    }

    /// Squared length in the data's own units of each column of a residual (p × rows).
    pub(super) fn squared_error(&self, residual: MatRef<'_, f64>) -> Vec<f64> {
        let square = |c: ColRef<'_, f64>| -> f64 {
            c.iter().zip(&self.root).map(|(r, root)| (r * root).powi(2)).sum()
        };
        residual.col_iter().map(square).collect()
    }
}

/// d: the noise of a feature in units of s.
pub(super) fn relative_noise(model: &LinearGaussian, s: f64, feature: usize) -> f64 {
    if s > 0.0 { model.noise().of(feature) / s } else { 1.0 }
}

/// s: the noise of PPCA, the mean noise of factor analysis.
pub(super) fn typical_noise(model: &LinearGaussian) -> f64 {
    let p = model.n_features();
    match model.noise() {
        super::Noise::Isotropic(v) => *v,
        super::Noise::Diagonal(psi) => psi.iter().sum::<f64>() / p.max(1) as f64,
    }
}

#[inline(always)]
fn scale_row<'a, T: Real>(out: &mut [f64], row: impl Iterator<Item = &'a T>, model: &FactoredModel) {
    // A product takes a quarter of the time of a division, and there is one for every cell.
    let terms = row.zip(&model.mean).zip(&model.scale);
    out.iter_mut().zip(terms).for_each(|(o, ((x, m), s))| *o = (x.to_f64() - m) * s);
}

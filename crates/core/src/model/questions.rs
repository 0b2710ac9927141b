//! What can be asked of a linear-Gaussian model about rows, with or without holes.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::LinearGaussian;
use super::kernel::{Kernel, for_each_group};
use crate::data::{Chunk, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::{LatentFactor, Mat, MatRef, product};

/// Rows drawn from one stream of the generator.
const SAMPLE_BLOCK: usize = 256;

/// How a row is rebuilt from its latent coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reconstruction {
    /// The point of the model's plane nearest to the row (nearest in units of the noise): least squared error.
    #[default]
    Orthogonal,
    /// From the posterior mean, which lies nearer to the model's mean.
    Posterior,
}

/// The posterior of the latent variables of some rows.
#[derive(Debug, Clone)]
pub struct Posterior {
    /// Means (n × q).
    pub mean: Mat<f64>,
    /// Covariances (q × q).
    pub covariance: LatentCovariance,
}

/// Posterior covariances: all the same unless rows have holes.
#[derive(Debug, Clone)]
pub enum LatentCovariance {
    /// No row has a hole.
    Shared(Mat<f64>),
    /// One per row.
    PerRow(Vec<Mat<f64>>),
}

impl LatentCovariance {
    /// Of one row.
    pub fn of(&self, row: usize) -> &Mat<f64> {
        match self {
            Self::Shared(c) => c,
            Self::PerRow(all) => &all[row],
        }
    }
}

/// How far rows are from what the model expects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outliers {
    /// Hotelling's T²: squared distance within the model's plane, in units of its variance.
    pub t2: Vec<f64>,
    /// Squared prediction error: squared distance from the plane, in the data's units.
    pub spe: Vec<f64>,
    /// Probability that a row of the model lies at least as far out: upper tail of the χ² of the Mahalanobis distance.
    pub p_value: Vec<f64>,
}

/// Distribution of the missing cells of a row given the others.
#[derive(Debug, Clone)]
pub struct Conditional {
    /// Which features are missing.
    pub features: Vec<usize>,
    /// Their conditional mean.
    pub mean: Vec<f64>,
    /// Their conditional covariance.
    pub covariance: Mat<f64>,
}

impl LinearGaussian {
    /// Log density of each row: $-\tfrac12 \left( p \ln 2\pi + \ln|C| + (x-\mu)^\top C^{-1} (x-\mu) \right)$ over the
    /// observed cells. A row with none scores 0.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or the model has no density.
    pub fn log_density<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.per_row(rows, |kernel, e| {
            let constant =
                kernel.n_features() as f64 * (2.0 * std::f64::consts::PI).ln() + kernel.log_det()?;
            Ok(kernel.mahalanobis(e).into_iter().map(|d| -0.5 * (constant + d)).collect())
        })
    }

    /// Squared Mahalanobis distance (x−μ)ᵀC⁻¹(x−μ) of each row, over the observed cells.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    pub fn mahalanobis<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.per_row(rows, |kernel, e| kernel.log_det().map(|_| kernel.mahalanobis(e)))
    }

    /// Posterior mean of the latent variables of each row (n × q): $M^{-1} W^\top (x - \mu)$ for PPCA with
    /// $M = W^\top W + \sigma^2 I$ \[TB99, eq. 6\].
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn latent_mean<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.per_row_columns(rows, self.n_latent(), |kernel, e| Ok(kernel.latent(kernel.factor(), e)))
    }

    /// Posterior mean and covariance of the latent variables of each row.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn posterior<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Posterior> {
        let rows = rows.into();
        let full = Kernel::new(self)?.factor().covariance();
        let parts = map_chunks(rows.source(), |chunk| {
            let mut z = Mat::zeros(chunk.nrows(), self.n_latent());
            let mut holey: Vec<(usize, Mat<f64>)> = Vec::new();
            for_each_group(self, chunk, |g| {
                let found = g.kernel.latent(g.kernel.factor(), g.e);
                scatter_rows(&mut z, g.rows, found.as_ref());
                if g.kernel.n_features() < self.n_features() {
                    let covariance = g.kernel.factor().covariance();
                    holey.extend(g.rows.iter().map(|r| (*r, covariance.clone())));
                }
                Ok(())
            })?;
            Ok((z, holey))
        })?;
        let any = parts.iter().any(|(_, holey)| !holey.is_empty());
        let covariance = if any {
            let each = |(z, holey): &(Mat<f64>, Vec<(usize, Mat<f64>)>)| {
                let mut all = vec![full.clone(); z.nrows()];
                holey.iter().for_each(|(row, c)| all[*row] = c.clone());
                all
            };
            LatentCovariance::PerRow(parts.iter().flat_map(each).collect())
        } else {
            LatentCovariance::Shared(full)
        };
        let mean = stack(self.n_latent(), parts.iter().map(|(z, _)| z.as_ref()));
        Ok(Posterior { mean, covariance })
    }

    /// Each row rebuilt from its latent coordinates (n × p), the missing cells too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn reconstruct<'a>(&self, rows: impl Into<Rows<'a>>, kind: Reconstruction) -> Result<Mat<f64>> {
        self.per_row_columns(rows, self.n_features(), |kernel, e| {
            let z = match kind {
                Reconstruction::Posterior => kernel.latent(kernel.factor(), e),
                Reconstruction::Orthogonal => kernel.latent(kernel.least_squares()?, e),
            };
            Ok(self.decode(z.transpose())?.transpose().to_owned())
        })
    }

    /// μ + W z for latent coordinates (n × q).
    ///
    /// # Errors
    /// When the coordinates are not q to a row.
    pub fn decode(&self, latent: MatRef<'_, f64>) -> Result<Mat<f64>> {
        if latent.ncols() != self.n_latent() {
            let (expected, found) = (self.n_latent(), latent.ncols());
            return Err(Error::Length { what: "latent coordinates", expected, found });
        }
        let mut x = product(latent, self.loadings().transpose());
        for (mut column, mean) in x.col_iter_mut().zip(self.mean()) {
            column.as_mut().iter_mut().for_each(|x| *x += mean);
        }
        Ok(x)
    }

    /// T², SPE and p-value of each row, over the observed cells.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or the model has no density.
    pub fn outliers<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Outliers> {
        let all = self.per_row_columns(rows, 3, |kernel, e| {
            kernel.log_det()?;
            let k = kernel.n_features() as f64;
            let tails =
                kernel.mahalanobis(e).into_iter().map(|d| upper_tail(d, k)).collect::<Result<Vec<_>>>()?;
            let (t2, spe) = t2_spe_of(kernel, e)?;
            Ok(Mat::from_fn(3, e.nrows(), |i, j| [t2[j], spe[j], tails[j]][i]))
        })?;
        Ok(Outliers { t2: column(&all, 0), spe: column(&all, 1), p_value: column(&all, 2) })
    }

    /// T² and SPE of each row, which exist without noise too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn t2_spe<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<(Vec<f64>, Vec<f64>)> {
        let both = self.per_row_columns(rows, 2, |kernel, e| {
            let (t2, spe) = t2_spe_of(kernel, e)?;
            Ok(Mat::from_fn(2, e.nrows(), |i, j| [t2[j], spe[j]][i]))
        })?;
        Ok((column(&both, 0), column(&both, 1)))
    }

    /// Distribution of the missing cells (NaN) of one row given the observed ones.
    ///
    /// # Errors
    /// When the row has another number of features or an infinite cell.
    pub fn conditional(&self, row: &[f64]) -> Result<Conditional> {
        let rows = Rows::from(MatRef::from_row_major_slice(row, 1, row.len()));
        let posterior = self.posterior(&rows)?;
        let features: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
        let part = self.marginal(&features)?;
        let w = part.loadings();
        let spread = product(w.as_ref(), posterior.covariance.of(0).as_ref());
        let mut covariance = product(spread.as_ref(), w.transpose());
        (0..features.len()).for_each(|j| covariance[(j, j)] += part.noise().of(j));
        let mean = part.decode(posterior.mean.as_ref())?.row(0).iter().copied().collect();
        Ok(Conditional { features, mean, covariance })
    }

    /// C⁻¹ by Woodbury's identity (p × p).
    ///
    /// # Errors
    /// When C is singular.
    pub fn precision(&self) -> Result<Mat<f64>> {
        let p = self.n_features();
        let kernel = Kernel::new(self)?;
        kernel.log_det()?;
        // Columns of C⁻¹ are what each unit deviation is worth: (e − A z) / s for noise, (W⁺)ᵀz without.
        let root = |j: usize| kernel.root()[j];
        let unit = Mat::from_fn(p, p, |i, j| if i == j { 1.0 / root(i) } else { 0.0 });
        let z = kernel.latent(kernel.factor(), unit.as_ref());
        let s = kernel.factor().noise();
        let mut c = if s > 0.0 {
            kernel.residual(unit.as_ref(), z.as_ref())
        } else {
            product(z.transpose(), z.as_ref())
        };
        for j in 0..p {
            for i in 0..p {
                c[(i, j)] /= if s > 0.0 { s * root(i) } else { 1.0 };
            }
        }
        Ok(c)
    }

    /// Draws `n` rows (n × p): x = μ + W z + ε. The same seed gives the same rows on every machine.
    pub fn sample(&self, n: usize, seed: u64) -> Mat<f64> {
        self.sample_rows(0..n, seed)
    }

    /// Rows `range` of the endless sample that belongs to a seed, so that a long one can be drawn in parts.
    pub fn sample_rows(&self, range: Range<usize>, seed: u64) -> Mat<f64> {
        if range.is_empty() {
            return Mat::zeros(0, self.n_features());
        }
        let blocks = range.start / SAMPLE_BLOCK..range.end.div_ceil(SAMPLE_BLOCK);
        let parts: Vec<Mat<f64>> = blocks
            .into_par_iter()
            .map(|b| {
                let first = range.start.max(b * SAMPLE_BLOCK) - b * SAMPLE_BLOCK;
                let end = range.end.min((b + 1) * SAMPLE_BLOCK) - b * SAMPLE_BLOCK;
                self.sample_block(seed, b).subrows(first, end - first).to_owned()
            })
            .collect();
        stack(self.n_features(), parts.iter().map(Mat::as_ref))
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

    /// One number per row.
    fn per_row<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        f: impl Fn(&Kernel, MatRef<'_, f64>) -> Result<Vec<f64>> + Sync,
    ) -> Result<Vec<f64>> {
        let parts = map_chunks(rows.into().source(), |chunk: &Chunk<'_>| {
            let mut out = vec![0.0; chunk.nrows()];
            for_each_group(self, chunk, |g| {
                let values = f(g.kernel, g.e)?;
                g.rows.iter().zip(values).for_each(|(row, v)| out[*row] = v);
                Ok(())
            })?;
            Ok(out)
        })?;
        Ok(parts.concat())
    }

    /// `width` numbers per row; `f` gives them as columns (width × rows).
    fn per_row_columns<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        width: usize,
        f: impl Fn(&Kernel, MatRef<'_, f64>) -> Result<Mat<f64>> + Sync,
    ) -> Result<Mat<f64>> {
        let parts = map_chunks(rows.into().source(), |chunk: &Chunk<'_>| {
            let mut out = Mat::zeros(chunk.nrows(), width);
            for_each_group(self, chunk, |g| {
                scatter_rows(&mut out, g.rows, f(g.kernel, g.e)?.as_ref());
                Ok(())
            })?;
            Ok(out)
        })?;
        Ok(stack(width, parts.iter().map(Mat::as_ref)))
    }
}

/// Writes column i of `columns` to row `rows[i]`.
fn scatter_rows(out: &mut Mat<f64>, rows: &[usize], columns: MatRef<'_, f64>) {
    for j in 0..out.ncols() {
        for (i, row) in rows.iter().enumerate() {
            out[(*row, j)] = columns[(j, i)];
        }
    }
}

/// The parts below each other.
pub(super) fn stack<'a>(width: usize, parts: impl Iterator<Item = MatRef<'a, f64>> + Clone) -> Mat<f64> {
    let mut out = Mat::zeros(parts.clone().map(|p| p.nrows()).sum(), width);
    let mut start = 0;
    for part in parts {
        out.as_mut().subrows_mut(start, part.nrows()).copy_from(part);
        start += part.nrows();
    }
    out
}

fn column(m: &Mat<f64>, j: usize) -> Vec<f64> {
    m.col_as_slice(j).to_vec()
}

/// T² and SPE of scaled deviations e (rows × p).
fn t2_spe_of(kernel: &Kernel, e: MatRef<'_, f64>) -> Result<(Vec<f64>, Vec<f64>)> {
    let factor = kernel.least_squares()?;
    let z = kernel.latent(factor, e);
    let spe = kernel.squared_error(kernel.residual(e, z.as_ref()).as_ref());
    Ok((squared_scores(factor, kernel.factor().noise(), z.as_ref()), spe))
}

/// T² = zᵀ (I + s G⁺)⁻¹ z of least-squares coordinates z (q × rows), whose covariance under the model is I + s G⁺.
fn squared_scores(least_squares: &LatentFactor, noise: f64, z: MatRef<'_, f64>) -> Vec<f64> {
    let LatentFactor::Noiseless { eigen, rank } = least_squares else { return Vec::new() };
    let t = product(eigen.vectors.subcols(0, *rank).transpose(), z); // (rank × rows)
    let share: Vec<f64> = eigen.values[..*rank].iter().map(|g| g / (g + noise)).collect();
    t.col_iter().map(|c| c.iter().zip(&share).map(|(t, s)| t * t * s).sum()).collect()
}

/// P(χ²ₖ ≥ d).
fn upper_tail(d: f64, k: f64) -> Result<f64> {
    if k == 0.0 {
        return Ok(1.0);
    }
    let chi2 = ChiSquared::new(k).map_err(|_| Error::Decomposition("χ² distribution"))?;
    Ok(chi2.sf(d))
}

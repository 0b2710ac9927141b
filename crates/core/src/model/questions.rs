//! What can be asked of a linear-Gaussian model about rows, complete or with missing values.

use std::ops::Range;

use rayon::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::LinearGaussian;
use super::factored::FactoredModel;
use super::groups::Group;
use super::inference::{Inference, Purpose};
use crate::control::Control;
use crate::data::{Chunk, RowSource, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, product, set_product};
use crate::memory;
use crate::parallel;

/// How a row is rebuilt from its latent coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reconstruction {
    /// The point of the model's plane nearest to the row (nearest in units of the noise): least squared
    /// error.
    #[default]
    Orthogonal,
    /// From the posterior mean, which lies nearer to the model's mean.
    Posterior,
}

/// How far rows are from what the model expects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outliers {
    /// Hotelling's T²: squared distance within the model's plane, in units of its variance.
    pub t2: Vec<f64>,
    /// Squared prediction error: squared distance from the plane, in the data's units.
    pub spe: Vec<f64>,
    /// Probability that a row of the model lies at least as far out: upper tail of the χ² of the Mahalanobis
    /// distance.
    pub p_value: Vec<f64>,
}

impl LinearGaussian {
    /// Log density of each row: $-\tfrac12 \left( p \ln 2\pi + \ln|C| + (x-\mu)^\top C^{-1} (x-\mu) \right)$
    /// over the observed cells. A row with none scores 0.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell, or the model has no density.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general in its lifetime"
    )]
    pub fn log_density<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.per_row(rows, |group| group.log_density())
    }

    /// Squared Mahalanobis distance (x−μ)ᵀC⁻¹(x−μ) of each row, over the observed cells.
    ///
    /// # Errors
    /// As [`log_density`](Self::log_density).
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general in its lifetime"
    )]
    pub fn mahalanobis<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Vec<f64>> {
        self.per_row(rows, |group| group.mahalanobis())
    }

    /// Posterior mean of the latent variables of each row (n × q): $M^{-1} W^\top (x - \mu)$ for PPCA with
    /// $M = W^\top W + \sigma^2 I$ \[TB99, eq. 6\].
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn latent_mean<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.turned_latent_mean(rows, None)
    }

    /// The same as Tᵀz for a turn T (q × q).
    pub(super) fn turned_latent_mean<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        turn: Option<&Mat<f64>>,
    ) -> Result<Mat<f64>> {
        let (rows, inference) = (rows.into(), Inference::new(self, Purpose::Posterior));
        room_for("the table of coordinates", rows.source(), self.n_latent())?;
        let parts = map_chunks(rows.source(), |chunk| {
            columns_of(&inference, chunk, self.n_latent(), |group| Ok(turned(turn, group.latent())))
        })?;
        Ok(stack(self.n_latent(), parts.iter().map(Mat::as_ref)))
    }

    /// Weighted least-squares coordinates (AᵀA)⁻¹Aᵀe of each row (n × q); NaN where its cells do not
    /// determine all of them.
    pub(super) fn least_squares<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        self.per_row_columns(rows, self.n_latent(), |group| match group.determined()? {
            true => group.least_squares(),
            false => Ok(Mat::full(self.n_latent(), group.rows().len(), f64::NAN)),
        })
    }

    /// Each row rebuilt from its latent coordinates (n × p), the missing cells too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn reconstruct<'a>(&self, rows: impl Into<Rows<'a>>, kind: Reconstruction) -> Result<Mat<f64>> {
        let purpose = match kind {
            Reconstruction::Posterior => Purpose::Posterior,
            Reconstruction::Orthogonal => Purpose::LeastSquares,
        };
        let (rows, inference) = (rows.into(), Inference::new(self, purpose));
        room_for("the table of rebuilt rows", rows.source(), self.n_features())?;
        let parts = map_chunks(rows.source(), |chunk| {
            let z = columns_of(&inference, chunk, self.n_latent(), |group| match kind {
                Reconstruction::Posterior => Ok(group.latent()),
                Reconstruction::Orthogonal => group.least_squares(),
            })?;
            self.decode(z.as_ref())
        })?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
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
        let all = self.per_row_columns(rows, 3, |group| {
            let tail = |(d, k): (f64, usize)| upper_tail(d, k as f64);
            let tails = group
                .mahalanobis()?
                .into_iter()
                .zip(group.observed())
                .map(tail)
                .collect::<Result<Vec<_>>>()?;
            let (t2, spe) = group.t2_spe()?;
            Ok(Mat::from_fn(3, tails.len(), |i, j| [t2[j], spe[j], tails[j]][i]))
        })?;
        Ok(Outliers { t2: column(&all, 0), spe: column(&all, 1), p_value: column(&all, 2) })
    }

    /// T² and SPE of each row, which exist without noise too.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn t2_spe<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<(Vec<f64>, Vec<f64>)> {
        let both = self.per_row_columns(rows, 2, |group| {
            let (t2, spe) = group.t2_spe()?;
            Ok(Mat::from_fn(2, t2.len(), |i, j| [t2[j], spe[j]][i]))
        })?;
        Ok((column(&both, 0), column(&both, 1)))
    }

    /// C⁻¹ by Woodbury's identity (p × p).
    ///
    /// # Errors
    /// When C is singular or does not fit in memory.
    pub fn precision(&self) -> Result<Mat<f64>> {
        self.precision_with(&Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`precision`](Self::precision), and [`Error::Interrupted`].
    pub fn precision_with(&self, control: &Control<'_>) -> Result<Mat<f64>> {
        let p = self.n_features();
        memory::check("the precision matrix of all features", &[2, p, p])?;
        let model = FactoredModel::new(self)?;
        model.log_det()?;
        // Columns of C⁻¹ are what each unit deviation is worth: (e − A z) / s for noise, (W⁺)ᵀz without.
        let root = |j: usize| model.root()[j];
        let units = |of: Range<usize>| {
            Mat::from_fn(of.len(), p, |k, j| if j == of.start + k { 1.0 / root(j) } else { 0.0 })
        };
        let s = model.factor().noise();
        if s == 0.0 {
            let z = model.latent(model.factor(), units(0..p).as_ref());
            return in_columns(p, control, |of| {
                Ok(product(z.transpose(), z.as_ref().subcols(of.start, of.len())))
            });
        }
        in_columns(p, control, |of| {
            let unit = units(of);
            let z = model.latent(model.factor(), unit.as_ref());
            let mut c = model.residual(unit.as_ref(), z.as_ref());
            for column in c.col_iter_mut() {
                column.iter_mut().enumerate().for_each(|(i, x)| *x /= s * root(i));
            }
            Ok(c)
        })
    }

    /// One number per row.
    pub(super) fn per_row<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        f: impl Fn(&Group<'_>) -> Result<Vec<f64>> + Sync,
    ) -> Result<Vec<f64>> {
        let inference = Inference::new(self, Purpose::Posterior);
        let parts = map_chunks(rows.into().source(), |chunk: &Chunk<'_>| {
            let mut out = vec![0.0; chunk.nrows()];
            inference.for_each_group(chunk, &mut |g| {
                g.rows().iter().zip(f(&g)?).for_each(|(row, v)| out[*row] = v);
                Ok(())
            })?;
            Ok(out)
        })?;
        Ok(parts.concat())
    }

    /// `width` numbers per row, of groups made for least squares; `f` gives them as columns (width × rows).
    pub(super) fn per_row_columns<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        width: usize,
        f: impl Fn(&Group<'_>) -> Result<Mat<f64>> + Sync,
    ) -> Result<Mat<f64>> {
        let inference = Inference::new(self, Purpose::LeastSquares);
        let parts = map_chunks(rows.into().source(), |chunk| columns_of(&inference, chunk, width, &f))?;
        Ok(stack(width, parts.iter().map(Mat::as_ref)))
    }
}

/// `width` numbers for each row of a chunk (n × width); `f` gives them as columns (width × rows).
fn columns_of(
    inference: &Inference<'_>,
    chunk: &Chunk<'_>,
    width: usize,
    f: impl Fn(&Group<'_>) -> Result<Mat<f64>>,
) -> Result<Mat<f64>> {
    let mut out = Mat::zeros(chunk.nrows(), width);
    inference.for_each_group(chunk, &mut |group| {
        scatter_rows(&mut out, group.rows(), f(&group)?.as_ref());
        Ok(())
    })?;
    Ok(out)
}

/// Posterior means of the rows of a chunk (n × q).
pub(super) fn latent_of(inference: &Inference<'_>, chunk: &Chunk<'_>) -> Result<Mat<f64>> {
    columns_of(inference, chunk, inference.n_latent(), |group| Ok(group.latent()))
}

/// Tᵀz of latent coordinates as columns (q × rows).
fn turned(turn: Option<&Mat<f64>>, z: Mat<f64>) -> Mat<f64> {
    let Some(t) = turn else { return z };
    let mut out = Mat::zeros(t.ncols(), z.ncols());
    set_product(out.as_mut(), t.transpose(), z.as_ref());
    out
}

/// Writes column i of `columns` to row `rows[i]`.
pub(super) fn scatter_rows(out: &mut Mat<f64>, rows: &[usize], columns: MatRef<'_, f64>) {
    for (j, from) in (0..out.ncols()).zip(columns.row_iter()) {
        let to = out.col_as_slice_mut(j);
        rows.iter().zip(from.iter()).for_each(|(row, x)| to[*row] = *x);
    }
}

/// Columns that are made at once.
const COLUMNS: usize = 128;

/// A matrix (p × p) of which some columns are made at a time, on all threads, until a caller cancels.
pub(super) fn in_columns(
    p: usize,
    control: &Control<'_>,
    make: impl Fn(Range<usize>) -> Result<Mat<f64>> + Sync,
) -> Result<Mat<f64>> {
    let parts = parallel::try_map(p.div_ceil(COLUMNS), |block| {
        control.check()?;
        make(block * COLUMNS..p.min((block + 1) * COLUMNS))
    })?;
    let mut out = Mat::zeros(p, p);
    for (block, part) in parts.into_iter().enumerate() {
        out.as_mut().subcols_mut(block * COLUMNS, part.ncols()).copy_from(part);
    }
    Ok(out)
}

/// Checks that there is room for a table of so many numbers for each row: those of the chunks, and the whole.
pub(super) fn room_for(what: &'static str, source: &dyn RowSource, width: usize) -> Result<()> {
    source.n_rows().map_or(Ok(()), |n| memory::check(what, &[2, n, width]))
}

/// The parts below each other, column by column on all threads.
pub(super) fn stack<'a>(width: usize, parts: impl Iterator<Item = MatRef<'a, f64>>) -> Mat<f64> {
    stacked(width, &parts.collect::<Vec<_>>())
}

fn stacked(width: usize, parts: &[MatRef<'_, f64>]) -> Mat<f64> {
    let mut out = Mat::zeros(parts.iter().map(MatRef::nrows).sum(), width);
    out.as_mut().par_col_iter_mut().enumerate().for_each(|(j, mut column)| {
        let mut start = 0;
        for part in parts {
            column.as_mut().subrows_mut(start, part.nrows()).copy_from(part.col(j));
            start += part.nrows();
        }
    });
    out
}

pub(super) fn column(m: &Mat<f64>, j: usize) -> Vec<f64> {
    m.col_as_slice(j).to_vec()
}

/// P(χ²ₖ ≥ d).
pub(super) fn upper_tail(d: f64, k: f64) -> Result<f64> {
    if k == 0.0 {
        return Ok(1.0);
    }
    let chi2 = ChiSquared::new(k).map_err(|_| Error::Decomposition("χ² distribution"))?;
    Ok(chi2.sf(d))
}

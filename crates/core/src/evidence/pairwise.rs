//! The covariance of each pair of features from the rows that have both: where a fit with missing values
//! starts.

use serde::{Deserialize, Serialize};

use super::census::Census;
use super::margins::Margins;
use super::moments::check_features;
use super::{Accumulator, Moments, Travel};
use crate::blocks::{MaskedBlock, for_each_masked};
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::serial::{self, lower};
use crate::linalg::{Mat, MatRef, add_product, lower_crossproduct, mirror_lower};

/// Rows that are looked at before a chunk is taken for complete.
const FIRST_ROWS: usize = 16;

/// Moments of complete rows for as long as no value is missing, then also counts, sums and products of each
/// pair of features over the rows that have both (available cases).
///
/// Complete data so cost nothing more than [`Moments`], which is what comes out then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pairwise {
    census: Census,
    complete: Moments,
    pairs: Option<Box<Pairs>>,
}

/// What a pass over rows has found.
pub enum Found {
    /// No missing values: everything that a closed form needs.
    Complete(Moments),
    /// Missing values.
    Incomplete(AvailableCases),
}

/// Means and covariances of the observed cells.
#[derive(Debug, Clone)]
pub struct AvailableCases {
    /// What was there.
    pub census: Census,
    /// Total weight of the observed cells of each feature.
    pub weights: Vec<f64>,
    /// Mean of the observed cells of each feature.
    pub mean: Vec<f64>,
    /// Covariance of each pair of features over the rows that have both, 0 where there are none; not always
    /// positive semidefinite (p × p).
    pub covariance: Mat<f64>,
    /// Pairs of features that no row has both of.
    pub unseen_pairs: usize,
}

impl AvailableCases {
    /// Variance of each feature.
    pub fn variances(&self) -> Vec<f64> {
        (0..self.mean.len()).map(|j| self.covariance[(j, j)]).collect()
    }
}

impl From<&Moments> for AvailableCases {
    /// Of complete rows.
    fn from(moments: &Moments) -> Self {
        let (p, weight) = (moments.n_features(), moments.weight());
        Self {
            census: Census::complete(p, moments.rows(), weight),
            weights: vec![weight; p],
            mean: moments.mean().to_vec(),
            covariance: moments.covariance(),
            unseen_pairs: 0,
        }
    }
}

impl Pairwise {
    /// Of no rows.
    pub fn empty(n_features: usize) -> Self {
        Self { census: Census::empty(n_features), complete: Moments::empty_fast(n_features), pairs: None }
    }

    /// Moments when all rows were complete, available cases otherwise.
    ///
    /// # Errors
    /// [`Error::NeverObserved`] for features without a cell, [`Error::NoRows`], [`Error::Scale`] when numbers
    /// overflow.
    pub fn finish(self) -> Result<Found> {
        let Self { census, complete, pairs } = self;
        let Some(mut pairs) = pairs else { return Ok(Found::Complete(complete)) };
        pairs.add_moments(&complete);
        pairs.available_cases(census).map(Found::Incomplete)
    }

    fn update_incomplete(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let part = match chunk.cells() {
            Cells::Observed(rows) => {
                let shift = Margins::of_chunk(chunk).mean().to_vec();
                Pairs::of_observed(*rows, chunk.weights(), shift)
            }
            dense => with_view!(dense, view => Pairs::of_view(view, chunk.weights())),
        };
        if !part.is_finite() {
            return Err(chunk.explain_infinite().unwrap_or(Error::Scale));
        }
        self.census.update(chunk);
        match &mut self.pairs {
            Some(pairs) => pairs.merge(&part),
            none => *none = Some(Box::new(part)),
        }
        Ok(())
    }

    /// Takes the chunk as complete rows; an error names its first missing cell.
    fn update_complete(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.complete.update(chunk)?;
        let rows = chunk.weights().map_or(chunk.nrows(), |w| w.iter().filter(|w| **w > 0.0).count());
        self.census.add_complete(rows, chunk.weights().map_or(rows as f64, |w| w.iter().sum()));
        Ok(())
    }

    fn looks_complete(&self, chunk: &Chunk<'_>) -> bool {
        let (n, p) = chunk.cells().shape();
        let first = (0..n.min(FIRST_ROWS)).flat_map(|i| (0..p).map(move |j| (i, j)));
        let dense = !matches!(chunk.cells(), Cells::Observed(_));
        self.pairs.is_none() && dense && first.into_iter().all(|(i, j)| !chunk.cells().get(i, j).is_nan())
    }
}

impl Accumulator for Pairwise {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("pairwise"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.census.n_features(), chunk.ncols())?;
        if self.looks_complete(chunk) {
            match self.update_complete(chunk) {
                Err(Error::Missing { .. }) => {}
                done => return done,
            }
        }
        self.update_incomplete(chunk)
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.complete.merge(&other.complete)?;
        self.census.merge(&other.census);
        match (&mut self.pairs, &other.pairs) {
            (Some(pairs), Some(more)) => pairs.merge(more),
            (none, Some(more)) => *none = Some(more.clone()),
            (_, None) => {}
        }
        Ok(())
    }
}

/// Sums over the rows that have both features of a pair, of deviations y from a shift.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Pairs {
    shift: Vec<f64>,
    #[serde(with = "lower")]
    counts: Mat<f64>, // Σ w (p × p), lower triangle
    #[serde(with = "serial")]
    sums: Mat<f64>, // Σ w yⱼ at (j, k) (p × p)
    #[serde(with = "lower")]
    products: Mat<f64>, // Σ w yⱼyₖ (p × p), lower triangle
}

impl Pairs {
    fn empty(shift: Vec<f64>) -> Self {
        let square = || Mat::zeros(shift.len(), shift.len());
        Self { counts: square(), sums: square(), products: square(), shift }
    }

    fn of_view<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Self {
        let mut pairs = Self::empty(provisional_means(view, weights));
        let counted = (0..view.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0)).collect();
        let (shift, ones) = (pairs.shift.clone(), vec![1.0; view.ncols()]);
        let done: Result<(), std::convert::Infallible> =
            for_each_masked(view, counted, shift[..].into(), &ones, &mut |block| {
                pairs.add_block(block, weights);
                Ok(())
            });
        let Ok(()) = done;
        pairs
    }

    fn add_block(&mut self, block: &MaskedBlock, weights: Option<&[f64]>) {
        let weight = |at: usize| weights.map_or(1.0, |w| w[block.rows[at]]);
        let (p, rows) = (self.shift.len(), block.rows.len());
        // Rows of a pattern share its mask: their weights and deviations are added up first.
        let mut of_pattern = vec![0.0; block.observed.len()];
        let mut sum = Mat::zeros(p, block.observed.len());
        let mut rooted = block.deviations().to_owned(); // √w y
        for at in 0..rows {
            let (w, pattern) = (weight(at), block.pattern[at]);
            of_pattern[pattern] += w;
            let y = block.deviations.col_as_slice(at);
            sum.col_as_slice_mut(pattern).iter_mut().zip(y).for_each(|(s, y)| *s += w * y);
            rooted.col_as_slice_mut(at).iter_mut().for_each(|y| *y *= w.sqrt());
        }
        let mut mask = block.mask().to_owned();
        add_product(self.sums.as_mut(), sum.as_ref(), mask.transpose(), 1.0);
        for (d, weight) in of_pattern.iter().enumerate() {
            mask.col_as_slice_mut(d).iter_mut().for_each(|m| *m *= weight.sqrt());
        }
        lower_crossproduct(self.counts.as_mut(), mask.transpose(), true);
        lower_crossproduct(self.products.as_mut(), rooted.transpose(), true);
    }

    /// In proportion to the pairs of cells that rows have.
    fn of_observed(rows: ObservedRows<'_>, weights: Option<&[f64]>, shift: Vec<f64>) -> Self {
        let mut pairs = Self::empty(shift);
        for i in 0..rows.shape().0 {
            let (columns, values) = rows.row(i);
            let w = weights.map_or(1.0, |w| w[i]);
            let y = |at: usize| values[at] - pairs.shift[columns[at] as usize];
            let y: Vec<f64> = (0..columns.len()).map(y).collect();
            for (a, j) in columns.iter().enumerate() {
                for (b, k) in columns.iter().enumerate() {
                    let (j, k) = (*j as usize, *k as usize);
                    pairs.sums[(j, k)] += w * y[a];
                    if k <= j {
                        pairs.counts[(j, k)] += w;
                        pairs.products[(j, k)] += w * y[a] * y[b];
                    }
                }
            }
        }
        pairs
    }

    fn is_finite(&self) -> bool {
        (0..self.shift.len()).all(|j| self.products[(j, j)].is_finite() && self.sums[(j, j)].is_finite())
    }

    /// Takes in sums around another shift: y = y' + d with d = shift' − shift.
    fn merge(&mut self, other: &Self) {
        let p = self.shift.len();
        for j in (0..p).filter(|j| self.counts[(*j, *j)] == 0.0).collect::<Vec<_>>() {
            self.shift[j] = other.shift[j]; // not seen so far, so no sums are around the old one
        }
        let d: Vec<f64> = other.shift.iter().zip(&self.shift).map(|(b, a)| b - a).collect();
        for k in 0..p {
            for j in 0..p {
                let count = if j >= k { other.counts[(j, k)] } else { other.counts[(k, j)] };
                if count == 0.0 {
                    continue; // a shift of features that were not seen may be anything
                }
                self.sums[(j, k)] += other.sums[(j, k)] + d[j] * count;
                if j >= k {
                    self.counts[(j, k)] += count;
                    self.products[(j, k)] += other.products[(j, k)]
                        + d[k] * other.sums[(j, k)]
                        + d[j] * other.sums[(k, j)]
                        + d[j] * d[k] * count;
                }
            }
        }
    }

    /// Takes in complete rows.
    fn add_moments(&mut self, moments: &Moments) {
        let p = self.shift.len();
        let n = moments.weight();
        if n == 0.0 {
            return;
        }
        let mut counts = Mat::zeros(p, p);
        counts.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x = n));
        self.merge(&Self {
            shift: moments.mean().to_vec(),
            counts,
            sums: Mat::zeros(p, p),
            products: moments.scatter_lower().to_owned(),
        });
    }

    fn available_cases(self, census: Census) -> Result<AvailableCases> {
        let p = self.shift.len();
        if census.rows() == 0 {
            return Err(Error::NoRows);
        }
        let unseen: Vec<_> = (0..p).filter(|j| self.counts[(*j, *j)] == 0.0).map(|j| (j, None)).collect();
        if !unseen.is_empty() {
            return Err(Error::NeverObserved { features: unseen });
        }
        let offset: Vec<f64> = (0..p).map(|j| self.sums[(j, j)] / self.counts[(j, j)]).collect();
        let mut covariance = Mat::zeros(p, p);
        let mut unseen_pairs = 0;
        for k in 0..p {
            for j in k..p {
                let n = self.counts[(j, k)];
                if n == 0.0 {
                    unseen_pairs += 1;
                    continue;
                }
                let about_means =
                    self.products[(j, k)] - offset[k] * self.sums[(j, k)] - offset[j] * self.sums[(k, j)]
                        + offset[j] * offset[k] * n;
                covariance[(j, k)] = about_means / n;
            }
        }
        if (0..p).any(|j| !covariance[(j, j)].is_finite()) {
            return Err(Error::Scale);
        }
        mirror_lower(&mut covariance);
        let mean = self.shift.iter().zip(&offset).map(|(s, d)| s + d).collect();
        let weights = (0..p).map(|j| self.counts[(j, j)]).collect();
        Ok(AvailableCases { census, weights, mean, covariance, unseen_pairs })
    }
}

/// A value near the cells of each feature: the mean of the first observed ones, 0 where there are none.
fn provisional_means<T: Real>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Vec<f64> {
    let counts = |i: &usize| weights.is_none_or(|w| w[*i] > 0.0);
    let mean = |j: usize| {
        let cells = (0..view.nrows()).filter(counts).map(|i| view[(i, j)].to_f64()).filter(|x| !x.is_nan());
        let first: Vec<f64> = cells.take(FIRST_ROWS).collect();
        // Around the first cell: a feature that is constant must have exactly its value for a mean.
        let start = first.first().copied().unwrap_or(0.0);
        start + first.iter().map(|x| (x - start) / first.len() as f64).sum::<f64>()
    };
    (0..view.ncols()).map(mean).map(|m| if m.is_finite() { m } else { 0.0 }).collect()
}

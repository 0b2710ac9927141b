//! Observed cells that are hidden at random, so that predictions of them can be compared with what they are.

use std::ops::Range;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::control::Control;
use crate::data::{Cells, Chunk, Order, Real, RowSource, with_view};
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Margins, gather};

/// Streams of the generator that belong to rows whose cells are hidden.
const STREAMS: u64 = 1 << 62;

/// Which observed cells are hidden: each by a draw of its own, so that neither chunks nor threads matter.
///
/// The last cells of a feature are never hidden: nothing would be left to learn it from. Rows of no weight
/// are no rows.
///
/// ```
/// use covary::Control;
/// use covary::data::Rows;
/// use covary::select::CellSplit;
///
/// let cells = [1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0, 7.0, 8.0];
/// let rows = Rows::from_slice(&cells, 2)?;
/// let folds = CellSplit::folds(rows.source(), 2, 0, &Control::new())?;
/// assert_eq!((folds.len(), folds[0].observed()), (2, 7));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CellSplit {
    draws: Draws,
    taken: Range<f64>, // draws of the cells that are hidden
    spared: Vec<bool>,
    all: Arc<AllCells>,
    left: Margins,
}

/// A cell that is hidden.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HiddenCell {
    /// Its row.
    pub row: usize,
    /// Its feature.
    pub feature: usize,
    /// What it is.
    pub value: f64,
}

/// What all splits of the same rows know of them.
#[derive(Debug, Clone)]
struct AllCells {
    margins: Margins,
    observed: usize,
    weight: f64, // of rows that have a cell
}

impl CellSplit {
    /// Hides this share of the observed cells; one pass over the rows.
    ///
    /// # Errors
    /// Those of the rows; [`Error::Interrupted`].
    pub fn of_share(source: &dyn RowSource, share: f64, seed: u64, control: &Control<'_>) -> Result<Self> {
        if !(share > 0.0 && share < 1.0) {
            let (name, allowed) = ("the share of hidden cells", "above 0 and below 1");
            return Err(Error::Parameter { name, value: share.to_string(), allowed });
        }
        let parts = gather(source, || Parts::empty(source.n_features(), &[share], seed), control)?;
        Ok(parts.split(0, 0.0..share, Arc::new(parts.all())))
    }

    /// Deals the observed cells to so many folds: each split hides the cells of one of them. One pass over
    /// the rows.
    ///
    /// # Errors
    /// Those of the rows; [`Error::Interrupted`].
    pub fn folds(
        source: &dyn RowSource,
        folds: usize,
        seed: u64,
        control: &Control<'_>,
    ) -> Result<Vec<Self>> {
        let limits: Vec<f64> = (1..=folds).map(|k| k as f64 / folds as f64).collect();
        let parts = gather(source, || Parts::empty(source.n_features(), &limits, seed), control)?;
        let (all, first) = (Arc::new(parts.all()), |k: usize| k as f64 / folds as f64);
        Ok((0..folds).map(|k| parts.split(k, first(k)..limits[k], Arc::clone(&all))).collect())
    }

    /// Mean of what is left of each feature; 0 for a feature that has no cell.
    pub fn means(&self) -> &[f64] {
        self.left.mean()
    }

    /// Variance of what is left about these means, the same for all features.
    pub(super) fn left_variance(&self) -> f64 {
        self.left.pooled_variance()
    }

    /// Observed cells, hidden ones included.
    pub fn observed(&self) -> usize {
        self.all.observed
    }

    /// Features that have no cell.
    pub fn empty_features(&self) -> Vec<usize> {
        let weights = self.all.margins.weight();
        (0..weights.len()).filter(|j| weights[*j] == 0.0).collect()
    }

    /// Mean, variance and weight of all observed cells of each feature.
    pub(super) fn margins(&self) -> &Margins {
        &self.all.margins
    }

    /// Total weight of the rows that have a cell.
    pub(super) fn weight(&self) -> f64 {
        self.all.weight
    }

    /// Calls `f` with row in the chunk, feature and value of each observed cell, and whether it is hidden.
    pub(super) fn for_each(&self, chunk: &Chunk<'_>, mut f: impl FnMut(usize, usize, f64, bool)) {
        self.draws.for_each(chunk, |i, j, value, draw| {
            f(i, j, value, self.taken.contains(&draw) && !self.spared[j]);
        });
    }

    /// Rows without their hidden cells, and these, with their row in the chunk.
    ///
    /// # Errors
    /// None that a sound chunk could cause.
    pub fn part(&self, chunk: &Chunk<'_>) -> Result<(Chunk<'static>, Vec<HiddenCell>)> {
        let (n, p) = (chunk.nrows(), chunk.ncols());
        let (mut training, mut hidden) = (vec![f64::NAN; n * p], Vec::new());
        self.for_each(chunk, |row, feature, value, is_hidden| match is_hidden {
            true => hidden.push(HiddenCell { row, feature, value }),
            false => training[row * p + feature] = value,
        });
        let training = Chunk::from_rows(chunk.first_row(), training, p, Order::Rows)?;
        match chunk.weights() {
            Some(weights) => Ok((training.with_weights(weights.to_vec())?, hidden)),
            None => Ok((training, hidden)),
        }
    }
}

/// A number for each observed cell, uniform between 0 and 1: it depends on the seed, the row and the features
/// that this has.
#[derive(Debug, Clone)]
struct Draws {
    generator: ChaCha8Rng,
}

impl Draws {
    fn new(seed: u64) -> Self {
        Self { generator: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Calls `f` with row in the chunk, feature, value and draw of each observed cell.
    fn for_each(&self, chunk: &Chunk<'_>, mut f: impl FnMut(usize, usize, f64, f64)) {
        let used = |i: usize| chunk.weights().is_none_or(|w| w[i] > 0.0);
        for i in (0..chunk.nrows()).filter(|i| used(*i)) {
            let mut generator = self.generator.clone();
            generator.set_stream(STREAMS | (chunk.first_row() + i) as u64);
            for_each_cell(chunk, i, |j, value| f(i, j, value, generator.random::<f64>()));
        }
    }
}

/// Calls `f` with feature and value of the observed cells of a row, in the order of the features.
fn for_each_cell(chunk: &Chunk<'_>, row: usize, mut f: impl FnMut(usize, f64)) {
    match chunk.cells() {
        Cells::Observed(rows) => {
            let (columns, values) = rows.row(row);
            columns.iter().zip(values).for_each(|(j, x)| f(*j as usize, *x));
        }
        dense => with_view!(dense, view => {
            let cells = view.row(row).iter().map(|x| x.to_f64()).enumerate();
            cells.filter(|(_, x)| !x.is_nan()).for_each(|(j, x)| f(j, x));
        }),
    }
}

/// Margins of the cells that each part would hide, and of the others.
#[derive(Debug, Clone)]
struct Parts {
    draws: Draws,
    limits: Vec<f64>,
    margins: Vec<Margins>, // one more than there are limits
    observed: usize,
    weight: f64,
}

impl Parts {
    fn empty(p: usize, limits: &[f64], seed: u64) -> Self {
        let margins = vec![Margins::empty(p); limits.len() + 1];
        Self { draws: Draws::new(seed), limits: limits.to_vec(), margins, observed: 0, weight: 0.0 }
    }

    fn without(&self, part: usize) -> Margins {
        let mut sum = Margins::empty(self.margins[0].mean().len());
        let others = self.margins.iter().enumerate().filter(|(k, _)| *k != part);
        others.for_each(|(_, margins)| sum.merge(margins));
        sum
    }

    fn all(&self) -> AllCells {
        AllCells { margins: self.without(self.margins.len()), observed: self.observed, weight: self.weight }
    }

    fn split(&self, part: usize, taken: Range<f64>, all: Arc<AllCells>) -> CellSplit {
        let mut left = self.without(part);
        let spared: Vec<bool> = left.weight().iter().map(|w| *w == 0.0).collect();
        left.merge_some(&all.margins, &spared);
        CellSplit { draws: self.draws.clone(), taken, spared, all, left }
    }
}

impl Accumulator for Parts {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let Self { draws, limits, margins, observed, weight } = self;
        let weight_of = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
        let mut last = None;
        draws.for_each(chunk, |i, j, value, draw| {
            let part = limits.partition_point(|limit| *limit <= draw);
            margins[part].add(j, value, weight_of(i));
            *observed += 1;
            *weight += if last == Some(i) { 0.0 } else { weight_of(i) };
            last = Some(i);
        });
        let finite = self.margins.iter().all(Margins::is_finite);
        if finite { Ok(()) } else { Err(chunk.explain_infinite().unwrap_or(Error::Scale)) }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.margins.iter_mut().zip(&other.margins).for_each(|(a, b)| a.merge(b));
        self.observed += other.observed;
        self.weight += other.weight;
        Ok(())
    }
}

//! Each feature by itself: weight, mean and variance of its observed cells.

use serde::{Deserialize, Serialize};

use super::census::Census;
use super::moments::check_features;
use super::{Accumulator, Travel};
use crate::data::{Cells, Chunk, with_view};
use crate::error::{Error, Result};

/// Weight, mean and sum of squared deviations of the observed cells of each feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Margins {
    weight: Vec<f64>,
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Margins {
    /// Of no cells.
    pub(crate) fn empty(n_features: usize) -> Self {
        let zeros = || vec![0.0; n_features];
        Self { weight: zeros(), mean: zeros(), squares: zeros() }
    }

    pub(super) fn of_chunk(chunk: &Chunk<'_>) -> Self {
        let mut margins = Self::empty(chunk.ncols());
        margins.update(chunk);
        margins
    }

    pub(super) fn update(&mut self, chunk: &Chunk<'_>) {
        let weight = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
        match chunk.cells() {
            Cells::Observed(rows) => (0..rows.shape().0).for_each(|i| {
                let (columns, values) = rows.row(i);
                columns.iter().zip(values).for_each(|(j, x)| self.add(*j as usize, *x, weight(i)));
            }),
            dense => with_view!(dense, view => view.row_iter().enumerate().for_each(|(i, row)| {
                let cells = row.iter().map(|x| crate::data::Real::to_f64(*x));
                cells.enumerate().for_each(|(j, x)| self.add(j, x, weight(i)));
            })),
        }
    }

    /// One cell (Welford's update); missing cells and those of no weight change nothing.
    pub(crate) fn add(&mut self, feature: usize, x: f64, weight: f64) {
        if x.is_nan() || weight == 0.0 {
            return;
        }
        self.weight[feature] += weight;
        let before = x - self.mean[feature];
        self.mean[feature] += before * weight / self.weight[feature];
        self.squares[feature] += weight * before * (x - self.mean[feature]);
    }

    /// Takes in the cells that others have seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.merge_some(other, &vec![true; self.mean.len()]);
    }

    /// The same for some features.
    pub(crate) fn merge_some(&mut self, other: &Self, features: &[bool]) {
        for j in (0..self.mean.len()).filter(|j| features[*j]) {
            let (a, b) = (self.weight[j], other.weight[j]);
            if b == 0.0 {
                continue;
            }
            let difference = other.mean[j] - self.mean[j];
            self.weight[j] = a + b;
            self.mean[j] += difference * b / (a + b);
            self.squares[j] += other.squares[j] + difference * difference * a * b / (a + b);
        }
    }

    /// Mean of the observed cells of each feature, 0 where there are none.
    pub(crate) fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Total weight of the observed cells of each feature.
    pub(crate) fn weight(&self) -> &[f64] {
        &self.weight
    }

    /// Variance of the observed cells of each feature, divisor n.
    pub(crate) fn variance(&self) -> Vec<f64> {
        let of = |(s, w): (&f64, &f64)| if *w > 0.0 { s / w } else { 0.0 };
        self.squares.iter().zip(&self.weight).map(of).collect()
    }

    /// Variance of all observed cells, each about the mean of its feature.
    pub(crate) fn pooled_variance(&self) -> f64 {
        self.squares.iter().sum::<f64>() / self.weight.iter().sum::<f64>()
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.mean.iter().chain(&self.squares).all(|x| x.is_finite())
    }
}

/// A first look at data that may have missing values: what is there, and each feature by itself. O(p) memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Survey {
    census: Census,
    margins: Margins,
}

impl Survey {
    /// Of no rows.
    pub(crate) fn empty(n_features: usize) -> Self {
        Self { census: Census::empty(n_features), margins: Margins::empty(n_features) }
    }

    /// What is there, whether or not it is enough for anything.
    pub(crate) fn census(self) -> Census {
        self.census
    }

    /// What is there, and each feature by itself.
    ///
    /// # Errors
    /// [`Error::NoRows`], or [`Error::NeverObserved`] for features without a cell.
    pub(crate) fn finish(self) -> Result<(Census, Margins)> {
        if self.census.rows() == 0 {
            return Err(Error::NoRows);
        }
        let unseen = self.margins.weight().iter().enumerate().filter(|(_, w)| **w == 0.0);
        let features: Vec<_> = unseen.map(|(j, _)| (j, None)).collect();
        if features.is_empty() {
            Ok((self.census, self.margins))
        } else {
            Err(Error::NeverObserved { features })
        }
    }
}

impl Accumulator for Survey {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("survey"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.census.n_features(), chunk.ncols())?;
        self.census.update(chunk);
        self.margins.update(chunk);
        if self.margins.is_finite() { Ok(()) } else { Err(chunk.explain_infinite().unwrap_or(Error::Scale)) }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        check_features(self.census.n_features(), other.census.n_features())?;
        self.census.merge(&other.census);
        self.margins.merge(&other.margins);
        Ok(())
    }
}

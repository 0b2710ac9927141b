//! What is there and what is missing: rows, cells, patterns of missing values.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::blocks::{Pattern, patterns};
use crate::data::{Cells, Chunk, with_view};

/// Different patterns that are counted; beyond it, there are many.
const MOST_PATTERNS: usize = 1 << 20;

/// A count of rows, observed cells and patterns of missing values; rows of no weight do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Census {
    rows: usize,
    weight: f64,
    observed: Vec<u64>, // rows by their number of observed cells, 0 ..= p
    patterns: HashSet<u64>,
}

impl Census {
    /// Of no rows.
    pub fn empty(n_features: usize) -> Self {
        Self { rows: 0, weight: 0.0, observed: vec![0; n_features + 1], patterns: HashSet::new() }
    }

    /// Of complete rows.
    pub(crate) fn complete(n_features: usize, rows: usize, weight: f64) -> Self {
        let mut census = Self::empty(n_features);
        census.add_complete(rows, weight);
        census
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Total weight.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.observed.len() - 1
    }

    /// Cells that are there.
    pub fn observed(&self) -> u64 {
        (0..).zip(&self.observed).map(|(k, rows): (u64, &u64)| k * rows).sum()
    }

    /// Cells that are not.
    pub fn missing(&self) -> u64 {
        self.rows as u64 * self.n_features() as u64 - self.observed()
    }

    /// Rows without a single cell.
    pub fn empty_rows(&self) -> u64 {
        self.observed[0]
    }

    /// Different patterns of missing values, or `None` when there are more than a million.
    pub fn patterns(&self) -> Option<usize> {
        (self.patterns.len() < MOST_PATTERNS).then_some(self.patterns.len())
    }

    /// Rows without a missing cell.
    pub(crate) fn complete_rows(&self) -> u64 {
        self.observed.last().copied().unwrap_or(0)
    }

    /// Cells beyond the first `q` of their row: what can tell noise from q latent variables.
    fn beyond(&self, q: usize) -> u64 {
        (0..).zip(&self.observed[q..]).map(|(k, rows): (u64, &u64)| k * rows).sum()
    }

    /// The largest number of components that leaves something for the noise.
    ///
    /// An affine q-plane in p dimensions has (q + 1)(p − q) free numbers. A row of k cells lies in it for
    /// free when k ≤ q and asks for k − q equations otherwise; with no more equations than free numbers a
    /// plane passes through all cells: the noise can vanish and the likelihood grow without limit or, with no
    /// equation at all, noise and loadings cannot be told apart.
    pub fn supported_components(&self) -> usize {
        let p = self.n_features();
        let supports = |q: &usize| self.beyond(*q) > ((q + 1) * (p - q)) as u64;
        (1..p).take_while(supports).count().min(self.rows.saturating_sub(1))
    }

    pub(super) fn update(&mut self, chunk: &Chunk<'_>) {
        match chunk.cells() {
            Cells::Observed(rows) => {
                let p = rows.shape().1;
                let each = (0..rows.shape().0).map(|i| rows.row(i).0);
                self.count(chunk.weights(), each.map(|row| Pattern::of_observed(row, p)));
            }
            dense => with_view!(dense, view => self.count(chunk.weights(), patterns(view).into_iter())),
        }
    }

    /// Rows that are known to be complete.
    pub(super) fn add_complete(&mut self, rows: usize, weight: f64) {
        self.rows += rows;
        self.weight += weight;
        let p = self.n_features();
        self.observed[p] += rows as u64;
        if rows > 0 {
            self.patterns.insert(Pattern::default().key);
        }
    }

    fn count(&mut self, weights: Option<&[f64]>, rows: impl Iterator<Item = Pattern>) {
        let p = self.n_features();
        for (i, pattern) in rows.enumerate() {
            let weight = weights.map_or(1.0, |w| w[i]);
            if weight > 0.0 {
                self.rows += 1;
                self.weight += weight;
                self.observed[p - pattern.missing] += 1;
                if self.patterns.len() < MOST_PATTERNS {
                    self.patterns.insert(pattern.key);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.observed.iter_mut().zip(&other.observed).for_each(|(a, b)| *a += b);
        let room = MOST_PATTERNS - self.patterns.len();
        let new: Vec<u64> = other.patterns.difference(&self.patterns).take(room).copied().collect();
        self.patterns.extend(new);
    }
}

//! Features that add no direction in which the rows vary: constant ones, and those that repeat another.
//!
//! Isotropic noise has a share in every feature. Where one is constant, or two are the same, some direction
//! has no noise at all, and the best explanation is one without noise: as many components as there are
//! directions. How many components there are is therefore asked of the other features.

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::data::{Chunk, Order, RowSource};
use crate::error::Result;
use crate::evidence::{Accumulator, AvailableCases, Moments, gather};
use crate::linalg::{MatRef, negligible};

/// Which features are constant, and which repeat an earlier one up to scale, sign and shift.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedundantFeatures {
    /// Positions of the constant features.
    pub constant: Vec<usize>,
    /// Positions of a feature and of the earlier one that it repeats.
    pub repeated: Vec<(usize, usize)>,
}

impl RedundantFeatures {
    /// Among the features of complete rows.
    pub(crate) fn of(moments: &Moments) -> Self {
        let scatter = moments.scatter_lower();
        let p = moments.n_features();
        let variance = |j: usize| scatter[(j, j)] / moments.weight();
        let constant = |j: &usize| variance(*j) <= (f64::EPSILON * moments.mean()[*j]).powi(2);
        let (constant, varying): (Vec<usize>, Vec<usize>) = (0..p).partition(constant);
        Self { constant, repeated: repeated(scatter, &varying, negligible(moments.rows(), p, 1.0)) }
    }

    /// Among the features of rows with missing values. What the available cases suspect is looked at in one
    /// more pass, over the rows that have both features of a pair.
    pub(crate) fn of_cases(
        cases: &AvailableCases,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Self> {
        let (p, rows) = (cases.mean.len(), cases.census.rows());
        let variance = |j: usize| cases.covariance[(j, j)];
        let constant = |j: &usize| variance(*j) <= (f64::EPSILON * cases.mean[*j]).powi(2);
        let (constant, varying): (Vec<usize>, Vec<usize>) = (0..p).partition(constant);
        let suspects = suspects(cases.covariance.as_ref(), &varying);
        if suspects.is_empty() {
            return Ok(Self { constant, repeated: Vec::new() });
        }
        let pairs = gather(source, || CommonRows::empty(&suspects), control)?;
        let mut repeated: Vec<(usize, usize)> = pairs.repeated(negligible(rows, p, 1.0)).collect();
        repeated.sort_unstable();
        repeated.dedup_by_key(|(j, _)| *j); // the first that it repeats
        Ok(Self { constant, repeated })
    }

    /// In words, with the names of all features: "'a' is constant, 'b' repeats 'c'".
    pub fn in_words(&self, names: &[String]) -> String {
        let name = |j: usize| names.get(j).map_or_else(|| format!("feature {j}"), |name| format!("'{name}'"));
        let constant = self.constant.iter().map(|j| format!("{} is constant", name(*j)));
        let repeated = self.repeated.iter().map(|(j, k)| format!("{} repeats {}", name(*j), name(*k)));
        constant.chain(repeated).collect::<Vec<_>>().join(", ")
    }

    /// Whether it can be about p features.
    pub(crate) fn is_of(&self, p: usize) -> bool {
        let pairs = self.repeated.iter().all(|(j, k)| k < j && *j < p);
        pairs && self.constant.iter().all(|j| *j < p)
    }

    /// Whether all features are needed.
    pub fn is_empty(&self) -> bool {
        self.constant.is_empty() && self.repeated.is_empty()
    }

    /// The others of p features.
    pub(crate) fn others(&self, p: usize) -> Vec<usize> {
        let redundant = |j: &usize| self.constant.contains(j) || self.repeated.iter().any(|(k, _)| k == j);
        (0..p).filter(|j| !redundant(j)).collect()
    }
}

/// Pairs of a feature and the first one before it whose correlation with it is ±1 up to rounding.
fn repeated(scatter: MatRef<'_, f64>, varying: &[usize], rounding: f64) -> Vec<(usize, usize)> {
    let deviation: Vec<f64> = (0..scatter.nrows()).map(|j| scatter[(j, j)].sqrt()).collect();
    let correlation = |i: usize, j: usize| scatter[(i, j)] / deviation[i] / deviation[j];
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, i) in varying.iter().enumerate() {
        let first = varying[..at].iter().find(|j| 1.0 - correlation(*i, **j).abs() <= rounding);
        found.extend(first.map(|j| (*i, *j)));
    }
    found
}

/// Correlation of the available cases from which two features may be the same.
const SUSPICIOUS: f64 = 0.9;
/// Rows that two features must have in common for a correlation of ±1 to mean something.
const FEWEST_COMMON: usize = 10;

/// Pairs (later, earlier) of features that may be the same, at most ten for each feature.
fn suspects(covariance: MatRef<'_, f64>, varying: &[usize]) -> Vec<(usize, usize)> {
    let deviation: Vec<f64> = (0..covariance.nrows()).map(|j| covariance[(j, j)].sqrt()).collect();
    let correlation = |i: usize, j: usize| (covariance[(i, j)] / deviation[i] / deviation[j]).abs();
    let earlier = |at: usize| {
        let i = varying[at];
        let alike = varying[..at].iter().filter(move |j| correlation(i, **j) >= SUSPICIOUS);
        alike.take(10).map(move |j| (i, *j))
    };
    (0..varying.len()).flat_map(earlier).collect()
}

/// Moments of pairs of features over the rows that have both.
#[derive(Debug, Clone)]
struct CommonRows {
    pairs: Vec<(usize, usize)>,
    moments: Vec<Moments>,
}

impl CommonRows {
    fn empty(pairs: &[(usize, usize)]) -> Self {
        Self { pairs: pairs.to_vec(), moments: vec![Moments::empty(2); pairs.len()] }
    }

    /// Those whose correlation is ±1 up to rounding.
    fn repeated(&self, rounding: f64) -> impl Iterator<Item = (usize, usize)> {
        let same = move |moments: &Moments| {
            let s = moments.scatter_lower();
            let correlation = s[(1, 0)] / s[(0, 0)].sqrt() / s[(1, 1)].sqrt();
            moments.rows() >= FEWEST_COMMON && 1.0 - correlation.abs() <= rounding
        };
        self.pairs.iter().zip(&self.moments).filter(move |(_, m)| same(m)).map(|(pair, _)| *pair)
    }
}

impl Accumulator for CommonRows {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let weight = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
        for ((j, k), moments) in self.pairs.iter().zip(&mut self.moments) {
            let cell = |i: usize| [chunk.cells().get(i, *j), chunk.cells().get(i, *k)];
            let both = |i: &usize| weight(*i) > 0.0 && cell(*i).iter().all(|x| !x.is_nan());
            let rows: Vec<usize> = (0..chunk.nrows()).filter(both).collect();
            let cells: Vec<f64> = rows.iter().flat_map(|i| cell(*i)).collect();
            let common = Chunk::from_rows(0, cells, 2, Order::Rows)?;
            let weights: Vec<f64> = rows.iter().map(|i| weight(*i)).collect();
            moments.update(&common.with_weights(weights)?)?;
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.moments.iter_mut().zip(&other.moments).try_for_each(|(a, b)| a.merge(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;
    use crate::linalg::Mat;

    #[test]
    fn constant_and_repeated_features_are_found() {
        let wave = |i: usize, j: usize| ((i * (j + 2)) as f64 * 0.7).sin();
        let cell = |i: usize, j: usize| match j {
            1 => 1e8 + 0.1,
            3 => 5.0 - 1e-3 * wave(i, 0),
            4 => wave(i, 2) * (1.0 + 1e-6 * wave(i, 5)),
            5 => wave(i, 0),
            _ => wave(i, j),
        };
        let x = Mat::from_fn(50, 6, cell);
        let moments = gather(Rows::from(&x).source(), || Moments::empty(6), &Control::new()).unwrap();
        let found = RedundantFeatures::of(&moments);
        assert_eq!(found.constant, [1]);
        assert_eq!(found.repeated, [(3, 0), (5, 0)]);
        assert_eq!(found.others(6), [0, 2, 4]);
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        assert_eq!(found.in_words(&names), "'b' is constant, 'd' repeats 'a', feature 5 repeats 'a'");
    }
}

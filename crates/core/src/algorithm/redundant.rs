//! Features that add no direction in which the rows vary: constant ones, those that repeat another, and those
//! that several others add up to (a total, the last of some shares, the last of a set of 0/1 columns).
//!
//! Isotropic noise has a share in every feature. Where one is constant, or follows from others, some direction
//! has no noise at all, and the best explanation is one without noise: as many components as there are
//! directions. How many components there are is therefore asked of the other features.

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::data::{Chunk, Order, RowSource};
use crate::error::Result;
use crate::evidence::{Accumulator, AvailableCases, Moments, Travel, gather};
use crate::linalg::{Cholesky, Determined, Mat, MatRef, determined_by_earlier, negligible};

/// Which features are constant, which repeat an earlier one up to scale, sign and shift, and which are linear
/// combinations of several earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedundantFeatures {
    /// Positions of the constant features.
    pub constant: Vec<usize>,
    /// Positions of a feature and of the earlier one that it repeats.
    pub repeated: Vec<(usize, usize)>,
    /// Positions of a feature and of the earlier ones that it is a linear combination of. None where these
    /// would be most features: rows then lie in a plane, and that is what is to be found.
    #[serde(default)]
    pub combined: Vec<(usize, Vec<usize>)>,
}

impl RedundantFeatures {
    /// Among the features of complete rows.
    pub(crate) fn of(moments: &Moments) -> Self {
        let scatter = moments.scatter_lower();
        let p = moments.n_features();
        let variance = |j: usize| scatter[(j, j)] / moments.weight();
        let constant = |j: &usize| variance(*j) <= (f64::EPSILON * moments.mean()[*j]).powi(2);
        let (constant, varying): (Vec<usize>, Vec<usize>) = (0..p).partition(constant);
        let rounding = negligible(moments.rows(), p, 1.0);
        let repeated = repeated(scatter, &varying, rounding);
        let found = Self { constant, repeated, combined: Vec::new() };
        let others = found.others(p);
        let combined =
            if moments.rows() > others.len() { combined(scatter, &others, rounding) } else { vec![] };
        Self { combined, ..found }
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
        let mut sets = suspects(cases.covariance.as_ref(), &varying, rows);
        let pairs = sets.len();
        let enough = cases.census.complete_rows() >= (varying.len() + FEWEST_COMMON) as u64;
        if enough && may_be_combined(cases.covariance.as_ref(), &varying) {
            sets.push(varying.clone());
        }
        if sets.is_empty() {
            return Ok(Self { constant, ..Self::default() });
        }
        let (common, rounding) =
            (gather(source, || CommonRows::empty(&sets), control)?, negligible(rows, p, 1.0));
        let mut repeated: Vec<(usize, usize)> = common.repeated(pairs, rounding).collect();
        repeated.sort_unstable();
        repeated.dedup_by_key(|(j, _)| *j); // the first that it repeats
        let found = Self { constant, repeated, combined: Vec::new() };
        let combined = common.moments.get(pairs).map(|all| found.combined_in(all, &varying, rounding));
        Ok(Self { combined: combined.unwrap_or_default(), ..found })
    }

    /// Combinations among the features of complete rows, which have these positions.
    fn combined_in(&self, all: &Moments, positions: &[usize], rounding: f64) -> Vec<(usize, Vec<usize>)> {
        let redundant = |j: &usize| self.repeated.iter().any(|(k, _)| *k == positions[*j]);
        let others: Vec<usize> = (0..positions.len()).filter(|j| !redundant(j)).collect();
        if all.rows() < others.len() + FEWEST_COMMON {
            return Vec::new();
        }
        let place = |j: usize| positions[j];
        let found = combined(all.scatter_lower(), &others, rounding).into_iter();
        found.map(|(j, of)| (place(j), of.into_iter().map(place).collect())).collect()
    }

    /// In words, with the names of all features: "'a' is constant; 'b' repeats 'c'".
    pub fn in_words(&self, names: &[String]) -> String {
        let name = |j: usize| names.get(j).map_or_else(|| format!("feature {j}"), |name| format!("'{name}'"));
        let constant = self.constant.iter().map(|j| format!("{} is constant", name(*j)));
        let repeated = self.repeated.iter().map(|(j, k)| format!("{} repeats {}", name(*j), name(*k)));
        let combined = self.combined.iter().map(|(j, of)| {
            let named: Vec<String> = of.iter().take(MOST_NAMED).map(|k| name(*k)).collect();
            let more = match of.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{} is a linear combination of {}{more}", name(*j), named.join(", "))
        });
        constant.chain(repeated).chain(combined).collect::<Vec<_>>().join("; ")
    }

    /// Whether it can be about p features.
    pub(crate) fn is_of(&self, p: usize) -> bool {
        let pairs = self.repeated.iter().all(|(j, k)| k < j && *j < p);
        let sets = self.combined.iter().all(|(j, of)| *j < p && of.iter().all(|k| k < j));
        pairs && sets && self.constant.iter().all(|j| *j < p)
    }

    /// Whether all features are needed.
    pub fn is_empty(&self) -> bool {
        self.constant.is_empty() && self.repeated.is_empty() && self.combined.is_empty()
    }

    /// The others of p features.
    pub(crate) fn others(&self, p: usize) -> Vec<usize> {
        let follows = |j: &usize| {
            self.repeated.iter().any(|(k, _)| k == j) || self.combined.iter().any(|(k, _)| k == j)
        };
        let redundant = |j: &usize| self.constant.contains(j) || follows(j);
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

/// Features that earlier ones of the given determine, and which: by their correlations.
fn combined(scatter: MatRef<'_, f64>, features: &[usize], rounding: f64) -> Vec<(usize, Vec<usize>)> {
    let correlations = correlations(scatter, features);
    if smallest_rest(&correlations).is_some_and(|rest| rest > rounding) {
        return Vec::new();
    }
    let found = determined_by_earlier(correlations.as_ref(), rounding).into_iter();
    let named = |Determined { feature, of }: Determined| {
        let counts = of.into_iter().filter(|(_, b)| b.abs() > LEAST_SHARE);
        let mut of: Vec<usize> = counts.map(|(k, _)| features[k]).collect();
        of.sort_unstable();
        (features[feature], of)
    };
    let mut found: Vec<(usize, Vec<usize>)> = found.map(named).collect();
    if 2 * found.len() > features.len() {
        return Vec::new();
    }
    found.sort_unstable();
    found
}

/// Whether the correlations of the available cases leave little of some feature beside the others.
fn may_be_combined(covariance: MatRef<'_, f64>, features: &[usize]) -> bool {
    !smallest_rest(&correlations(covariance, features)).is_some_and(|rest| rest > SUSPICIOUS)
}

fn correlations(scatter: MatRef<'_, f64>, features: &[usize]) -> Mat<f64> {
    let at = |i: usize, j: usize| scatter[(features[i].max(features[j]), features[i].min(features[j]))];
    let deviation: Vec<f64> = (0..features.len()).map(|j| at(j, j).sqrt()).collect();
    Mat::from_fn(features.len(), features.len(), |i, j| at(i, j) / deviation[i] / deviation[j])
}

/// The smallest share of its variance that earlier features leave of one; none where that is not positive.
fn smallest_rest(correlations: &Mat<f64>) -> Option<f64> {
    let factor = Cholesky::new(correlations.clone(), "the correlations").ok()?;
    Some(factor.smallest_pivot().powi(2))
}

/// How many features of a combination are named.
const MOST_NAMED: usize = 4;
/// Of a feature, in units of deviations, that counts as being in a combination.
const LEAST_SHARE: f64 = 1e-6;
/// What two features that are the same may lack of a correlation of 1 in the available cases, at most and in
/// units of 1/√rows: their variances are of different rows.
const SUSPICIOUS: f64 = 0.1;
const DEVIATIONS: f64 = 4.0;
/// Rows that two features must have in common for a correlation of ±1 to mean something.
const FEWEST_COMMON: usize = 10;

/// Pairs (later, earlier) of features that may be the same, at most ten for each feature.
fn suspects(covariance: MatRef<'_, f64>, varying: &[usize], rows: usize) -> Vec<Vec<usize>> {
    let least = 1.0 - SUSPICIOUS.min(DEVIATIONS / (rows as f64).sqrt());
    let deviation: Vec<f64> = (0..covariance.nrows()).map(|j| covariance[(j, j)].sqrt()).collect();
    let correlation = |i: usize, j: usize| (covariance[(i, j)] / deviation[i] / deviation[j]).abs();
    let earlier = |at: usize| {
        let i = varying[at];
        let alike = varying[..at].iter().filter(move |j| correlation(i, **j) >= least);
        alike.take(10).map(move |j| vec![i, *j])
    };
    (0..varying.len()).flat_map(earlier).collect()
}

/// Moments of sets of features over the rows that have all of a set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommonRows {
    sets: Vec<Vec<usize>>,
    moments: Vec<Moments>,
}

impl CommonRows {
    fn empty(sets: &[Vec<usize>]) -> Self {
        let moments = sets.iter().map(|set| Moments::empty(set.len())).collect();
        Self { sets: sets.to_vec(), moments }
    }

    /// Those of the first so many sets, which are pairs, whose correlation is ±1 up to rounding.
    fn repeated(&self, pairs: usize, rounding: f64) -> impl Iterator<Item = (usize, usize)> {
        let same = move |moments: &Moments| {
            let s = moments.scatter_lower();
            let correlation = s[(1, 0)] / s[(0, 0)].sqrt() / s[(1, 1)].sqrt();
            moments.rows() >= FEWEST_COMMON && 1.0 - correlation.abs() <= rounding
        };
        let found = self.sets[..pairs].iter().zip(&self.moments).filter(move |(_, m)| same(m));
        found.map(|(pair, _)| (pair[0], pair[1]))
    }
}

impl Accumulator for CommonRows {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("common_rows"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let weight = |i: usize| chunk.weights().map_or(1.0, |w| w[i]);
        for (set, moments) in self.sets.iter().zip(&mut self.moments) {
            let cells = |i: usize| set.iter().map(move |j| chunk.cells().get(i, *j));
            let all = |i: &usize| weight(*i) > 0.0 && cells(*i).all(|x| !x.is_nan());
            let rows: Vec<usize> = (0..chunk.nrows()).filter(all).collect();
            let common = rows.iter().flat_map(|i| cells(*i)).collect();
            let common = Chunk::from_rows(0, common, set.len(), Order::Rows)?;
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
        assert_eq!(found.in_words(&names), "'b' is constant; 'd' repeats 'a'; feature 5 repeats 'a'");
    }
}

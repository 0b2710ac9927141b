//! What rows say about directions in which independent sources are looked for: sums of a contrast function along
//! each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Accumulator, Travel};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::linalg::serial;
use crate::linalg::{
    Mat, MatRef, add_product, clean_zeros, dot, exp, packed, packed_len, set_product, tanh_and_log_cosh,
    tanh_and_sum_of_log_cosh,
};

/// Rows of a block, whose sources stay in a core's own cache.
const BLOCK_ROWS: usize = 256;
/// Nodes and weights of Gauss–Hermite quadrature for a standard normal variable: exact for polynomials of degree
/// 9.
const NODES: [(f64, f64); 5] = [
    (-2.856_970_013_872_806, 0.011_257_411_327_720_69),
    (-1.355_626_179_974_266, 0.222_075_922_005_612_6),
    (0.0, 0.533_333_333_333_333_3),
    (1.355_626_179_974_266, 0.222_075_922_005_612_6),
    (2.856_970_013_872_806, 0.011_257_411_327_720_69),
];
/// Below this deviation the mean of g t/√v is that of g′.
const NARROW: f64 = 1e-5;

/// A function G whose mean along a direction says how far rows are from normal there; g is its derivative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// G(y) = log cosh(αy)/α, g(y) = tanh(αy): a good one for most sources.
    LogCosh {
        /// α, between 1 and 2.
        alpha: f64,
    },
    /// G(y) = −exp(−y²/2), g(y) = y exp(−y²/2): for sources of very heavy tails.
    Exp,
    /// G(y) = y⁴/4, g(y) = y³: kurtosis, which outliers disturb.
    Cube,
}

impl Default for Contrast {
    fn default() -> Self {
        Self::LogCosh { alpha: 1.0 }
    }
}

impl Contrast {
    /// G and g.
    fn evaluate(self, y: &[f64], value: &mut [f64], slope: &mut [f64]) {
        match self {
            Self::LogCosh { alpha: 1.0 } => tanh_and_log_cosh(y, slope, value),
            Self::LogCosh { alpha } => {
                let scaled: Vec<f64> = y.iter().map(|y| alpha * y).collect();
                tanh_and_log_cosh(&scaled, slope, value);
                value.iter_mut().for_each(|v| *v /= alpha);
            }
            Self::Exp => {
                value.iter_mut().zip(y).for_each(|(v, y)| *v = -0.5 * y * y);
                exp(value);
                for ((v, s), y) in value.iter_mut().zip(slope).zip(y) {
                    (*v, *s) = (-*v, y * *v);
                }
            }
            Self::Cube => {
                for ((v, s), y) in value.iter_mut().zip(slope).zip(y) {
                    let square = y * y;
                    (*v, *s) = (0.25 * square * square, square * y);
                }
            }
        }
    }

    /// g′, given G and g.
    fn bend(self, y: &[f64], value: &[f64], slope: &[f64], bend: &mut [f64]) {
        match self {
            Self::LogCosh { alpha } => {
                bend.iter_mut().zip(slope).for_each(|(b, t)| *b = alpha * (1.0 - t * t));
            }
            Self::Exp => {
                bend.iter_mut().zip(y.iter().zip(value)).for_each(|(b, (y, v))| *b = (y * y - 1.0) * v);
            }
            Self::Cube => bend.iter_mut().zip(y).for_each(|(b, y)| *b = 3.0 * y * y),
        }
    }

    /// Means of G, g, g′ and g t/√v of one source over what is known of each row: y + √v t with a standard normal t.
    fn expect(self, source: usize, scratch: &mut Scratch) {
        let Scratch { y, variance, slope, spread, weights, of_one, .. } = scratch;
        let [value, bend, point, part, part_slope, part_bend] = of_one;
        let (y, variance) = (y.col_as_slice(source), variance.col_as_slice(source));
        let (slope, spread) = (slope.col_as_slice_mut(source), spread.col_as_slice_mut(source));
        [&mut value[..], &mut bend[..], slope, spread].into_iter().for_each(|x| x.fill(0.0));
        for (node, share) in NODES {
            let at = |(y, v): (&f64, &f64)| y + node * v.max(0.0).sqrt();
            point.iter_mut().zip(y.iter().zip(variance)).for_each(|(x, yv)| *x = at(yv));
            self.evaluate(point, part, part_slope);
            self.bend(point, part, part_slope, part_bend);
            add(value, share, part);
            add(slope, share, part_slope);
            add(spread, share * node, part_slope);
            add(bend, share, part_bend);
        }
        for (((s, v), b), w) in spread.iter_mut().zip(variance).zip(&*bend).zip(&*weights) {
            let deviation = v.max(0.0).sqrt();
            *s = w * if deviation < NARROW { *b } else { *s / deviation };
        }
    }

    /// G of a standard normal variable: its mean, and the standard deviation of G − mean − E\[G′(ν)ν\](ν² − 1)/2,
    /// which is what a row adds to the mean of G when sources are brought to variance 1.
    pub(crate) fn of_normal(self) -> (f64, f64) {
        // The trapezoidal rule, whose error falls faster than any power for such functions.
        let nodes: Vec<f64> = (-1200..=1200).map(|i| f64::from(i) * 0.01).collect();
        let (mut value, mut slope) = (vec![0.0; nodes.len()], vec![0.0; nodes.len()]);
        self.evaluate(&nodes, &mut value, &mut slope);
        let weight = |x: f64| 0.01 * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let mean =
            |f: &dyn Fn(usize) -> f64| nodes.iter().enumerate().map(|(i, x)| weight(*x) * f(i)).sum::<f64>();
        let center = mean(&|i| value[i]);
        let along = mean(&|i| slope[i] * nodes[i]);
        let rest = |i: usize| value[i] - center - 0.5 * along * (nodes[i] * nodes[i] - 1.0);
        (center, mean(&|i| rest(i).powi(2)).sqrt())
    }
}

/// For each of k given directions r, over weighted rows u and with y = rᵀu: the sums of w G(y), w g(y) u and
/// w g′(y).
///
/// A chunk of q columns holds rows u. One of q + q(q + 1)/2 columns holds what is known of them: mean and packed
/// covariance of each, and the sums are those of expectations, by Gauss–Hermite quadrature with five nodes in the
/// one dimension rᵀu.
///
/// It is all that a step of FastICA \[H99\] or Picard \[ACG18\] needs of the rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContrastSums {
    pub(crate) contrast: Contrast,
    #[serde(with = "serial")]
    pub(crate) directions: Arc<Mat<f64>>, // (k × q)
    pub(crate) rows: usize,
    pub(crate) weight: f64,
    pub(crate) values: Vec<f64>, // Σ w G (k)
    #[serde(with = "serial")]
    pub(crate) slopes: Mat<f64>, // Σ w g uᵀ (k × q)
    pub(crate) bends: Vec<f64>,  // Σ w g′ (k)
}

/// Means over the rows.
#[derive(Debug, Clone)]
pub struct ContrastMeans {
    /// E G(y) (k).
    pub value: Vec<f64>,
    /// E g(y) uᵀ (k × q).
    pub slope: Mat<f64>,
    /// E g′(y) (k).
    pub bend: Vec<f64>,
    /// Rows of positive weight.
    pub rows: usize,
    /// Total weight.
    pub weight: f64,
}

/// Numbers of the sources of a block of rows (rows × k), and of one source.
struct Scratch {
    y: Mat<f64>,
    variance: Mat<f64>,
    slope: Mat<f64>,
    spread: Mat<f64>,
    weights: Vec<f64>,
    alike: bool, // whether all weights are 1
    of_one: [Vec<f64>; 6],
}

impl Scratch {
    fn new(rows: usize, k: usize, uncertain: bool) -> Self {
        let more = if uncertain { k } else { 0 };
        Self {
            y: clean_zeros(rows, k),
            variance: clean_zeros(rows, more),
            slope: clean_zeros(rows, k),
            spread: clean_zeros(rows, more),
            weights: vec![1.0; rows],
            alike: true,
            of_one: std::array::from_fn(|_| vec![0.0; rows]),
        }
    }
}

impl ContrastSums {
    /// Of no rows, for directions as rows (k × q).
    pub fn empty(contrast: Contrast, directions: Arc<Mat<f64>>) -> Self {
        let (k, q) = (directions.nrows(), directions.ncols());
        Self {
            contrast,
            directions,
            rows: 0,
            weight: 0.0,
            values: vec![0.0; k],
            slopes: Mat::zeros(k, q),
            bends: vec![0.0; k],
        }
    }

    /// Means over the rows.
    ///
    /// # Errors
    /// When there are none.
    pub fn means(self) -> Result<ContrastMeans> {
        if self.rows == 0 {
            return Err(Error::NoRows);
        }
        let (weight, rows) = (self.weight, self.rows);
        let share = |of: Vec<f64>| of.into_iter().map(|x| x / weight).collect();
        let slope =
            Mat::from_fn(self.slopes.nrows(), self.slopes.ncols(), |i, j| self.slopes[(i, j)] / weight);
        Ok(ContrastMeans { value: share(self.values), slope, bend: share(self.bends), rows, weight })
    }

    fn add_rows(&mut self, view: MatRef<'_, f64>, weights: Option<&[f64]>) {
        let (k, q) = (self.directions.nrows(), self.directions.ncols());
        let uncertain = view.ncols() > q;
        let squares =
            if uncertain { products_of_pairs(self.directions.as_ref().as_ref()) } else { Mat::new() };
        let mut within = Mat::zeros(k, squares.nrows()); // Σ w E[g t]/√v C, packed
        let mut scratch = Scratch::new(0, k, uncertain);
        for first in (0..view.nrows()).step_by(BLOCK_ROWS) {
            let len = BLOCK_ROWS.min(view.nrows() - first);
            if scratch.y.nrows() != len {
                scratch = Scratch::new(len, k, uncertain);
            }
            let block = view.subrows(first, len);
            if let Some(weights) = weights {
                scratch.weights.copy_from_slice(&weights[first..first + len]);
                scratch.alike = false;
            }
            let (u, covariance) = block.split_at_col(q);
            set_product(scratch.y.as_mut(), u, self.directions.transpose());
            if uncertain {
                set_product(scratch.variance.as_mut(), covariance, squares.as_ref());
            }
            (0..k).for_each(|source| self.add_source(source, &mut scratch, uncertain));
            add_product(self.slopes.as_mut(), scratch.slope.transpose(), u, 1.0);
            if uncertain {
                add_product(within.as_mut(), scratch.spread.transpose(), covariance, 1.0);
            }
        }
        self.add_within(&within);
    }

    /// G, g and g′ of one source of a block; `slope` and `spread` of the scratch keep w g and w E\[g t\]/√v.
    fn add_source(&mut self, source: usize, scratch: &mut Scratch, uncertain: bool) {
        if uncertain {
            self.contrast.expect(source, scratch);
        }
        let Scratch { y, slope, weights, alike, of_one: [value, bend, ..], .. } = scratch;
        let (y, slope) = (y.col_as_slice(source), slope.col_as_slice_mut(source));
        if !uncertain && *alike && self.contrast == Contrast::default() {
            self.values[source] += tanh_and_sum_of_log_cosh(y, slope, value);
            self.contrast.bend(y, value, slope, bend);
        } else {
            if !uncertain {
                self.contrast.evaluate(y, value, slope);
                self.contrast.bend(y, value, slope, bend);
            }
            self.values[source] += dot(weights, value);
        }
        self.bends[source] += dot(weights, bend);
        slope.iter_mut().zip(weights).for_each(|(s, w)| *s *= *w);
    }

    /// What the spread of rows adds to the slopes: E\[g(y) u\] = E\[g\] ū + E\[g t\]/√v C r.
    fn add_within(&mut self, within: &Mat<f64>) {
        let (k, q) = (self.directions.nrows(), self.directions.ncols());
        if within.ncols() == 0 {
            return;
        }
        for (s, a) in (0..k).flat_map(|s| (0..q).map(move |a| (s, a))) {
            let entry = |b: usize| within[(s, packed(a.max(b), a.min(b)))] * self.directions[(s, b)];
            self.slopes[(s, a)] += (0..q).map(entry).sum::<f64>();
        }
    }
}

/// rᵀCr = Σ C_ab (2 − δ_ab) r_a r_b: the factors of a packed C for each direction (q(q+1)/2 × k).
fn products_of_pairs(directions: MatRef<'_, f64>) -> Mat<f64> {
    let (k, q) = (directions.nrows(), directions.ncols());
    let mut out = Mat::zeros(packed_len(q), k);
    for (s, a) in (0..k).flat_map(|s| (0..q).map(move |a| (s, a))) {
        for b in 0..=a {
            let twice = if a == b { 1.0 } else { 2.0 };
            out[(packed(a, b), s)] = twice * directions[(s, a)] * directions[(s, b)];
        }
    }
    out
}

fn add(to: &mut [f64], factor: f64, terms: &[f64]) {
    to.iter_mut().zip(terms).for_each(|(t, x)| *t += factor * x);
}

impl Accumulator for ContrastSums {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("contrast"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let q = self.directions.ncols();
        if ![q, q + packed_len(q)].contains(&chunk.ncols()) {
            return Err(Error::FeatureCount { expected: q, found: chunk.ncols() });
        }
        let weights = chunk.weights();
        chunk.with_wide(|view| self.add_rows(view, weights));
        if !self.slopes.norm_max().is_finite() || self.values.iter().any(|v| !v.is_finite()) {
            return Err(chunk.explain_not_finite("a contrast of sources").unwrap_or(Error::Scale));
        }
        self.rows += weights.map_or(chunk.nrows(), |w| w.iter().filter(|w| **w > 0.0).count());
        self.weight += weights.map_or(chunk.nrows() as f64, |w| w.iter().sum());
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let same = Arc::ptr_eq(&self.directions, &other.directions) || self.directions == other.directions;
        if !same || self.contrast != other.contrast {
            let (name, value) = ("the directions of a contrast", "other ones".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.weight += other.weight;
        add(&mut self.values, 1.0, &other.values);
        add(&mut self.bends, 1.0, &other.bends);
        self.slopes += &other.slopes;
        Ok(())
    }
}

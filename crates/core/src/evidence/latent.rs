//! What rows with holes say about the parameters of PPCA, given the parameters so far: the expectation step, merged.
//!
//! With $M_i = \sigma^2 I + \sum_{j \in O_i} w_j w_j^\top$ over the observed cells $O_i$ of a row, its latent variables have
//! mean $z_i = M_i^{-1} \sum_{j \in O_i} w_j (x_{ij} - \mu_j)$ and covariance $C_i = \sigma^2 M_i^{-1}$. All $M_i$ are one product
//! of the 0/1 mask with the packed $w_j w_j^\top$, and what a feature needs of its rows is one product of the mask with the
//! packed second moments of $(z_i, 1)$.

use std::f64::consts::TAU;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Accumulator;
use super::masked::{MaskedBlock, for_each_masked};
use super::moments::check_features;
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Lanes, Mat, MatRef, add_product, packed, packed_len, pair_products, set_product};

/// Rows of observed cells that are worked on together.
const LANES: usize = 64;

/// The parameters that evidence is collected for: μ, W and σ².
#[derive(Debug, Clone, PartialEq)]
pub struct LatentParameters {
    mean: Vec<f64>,
    loadings: Mat<f64>, // Wᵀ (q × p): those of a feature side by side
    noise: f64,
    pairs: Mat<f64>, // packed wⱼwⱼᵀ (q(q+1)/2 × p)
    unit: f64,       // cells are divided by it: a power of two, which rounds nothing
}

impl LatentParameters {
    /// μ (p), W (p × q) and σ² > 0.
    ///
    /// # Errors
    /// When shapes disagree or a number is not finite or not positive.
    pub fn new(mean: Vec<f64>, loadings: MatRef<'_, f64>, noise: f64) -> Result<Self> {
        let (expected, found) = (mean.len(), loadings.nrows());
        if expected != found {
            return Err(Error::Length { what: "rows of the loadings", expected, found });
        }
        let finite = loadings.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
        if !(finite && mean.iter().all(|m| m.is_finite()) && noise > 0.0 && noise.is_finite()) {
            let (name, value) = ("the start of an iteration", format!("noise variance {noise}"));
            return Err(Error::Parameter { name, value, allowed: "finite, with a positive noise variance" });
        }
        Ok(Self::in_units(mean, loadings.transpose().to_owned(), noise, 1.0))
    }

    /// The same with cells, loadings and √noise in multiples of a unit, so that squares stay in range; the mean is not.
    pub(crate) fn in_units(mean: Vec<f64>, loadings: Mat<f64>, noise: f64, unit: f64) -> Self {
        let pairs = pair_products(loadings.as_ref());
        Self { mean, loadings, noise, pairs, unit }
    }

    /// The same with at least so much noise, in units.
    pub(crate) fn with_noise_above(mut self, least: f64) -> Self {
        self.noise = self.noise.max(least);
        self
    }

    /// p.
    pub fn n_features(&self) -> usize {
        self.mean.len()
    }

    /// q.
    pub fn n_latent(&self) -> usize {
        self.loadings.nrows()
    }

    /// μ.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Wᵀ (q × p), in units.
    pub(crate) fn loadings_transposed(&self) -> MatRef<'_, f64> {
        self.loadings.as_ref()
    }

    /// W (p × q).
    pub fn loadings(&self) -> Mat<f64> {
        Mat::from_fn(self.n_features(), self.n_latent(), |i, j| self.loadings[(j, i)] * self.unit)
    }

    /// σ².
    pub fn noise_variance(&self) -> f64 {
        self.noise * self.unit * self.unit
    }

    /// σ² in units.
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    /// What cells are divided by.
    pub(crate) fn unit(&self) -> f64 {
        self.unit
    }
}

/// Sums over weighted rows with holes, for given parameters.
///
/// Rows without an observed cell say nothing and change nothing. Evidence for other parameters cannot be merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Latent {
    parameters: Arc<LatentParameters>,
    /// Σ w E[(z, 1)(z, 1)ᵀ] over the rows that have the feature, packed ((q+1)(q+2)/2 × p).
    pub(crate) second: Mat<f64>,
    /// Σ w (x − μ) (z, 1) over the rows that have the feature (q + 1 × p).
    pub(crate) cross: Mat<f64>,
    /// The sums that are not about single features.
    pub(crate) totals: Totals,
}

/// Sums over all rows that have a cell; vectors are packed so that they merge like numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Σ w.
    pub(crate) weight: f64,
    /// Σ w · observed cells.
    pub(crate) cells: f64,
    /// Log-likelihood of the observed cells in units.
    pub(crate) log_likelihood: f64,
    /// Σ w ‖x − μ − W z‖² over the observed cells.
    pub(crate) squares: f64,
    /// Σ w (q − tr C): latent variables that the rows determine.
    pub(crate) determined: f64,
    /// Σ w E[(z, 1)(z, 1)ᵀ], packed.
    pub(crate) second: Vec<f64>,
}

impl Latent {
    /// Of no rows.
    pub fn empty(parameters: Arc<LatentParameters>) -> Self {
        let (p, q) = (parameters.n_features(), parameters.n_latent());
        let totals = Totals {
            weight: 0.0,
            cells: 0.0,
            log_likelihood: 0.0,
            squares: 0.0,
            determined: 0.0,
            second: vec![0.0; packed_len(q + 1)],
        };
        Self { parameters, second: Mat::zeros(packed_len(q + 1), p), cross: Mat::zeros(q + 1, p), totals }
    }

    /// From given sums.
    pub(crate) fn from_parts(
        parameters: Arc<LatentParameters>,
        second: Mat<f64>,
        cross: Mat<f64>,
        totals: Totals,
    ) -> Result<Self> {
        let (p, q) = (parameters.n_features(), parameters.n_latent());
        let shape = |m: &Mat<f64>| (m.nrows(), m.ncols());
        let finite = |m: &Mat<f64>| m.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
        let fits = shape(&second) == (packed_len(q + 1), p)
            && shape(&cross) == (q + 1, p)
            && totals.second.len() == packed_len(q + 1);
        let numbers = [totals.weight, totals.cells, totals.log_likelihood, totals.squares, totals.determined];
        let possible = numbers.iter().chain(&totals.second).all(|x| x.is_finite()) && totals.weight >= 0.0;
        if fits && possible && finite(&second) && finite(&cross) {
            return Ok(Self { parameters, second, cross, totals });
        }
        Err(Error::Format("latent evidence that no rows can have".into()))
    }

    /// What it was collected for.
    pub fn parameters(&self) -> &Arc<LatentParameters> {
        &self.parameters
    }

    /// Log-likelihood of the observed cells under the parameters.
    pub fn log_likelihood(&self) -> f64 {
        self.totals.log_likelihood - self.totals.cells * self.parameters.unit.ln()
    }

    /// Total weight of the rows that have a cell.
    pub fn weight(&self) -> f64 {
        self.totals.weight
    }

    fn add_dense<T: Real>(&mut self, view: MatRef<'_, T>, weights: Option<&[f64]>) -> Result<()> {
        let parameters = Arc::clone(&self.parameters);
        let factor = vec![1.0 / parameters.unit; parameters.n_features()];
        let rows = (0..view.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0));
        for_each_masked(view, rows, &parameters.mean, &factor, |block| {
            self.add(&parameters, &DenseRows { block, parameters: &parameters }, weights);
            Ok(())
        })
    }

    fn add_observed(&mut self, rows: ObservedRows<'_>, weights: Option<&[f64]>) {
        let parameters = Arc::clone(&self.parameters);
        let counts = |i: &usize| !rows.row(*i).0.is_empty() && weights.is_none_or(|w| w[*i] > 0.0);
        let counted: Vec<usize> = (0..rows.shape().0).filter(counts).collect();
        for part in counted.chunks(LANES) {
            self.add(&parameters, &SparseRows::new(rows, part, &parameters), weights);
        }
    }

    /// The expectation step of some rows.
    fn add(&mut self, parameters: &LatentParameters, rows: &impl HoleyRows, weights: Option<&[f64]>) {
        let (q, noise) = (parameters.n_latent(), parameters.noise);
        let weight = |at: usize| weights.map_or(1.0, |w| w[rows.row(at)]);
        let factors = Lanes::new(rows.grams(), q, noise); // of each pattern
        let covariance = factors.inverse(noise);
        let log_det = factors.log_det();
        let mut z = rows.projections(); // (rows × q)
        if rows.all_different() {
            factors.solve(&mut z);
        } else {
            factors.select(rows.patterns()).solve(&mut z);
        }
        let squares = rows.squared_residuals(z.as_ref());
        let mut second = Mat::zeros(log_det.len(), packed_len(q + 1)); // Σ w E[(z, 1)(z, 1)ᵀ] of each pattern
        let mut first = Mat::zeros(q + 1, squares.len()); // w (z, 1)
        let mut determined = vec![q as f64; log_det.len()];
        (0..q).for_each(|i| {
            determined.iter_mut().zip(covariance.col_as_slice(packed(i, i))).for_each(|(d, c)| *d -= c);
        });
        let mut of_pattern = vec![0.0; log_det.len()];
        for (at, square) in squares.iter().enumerate() {
            let (w, pattern) = (weight(at), rows.patterns()[at]);
            let cells = rows.observed(pattern) as f64;
            let length: f64 = (0..q).map(|i| z[(at, i)] * z[(at, i)]).sum();
            let free = (cells - q as f64) * noise.ln() + log_det[pattern];
            let density = -0.5 * (cells * TAU.ln() + free + square / noise + length);
            self.totals.log_likelihood += w * density;
            self.totals.squares += w * square;
            self.totals.determined += w * determined[pattern];
            self.totals.cells += w * cells;
            self.totals.weight += w;
            of_pattern[pattern] += w;
            let first = first.col_as_slice_mut(at);
            (0..q).for_each(|i| first[i] = w * z[(at, i)]);
            first[q] = w;
        }
        pulp::Arch::new()
            .dispatch(|| add_second(&mut second, &z, rows.patterns(), &first, &covariance, &of_pattern));
        for (k, total) in self.totals.second.iter_mut().enumerate() {
            *total += second.col_as_slice(k).iter().sum::<f64>();
        }
        rows.scatter(second.as_ref(), first.as_ref(), &mut self.second, &mut self.cross);
    }
}

/// Σ w (C + z zᵀ), Σ w z and Σ w of each pattern (patterns × packed).
#[inline(always)]
fn add_second(
    second: &mut Mat<f64>,
    z: &Mat<f64>,
    patterns: &[usize],
    first: &Mat<f64>,
    covariance: &Mat<f64>,
    weight: &[f64],
) {
    let q = z.ncols();
    for i in 0..=q {
        for j in 0..=i {
            let out = second.col_as_slice_mut(packed(i, j));
            if i < q {
                let (zi, c) = (z.col_as_slice(i), covariance.col_as_slice(packed(i, j)));
                out.iter_mut().zip(c.iter().zip(weight)).for_each(|(o, (c, w))| *o = c * w);
                patterns.iter().enumerate().for_each(|(at, d)| out[*d] += zi[at] * first[(j, at)]);
            } else {
                patterns.iter().enumerate().for_each(|(at, d)| out[*d] += first[(j, at)]);
            }
        }
    }
}

/// Some rows, each with its own observed cells, as the expectation step sees them.
trait HoleyRows {
    /// Index of a row in its chunk.
    fn row(&self, at: usize) -> usize;
    /// The pattern of each row.
    fn patterns(&self) -> &[usize];
    /// Whether rows and patterns are the same.
    fn all_different(&self) -> bool;
    /// Observed cells of a pattern.
    fn observed(&self, pattern: usize) -> usize;
    /// Σ wⱼwⱼᵀ over the observed cells of each pattern, packed (patterns × q(q+1)/2).
    fn grams(&self) -> Mat<f64>;
    /// Σ wⱼ (xⱼ − μⱼ) over the observed cells (rows × q).
    fn projections(&self) -> Mat<f64>;
    /// ‖x − μ − W z‖² over the observed cells of each row.
    fn squared_residuals(&self, z: MatRef<'_, f64>) -> Vec<f64>;
    /// Adds a pattern's second moments, and a row's deviations times first moments, to the features that it has.
    fn scatter(
        &self,
        second: MatRef<'_, f64>,
        first: MatRef<'_, f64>,
        to: &mut Mat<f64>,
        cross: &mut Mat<f64>,
    );
}

struct DenseRows<'a> {
    block: &'a MaskedBlock,
    parameters: &'a LatentParameters,
}

impl HoleyRows for DenseRows<'_> {
    fn row(&self, at: usize) -> usize {
        self.block.rows[at]
    }

    fn patterns(&self) -> &[usize] {
        &self.block.pattern
    }

    fn all_different(&self) -> bool {
        self.block.all_different()
    }

    fn observed(&self, pattern: usize) -> usize {
        self.block.observed[pattern]
    }

    fn grams(&self) -> Mat<f64> {
        let (mask, pairs) = (self.block.mask(), &self.parameters.pairs);
        let mut out = Mat::zeros(mask.ncols(), pairs.nrows());
        set_product(out.as_mut(), mask.transpose(), pairs.transpose());
        out
    }

    fn projections(&self) -> Mat<f64> {
        let (e, w) = (self.block.deviations(), &self.parameters.loadings);
        let mut out = Mat::zeros(e.ncols(), w.nrows());
        set_product(out.as_mut(), e.transpose(), w.transpose());
        out
    }

    fn squared_residuals(&self, z: MatRef<'_, f64>) -> Vec<f64> {
        let (e, w) = (self.block.deviations(), &self.parameters.loadings);
        let mut fitted = Mat::zeros(e.nrows(), e.ncols()); // (p × rows)
        set_product(fitted.as_mut(), w.transpose(), z.transpose());
        let arch = pulp::Arch::new();
        let square = |(at, pattern): (usize, &usize)| {
            let (e, fitted) = (self.block.deviations.col_as_slice(at), fitted.col_as_slice(at));
            let mask = self.block.mask.col_as_slice(*pattern);
            arch.dispatch(|| masked_square(e, fitted, mask))
        };
        self.block.pattern.iter().enumerate().map(square).collect()
    }

    fn scatter(
        &self,
        second: MatRef<'_, f64>,
        first: MatRef<'_, f64>,
        to: &mut Mat<f64>,
        cross: &mut Mat<f64>,
    ) {
        add_product(to.as_mut(), second.transpose(), self.block.mask().transpose(), 1.0);
        add_product(cross.as_mut(), first, self.block.deviations().transpose(), 1.0);
    }
}

/// Σ (e − mask · fitted)²; e is 0 where the mask is.
#[inline(always)]
fn masked_square(e: &[f64], fitted: &[f64], mask: &[f64]) -> f64 {
    let mut parts = [0.0; 8]; // a single sum would wait for each addition
    let eights = e.chunks(8).zip(fitted.chunks(8)).zip(mask.chunks(8));
    for ((e, fitted), mask) in eights {
        for (part, ((e, f), m)) in parts.iter_mut().zip(e.iter().zip(fitted).zip(mask)) {
            let r = e - m * f;
            *part += r * r;
        }
    }
    parts.iter().sum()
}

struct SparseRows<'a> {
    cells: ObservedRows<'a>,
    rows: &'a [usize],
    patterns: Vec<usize>, // 0, 1, 2, …: each row its own
    parameters: &'a LatentParameters,
}

impl<'a> SparseRows<'a> {
    fn new(cells: ObservedRows<'a>, rows: &'a [usize], parameters: &'a LatentParameters) -> Self {
        Self { cells, rows, patterns: (0..rows.len()).collect(), parameters }
    }

    /// Features and scaled deviations of a row.
    fn deviations(&self, at: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.cells.row(self.rows[at]);
        let LatentParameters { mean, unit, .. } = self.parameters;
        columns.iter().zip(values).map(move |(j, x)| (*j as usize, (x - mean[*j as usize]) / unit))
    }
}

impl HoleyRows for SparseRows<'_> {
    fn row(&self, at: usize) -> usize {
        self.rows[at]
    }

    fn patterns(&self) -> &[usize] {
        &self.patterns
    }

    fn all_different(&self) -> bool {
        true
    }

    fn observed(&self, pattern: usize) -> usize {
        self.cells.row(self.rows[pattern]).0.len()
    }

    fn grams(&self) -> Mat<f64> {
        let pairs = &self.parameters.pairs;
        let mut sum = vec![0.0; pairs.nrows()];
        let mut out = Mat::zeros(self.rows.len(), pairs.nrows());
        for at in 0..self.rows.len() {
            sum.fill(0.0);
            self.deviations(at).for_each(|(j, _)| add_to(&mut sum, 1.0, pairs.col_as_slice(j)));
            sum.iter().enumerate().for_each(|(k, s)| out[(at, k)] = *s);
        }
        out
    }

    fn projections(&self) -> Mat<f64> {
        let w = &self.parameters.loadings;
        let mut sum = vec![0.0; w.nrows()];
        let mut out = Mat::zeros(self.rows.len(), w.nrows());
        for at in 0..self.rows.len() {
            sum.fill(0.0);
            self.deviations(at).for_each(|(j, e)| add_to(&mut sum, e, w.col_as_slice(j)));
            sum.iter().enumerate().for_each(|(k, s)| out[(at, k)] = *s);
        }
        out
    }

    fn squared_residuals(&self, z: MatRef<'_, f64>) -> Vec<f64> {
        let w = &self.parameters.loadings;
        let square = |at: usize| {
            let z: Vec<f64> = z.row(at).iter().copied().collect();
            let fitted = |j: usize| -> f64 { w.col_as_slice(j).iter().zip(&z).map(|(w, z)| w * z).sum() };
            self.deviations(at).map(|(j, e)| (e - fitted(j)).powi(2)).sum()
        };
        (0..self.rows.len()).map(square).collect()
    }

    fn scatter(
        &self,
        second: MatRef<'_, f64>,
        first: MatRef<'_, f64>,
        to: &mut Mat<f64>,
        cross: &mut Mat<f64>,
    ) {
        let second = second.transpose().to_owned(); // a row's numbers side by side
        for at in 0..self.rows.len() {
            let first: Vec<f64> = first.col(at).iter().copied().collect();
            for (j, e) in self.deviations(at) {
                add_to(to.col_as_slice_mut(j), 1.0, second.col_as_slice(at));
                add_to(cross.col_as_slice_mut(j), e, &first);
            }
        }
    }
}

#[inline]
fn add_to(sum: &mut [f64], factor: f64, terms: &[f64]) {
    sum.iter_mut().zip(terms).for_each(|(s, t)| *s += factor * t);
}

impl Accumulator for Latent {
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.parameters.n_features(), chunk.ncols())?;
        match chunk.cells() {
            Cells::Observed(rows) => self.add_observed(*rows, chunk.weights()),
            dense => with_view!(dense, view => self.add_dense(view, chunk.weights()))?,
        }
        if self.totals.log_likelihood.is_finite() {
            return Ok(());
        }
        Err(chunk.explain_infinite().unwrap_or(Error::Scale))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.parameters, &other.parameters) && self.parameters != other.parameters {
            let (name, value) = ("the parameters of latent evidence", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        self.second += &other.second;
        self.cross += &other.cross;
        let (a, b) = (&mut self.totals, &other.totals);
        a.weight += b.weight;
        a.cells += b.cells;
        a.log_likelihood += b.log_likelihood;
        a.squares += b.squares;
        a.determined += b.determined;
        a.second.iter_mut().zip(&b.second).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

//! Count, mean and scatter of complete rows: all that PCA, PPCA and factor analysis need.

use serde::{Deserialize, Serialize};

use super::center::Center;
use super::{Accumulator, Travel};
use crate::blocks::{ShiftedSum, for_each_block, provisional_mean, provisional_unit};
use crate::data::{Cells, Chunk, Real};
use crate::error::{Cell, Error, Result};
use crate::linalg::serial::lower;
use crate::linalg::{Cholesky, Mat, MatRef, lower_crossproduct, mirror_lower, symmetric_eigenvalues};

/// How far a given covariance may be from symmetric and semidefinite, in units of the features' deviations.
const SYMMETRY: f64 = 1e-10;

/// First and second moments of weighted rows.
///
/// With weights wᵢ: the total weight n = Σ wᵢ, the mean m = Σ wᵢxᵢ / n and the scatter $\sum_i w_i (x_i -
/// m)(x_i - m)^\top$. Blocks of rows are shifted near their mean before they are squared, and parts are
/// merged by the formula of Chan, Golub & LeVeque \[CGL83\], so a large mean costs no accuracy.
///
/// ```
/// use covary::evidence::{Accumulator, Moments, gather};
/// use covary::data::Rows;
/// let rows = Rows::from_slice(&[1.0, 0.0, 3.0, 4.0], 2)?;
/// let moments = gather(rows.source(), || Moments::empty(2), &Default::default())?;
/// assert_eq!(moments.mean(), [2.0, 2.0]);
/// assert_eq!(moments.covariance()[(0, 1)], 2.0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Moments {
    center: Center,
    #[serde(with = "lower")]
    scatter: Mat<f64>, // (p × p), lower triangle
    single: bool, // some products were done in single precision
    fast: bool,   // single-precision cells may be multiplied in single precision
}

impl Moments {
    /// Of no rows.
    pub fn empty(n_features: usize) -> Self {
        let scatter = Mat::zeros(n_features, n_features);
        Self { center: Center::empty(n_features), scatter, single: false, fast: false }
    }

    /// Of no rows; cells in single precision will be multiplied in it, which is twice as fast. Whoever asks
    /// for this looks at [`single_precision_error`](Self::single_precision_error) afterwards, and can read
    /// the rows again.
    pub(crate) fn empty_fast(n_features: usize) -> Self {
        Self { fast: true, ..Self::empty(n_features) }
    }

    /// From given numbers: rows of positive weight, total weight, mean and scatter (its lower triangle is
    /// read).
    ///
    /// # Errors
    /// When the shapes disagree or a number is not finite or not possible.
    pub fn from_parts(rows: usize, weight: f64, mean: Vec<f64>, scatter: Mat<f64>) -> Result<Self> {
        let p = mean.len();
        if (scatter.nrows(), scatter.ncols()) != (p, p) {
            return Err(Error::Length { what: "rows of the scatter", expected: p, found: scatter.nrows() });
        }
        let lower = (0..p).flat_map(|j| (j..p).map(move |i| (i, j)));
        let finite = mean.iter().all(|m| m.is_finite()) && lower.clone().all(|ij| scatter[ij].is_finite());
        let counted = weight.is_finite() && weight >= 0.0 && (rows > 0) == (weight > 0.0);
        if !finite || !counted || (0..p).any(|i| scatter[(i, i)] < 0.0) {
            return Err(Error::Format("moments that no rows can have".into()));
        }
        let center = Center::exact(rows, weight, mean);
        Ok(Self { center, scatter, single: false, fast: false })
    }

    /// As if `rows` rows had this covariance (divisor n) and mean, 0 when it is not known: for fits where no
    /// rows are at hand.
    ///
    /// # Errors
    /// When the matrix is not square, finite, symmetric up to rounding and positive semidefinite with a
    /// positive diagonal, or the mean does not fit to it.
    pub fn from_covariance(covariance: MatRef<'_, f64>, mean: Option<&[f64]>, rows: usize) -> Result<Self> {
        let p = covariance.nrows();
        if covariance.ncols() != p {
            let (expected, found) = (p, covariance.ncols());
            return Err(Error::Length { what: "columns of the covariance", expected, found });
        }
        if rows == 0 {
            return Err(Error::NoRows);
        }
        let mean = mean.map_or_else(|| vec![0.0; p], <[f64]>::to_vec);
        if mean.len() != p {
            return Err(Error::Length { what: "means", expected: p, found: mean.len() });
        }
        check_covariance(covariance)?;
        let n = rows as f64;
        let half = |i: usize, j: usize| 0.5 * n * covariance[(i, j)] + 0.5 * n * covariance[(j, i)];
        let moments = Self::from_parts(rows, n, mean, Mat::from_fn(p, p, half));
        moments.map_err(|_| Error::Scale)
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.center.mean.len()
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.center.rows
    }

    /// Total weight: the number of rows when no weights were given.
    pub fn weight(&self) -> f64 {
        self.center.weight
    }

    /// Weighted mean.
    pub fn mean(&self) -> &[f64] {
        &self.center.mean
    }

    /// What rounding has taken off the mean.
    pub(crate) fn mean_rest(&self) -> &[f64] {
        &self.center.rest
    }

    /// The same with what rounding has taken off the mean.
    pub(crate) fn with_mean_rest(mut self, rest: Vec<f64>) -> Result<Self> {
        if rest.len() != self.n_features() || rest.iter().any(|r| !r.is_finite()) {
            return Err(Error::Format("moments that no rows can have".into()));
        }
        self.center.rest = rest;
        Ok(self)
    }

    /// How far the mean lies from that of others, feature by feature.
    pub(crate) fn offset_from(&self, other: &Self) -> Vec<f64> {
        let (a, b) = (&self.center, &other.center);
        (0..a.mean.len()).map(|j| a.mean[j] - b.mean[j] + (a.rest[j] - b.rest[j])).collect()
    }

    /// Those of some of the features, in the given order.
    pub(crate) fn of_features(&self, features: &[usize]) -> Self {
        let (p, pick) = (features.len(), |of: &[f64]| features.iter().map(|j| of[*j]).collect::<Vec<_>>());
        let entry = |i: usize, j: usize| {
            let (a, b) = (features[i], features[j]);
            self.scatter[(a.max(b), a.min(b))]
        };
        let Center { rows, weight, mean, rest } = &self.center;
        let center = Center { rows: *rows, weight: *weight, mean: pick(mean), rest: pick(rest) };
        Self { center, scatter: Mat::from_fn(p, p, entry), ..*self }
    }

    /// Those of features divided by `scale` (p numbers above 0).
    pub(crate) fn divided(&self, scale: &[f64]) -> Self {
        let (p, each) =
            (scale.len(), |of: &[f64]| of.iter().zip(scale).map(|(x, d)| x / d).collect::<Vec<_>>());
        let Center { rows, weight, mean, rest } = &self.center;
        let center = Center { rows: *rows, weight: *weight, mean: each(mean), rest: each(rest) };
        let scatter = Mat::from_fn(p, p, |i, j| self.scatter[(i, j)] / scale[i] / scale[j]);
        Self { center, scatter, ..*self }
    }

    /// Those of L⁻¹x for a triangular L (p × p).
    pub(crate) fn solved(&self, factor: &Cholesky) -> Self {
        let mut mean = Mat::from_fn(self.n_features(), 1, |j, _| self.center.mean[j]);
        factor.solve_lower(mean.as_mut());
        let center = Center::exact(self.rows(), self.weight(), mean.col_as_slice(0).to_vec());
        let mut scatter = self.scatter.clone();
        mirror_lower(&mut scatter);
        factor.solve_lower(scatter.as_mut());
        factor.solve_lower(scatter.transpose_mut());
        Self { center, scatter, ..*self }
    }

    /// With every weight multiplied by a factor above 0.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let Center { rows, weight, mean, rest } = self.center.clone();
        let center = Center { rows, weight: weight * factor, mean, rest };
        let (p, entry) = (self.n_features(), |i: usize, j: usize| factor * self.scatter[(i, j)]);
        Self { center, scatter: Mat::from_fn(p, p, entry), ..*self }
    }

    /// As if there were rows more, of this total weight, with the same mean and these variances (p).
    pub(crate) fn with_more_rows(&self, weight: f64, variances: &[f64]) -> Self {
        let mut more = self.clone();
        more.center.weight += weight;
        // Enough that the covariance is taken for regular, which the variances make it.
        more.center.rows += variances.len() + 1;
        (0..variances.len()).for_each(|j| more.scatter[(j, j)] += weight * variances[j]);
        more
    }

    /// Lower triangle of the scatter (p × p); what stands above the diagonal is not defined.
    pub fn scatter_lower(&self) -> MatRef<'_, f64> {
        self.scatter.as_ref()
    }

    /// The covariance with divisor n (p × p).
    pub fn covariance(&self) -> Mat<f64> {
        let mut s = self.scatter.clone();
        mirror_lower(&mut s);
        let n = self.weight();
        s.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= n));
        s
    }

    /// Total variance with divisor n: the trace of the covariance.
    pub fn total_variance(&self) -> f64 {
        (0..self.n_features()).map(|i| self.scatter[(i, i)]).sum::<f64>() / self.weight()
    }

    /// The error that products in single precision leave in a variance, relative to the largest variance: 0
    /// when there were none.
    ///
    /// A rule fitted to one observation, not a bound: 5000 rows gave an error of 1.3e-8 of the largest
    /// variance, and errors of independent sums are taken to average out like 1/√n.
    pub(crate) fn single_precision_error(&self) -> f64 {
        if self.single { 1e-6 / (self.rows() as f64).sqrt() } else { 0.0 }
    }

    /// Of the rows of one chunk; the products are done in the precision `T` of the cells, the sums in double.
    fn of_view<T: Precision>(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Self {
        let mut sums = ShiftedProducts::around(view, weights);
        sums.add(view, weights);
        sums.finish()
    }

    pub(super) fn is_finite(&self) -> bool {
        self.center.mean.iter().all(|m| m.is_finite())
            && (0..self.n_features()).all(|i| self.scatter[(i, i)].is_finite())
    }
}

/// Sums over rows that are near a shift: parts of a chunk that are made one after the other.
pub(super) struct ShiftedProducts<T: Precision> {
    shift: Vec<f64>,
    unit: f64,
    products: T::Products,
    sum: ShiftedSum,
}

impl<T: Precision> ShiftedProducts<T> {
    /// Of no rows yet, with a shift and a unit that suit the given ones.
    pub(super) fn around(view: MatRef<'_, T>, weights: Option<&[f64]>) -> Self {
        let p = view.ncols();
        let shift = provisional_mean(view, weights);
        let unit = T::unit(view, weights, &shift);
        let sum = ShiftedSum { rows: 0, weight: 0.0, total: vec![0.0; p] };
        Self { products: T::Products::new(p, unit), shift, unit, sum }
    }

    /// Adds rows.
    pub(super) fn add(&mut self, view: MatRef<'_, T>, weights: Option<&[f64]>) {
        let products = &mut self.products;
        let more = for_each_block(view, weights, &self.shift, self.unit, |block| products.add(block));
        self.sum.rows += more.rows;
        self.sum.weight += more.weight;
        self.sum.total.iter_mut().zip(&more.total).for_each(|(t, m)| *t += m);
    }

    /// Their moments.
    pub(super) fn finish(self) -> Moments {
        let mut scatter = self.products.finish();
        let (center, offset) = Center::from_shifted(&self.sum, &self.shift);
        add_outer(&mut scatter, -center.weight, &offset);
        Moments { center, scatter, single: false, fast: false }
    }
}

/// What differs between single and double precision when rows are squared.
pub(super) trait Precision: Real {
    /// Where products are added up.
    type Products: Products<Self>;
    /// Unit in which deviations are squared.
    fn unit(view: MatRef<'_, Self>, weights: Option<&[f64]>, shift: &[f64]) -> f64;
}

/// The sum of `unit² · blockᵀ block` over blocks, lower triangle.
pub(super) trait Products<T> {
    fn new(p: usize, unit: f64) -> Self;
    fn add(&mut self, block: MatRef<'_, T>);
    fn finish(self) -> Mat<f64>;
}

impl Precision for f64 {
    type Products = Mat<f64>;
    fn unit(_: MatRef<'_, Self>, _: Option<&[f64]>, _: &[f64]) -> f64 {
        1.0
    }
}

impl Products<f64> for Mat<f64> {
    fn new(p: usize, _: f64) -> Self {
        Self::zeros(p, p)
    }
    fn add(&mut self, block: MatRef<'_, f64>) {
        lower_crossproduct(self.as_mut(), block, true);
    }
    fn finish(self) -> Mat<f64> {
        self
    }
}

impl Precision for f32 {
    type Products = SingleProducts;
    fn unit(view: MatRef<'_, Self>, weights: Option<&[f64]>, shift: &[f64]) -> f64 {
        provisional_unit(view, weights, shift)
    }
}

/// Products of some hundred rows in single precision, then added to the total in double.
pub(super) struct SingleProducts {
    single: Mat<f32>,
    rows: usize,
    double: Mat<f64>,
    square: f64, // unit²
}

/// Rows that are added up in single precision: rounding stays at the level of the cells'.
const SINGLE_ROWS: usize = 512;

impl Products<f32> for SingleProducts {
    fn new(p: usize, unit: f64) -> Self {
        Self { single: Mat::zeros(p, p), rows: 0, double: Mat::zeros(p, p), square: unit * unit }
    }

    fn add(&mut self, block: MatRef<'_, f32>) {
        if self.rows + block.nrows() > SINGLE_ROWS {
            self.flush();
        }
        lower_crossproduct(self.single.as_mut(), block, self.rows > 0);
        self.rows += block.nrows();
    }

    fn finish(mut self) -> Mat<f64> {
        self.flush();
        self.double
    }
}

impl SingleProducts {
    fn flush(&mut self) {
        if self.rows == 0 {
            return;
        }
        let (square, arch) = (self.square, pulp::Arch::new());
        for j in 0..self.double.ncols() {
            let to = &mut self.double.col_as_slice_mut(j)[j..];
            let from = &self.single.col_as_slice(j)[j..];
            arch.dispatch(|| to.iter_mut().zip(from).for_each(|(t, f)| *t += f64::from(*f) * square));
        }
        self.rows = 0;
    }
}

/// Finite, positive on the diagonal, symmetric and semidefinite, up to rounding.
fn check_covariance(covariance: MatRef<'_, f64>) -> Result<()> {
    let p = covariance.nrows();
    let places = || (0..p).flat_map(|j| (0..p).map(move |i| (i, j)));
    let cell = |(row, column): (usize, usize)| Cell { row, column, name: None };
    if let Some(place) = places().find(|ij| !covariance[*ij].is_finite()) {
        let value = covariance[place];
        let (cell, operation) = (cell(place), "a fit to a covariance");
        return Err(if value.is_nan() {
            Error::Missing { cell, operation }
        } else {
            Error::Infinite { value, cell }
        });
    }
    let deviation: Vec<f64> = (0..p).map(|j| covariance[(j, j)].max(0.0).sqrt()).collect();
    if let Some(j) = (0..p).find(|j| deviation[*j] <= 0.0) {
        let (name, value) = ("a variance on the diagonal", format!("{} at {j}", covariance[(j, j)]));
        return Err(Error::Parameter { name, value, allowed: "positive" });
    }
    let correlation = |i: usize, j: usize| covariance[(i, j)] / deviation[i] / deviation[j];
    let skew = |(i, j): &(usize, usize)| (correlation(*i, *j) - correlation(*j, *i)).abs() > SYMMETRY;
    if let Some((row, column)) = places().find(skew) {
        let (value, mirrored) = (covariance[(row, column)], covariance[(column, row)]);
        return Err(Error::Asymmetric { row, column, value, mirrored });
    }
    let values = symmetric_eigenvalues(Mat::from_fn(p, p, correlation).as_ref())?;
    match values.last() {
        Some(eigenvalue) if *eigenvalue < -SYMMETRY * p as f64 => {
            Err(Error::Indefinite { eigenvalue: *eigenvalue })
        }
        _ => Ok(()),
    }
}

pub(super) fn check_features(expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::FeatureCount { expected, found }) }
}

/// `a += factor · v vᵀ`, lower triangle.
fn add_outer(a: &mut Mat<f64>, factor: f64, v: &[f64]) {
    if factor == 0.0 {
        return;
    }
    for j in 0..v.len() {
        let along = factor * v[j];
        a.col_as_slice_mut(j)[j..].iter_mut().zip(&v[j..]).for_each(|(a, v)| *a += along * v);
    }
}

impl Accumulator for Moments {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("moments"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.n_features(), chunk.ncols())?;
        let mut part = match chunk.cells() {
            Cells::F32(block) if self.fast => {
                Self { single: true, ..Self::of_view(block.view(), chunk.weights()) }
            }
            _ => chunk.with_wide(|view| Self::of_view(view, chunk.weights())),
        };
        if !part.is_finite() {
            if let Some(error) = chunk.explain_not_finite("a covariance") {
                return Err(error);
            }
            // Single-precision rows whose squares leave its range.
            part = chunk.with_wide(|view| Self::of_view(view, chunk.weights()));
            if !part.is_finite() {
                return Err(Error::Scale);
            }
        }
        self.merge(&part)
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        check_features(self.n_features(), other.n_features())?;
        self.single |= other.single;
        let between = self.center.merge(&other.center);
        let arch = pulp::Arch::new();
        for j in 0..self.n_features() {
            let sum = &mut self.scatter.col_as_slice_mut(j)[j..];
            let (added, d) = (&other.scatter.col_as_slice(j)[j..], &between.difference[j..]);
            let along = between.factor * d[0];
            arch.dispatch(|| {
                sum.iter_mut().zip(added).zip(d).for_each(|((a, b), d)| *a += b + along * d);
            });
        }
        Ok(())
    }
}

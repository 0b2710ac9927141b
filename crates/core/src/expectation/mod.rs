//! The expectation step: parameters and a block of rows → posterior mean, covariance and log density.
//!
//! Features are scaled so that the noise s is the same for all: a row is $e = A z + \varepsilon$ with
//! $z \sim N(0, I)$ and $\varepsilon \sim N(0, s I)$. With the observed cells O of the row,
//!
//! - $M = s I + \sum_{j \in O} a_j a_j^\top$ (q × q), the same for all rows that observe the same cells,
//! - $\bar z = M^{-1} \sum_{j \in O} a_j e_j$ is the mean of z given the row, and $s M^{-1}$ its covariance,
//! - $\ln p(e) = -\tfrac12 ( |O| \ln 2\pi + (|O| - q) \ln s + \ln |M| + \|e - A \bar z\|^2 / s + \|\bar z\|^2
//!   )$.
//!
//! EM collects its evidence from this ([`Latent`](crate::evidence::Latent)), and a fitted model answers
//! questions about rows with missing values by it. It knows no weights: a mixture can weight the rows of each
//! component by responsibilities, which are made of these log densities.
//!
//! Where features differ in scale by orders of magnitude, M would hold nothing of the small ones: the cells
//! of a row are then observed one after the other (`cell_by_cell.rs`).
//!
//! Two kinds of rows are not worked on here:
//!
//! - Complete rows share one M. Products of whole blocks serve them (`model/factored.rs`).
//! - Rows whose M is all but singular (no noise, or fewer cells than latent variables under little noise)
//!   need another factor, `linalg::LatentFactor`, one pattern at a time.

mod cell_by_cell;
mod parameters;
mod student;

pub(crate) use parameters::FeatureScale;
pub use parameters::LatentParameters;
pub(crate) use student::{Student, log_minus_digamma};

use std::f64::consts::TAU;

use cell_by_cell::CellByCell;

use crate::blocks::{FeatureLoadings, IncompleteRows};
use crate::linalg::{Lanes, Mat, RootLanes, packed, packed_len};

/// A linear-Gaussian model with features scaled so that the noise is the same for all.
#[derive(Clone, Copy)]
pub(crate) struct ScaledModel<'a> {
    /// A.
    pub(crate) loadings: &'a FeatureLoadings,
    /// s.
    pub(crate) noise: f64,
    /// Covariance of (aⱼ, μⱼ) of each feature, packed ((q+1)(q+2)/2 × p), where they are uncertain.
    pub(crate) uncertainty: Option<&'a Mat<f64>>,
}

/// The posterior of the latent variables of some rows.
///
/// Where A and μ are uncertain (variational Bayes), aⱼaⱼᵀ and aⱼ(xⱼ − μⱼ) are expectations; the log density
/// is then the bound of \[IR10\] without the terms that no row is in.
pub(crate) struct Expectation<'a, R: IncompleteRows + ?Sized> {
    model: ScaledModel<'a>,
    rows: &'a R,
    uncertainty: Option<PatternUncertainty>,
    factors: PatternFactors,
    projections: Mat<f64>, // Σ aⱼeⱼ (rows × q)
    mean: Mat<f64>,        // (rows × q)
}

/// What the posterior covariance s M⁻¹ of each pattern is made of.
enum PatternFactors {
    /// M = L Lᵀ.
    OfPrecision(Lanes),
    /// s M⁻¹ = S Sᵀ, where M would hold nothing of features of small scale.
    OfCovariance(CellByCell),
}

impl<'a, R: IncompleteRows + ?Sized> Expectation<'a, R> {
    /// The fastest way.
    pub(crate) fn new(model: ScaledModel<'a>, rows: &'a R) -> Self {
        Self::with_factors(model, rows, Lanes::new_any)
    }

    /// The same with factors whose last bits do not depend on how many patterns the rows have.
    pub(crate) fn reproducible(model: ScaledModel<'a>, rows: &'a R) -> Self {
        Self::with_factors(model, rows, Lanes::new)
    }

    fn with_factors(
        model: ScaledModel<'a>,
        rows: &'a R,
        factors: impl Fn(Mat<f64>, usize, f64) -> Lanes,
    ) -> Self {
        let q = model.loadings.q();
        let mut projections = rows.projections(model.loadings);
        let uncertainty = model.uncertainty.map(|of| PatternUncertainty::new(rows, of, q));
        let (factors, mean) = if model.loadings.graded(model.noise) {
            let (prior, mean) = match &uncertainty {
                Some(uncertainty) => uncertainty.prior(rows.pattern(), model.noise),
                None => CellByCell::prior(rows.observed().len(), rows.pattern().len(), model),
            };
            let (found, mean) = prior.given(model, rows, &mean);
            (PatternFactors::OfCovariance(found), mean)
        } else {
            let mut grams = rows.grams(model.loadings);
            if let Some(uncertainty) = &uncertainty {
                uncertainty.add_to(&mut grams, &mut projections, rows.pattern());
            }
            let factors = factors(grams, q, model.noise);
            let mean = factors.solved(rows.pattern(), &projections);
            (PatternFactors::OfPrecision(factors), mean)
        };
        Self { model, rows, uncertainty, factors, projections, mean }
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &'a R {
        self.rows
    }

    /// q.
    pub(crate) fn n_latent(&self) -> usize {
        self.model.loadings.q()
    }

    /// Posterior means (rows × q).
    pub(crate) fn mean(&self) -> &Mat<f64> {
        &self.mean
    }

    /// Σ aⱼeⱼ over the observed cells of each row (rows × q).
    pub(crate) fn projections(&self) -> &Mat<f64> {
        &self.projections
    }

    /// Posterior covariances s M⁻¹ of each pattern, packed (patterns × q(q+1)/2).
    pub(crate) fn covariances(&self) -> Mat<f64> {
        match &self.factors {
            PatternFactors::OfPrecision(factors) => factors.inverse(self.model.noise),
            PatternFactors::OfCovariance(found) => found.covariances(),
        }
    }

    /// Roots R of the posterior covariances RRᵀ, column after column (q² × patterns).
    pub(crate) fn roots(&self) -> Mat<f64> {
        match &self.factors {
            PatternFactors::OfPrecision(factors) => {
                RootLanes::of_inverses(factors, self.n_latent(), self.model.noise.sqrt()).in_columns()
            }
            PatternFactors::OfCovariance(found) => found.roots(),
        }
    }

    /// ln |M| of each pattern.
    fn log_det(&self) -> Vec<f64> {
        match &self.factors {
            PatternFactors::OfPrecision(factors) => factors.log_det(),
            PatternFactors::OfCovariance(found) => found.log_det().to_vec(),
        }
    }

    /// ‖e − Az‖² over the observed cells of each row.
    pub(crate) fn squared_residuals(&self) -> Vec<f64> {
        let mut squares = self.rows.squared_residuals(self.model.loadings, &self.mean, None);
        if let Some(uncertainty) = &self.uncertainty {
            uncertainty.add_squares(&self.mean, &mut squares, self.rows.pattern());
        }
        squares
    }

    /// Squared Mahalanobis distance ‖e − Az‖²/s + ‖z‖² of each row, given its squared residual.
    ///
    /// Equal to eᵀ(s I + AAᵀ)⁻¹e because the posterior mean z minimises the sum; a sum of squares does not
    /// cancel.
    pub(crate) fn mahalanobis(&self, squared_residuals: &[f64]) -> Vec<f64> {
        let mut distances: Vec<f64> = squared_residuals.iter().map(|s| s / self.model.noise).collect();
        for i in 0..self.n_latent() {
            distances.iter_mut().zip(self.mean.col_as_slice(i)).for_each(|(d, z)| *d += z * z);
        }
        distances.into_iter().map(or_infinite).collect()
    }

    /// ln p(e) of each row, given its squared Mahalanobis distance.
    pub(crate) fn log_densities(&self, mahalanobis: &[f64]) -> Vec<f64> {
        let (q, log_noise, log_det) = (self.n_latent() as f64, self.model.noise.ln(), self.log_det());
        let cells = self.rows.observed();
        let density = |(k, distance): (&usize, &f64)| {
            let log_det = (cells[*k] as f64 - q) * log_noise + log_det[*k];
            normal_log_density(cells[*k], log_det, *distance)
        };
        self.rows.pattern().iter().zip(mahalanobis).map(density).collect()
    }

    /// Draws from the posteriors, made of standard normals (rows × q).
    pub(crate) fn draws(&self, mut normals: Mat<f64>) -> Mat<f64> {
        let pattern = self.rows.pattern();
        let (deviates, scale) = match &self.factors {
            PatternFactors::OfPrecision(factors) => {
                factors.select(pattern).solve_transposed(&mut normals);
                (normals, self.model.noise.sqrt())
            }
            PatternFactors::OfCovariance(found) => (found.deviates(pattern, &normals), 1.0),
        };
        let draw = |i, k| self.mean[(i, k)] + scale * deviates[(i, k)];
        Mat::from_fn(deviates.nrows(), deviates.ncols(), draw)
    }
}

/// ln of a normal density of so many cells, by log |C| and the squared Mahalanobis distance.
pub(crate) fn normal_log_density(cells: usize, log_det: f64, mahalanobis: f64) -> f64 {
    0.0 - 0.5 * (cells as f64 * TAU.ln() + log_det + mahalanobis)
}

/// Cells are finite: where a square is not a number, the distance is beyond all numbers.
pub(crate) fn or_infinite(distance: f64) -> f64 {
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// Covariance of (aⱼ, μⱼ), summed over the observed features of each pattern (patterns × (q+1)(q+2)/2).
struct PatternUncertainty {
    sums: Mat<f64>,
    q: usize,
}

impl PatternUncertainty {
    fn new<R: IncompleteRows + ?Sized>(rows: &R, covariance: &Mat<f64>, q: usize) -> Self {
        Self { sums: rows.sums_of(covariance), q }
    }

    /// E[aⱼaⱼᵀ] instead of E[aⱼ]E[aⱼ]ᵀ, and E[aⱼ(xⱼ − μⱼ)] instead of the product of the means.
    fn add_to(&self, grams: &mut Mat<f64>, projections: &mut Mat<f64>, pattern: &[usize]) {
        for k in 0..packed_len(self.q) {
            let from = self.sums.col_as_slice(k);
            grams.col_as_slice_mut(k).iter_mut().zip(from).for_each(|(g, sum)| *g += sum);
        }
        for i in 0..self.q {
            let from = self.sums.col_as_slice(packed(self.q, i));
            let to = projections.col_as_slice_mut(i);
            to.iter_mut().zip(pattern).for_each(|(p, pattern)| *p -= from[*pattern]);
        }
    }

    /// What is known of z before any cell is seen: precision (s I + Σ Sⱼ)/s, where Sⱼ is the covariance of
    /// aⱼ, and mean −(s I + Σ Sⱼ)⁻¹ Σ cov(aⱼ, μⱼ).
    fn prior(&self, pattern: &[usize], noise: f64) -> (CellByCell, Mat<f64>) {
        let patterns = self.sums.nrows();
        let (mut grams, mut mean) =
            (Mat::zeros(patterns, packed_len(self.q)), Mat::zeros(pattern.len(), self.q));
        self.add_to(&mut grams, &mut mean, pattern);
        let factors = Lanes::new(grams, self.q, noise);
        let mean = factors.solved(pattern, &mean);
        (CellByCell::under(&factors, self.q, noise), mean)
    }

    /// Σ (z, 1)ᵀ S (z, 1) over the observed features of each row, S the covariance of a feature.
    fn add_squares(&self, z: &Mat<f64>, squares: &mut [f64], pattern: &[usize]) {
        let last = |i: usize, row: usize| if i < self.q { z[(row, i)] } else { 1.0 };
        for (i, k) in (0..=self.q).flat_map(|i| (0..=i).map(move |k| (i, k))) {
            let (from, twice) = (self.sums.col_as_slice(packed(i, k)), if i == k { 1.0 } else { 2.0 });
            for (row, (square, pattern)) in squares.iter_mut().zip(pattern).enumerate() {
                *square += twice * from[*pattern] * last(i, row) * last(k, row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::ListedRows;
    use crate::data::Observed;

    /// Two rows of two features with loadings 1 and 2 and noise ½; the second row has its first cell only.
    #[test]
    fn posteriors_by_hand() {
        let observed = Observed::from_rows(vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 3.0, 1.0], 2).unwrap();
        let mean = [0.0, 0.0];
        let rows = ListedRows::new(observed.rows(0..2), 0..2, mean[..].into(), &[1.0, 1.0]);
        let loadings = FeatureLoadings::new(&Mat::from_fn(1, 2, |_, j| [1.0, 2.0][j]));
        let model = ScaledModel { loadings: &loadings, noise: 0.5, uncertainty: None };
        for step in [Expectation::new(model, &rows), Expectation::reproducible(model, &rows)] {
            // M = ½ + 1 + 4 and ½ + 1.
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
            near(step.mean()[(0, 0)], 7.0 / 5.5);
            near(step.mean()[(1, 0)], 1.0 / 1.5);
            near(step.covariances()[(0, 0)], 0.5 / 5.5);
            near(step.covariances()[(1, 0)], 0.5 / 1.5);
            // C = ½ I + aaᵀ: |C| = ½ · 5½, and C⁻¹ = 2 (I − aaᵀ/5½); for one cell it is 1½.
            let distances = step.mahalanobis(&step.squared_residuals());
            near(distances[0], 2.0 * (10.0 - 49.0 / 5.5));
            near(distances[1], 1.0 / 1.5);
            let densities = step.log_densities(&distances);
            near(densities[0], -0.5 * (2.0 * TAU.ln() + 2.75f64.ln() + distances[0]));
            near(densities[1], -0.5 * (TAU.ln() + 1.5f64.ln() + distances[1]));
        }
    }
}

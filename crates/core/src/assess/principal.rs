//! Standard errors and intervals of the mean, the noise variance, the eigenvalues and the loadings of PPCA,
//! in closed form.

use serde::Serialize;

use super::parameters::{check_finite, check_length, parameter};
use super::quantile::{chi2, normal, student};
use crate::error::Result;
use crate::linalg::{Mat, MatRef, column_norm, product, unit_columns};

/// Eigenvalues that differ by no more than this share are the same: their directions are any of a plane.
const TIE: f64 = 1e-10;

/// Cosine of the angle between two columns of loadings up to which they are orthogonal.
const ORTHOGONAL: f64 = 1e-8;

/// PPCA along its principal axes, as an estimate from so many complete rows.
///
/// The rows are taken to be independent draws of the model, C = WWᵀ + σ²I with eigenvalues λᵢ = |wᵢ|² + σ²
/// along uᵢ = wᵢ/|wᵢ| for i ≤ q, and σ² p − q times. The noise variance that maximum likelihood gives is the
/// mean of the p − q smallest eigenvalues of the data's covariance \[TB99\], and those, their sums within a
/// group and their directions are independent for large n \[A63\]:
///
/// $$ \mathrm{Var}\,\hat\mu = \tfrac1n C, \quad \mathrm{Var}\,\hat\lambda_i = \tfrac2n \lambda_i^2, \quad
/// \mathrm{Var}\,\hat\sigma^2 = \frac{2\sigma^4}{n(p-q)}, \quad \mathrm{Cov}\,\hat u_i = \frac{\lambda_i}n
/// \Big[ \sum_{k \ne i,\, k \le q} \frac{\lambda_k u_k u_k^T}{(\lambda_i - \lambda_k)^2} + \frac{\sigma^2 (I
/// - UU^T)}{(\lambda_i - \sigma^2)^2} \Big] $$
///
/// and with $w_i = u_i \sqrt{\lambda_i - \sigma^2}$
///
/// $$ \mathrm{Cov}\,\hat w_i = (\lambda_i - \sigma^2)\, \mathrm{Cov}\,\hat u_i +
/// \frac{\mathrm{Var}\,\hat\lambda_i + \mathrm{Var}\,\hat\sigma^2}{4 (\lambda_i - \sigma^2)}\, u_i u_i^T. $$
///
/// No p × p matrix is formed: the cost is that of p q² multiplications.
///
/// ```
/// use covary::assess::PpcaEstimate;
/// use covary::linalg::Mat;
///
/// let w = Mat::from_fn(3, 1, |j, _| [2.0, 1.0, 0.0][j]);
/// let estimate = PpcaEstimate::new(&[0.0; 3], w.as_ref(), 1.0, 800.0)?;
/// let errors = estimate.standard_errors();
/// // σ² is a mean of squares in two directions of 800 rows.
/// assert!((errors.noise_variance.unwrap() - (2.0 / 1600_f64).sqrt()).abs() < 1e-15);
/// let intervals = estimate.intervals(0.95)?;
/// assert!(intervals.loadings_lower[(0, 0)] < 2.0 && 2.0 < intervals.loadings_upper[(0, 0)]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PpcaEstimate<'a> {
    mean: &'a [f64],
    loadings: MatRef<'a, f64>, // W (p × q)
    noise: f64,
    rows: f64,
    directions: Mat<f64>, // U (p × q), 0 where W is
    lengths: Vec<f64>,    // |w| (q)
}

/// Standard errors of the numbers of PPCA.
///
/// A column of loadings that the data do not determine, because its eigenvalue is that of another direction
/// or of the noise, has infinite errors (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PpcaErrors {
    /// Of μ (p).
    pub mean: Vec<f64>,
    /// Of σ²; `None` when all directions are components, so that there is no noise to estimate.
    pub noise_variance: Option<f64>,
    /// Of the variances λ along the components (q).
    pub eigenvalues: Vec<f64>,
    /// Of W (p × q).
    #[serde(with = "super::serde_rows")]
    pub loadings: Mat<f64>,
}

/// Intervals that hold each of the numbers of PPCA with some probability, not all of them at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PpcaIntervals {
    /// That probability.
    pub level: f64,
    /// Of μ (p).
    pub mean: Vec<(f64, f64)>,
    /// Of σ², around the estimate without bias ([`PpcaEstimate::unbiased_noise`]); `None` when all
    /// directions are components.
    pub noise_variance: Option<(f64, f64)>,
    /// Of the variances λ along the components (q).
    pub eigenvalues: Vec<(f64, f64)>,
    /// Lower ends for W (p × q); −∞ (null in JSON) where a column is not determined.
    #[serde(with = "super::serde_rows")]
    pub loadings_lower: Mat<f64>,
    /// Upper ends for W (p × q).
    #[serde(with = "super::serde_rows")]
    pub loadings_upper: Mat<f64>,
}

impl<'a> PpcaEstimate<'a> {
    /// The level of intervals when nothing else is asked for.
    pub const LEVEL: f64 = 0.95;

    /// μ (p), W (p × q) with orthogonal columns, σ² and the number of rows, or their total weight, that they
    /// were found from.
    ///
    /// # Errors
    /// When shapes disagree, a number is not finite, σ² is negative, the columns are not orthogonal (loadings
    /// that were turned), or the rows are so few that they leave nothing to judge the noise by.
    pub fn new(mean: &'a [f64], loadings: MatRef<'a, f64>, noise: f64, rows: f64) -> Result<Self> {
        check_length("rows of the loadings", mean.len(), loadings.nrows())?;
        check_finite("the loadings", loadings)?;
        if let Some(value) = mean.iter().find(|m| !m.is_finite()) {
            return Err(parameter("the mean", value, "finite numbers throughout"));
        }
        if !(noise.is_finite() && noise >= 0.0) {
            return Err(parameter("the noise variance", &noise, "finite and not negative"));
        }
        let lengths = (0..loadings.ncols()).map(|i| column_norm(loadings, i)).collect();
        let directions = unit_columns(loadings.to_owned());
        check_orthogonal(&directions)?;
        let estimate = Self { mean, loadings, noise, rows, directions, lengths };
        estimate.check_rows().map(|()| estimate)
    }

    /// Square roots of the variances.
    pub fn standard_errors(&self) -> PpcaErrors {
        let relative = (2.0 / self.rows).sqrt();
        let left = self.left() as f64;
        PpcaErrors {
            mean: self.variances().map(|v| (v / self.rows).sqrt()).collect(),
            noise_variance: (left > 0.0).then(|| self.noise * (relative / left.sqrt())),
            eigenvalues: self.eigenvalues().map(|v| v * relative).collect(),
            loadings: self.loading_errors(),
        }
    }

    /// Intervals that hold each number with probability `level`, between 0 and 1.
    ///
    /// They are exact where theory has an exact answer, so that they cover with few rows too: the mean by
    /// Student's t with n − 1 degrees of freedom; the noise variance by n(p − q)σ̂²/σ² ~ χ² with (n − 1 −
    /// q)(p − q) of them, exact for components much stronger than the noise, of which each takes a row's
    /// worth with it, so that the interval lies around [`unbiased_noise`](Self::unbiased_noise); eigenvalues
    /// by nλ̂/λ ~ χ² with n − 1, exact for a single feature. Loadings have normal ones, ŵ ± z times the
    /// standard error.
    ///
    /// # Errors
    /// When the level is not between 0 and 1.
    pub fn intervals(&self, level: f64) -> Result<PpcaIntervals> {
        let noise_variance = self.noise_interval(level)?;
        let free = self.rows - 1.0;
        let t = student(free, upper(level));
        let half: Vec<f64> = self.variances().map(|v| t * (v / free).sqrt()).collect();
        let (w, errors, z) = (self.loadings, self.loading_errors(), normal(upper(level)));
        let at = |sign: f64| Mat::from_fn(w.nrows(), w.ncols(), |j, i| w[(j, i)] + sign * z * errors[(j, i)]);
        Ok(PpcaIntervals {
            level,
            mean: self.mean.iter().zip(half).map(|(m, h)| (m - h, m + h)).collect(),
            noise_variance,
            eigenvalues: self.eigenvalues().map(|v| of_variance(v, self.rows, free, level)).collect(),
            loadings_lower: at(-1.0),
            loadings_upper: at(1.0),
        })
    }

    /// σ² without its bias, n/(n − 1 − q) σ̂²: the estimate that the interval of σ² belongs to; `None` when
    /// all directions are components.
    ///
    /// Maximum likelihood divides by n(p − q) what has (n − 1 − q)(p − q) degrees of freedom, so that σ̂²
    /// is too small by the factor 1 − (1 + q)/n. With many features that is more than its standard error,
    /// and σ̂² lies below its own interval.
    pub fn unbiased_noise(&self) -> Option<f64> {
        let free = self.rows - 1.0 - self.lengths.len() as f64;
        (self.left() > 0).then(|| self.noise * (self.rows / free))
    }

    /// That of σ² alone, without the others' cost. It lies around [`unbiased_noise`](Self::unbiased_noise),
    /// not around σ̂².
    ///
    /// # Errors
    /// When the level is not between 0 and 1.
    pub fn noise_interval(&self, level: f64) -> Result<Option<(f64, f64)>> {
        if !(level > 0.0 && upper(level) < 1.0) {
            return Err(parameter("the level of the intervals", &level, "between 0 and 1"));
        }
        let (left, q) = (self.left() as f64, self.lengths.len() as f64);
        let free = (self.rows - 1.0 - q) * left;
        Ok((left > 0.0).then(|| of_variance(self.noise, self.rows * left, free, level)))
    }

    /// Cⱼⱼ for each feature.
    fn variances(&self) -> impl Iterator<Item = f64> {
        (0..self.mean.len()).map(|j| self.loadings.row(j).squared_norm_l2() + self.noise)
    }

    /// λ (q).
    fn eigenvalues(&self) -> impl Iterator<Item = f64> {
        self.lengths.iter().map(|l| l * l + self.noise)
    }

    /// Directions that are left to the noise, p − q.
    fn left(&self) -> usize {
        self.mean.len().saturating_sub(self.lengths.len())
    }

    /// Of W (p × q): squared entries of the directions times what each direction contributes to each column.
    fn loading_errors(&self) -> Mat<f64> {
        let largest = self.eigenvalues().fold(0.0, f64::max);
        let Shares { within, outside, determined } = self.shares(largest);
        let (p, q) = (self.mean.len(), self.lengths.len());
        let squares = Mat::from_fn(p, q, |j, k| self.directions[(j, k)].powi(2));
        let inside = product(squares.as_ref(), within.as_ref());
        Mat::from_fn(p, q, |j, i| {
            let rest = (1.0 - (0..q).map(|k| squares[(j, k)]).sum::<f64>()).max(0.0);
            let variance = (inside[(j, i)] + rest * outside[i]) / self.rows;
            if determined[i] { variance.sqrt() * largest.sqrt() } else { f64::INFINITY }
        })
    }

    /// n Cov ŵᵢ in the basis of the directions, where it is diagonal; in units of the largest eigenvalue, so
    /// that squares of squares stay in range.
    fn shares(&self, largest: f64) -> Shares {
        let q = self.lengths.len();
        let noise = self.noise / largest;
        let signal: Vec<f64> = self.lengths.iter().map(|l| (l / largest.sqrt()).powi(2)).collect(); // λ − σ²
        let value = |i: usize| signal[i] + noise;
        let apart = |i: usize, k: usize| (signal[i] - signal[k]).abs() > TIE * value(i).max(value(k));
        let alone = |i: usize| signal[i] > TIE * value(i) && (0..q).all(|k| k == i || apart(i, k));
        let determined: Vec<bool> = (0..q).map(alone).collect();
        let of_noise = if self.left() > 0 { noise * noise / self.left() as f64 } else { 0.0 };
        let within = Mat::from_fn(q, q, |k, i| match (determined[i], i == k) {
            (false, _) => 0.0,
            (true, true) => (value(i).powi(2) + of_noise) / (2.0 * signal[i]),
            (true, false) => signal[i] * value(i) * value(k) / (signal[i] - signal[k]).powi(2),
        });
        let outside =
            (0..q).map(|i| if determined[i] { value(i) * noise / signal[i] } else { 0.0 }).collect();
        Shares { within, outside, determined }
    }

    fn check_rows(&self) -> Result<()> {
        let needed = self.lengths.len() + usize::from(self.left() > 0);
        if self.rows.is_finite() && self.rows > needed.max(1) as f64 {
            return Ok(());
        }
        let allowed = "more than the components and 1: fewer rows leave nothing to judge errors by";
        Err(parameter("the number of rows (or their total weight)", &self.rows, allowed))
    }
}

/// What directions contribute to the variance of each column of loadings.
struct Shares {
    within: Mat<f64>,  // (q × q), row k for direction k, column i for wᵢ
    outside: Vec<f64>, // (q), for every direction of the noise
    determined: Vec<bool>,
}

/// Probability below the upper end of a central interval.
fn upper(level: f64) -> f64 {
    f64::midpoint(1.0, level)
}

/// The interval of a variance v with an estimate that, times `count`/v, is χ² with so many degrees of
/// freedom.
fn of_variance(estimate: f64, count: f64, freedom: f64, level: f64) -> (f64, f64) {
    let end = |probability: f64| estimate * (count / chi2(freedom, probability));
    (end(upper(level)), end(1.0 - upper(level)))
}

fn check_orthogonal(directions: &Mat<f64>) -> Result<()> {
    let cosines = product(directions.transpose(), directions.as_ref());
    let pairs = (0..cosines.ncols()).flat_map(|i| (0..i).map(move |k| (i, k)));
    match pairs.map(|ik| cosines[ik].abs()).find(|c| *c > ORTHOGONAL) {
        Some(_) => {
            Err(parameter("the loadings", &"turned", "along the principal axes, as those of a fit are"))
        }
        None => Ok(()),
    }
}

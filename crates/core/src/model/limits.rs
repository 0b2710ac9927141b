//! Control limits: how large T² and SPE of a new row get with a given probability.
//!
//! **T²** has the χ² distribution with q degrees of freedom where the model is known. Found from n rows, by moments
//! with divisor m, a new row has $\frac{m}{n-1}\frac{q(n^2-1)}{n(n-q)} F_{q,n-q}$ \[J91, sec. 1.7\].
//!
//! **SPE** is $\sum_i \theta_i \chi^2_1$ with θ the eigenvalues of $B = s D^{1/2}(I - P)D^{1/2}$, P the projection on
//! the plane in units of the noise. Box's approximation $g\chi^2_h$ with $g = \operatorname{tr}B^2/\operatorname{tr}B$
//! and $h = (\operatorname{tr}B)^2/\operatorname{tr}B^2$ \[B54; NM95\] has the right mean and variance, needs two
//! traces, and is exact where all noise is the same: $\sigma^2\chi^2_{p-q}$ for PPCA. (The formula of \[JM79\] is an
//! approximation there too, and needs a third trace.)
//!
//! Of a row with missing cells p is the number of cells that it has, and q that of directions which they determine.

use std::collections::HashMap;

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};

use super::factored::FactoredModel;
use super::groups::Group;
use super::inference::{Inference, Purpose};
use super::questions::column;
use super::{LinearGaussian, Noise};
use crate::data::{Chunk, Rows, map_chunks};
use crate::error::{Error, Result};
use crate::expectation::Student;
use crate::linalg::{LatentFactor, Mat, product};

/// Above so many degrees of freedom F is χ² to rounding.
const LARGEST_F: f64 = 1e9;

/// From how many rows a model was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// n, the total weight of the rows.
    pub weight: f64,
    /// What sums of squares were divided by: n where variances are those of maximum likelihood, or n − 1.
    pub divisor: f64,
}

impl Sample {
    /// Of n rows, by maximum likelihood; `None` where there were none or one.
    pub fn of_rows(weight: f64) -> Option<Self> {
        (weight > 1.0).then_some(Self { weight, divisor: weight })
    }
}

/// Control limits of each row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Of T².
    pub t2: Vec<f64>,
    /// Of SPE, in the data's units.
    pub spe: Vec<f64>,
}

impl Limits {
    /// From a table (n × 2).
    pub(super) fn from_table(table: &Mat<f64>) -> Self {
        Self { t2: column(table, 0), spe: column(table, 1) }
    }
}

/// What limits are asked for, of which distribution.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    level: f64,
    sample: Option<Sample>,
    student: Student,
}

impl Wanted {
    /// Limits at a level, of the normal distribution.
    pub(super) fn new(level: f64, sample: Option<Sample>) -> Result<Self> {
        if !(level > 0.0 && level < 1.0) {
            let (name, value) = ("the level of control limits", level.to_string());
            return Err(Error::Parameter { name, value, allowed: "above 0 and below 1, such as 0.99" });
        }
        Ok(Self { level, sample, student: Student::NORMAL })
    }

    /// The same of the t distribution, whose degrees of freedom say more than the number of rows.
    pub(super) fn student(self, student: Student) -> Self {
        match student == Student::NORMAL {
            true => self,
            false => Self { student, sample: None, ..self },
        }
    }

    /// The same where a part of the sample was used.
    pub(super) fn share(self, share: f64) -> Self {
        let part = |of: Sample| Sample { weight: of.weight * share, divisor: of.divisor * share };
        Self { sample: self.sample.map(part), ..self }
    }

    /// Limits of T² and SPE of rows that observe the cells of this model.
    fn of(self, model: &FactoredModel, equal: bool) -> Result<[f64; 2]> {
        let least_squares = model.least_squares()?;
        let rank = least_squares.rank(model.n_features());
        let (scale, freedom) = spe_moments(model, least_squares, rank, equal);
        Ok([self.t2(rank as f64)?, scale * self.quantile(freedom, self.student.dof())?])
    }

    /// The same of rows of which some cells are observed that determine all directions, with the same noise for all.
    fn of_equal(self, cells: usize, rank: usize, noise: f64) -> Result<[f64; 2]> {
        let freedom = cells.saturating_sub(rank) as f64;
        Ok([self.t2(rank as f64)?, noise * self.quantile(freedom, self.student.dof())?])
    }

    fn t2(self, rank: f64) -> Result<f64> {
        match self.sample {
            Some(Sample { weight: n, .. }) if n <= rank => Ok(f64::INFINITY),
            Some(Sample { weight: n, divisor }) => {
                let factor = divisor * (n + 1.0) / (n * (n - rank));
                Ok(factor * self.quantile(rank, n - rank)?)
            }
            None => self.quantile(rank, self.student.dof()),
        }
    }

    /// h times the quantile of F with h and ν degrees of freedom, which is that of χ² where ν is infinite.
    fn quantile(self, h: f64, nu: f64) -> Result<f64> {
        let failed = |_| Error::Decomposition("distribution of a statistic");
        if h <= 0.0 {
            return Ok(0.0);
        }
        if nu > LARGEST_F {
            let chi2 = ChiSquared::new(h).map_err(failed)?;
            return Ok(upper_quantile(|x| chi2.sf(x), 1.0 - self.level));
        }
        let f =
            FisherSnedecor::new(h, nu).map_err(|_| Error::Decomposition("distribution of a statistic"))?;
        Ok(h * upper_quantile(|x| f.sf(x), 1.0 - self.level))
    }
}

/// g and h of SPE ≈ g χ²ₕ; (0, 0) where the cells lie in the plane for certain.
fn spe_moments(model: &FactoredModel, least_squares: &LatentFactor, rank: usize, equal: bool) -> (f64, f64) {
    let (p, s) = (model.n_features(), model.factor().noise());
    if s == 0.0 || rank >= p {
        return (0.0, 0.0);
    }
    if equal {
        return (s * model.root()[0].powi(2), (p - rank) as f64);
    }
    // P = TTᵀ: tr B = s Σ d (1 − h) and tr B² = s² (Σ d² (1 − 2h) + ‖TᵀDT‖²), h the diagonal of P.
    let t = least_squares.plane(model.loadings());
    let d: Vec<f64> = model.root().iter().map(|root| root * root).collect();
    let scaled = Mat::from_fn(p, t.ncols(), |j, k| d[j] * t[(j, k)]);
    let within = product(t.transpose(), scaled.as_ref()).squared_norm_l2();
    let own = |j: usize| t.row(j).squared_norm_l2();
    let first: f64 = (0..p).map(|j| d[j] * (1.0 - own(j))).sum();
    let second = (0..p).map(|j| d[j] * d[j] * (1.0 - 2.0 * own(j))).sum::<f64>() + within;
    // h lies between 1 and p − q.
    let freedom = (first * first / second).clamp(1.0, (p - rank) as f64);
    (s * first / freedom, freedom)
}

/// x with P(X > x) = `tail`: the interval that holds it is halved until no number lies between.
fn upper_quantile(survival: impl Fn(f64) -> f64, tail: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while survival(high) > tail && high < f64::MAX / 2.0 {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if survival(middle) > tail { low = middle } else { high = middle }
    }
}

impl LinearGaussian {
    /// Control limits of T² and SPE for each row, by the cells that it has.
    ///
    /// # Errors
    /// When the level is not between 0 and 1, or rows have another number of features or an infinite cell.
    pub fn limits<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        level: f64,
        sample: Option<Sample>,
    ) -> Result<Limits> {
        self.limits_wanted(rows, Wanted::new(level, sample)?)
    }

    pub(super) fn limits_wanted<'a>(&self, rows: impl Into<Rows<'a>>, wanted: Wanted) -> Result<Limits> {
        let inference = self.for_limits();
        let parts = map_chunks(rows.into().source(), |chunk| self.limits_in(&inference, chunk, wanted))?;
        let all = |k: usize| parts.iter().flat_map(|part| column(part, k)).collect();
        Ok(Limits { t2: all(0), spe: all(1) })
    }

    /// Limits of the rows of a chunk (n × 2).
    pub(super) fn limit_table(&self, chunk: &Chunk<'_>, wanted: Wanted) -> Result<Mat<f64>> {
        self.limits_in(&self.for_limits(), chunk, wanted)
    }

    /// With equal noise the number of cells decides; otherwise which they are.
    fn for_limits(&self) -> Inference<'_> {
        let equal = matches!(self.noise(), Noise::Isotropic(_));
        Inference::new(self, if equal { Purpose::LeastSquares } else { Purpose::EachPattern })
    }

    fn limits_in(&self, inference: &Inference<'_>, chunk: &Chunk<'_>, wanted: Wanted) -> Result<Mat<f64>> {
        let mut out = Mat::zeros(chunk.nrows(), 2);
        let (equal, mut complete) = (matches!(self.noise(), Noise::Isotropic(_)), None);
        let mut by_count: HashMap<usize, [f64; 2]> = HashMap::new();
        inference.for_each_group(chunk, &mut |group| {
            let rows = match group {
                Group::OnePattern(rows) => rows,
                // Least squares is well posed for them: their cells determine all q directions.
                Group::ManyPatterns(rows) => {
                    for (row, cells) in rows.rows.iter().zip(rows.observed()) {
                        let [t2, spe] = match by_count.get(&cells) {
                            Some(known) => *known,
                            None => wanted.of_equal(cells, self.n_latent(), self.noise().of(0))?,
                        };
                        by_count.insert(cells, [t2, spe]);
                        (out[(*row, 0)], out[(*row, 1)]) = (t2, spe);
                    }
                    return Ok(());
                }
            };
            let known = complete.filter(|_| rows.features.is_none());
            let [t2, spe] = known.map_or_else(|| wanted.of(rows.model, equal), Ok)?;
            if rows.features.is_none() {
                complete = Some([t2, spe]);
            }
            rows.rows.iter().for_each(|row| (out[(*row, 0)], out[(*row, 1)]) = (t2, spe));
            Ok(())
        })?;
        Ok(out)
    }
}

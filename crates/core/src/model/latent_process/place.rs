//! Where new rows lie: the position that explains their observed cells best, by a local search from the rows of the
//! fit that are nearest to them.

use rayon::prelude::*;

use super::LatentProcess;
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, RowAdjoint};
use crate::linalg::{Mat, MatRef, QuasiNewton, halved, packed, packed_len, product};
use crate::model::impute::dense;
use crate::model::questions::{room_for, stack};

/// Rows of the fit that a search may begin at.
const CANDIDATES: usize = 2000;
/// Steps of a search, its memory, and halvings of a step.
const STEPS: usize = 300;
const MEMORY: usize = 20;
const HALVINGS: usize = 20;
/// A search ends where several steps in a row gain less than this.
const GAIN: f64 = 1e-11;
/// Share of the slope that a step must gain.
const LEAST_SHARE: f64 = 1e-4;
/// Largest change of a variable in a step.
const LARGEST: f64 = 2.0;
/// A second start lies at least so far from the first, as Σ α (x − x′)²: the surface is another one there.
const APART: f64 = 1.0;
/// It is tried where its squared distance to the row is below this multiple of the nearest one's and of the noise, and of a share
/// of the mean squared distance: rows of the fit are no finer than that.
const NEAR: f64 = 4.0;
const COARSE: f64 = 0.01;
/// Two places explain a row about as well when the bounds differ by less: odds of 20 to 1.
const ODDS: f64 = 3.0;

/// Positions of rows.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Means (n × q).
    pub mean: Mat<f64>,
    /// Variances of each coordinate (n × q).
    pub variance: Mat<f64>,
    /// A lower bound on the log density of the observed cells of each row, in the units of the data; of positions that
    /// are points the log density together with that of the point.
    pub bound: Vec<f64>,
    /// Whether another place far away explains the row about as well.
    pub ambiguous: Vec<bool>,
}

/// Rows of the fit at which searches begin, as the model sees them.
#[derive(Debug)]
pub(super) struct Candidates {
    rows: Vec<usize>,
    cells: Mat<f64>, // (p × c), centred and divided
}

/// A position and how good it is.
#[derive(Debug, Clone)]
struct Place {
    mean: Vec<f64>,
    variance: Vec<f64>,
    bound: f64,
}

/// What a search climbs, for one row.
trait Hill: Sync {
    /// Value and gradient at a vector of free variables.
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>);

    /// Inverse curvature of each variable, roughly.
    fn scale(&self, x: &[f64]) -> Vec<f64>;
}

impl LatentProcess {
    /// The positions of rows.
    ///
    /// Rows begin at the row of the fit whose reconstruction is nearest in the observed cells, and at a second one far from
    /// it in the latent space where that is nearly as near. A row without any observed cell has the prior, N(0, I).
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn place(&self, rows: &dyn RowSource) -> Result<Placement> {
        let (q, parts) = (self.parts.kernel.n_latent(), self.placed_chunks(rows)?);
        let all: Vec<&(Place, bool)> = parts.iter().flatten().collect();
        room_for("the table of coordinates", rows, 2 * q)?;
        Ok(Placement {
            mean: Mat::from_fn(all.len(), q, |i, k| all[i].0.mean[k]),
            variance: Mat::from_fn(all.len(), q, |i, k| all[i].0.variance[k]),
            bound: all.iter().map(|(place, _)| place.bound).collect(),
            ambiguous: all.iter().map(|(_, ambiguous)| *ambiguous).collect(),
        })
    }

    fn placed_chunks(&self, rows: &dyn RowSource) -> Result<Vec<Vec<(Place, bool)>>> {
        let (expected, found) = (self.parts.mean.len(), rows.n_features());
        if expected != found {
            return Err(Error::FeatureCount { expected, found });
        }
        map_chunks(rows, |chunk| self.place_chunk(chunk, &|| rows.check()))
    }

    /// Calls `f` with each row of a chunk as it stands (NaN where missing), its mean and its variances.
    pub(super) fn with_places<T: Send>(
        &self,
        rows: &dyn RowSource,
        width: usize,
        f: impl Fn(usize, &[f64], &[f64], &[f64]) -> Vec<T> + Sync,
    ) -> Result<Vec<Vec<T>>> {
        room_for("the table of answers", rows, width)?;
        let (expected, found) = (self.parts.mean.len(), rows.n_features());
        if expected != found {
            return Err(Error::FeatureCount { expected, found });
        }
        let parts = map_chunks(rows, |chunk| {
            let places = self.place_chunk(chunk, &|| rows.check())?;
            let cells = dense(chunk);
            let answer = |i: usize| {
                let row: Vec<f64> = cells.row(i).iter().copied().collect();
                f(chunk.first_row() + i, &row, &places[i].0.mean, &places[i].0.variance)
            };
            Ok((0..places.len()).into_par_iter().map(answer).collect::<Vec<_>>())
        })?;
        Ok(parts.into_iter().flatten().collect())
    }

    fn place_chunk(
        &self,
        chunk: &Chunk<'_>,
        check: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<Vec<(Place, bool)>> {
        if let Some(error) = chunk.explain_infinite() {
            return Err(error);
        }
        let cells = dense(chunk);
        let complete = self.curvature(&(0..self.parts.mean.len()).collect::<Vec<_>>());
        let one = |i: usize| {
            check()?;
            let row: Vec<f64> = cells.row(i).iter().copied().collect();
            Ok(self.place_row(&row, &complete))
        };
        (0..cells.nrows()).into_par_iter().map(one).collect::<Vec<Result<_>>>().into_iter().collect()
    }

    /// Σ over features of wwᵀ − R: pairs, those off the diagonal counted twice (P). Not needed of points.
    fn curvature(&self, features: &[usize]) -> Vec<f64> {
        if self.has_points() {
            return Vec::new();
        }
        let (m, w) = (self.n_inducing(), &self.parts.weights);
        let chosen = Mat::from_fn(m, features.len(), |i, c| w[(i, features[c])]);
        let square = product(chosen.as_ref(), chosen.transpose());
        let mut reduction = vec![0.0; packed_len(m)];
        for j in features {
            let column = self.parts.reduction.col_as_slice(self.group(*j));
            reduction.iter_mut().zip(column).for_each(|(sum, r)| *sum += r);
        }
        let pairs = (0..m).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let twice = |i: usize, j: usize| if i == j { 1.0 } else { 2.0 };
        pairs.map(|(i, j)| twice(i, j) * (square[(i, j)] - reduction[packed(i, j)])).collect()
    }

    fn place_row(&self, row: &[f64], complete: &[f64]) -> (Place, bool) {
        let q = self.parts.kernel.n_latent();
        let observed: Vec<usize> = (0..row.len()).filter(|j| !row[*j].is_nan()).collect();
        if observed.is_empty() {
            return (Place { mean: vec![0.0; q], variance: vec![1.0; q], bound: 0.0 }, false);
        }
        let y: Vec<f64> =
            observed.iter().map(|j| (row[*j] - self.parts.mean[*j]) / self.parts.divisors[*j]).collect();
        let units: f64 = observed.iter().map(|j| self.parts.divisors[*j].ln()).sum();
        let mut ends: Vec<Place> = match self.has_points() {
            true => {
                let hill = PointHill::new(self, &observed, y.clone());
                self.starts(&observed, &y).into_iter().map(|at| hill.search(at)).collect()
            }
            false => {
                let own = (observed.len() < row.len()).then(|| self.curvature(&observed));
                let hill = SpreadHill::new(self, &observed, &y, own.as_deref().unwrap_or(complete));
                self.starts(&observed, &y).into_iter().map(|at| hill.search(at)).collect()
            }
        };
        ends.sort_by(|a, b| b.bound.total_cmp(&a.bound));
        let ambiguous = ends.get(1).is_some_and(|other| {
            ends[0].bound - other.bound < ODDS && self.apart(&ends[0].mean, &other.mean) > APART
        });
        let mut best = ends.swap_remove(0);
        best.bound -= units;
        (best, ambiguous)
    }

    /// Σ α (x − x′)².
    fn apart(&self, a: &[f64], b: &[f64]) -> f64 {
        let alpha = self.parts.kernel.relevance();
        (0..a.len()).map(|k| alpha[k] * (a[k] - b[k]).powi(2)).sum()
    }

    /// The rows of the fit at which the search for a row begins.
    fn starts(&self, observed: &[usize], y: &[f64]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let candidates = self.candidates.get_or_init(|| Candidates::of(self));
        let q = self.parts.kernel.n_latent();
        let distance = |c: usize| -> f64 {
            let cells = candidates.cells.col_as_slice(c);
            observed.iter().zip(y).map(|(j, y)| (cells[*j] - y).powi(2)).sum()
        };
        let distances: Vec<f64> = (0..candidates.rows.len()).map(distance).collect();
        let nearest = |allowed: &dyn Fn(usize) -> bool| {
            (0..distances.len())
                .filter(|c| allowed(*c))
                .min_by(|a, b| distances[*a].total_cmp(&distances[*b]))
        };
        let of = |c: usize| {
            let row = candidates.rows[c];
            let numbers = |m: &Mat<f64>| m.row(row).iter().copied().collect::<Vec<f64>>();
            (numbers(&self.parts.latent_mean), numbers(&self.parts.latent_variance))
        };
        let Some(first) = nearest(&|_| true) else { return vec![(vec![0.0; q], vec![1.0; q])] };
        let at = of(first);
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let limit = NEAR * (distances[first] + self.parts.noise * observed.len() as f64) + COARSE * mean;
        let second = nearest(&|c| distances[c] <= limit && self.apart(&of(c).0, &at.0) > APART)
            .filter(|c| *c != first);
        std::iter::once(at.clone()).chain(second.map(of)).collect()
    }
}

impl Candidates {
    fn of(model: &LatentProcess) -> Self {
        let n = model.parts.latent_mean.nrows();
        let rows: Vec<usize> = (0..n).step_by(n.div_ceil(CANDIDATES).max(1)).collect();
        let places = Mat::from_fn(rows.len(), model.parts.kernel.n_latent(), |i, k| {
            model.parts.latent_mean[(rows[i], k)]
        });
        let cells = model.mean_at(places.as_ref()).transpose().to_owned();
        Self { rows, cells }
    }
}

/// Climbs to where steps gain nothing any more.
fn climbed(hill: &dyn Hill, start: Vec<f64>) -> (Vec<f64>, f64) {
    let mut newton = QuasiNewton::remembering(MEMORY);
    let (mut x, (mut value, mut gradient)) = (start.clone(), hill.climb(&start));
    let mut idle = 0;
    newton.observe(&x, &gradient);
    for _ in 0..STEPS {
        let scale = hill.scale(&x);
        let times = |g: &[f64]| -> Vec<f64> { g.iter().zip(&scale).map(|(g, d)| g * d).collect() };
        let proposed = newton.propose(times);
        let plain = times(&gradient);
        let mut direction: Vec<f64> =
            proposed.map_or(plain.clone(), |next| next.iter().zip(&x).map(|(a, b)| a - b).collect());
        let dot = |a: &[f64]| -> f64 { a.iter().zip(&gradient).map(|(a, g)| a * g).sum() };
        if dot(&direction) <= 0.0 {
            direction = plain;
        }
        let largest = direction.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let first = if largest > LARGEST { LARGEST / largest } else { 1.0 };
        let slope = dot(&direction);
        let step = halved(first, HALVINGS, |length| {
            let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (there, gradient) = hill.climb(&next);
            let enough = there.is_finite() && there > value + LEAST_SHARE * length * slope;
            Ok(enough.then_some((next, there, gradient)))
        });
        let Ok(Some((next, there, slopes))) = step else { break };
        let gain = there - value;
        (x, value, gradient) = (next, there, slopes);
        newton.observe(&x, &gradient);
        idle = if gain <= GAIN * (1.0 + value.abs()) { idle + 1 } else { 0 };
        if idle >= 3 {
            break;
        }
    }
    (x, value)
}

/// The bound on one row as a function of μ and log S.
struct SpreadHill<'a> {
    model: &'a LatentProcess,
    one: Vec<f64>, // β W y (M)
    two: Vec<f64>, // −β/2 Σ (wwᵀ − R), pairs (P)
    zero: f64,     // −β/2 · observed cells
    constant: f64,
}

impl<'a> SpreadHill<'a> {
    fn new(model: &'a LatentProcess, observed: &[usize], y: &[f64], curvature: &[f64]) -> Self {
        let beta = 1.0 / model.parts.noise;
        let weight = |i: usize| -> f64 {
            observed.iter().zip(y).map(|(j, y)| model.parts.weights[(i, *j)] * y).sum::<f64>() * beta
        };
        let cells = observed.len() as f64;
        let squares: f64 = y.iter().map(|y| y * y).sum();
        Self {
            model,
            one: (0..model.n_inducing()).map(weight).collect(),
            two: curvature.iter().map(|c| -0.5 * beta * c).collect(),
            zero: -0.5 * beta * cells,
            constant: 0.5 * cells * (beta / std::f64::consts::TAU).ln() - 0.5 * beta * squares,
        }
    }

    fn search(&self, (mean, variance): (Vec<f64>, Vec<f64>)) -> Place {
        let q = mean.len();
        let start = mean.into_iter().chain(variance.iter().map(|v| v.max(1e-12).ln())).collect();
        let (x, bound) = climbed(self, start);
        Place { mean: x[..q].to_vec(), variance: x[q..].iter().map(|v| v.exp()).collect(), bound }
    }
}

impl Hill for SpreadHill<'_> {
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let q = x.len() / 2;
        let (mean, variance): (&[f64], Vec<f64>) = (&x[..q], x[q..].iter().map(|v| v.exp()).collect());
        let psi = self.model.psi.of(mean, &variance);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let divergence: f64 = (0..q).map(|k| 0.5 * (mean[k].powi(2) + variance[k] - x[q + k] - 1.0)).sum();
        let value = self.constant
            + dot(&self.one, psi.one.col_as_slice(0))
            + dot(&self.two, psi.two.col_as_slice(0))
            + self.zero * psi.zero[0]
            - divergence;
        let mut by_mean: Vec<f64> = mean.iter().map(|m| -m).collect();
        let mut by_variance: Vec<f64> = variance.iter().map(|s| 0.5 * (1.0 / s - 1.0)).collect();
        let column = |of: &[f64]| Mat::from_fn(of.len(), 1, |i, _| of[i]);
        let by = RowAdjoint {
            zero: &[self.zero],
            one: column(&self.one),
            two: column(&self.two),
            mean: &mut by_mean,
            variance: &mut by_variance,
        };
        self.model.psi.pull_back(&psi, (mean, &variance), by, None);
        by_mean.extend(by_variance.iter().zip(&variance).map(|(d, s)| d * s));
        (value, by_mean)
    }

    fn scale(&self, x: &[f64]) -> Vec<f64> {
        let q = x.len() / 2;
        x[q..].iter().map(|v| v.exp()).chain((0..q).map(|_| 2.0)).collect()
    }
}

/// The log density of one row at a point and of the point itself, as a function of the point.
struct PointHill<'a> {
    model: &'a LatentProcess,
    observed: &'a [usize],
    y: Vec<f64>,
    reduction: Mat<f64>, // (M × M)
}

impl<'a> PointHill<'a> {
    fn new(model: &'a LatentProcess, observed: &'a [usize], y: Vec<f64>) -> Self {
        Self { model, observed, y, reduction: model.reduction(0) }
    }

    fn search(&self, (start, _): (Vec<f64>, Vec<f64>)) -> Place {
        let (mean, bound) = climbed(self, start);
        let (_, jacobian, total) = self.slopes(&mean);
        // Laplace's approximation by Gauss and Newton: S⁻¹ = 1 + Σⱼ (∂mⱼ/∂x)² / (v + σ²)
        let steep = |k: usize| self.observed.iter().map(|j| jacobian[(k, *j)].powi(2)).sum::<f64>();
        let variance = (0..mean.len()).map(|k| 1.0 / (1.0 + steep(k) / total)).collect();
        Place { mean, variance, bound }
    }

    /// k(x, Z) + bias and its derivative by x (q × M), in one.
    fn kernel(&self, x: &[f64]) -> (Vec<f64>, Mat<f64>) {
        let parts = &self.model.parts;
        let (m, q, alpha) = (parts.inducing.nrows(), x.len(), parts.kernel.relevance());
        let plain = parts.kernel.matrix(MatRef::from_row_major_slice(x, 1, q), parts.inducing.as_ref());
        let slope = Mat::from_fn(q, m, |k, i| match parts.kernel.form() {
            LatentForm::Rbf => -alpha[k] * (x[k] - parts.inducing[(i, k)]) * plain[(0, i)],
            LatentForm::Linear => alpha[k] * parts.inducing[(i, k)],
        });
        ((0..m).map(|i| plain[(0, i)] + parts.bias).collect(), slope)
    }

    /// Slopes of the variance (q), of the means (q × p), and the variance with the noise.
    fn slopes(&self, x: &[f64]) -> (Vec<f64>, Mat<f64>, f64) {
        let parts = &self.model.parts;
        let (values, slope) = self.kernel(x);
        let m = values.len();
        let column = Mat::from_fn(m, 1, |i, _| values[i]);
        let reduced = product(self.reduction.as_ref(), column.as_ref());
        let own = parts.kernel.own(x) + parts.bias;
        let less: f64 = (0..m).map(|i| values[i] * reduced[(i, 0)]).sum();
        let along = product(slope.as_ref(), reduced.as_ref());
        let linear = parts.kernel.form() == LatentForm::Linear;
        let own_slope = |k: usize| if linear { 2.0 * parts.kernel.relevance()[k] * x[k] } else { 0.0 };
        let by_variance = (0..x.len()).map(|k| own_slope(k) - 2.0 * along[(k, 0)]).collect();
        (by_variance, product(slope.as_ref(), parts.weights.as_ref()), (own - less).max(0.0) + parts.noise)
    }
}

impl Hill for PointHill<'_> {
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let (by_variance, jacobian, total) = self.slopes(x);
        let mean = self.model.mean_at(MatRef::from_row_major_slice(x, 1, x.len()));
        let rest: Vec<f64> = self.observed.iter().zip(&self.y).map(|(j, y)| y - mean[(0, *j)]).collect();
        let squares: f64 = rest.iter().map(|r| r * r).sum();
        let cells = rest.len() as f64;
        let prior: f64 = x.iter().map(|x| -0.5 * (x * x + std::f64::consts::TAU.ln())).sum();
        let value = prior - 0.5 * (squares / total + cells * (std::f64::consts::TAU * total).ln());
        let by_total = 0.5 * (squares / (total * total) - cells / total);
        let slope = |k: usize| {
            let along: f64 = self.observed.iter().zip(&rest).map(|(j, r)| jacobian[(k, *j)] * r).sum();
            -x[k] + along / total + by_total * by_variance[k]
        };
        (value, (0..x.len()).map(slope).collect())
    }

    fn scale(&self, x: &[f64]) -> Vec<f64> {
        vec![0.1; x.len()]
    }
}

/// Rows of numbers below each other (n × width).
pub(super) fn table(rows: &[Vec<f64>], width: usize) -> Mat<f64> {
    let parts: Vec<Mat<f64>> =
        rows.chunks(256).map(|some| Mat::from_fn(some.len(), width, |i, j| some[i][j])).collect();
    stack(width, parts.iter().map(Mat::as_ref))
}

//! Where new rows lie: the position that explains their observed cells best, by a local search from the rows of the
//! fit that are nearest to them.

use super::LatentProcess;
use super::hill::{Place, PointHill, SpreadHill};
use crate::data::{Chunk, RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::linalg::{Mat, packed, packed_len, product};
use crate::model::impute::dense;
use crate::model::questions::{room_for, stack};
use crate::parallel;

/// Rows of the fit that a search may begin at.
const CANDIDATES: usize = 2000;
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

impl LatentProcess {
    /// The positions of rows.
    ///
    /// Rows begin at the row of the fit whose reconstruction is nearest in the observed cells, and at a second one far from
    /// it in the latent space where that is nearly as near. A row without any observed cell has the prior, N(0, I).
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn place(&self, rows: &dyn RowSource) -> Result<Placement> {
        let q = self.parts.kernel.n_latent();
        room_for("the table of coordinates", rows, 2 * q)?;
        let parts = self.placed_chunks(rows)?;
        let all: Vec<&(Place, bool)> = parts.iter().flatten().collect();
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
            Ok(parallel::map(places.len(), answer))
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
        let shared = Shared::of(self);
        let one = |i: usize| {
            check()?;
            let row: Vec<f64> = cells.row(i).iter().copied().collect();
            Ok(self.place_row(&row, &shared))
        };
        parallel::try_map(cells.nrows(), one)
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

    fn place_row(&self, row: &[f64], shared: &Shared) -> (Place, bool) {
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
                let hill = PointHill::new(self, &observed, y.clone(), &shared.reduction);
                self.starts(&observed, &y).into_iter().map(|at| hill.search(at)).collect()
            }
            false => {
                let own = (observed.len() < row.len()).then(|| self.curvature(&observed));
                let hill = SpreadHill::new(self, &observed, &y, own.as_deref().unwrap_or(&shared.curvature));
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

/// What the searches for all rows share.
struct Shared {
    curvature: Vec<f64>, // of complete rows
    reduction: Mat<f64>, // (M × M), of points
}

impl Shared {
    fn of(model: &LatentProcess) -> Self {
        let all: Vec<usize> = (0..model.parts.mean.len()).collect();
        let reduction = if model.has_points() { model.reduction(0) } else { Mat::new() };
        Self { curvature: model.curvature(&all), reduction }
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

/// Rows of numbers below each other (n × width).
pub(super) fn table(rows: &[Vec<f64>], width: usize) -> Mat<f64> {
    let parts: Vec<Mat<f64>> =
        rows.chunks(256).map(|some| Mat::from_fn(some.len(), width, |i, j| some[i][j])).collect();
    stack(width, parts.iter().map(Mat::as_ref))
}

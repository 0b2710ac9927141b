//! The missing cells of rows: their distribution, means, deviations and draws, given the cells that were
//! observed.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::LinearGaussian;
use super::groups::Group;
use super::inference::{Inference, LISTED_ROWS, ListedRow, Purpose};
use super::posterior::{PatternRoots, posterior_of};
use super::questions::{in_columns, latent_of, room_for, stack};
use super::sample::stretch;
use crate::control::Control;
use crate::data::{Chunk, Observed, Real, RowSource, Rows, map_chunks, with_view};
use crate::error::{Error, Result};
use crate::expectation::Student;
use crate::linalg::{Mat, MatRef, product};
use crate::memory;
use crate::parallel;

/// Words of the generator that belong to one draw of one row: more than any row needs.
const DRAW_WORDS: u128 = 1 << 32;
/// Streams of rows with missing values are above this; those below are for whole samples.
const DRAW_STREAMS: u64 = 1 << 63;

/// Distribution of the missing cells of a row given the others.
#[derive(Debug, Clone)]
pub struct Conditional {
    /// Which features are missing.
    pub features: Vec<usize>,
    /// Their conditional mean.
    pub mean: Vec<f64>,
    /// Their conditional covariance.
    pub covariance: Mat<f64>,
}

/// Rows with missing values imputed.
#[derive(Debug, Clone)]
pub struct Imputed {
    /// The rows (n × p): observed cells as they were, conditional means where values are missing.
    pub cells: Mat<f64>,
    /// Conditional standard deviation of each missing cell (n × p), noise included; 0 where a cell was
    /// observed.
    pub std: Mat<f64>,
}

/// What is expected of some cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Predicted {
    /// Conditional means.
    pub mean: Vec<f64>,
    /// Standard deviations of a new observation, noise included; 0 for a cell that was observed.
    pub std: Vec<f64>,
}

impl LinearGaussian {
    /// Distribution of the missing cells (NaN) of one row given the observed ones.
    ///
    /// # Errors
    /// When the row has another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn conditional(&self, row: &[f64]) -> Result<Conditional> {
        self.conditional_with(row, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`conditional`](Self::conditional), and [`Error::Interrupted`].
    pub fn conditional_with(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        let rows = Rows::from(MatRef::from_row_major_slice(row, 1, row.len()));
        let inference = Inference::new(self, Purpose::Posterior);
        let posterior = posterior_of(&inference, &rows.source().chunk(0)?, &|| control.check())?;
        let features: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_nan()).collect();
        memory::check("the covariance of the missing cells", &[2, features.len(), features.len()])?;
        let part = self.marginal(&features)?;
        let (w, q) = (part.loadings(), self.n_latent());
        let along = match &posterior.roots {
            Some(roots) => product(w.as_ref(), MatRef::from_column_major_slice(roots.of(0, q), q, q)),
            None => Mat::zeros(0, q), // no cell is missing
        };
        let mut covariance = in_columns(features.len(), control, |columns| {
            Ok(product(along.as_ref(), along.as_ref().subrows(columns.start, columns.len()).transpose()))
        })?;
        (0..features.len()).for_each(|j| covariance[(j, j)] += part.noise().of(j));
        let mean = part.decode(posterior.mean.as_ref())?.row(0).iter().copied().collect();
        Ok(Conditional { features, mean, covariance })
    }

    /// The rows (n × p) with each missing cell filled by its conditional mean $\mu_j + w_j^\top E(z)$;
    /// observed cells stay as they are, to the last bit. An empty row becomes the mean.
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn impute<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let (rows, inference) = (rows.into(), Inference::new(self, Purpose::Posterior));
        room_for("the table of filled rows", rows.source(), self.n_features())?;
        let parts = map_chunks(rows.source(), |chunk| {
            let z = latent_of(&inference, chunk)?;
            let mut cells = dense(chunk);
            self.fill_means(&mut cells, &z);
            Ok(cells)
        })?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
    }

    /// As [`impute`](Self::impute), with the standard deviation of each missing cell given the row's observed
    /// cells, $\sqrt{\sigma_j^2 + w_j^\top \mathrm{Cov}(z)\, w_j}$.
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn impute_with_std<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Imputed> {
        let (rows, p) = (rows.into(), self.n_features());
        room_for("the table of filled rows", rows.source(), p.saturating_mul(2))?;
        let inference = Inference::new(self, Purpose::Posterior);
        let parts = map_chunks(rows.source(), |chunk| {
            let posterior = posterior_of(&inference, chunk, &|| rows.source().check())?;
            let mut cells = dense(chunk);
            let std = self.deviations(&cells, posterior.roots.as_ref());
            self.fill_means(&mut cells, &posterior.mean);
            Ok((cells, std))
        })?;
        let cells = stack(p, parts.iter().map(|(cells, _)| cells.as_ref()));
        Ok(Imputed { cells, std: stack(p, parts.iter().map(|(_, std)| std.as_ref())) })
    }

    /// Draws of the missing cells given the observed ones (multiple imputation): one n × p matrix per draw,
    /// in which observed cells stay as they are.
    ///
    /// z is drawn from the row's posterior and noise is added, which is exactly the conditional distribution
    /// of the missing cells, with its covariances. Draw d of row r depends on the seed, d, r and the row
    /// alone: not on how rows are cut into chunks, which draws are asked for or how many threads there are.
    ///
    /// # Errors
    /// When rows have another number of features or an infinite cell, or the answer does not fit in memory.
    pub fn draw_missing<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        draws: Range<usize>,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        self.draw_missing_student(rows, draws, seed, Student::NORMAL)
    }

    /// The same of the t distribution: u is drawn given the observed cells, and divides the variances of the
    /// missing ones.
    pub(super) fn draw_missing_student<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        draws: Range<usize>,
        seed: u64,
        student: Student,
    ) -> Result<Vec<Mat<f64>>> {
        let (rows, inference, p) =
            (rows.into(), Inference::new(self, Purpose::PosteriorRowByRow), self.n_features());
        room_for("the table of draws", rows.source(), draws.len().saturating_mul(p))?;
        let parts = map_chunks(rows.source(), |chunk| {
            memory::check("the table of draws", &[draws.len(), chunk.nrows(), p])?;
            let first = dense(chunk);
            let copy = |_| rows.source().check().map(|()| first.clone());
            let mut all = draws.clone().map(copy).collect::<Result<Vec<_>>>()?;
            inference.for_each_group(chunk, &mut |g| {
                if g.is_complete() {
                    return Ok(());
                }
                let of = |row, d| generator(seed, chunk.first_row() + row, draws.start + d);
                self.fill_draws(&mut all, &g, student, &|| rows.source().check(), of)
            })?;
            Ok(all)
        })?;
        let stacked = |d: usize| {
            rows.source().check()?;
            Ok(stack(self.n_features(), parts.iter().map(|all| all[d].as_ref())))
        };
        (0..draws.len()).map(stacked).collect()
    }

    /// Mean and standard deviation of named cells (row, feature), in the order given, each given the cells
    /// that were observed in its row. A cell that was observed itself is known: its value, with deviation 0.
    ///
    /// The work is in proportion to the observed cells of the rows that are asked for.
    ///
    /// # Errors
    /// When a row or feature does not exist or the rows have another number of features.
    pub fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        self.predict_student(rows, cells, Student::NORMAL)
    }

    /// The same of the t distribution.
    pub(super) fn predict_student(
        &self,
        rows: &Observed<'_>,
        cells: &[(usize, usize)],
        student: Student,
    ) -> Result<Predicted> {
        if rows.n_features() != self.n_features() {
            return Err(Error::FeatureCount { expected: self.n_features(), found: rows.n_features() });
        }
        check_below("the row of a cell", cells.iter().map(|c| c.0), rows.nrows())?;
        check_below("the feature of a cell", cells.iter().map(|c| c.1), self.n_features())?;
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|i| cells[*i].0);
        // Cells of the same row side by side, and some rows at a time.
        let of_rows: Vec<&[usize]> = order.chunk_by(|a, b| cells[*a].0 == cells[*b].0).collect();
        let inference = Inference::new(self, Purpose::PosteriorRowByRow);
        let some: Vec<&[&[usize]]> = of_rows.chunks(LISTED_ROWS).collect();
        let parts = parallel::try_map(some.len(), |i| {
            self.predict_rows((&inference, student), rows, cells, some[i])
        })?;
        let mut out = Predicted { mean: vec![0.0; cells.len()], std: vec![0.0; cells.len()] };
        for part in parts {
            part.into_iter().for_each(|(i, mean, std)| (out.mean[i], out.std[i]) = (mean, std));
        }
        Ok(out)
    }

    /// Index, mean and deviation of the cells that are asked for, one list for each row.
    fn predict_rows(
        &self,
        (inference, student): (&Inference<'_>, Student),
        rows: &Observed<'_>,
        cells: &[(usize, usize)],
        of_rows: &[&[usize]],
    ) -> Result<Vec<(usize, f64, f64)>> {
        let all = rows.rows(0..rows.nrows());
        let row = |at: usize| cells[of_rows[at][0]].0;
        let mut out = Vec::new();
        // Answers name a row by its place in `of_rows`.
        let listed: Vec<ListedRow> =
            (0..of_rows.len()).map(|place| ListedRow { at: row(place), row: place }).collect();
        inference.for_each_listed_group(all, &listed, &mut |g: Group<'_>| {
            let (z, (roots, pattern)) = (g.latent(), g.roots()?);
            let stretch = stretches(&g, student)?;
            for (i, place) in g.rows().iter().enumerate() {
                let (columns, values) = all.row(row(*place));
                for &cell in of_rows[*place] {
                    let j = cells[cell].1;
                    let known = columns.binary_search_by(|c| (*c as usize).cmp(&j));
                    out.push(match known {
                        Ok(at) => (cell, values[at], 0.0),
                        Err(_) => {
                            let root = roots.col_as_slice(pattern[i]);
                            let feature = self.feature(j);
                            (cell, feature.mean(z.col_as_slice(i)), feature.deviation(root) * stretch[i])
                        }
                    });
                }
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Fills the missing cells of rows (n × p) with their means, for posterior means z (n × q).
    pub(super) fn fill_means(&self, cells: &mut Mat<f64>, z: &Mat<f64>) {
        let z = z.transpose().to_owned(); // those of a row side by side
        for j in 0..cells.ncols() {
            let feature = self.feature(j);
            for (i, cell) in cells.col_as_slice_mut(j).iter_mut().enumerate() {
                if cell.is_nan() {
                    *cell = feature.mean(z.col_as_slice(i));
                }
            }
        }
    }

    /// Standard deviation of each missing cell (n × p), for roots of the posterior covariances of the rows.
    fn deviations(&self, cells: &Mat<f64>, roots: Option<&PatternRoots>) -> Mat<f64> {
        let mut std = Mat::zeros(cells.nrows(), cells.ncols());
        let Some(roots) = roots else { return std };
        for j in 0..cells.ncols() {
            let feature = self.feature(j);
            let column = std.col_as_slice_mut(j).iter_mut().zip(cells.col_as_slice(j)).enumerate();
            for (i, (std, _)) in column.filter(|(_, (_, cell))| cell.is_nan()) {
                *std = feature.deviation(roots.of(i, self.n_latent()));
            }
        }
        std
    }

    /// Fills the missing cells of a group's rows, one draw to each matrix.
    fn fill_draws(
        &self,
        all: &mut [Mat<f64>],
        group: &Group<'_>,
        student: Student,
        check: &dyn Fn() -> Result<()>,
        generator: impl Fn(usize, usize) -> ChaCha8Rng,
    ) -> Result<()> {
        let Some(first) = all.first() else { return Ok(()) };
        let missing: Vec<Vec<usize>> = group.rows().iter().map(|row| missing_features(first, *row)).collect();
        let given = given_cells(group, student)?;
        for (draw, cells) in all.iter_mut().enumerate() {
            check()?;
            let mut generators: Vec<ChaCha8Rng> =
                group.rows().iter().map(|row| generator(*row, draw)).collect();
            let mut normals = Mat::zeros(self.n_latent(), generators.len());
            let mut stretched = vec![1.0; generators.len()];
            for (i, rng) in generators.iter_mut().enumerate() {
                stretched[i] = given[i].map_or(1.0, |(shape, rate)| stretch(shape, rate, rng));
                normals.col_as_slice_mut(i).iter_mut().for_each(|u| *u = normal(rng) * stretched[i]);
            }
            let z = group.draw(&normals)?;
            for (i, rng) in generators.iter_mut().enumerate() {
                for &j in &missing[i] {
                    let noise = self.noise().of(j).sqrt() * normal(rng) * stretched[i];
                    cells[(group.rows()[i], j)] = self.feature(j).mean(z.col_as_slice(i)) + noise;
                }
            }
        }
        Ok(())
    }

    fn feature(&self, j: usize) -> Feature {
        let w = self.loadings().row(j).iter().copied().collect();
        Feature { mean: self.mean()[j], w, noise: self.noise().of(j) }
    }
}

/// √((ν + δ)/(ν + k − 2)) of each row: by how much deviations of its missing cells exceed those of the normal.
fn stretches(group: &Group<'_>, student: Student) -> Result<Vec<f64>> {
    if student == Student::NORMAL {
        return Ok(vec![1.0; group.rows().len()]); // there may be no density to ask for
    }
    let rows = group.mahalanobis()?.into_iter().zip(group.observed());
    Ok(rows.map(|(distance, cells)| student.spread(cells, distance).sqrt()).collect())
}

/// ν + k and ν + δ of each row: twice the shape and the rate of u given its cells; none for the normal.
fn given_cells(group: &Group<'_>, student: Student) -> Result<Vec<Option<(f64, f64)>>> {
    if student == Student::NORMAL {
        return Ok(vec![None; group.rows().len()]);
    }
    let (nu, rows) = (student.dof(), group.mahalanobis_row_by_row()?.into_iter().zip(group.observed()));
    Ok(rows.map(|(distance, cells)| Some((nu + cells as f64, nu + distance))).collect())
}

/// What a model says of one feature.
struct Feature {
    mean: f64,
    w: Vec<f64>, // (q)
    noise: f64,
}

impl Feature {
    /// μ + wᵀz.
    fn mean(&self, z: &[f64]) -> f64 {
        self.mean + self.w.iter().zip(z).map(|(w, z)| w * z).sum::<f64>()
    }

    /// √(noise + wᵀ Cov(z) w), for a root R of Cov(z) = RRᵀ column after column: ‖Rᵀw‖² is the spread.
    fn deviation(&self, root: &[f64]) -> f64 {
        let along = |column: &[f64]| column.iter().zip(&self.w).map(|(r, w)| r * w).sum::<f64>();
        let spread: f64 = root.chunks_exact(self.w.len().max(1)).map(|column| along(column).powi(2)).sum();
        (self.noise + spread).sqrt()
    }
}

/// The features that a row does not have.
fn missing_features(cells: &Mat<f64>, row: usize) -> Vec<usize> {
    (0..cells.ncols()).filter(|j| cells[(row, *j)].is_nan()).collect()
}

pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The random numbers of one draw of one row: a stream for each row, a stretch of it for each draw.
pub(super) fn generator(seed: u64, row: usize, draw: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(DRAW_STREAMS | row as u64);
    rng.set_word_pos(draw as u128 * DRAW_WORDS);
    rng
}

/// A copy in double precision, NaN where a cell is missing.
pub(super) fn dense(chunk: &Chunk<'_>) -> Mat<f64> {
    with_view!(chunk.cells(), v => Mat::from_fn(v.nrows(), v.ncols(), |i, j| Real::to_f64(v[(i, j)])))
}

pub(super) fn check_below(
    name: &'static str,
    mut indices: impl Iterator<Item = usize>,
    below: usize,
) -> Result<()> {
    match indices.find(|i| *i >= below) {
        None => Ok(()),
        Some(i) => {
            let value = format!("{i} (counted from 0) of {below}");
            Err(Error::Parameter { name, value, allowed: "one that exists" })
        }
    }
}

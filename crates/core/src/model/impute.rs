//! The missing cells of rows: mean, deviation and draws of each, given the cells that were observed.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::LinearGaussian;
use super::kernel::{Group, Kernel, for_each_group};
use super::questions::stack;
use crate::data::{Chunk, Observed, RowSource, Rows, map_chunks, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};

/// Words of the generator that belong to one draw of one row: more than any row needs.
const DRAW_WORDS: u128 = 1 << 32;
/// Streams of rows with holes are above this; those below are for whole samples.
const DRAW_STREAMS: u64 = 1 << 63;

/// Rows whose holes are filled.
#[derive(Debug, Clone)]
pub struct Imputed {
    /// The rows (n × p): observed cells as they were, conditional means in the holes.
    pub cells: Mat<f64>,
    /// Conditional standard deviation of each hole (n × p), noise included; 0 where a cell was observed.
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
    /// The rows (n × p) with each hole filled by its conditional mean $\mu_j + w_j^\top E(z)$; observed cells stay as
    /// they are, to the last bit. An empty row becomes the mean.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn impute<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Mat<f64>> {
        let parts = map_chunks(rows.into().source(), |chunk| {
            let mut cells = dense(chunk);
            for_each_group(self, chunk, |g| {
                self.fill_means(&mut cells, &g);
                Ok(())
            })?;
            Ok(cells)
        })?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
    }

    /// As [`impute`](Self::impute), with the standard deviation of each hole given the row's observed cells,
    /// $\sqrt{\sigma_j^2 + w_j^\top \mathrm{Cov}(z)\, w_j}$.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn impute_with_std<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Imputed> {
        let p = self.n_features();
        let parts = map_chunks(rows.into().source(), |chunk| {
            let mut cells = dense(chunk);
            let mut std = Mat::zeros(chunk.nrows(), p);
            for_each_group(self, chunk, |g| {
                self.fill_deviations(&mut std, &cells, &g);
                self.fill_means(&mut cells, &g);
                Ok(())
            })?;
            Ok((cells, std))
        })?;
        let cells = stack(p, parts.iter().map(|(cells, _)| cells.as_ref()));
        Ok(Imputed { cells, std: stack(p, parts.iter().map(|(_, std)| std.as_ref())) })
    }

    /// Draws of the missing cells given the observed ones (multiple imputation): one n × p matrix per draw, in which
    /// observed cells stay as they are.
    ///
    /// z is drawn from the row's posterior and noise is added, which is exactly the conditional distribution of the
    /// missing cells, with its covariances. Draw d of row r depends on the seed, d, r and the row alone: not on how
    /// rows are cut into chunks, which draws are asked for or how many threads there are.
    ///
    /// # Errors
    /// When the rows have another number of features or an infinite cell.
    pub fn draw_missing<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        draws: Range<usize>,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        let parts = map_chunks(rows.into().source(), |chunk| {
            let mut all = vec![dense(chunk); draws.len()];
            for_each_group(self, chunk, |g| self.fill_draws(&mut all, &g, chunk.first_row(), &draws, seed))?;
            Ok(all)
        })?;
        let stacked = |d: usize| stack(self.n_features(), parts.iter().map(|all| all[d].as_ref()));
        Ok((0..draws.len()).map(stacked).collect())
    }

    /// Mean and standard deviation of named cells (row, feature), in the order given, each given the cells that were
    /// observed in its row. A cell that was observed itself is known: its value, with deviation 0.
    ///
    /// The work is in proportion to the observed cells of the rows that are asked for.
    ///
    /// # Errors
    /// When a row or feature does not exist or the rows have another number of features.
    pub fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        if rows.n_features() != self.n_features() {
            return Err(Error::FeatureCount { expected: self.n_features(), found: rows.n_features() });
        }
        check_below("the row of a cell", cells.iter().map(|c| c.0), rows.nrows())?;
        check_below("the feature of a cell", cells.iter().map(|c| c.1), self.n_features())?;
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|i| cells[*i].0);
        let same_row: Vec<&[usize]> = order.chunk_by(|a, b| cells[*a].0 == cells[*b].0).collect();
        let answers: Vec<Result<Vec<(f64, f64)>>> =
            same_row.par_iter().map(|asked| self.predict_row(rows, cells, asked)).collect();
        let mut out = Predicted { mean: vec![0.0; cells.len()], std: vec![0.0; cells.len()] };
        for (asked, answer) in same_row.iter().zip(answers) {
            asked.iter().zip(answer?).for_each(|(i, (mean, std))| (out.mean[*i], out.std[*i]) = (mean, std));
        }
        Ok(out)
    }

    /// Mean and deviation of the cells `asked`, all of one row.
    fn predict_row(
        &self,
        rows: &Observed<'_>,
        cells: &[(usize, usize)],
        asked: &[usize],
    ) -> Result<Vec<(f64, f64)>> {
        let row = cells[asked[0]].0;
        let (columns, values) = rows.rows(row..row + 1).row(0);
        let features: Vec<usize> = columns.iter().map(|c| *c as usize).collect();
        let kernel = Kernel::new(&self.marginal(&features)?)?;
        let e = kernel.deviations(values);
        let z = kernel.latent(kernel.factor(), e.as_ref());
        let covariance = kernel.factor().covariance();
        let answer = |i: &usize| {
            let j = cells[*i].1;
            match features.binary_search(&j) {
                Ok(at) => (values[at], 0.0),
                Err(_) => (self.mean_of(j, z.as_ref(), 0), self.deviation_of(j, covariance.as_ref())),
            }
        };
        Ok(asked.iter().map(answer).collect())
    }

    fn fill_means(&self, cells: &mut Mat<f64>, group: &Group<'_>) {
        if group.kernel.n_features() == self.n_features() {
            return;
        }
        let z = group.kernel.latent(group.kernel.factor(), group.e);
        for j in holes(cells, group.rows[0]) {
            for (i, row) in group.rows.iter().enumerate() {
                cells[(*row, j)] = self.mean_of(j, z.as_ref(), i);
            }
        }
    }

    fn fill_deviations(&self, std: &mut Mat<f64>, cells: &Mat<f64>, group: &Group<'_>) {
        if group.kernel.n_features() == self.n_features() {
            return;
        }
        let covariance = group.kernel.factor().covariance();
        for j in holes(cells, group.rows[0]) {
            let deviation = self.deviation_of(j, covariance.as_ref());
            group.rows.iter().for_each(|row| std[(*row, j)] = deviation);
        }
    }

    fn fill_draws(
        &self,
        all: &mut [Mat<f64>],
        group: &Group<'_>,
        first_row: usize,
        draws: &Range<usize>,
        seed: u64,
    ) -> Result<()> {
        if group.kernel.n_features() == self.n_features() || all.is_empty() {
            return Ok(());
        }
        let root = group.kernel.factor().root()?;
        let missing = holes(&all[0], group.rows[0]);
        for (i, row) in group.rows.iter().enumerate() {
            // Each row by itself: a product's order of additions depends on how many rows there are.
            let mean = group.kernel.latent(group.kernel.factor(), group.e.subrows(i, 1));
            for (cells, draw) in all.iter_mut().zip(draws.clone()) {
                let mut rng = generator(seed, first_row + row, draw);
                let z = latent_draw(&mean, &root, &mut rng);
                for &j in &missing {
                    let noise = self.noise().of(j).sqrt() * normal(&mut rng);
                    cells[(*row, j)] = self.mean_of(j, z.as_ref(), 0) + noise;
                }
            }
        }
        Ok(())
    }

    /// μ + wᵀz of a feature, for column i of z (q × rows).
    fn mean_of(&self, feature: usize, z: MatRef<'_, f64>, i: usize) -> f64 {
        let terms = self.loadings().row(feature).iter().zip(z.col(i).iter());
        self.mean()[feature] + terms.map(|(w, z)| w * z).sum::<f64>()
    }

    /// √(noise + wᵀ Cov(z) w) of a feature.
    fn deviation_of(&self, feature: usize, covariance: MatRef<'_, f64>) -> f64 {
        let w = self.loadings().row(feature);
        let along = |c: usize| covariance.col(c).iter().zip(w.iter()).map(|(c, w)| c * w).sum::<f64>();
        let spread: f64 = w.iter().enumerate().map(|(c, w)| w * along(c)).sum();
        (self.noise().of(feature) + spread.max(0.0)).sqrt()
    }
}

/// mean + root · standard normal (q × 1).
fn latent_draw(mean: &Mat<f64>, root: &Mat<f64>, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut z = mean.clone();
    for column in root.col_iter() {
        let u = normal(rng);
        z.col_as_slice_mut(0).iter_mut().zip(column.iter()).for_each(|(z, r)| *z += r * u);
    }
    z
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The random numbers of one draw of one row: a stream for each row, a stretch of it for each draw.
fn generator(seed: u64, row: usize, draw: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(DRAW_STREAMS | row as u64);
    rng.set_word_pos(draw as u128 * DRAW_WORDS);
    rng
}

/// The features that a row does not have.
fn holes(cells: &Mat<f64>, row: usize) -> Vec<usize> {
    (0..cells.ncols()).filter(|j| cells[(row, *j)].is_nan()).collect()
}

/// A copy in double precision, NaN in the holes.
fn dense(chunk: &Chunk<'_>) -> Mat<f64> {
    with_view!(chunk.cells(), v => Mat::from_fn(v.nrows(), v.ncols(), |i, j| crate::data::Real::to_f64(v[(i, j)])))
}

fn check_below(name: &'static str, mut indices: impl Iterator<Item = usize>, below: usize) -> Result<()> {
    match indices.find(|i| *i >= below) {
        None => Ok(()),
        Some(i) => {
            let value = format!("{i} (counted from 0) of {below}");
            Err(Error::Parameter { name, value, allowed: "one that exists" })
        }
    }
}

//! Missing cells of rows under a mixture: each component predicts them, and its responsibility given the
//! observed cells says how much that counts.
//!
//! With $m_k$ and $C_k$ the conditional mean and covariance under component k, the mean is
//! $m = \sum_k r_k m_k$ and the covariance $\sum_k r_k (C_k + (m_k - m)(m_k - m)^\top)$.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};

use super::Mixture;
use crate::control::Control;
use crate::data::{Chunk, Observed, RowSource, Rows, map_chunks};
use crate::error::Result;
use crate::linalg::{Mat, MatRef};
use crate::memory;
use crate::model::questions::{room_for, stack};
use crate::model::{Conditional, Fill, Imputed, LinearGaussian, Predicted};

/// Turns the seed of draws into that of the choice of their components.
pub(super) const CHOICES: u64 = 0x6d69_7874_7572_6573;

impl Mixture {
    /// Σ r f over the components, for tables f of the rows of a chunk (rows × p).
    fn averaged(
        &self,
        chunk: &Chunk<'_>,
        f: impl Fn(&LinearGaussian) -> Result<Mat<f64>>,
    ) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let r = self.memberships_of(chunk)?.probabilities;
        let tables = self.components.iter().map(f).collect::<Result<Vec<_>>>()?;
        let mean = |i: usize, j: usize| {
            let (first, same) = (tables[0][(i, j)], tables.iter().all(|t| t[(i, j)] == tables[0][(i, j)]));
            // Observed cells stay as they are, to the last bit.
            if same { first } else { (0..tables.len()).map(|k| r[(i, k)] * tables[k][(i, j)]).sum() }
        };
        let averaged = Mat::from_fn(chunk.nrows(), chunk.ncols(), mean);
        Ok((averaged, tables))
    }

    fn impute_chunk(&self, chunk: &Chunk<'_>) -> Result<Mat<f64>> {
        Ok(self.averaged(chunk, |component| component.impute(chunk))?.0)
    }

    fn impute_chunk_with_std(&self, chunk: &Chunk<'_>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (n, p) = (chunk.nrows(), chunk.ncols());
        let r = self.memberships_of(chunk)?.probabilities;
        let (cells, means) = self.averaged(chunk, |component| component.impute(chunk))?;
        let mut variance: Mat<f64> = Mat::zeros(n, p);
        for (k, component) in self.components.iter().enumerate() {
            let std = component.impute_with_std(chunk)?.std;
            let added = |i: usize, j: usize| {
                r[(i, k)] * (std[(i, j)].powi(2) + (means[k][(i, j)] - cells[(i, j)]).powi(2))
            };
            variance += Mat::from_fn(n, p, added);
        }
        Ok((cells, Mat::from_fn(n, p, |i, j| variance[(i, j)].sqrt())))
    }

    /// The component that a row of these responsibilities is drawn from.
    fn chosen(&self, probabilities: &Mat<f64>, row: usize, u: f64) -> usize {
        let mut left = u;
        let last = self.n_components() - 1;
        (0..last)
            .find(|k| {
                left -= probabilities[(row, *k)];
                left < 0.0
            })
            .unwrap_or(last)
    }

    fn draw_chunk(
        &self,
        (rows, chunk): (&dyn RowSource, &Chunk<'_>),
        draws: &Range<usize>,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        let r = self.memberships_of(chunk)?.probabilities;
        let of_component = self.components.iter().map(|c| {
            rows.check()?;
            c.draw_missing(chunk, draws.clone(), seed)
        });
        let of_component = of_component.collect::<Result<Vec<_>>>()?;
        let mut out = of_component[0].clone();
        for (d, draw) in draws.clone().enumerate() {
            rows.check()?;
            for row in 0..chunk.nrows() {
                let u = uniform(seed ^ CHOICES, chunk.first_row() + row, draw);
                let from = &of_component[self.chosen(&r, row, u)][d];
                (0..chunk.ncols()).for_each(|j| out[d][(row, j)] = from[(row, j)]);
            }
        }
        Ok(out)
    }
}

/// The random number that chooses for one draw of one row.
pub(super) fn uniform(seed: u64, row: usize, draw: usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(row as u64);
    rng.set_word_pos(draw as u128 * 16);
    StandardUniform.sample(&mut rng)
}

impl Fill for Mixture {
    fn impute(&self, rows: &dyn RowSource) -> Result<Mat<f64>> {
        room_for("the table of filled rows", rows, self.n_features())?;
        let parts = map_chunks(rows, |chunk| self.impute_chunk(chunk))?;
        Ok(stack(self.n_features(), parts.iter().map(Mat::as_ref)))
    }

    fn impute_with_std(&self, rows: &dyn RowSource) -> Result<Imputed> {
        let p = self.n_features();
        room_for("the table of filled rows", rows, p.saturating_mul(2))?;
        let parts = map_chunks(rows, |chunk| self.impute_chunk_with_std(chunk))?;
        let cells = stack(p, parts.iter().map(|(cells, _)| cells.as_ref()));
        Ok(Imputed { cells, std: stack(p, parts.iter().map(|(_, std)| std.as_ref())) })
    }

    fn draw_missing(&self, rows: &dyn RowSource, draws: Range<usize>, seed: u64) -> Result<Vec<Mat<f64>>> {
        let p = self.n_features();
        room_for("the table of draws", rows, draws.len().saturating_mul(p))?;
        let parts = map_chunks(rows, |chunk| {
            let groups = self.n_components();
            memory::check("the table of draws", &[groups, draws.len(), chunk.nrows(), p])?;
            self.draw_chunk((rows, chunk), &draws, seed)
        })?;
        let stacked = |d: usize| stack(p, parts.iter().map(|all| all[d].as_ref()));
        Ok((0..draws.len()).map(stacked).collect())
    }

    fn conditional(&self, row: &[f64], control: &Control<'_>) -> Result<Conditional> {
        let rows = Rows::from(MatRef::from_row_major_slice(row, 1, row.len()));
        let chunk = rows.source().chunk(0)?;
        let r = self.memberships_of(&chunk)?.probabilities;
        let parts = self.components.iter().map(|c| c.conditional_with(row, control));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let (features, m) = (parts[0].features.clone(), parts[0].features.len());
        let mean = |j: usize| parts.iter().enumerate().map(|(k, part)| r[(0, k)] * part.mean[j]).sum();
        let mean: Vec<f64> = (0..m).map(mean).collect();
        let spread = |i: usize, j: usize| {
            let of = |(k, part): (usize, &Conditional)| {
                let between = (part.mean[i] - mean[i]) * (part.mean[j] - mean[j]);
                r[(0, k)] * (part.covariance[(i, j)] + between)
            };
            parts.iter().enumerate().map(of).sum()
        };
        let covariance = Mat::from_fn(m, m, spread);
        Ok(Conditional { features, mean, covariance })
    }

    fn predict(&self, rows: &Observed<'_>, cells: &[(usize, usize)]) -> Result<Predicted> {
        let parts = self.components.iter().map(|c| c.predict(rows, cells)).collect::<Result<Vec<_>>>()?;
        let r = map_chunks(rows, |chunk| Ok(self.memberships_of(chunk)?.probabilities))?;
        let r = stack(self.n_components(), r.iter().map(Mat::as_ref));
        let mut found = Predicted::default();
        for (at, (row, _)) in cells.iter().enumerate() {
            let average = |f: &dyn Fn(&Predicted) -> f64| {
                parts.iter().enumerate().map(|(k, part)| r[(*row, k)] * f(part)).sum::<f64>()
            };
            let mean = match parts.iter().all(|part| part.mean[at] == parts[0].mean[at]) {
                true => parts[0].mean[at],
                false => average(&|part| part.mean[at]),
            };
            let variance = average(&|part| part.std[at].powi(2) + (part.mean[at] - mean).powi(2));
            found.mean.push(mean);
            found.std.push(variance.sqrt());
        }
        Ok(found)
    }
}

//! Cross-validation in one pass: moments of each fold, from which all others' and every number of components
//! follow.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::fold_scores::FoldScores;
use crate::algorithm::resolution::whole;
use crate::control::Control;
use crate::data::{Chunk, mixed};
use crate::error::Result;
use crate::evidence::{Accumulator, Moments, Travel};
use crate::linalg::{Mat, product};
use crate::parallel;
use crate::spectrum::criteria::Eigenvalues;

/// Moments of rows that were dealt to folds by a fixed shuffle: which fold a row is in depends on its number
/// and the seed alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Folds {
    parts: Vec<Moments>,
    seed: u64,
}

impl Folds {
    pub(super) fn empty(n_features: usize, folds: usize, seed: u64) -> Self {
        Self { parts: (0..folds).map(|_| Moments::empty(n_features)).collect(), seed }
    }

    /// Of some of the features.
    pub(super) fn of_features(&self, features: &[usize]) -> Self {
        Self { parts: self.parts.iter().map(|part| part.of_features(features)).collect(), ..*self }
    }

    fn fold_of(&self, row: usize) -> usize {
        fold_of(row, self.parts.len(), self.seed)
    }

    /// Of all rows.
    pub(super) fn all(&self) -> Result<Moments> {
        self.without(self.parts.len())
    }

    fn without(&self, fold: usize) -> Result<Moments> {
        let mut sum = Moments::empty(self.parts[0].n_features());
        let others = self.parts.iter().enumerate().filter(|(k, _)| *k != fold);
        others.map(|(_, part)| part).try_for_each(|part| sum.merge(part))?;
        Ok(sum)
    }

    /// Mean log density of held-out rows for q = 0 ..= max, one list per fold; NaN where the others'
    /// covariance leaves no noise.
    pub(super) fn held_out(&self, max: usize, control: &Control<'_>) -> Result<FoldScores> {
        let used: Vec<usize> = (0..self.parts.len()).filter(|k| self.parts[*k].weight() > 0.0).collect();
        let scores = parallel::try_map(used.len(), |i| {
            control.check()?;
            held_out(&self.without(used[i])?, &self.parts[used[i]], max)
        });
        scores.map(FoldScores)
    }
}

/// The fold of a row.
pub(super) fn fold_of(row: usize, folds: usize, seed: u64) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "a remainder")]
    let fold = (mixed(row as u64, seed) % folds as u64) as usize;
    fold
}

impl Accumulator for Folds {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::numbered("folds"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let mut rows = vec![Vec::new(); self.parts.len()];
        (0..chunk.nrows()).for_each(|i| rows[self.fold_of(chunk.first_row() + i)].push(i));
        for (part, rows) in self.parts.iter_mut().zip(&rows).filter(|(_, rows)| !rows.is_empty()) {
            part.update(&chunk.select(rows)?)
                .map_err(|e| chunk.explain_not_finite(OPERATION).unwrap_or(e))?;
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.parts.iter_mut().zip(&other.parts).try_for_each(|(a, b)| a.merge(b))
    }
}

const OPERATION: &str = "choosing the number of components";

/// Of the rows of `test` under PPCA fitted to `train`: with eigenpairs λ, u and the scatter T of the test
/// rows about the mean of the others, −½ (p ln 2π + Σ ln λ + (p − q) ln σ² + (Σ uᵀTu/λ + (tr T − Σ
/// uᵀTu)/σ²)/n).
fn held_out(train: &Moments, test: &Moments, max: usize) -> Result<Vec<f64>> {
    let (p, n) = (train.n_features(), test.weight());
    let eigen = whole(train)?;
    let values = Eigenvalues::new(eigen.values.clone(), train.weight());
    let scatter = about(test, train);
    let image = product(scatter.as_ref(), eigen.vectors.as_ref());
    let along = |k: usize| -> f64 {
        image.col(k).iter().zip(eigen.vectors.col(k).iter()).map(|(a, b)| a * b).sum::<f64>() / n
    };
    // Variance along each direction, and what it and all after it hold: no difference from the whole.
    let variances: Vec<f64> = (0..p).map(along).collect();
    let mut left = vec![0.0; p + 1];
    (0..p).rev().for_each(|k| left[k] = left[k + 1] + variances[k]);
    let (mut logs, mut distances) = (0.0, 0.0);
    let mut out = Vec::with_capacity(max + 1);
    for q in 0..=max {
        let noise = values.noise(q);
        let rest = (p - q) as f64 * noise.ln() + left[q] / noise;
        out.push(if noise > 0.0 { -0.5 * (p as f64 * TAU.ln() + logs + distances + rest) } else { f64::NAN });
        let value = values.values()[q];
        (logs, distances) = (logs + value.ln(), distances + variances[q] / value);
    }
    Ok(out)
}

/// Σ w (x − c)(x − c)ᵀ about the mean c of others (p × p).
fn about(moments: &Moments, others: &Moments) -> Mat<f64> {
    let (n, covariance) = (moments.weight(), moments.covariance());
    let d = moments.offset_from(others);
    Mat::from_fn(d.len(), d.len(), |i, j| n * (covariance[(i, j)] + d[i] * d[j]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ppca;
    use crate::data::{Block, Cells, Rows, Table};
    use crate::evidence::gather;

    /// Moments of folds against fits to the other rows and the density of each held-out row.
    #[test]
    fn held_out_rows_one_by_one() {
        let (n, p, max) = (60, 5, 3);
        let cell =
            |i: usize, j: usize| ((i * (j + 3)) as f64).sin() * (6 - j) as f64 + ((7 * i + j) as f64).cos();
        let x = Mat::from_fn(n, p, cell);
        let table = Table::new(Cells::F64(Block::View(x.as_ref())));
        let folds = gather(&table, || Folds::empty(p, 4, 9), &Control::new()).unwrap();
        let FoldScores(found) = folds.held_out(max, &Control::new()).unwrap();
        assert_eq!(found.len(), 4);
        for (fold, found) in found.iter().enumerate() {
            let (test, train): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| folds.fold_of(*i) == fold);
            let pick = |rows: &[usize]| Mat::from_fn(rows.len(), p, |i, j| x[(rows[i], j)]);
            let (test, train) = (pick(&test), pick(&train));
            for (q, found) in found.iter().enumerate().skip(1) {
                let model = Ppca::new(q).fit(Rows::from(&train)).unwrap().model;
                let densities = model.log_density(Rows::from(&test)).unwrap();
                let mean = densities.iter().sum::<f64>() / densities.len() as f64;
                assert!((found - mean).abs() < 1e-11 * mean.abs(), "{fold} {q}: {found} {mean}");
            }
        }
    }
}

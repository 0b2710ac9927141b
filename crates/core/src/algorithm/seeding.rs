//! Where Lloyd's method starts: rows drawn far from each other (greedy k-means++), or any rows.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::lloyd::Problem;
use crate::blocks::Nearest;
use crate::data::{RowSource, Table, map_chunks};
use crate::error::Result;
use crate::linalg::Mat;
use std::sync::Arc;

/// How the first centres are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seeding {
    /// One after the other, each the best of 2 + ⌊ln K⌋ rows that are drawn with probability proportional to
    /// weight times squared distance to the centres so far: greedy k-means++ \[AV07\].
    #[default]
    #[serde(rename = "k-means++")]
    PlusPlus,
    /// Any rows, with probability proportional to weight.
    Random,
}

/// Rows to choose each centre from.
pub(crate) fn candidates(centres: usize) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
    let logarithm = (centres.max(1) as f64).ln() as usize;
    2 + logarithm
}

/// At most K different rows of a sample as centres (p × K); fewer where there are not so many.
pub(crate) fn draw(
    seeding: Seeding,
    centres: usize,
    sample: &Table<'_>,
    problem: &Problem,
    rng: &mut ChaCha8Rng,
) -> Result<Mat<f64>> {
    let weights = weights(sample);
    let tries = match seeding {
        Seeding::PlusPlus => candidates(centres),
        Seeding::Random => 1,
    };
    let mut nearest = vec![f64::INFINITY; weights.len()]; // squared distance to the centres so far
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < centres {
        let chance = |i: usize| match (seeding, chosen.is_empty()) {
            (_, true) => weights[i],
            (Seeding::PlusPlus, _) => weights[i] * nearest[i],
            (Seeding::Random, _) if nearest[i] > 0.0 => weights[i],
            _ => 0.0,
        };
        let tries = if chosen.is_empty() { 1 } else { tries };
        let Some(rows) = draw_rows(weights.len(), chance, tries, rng) else { break };
        let distances = distances(sample, problem, &rows)?;
        let left = |c: usize| {
            let each = nearest.iter().zip(&weights).enumerate();
            each.map(|(i, (d, w))| w * d.min(distances[(i, c)])).sum::<f64>()
        };
        let left: Vec<f64> = (0..rows.len()).map(left).collect();
        let best = (0..rows.len()).fold(0, |best, c| if left[c] < left[best] { c } else { best });
        nearest.iter_mut().enumerate().for_each(|(i, d)| *d = d.min(distances[(i, best)]));
        chosen.push(rows[best]);
    }
    Ok(columns(sample, &chosen))
}

/// The weight of each row.
pub(crate) fn weights(sample: &Table<'_>) -> Vec<f64> {
    sample.weights().map_or_else(|| vec![1.0; sample.shape().0], <[f64]>::to_vec)
}

/// Rows with probability proportional to `chance`; `None` when no row has any.
pub(crate) fn draw_rows(
    rows: usize,
    chance: impl Fn(usize) -> f64,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<usize>> {
    let mut sum = 0.0;
    let upto: Vec<f64> = (0..rows)
        .map(|i| {
            sum += chance(i);
            sum
        })
        .collect();
    let last = upto.iter().rposition(|s| *s > 0.0)?;
    let pick = |_| {
        let place = rng.random::<f64>() * sum;
        // The first whose sum is above: one without a chance never is.
        upto.partition_point(|s| *s <= place).min(last)
    };
    let picked: Vec<usize> = (0..count).map(pick).collect();
    Some(picked)
}

/// Squared distances of all rows to some of them (n × rows).
pub(crate) fn distances(sample: &Table<'_>, problem: &Problem, rows: &[usize]) -> Result<Mat<f64>> {
    let nearest = Nearest::of(Arc::clone(&problem.frame), columns(sample, rows));
    let parts = map_chunks(sample, |chunk| nearest.distances(chunk))?;
    let mut all = Mat::zeros(sample.n_rows().unwrap_or(0), rows.len());
    let mut first = 0;
    for part in parts {
        all.subrows_mut(first, part.nrows()).copy_from(&part);
        first += part.nrows();
    }
    Ok(all)
}

/// Rows as centres (p × rows); the mean, which is 0 in the frame, where a cell is missing.
pub(crate) fn columns(sample: &Table<'_>, rows: &[usize]) -> Mat<f64> {
    let cell = |j: usize, k: usize| sample.cells().get(rows[k], j);
    Mat::from_fn(sample.shape().1, rows.len(), |j, k| if cell(j, k).is_nan() { 0.0 } else { cell(j, k) })
}

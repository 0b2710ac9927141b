//! How many clusters: the gap statistic with its rule of one standard error.

use std::ops::RangeInclusive;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fit::{Look, best_start, cheap, failures};
use super::report::{KTable, KTableRow};
use super::{KMeans, Start};
use crate::algorithm::Limits;
use crate::algorithm::seeding::Seeding;
use crate::algorithm::swaps::Search;
use crate::control::Control;
use crate::data::{Block, Cells, Order, Table};
use crate::error::Result;
use crate::linalg::{Mat, MatRef, symmetric_eigen};
use crate::parallel;

/// Rows that the choice rests on.
const ROWS: usize = 2000;
/// Sets of rows without clusters that are drawn.
const REFERENCES: usize = 20;
/// Features up to which reference rows fill a box along the principal axes.
const MOST_AXES: usize = 300;
/// The first stream of the generator that references use.
const STREAM: u64 = 1 << 42;
const LIMITS: Limits = Limits { tolerance: 1e-8, iterations: 100 };

/// The number of clusters by the gap statistic \[TWH01\], and the table that it rests on.
///
/// $\text{Gap}(K) = E[\ln W^*_K] - \ln W_K$ compares the inertia W of K clusters with that of rows that fill the
/// box of the data along its principal axes evenly. The choice is the smallest K whose gap is within one standard
/// error of the largest \[DF02\]. The rule of \[TWH01\] compares with the next K only, and stops at 1 where three
/// clusters are as far from each other, because two explain them no better than one.
pub(super) fn choose(
    family: &KMeans,
    look: &Look<'_>,
    range: RangeInclusive<usize>,
    control: &Control<'_>,
) -> Result<(usize, KTable)> {
    let sample = look.sample(ROWS, family.run.seed, control)?;
    let axes = BoxOfRows::around(&sample)?;
    let references: Vec<Table<'static>> =
        (0..REFERENCES).map(|b| axes.draw(&sample, family.run.seed, b)).collect::<Result<_>>()?;
    let mut rows: Vec<KTableRow> = Vec::new();
    for clusters in range.clone() {
        control.check()?;
        let inertia = inertia(family, look, &sample, clusters, true, control)?;
        let logs = parallel::try_map(references.len(), |b| {
            Ok(self::inertia(family, look, &references[b], clusters, false, control)?.ln())
        })?;
        rows.push(row(clusters, look.problem.frame.square(inertia), inertia, &logs));
        if inertia <= 0.0 {
            break;
        }
    }
    Ok(decide(rows, *range.end()))
}

/// The smallest number whose gap is within one standard error of the largest.
fn decide(rows: Vec<KTableRow>, most: usize) -> (usize, KTable) {
    let exact = rows.iter().find(|row| row.gap.is_none()).map(|row| row.clusters);
    let higher = |best: &KTableRow, row: &KTableRow| row.gap > best.gap;
    let largest = rows.iter().fold(None, |best: Option<&KTableRow>, row| match best {
        Some(best) if !higher(best, row) => Some(best),
        _ => Some(row),
    });
    let near = |row: &&KTableRow| largest.is_some_and(|best| row.gap >= best.gap.map(|gap| gap - best.error));
    let (clusters, reason) = match (exact, rows.iter().find(near)) {
        (Some(k), _) => (k, "chosen because every row lies at its centre then"),
        (None, Some(row)) if row.clusters == most && rows.len() > 1 => {
            (most, "chosen by the gap statistic, which still grows: more may be better")
        }
        (None, Some(row)) => {
            (row.clusters, "chosen by the gap statistic: the fewest within one standard error of the largest")
        }
        (None, None) => (most, "the most that were allowed"),
    };
    (clusters, KTable { reason: reason.into(), rows })
}

fn row(clusters: usize, inertia: f64, inside: f64, logs: &[f64]) -> KTableRow {
    let b = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / b;
    let deviation = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / b).sqrt();
    let gap = Some(mean - inside.ln()).filter(|gap| gap.is_finite());
    let error = deviation * (1.0 + 1.0 / b).sqrt();
    KTableRow { clusters, inertia, gap, error: if error.is_finite() { error } else { 0.0 } }
}

/// The inertia of the best clusters, in the frame.
fn inertia(
    family: &KMeans,
    look: &Look<'_>,
    rows: &Table<'_>,
    clusters: usize,
    polish: bool,
    control: &Control<'_>,
) -> Result<f64> {
    let problem = look.of_sample(rows);
    let seeding = match family.start {
        Start::Drawn(seeding) => seeding,
        Start::Given(_) => Seeding::PlusPlus,
    };
    let failures = failures(rows, clusters);
    let row_moves = cheap(failures);
    let search = Search { sample: rows, problem: &problem, limits: LIMITS, failures, row_moves };
    let starts = if polish { family.starts } else { 2 };
    let family = family.clone().polish(polish && family.polish).starts(starts);
    Ok(best_start(&family, seeding, clusters, &search, &control.quiet())?.inertia)
}

/// The box that rows fill, along principal axes or, where cells are missing, along the features.
struct BoxOfRows {
    axes: Option<Mat<f64>>, // (p × p)
    range: Vec<(f64, f64)>, // least and most along each axis
}

impl BoxOfRows {
    fn around(sample: &Table<'_>) -> Result<Self> {
        let (n, p) = sample.shape();
        let x = Mat::from_fn(n, p, |i, j| sample.cells().get(i, j));
        let complete = x.col_iter().all(|c| c.iter().all(|x| !x.is_nan()));
        let axes = match complete && p <= MOST_AXES {
            true => Some(principal_axes(x.as_ref(), sample.weights())?),
            false => None,
        };
        let along = axes.as_ref().map_or_else(|| x.clone(), |axes| &x * axes);
        let ends = |j: usize| {
            let seen = along.col(j).iter().copied().filter(|x| !x.is_nan());
            seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
        };
        let known = |(a, b): (f64, f64)| if a <= b { (a, b) } else { (0.0, 0.0) };
        Ok(Self { axes, range: (0..p).map(|j| known(ends(j))).collect() })
    }

    /// As many rows that fill the box evenly, with the weights and the missing cells of the sample.
    fn draw(&self, sample: &Table<'_>, seed: u64, number: usize) -> Result<Table<'static>> {
        let (nrows, ncols) = sample.shape();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM + number as u64);
        let mut cells = Vec::with_capacity(nrows * ncols);
        for i in 0..nrows {
            let z: Vec<f64> = self.range.iter().map(|(a, b)| a + (b - a) * rng.random::<f64>()).collect();
            let cell = |j: usize| match &self.axes {
                None => z[j],
                Some(axes) => axes.row(j).iter().zip(&z).map(|(u, z)| u * z).sum(),
            };
            let seen = |j: &usize| !sample.cells().get(i, *j).is_nan();
            cells.extend((0..ncols).map(|j| if seen(&j) { cell(j) } else { f64::NAN }));
        }
        let table = Table::new(Cells::F64(Block::Owned { cells, nrows, ncols, order: Order::Rows }));
        match sample.weights() {
            Some(weights) => table.with_weights(weights.to_vec()),
            None => Ok(table),
        }
    }
}

/// Eigenvectors of the covariance about 0, the mean in the frame (p × p).
fn principal_axes(x: MatRef<'_, f64>, weights: Option<&[f64]>) -> Result<Mat<f64>> {
    let root = |i: usize| weights.map_or(1.0, |w| w[i].sqrt());
    let scaled = Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] * root(i));
    Ok(symmetric_eigen((scaled.transpose() * &scaled).as_ref())?.vectors)
}

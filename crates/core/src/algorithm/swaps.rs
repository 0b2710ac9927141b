//! Local search for k-means: a centre is taken away and put where rows lie far from theirs, as long as that helps.
//!
//! Lloyd's method ends at the optimum next to its start. A swap leaves it \[KMNPSW04; LS19\]: of some rows drawn
//! with probability proportional to their share of the inertia, and all centres that could make room, the pair
//! that leaves the least inertia is tried, and kept if Lloyd's method ends lower from there. For one row all K
//! pairs cost one look at each row: with d₁, d₂ the distances to the nearest and second nearest centre, taking
//! centre k away leaves $\sum_i w_i \min(d_i, d_{1i})$ + what the rows of k lose,
//! $\sum_{i \in k} w_i (\min(d_i, d_{2i}) - \min(d_i, d_{1i}))$.

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::lloyd::{Lloyd, Problem, Settled};
use super::row_moves::Members;
use super::seeding::{distances, draw_rows, weights};
use super::{Guard, Iteration, Journey, Limits, Objective, Passes, Step, drive};
use crate::blocks::Nearest;
use crate::control::Control;
use crate::data::{Table, map_chunks};
use crate::error::Result;
use crate::linalg::Mat;

/// Rows that are drawn for a trial, in turn: the best pair of many would be proposed again and again where it
/// fails, so less is chosen and more left to chance. 0 is one row and any centre.
const DRAWN: [usize; 3] = [3, 1, 0];
/// Passes of Lloyd's method after a swap, before and after a first look at where it leads.
const FIRST: Limits = Limits { tolerance: 1e-6, iterations: 4 };
const REST: Limits = Limits { tolerance: 1e-6, iterations: 12 };
/// A trial goes on when so many times the gain of its last pass would make it the best.
const HOPE: f64 = 8.0;
/// Gains below this share are rounding.
const GAIN: f64 = 1e-9;

/// Rows of a sample, and Lloyd's method on them.
pub(crate) struct Search<'a> {
    pub(crate) sample: &'a Table<'a>,
    pub(crate) problem: &'a Problem,
    pub(crate) limits: Limits,
    /// Trials in a row that must fail before swaps end.
    pub(crate) failures: usize,
    /// Whether moves of single rows are tried: of many rows each gains next to nothing.
    pub(crate) row_moves: bool,
}

impl Search<'_> {
    /// Lloyd's method from centres in the frame (p × K).
    pub(crate) fn settle(
        &self,
        centres: Mat<f64>,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(Settled, Journey)> {
        let lloyd = Lloyd::new(self.problem, centres);
        drive(Passes::over(self.sample, lloyd), limits, &control.quiet())
    }
}

/// The search. It has converged when so many trials in a row have failed as the tolerance says.
pub(crate) struct Swaps<'a> {
    search: &'a Search<'a>,
    best: Settled,
    rows: Vec<TwoDistances>,
    weights: Vec<f64>,
    rng: ChaCha8Rng,
    failures: usize,
    swaps: usize,
}

/// The two nearest centres of a row, and its squared distances to them.
struct TwoDistances {
    centre: usize,
    next: usize,
    first: f64,
    second: f64,
}

impl<'a> Swaps<'a> {
    /// From where Lloyd's method has come to rest.
    pub(crate) fn new(search: &'a Search<'a>, best: Settled, rng: ChaCha8Rng) -> Result<Self> {
        let rows = two_distances(search, &best)?;
        Ok(Self { search, best, rows, weights: weights(search.sample), rng, failures: 0, swaps: 0 })
    }

    /// Centres to go on from; `None` when every row lies at its centre. First a row that is better off in another
    /// cluster, then swaps.
    fn propose(&mut self) -> Result<Option<Mat<f64>>> {
        if let Some(moved) = self.row_moved() {
            return Ok(Some(moved));
        }
        let swap = self.swap()?;
        Ok(swap.map(|(row, room)| {
            let mut centres = self.best.centres.clone();
            centres.col_mut(room).copy_from(row.col(0));
            centres
        }))
    }

    /// The centres after the best move of a single row, looked for once from where Lloyd's method has come to rest.
    fn row_moved(&self) -> Option<Mat<f64>> {
        if self.failures > 0 || !self.search.row_moves {
            return None;
        }
        let labels = self.rows.iter().map(|row| row.centre);
        let members = Members::new(self.search.sample, &self.weights, &self.best.centres, labels);
        members.best_move(self.rows.iter().map(|row| (row.centre, row.next)), self.best.inertia)
    }

    /// The row to put a centre at and the centre that makes room for it; `None` when every row lies at its
    /// centre.
    fn swap(&mut self) -> Result<Option<(Mat<f64>, usize)>> {
        let (rows, weights) = (&self.rows, &self.weights);
        let count = DRAWN[self.failures % DRAWN.len()];
        let drawn = draw_rows(rows.len(), |i| weights[i] * rows[i].first, count.max(1), &mut self.rng);
        let Some(drawn) = drawn else { return Ok(None) };
        if count == 0 {
            let centre = self.rng.random_range(0..self.best.centres.ncols());
            return Ok(Some((self.filled(drawn[0]), centre)));
        }
        let to_drawn = distances(self.search.sample, self.search.problem, &drawn)?;
        let k = self.best.centres.ncols();
        let left = |c: usize| {
            let (mut all, mut lost) = (0.0, vec![0.0; k]);
            for (i, row) in rows.iter().enumerate() {
                let d = to_drawn[(i, c)];
                all += weights[i] * d.min(row.first);
                lost[row.centre] += weights[i] * (d.min(row.second) - d.min(row.first));
            }
            let cheapest = (0..k).fold(0, |best, k| if lost[k] < lost[best] { k } else { best });
            (all + lost[cheapest], cheapest)
        };
        let each: Vec<(f64, usize)> = (0..drawn.len()).map(left).collect();
        let best = (0..drawn.len()).fold(0, |best, c| if each[c].0 < each[best].0 { c } else { best });
        Ok(Some((self.filled(drawn[best]), each[best].1)))
    }

    /// A row as a centre (p × 1), with the cells of the centre that it has now where its own are missing.
    fn filled(&self, row: usize) -> Mat<f64> {
        let (sample, now) = (self.search.sample, self.rows[row].centre);
        let cell = |j: usize, _| sample.cells().get(row, j);
        let centre = &self.best.centres;
        Mat::from_fn(
            centre.nrows(),
            1,
            |j, k| if cell(j, k).is_nan() { centre[(j, now)] } else { cell(j, k) },
        )
    }

    /// Where Lloyd's method comes to rest from there, if that is better.
    fn tried(&self, centres: Mat<f64>, control: &Control<'_>) -> Result<Option<Settled>> {
        let goal = self.best.inertia * (1.0 - GAIN);
        let (tried, journey) = self.search.settle(centres, FIRST, control)?;
        let last = match journey.trace.as_slice() {
            [.., a, b] => a - b,
            _ => 0.0,
        };
        if tried.inertia - HOPE * last >= goal {
            return Ok(None);
        }
        let (tried, _) = self.search.settle(tried.centres, REST, control)?;
        if tried.inertia >= goal {
            return Ok(None);
        }
        Ok(Some(self.search.settle(tried.centres, self.search.limits, control)?.0))
    }

    fn keep(&mut self, better: Settled) -> Result<()> {
        self.rows = two_distances(self.search, &better)?;
        self.best = better;
        self.failures = 0;
        self.swaps += 1;
        Ok(())
    }
}

impl Iteration for Swaps<'_> {
    type Output = (Settled, usize);

    fn objective(&self) -> Objective {
        Objective { name: "inertia", guard: Guard::NeverRises }
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.failures as f64 >= tolerance || self.best.centres.ncols() < 2
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let Some(centres) = self.propose()? else { return Ok(None) };
        let before = self.best.inertia;
        self.failures += 1;
        if let Some(better) = self.tried(centres, control)? {
            self.keep(better)?;
        }
        Ok(Some(Step { objective: self.best.inertia, change: before - self.best.inertia }))
    }

    fn finish(self) -> Result<(Settled, usize)> {
        Ok((self.best, self.swaps))
    }
}

fn two_distances(search: &Search<'_>, best: &Settled) -> Result<Vec<TwoDistances>> {
    let nearest = Nearest::of(Arc::clone(&search.problem.frame), best.centres.clone());
    let parts = map_chunks(search.sample, |chunk| {
        let all = nearest.distances(chunk)?;
        Ok((0..all.nrows()).map(|i| two_least(all.row(i).iter().copied())).collect::<Vec<_>>())
    })?;
    Ok(parts.into_iter().flatten().collect())
}

fn two_least(distances: impl Iterator<Item = f64>) -> TwoDistances {
    let mut found = TwoDistances { centre: 0, next: 0, first: f64::INFINITY, second: f64::INFINITY };
    for (k, d) in distances.enumerate() {
        if d < found.first {
            found = TwoDistances { centre: k, next: found.centre, first: d, second: found.first };
        } else if d < found.second {
            (found.next, found.second) = (k, d);
        }
    }
    found
}

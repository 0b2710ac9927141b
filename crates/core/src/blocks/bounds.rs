//! Bounds on the distances of rows to centres that move little: rows that cannot change their centre are skipped.
//!
//! A row keeps its centre, a bound above the distance to it, and for each group of centres a bound below the
//! distances to all others \[H10; DZSMMHW15\]. When centres move, the bounds move by as much. A row whose upper
//! bound is below its lower bounds keeps its centre; of the others only the groups are looked at that may hold
//! a nearer one. One group is Hamerly's method, some are Yinyang's. Bounds are rounded outwards, and far more
//! than distances can err, so that the centre of each row is the one that all distances would give.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::nearest::{Nearest, Tile};

/// More than single precision rounds by, twice.
const MARGIN: f64 = 2.5e-7;
const LESS: f32 = 1.0 - 2.5e-7;
const MORE: f32 = 1.0 + 2.5e-7;
/// Numbers much below this are rounded by more than their share. The unit is the spread of the rows.
const TINY: f32 = 1e-30;

/// What is known of each row, by the first row of its chunk.
#[derive(Debug, Default)]
pub(crate) struct RowBounds {
    chunks: Mutex<HashMap<usize, Arc<Mutex<ChunkBounds>>>>,
}

/// How far centres have moved since the bounds were made.
#[derive(Debug)]
pub(crate) struct Drift {
    each: Vec<f32>,  // of each centre (K)
    group: Vec<f32>, // the largest of each group
    half: Vec<f32>,  // half the distance of each centre to the nearest other, 0 where rows lack cells (K)
}

/// The bounds of the rows of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkBounds {
    centre: Vec<u32>,
    upper: Vec<f32>,
    lower: Vec<f32>, // of each row, one for each group
}

/// A group that was looked at for a row: the two least distances and the nearest centre.
struct Looked {
    row: usize,
    group: usize,
    best: f64,
    second: f64,
    index: usize,
}

impl RowBounds {
    /// Bytes that a row takes.
    pub(crate) fn bytes_per_row(groups: usize) -> usize {
        4 * (2 + groups)
    }

    /// The bounds of a chunk, made when they are first asked for.
    pub(crate) fn chunk(&self, first_row: usize) -> Arc<Mutex<ChunkBounds>> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(chunks.entry(first_row).or_default())
    }
}

impl Drift {
    /// From centres to centres that took their place, in order; `complete` says that no row lacks a cell.
    pub(crate) fn between(before: &Nearest, after: &Nearest, complete: bool) -> Self {
        let (a, b) = (before.centres(), after.centres());
        let moved = |k: usize| {
            let squares = a.col(k).iter().zip(b.col(k).iter()).map(|(x, y)| (x - y) * (x - y));
            squares.sum::<f64>().sqrt()
        };
        let each: Vec<f64> = (0..after.count()).map(moved).collect();
        let half = match complete {
            true => after.half_apart().into_iter().map(below).collect(),
            false => vec![0.0; after.count()],
        };
        let group = after.groups().largest(&each);
        let above = |of: Vec<f64>| of.into_iter().map(above).collect();
        Self { group: above(group), each: above(each), half }
    }
}

impl ChunkBounds {
    /// The centres of some rows, which begin at row `first` of the chunk; `block` holds their cells in the
    /// frame, row after row. Without a drift, or before, every distance is computed.
    pub(crate) fn assign(
        &mut self,
        nearest: &Nearest,
        drift: Option<&Drift>,
        (first, block): (usize, &[f64]),
        out: &mut Vec<usize>,
    ) {
        let n = block.len() / nearest.frame().n_features().max(1);
        let groups = nearest.groups().count();
        match drift.filter(|_| self.centre.len() >= first + n) {
            Some(drift) => self.renew(nearest, drift, first, block),
            None => {
                self.centre.resize(first.max(self.centre.len()).max(first + n), 0);
                self.upper.resize(self.centre.len(), 0.0);
                self.lower.resize(self.centre.len() * groups, 0.0);
                self.fill(nearest, first, block);
            }
        }
        out.clear();
        out.extend(self.centre[first..first + n].iter().map(|k| *k as usize));
    }

    /// From all distances.
    fn fill(&mut self, nearest: &Nearest, first: usize, block: &[f64]) {
        let p = nearest.frame().n_features().max(1);
        let rows: Vec<usize> = (0..block.len() / p).collect();
        let groups = nearest.groups().count();
        let (mut tile, mut looked) = (Tile::new(p), Vec::with_capacity(Tile::ROWS * groups));
        for rows in rows.chunks(Tile::ROWS) {
            tile.fill(block, rows);
            looked.clear();
            let mut best = [(f64::INFINITY, 0); Tile::ROWS];
            for group in 0..groups {
                let found = nearest.two_nearest(&tile, group);
                for (lane, row) in rows.iter().enumerate() {
                    let (d, index) = (found.best[lane], found.index[lane]);
                    best[lane] = if (d, index) < best[lane] { (d, index) } else { best[lane] };
                    looked.push(Looked {
                        row: first + row,
                        group,
                        best: d,
                        second: found.second[lane],
                        index,
                    });
                }
            }
            for (lane, row) in rows.iter().enumerate() {
                self.put(first + row, best[lane]);
            }
            looked.iter().for_each(|found| self.bound(found, groups));
        }
    }

    /// From bounds, where they are enough.
    fn renew(&mut self, nearest: &Nearest, drift: &Drift, first: usize, block: &[f64]) {
        let p = nearest.frame().n_features().max(1);
        let groups = nearest.groups().count();
        let mut pending: Vec<Vec<usize>> = vec![Vec::new(); groups];
        let mut open: Vec<(usize, f64, usize)> = Vec::new(); // row, squared distance, centre before
        for i in 0..block.len() / p {
            let row = first + i;
            let centre = self.centre[row] as usize;
            let lower = &mut self.lower[row * groups..(row + 1) * groups];
            let limit = lowered(lower, &drift.group).max(drift.half[centre]);
            self.upper[row] = (self.upper[row] + drift.each[centre]) * MORE;
            if self.upper[row] + TINY < limit {
                continue;
            }
            let distance = nearest.distance(&block[i * p..(i + 1) * p], centre);
            self.upper[row] = above(distance.sqrt());
            if self.upper[row] + TINY < limit {
                continue;
            }
            open.push((i, distance, centre));
            let lower = &self.lower[row * groups..(row + 1) * groups];
            let near = (0..groups).filter(|g| lower[*g] <= self.upper[row] + TINY);
            near.for_each(|g| pending[g].push(open.len() - 1));
        }
        self.look(nearest, first, block, &open, &pending);
    }

    /// Compares open rows with the groups that may hold a nearer centre.
    fn look(
        &mut self,
        nearest: &Nearest,
        first: usize,
        block: &[f64],
        open: &[(usize, f64, usize)],
        pending: &[Vec<usize>],
    ) {
        let groups = nearest.groups();
        let mut tile = Tile::new(nearest.frame().n_features().max(1));
        let mut best: Vec<(f64, usize)> = open.iter().map(|(_, d, centre)| (*d, *centre)).collect();
        let mut looked = Vec::new();
        for (group, places) in pending.iter().enumerate() {
            for some in places.chunks(Tile::ROWS) {
                let mut rows = [0; Tile::ROWS];
                rows.iter_mut().zip(some).for_each(|(row, place)| *row = open[*place].0);
                tile.fill(block, &rows[..some.len()]);
                let found = nearest.two_nearest(&tile, group);
                for (lane, place) in some.iter().enumerate() {
                    let (d, index) = (found.best[lane], found.index[lane]);
                    best[*place] = if (d, index) < best[*place] { (d, index) } else { best[*place] };
                    let row = first + open[*place].0;
                    looked.push(Looked { row, group, best: d, second: found.second[lane], index });
                }
            }
        }
        let count = groups.count();
        for ((row, distance, before), best) in open.iter().zip(best) {
            self.put(first + row, best);
            if best.1 != *before {
                // The centre that it leaves is one of the others now.
                let lower = &mut self.lower[(first + row) * count + groups.of(*before)];
                *lower = lower.min(below(distance.sqrt()));
            }
        }
        looked.iter().for_each(|found| self.bound(found, count));
    }

    fn put(&mut self, row: usize, (distance, centre): (f64, usize)) {
        // There are never more centres than rows, whose numbers fit.
        self.centre[row] = u32::try_from(centre).unwrap_or(u32::MAX);
        self.upper[row] = above(distance.sqrt());
    }

    /// The lower bound of a group that was looked at: of all centres but the row's own.
    fn bound(&mut self, found: &Looked, groups: usize) {
        let own = self.centre[found.row] as usize == found.index;
        let other = if own { found.second } else { found.best };
        self.lower[found.row * groups + found.group] = below(other.sqrt());
    }
}

/// Lowers bounds by drifts; the least of them.
#[inline(always)]
fn lowered(lower: &mut [f32], drift: &[f32]) -> f32 {
    let mut least = f32::INFINITY;
    for (lower, drift) in lower.iter_mut().zip(drift) {
        *lower = (*lower - drift) * LESS; // of a negative bound the margin makes more, which is below 0 still
        least = if *lower < least { *lower } else { least };
    }
    least
}

/// A single-precision number that is not below.
#[allow(clippy::cast_possible_truncation, reason = "rounding is what the margin is for")]
fn above(x: f64) -> f32 {
    (x * (1.0 + MARGIN)) as f32
}

/// A single-precision number that is not above.
#[allow(clippy::cast_possible_truncation, reason = "rounding is what the margin is for")]
fn below(x: f64) -> f32 {
    (x * (1.0 - MARGIN)) as f32
}

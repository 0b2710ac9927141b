//! Squared distances of rows to given centres: what k-means repeats, and what its models are asked.
//!
//! A distance is a sum of squared differences, never ‖x‖² − 2x·c + ‖c‖², which cancels where rows are far from
//! 0. Eight rows stand side by side, one in each lane, and each adds up its features in their order: so the
//! last bit of a distance depends neither on the rows beside nor on how many centres there are. Measured on
//! 200 000 × 20 with 10 centres this costs no more time than one product per block with a search for the
//! least score after it, because both wait for memory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::serial::{Cells as SentCells, Serial};
use crate::linalg::{Mat, MatRef, power_of_two};

/// Rows that stand side by side.
const LANES: usize = 8;
/// Centres that share a load of the rows.
const TILE: usize = 4;
/// Rows of a block, which stay in a core's own cache.
pub(crate) const BLOCK_ROWS: usize = 256;

/// Where distances are measured: a cell x of feature j becomes (x − shiftⱼ)·factorⱼ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    shift: Vec<f64>,
    factor: Vec<f64>,
    unit: f64, // factor = 1 / (unit · what the model divides features by)
}

impl Frame {
    /// Around `shift`, with features divided by `scale` and by a power of two near `size`, so that no square
    /// leaves the range of numbers.
    pub(crate) fn new(shift: Vec<f64>, scale: &[f64], size: f64) -> Self {
        let unit = power_of_two(size);
        let factor = scale.iter().map(|d| 1.0 / unit / d).collect();
        Self { shift, factor, unit }
    }

    /// Around `shift`, with features divided by `scale` and all by one unit.
    pub(crate) fn in_unit(shift: Vec<f64>, scale: &[f64], unit: f64) -> Self {
        let factor = scale.iter().map(|d| 1.0 / unit / d).collect();
        Self { shift, factor, unit }
    }

    /// For centres given as rows (K × p): around `mean`, in units of how far they lie from it.
    pub(crate) fn around(centres: MatRef<'_, f64>, mean: &[f64], scale: &[f64]) -> Self {
        let cells = (0..centres.nrows()).flat_map(|k| (0..centres.ncols()).map(move |j| (k, j)));
        let far = cells.map(|(k, j)| ((centres[(k, j)] - mean[j]) / scale[j]).abs());
        Self::new(mean.to_vec(), scale, far.fold(0.0, f64::max))
    }

    /// From numbers that were kept.
    pub(crate) fn from_parts(shift: Vec<f64>, factor: Vec<f64>, unit: f64) -> Self {
        Self { shift, factor, unit }
    }

    /// Shift, factor and unit.
    pub(crate) fn parts(&self) -> (&[f64], &[f64], f64) {
        (&self.shift, &self.factor, self.unit)
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.shift.len()
    }

    /// A squared distance in the units of the divided features.
    pub(crate) fn square(&self, distance: f64) -> f64 {
        distance * self.unit * self.unit
    }

    /// A cell.
    pub(crate) fn inside(&self, feature: usize, x: f64) -> f64 {
        (x - self.shift[feature]) * self.factor[feature]
    }

    /// The way back.
    pub(crate) fn outside(&self, feature: usize, x: f64) -> f64 {
        self.shift[feature] + x / self.factor[feature]
    }

    /// Centres given as rows (K × p) as columns in the frame (p × K).
    pub(crate) fn columns(&self, centres: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(centres.ncols(), centres.nrows(), |j, k| self.inside(j, centres[(k, j)]))
    }

    /// The way back (K × p).
    pub(crate) fn rows(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        Mat::from_fn(columns.ncols(), columns.nrows(), |k, j| self.outside(j, columns[(j, k)]))
    }

    /// Calls `f` with blocks of rows in the frame (row after row; NaN is missing), and the first row of each.
    pub(crate) fn for_each_block(&self, cells: &Cells<'_>, mut f: impl FnMut(usize, &[f64])) {
        with_view!(cells, view => {
            let (n, p) = (view.nrows(), view.ncols());
            let mut block = vec![0.0; BLOCK_ROWS.min(n) * p];
            for first in (0..n).step_by(BLOCK_ROWS) {
                let len = BLOCK_ROWS.min(n - first);
                self.fill(&mut block[..len * p], view.subrows(first, len));
                f(first, &block[..len * p]);
            }
        });
    }

    fn fill<T: Real>(&self, block: &mut [f64], view: MatRef<'_, T>) {
        let arch = pulp::Arch::new();
        let (shift, factor) = (self.shift.as_slice(), self.factor.as_slice());
        for (i, out) in block.chunks_exact_mut(self.n_features().max(1)).enumerate() {
            let row = view.row(i);
            match row.try_as_row_major() {
                Some(row) => arch.dispatch(|| fill_row(out, row.as_slice(), shift, factor)),
                None => {
                    let cells = out.iter_mut().zip(row.iter()).zip(shift.iter().zip(factor));
                    cells.for_each(|((o, x), (s, f))| *o = (x.to_f64() - s) * f);
                }
            }
        }
    }
}

#[inline(always)]
fn fill_row<T: Real>(out: &mut [f64], row: &[T], shift: &[f64], factor: &[f64]) {
    for (((o, x), s), f) in out.iter_mut().zip(row).zip(shift).zip(factor) {
        *o = (x.to_f64() - s) * f;
    }
}

/// Centres whose distances are asked for together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CentreGroups {
    of: Vec<usize>,           // the group of each centre
    members: Vec<Vec<usize>>, // ascending
}

impl CentreGroups {
    /// All in one.
    pub(crate) fn one(centres: usize) -> Self {
        Self { of: vec![0; centres], members: vec![(0..centres).collect()] }
    }

    /// So many groups of centres (p × K) that lie near each other: each centre goes to the nearest of centres
    /// that are far from each other.
    pub(crate) fn near(centres: MatRef<'_, f64>, groups: usize) -> Self {
        let k = centres.ncols();
        let apart = |a: usize, b: usize| squared_difference(centres, a, b);
        let mut nearest = vec![(f64::INFINITY, 0); k]; // distance to its seed, and which seed
        let mut seed = 0;
        for group in 0..groups.clamp(1, k.max(1)) {
            (0..k).for_each(|c| {
                let d = apart(c, seed);
                if d < nearest[c].0 {
                    nearest[c] = (d, group);
                }
            });
            seed = (0..k).fold(0, |far, c| if nearest[c].0 > nearest[far].0 { c } else { far });
        }
        let of: Vec<usize> = nearest.into_iter().map(|(_, group)| group).collect();
        let count = of.iter().max().map_or(1, |most| most + 1);
        let members = (0..count).map(|g| (0..k).filter(|c| of[*c] == g).collect()).collect();
        Self { of, members }
    }

    /// Number of groups.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// The group of a centre.
    pub(crate) fn of(&self, centre: usize) -> usize {
        self.of[centre]
    }

    /// The largest of numbers that centres have, in each group.
    pub(crate) fn largest(&self, of: &[f64]) -> Vec<f64> {
        let most = |members: &Vec<usize>| members.iter().map(|k| of[*k]).fold(0.0, f64::max);
        self.members.iter().map(most).collect()
    }
}

/// Squared distance of two columns.
fn squared_difference(columns: MatRef<'_, f64>, a: usize, b: usize) -> f64 {
    columns.col(a).iter().zip(columns.col(b).iter()).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The two least distances in a group of centres, for each of eight rows.
#[derive(Clone, Copy)]
pub(crate) struct TwoNearest {
    pub(crate) best: [f64; LANES],
    pub(crate) second: [f64; LANES],
    pub(crate) index: [usize; LANES],
}

/// Eight rows side by side (p × 8).
pub(crate) struct Tile {
    cells: Vec<f64>,
    missing: bool,
}

impl Tile {
    pub(crate) const ROWS: usize = LANES;

    pub(crate) fn new(features: usize) -> Self {
        Self { cells: vec![0.0; features * LANES], missing: false }
    }

    /// Takes in rows of a block by their numbers, at most eight; the other lanes hold zeros.
    pub(crate) fn fill(&mut self, block: &[f64], rows: &[usize]) {
        let p = self.cells.len() / LANES;
        if rows.len() < LANES {
            self.cells.fill(0.0);
        }
        for (lane, row) in rows.iter().enumerate() {
            let row = &block[row * p..(row + 1) * p];
            row.iter().enumerate().for_each(|(j, x)| self.cells[j * LANES + lane] = *x);
        }
        self.missing = self.cells.iter().fold(false, |missing, x| missing | x.is_nan());
    }
}

/// Centres, ready to be compared with rows.
#[derive(Debug, Clone)]
pub(crate) struct Nearest {
    frame: Arc<Frame>,
    groups: Arc<CentreGroups>,
    centres: Mat<f64>,     // (p × K)
    packed: Vec<Vec<f64>>, // of each group: four centres side by side (p × 4), again and again
}

/// The centres and where they are measured; what is packed follows.
impl Serial for Nearest {
    type Sent = (Frame, CentreGroups, SentCells);

    fn sent(&self) -> Self::Sent {
        (Frame::clone(&self.frame), CentreGroups::clone(&self.groups), self.centres.sent())
    }

    fn received((frame, groups, centres): Self::Sent) -> Option<Self> {
        let centres = Mat::received(centres)?;
        let fits = frame.n_features() == centres.nrows() && groups.of.len() == centres.ncols();
        fits.then(|| Self::new(Arc::new(frame), centres, Arc::new(groups)))
    }
}

impl Nearest {
    /// Centres as columns in the frame (p × K).
    pub(crate) fn new(frame: Arc<Frame>, centres: Mat<f64>, groups: Arc<CentreGroups>) -> Self {
        let p = centres.nrows();
        let pack = |members: &Vec<usize>| {
            let mut packed = vec![0.0; members.len().next_multiple_of(TILE) * p];
            for (at, k) in members.iter().enumerate() {
                let tile = &mut packed[at / TILE * TILE * p..];
                centres.col(*k).iter().enumerate().for_each(|(j, c)| tile[j * TILE + at % TILE] = *c);
            }
            packed
        };
        let packed = groups.members.iter().map(pack).collect();
        Self { frame, groups, centres, packed }
    }

    /// The same with all centres in one group.
    pub(crate) fn of(frame: Arc<Frame>, centres: Mat<f64>) -> Self {
        let groups = Arc::new(CentreGroups::one(centres.ncols()));
        Self::new(frame, centres, groups)
    }

    pub(crate) fn frame(&self) -> &Arc<Frame> {
        &self.frame
    }

    pub(crate) fn groups(&self) -> &Arc<CentreGroups> {
        &self.groups
    }

    /// Centres as columns in the frame (p × K).
    pub(crate) fn centres(&self) -> &Mat<f64> {
        &self.centres
    }

    /// Number of centres, K.
    pub(crate) fn count(&self) -> usize {
        self.centres.ncols()
    }

    /// Half the distance of each centre to the nearest other: a complete row nearer than that belongs to it.
    pub(crate) fn half_apart(&self) -> Vec<f64> {
        let k = self.count();
        let mut least = vec![f64::INFINITY; k];
        for a in 0..k {
            for b in 0..a {
                let d = squared_difference(self.centres.as_ref(), a, b);
                least[a] = least[a].min(d);
                least[b] = least[b].min(d);
            }
        }
        least.into_iter().map(|d| 0.5 * d.sqrt()).collect()
    }

    /// Squared distance of a row in the frame to one centre.
    pub(crate) fn distance(&self, row: &[f64], centre: usize) -> f64 {
        let squares = || row.iter().zip(self.centres.col_as_slice(centre)).map(|(x, c)| (x - c) * (x - c));
        let sum = squares().fold(0.0, |sum, d| sum + d);
        if sum.is_nan() { squares().filter(|d| !d.is_nan()).fold(0.0, |sum, d| sum + d) } else { sum }
    }

    /// The two nearest centres of a group for eight rows.
    pub(crate) fn two_nearest(&self, tile: &Tile, group: usize) -> TwoNearest {
        let (packed, members) = (&self.packed[group], &self.groups.members[group]);
        let arch = pulp::Arch::new();
        if tile.missing {
            arch.dispatch(Search::<true> { rows: &tile.cells, packed, members })
        } else {
            arch.dispatch(Search::<false> { rows: &tile.cells, packed, members })
        }
    }

    /// The nearest centre of each row of a block in the frame, and the squared distance; ties go to the first.
    pub(crate) fn of_block(&self, block: &[f64], out: &mut Vec<(usize, f64)>) {
        let p = self.frame.n_features();
        let mut tile = Tile::new(p);
        out.clear();
        let n = block.len() / p.max(1);
        let rows: Vec<usize> = (0..n).collect();
        for rows in rows.chunks(LANES) {
            tile.fill(block, rows);
            let mut found = self.two_nearest(&tile, 0);
            for group in 1..self.groups.count() {
                let other = self.two_nearest(&tile, group);
                for l in 0..rows.len() {
                    if (other.best[l], other.index[l]) < (found.best[l], found.index[l]) {
                        (found.best[l], found.index[l]) = (other.best[l], other.index[l]);
                    }
                }
            }
            out.extend((0..rows.len()).map(|l| (found.index[l], found.best[l])));
        }
    }

    /// The nearest centre of each row of a chunk, and the squared distance in the frame.
    ///
    /// # Errors
    /// When a cell is infinite.
    pub(crate) fn of_chunk(&self, chunk: &Chunk<'_>) -> Result<Vec<(usize, f64)>> {
        let mut found = Vec::with_capacity(chunk.nrows());
        match chunk.cells() {
            Cells::Observed(rows) => {
                let mut scratch = vec![0.0; self.count()];
                let by_feature = self.by_feature();
                found.extend((0..chunk.nrows()).map(|i| {
                    self.of_observed(rows, i, by_feature.as_ref(), &mut scratch);
                    least(&scratch)
                }));
            }
            dense => {
                let mut part = Vec::with_capacity(BLOCK_ROWS);
                self.frame.for_each_block(dense, |_, block| {
                    self.of_block(block, &mut part);
                    found.extend_from_slice(&part);
                });
            }
        }
        match found.iter().all(|(_, d)| d.is_finite()) {
            true => Ok(found),
            false => Err(chunk.explain_infinite().unwrap_or(Error::Scale)),
        }
    }

    /// Squared distances of each row of a chunk to each centre, in the frame (rows × K).
    ///
    /// # Errors
    /// When a cell is infinite.
    pub(crate) fn distances(&self, chunk: &Chunk<'_>) -> Result<Mat<f64>> {
        let mut out = Mat::zeros(chunk.nrows(), self.count());
        match chunk.cells() {
            Cells::Observed(rows) => {
                let mut scratch = vec![0.0; self.count()];
                let by_feature = self.by_feature();
                for i in 0..chunk.nrows() {
                    self.of_observed(rows, i, by_feature.as_ref(), &mut scratch);
                    scratch.iter().enumerate().for_each(|(k, d)| out[(i, k)] = *d);
                }
            }
            dense => self.frame.for_each_block(dense, |first, block| {
                self.distances_of_block(block, |row, k, d| out[(first + row, k)] = d);
            }),
        }
        let finite = out.col_iter().all(|c| c.iter().all(|d| d.is_finite()));
        if finite { Ok(out) } else { Err(chunk.explain_infinite().unwrap_or(Error::Scale)) }
    }

    fn distances_of_block(&self, block: &[f64], mut put: impl FnMut(usize, usize, f64)) {
        let p = self.frame.n_features();
        let (arch, mut tile) = (pulp::Arch::new(), Tile::new(p));
        let rows: Vec<usize> = (0..block.len() / p.max(1)).collect();
        for rows in rows.chunks(LANES) {
            tile.fill(block, rows);
            for (members, packed) in self.groups.members.iter().zip(&self.packed) {
                for (four, packed) in members.chunks(TILE).zip(packed.chunks_exact(TILE * p.max(1))) {
                    let d = match tile.missing {
                        true => arch.dispatch(|| tile_distances::<true>(&tile.cells, packed)),
                        false => arch.dispatch(|| tile_distances::<false>(&tile.cells, packed)),
                    };
                    for (d, k) in d.iter().zip(four) {
                        rows.iter().zip(d).for_each(|(row, d)| put(*row, *k, *d));
                    }
                }
            }
        }
    }

    /// The centres of a feature side by side (K × p), for rows as lists of their cells.
    pub(crate) fn by_feature(&self) -> Mat<f64> {
        self.centres.transpose().to_owned()
    }

    /// Squared distances (K) of a row by the cells that were seen.
    pub(crate) fn of_observed(
        &self,
        rows: &ObservedRows<'_>,
        row: usize,
        by_feature: MatRef<'_, f64>,
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let (columns, values) = rows.row(row);
        for (j, x) in columns.iter().zip(values) {
            let x = self.frame.inside(*j as usize, *x);
            let centres = by_feature.col(*j as usize);
            out.iter_mut().zip(centres.iter()).for_each(|(d, c)| *d += (x - c) * (x - c));
        }
    }
}

/// The first of the least distances.
pub(crate) fn least(distances: &[f64]) -> (usize, f64) {
    let pick = |best: (usize, f64), (k, d): (usize, &f64)| if *d < best.1 { (k, *d) } else { best };
    distances.iter().enumerate().fold((0, f64::INFINITY), pick)
}

/// Squared distances of eight rows (p × 8) to four centres (p × 4), features in their order.
#[inline(always)]
fn tile_distances<const MISSING: bool>(rows: &[f64], centres: &[f64]) -> [[f64; LANES]; TILE] {
    let (rows, centres) = (rows.as_chunks::<LANES>().0, centres.as_chunks::<TILE>().0);
    let mut sum = [[0.0; LANES]; TILE];
    for (x, c) in rows.iter().zip(centres) {
        for k in 0..TILE {
            for l in 0..LANES {
                let d = x[l] - c[k];
                let square = d * d;
                sum[k][l] += if MISSING && square.is_nan() { 0.0 } else { square };
            }
        }
    }
    sum
}

/// A search for the two nearest centres. A closure would not be compiled for the vector unit that it runs on.
struct Search<'a, const MISSING: bool> {
    rows: &'a [f64],
    packed: &'a [f64],
    members: &'a [usize],
}

impl<const MISSING: bool> pulp::NullaryFnOnce for Search<'_, MISSING> {
    type Output = TwoNearest;

    #[inline(always)]
    fn call(self) -> TwoNearest {
        two_nearest::<MISSING>(self.rows, self.packed, self.members)
    }
}

#[inline(always)]
fn two_nearest<const MISSING: bool>(rows: &[f64], packed: &[f64], members: &[usize]) -> TwoNearest {
    let (mut best, mut second, mut at) = ([f64::INFINITY; LANES], [f64::INFINITY; LANES], [0.0; LANES]);
    let stride = (rows.len() / LANES).max(1) * TILE;
    for (tile, centres) in packed.chunks_exact(stride).enumerate() {
        let distances = tile_distances::<MISSING>(rows, centres);
        let some = TILE.min(members.len() - tile * TILE);
        for (k, d) in distances.iter().enumerate().take(some) {
            let place = (tile * TILE + k) as f64;
            for l in 0..LANES {
                let nearer = d[l] < best[l];
                let other = if nearer { best[l] } else { d[l] };
                second[l] = if other < second[l] { other } else { second[l] };
                best[l] = if nearer { d[l] } else { best[l] };
                at[l] = if nearer { place } else { at[l] };
            }
        }
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let index = at.map(|at| members.get(at as usize).copied().unwrap_or(0));
    TwoNearest { best, second, index }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Block, Observed, Order};

    fn chunk(cells: &[f64], p: usize) -> Chunk<'static> {
        let nrows = cells.len() / p;
        let block = Block::Owned { cells: cells.to_vec(), nrows, ncols: p, order: Order::Rows };
        Chunk::new(0, Cells::F64(block))
    }

    fn plane(n: usize) -> Vec<f64> {
        (0..2 * n).map(|i| ((i * i * 7919) % 101) as f64 / 10.0).collect()
    }

    /// Seven centres and 37 rows: neither fills its tiles.
    fn nearest(groups: usize) -> Nearest {
        let centres = Mat::from_fn(2, 7, |j, k| ((k * 31 + j * 17) % 11) as f64);
        let groups = Arc::new(CentreGroups::near(centres.as_ref(), groups));
        Nearest::new(Arc::new(Frame::new(vec![0.0; 2], &[1.0; 2], 1.0)), centres, groups)
    }

    #[test]
    fn groups_and_tiles_change_nothing() {
        let cells = plane(37);
        for groups in [1, 2, 3, 7] {
            let nearest = nearest(groups);
            let found = nearest.of_chunk(&chunk(&cells, 2)).unwrap();
            let all = nearest.distances(&chunk(&cells, 2)).unwrap();
            for (i, (k, d)) in found.into_iter().enumerate() {
                let row = &cells[2 * i..2 * i + 2];
                let each: Vec<f64> = (0..7).map(|k| nearest.distance(row, k)).collect();
                assert_eq!((k, d), least(&each), "row {i} of {groups} groups");
                assert!((0..7).all(|k| all[(i, k)] == each[k]));
            }
        }
    }

    #[test]
    fn missing_cells_add_nothing_however_rows_are_given() {
        let mut cells = plane(20);
        (0..20).step_by(3).for_each(|i| cells[2 * i + i % 2] = f64::NAN);
        cells[10] = f64::NAN;
        cells[11] = f64::NAN;
        let seen = cells.iter().enumerate().filter(|(_, x)| !x.is_nan()).map(|(at, x)| (at / 2, at % 2, *x));
        let observed = Observed::from_triples(20, 2, seen).unwrap();
        let nearest = nearest(2);
        let dense = nearest.of_chunk(&chunk(&cells, 2)).unwrap();
        assert_eq!(dense, nearest.of_chunk(&Chunk::new(0, Cells::Observed(observed.rows(0..20)))).unwrap());
        assert_eq!(dense[5], (0, 0.0), "a row without cells is as near to each");
        let infinite = nearest.of_chunk(&chunk(&[1.0, f64::INFINITY], 2));
        assert!(matches!(infinite, Err(Error::Infinite { .. })));
    }
}

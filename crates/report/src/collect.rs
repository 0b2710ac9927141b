//! The rows that a page shows: all, or a sample that keeps the most unusual ones, and counts of all rows.

use covary::data::Chunk;
use covary::model::{Model, Reconstruction};
use covary::{Error, Result};

use crate::columns::{Cell, Column};
use crate::options::UNUSUAL;

/// A row of the model lies farther out than a row of this p-value once in a thousand times.
pub(crate) const LEVEL: f64 = 0.001;

/// What was found out about the rows of a piece.
pub(crate) struct Judged {
    /// How unusual each row is; nothing where the model cannot tell.
    unusual: Option<Vec<f64>>,
    /// Rows with a p-value below [`LEVEL`].
    outside: Option<usize>,
    groups: Option<Vec<usize>>,
}

/// Judges the rows of a chunk.
pub(crate) fn judge(model: &dyn Model, chunk: &Chunk<'_>) -> Result<Judged> {
    let groups = model.as_assign().map(|groups| groups.assign(chunk)).transpose()?;
    let mut judged = Judged { unusual: None, outside: None, groups };
    match (model.as_density(), model.as_novelty()) {
        (Some(density), _) if density.is_proper()? => {
            let (p, log_density) = (density.outliers(chunk)?.p_value, density.log_density(chunk)?);
            judged.outside = Some(p.iter().filter(|p| **p < LEVEL).count());
            judged.unusual = Some(p.iter().zip(log_density).map(|(p, l)| surprise(*p, l)).collect());
        }
        (Some(density), _) => judged.unusual = Some(density.distances(chunk)?.1),
        (None, Some(novelty)) => judged.unusual = Some(novelty.novelty(chunk)?),
        (None, None) => judged.unusual = residuals(model, chunk)?,
    }
    Ok(judged)
}

/// −ln p, and beyond the smallest p-values by the density.
fn surprise(p: f64, log_density: f64) -> f64 {
    if p > 1e-300 { -p.ln() } else { 700.0 + (-log_density).max(0.0) }
}

/// Squared distances from what the model makes of the rows, over the cells that they have.
pub(crate) fn residuals(model: &dyn Model, chunk: &Chunk<'_>) -> Result<Option<Vec<f64>>> {
    let Some(rebuild) = model.as_reconstruct() else { return Ok(None) };
    let rebuilt = rebuild.reconstruct(chunk, Reconstruction::default())?;
    let square = |i: usize, j: usize| Some(chunk.cells().get(i, j) - rebuilt[(i, j)]).filter(|d| !d.is_nan());
    let of_row = |i: usize| (0..chunk.ncols()).filter_map(|j| square(i, j)).map(|d| d * d).sum();
    Ok(Some((0..chunk.nrows()).map(of_row).collect()))
}

/// A row that is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Its number in the data, from 0.
    pub(crate) number: usize,
    pub(crate) cells: Vec<f64>,
    pub(crate) carried: Vec<Cell>,
    unusual: f64,
    priority: u64,
}

/// The rows that are kept, and counts of all.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) kept: Vec<Kept>,
    limit: usize,
    seed: u64,
    pub(crate) rows: usize,
    /// Missing cells of each feature (p).
    pub(crate) missing: Vec<u64>,
    pub(crate) incomplete: usize,
    pub(crate) empty: usize,
    pub(crate) outside: Option<usize>,
    /// Rows of each group.
    pub(crate) groups: Option<Vec<usize>>,
}

impl Collected {
    pub(crate) fn new(model: &dyn Model, limit: usize, seed: u64) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            seed,
            rows: 0,
            missing: vec![0; model.n_features()],
            incomplete: 0,
            empty: 0,
            outside: None,
            groups: model.as_assign().map(|groups| vec![0; groups.n_groups()]),
        }
    }

    /// Unusual rows that a sample keeps.
    pub(crate) fn unusual(&self) -> usize {
        UNUSUAL.min(self.limit / 2)
    }

    /// Whether only some of the rows are kept.
    pub(crate) fn is_sample(&self) -> bool {
        self.rows > self.limit
    }

    /// Adds the rows of a chunk, with what was found out about them.
    pub(crate) fn add(&mut self, chunk: &Chunk<'_>, carried: &[Column], judged: &Judged) -> Result<()> {
        if let Some(column) = carried.iter().find(|column| column.len() != chunk.nrows()) {
            let (expected, found) = (chunk.nrows(), column.len());
            return Err(Error::Length { what: "cells of a carried column", expected, found });
        }
        self.outside = judged.outside.map(|n| self.outside.unwrap_or(0) + n).or(self.outside);
        for (counts, group) in self.groups.iter_mut().zip(&judged.groups) {
            group.iter().for_each(|k| counts[*k] += 1);
        }
        for i in 0..chunk.nrows() {
            let cells: Vec<f64> = (0..chunk.ncols()).map(|j| chunk.cells().get(i, j)).collect();
            self.count(&cells);
            if self.limit > 0 {
                let number = self.rows;
                let (carried, unusual) = (
                    carried.iter().map(|column| column.cell(i)).collect(),
                    judged.unusual.as_ref().map_or(0.0, |of| of[i]),
                );
                let priority = mixed(self.seed ^ mixed(number as u64));
                self.kept.push(Kept { number, cells, carried, unusual, priority });
            }
            self.rows += 1;
        }
        if self.kept.len() > 2 * self.limit + 1000 {
            self.thin();
        }
        Ok(())
    }

    fn count(&mut self, cells: &[f64]) {
        let mut missing = 0;
        for (count, _) in self.missing.iter_mut().zip(cells).filter(|(_, x)| x.is_nan()) {
            *count += 1;
            missing += 1;
        }
        self.incomplete += usize::from(missing > 0);
        self.empty += usize::from(missing == cells.len());
    }

    /// Keeps the most unusual rows and, of the others, those of the smallest priority. Which they are does not depend
    /// on when this is done: a row that is left out once has enough rows before it for ever.
    fn thin(&mut self) {
        if self.kept.len() <= self.limit {
            return;
        }
        let unusual = self.unusual();
        self.kept.sort_by(|a, b| b.unusual.total_cmp(&a.unusual).then(a.number.cmp(&b.number)));
        self.kept[unusual..].sort_by_key(|row| (row.priority, row.number));
        self.kept.truncate(self.limit);
    }

    /// The rows that are left, in the order of the data.
    pub(crate) fn finish(&mut self) {
        self.thin();
        self.kept.sort_by_key(|row| row.number);
    }
}

/// A number that looks random (splitmix64).
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use covary::data::Order;
    use covary::linalg::Mat;
    use covary::model::{LinearGaussian, Noise};

    use super::*;

    fn model() -> LinearGaussian {
        LinearGaussian::new(vec![0.0; 2], Mat::from_fn(2, 1, |_, _| 1.0), Noise::Isotropic(1.0)).unwrap()
    }

    /// Rows that wander; every 500th lies far out.
    fn cells(rows: std::ops::Range<usize>) -> Vec<f64> {
        let far = |i: usize| if i.is_multiple_of(500) { 100.0 } else { 0.0 };
        rows.flat_map(|i| [(i as f64).sin() + far(i), (i as f64 * 1.3).cos()]).collect()
    }

    fn sample(pieces: usize) -> Vec<usize> {
        let model = model();
        let mut collected = Collected::new(&model, 40, 7);
        for start in (0..5000).step_by(pieces) {
            let chunk =
                Chunk::from_rows(start, cells(start..5000.min(start + pieces)), 2, Order::Rows).unwrap();
            collected.add(&chunk, &[], &judge(&model, &chunk).unwrap()).unwrap();
        }
        collected.finish();
        assert!(collected.is_sample() && collected.rows == 5000);
        collected.kept.iter().map(|row| row.number).collect()
    }

    #[test]
    fn a_sample_keeps_what_is_unusual_and_does_not_depend_on_the_pieces() {
        let rows = sample(5000);
        assert_eq!(rows.len(), 40);
        assert!((0..10).all(|k| rows.contains(&(k * 500))), "{rows:?}");
        assert_eq!(rows, sample(300));
    }

    #[test]
    fn missing_cells_are_counted_for_all_rows() {
        let model = model();
        let mut collected = Collected::new(&model, 0, 0);
        let chunk = Chunk::from_rows(0, vec![1.0, f64::NAN, f64::NAN, f64::NAN], 2, Order::Rows).unwrap();
        collected.add(&chunk, &[], &judge(&model, &chunk).unwrap()).unwrap();
        assert_eq!(
            (collected.missing.as_slice(), collected.incomplete, collected.empty),
            (&[1, 2][..], 2, 1)
        );
        assert!(collected.kept.is_empty());
    }
}

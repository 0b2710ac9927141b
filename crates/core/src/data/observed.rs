//! Only the cells that were seen: ratings, sensor readings, anything whose table would be mostly empty.

use std::borrow::Cow;
use std::ops::Range;

use super::{Cells, Chunk, RowSource};
use crate::error::{Cell, Error, Result};
use crate::linalg::Mat;

/// Cells of a chunk: large enough that merging chunks costs nothing, small enough to share among many
/// threads.
const CHUNK_CELLS: usize = 1 << 13;
/// Most rows of a chunk.
const CHUNK_ROWS: usize = 4096;

/// A table of which only some cells were seen, in memory proportional to their number.
///
/// ```
/// use covary::data::{Observed, RowSource};
/// // Three people have rated four films, but not every film.
/// let ratings = [(0, 0, 5.0), (0, 2, 3.0), (1, 1, 4.0), (2, 0, 1.0), (2, 3, 2.0)];
/// let rows = Observed::from_triples(3, 4, ratings)?;
/// assert_eq!((rows.n_cells(), rows.n_features()), (5, 4));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    starts: Cow<'a, [usize]>, // row i has the cells starts[i] .. starts[i + 1]
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [f64]>,
    n_features: usize,
    chunks: Vec<usize>, // first row of each chunk, and the number of rows
    weights: Option<Cow<'a, [f64]>>,
    names: Option<Vec<String>>,
    row_names: Option<Vec<String>>,
}

impl Observed<'static> {
    /// From (row, feature, value) triples in any order. NaN is a cell that was not seen.
    ///
    /// # Errors
    /// When an index is out of range, a cell is given twice or a value is infinite.
    pub fn from_triples(
        n_rows: usize,
        n_features: usize,
        triples: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Result<Self> {
        let mut cells: Vec<(usize, u32, f64)> = Vec::new();
        for (row, column, value) in triples {
            check_index("the row of a cell", row, n_rows)?;
            check_index("the feature of a cell", column, n_features)?;
            cells.push((row, narrow(column)?, value));
        }
        cells.sort_by_key(|(row, column, _)| (*row, *column));
        let same = |a: &(usize, u32, f64), b: &(usize, u32, f64)| (a.0, a.1) == (b.0, b.1);
        if let Some(twice) = cells.windows(2).find(|pair| same(&pair[0], &pair[1])) {
            return Err(Error::DuplicateCell { cell: cell(twice[0].0, twice[0].1) });
        }
        let mut starts = vec![0; n_rows + 1];
        cells.iter().for_each(|(row, ..)| starts[row + 1] += 1);
        (0..n_rows).for_each(|i| starts[i + 1] += starts[i]);
        let columns = cells.iter().map(|c| c.1).collect();
        let values = cells.iter().map(|c| c.2).collect();
        Self::from_rows(starts, columns, values, n_features)
    }

    /// From compressed rows: row i has the features `columns[starts[i] .. starts[i + 1]]`, in ascending
    /// order, and the values beside them. NaN is a cell that was not seen.
    ///
    /// # Errors
    /// When the parts do not fit together, a cell is given twice or a value is infinite.
    pub fn from_rows(
        starts: Vec<usize>,
        mut columns: Vec<u32>,
        mut values: Vec<f64>,
        n_features: usize,
    ) -> Result<Self> {
        let mut starts = starts;
        check_compressed(&starts, &columns, &values, n_features)?;
        check_cells(&starts, &columns, &values)?;
        if values.iter().any(|v| v.is_nan()) {
            drop_unseen(&mut starts, &mut columns, &mut values);
        }
        Ok(Self {
            chunks: grid(&starts),
            starts: starts.into(),
            columns: columns.into(),
            values: values.into(),
            n_features,
            weights: None,
            names: None,
            row_names: None,
        })
    }
}

impl<'a> Observed<'a> {
    /// Gives each row a weight.
    ///
    /// # Errors
    /// When there is not one weight per row, or one is negative or not finite.
    pub fn with_weights(mut self, weights: impl Into<Cow<'a, [f64]>>) -> Result<Self> {
        let weights = weights.into();
        Chunk::new(0, Cells::Observed(self.rows(0..self.nrows()))).with_weights(&*weights)?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Names the features.
    ///
    /// # Errors
    /// When there is not one name per feature.
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self> {
        check_length("feature names", self.n_features, names.len())?;
        self.names = Some(names);
        Ok(self)
    }

    /// Names the rows.
    ///
    /// # Errors
    /// When there is not one name per row.
    pub fn with_row_names(mut self, names: Vec<String>) -> Result<Self> {
        check_length("row names", self.nrows(), names.len())?;
        self.row_names = Some(names);
        Ok(self)
    }

    /// Names of the rows, when they have some.
    pub fn row_names(&self) -> Option<&[String]> {
        self.row_names.as_deref()
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of cells that were seen.
    pub fn n_cells(&self) -> usize {
        self.values.len()
    }

    /// The cells of consecutive rows.
    pub fn rows(&self, rows: Range<usize>) -> ObservedRows<'_> {
        let starts = &self.starts[rows.start..=rows.end];
        let cells = starts[0]..starts[starts.len() - 1];
        ObservedRows {
            starts,
            columns: &self.columns[cells.clone()],
            values: &self.values[cells],
            n_features: self.n_features,
        }
    }
}

impl RowSource for Observed<'_> {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn n_chunks(&self) -> usize {
        self.chunks.len() - 1
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let rows = self.chunks[index]..self.chunks[index + 1];
        let chunk = Chunk::new(rows.start, Cells::Observed(self.rows(rows.clone())));
        Ok(match &self.weights {
            Some(weights) => chunk.with_checked_weights(&weights[rows]),
            None => chunk,
        })
    }

    fn n_rows(&self) -> Option<usize> {
        Some(self.nrows())
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn observed_only(&self) -> bool {
        true
    }
}

/// Consecutive rows of an [`Observed`] table.
#[derive(Debug, Clone, Copy)]
pub struct ObservedRows<'a> {
    starts: &'a [usize], // offsets in the whole table
    columns: &'a [u32],
    values: &'a [f64],
    n_features: usize,
}

impl<'a> ObservedRows<'a> {
    /// Number of rows and features.
    pub fn shape(&self) -> (usize, usize) {
        (self.starts.len() - 1, self.n_features)
    }

    /// The features that a row has, ascending, and their values.
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f64]) {
        let cells = self.starts[row] - self.starts[0]..self.starts[row + 1] - self.starts[0];
        (&self.columns[cells.clone()], &self.values[cells])
    }

    /// Rows `start .. start + len`.
    pub(super) fn part(&self, start: usize, len: usize) -> Self {
        let starts = &self.starts[start..=start + len];
        let cells = starts[0] - self.starts[0]..starts[len] - self.starts[0];
        Self { starts, columns: &self.columns[cells.clone()], values: &self.values[cells], ..*self }
    }

    /// One cell; NaN when it was not seen.
    pub(super) fn get(&self, row: usize, column: usize) -> f64 {
        let (columns, values) = self.row(row);
        let found = u32::try_from(column).ok().and_then(|c| columns.binary_search(&c).ok());
        found.map_or(f64::NAN, |at| values[at])
    }

    /// The table that these cells are part of, NaN elsewhere (rows × p).
    pub(crate) fn to_dense(self) -> Mat<f64> {
        let (n, p) = self.shape();
        let mut dense = Mat::full(n, p, f64::NAN);
        for i in 0..n {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).for_each(|(c, v)| dense[(i, *c as usize)] = *v);
        }
        dense
    }
}

/// Consecutive rows with about [`CHUNK_CELLS`] cells each.
fn grid(starts: &[usize]) -> Vec<usize> {
    let n = starts.len() - 1;
    let mut firsts = vec![0];
    let mut first = 0;
    for row in 0..n {
        if row > first && (starts[row + 1] - starts[first] > CHUNK_CELLS || row - first >= CHUNK_ROWS) {
            firsts.push(row);
            first = row;
        }
    }
    if n > 0 {
        firsts.push(n);
    }
    firsts
}

/// Whether the parts of compressed rows fit together.
pub(super) fn check_compressed(starts: &[usize], columns: &[u32], values: &[f64], p: usize) -> Result<()> {
    check_length("values of stored cells", columns.len(), values.len())?;
    let ascending = starts.windows(2).all(|pair| pair[0] <= pair[1]);
    if !ascending || starts.first() != Some(&0) || starts.last() != Some(&columns.len()) {
        let (name, value) = ("the starts of the rows", format!("{} numbers", starts.len()));
        return Err(Error::Parameter { name, value, allowed: "ascending from 0 to the number of cells" });
    }
    columns.iter().try_for_each(|c| check_index("the feature of a cell", *c as usize, p))
}

/// Whether each cell is there once, in order, and finite or not seen.
fn check_cells(starts: &[usize], columns: &[u32], values: &[f64]) -> Result<()> {
    for (row, range) in starts.windows(2).enumerate() {
        let (columns, values) = (&columns[range[0]..range[1]], &values[range[0]..range[1]]);
        if let Some(pair) = columns.windows(2).find(|pair| pair[0] >= pair[1]) {
            if pair[0] == pair[1] {
                return Err(Error::DuplicateCell { cell: cell(row, pair[0]) });
            }
            let (name, value) = ("the features of a row", format!("{} before {}", pair[0], pair[1]));
            return Err(Error::Parameter { name, value, allowed: "in ascending order" });
        }
        if let Some(at) = values.iter().position(|v| v.is_infinite()) {
            return Err(Error::Infinite { value: values[at], cell: cell(row, columns[at]) });
        }
    }
    Ok(())
}

/// Takes NaN out.
fn drop_unseen(starts: &mut [usize], columns: &mut Vec<u32>, values: &mut Vec<f64>) {
    let mut kept = 0;
    let mut begin = 0;
    for start in starts.iter_mut().skip(1) {
        let end = *start;
        for at in begin..end {
            if !values[at].is_nan() {
                (columns[kept], values[kept]) = (columns[at], values[at]);
                kept += 1;
            }
        }
        begin = end;
        *start = kept;
    }
    columns.truncate(kept);
    values.truncate(kept);
}

pub(super) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

fn check_index(name: &'static str, index: usize, below: usize) -> Result<()> {
    if index < below {
        return Ok(());
    }
    Err(Error::Parameter { name, value: index.to_string(), allowed: "below the number that was given" })
}

fn narrow(column: usize) -> Result<u32> {
    let allowed = "below 2³²";
    u32::try_from(column).map_err(|_| Error::Parameter {
        name: "the feature of a cell",
        value: column.to_string(),
        allowed,
    })
}

fn cell(row: usize, column: u32) -> Cell {
    Cell { row, column: column as usize, name: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_in_any_order_make_the_same_rows() {
        let sorted = [(0, 1, 2.0), (0, 3, f64::NAN), (2, 0, 5.0), (2, 2, 6.0)];
        let mut shuffled = sorted;
        shuffled.reverse();
        for triples in [sorted, shuffled] {
            let rows = Observed::from_triples(3, 4, triples).unwrap();
            assert_eq!(rows.n_cells(), 3);
            let all = rows.rows(0..3);
            assert_eq!(all.row(0), (&[1][..], &[2.0][..]));
            assert_eq!(all.row(1), (&[][..], &[][..]));
            assert_eq!(all.part(2, 1).row(0), (&[0, 2][..], &[5.0, 6.0][..]));
            assert_eq!(all.get(2, 2), 6.0);
            assert!(all.get(1, 1).is_nan() && all.to_dense()[(0, 0)].is_nan());
        }
    }

    #[test]
    fn bad_cells_are_named() {
        let twice = Observed::from_triples(2, 2, [(1, 0, 1.0), (1, 0, 2.0)]).unwrap_err();
        assert!(
            matches!(&twice, Error::DuplicateCell { cell } if (cell.row, cell.column) == (1, 0)),
            "{twice}"
        );
        let far = Observed::from_triples(2, 2, [(1, 2, 1.0)]).unwrap_err();
        assert!(far.to_string().contains("the feature of a cell is 2"), "{far}");
        let infinite = Observed::from_triples(2, 2, [(1, 1, f64::INFINITY)]).unwrap_err();
        assert!(matches!(infinite, Error::Infinite { .. }));
        assert!(Observed::from_rows(vec![0, 2], vec![1, 0], vec![1.0, 2.0], 2).is_err());
        assert!(Observed::from_rows(vec![0, 3], vec![0, 1], vec![1.0, 2.0], 2).is_err());
    }

    #[test]
    fn the_grid_covers_all_rows_once() {
        let starts: Vec<usize> = (0..10_001).map(|i| i * 7).collect();
        let firsts = grid(&starts);
        assert_eq!((firsts[0], firsts[firsts.len() - 1]), (0, 10_000));
        assert!(firsts.windows(2).all(|w| w[0] < w[1] && w[1] - w[0] <= CHUNK_CELLS / 7));
        assert_eq!(grid(&[0]), [0]);
    }
}

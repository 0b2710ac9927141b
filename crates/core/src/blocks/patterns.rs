//! Patterns of missing values: which cells of a row are missing, as a key that rows are sorted and counted
//! by.

use crate::data::Real;
use crate::linalg::MatRef;

/// Odd, with no pattern in its bits: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Which cells of a row are missing, as far as rows are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Depends on which cells are missing and on nothing else; 0 when there are none.
    pub(crate) key: u64,
    /// How many.
    pub(crate) missing: usize,
}

impl Pattern {
    /// Adds 64 cells, one bit per missing cell.
    fn add(&mut self, missing: u64) {
        let x = (self.key ^ missing).wrapping_mul(MULTIPLIER);
        self.key = x ^ (x >> 29);
        self.missing += missing.count_ones() as usize;
    }

    /// Of a row that has the given features, ascending.
    pub(crate) fn of_observed(observed: &[u32], features: usize) -> Self {
        let mut pattern = Self::default();
        let mut rest = observed;
        for first in (0..features).step_by(64) {
            let len = rest.iter().take_while(|c| (**c as usize) < first + 64).count();
            let (here, later) = rest.split_at(len);
            let all = if features - first < 64 { (1 << (features - first)) - 1 } else { u64::MAX };
            let seen = here.iter().fold(0, |word, c| word | 1 << (*c as usize - first));
            pattern.add(all & !seen);
            rest = later;
        }
        pattern
    }
}

/// The pattern of each row.
pub(crate) fn patterns<T: Real>(view: MatRef<'_, T>) -> Vec<Pattern> {
    let mut patterns = vec![Pattern::default(); view.nrows()];
    let by_rows = view.col_stride().unsigned_abs() <= view.row_stride().unsigned_abs();
    for first in (0..view.ncols()).step_by(64) {
        let columns = view.subcols(first, 64.min(view.ncols() - first));
        let words = if by_rows { words_by_rows(columns) } else { words_by_columns(columns) };
        patterns.iter_mut().zip(words).for_each(|(pattern, word)| pattern.add(word));
    }
    patterns
}

/// One bit per missing cell, row by row.
fn words_by_rows<T: Real>(columns: MatRef<'_, T>) -> Vec<u64> {
    let arch = pulp::Arch::new();
    let word = |row: &mut dyn Iterator<Item = T>| {
        row.enumerate().fold(0, |word, (j, x)| word | u64::from(x.to_f64().is_nan()) << j)
    };
    let each = |i: usize| match columns.row(i).transpose().try_as_col_major() {
        Some(cells) => arch.dispatch(|| missing_bits(cells.as_slice())),
        None => word(&mut columns.row(i).iter().copied()),
    };
    (0..columns.nrows()).map(each).collect()
}

#[inline(always)]
fn missing_bits<T: Real>(cells: &[T]) -> u64 {
    let mut bits = [0u64; 8];
    for (k, eight) in cells.chunks(8).enumerate() {
        bits.iter_mut().zip(eight).enumerate().for_each(|(j, (bits, x))| {
            *bits |= u64::from(x.to_f64().is_nan()) << (8 * k + j);
        });
    }
    bits.into_iter().fold(0, |a, b| a | b)
}

/// The same, column by column.
fn words_by_columns<T: Real>(columns: MatRef<'_, T>) -> Vec<u64> {
    let mut words = vec![0; columns.nrows()];
    for (j, column) in columns.col_iter().enumerate() {
        words.iter_mut().zip(column.iter()).for_each(|(w, x)| *w |= u64::from(x.to_f64().is_nan()) << j);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    fn rows() -> Mat<f64> {
        let missing = |i: usize, j: usize| (i % 3 == 1 && j % 7 == 2) || (i % 5 == 4 && j > 60);
        Mat::from_fn(40, 70, |i, j| if missing(i, j) { f64::NAN } else { (i * 70 + j) as f64 })
    }

    #[test]
    fn keys_depend_on_missing_cells_only() {
        let x = rows();
        let by_columns = patterns(x.as_ref());
        let transposed = x.transpose().to_owned();
        assert_eq!(by_columns, patterns(transposed.transpose()));
        for i in 0..40 {
            let observed: Vec<u32> = (0..70u32).filter(|j| !x[(i, *j as usize)].is_nan()).collect();
            assert_eq!(by_columns[i], Pattern::of_observed(&observed, 70));
            assert_eq!(by_columns[i].missing, 70 - observed.len());
        }
        // The pattern of row i depend on i mod 3 and i mod 5.
        (0..25).for_each(|i| assert_eq!(by_columns[i], by_columns[i + 15]));
        assert_eq!(by_columns[0].key, 0);
    }
}

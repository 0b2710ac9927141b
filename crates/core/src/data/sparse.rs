//! Sparse rows: cells that are not stored are 0, and no more than a chunk of them is ever written out.

use std::borrow::Cow;

use super::observed::{check_compressed, check_length};
use super::{Block, Cells, Chunk, Order, RowSource};
use crate::error::Result;

/// Cells of a chunk once its zeros are written out.
const CHUNK_CELLS: usize = 1 << 20;
/// Most rows of a chunk.
const CHUNK_ROWS: usize = 4096;

/// A table in compressed rows whose other cells are 0: word counts, one-hot columns.
///
/// Features are centred like any others, so a chunk is dense; memory grows with the stored cells, time with
/// all of them. Where a cell is stored twice, the values are added.
///
/// ```
/// use covary::data::{RowSource, Sparse};
/// // Row 0 is (0, 5, 0), row 1 is (1, 0, 2).
/// let rows = Sparse::new(vec![0, 1, 3], vec![1, 0, 2], vec![5.0, 1.0, 2.0], 3)?;
/// assert_eq!(rows.chunk(0)?.cells().get(1, 1), 0.0);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sparse {
    starts: Vec<usize>, // row i has the cells starts[i] .. starts[i + 1]
    columns: Vec<u32>,
    values: Vec<f64>,
    n_features: usize,
    weights: Option<Vec<f64>>,
    names: Option<Vec<String>>,
}

impl Sparse {
    /// From compressed rows: row i has the features `columns[starts[i] .. starts[i + 1]]` and the values
    /// beside them.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn new(starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>, n_features: usize) -> Result<Self> {
        check_compressed(&starts, &columns, &values, n_features)?;
        Ok(Self { starts, columns, values, n_features, weights: None, names: None })
    }

    /// Gives each row a weight.
    ///
    /// # Errors
    /// When there is not one weight per row, or one is negative or not finite.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        let cells = Block::Owned { cells: vec![], nrows: self.nrows(), ncols: 0, order: Order::Rows };
        Chunk::new(0, Cells::F64(cells)).with_weights(&*weights)?;
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

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.starts.len() - 1
    }

    fn chunk_rows(&self) -> usize {
        (CHUNK_CELLS / self.n_features.max(1)).clamp(1, CHUNK_ROWS)
    }
}

impl RowSource for Sparse {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn n_chunks(&self) -> usize {
        self.nrows().div_ceil(self.chunk_rows())
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let (p, start) = (self.n_features, index * self.chunk_rows());
        let nrows = self.chunk_rows().min(self.nrows() - start);
        let mut cells = vec![0.0; nrows * p];
        for row in 0..nrows {
            let stored = self.starts[start + row]..self.starts[start + row + 1];
            let out = &mut cells[row * p..(row + 1) * p];
            self.columns[stored.clone()]
                .iter()
                .zip(&self.values[stored])
                .for_each(|(c, v)| out[*c as usize] += v);
        }
        let chunk =
            Chunk::new(start, Cells::F64(Block::Owned { cells, nrows, ncols: p, order: Order::Rows }));
        match &self.weights {
            Some(weights) => chunk.with_weights(Cow::Borrowed(&weights[start..start + nrows])),
            None => Ok(chunk),
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;

    /// 3000 rows of 700 features: two chunks, the last one shorter.
    fn example() -> (Sparse, Vec<f64>) {
        let (n, p) = (3000, 700);
        let (mut starts, mut columns, mut values, mut dense) = (vec![0], vec![], vec![], vec![0.0; n * p]);
        for i in 0..n {
            for j in (i % 13..p).step_by(31) {
                columns.push(u32::try_from(j).unwrap());
                values.push(((i * 7 + j * 3) % 11) as f64 - 4.0);
                dense[i * p + j] = values[values.len() - 1];
            }
            starts.push(columns.len());
        }
        (Sparse::new(starts, columns, values, p).unwrap(), dense)
    }

    #[test]
    fn a_fit_of_sparse_rows_is_the_fit_of_the_table_they_stand_for() {
        let (sparse, dense) = example();
        assert_eq!(sparse.n_chunks(), 3);
        let ours = crate::Ppca::new(2).fit(&sparse).unwrap();
        let table = crate::Ppca::new(2).fit(Rows::from_slice(&dense, 700).unwrap()).unwrap();
        for (a, b) in
            ours.spectrum().unwrap().eigenvalues().iter().zip(table.spectrum().unwrap().eigenvalues()).take(2)
        {
            assert!((a - b).abs() < 1e-10 * b, "{a} {b}");
        }
        let (ours, table) =
            (ours.spectrum().unwrap().noise_variance(), table.spectrum().unwrap().noise_variance());
        assert!((ours - table).abs() < 1e-10 * table);
    }

    #[test]
    fn cells_stored_twice_are_added_and_parts_must_fit() {
        let rows = Sparse::new(vec![0, 2, 2], vec![1, 1], vec![2.0, 3.0], 2).unwrap();
        let chunk = rows.chunk(0).unwrap();
        assert_eq!((chunk.cells().get(0, 1), chunk.cells().get(1, 1)), (5.0, 0.0));
        assert!(Sparse::new(vec![0, 1], vec![2], vec![1.0], 2).is_err());
        assert!(Sparse::new(vec![0, 2], vec![1], vec![1.0], 2).is_err());
        assert!(Sparse::new(vec![0, 1], vec![1], vec![], 2).is_err());
        assert!(rows.clone().with_weights(vec![1.0]).is_err());
        assert!(rows.with_weights(vec![1.0, 0.0]).is_ok());
    }
}

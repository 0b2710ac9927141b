//! A table in memory: a matrix view or buffer, read as a grid of chunks without copying.

use std::borrow::Cow;

use super::{Cells, Chunk, RowSource};
use crate::error::{Error, Result};

/// Most rows of a chunk.
const CHUNK_ROWS: usize = 4096;
/// Least rows of a chunk: enough that merging costs nothing.
const LEAST_ROWS: usize = 256;
/// Chunks that a small table is cut into, so that threads have something to share.
const CHUNKS: usize = 16;

/// Rows in memory, borrowed or owned, with optional weights and names.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    cells: Cells<'a>,
    weights: Option<Cow<'a, [f64]>>,
    names: Option<Vec<String>>,
}

impl<'a> Table<'a> {
    /// A table of these cells.
    pub fn new(cells: Cells<'a>) -> Self {
        Self { cells, weights: None, names: None }
    }

    /// Gives each row a weight.
    ///
    /// # Errors
    /// When there is not one weight per row, or one is negative or not finite.
    pub fn with_weights(mut self, weights: impl Into<Cow<'a, [f64]>>) -> Result<Self> {
        let weights = weights.into();
        // One check for all chunks and for the table.
        Chunk::new(0, self.cells.part(0, self.shape().0)).with_weights(&*weights)?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Names the features.
    ///
    /// # Errors
    /// When there is not one name per feature.
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self> {
        let expected = self.shape().1;
        if names.len() != expected {
            return Err(Error::Length { what: "feature names", expected, found: names.len() });
        }
        self.names = Some(names);
        Ok(self)
    }

    /// Number of rows and features.
    pub fn shape(&self) -> (usize, usize) {
        self.cells.shape()
    }

    /// All cells.
    pub fn cells(&self) -> &Cells<'a> {
        &self.cells
    }

    /// Weights of the rows, when they are not all 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// A property of the shape alone. Evidence can be p × p, so there are at least p rows to each.
    fn chunk_rows(&self) -> usize {
        let (n, p) = self.shape();
        n.div_ceil(CHUNKS).clamp(p.clamp(LEAST_ROWS, CHUNK_ROWS), CHUNK_ROWS)
    }

    /// The table as one chunk.
    pub(crate) fn whole(&self) -> Chunk<'_> {
        let chunk = Chunk::new(0, self.cells.part(0, self.shape().0));
        self.attach_weights(chunk, 0)
    }

    fn attach_weights<'b>(&'b self, chunk: Chunk<'b>, start: usize) -> Chunk<'b> {
        match &self.weights {
            None => chunk,
            Some(w) => {
                let end = start + chunk.nrows();
                chunk.with_checked_weights(&w[start..end])
            }
        }
    }
}

impl RowSource for Table<'_> {
    fn n_features(&self) -> usize {
        self.shape().1
    }

    fn n_chunks(&self) -> usize {
        self.shape().0.div_ceil(self.chunk_rows())
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let start = index * self.chunk_rows();
        let len = self.chunk_rows().min(self.shape().0 - start);
        Ok(self.attach_weights(Chunk::new(start, self.cells.part(start, len)), start))
    }

    fn n_rows(&self) -> Option<usize> {
        Some(self.shape().0)
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn as_table(&self) -> Option<&Table<'_>> {
        Some(self)
    }
}

//! Some of the features of a source, as a source of its own.

use super::{Block, Cells, Chunk, Order, Real, RowSource};
use crate::error::Result;
use crate::linalg::MatRef;

/// The rows of a source with some of its features, in the given order; chunks are copied as they are read.
pub(crate) struct FeatureSubset<'a> {
    source: &'a dyn RowSource,
    features: &'a [usize],
    names: Option<Vec<String>>,
}

impl<'a> FeatureSubset<'a> {
    pub(crate) fn new(source: &'a dyn RowSource, features: &'a [usize]) -> Self {
        let names = source.feature_names();
        let names = names.map(|names| features.iter().map(|j| names[*j].clone()).collect());
        Self { source, features, names }
    }
}

impl RowSource for FeatureSubset<'_> {
    fn n_features(&self) -> usize {
        self.features.len()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let cells = match chunk.cells() {
            Cells::F32(block) => Cells::F32(picked(block.view(), self.features)),
            Cells::F64(block) => Cells::F64(picked(block.view(), self.features)),
            Cells::Observed(rows) => Cells::F64(picked(rows.to_dense().as_ref(), self.features)),
        };
        let part = Chunk::new(chunk.first_row(), cells);
        match chunk.weights() {
            Some(weights) => part.with_weights(weights.to_vec()),
            None => Ok(part),
        }
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.source.weights()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }
}

fn picked<T: Real>(view: MatRef<'_, T>, features: &[usize]) -> Block<'static, T> {
    let cells = view.row_iter().flat_map(|row| features.iter().map(move |j| row[*j])).collect();
    Block::Owned { cells, nrows: view.nrows(), ncols: features.len(), order: Order::Rows }
}

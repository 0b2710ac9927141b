//! Some of the features of a source, as a source of its own.

use serde::{Deserialize, Serialize};

use super::{
    Block, Cells, Chunk, Order, Parcel, Real, RemoteRows, RowSource, Step, Task, Then, fill_through,
};
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

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote().map(|_| self as &dyn RemoteRows)
    }
}

impl RemoteRows for FeatureSubset<'_> {
    fn fill(&self, task: Task) -> Result<Parcel> {
        fill_through(self.source, &Subset(self.features.to_vec()), task)
    }
}

/// Only these features, in this order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Subset(Vec<usize>);

impl Step for Subset {
    const NAME: &'static str = "features";

    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
        then(&FeatureSubset::new(rows, &self.0))
    }
}

fn picked<T: Real>(view: MatRef<'_, T>, features: &[usize]) -> Block<'static, T> {
    let cells = view.row_iter().flat_map(|row| features.iter().map(move |j| row[*j])).collect();
    Block::Owned { cells, nrows: view.nrows(), ncols: features.len(), order: Order::Rows }
}

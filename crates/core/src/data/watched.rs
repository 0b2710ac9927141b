//! Rows under the eyes of a caller: reading ends when the caller asks to stop.

use super::{Chunk, RemoteRows, RowSource, Table};
use crate::control::Control;
use crate::error::Result;

/// A source whose chunks are [`Interrupted`](crate::Error::Interrupted) once the caller has asked to stop:
/// whatever reads it ends with the chunk that it is working on.
pub struct Watched<'a> {
    source: &'a dyn RowSource,
    control: &'a Control<'a>,
}

impl<'a> Watched<'a> {
    /// The same rows, watched.
    pub fn new(source: &'a dyn RowSource, control: &'a Control<'a>) -> Self {
        Self { source, control }
    }
}

impl RowSource for Watched<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        self.control.check()?;
        self.source.chunk(index)
    }

    fn check(&self) -> Result<()> {
        self.control.check()
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.source.weights()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn as_table(&self) -> Option<&Table<'_>> {
        self.source.as_table()
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote()
    }
}

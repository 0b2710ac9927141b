//! Where chunks come from: a grid that can be read in any order and again, or a stream that passes once.

use super::{Chunk, RemoteRows, Table};
use crate::error::Result;
use crate::parallel;

/// Rows as a grid of chunks that can be read in any order and more than once.
///
/// The grid is a property of the source, never of the machine: evidence is merged along it, so that results
/// do not depend on the number of threads.
pub trait RowSource: Sync {
    /// Number of features of every chunk.
    fn n_features(&self) -> usize;

    /// Number of chunks.
    fn n_chunks(&self) -> usize;

    /// Reads one chunk. Called from several threads at once.
    ///
    /// # Errors
    /// Whatever the source meets: file trouble, text where numbers should be.
    fn chunk(&self, index: usize) -> Result<Chunk<'_>>;

    /// Number of rows, when it is known without reading them.
    fn n_rows(&self) -> Option<usize> {
        None
    }

    /// Weights of the rows, when there are some and they lie in memory.
    fn weights(&self) -> Option<&[f64]> {
        None
    }

    /// Names of the features, when they have some.
    fn feature_names(&self) -> Option<&[String]> {
        None
    }

    /// Whether chunks hold only the cells that were seen: work must then be in proportion to those.
    fn observed_only(&self) -> bool {
        false
    }

    /// Whether the rows are still wanted: long work on one chunk asks in between.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) once a caller has asked to stop.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The whole, when it lies in memory: whole-matrix solvers ask for it.
    fn as_table(&self) -> Option<&Table<'_>> {
        None
    }

    /// The rows as something to which evidence is sent, when they cannot be read here. A source that stands
    /// before another must then say how it travels.
    fn remote(&self) -> Option<&dyn RemoteRows> {
        None
    }
}

/// A chunk alone is a source of one chunk: questions can be asked of it directly.
impl RowSource for Chunk<'_> {
    fn n_features(&self) -> usize {
        self.ncols()
    }

    fn n_chunks(&self) -> usize {
        1
    }

    fn chunk(&self, _: usize) -> Result<Chunk<'_>> {
        Ok(self.borrowed())
    }

    fn n_rows(&self) -> Option<usize> {
        Some(self.nrows())
    }
}

/// Rows that pass once, in order: a pipe, a compressed file, a socket.
pub trait RowStream {
    /// Number of features of every chunk.
    fn n_features(&self) -> usize;

    /// The next chunk, or `None` at the end.
    ///
    /// # Errors
    /// Whatever the source meets.
    fn next_chunk(&mut self) -> Result<Option<Chunk<'static>>>;
}

/// n of information criteria, tests, standard errors and intervals.
///
/// A weight says how often a row was seen, so n is the total weight. Where that is less than the number of
/// rows of positive weight, weights can only be relative (those that sum to 1, say): n is then the number
/// of rows, as if weights had been scaled to a mean of 1.
///
/// ```
/// use covary::data::counted_weight;
/// assert_eq!(counted_weight(100, 250.5), 250.5); // rows that were seen several times
/// assert_eq!(counted_weight(100, 1.0), 100.0); // shares
/// ```
pub fn counted_weight(rows: usize, weight: f64) -> f64 {
    weight.max(rows as f64)
}

/// Number of rows that rows of some total weight stand for: one of weight 2 is one that was written twice.
/// Weights below 1 take none away.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole rows; saturates")]
pub fn counted_rows(rows: usize, weight: f64) -> usize {
    rows.max(weight as usize)
}

/// Applies `f` to every chunk on all threads; the results come in the order of the grid.
///
/// # Errors
/// The first error in the order of the grid.
pub fn map_chunks<T: Send>(
    source: &dyn RowSource,
    f: impl Fn(&Chunk<'_>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = parallel::try_map(source.n_chunks(), |i| f(&source.chunk(i)?));
    results.map_err(|e| e.named(source.feature_names()))
}

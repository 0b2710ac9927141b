//! Rows: arrays, files and partitions as chunks of cells, with missing values and weights.

mod chunk;
mod counted;
mod features;
mod observed;
mod rows;
mod scaled;
mod source;
mod sparse;
mod table;
mod watched;

pub(crate) use chunk::with_view;
pub use chunk::{Block, Cells, Chunk, Order, Real};
pub(crate) use counted::CountedRows;
pub(crate) use features::FeatureSubset;
pub use observed::{Observed, ObservedRows};
pub use rows::Rows;
pub(crate) use scaled::ScaledRows;
pub use source::{RowSource, RowStream, counted_rows, counted_weight, map_chunks};
pub use sparse::Sparse;
pub use table::Table;
pub use watched::Watched;

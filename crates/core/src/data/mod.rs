//! Rows: arrays, files and partitions as chunks of cells, with missing values and weights.

mod chunk;
mod features;
mod mixed;
mod observed;
mod remote;
mod reweighted;
mod rows;
mod scaled;
mod source;
mod sparse;
mod table;
mod watched;

pub(crate) use chunk::with_view;
pub use chunk::{Block, Cells, Chunk, Order, Real};
pub(crate) use features::{FeatureSubset, Subset};
pub(crate) use mixed::mixed;
pub use observed::{Observed, ObservedRows};
pub use remote::{Parcel, RemoteRows, Task};
pub(crate) use remote::{Step, Then, fill_through, from_bytes, to_bytes};
pub(crate) use reweighted::{Reweighted, Times, with_weights_times};
pub use rows::Rows;
pub(crate) use scaled::{Scaled, ScaledRows};
pub use source::{RowSource, RowStream, counted_rows, counted_weight, map_chunks};
pub use sparse::Sparse;
pub use table::Table;
pub use watched::Watched;

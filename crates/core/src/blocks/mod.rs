//! What works on a block of rows: cells centred and scaled, and sums over the cells that each row has.

mod bounds;
mod gram;
mod incomplete;
mod listed;
mod masked;
mod nearest;
mod patterns;
mod shifted;

pub(crate) use bounds::{Drift, RowBounds};
pub use gram::Gram;
pub(crate) use incomplete::{FeatureLoadings, IncompleteRows, Mean};
pub(crate) use listed::{ListedRows, observed_cells};
pub(crate) use masked::{BLOCK_ROWS, MaskedBlock, for_each_masked, for_each_masked_of};
pub use nearest::Frame;
pub(crate) use nearest::{CentreGroups, Nearest, least};
pub(crate) use patterns::{Pattern, patterns};
pub(crate) use shifted::{ShiftedBlock, ShiftedSum, for_each_block, provisional_mean, provisional_unit};

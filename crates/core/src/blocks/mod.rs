//! What works on a block of rows: cells centred and scaled, and sums over the cells that each row has.

mod gram;
mod incomplete;
mod listed;
mod masked;
mod patterns;
mod shifted;

pub use gram::Gram;
pub(crate) use incomplete::{FeatureLoadings, IncompleteRows, Mean};
pub(crate) use listed::{ListedRows, observed_cells};
pub(crate) use masked::{BLOCK_ROWS, MaskedBlock, for_each_masked, for_each_masked_of};
pub(crate) use patterns::{Pattern, patterns};
pub(crate) use shifted::{ShiftedBlock, ShiftedSum, for_each_block, provisional_mean, provisional_unit};

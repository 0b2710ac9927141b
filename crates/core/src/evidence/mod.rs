//! Statistics of rows that can be merged: what every fit is made from.

mod census;
mod center;
mod clusters;
mod contrast;
mod coreset;
mod filled;
mod gather;
mod kernel_features;
mod latent;
mod margins;
mod moments;
mod network;
mod pairwise;
mod picked;
mod psi;
mod range;
mod residual;
mod sketch;
mod student;
mod travel;
mod weighted;

pub use census::Census;
pub(crate) use center::center_of;
pub use clusters::Clusters;
pub(crate) use clusters::Farthest;
pub use contrast::{Contrast, ContrastMeans, ContrastSums};
pub(crate) use coreset::{Coreset, Design as CoresetDesign};
pub(crate) use filled::FilledSketch;
pub use gather::{gather, gather_stream};
pub use kernel_features::KernelFeatures;
pub use latent::Latent;
pub(crate) use latent::{Frame, Totals as LatentTotals, row_densities};
pub(crate) use margins::{Margins, Survey};
pub use moments::Moments;
pub use network::{HiddenPart, NetworkMeans, NetworkSums};
pub use pairwise::{AvailableCases, Found, Pairwise};
pub(crate) use picked::{PickedRows, Which};
pub use psi::{LatentPositions, PsiSums};
pub(crate) use range::Range;
pub(crate) use residual::{Residual, measure};
pub use sketch::Sketch;
pub use student::StudentEvidence;
pub(crate) use student::{Collected as StudentCollected, Found as StudentFound, StudentSums, row_weights};
pub use travel::Travel;
pub(crate) use travel::stays;
pub use weighted::{RowWeights, WeightedParts, WeightedRows};

use crate::data::Chunk;
use crate::error::Result;

/// Evidence about rows, a commutative monoid up to rounding.
///
/// # Laws
/// For every implementation, and tested for each:
/// - *identity*: merging an empty accumulator changes nothing, also when both are empty;
/// - *commutativity* and *associativity* of [`merge`](Self::merge), to rounding;
/// - *chunking*: cutting the same rows into other chunks, or updating instead of merging, changes nothing, to
///   rounding.
///
/// So who fills the evidence (threads, passes over a file, machines) is nobody's business but theirs.
pub trait Accumulator: Send + Sized {
    /// How the evidence travels to rows elsewhere and back; `None` where it cannot.
    const TRAVEL: Option<Travel<Self>> = None;

    /// Takes in the rows of a chunk.
    ///
    /// # Errors
    /// When a cell cannot be used; the error names it.
    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()>;

    /// Takes in the rows that another accumulator has seen.
    ///
    /// # Errors
    /// When the two are not about the same features.
    fn merge(&mut self, other: &Self) -> Result<()>;
}

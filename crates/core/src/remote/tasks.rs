//! What can travel: one line for each kind of evidence, and for each way in which rows are seen.

use crate::algorithm::mixture::{ByResponsibility, MixturePosterior};
use crate::algorithm::redundant::CommonRows;
use crate::algorithm::resolution::Rests;
use crate::data::{Parcel, RowSource, Scaled, Step, Subset, Then, Times};
use crate::error::{Error, Result};
use crate::estimator::{StudentWeights, Whitening};
use crate::evidence::{
    Accumulator, Clusters, ContrastSums, Coreset, FilledSketch, KernelFeatures, Latent, Moments, Pairwise,
    PickedRows, Range, Residual, Sketch, StudentEvidence, Survey, WeightedParts,
};
use crate::select::Folds;

/// Evidence of any kind.
pub(super) trait Evidence: Send {
    /// Takes in rows.
    fn add(&mut self, rows: &dyn RowSource) -> Result<()>;

    /// Takes in what another has seen.
    fn merge(&mut self, other: &Parcel) -> Result<()>;

    /// As it travels.
    fn parcel(&self) -> Result<Parcel>;
}

/// How a kind of evidence is unpacked; `None` when the parcel holds another.
type Opener = fn(&Parcel) -> Option<Result<Box<dyn Evidence>>>;

/// Every kind of evidence that travels.
const EVIDENCE: &[Opener] = &[
    opened::<ByResponsibility<Latent>>,
    opened::<ByResponsibility<Moments>>,
    opened::<Clusters>,
    opened::<CommonRows>,
    opened::<ContrastSums>,
    opened::<Coreset>,
    opened::<FilledSketch>,
    opened::<Folds>,
    opened::<KernelFeatures>,
    opened::<Latent>,
    opened::<Moments>,
    opened::<Pairwise>,
    opened::<PickedRows>,
    opened::<Range>,
    opened::<Residual>,
    opened::<Rests>,
    opened::<Sketch>,
    opened::<StudentEvidence>,
    opened::<Survey>,
    opened::<WeightedParts<Latent, MixturePosterior>>,
];

/// How rows are seen through a step; `None` when it is another.
type Viewer = fn(&Parcel, &dyn RowSource, Then<'_>) -> Option<Result<()>>;

/// Every way in which rows are seen before they are added up.
const STEPS: &[Viewer] =
    &[seen::<Scaled>, seen::<StudentWeights>, seen::<Subset>, seen::<Times>, seen::<Whitening>];

/// The evidence of a parcel.
pub(super) fn open(parcel: &Parcel) -> Result<Box<dyn Evidence>> {
    EVIDENCE.iter().find_map(|open| open(parcel)).unwrap_or_else(|| Err(unknown("evidence", parcel)))
}

/// Rows through all steps.
pub(super) fn through(steps: &[Parcel], rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
    let Some((step, others)) = steps.split_first() else { return then(rows) };
    let mut on = |rows: &dyn RowSource| through(others, rows, then);
    STEPS.iter().find_map(|see| see(step, rows, &mut on)).unwrap_or_else(|| Err(unknown("a step", step)))
}

fn unknown(what: &str, parcel: &Parcel) -> Error {
    Error::Format(format!("it holds {what} of a kind that is not known here: '{}'", parcel.name))
}

fn opened<A: Accumulator + 'static>(parcel: &Parcel) -> Option<Result<Box<dyn Evidence>>> {
    let travel = A::TRAVEL.filter(|travel| travel.name() == parcel.name)?;
    Some(travel.unpack(parcel).map(|evidence| Box::new(Filled(evidence)) as Box<dyn Evidence>))
}

fn seen<S: Step>(parcel: &Parcel, rows: &dyn RowSource, then: Then<'_>) -> Option<Result<()>> {
    (parcel.name == S::NAME).then(|| parcel.unpack::<S>()?.over(rows, then))
}

struct Filled<A>(A);

impl<A: Accumulator> Evidence for Filled<A> {
    fn add(&mut self, rows: &dyn RowSource) -> Result<()> {
        (0..rows.n_chunks()).try_for_each(|index| self.0.update(&rows.chunk(index)?))
    }

    fn merge(&mut self, other: &Parcel) -> Result<()> {
        match A::TRAVEL {
            Some(travel) => self.0.merge(&travel.unpack(other)?),
            None => Err(unknown("evidence", other)),
        }
    }

    fn parcel(&self) -> Result<Parcel> {
        match A::TRAVEL {
            Some(travel) => travel.pack(&self.0),
            None => Err(crate::evidence::stays()),
        }
    }
}

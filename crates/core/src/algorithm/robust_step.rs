//! Single steps of robust PPCA: for fits over parts of the data elsewhere, and for rows that come in batches.

use std::sync::Arc;

use super::maximise::Maximised;
use super::online::share;
use super::prior::Prior;
use super::robust::{expected_student, of_spectrum};
use super::{Components, eigen};
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Moments, StudentCollected, StudentEvidence};
use crate::expectation::{LatentParameters, Student};

/// The largest 1/ν that is found: tails as heavy as Cauchy's.
const HEAVIEST: f64 = 1.0;

/// One step of EM of robust PPCA from evidence: better parameters and ν, between 1 and ∞, for the rows that it is
/// about. Where ν is given, keep it and take the parameters alone. The likelihood never falls.
///
/// ```
/// use std::sync::Arc;
/// use covary::algorithm::robust_step;
/// use covary::data::Rows;
/// use covary::evidence::{Accumulator, StudentEvidence, gather};
/// use covary::expectation::LatentParameters;
/// use covary::linalg::Mat;
/// use covary::persist::Portable;
///
/// // y = 2x but for the last row, in two parts, which may lie in two places.
/// let parts = [
///     [1.0, 2.1, 2.0, f64::NAN, 3.0, 6.2, 4.0, 7.8],
///     [5.0, 10.1, 6.0, 11.9, f64::NAN, 14.2, 3.0, -40.0],
/// ];
/// let start = LatentParameters::new(vec![3.0, 6.0], Mat::from_fn(2, 1, |_, _| 1.0).as_ref(), 1.0)?;
/// let (mut parameters, mut nu) = (Arc::new(start), 2.0);
/// let mut last = f64::NEG_INFINITY;
/// for _ in 0..20 {
///     let none = || StudentEvidence::incomplete(parameters.clone(), nu);
///     let mut all = none()?;
///     for part in &parts {
///         let rows = Rows::from_slice(part, 2)?;
///         let empty = none()?;
///         let evidence = gather(rows.source(), || empty.clone(), &Default::default())?;
///         // What travels from place to place.
///         let bytes = evidence.to_bytes(&["x".into(), "y".into()])?;
///         all.merge(&StudentEvidence::from_bytes(&bytes)?.evidence)?;
///     }
///     assert!(all.log_likelihood() >= last);
///     last = all.log_likelihood();
///     let (better, found) = robust_step(&all)?;
///     (parameters, nu) = (Arc::new(better), found);
/// }
/// let w = parameters.loadings();
/// assert!((w[(1, 0)] / w[(0, 0)] - 2.0).abs() < 0.1);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// When a decomposition fails, or there are no rows.
pub fn robust_step(evidence: &StudentEvidence) -> Result<(LatentParameters, f64)> {
    let sums = evidence.sums().filter(|sums| sums.weight > 0.0).ok_or(Error::NoRows)?;
    let parameters = match &evidence.collected {
        StudentCollected::Complete(parts) => closed_form(evidence.parameters(), &parts.0)?,
        StudentCollected::Incomplete(latent) => {
            // The step divides all but the noise by Σ w u already.
            let stepped = Maximised::of(latent, Prior::Flat)?.parameters().clone();
            stepped.with_noise_times(sums.weight / sums.counted)
        }
    };
    Ok((parameters, expected_student(sums, HEAVIEST).dof()))
}

/// PPCA's closed form of the weighted moments.
fn closed_form(before: &LatentParameters, moments: &Moments) -> Result<LatentParameters> {
    let q = before.n_latent();
    let spectrum = eigen::solve(moments, Components::Count(q.max(1)), 0)?;
    let spectrum = if q == 0 { spectrum.leading(0) } else { spectrum };
    let floor = before.rounding(moments.rows());
    let found = of_spectrum(&spectrum, before.scale().of(0), floor)?;
    Ok(found.with_mean_rest(moments.mean_rest().to_vec()))
}

/// The evidence, of total weight 1, after a batch: about the parameters and ν of the step that is made from it. What
/// was kept is about the same ones as the batch; `seen` is the weight of all rows so far, the batch among them.
pub(crate) fn online_step(
    kept: &StudentEvidence,
    batch: &StudentEvidence,
    seen: f64,
    find_nu: bool,
) -> Result<StudentEvidence> {
    let is_complete = |of: &StudentEvidence| matches!(of.collected, StudentCollected::Complete(_));
    let complete = is_complete(kept) && is_complete(batch);
    if !complete && (is_complete(kept) || is_complete(batch)) {
        return online_step(&kept.by_cells()?, &batch.by_cells()?, seen, find_nu);
    }
    let normal = batch.degrees_of_freedom().is_infinite() && !find_nu;
    // Complete rows of a normal distribution say the same for any parameters.
    let share = if complete && normal { batch.weight() / seen } else { share(batch.weight(), seen) };
    let mut average = batch.times(share / batch.weight());
    if share < 1.0 {
        average.merge(&kept.times(1.0 - share))?;
    }
    let (parameters, nu) = robust_step(&average)?;
    let nu = if find_nu { nu } else { batch.degrees_of_freedom() };
    average.carried(&Arc::new(parameters), Student::new(nu)?)
}

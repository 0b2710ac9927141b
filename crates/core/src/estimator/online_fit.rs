//! Rows that come in batches and are gone, for models whose evidence depends on the model: each batch is a step.

use super::{Fit, MissingCells, Report};
use crate::algorithm::{MixtureEvidence, Stop};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Census, StudentEvidence, Survey, gather};
use crate::model::{AnyModel, Model};

/// A model after some batches, and what is kept of them: evidence about the model in which earlier batches fade
/// \[CM09\].
///
/// ```
/// use covary::data::Rows;
/// use covary::{Control, MixturePpca};
///
/// let batches = [
///     [0.0, 0.1, 1.0, 1.3, 2.0, 1.8, 9.0, 0.2, 8.0, 1.3, 7.1, 1.9],
///     [3.0, 3.2, -1.0, -0.9, 0.5, 0.4, 6.0, 2.8, 5.2, 4.0, 6.5, 2.6],
/// ];
/// let (family, control) = (MixturePpca::new(2, 0), Control::new());
/// let mut seen = None;
/// for batch in batches.iter().cycle().take(20) {
///     seen = Some(family.step(seen.as_ref(), Rows::from_slice(batch, 2)?.source(), &control)?);
/// }
/// let report = seen.unwrap().fit.report;
/// assert_eq!((report.rows, report.mixture().and_then(|m| m.online_steps)), (120, Some(20)));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Clone)]
pub struct OnlineFit<M> {
    /// The model, and how it was come by.
    pub fit: Fit<M>,
    /// What is kept of the batches; `None` where the model was fitted at once, and then stands for its rows.
    pub kept: Option<KeptEvidence>,
}

/// What a family keeps between batches, of total weight 1.
#[derive(Clone)]
pub enum KeptEvidence {
    /// Of mixtures.
    Mixture(MixtureEvidence),
    /// Of robust PPCA.
    Robust(StudentEvidence),
}

impl<M> From<Fit<M>> for OnlineFit<M> {
    fn from(fit: Fit<M>) -> Self {
        Self { fit, kept: None }
    }
}

impl<M: Model> OnlineFit<M> {
    /// The same of a model of any kind.
    pub(super) fn any(self) -> OnlineFit<AnyModel> {
        OnlineFit { fit: self.fit.into(), kept: self.kept }
    }
}

/// A model of any kind as one of a kind.
pub(super) fn of_kind<M: Model + Clone>(fit: &Fit<AnyModel>) -> Result<Fit<M>> {
    let Some(model) = fit.model.downcast_ref::<M>() else {
        let (name, value) = ("the model that a batch is added to", fit.model.kind().title.into());
        return Err(Error::Parameter { name, value, allowed: "of the kind of the batches before" });
    };
    Ok(Fit { model: model.clone(), report: fit.report.clone() })
}

/// What is there in a batch; the number of its features must be that of the batches before.
pub(super) fn census_of(rows: &dyn RowSource, expected: usize, control: &Control<'_>) -> Result<Census> {
    let found = rows.n_features();
    match found == expected {
        true => Ok(gather(rows, || Survey::empty(found), control)?.census()),
        false => Err(Error::FeatureCount { expected, found }),
    }
}

/// The refusal of a family that cannot take in batches one by one.
pub(super) fn no_steps(kind: &'static str) -> Error {
    let (name, value) = ("rows in batches", kind.into());
    Error::Parameter { name, value, allowed: "for mixtures and robust PPCA" }
}

impl Report {
    /// After the fit of the first of several batches, of such a log-likelihood per row.
    pub(super) fn first_of_batches(self, log_likelihood: f64) -> Self {
        Self { trace: vec![log_likelihood], ..self }.with_reason(1)
    }

    /// After one more batch, the t-th, of such a log-likelihood per row under the model that it met.
    pub(super) fn after_batch(&self, census: &Census, steps: usize, log_likelihood: f64) -> Self {
        let now = (census.missing() > 0).then(|| MissingCells::new(census, None));
        let mut trace = self.trace.clone();
        trace.push(log_likelihood);
        let next = Self {
            rows: self.rows + census.rows(),
            weight: self.weight + census.weight(),
            log_likelihood: None,
            holes: MissingCells::joined(self.holes.clone(), now),
            stop: Stop::IterationLimit,
            passes: self.passes + 1,
            trace,
            choice: None,
            spectrum: None,
            ..self.clone()
        };
        next.with_reason(steps)
    }

    fn with_reason(mut self, steps: usize) -> Self {
        let steps = if steps == 1 { "1 online step".into() } else { format!("{steps} online steps") };
        self.plan.reason = format!("rows in batches: {steps}, which come near the maximum; fit finds it");
        self
    }
}

impl MissingCells {
    /// Of two sets of rows.
    pub(super) fn joined(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(Self {
                observed: a.observed + b.observed,
                missing: a.missing + b.missing,
                empty_rows: a.empty_rows + b.empty_rows,
                patterns: None,
                unseen_pairs: None,
                ..a
            }),
            (a, b) => a.or(b),
        }
    }
}

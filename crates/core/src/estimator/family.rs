//! A family of models with its own options, ready to be fitted: what every front door has in common.

use std::fmt::Debug;
use std::sync::Arc;

use super::online_fit::no_steps;
use super::{Batch, Fit, KernelPca, Online, OnlineFit, Run};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Moments, gather};
use crate::model::{AnyModel, Kind};

/// A family with its own options.
pub trait Family: Debug + Send + Sync {
    /// The kind of its models.
    fn kind(&self) -> &'static Kind;

    /// How many components are wanted.
    fn components(&self) -> Components;

    /// The same with another number of components.
    fn with_components(&self, components: Components) -> Arc<dyn Family>;

    /// How it runs.
    fn how(&self) -> Run;

    /// The same, run in another way.
    fn with_run(&self, run: Run) -> Arc<dyn Family>;

    /// The same from a warm start.
    ///
    /// # Errors
    /// When the family cannot start from a model.
    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>>;

    /// What decides when the number of components is to be chosen.
    fn chooser(&self) -> Chooser {
        Chooser::Recommendation
    }

    /// The rows by which the number of components is chosen, where those of the fit would mislead.
    ///
    /// # Errors
    /// As [`fit_rows`](Self::fit_rows).
    fn rows_to_choose_by<'a>(
        &self,
        rows: &'a dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Option<Box<dyn RowSource + 'a>>> {
        let _ = (rows, control);
        Ok(None)
    }

    /// Its kernel, where it has one.
    fn as_kernel_pca(&self) -> Option<&KernelPca> {
        None
    }

    /// Fits rows that can be read more than once.
    ///
    /// # Errors
    /// When the options make no sense, the data do not allow them, or a caller cancels.
    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>>;

    /// Fits moments.
    ///
    /// # Errors
    /// As [`fit_rows`](Self::fit_rows).
    fn fit_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>>;

    /// What a batch of rows adds to batches before it; complete rows, unless the family has a step for
    /// missing values.
    ///
    /// # Errors
    /// As [`fit_rows`](Self::fit_rows).
    fn look(&self, seen: &Online, rows: &dyn RowSource, control: &Control<'_>) -> Result<Batch> {
        let p = seen.n_features();
        seen.batch_of(gather(rows, || Moments::empty(p), control)?)
    }

    /// The model of the batches so far.
    ///
    /// # Errors
    /// As [`fit_rows`](Self::fit_rows).
    fn fit_online(&self, seen: &Online, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        self.fit_moments(seen.parts().0, control)
    }

    /// What is kept of the first of several batches, after its fit.
    ///
    /// # Errors
    /// For families that take in batches as moments, or not at all.
    fn begun(
        &self,
        fit: Fit<AnyModel>,
        _rows: &dyn RowSource,
        _control: &Control<'_>,
    ) -> Result<OnlineFit<AnyModel>> {
        Err(no_steps(fit.model.kind().title))
    }

    /// The model after one more batch.
    ///
    /// # Errors
    /// As [`begun`](Self::begun) and [`fit_rows`](Self::fit_rows).
    fn step(
        &self,
        before: &OnlineFit<AnyModel>,
        _rows: &dyn RowSource,
        _control: &Control<'_>,
    ) -> Result<OnlineFit<AnyModel>> {
        Err(no_steps(before.fit.model.kind().title))
    }
}

/// What decides when the number of components is to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooser {
    /// What `select` recommends.
    Recommendation,
    /// Parallel analysis, with at least one and at most so many as leave degrees of freedom.
    ParallelAnalysis,
    /// Kernel parallel analysis, which finds the width of the kernel too.
    KernelParallelAnalysis,
    /// The fit itself, from all that the data allow.
    Fit,
}

/// The refusal of a family without warm starts.
pub(super) fn no_warm_start(family: &'static str) -> Error {
    Error::Parameter { name: "the start", value: "a model".into(), allowed: family }
}

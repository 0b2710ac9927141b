//! Iterations whose step is one pass over the rows: rows → evidence for the current state → better state.

use super::drive::{Iteration, Objective, Step};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::evidence::{Accumulator, gather};

/// A method that improves its state by what a pass over the rows has collected.
pub trait RowIteration: Sync {
    /// What one pass collects.
    type Evidence: Accumulator;
    /// What comes out.
    type Output;

    /// What the method optimises.
    fn objective(&self) -> Objective;

    /// Empty evidence for the current state.
    fn evidence(&self) -> Self::Evidence;

    /// Improves the state by what a pass has collected.
    ///
    /// # Errors
    /// When the data do not allow it or arithmetic breaks down.
    fn update(&mut self, evidence: Self::Evidence) -> Result<Step>;

    /// Whether the state is good enough.
    fn converged(&self, tolerance: f64) -> bool;

    /// What rounding can do to the objective, where that is more than a share of it.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// The answer, from the state as it is.
    ///
    /// # Errors
    /// When the state does not allow one.
    fn finish(self) -> Result<Self::Output>;
}

/// A method over rows as an [`Iteration`]: each step is one pass.
pub struct Passes<'a, I> {
    method: I,
    source: &'a dyn RowSource,
    count: usize,
}

impl<'a, I: RowIteration> Passes<'a, I> {
    /// The method over the rows of a source.
    pub fn over(source: &'a dyn RowSource, method: I) -> Self {
        Self { method, source, count: 0 }
    }
}

impl<I: RowIteration> Iteration for Passes<'_, I> {
    type Output = I::Output;

    fn objective(&self) -> Objective {
        self.method.objective()
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.method.converged(tolerance)
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let evidence = gather(self.source, || self.method.evidence(), control)?;
        self.count += 1;
        self.method.update(evidence).map(Some)
    }

    fn rounding(&self) -> f64 {
        self.method.rounding()
    }

    fn passes(&self) -> usize {
        self.count
    }

    fn finish(self) -> Result<I::Output> {
        self.method.finish()
    }
}

//! The only loop over rows in the library: it owns passes, stopping, progress, cancellation and the trace.

use serde::{Deserialize, Serialize};

use crate::control::{Control, Event};
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, gather};

/// How far the objective may fall, relative to its size, before that is more than rounding.
const ROUNDING: f64 = 1e-9;

/// A method that repeats: rows → evidence for the current state → better state.
pub trait Algorithm: Sync {
    /// What the method maximises, in words.
    const MEASURE: &'static str;

    /// What one pass over the rows collects.
    type Evidence: Accumulator;
    /// What comes out.
    type Output;

    /// Empty evidence for the current state.
    fn evidence(&self) -> Self::Evidence;

    /// Improves the state by what a pass has collected.
    ///
    /// # Errors
    /// When the data do not allow it or arithmetic breaks down.
    fn update(&mut self, evidence: Self::Evidence) -> Result<Step>;

    /// What rounding can take off the objective, where that is more than a share of it.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// The answer, from the state as it is.
    ///
    /// # Errors
    /// When the state does not allow one.
    fn finish(self) -> Result<Self::Output>;
}

/// What one iteration brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// What the method maximises; it must not fall.
    pub objective: f64,
    /// The measure that decides about stopping.
    pub change: f64,
    /// Whether the method has converged.
    pub converged: bool,
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The method says so.
    Converged,
    /// The limit on iterations was reached.
    IterationLimit,
    /// The caller asked to stop; the state so far is usable.
    Interrupted,
}

/// How a loop went.
#[derive(Debug, Clone, PartialEq)]
pub struct Journey {
    /// Why it ended.
    pub stop: Stop,
    /// The objective after each iteration.
    pub trace: Vec<f64>,
    /// Passes over the rows.
    pub passes: usize,
}

/// Repeats passes until the method converges, the limit is reached or the caller asks to stop.
///
/// # Errors
/// Those of the source and of the method; [`Error::ObjectiveFell`] when the objective falls beyond rounding;
/// [`Error::Interrupted`] when there is nothing usable yet.
pub fn drive<A: Algorithm>(
    mut algorithm: A,
    source: &dyn RowSource,
    max_iterations: usize,
    control: &Control<'_>,
) -> Result<(A::Output, Journey)> {
    let mut trace: Vec<f64> = Vec::new();
    let stop = loop {
        let evidence = match gather(source, || algorithm.evidence(), control) {
            Err(Error::Interrupted) if !trace.is_empty() => break Stop::Interrupted,
            other => other?,
        };
        let step = algorithm.update(evidence)?;
        guard(&trace, step.objective, algorithm.rounding())?;
        trace.push(step.objective);
        let number = trace.len();
        let Step { objective, change, .. } = step;
        control.emit(Event::Iteration { number, measure: A::MEASURE, objective, change });
        if step.converged {
            break Stop::Converged;
        }
        if number >= max_iterations {
            break Stop::IterationLimit;
        }
    };
    let passes = trace.len();
    Ok((algorithm.finish()?, Journey { stop, trace, passes }))
}

/// A falling objective is an error, not a value.
fn guard(trace: &[f64], after: f64, rounding: f64) -> Result<()> {
    let Some(&before) = trace.last() else { return Ok(()) };
    let most = rounding.max(ROUNDING * before.abs().max(after.abs()));
    let fell = after.is_nan() || before - after > most;
    if fell { Err(Error::ObjectiveFell { iteration: trace.len() + 1, before, after }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_objective_is_an_error() {
        assert!(guard(&[1.0], 1.0 - 1e-12, 0.0).is_ok());
        assert!(matches!(guard(&[2.0, 1.0], 0.9, 0.0), Err(Error::ObjectiveFell { iteration: 3, .. })));
        assert!(guard(&[1.0], 0.9, 0.2).is_ok());
        assert!(guard(&[1.0], f64::NAN, 0.1).is_err());
    }
}

//! The one loop of the library: it owns the limits, the trace, progress, cancellation and the guard of the
//! objective.

use serde::{Deserialize, Serialize};

use crate::control::{Control, Event};
use crate::error::{Error, Result};

/// How far the objective may move the wrong way, relative to its size, before that is more than rounding.
const ROUNDING: f64 = 1e-9;

/// A method that repeats a step. It knows its mathematics; [`drive`] knows when to go on.
pub trait Iteration {
    /// What comes out.
    type Output;

    /// What the method optimises.
    fn objective(&self) -> Objective;

    /// Whether the point where the method stands is good enough. Asked before the first step too.
    fn converged(&self, tolerance: f64) -> bool;

    /// Goes to the next point; `None` when no better one can be found.
    ///
    /// # Errors
    /// When the data do not allow it or arithmetic breaks down; [`Error::Interrupted`] when the caller asked
    /// to stop during the step. The point before the step is then still there.
    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>>;

    /// What rounding can do to the objective, where that is more than a share of it.
    fn rounding(&self) -> f64 {
        0.0
    }

    /// Passes over rows so far; none for a method that works on matrices.
    fn passes(&self) -> usize {
        0
    }

    /// The answer, from the point where the method stands.
    ///
    /// # Errors
    /// When that point does not allow one.
    fn finish(self) -> Result<Self::Output>;
}

/// What an iteration optimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objective {
    /// In words: `log-likelihood`, `captured variance`.
    pub name: &'static str,
    /// What its values must not do.
    pub guard: Guard,
}

/// What the objective must not do from one step to the next, but for rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Fall: it is maximised.
    NeverFalls,
    /// Rise: it is minimised.
    NeverRises,
    /// It may move either way: the method reaches its optimum without being monotone.
    Free,
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The objective at the new point.
    pub objective: f64,
    /// The measure that decides about convergence.
    pub change: f64,
}

/// When a loop ends at the latest, and when its result is good enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// What [`Iteration::converged`] compares with; each method says what it measures.
    pub tolerance: f64,
    /// Most steps.
    pub iterations: usize,
}

impl Limits {
    /// Whether the limits make sense: the only place that says so.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a tolerance that is not finite and positive, or no steps at all.
    pub(crate) fn check(self) -> Result<()> {
        let Self { tolerance, iterations } = self;
        if !(tolerance.is_finite() && tolerance > 0.0) {
            let (name, value) = ("the tolerance", tolerance.to_string());
            return Err(Error::Parameter { name, value, allowed: "finite and positive" });
        }
        if iterations == 0 {
            let (name, value) = ("the limit on iterations", iterations.to_string());
            return Err(Error::Parameter { name, value, allowed: "at least 1" });
        }
        Ok(())
    }
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The result is as good as was asked for.
    Converged,
    /// No better point can be found, though the result is not as good as was asked for. More steps would not
    /// help.
    Stalled,
    /// The limit on iterations was reached.
    IterationLimit,
    /// The caller asked to stop; the result so far is usable.
    Interrupted,
}

/// How a loop went.
#[derive(Debug, Clone, PartialEq)]
pub struct Journey {
    /// Why it ended.
    pub stop: Stop,
    /// The objective after each step.
    pub trace: Vec<f64>,
    /// Passes over the rows.
    pub passes: usize,
}

/// Repeats steps until the method has converged or stalled, the limit is reached or the caller asks to stop.
///
/// # Errors
/// Those of the steps; [`Error::ObjectiveWorsened`] when the objective moves the wrong way by more than
/// rounding; [`Error::Interrupted`] when the caller asks to stop before the first step is through.
pub fn drive<I: Iteration>(
    mut iteration: I,
    limits: Limits,
    control: &Control<'_>,
) -> Result<(I::Output, Journey)> {
    let Objective { name: measure, guard } = iteration.objective();
    let mut trace: Vec<f64> = Vec::new();
    let stop = loop {
        if iteration.converged(limits.tolerance) {
            break Stop::Converged;
        }
        if trace.len() >= limits.iterations {
            break Stop::IterationLimit;
        }
        let step = match control.check().and_then(|()| iteration.step(control)) {
            Err(Error::Interrupted) if !trace.is_empty() => break Stop::Interrupted,
            other => other?,
        };
        let Some(Step { objective, change }) = step else { break Stop::Stalled };
        guard.check(&trace, objective, iteration.rounding())?;
        trace.push(objective);
        control.emit(Event::Iteration { number: trace.len(), measure, objective, change });
    };
    let passes = iteration.passes();
    Ok((iteration.finish()?, Journey { stop, trace, passes }))
}

impl Guard {
    /// An objective that moves the wrong way is an error, not a value.
    fn check(self, trace: &[f64], after: f64, rounding: f64) -> Result<()> {
        let Some(&before) = trace.last() else { return Ok(()) };
        let loss = match self {
            Self::NeverFalls => before - after,
            Self::NeverRises => after - before,
            Self::Free => 0.0,
        };
        let most = rounding.max(ROUNDING * before.abs().max(after.abs()));
        let wrong = after.is_nan() || loss > most;
        if wrong {
            Err(Error::ObjectiveWorsened { iteration: trace.len() + 1, before, after })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn an_objective_that_moves_the_wrong_way_is_an_error() {
        let falls = |trace: &[f64], after, rounding| Guard::NeverFalls.check(trace, after, rounding);
        assert!(falls(&[1.0], 1.0 - 1e-12, 0.0).is_ok());
        assert!(matches!(falls(&[2.0, 1.0], 0.9, 0.0), Err(Error::ObjectiveWorsened { iteration: 3, .. })));
        assert!(falls(&[1.0], 0.9, 0.2).is_ok());
        assert!(falls(&[1.0], f64::NAN, 0.1).is_err());
        assert!(Guard::NeverRises.check(&[1.0], 0.9, 0.0).is_ok());
        assert!(Guard::NeverRises.check(&[0.9], 1.0, 0.0).is_err());
        assert!(Guard::Free.check(&[0.9], 1.0, 0.0).is_ok() && Guard::Free.check(&[1.0], 0.9, 0.0).is_ok());
        assert!(Guard::Free.check(&[1.0], f64::NAN, 0.0).is_err());
    }

    #[test]
    fn limits_that_make_no_sense_are_refused() {
        let check = |tolerance, iterations| Limits { tolerance, iterations }.check();
        assert!(check(1e-8, 1).is_ok());
        for tolerance in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = check(tolerance, 10).unwrap_err();
            assert!(matches!(error, Error::Parameter { name: "the tolerance", .. }), "{error}");
        }
        let error = check(1e-8, 0).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "the limit on iterations", .. }), "{error}");
    }

    /// Halves a number; below some size there is no smaller one.
    struct Halving<'a> {
        x: f64,
        least: f64,
        cancel_at: Option<(f64, &'a AtomicBool)>,
    }

    impl Iteration for Halving<'_> {
        type Output = f64;

        fn objective(&self) -> Objective {
            Objective { name: "a number", guard: Guard::NeverRises }
        }

        fn converged(&self, tolerance: f64) -> bool {
            self.x <= tolerance
        }

        fn step(&mut self, _: &Control<'_>) -> Result<Option<Step>> {
            let next = 0.5 * self.x;
            if next < self.least {
                return Ok(None);
            }
            if let Some((_, flag)) = self.cancel_at.filter(|(x, _)| *x == next) {
                flag.store(true, Ordering::Relaxed);
            }
            self.x = next;
            Ok(Some(Step { objective: next, change: next }))
        }

        fn finish(self) -> Result<f64> {
            Ok(self.x)
        }
    }

    #[test]
    fn a_loop_ends_in_one_of_four_ways() {
        let run = |x: f64, least: f64, tolerance: f64, iterations: usize| {
            let limits = Limits { tolerance, iterations };
            drive(Halving { x, least, cancel_at: None }, limits, &Control::new()).unwrap()
        };
        let (x, journey) = run(8.0, 0.0, 1.0, 10);
        assert_eq!((x, journey.stop, journey.trace), (1.0, Stop::Converged, vec![4.0, 2.0, 1.0]));
        assert_eq!(run(8.0, 3.0, 1.0, 10).1.stop, Stop::Stalled);
        assert_eq!(run(8.0, 0.0, 1.0, 2).1.stop, Stop::IterationLimit);
        // Exactly at the limit, and before the first step: converged all the same.
        assert_eq!(run(8.0, 0.0, 1.0, 3).1.stop, Stop::Converged);
        assert_eq!(run(1.0, 0.0, 1.0, 3), (1.0, Journey { stop: Stop::Converged, trace: vec![], passes: 0 }));
        let flag = AtomicBool::new(false);
        let control = Control::new().cancel(&flag);
        let limits = Limits { tolerance: 1.0, iterations: 10 };
        let halving = || Halving { x: 8.0, least: 0.0, cancel_at: Some((4.0, &flag)) };
        let (x, journey) = drive(halving(), limits, &control).unwrap();
        assert_eq!((x, journey.stop), (4.0, Stop::Interrupted));
        assert!(matches!(drive(halving(), limits, &control), Err(Error::Interrupted)));
    }

    #[test]
    fn the_words_of_a_report_stay() {
        let words = [Stop::Converged, Stop::Stalled, Stop::IterationLimit, Stop::Interrupted]
            .map(|stop| serde_json::to_string(&stop).unwrap());
        assert_eq!(words, ["\"converged\"", "\"stalled\"", "\"iteration_limit\"", "\"interrupted\""]);
    }
}

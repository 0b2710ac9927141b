//! All rows at once: limited-memory BFGS \[LN89\], whose objective only falls.

use super::stopping::Course;
use super::{Place, Trained, Training};
use crate::algorithm::optimise::{Ascent, Smooth};
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::{Error, Result};

/// Past steps that are remembered.
const MEMORY: usize = 12;

/// Minus the objective, which the ascent climbs. One pass gives the value and its derivatives.
impl Smooth for Training<'_> {
    type Found = Place;

    fn name(&self) -> &'static str {
        self.measure_name()
    }

    fn value(&self, numbers: &[f64], control: &Control<'_>) -> Result<(f64, Place)> {
        let there = self.measure(numbers.to_vec(), control)?;
        match there.objective.is_finite() {
            true => Ok((-there.objective, there)),
            false => Err(Error::NotFinite { what: "the loss of the network" }),
        }
    }

    fn gradient(&self, _: &[f64], there: &Place, _: &Control<'_>) -> Result<Vec<f64>> {
        Ok(there.gradient.iter().map(|g| -g).collect())
    }

    /// Rows are seen in a unit in which all weights are of about size 1.
    fn inverse_curvature(&self, numbers: &[f64]) -> Vec<f64> {
        vec![1.0; numbers.len()]
    }

    /// The course of the search compares gains, with what the objective is there.
    fn size(&self) -> f64 {
        1.0
    }
}

/// The search, at the point where it stands: an ascent that ends when hidden cells are predicted no better.
pub(crate) struct Descent<'a> {
    training: &'a Training<'a>,
    ascent: Ascent<'a, Training<'a>>,
    course: Course,
}

impl<'a> Descent<'a> {
    /// At the start, after a pass that looks at it.
    ///
    /// # Errors
    /// [`Error::NotFinite`] when there is no loss there.
    pub(crate) fn new(training: &'a Training<'a>, control: &Control<'_>) -> Result<Self> {
        let ascent = Ascent::at(training, training.start.numbers(), MEMORY, control)?;
        let course = Course::new(&ascent.found, false);
        Ok(Self { training, ascent, course })
    }
}

impl Iteration for Descent<'_> {
    type Output = Trained;

    fn objective(&self) -> Objective {
        Objective { name: self.training.measure_name(), guard: Guard::NeverRises }
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.course.is_flat(self.training, &self.ascent.found) || self.course.ended(self.training, tolerance)
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let before = self.ascent.found.objective;
        if self.ascent.step(control)?.is_none() {
            return Ok(None);
        }
        let there = &self.ascent.found;
        self.course.add(there);
        Ok(Some(Step { objective: there.objective, change: before - there.objective }))
    }

    fn passes(&self) -> usize {
        self.ascent.evaluations
    }

    fn finish(self) -> Result<Trained> {
        Ok(self.course.finish())
    }
}

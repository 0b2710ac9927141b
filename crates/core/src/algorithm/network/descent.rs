//! All rows at once: limited-memory BFGS \[LN89\], whose objective only falls.

use super::stopping::Course;
use super::{Place, Trained, Training};
use crate::algorithm::optimise::{QuasiNewton, halved};
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::dot;

/// How often a step is halved before it is given up.
const HALVINGS: usize = 30;
/// Share of what the slope promises that a step must gain (Armijo's rule).
const SHARE: f64 = 1e-4;

/// The search, at the point where it stands.
pub(crate) struct Descent<'a> {
    training: Training<'a>,
    at: Place,
    newton: QuasiNewton,
    course: Course,
    passes: usize,
}

impl<'a> Descent<'a> {
    /// At the start, after a pass that looks at it.
    ///
    /// # Errors
    /// [`Error::NotFinite`] when there is no loss there.
    pub(crate) fn new(training: Training<'a>, control: &Control<'_>) -> Result<Self> {
        let at = training.measure(training.start.numbers(), control)?;
        if !at.objective.is_finite() {
            return Err(Error::NotFinite { what: "the loss of the network" });
        }
        let course = Course::new(&at, false);
        let mut search = Self { training, at, newton: QuasiNewton::default(), course, passes: 1 };
        search.observe();
        Ok(search)
    }

    /// The optimiser maximises, the objective is minimised.
    fn observe(&mut self) {
        let uphill: Vec<f64> = self.at.gradient.iter().map(|g| -g).collect();
        self.newton.observe(&self.at.numbers, &uphill);
    }

    /// Where the past says to go, if that is downhill.
    fn remembered(&self) -> Option<Vec<f64>> {
        let next = self.newton.propose(<[f64]>::to_vec)?;
        let step: Vec<f64> = next.iter().zip(&self.at.numbers).map(|(to, from)| to - from).collect();
        (dot(&step, &self.at.gradient) < 0.0).then_some(step)
    }

    /// Against the gradient, by at most a length of 1.
    fn plain(&self) -> Vec<f64> {
        let length = dot(&self.at.gradient, &self.at.gradient).sqrt();
        self.at.gradient.iter().map(|g| -g / length.max(1.0)).collect()
    }

    /// The first point along a step, halved again and again, that is lower. One where there is no loss is not.
    fn along(&mut self, step: &[f64], control: &Control<'_>) -> Result<Option<Place>> {
        let slope = dot(step, &self.at.gradient);
        let (training, at, mut passes) = (&self.training, &self.at, 0);
        let found = halved(1.0, HALVINGS, |length| {
            let numbers = at.numbers.iter().zip(step).map(|(x, d)| x + length * d).collect();
            passes += 1;
            let there = match training.measure(numbers, control) {
                Err(Error::NotFinite { .. }) => return Ok(None),
                there => there?,
            };
            Ok((there.objective < at.objective + SHARE * length * slope).then_some(there))
        });
        self.passes += passes;
        found
    }
}

impl Iteration for Descent<'_> {
    type Output = Trained;

    fn objective(&self) -> Objective {
        let name =
            if self.training.start.encoder.is_some() { "mean loss" } else { "negative log-likelihood" };
        Objective { name, guard: Guard::NeverRises }
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.course.is_flat(&self.training, &self.at) || self.course.ended(&self.training, tolerance)
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let mut found = None;
        if let Some(step) = self.remembered() {
            found = self.along(&step, control)?;
        }
        if found.is_none() {
            self.newton = self.newton.fresh();
            self.observe();
            found = self.along(&self.plain(), control)?;
        }
        let Some(there) = found else { return Ok(None) };
        let change = self.at.objective - there.objective;
        self.at = there;
        self.course.add(&self.at);
        self.observe();
        Ok(Some(Step { objective: self.at.objective, change }))
    }

    fn passes(&self) -> usize {
        self.passes
    }

    fn finish(self) -> Result<Trained> {
        Ok(self.course.finish())
    }
}

//! The way up a smooth function by limited-memory BFGS: steps that are halved until they gain enough.

use super::{QuasiNewton, halved};
use crate::algorithm::drive::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::{Error, Result};

/// Share of what the slope promises that a step must gain (Armijo).
const LEAST_SHARE: f64 = 1e-4;
/// Halvings of a step before another direction is tried.
const HALVINGS: usize = 30;
/// Largest change of a variable in the first step, before anything is known of the curvature, and in others.
const FIRST: f64 = 0.3;
const LARGEST: f64 = 3.0;
/// Steps over which gains are averaged: a single one may be small by chance.
const WINDOW: usize = 10;

/// A function to be maximised whose variables are all of about size 1: logarithms, or coordinates of unit spread.
pub(crate) trait Smooth {
    /// What is known where the value is, and the gradient needs.
    type Found;

    /// What it is called.
    fn name(&self) -> &'static str;

    /// The value; an error where there is none.
    fn value(&self, x: &[f64], control: &Control<'_>) -> Result<(f64, Self::Found)>;

    fn gradient(&self, x: &[f64], found: &Self::Found, control: &Control<'_>) -> Result<Vec<f64>>;

    /// A guess of the inverse of minus the second derivatives: a number above 0 for each variable; 0 holds it.
    fn inverse_curvature(&self, x: &[f64]) -> Vec<f64>;

    /// What gains are divided by before they are compared with the tolerance.
    fn size(&self) -> f64;
}

/// Where an ascent stands.
pub(crate) struct Ascent<'a, S: Smooth> {
    surface: &'a S,
    newton: QuasiNewton,
    pub(crate) x: Vec<f64>,
    pub(crate) found: S::Found,
    value: f64,
    gradient: Vec<f64>,
    values: Vec<f64>,
    /// How often the value was computed.
    pub(crate) evaluations: usize,
}

/// A point that is good enough.
struct Better<F> {
    x: Vec<f64>,
    value: f64,
    found: F,
}

impl<'a, S: Smooth> Ascent<'a, S> {
    /// At a point; `memory` past steps are remembered.
    pub(crate) fn at(surface: &'a S, x: Vec<f64>, memory: usize, control: &Control<'_>) -> Result<Self> {
        let (value, found) = surface.value(&x, control)?;
        if !value.is_finite() {
            return Err(Error::Scale);
        }
        let gradient = surface.gradient(&x, &found, control)?;
        let newton = QuasiNewton::remembering(memory);
        let values = vec![value];
        let mut ascent = Self { surface, newton, x, found, value, gradient, values, evaluations: 1 };
        ascent.observe();
        Ok(ascent)
    }

    /// The gradient of what may move.
    fn observe(&mut self) {
        let allowed = self.surface.inverse_curvature(&self.x);
        self.gradient.iter_mut().zip(&allowed).filter(|(_, d)| **d == 0.0).for_each(|(g, _)| *g = 0.0);
        self.newton.observe(&self.x, &self.gradient);
    }

    /// The direction that the past proposes, where it leads up.
    fn proposed(&self) -> Option<Vec<f64>> {
        let inverse = self.surface.inverse_curvature(&self.x);
        let times = |g: &[f64]| g.iter().zip(&inverse).map(|(g, d)| g * d).collect();
        let next = self.newton.propose(times)?;
        let direction: Vec<f64> = next.iter().zip(&self.x).map(|(a, b)| a - b).collect();
        (self.slope(&direction) > 0.0).then(|| limited(direction, LARGEST))
    }

    fn steepest(&self) -> Vec<f64> {
        let inverse = self.surface.inverse_curvature(&self.x);
        limited(self.gradient.iter().zip(&inverse).map(|(g, d)| g * d).collect(), FIRST)
    }

    fn slope(&self, direction: &[f64]) -> f64 {
        direction.iter().zip(&self.gradient).map(|(d, g)| d * g).sum()
    }

    /// The first of ever shorter steps that gains enough.
    fn search(&mut self, direction: &[f64], control: &Control<'_>) -> Result<Option<Better<S::Found>>> {
        let slope = self.slope(direction);
        if slope.is_nan() || slope <= 0.0 {
            return Ok(None);
        }
        let mut tried = 0;
        let found = halved(1.0, HALVINGS, |length| {
            let x: Vec<f64> = self.x.iter().zip(direction).map(|(x, d)| x + length * d).collect();
            tried += 1;
            let (value, found) = match self.surface.value(&x, control) {
                Err(error) if is_of_the_rows(&error) => return Err(error),
                Err(_) => return Ok(None),
                Ok(there) => there,
            };
            let enough = value.is_finite() && value > self.value + LEAST_SHARE * length * slope;
            Ok(enough.then_some(Better { x, value, found }))
        });
        self.evaluations += tried;
        found
    }

    /// What the last steps have gained on average, divided by the size.
    fn gain(&self) -> f64 {
        match self.values.len() {
            n if n <= WINDOW => f64::INFINITY,
            n => (self.value - self.values[n - 1 - WINDOW]) / (WINDOW as f64 * self.surface.size()),
        }
    }
}

/// Whether an error has nothing to do with the point: rows cannot be read, or somebody asks to stop.
fn is_of_the_rows(error: &Error) -> bool {
    matches!(error, Error::Interrupted | Error::Source { .. } | Error::Memory { .. })
}

/// A direction in which no variable changes by more than this.
fn limited(direction: Vec<f64>, most: f64) -> Vec<f64> {
    let largest = direction.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
    match largest > most {
        true => direction.iter().map(|d| d * most / largest).collect(),
        false => direction,
    }
}

impl<S: Smooth> Iteration for Ascent<'_, S> {
    type Output = (Vec<f64>, f64);

    fn objective(&self) -> Objective {
        Objective { name: self.surface.name(), guard: Guard::NeverFalls }
    }

    /// The mean gain of the last ten steps, divided by the size, is below the tolerance.
    fn converged(&self, tolerance: f64) -> bool {
        self.gain() <= tolerance
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let mut found = match self.proposed() {
            Some(direction) => self.search(&direction, control)?,
            None => None,
        };
        if found.is_none() {
            self.newton = self.newton.fresh();
            self.newton.observe(&self.x, &self.gradient);
            let steepest = self.steepest();
            found = self.search(&steepest, control)?;
        }
        let Some(Better { x, value, found }) = found else { return Ok(None) };
        let gradient = self.surface.gradient(&x, &found, control)?;
        (self.x, self.value, self.found, self.gradient) = (x, value, found, gradient);
        self.values.push(value);
        self.observe();
        Ok(Some(Step { objective: value, change: self.gain() }))
    }

    fn passes(&self) -> usize {
        self.evaluations
    }

    fn finish(self) -> Result<Self::Output> {
        Ok((self.x, self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::drive::{Limits, Stop, drive};

    /// −log(1 + 100 (b − a²)² + (1 − a)²): Rosenbrock's valley, its top 0 at (1, 1); none below a = −5.
    struct Valley {
        held: bool,
    }

    impl Smooth for Valley {
        type Found = f64;

        fn name(&self) -> &'static str {
            "valley"
        }

        fn value(&self, x: &[f64], _: &Control<'_>) -> Result<(f64, f64)> {
            let inside = 1.0 + 100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2);
            if x[0] < -5.0 { Err(Error::Scale) } else { Ok((-inside.ln(), inside)) }
        }

        fn gradient(&self, x: &[f64], inside: &f64, _: &Control<'_>) -> Result<Vec<f64>> {
            let off = x[1] - x[0] * x[0];
            let by = [-400.0 * off * x[0] - 2.0 * (1.0 - x[0]), 200.0 * off];
            Ok(by.iter().map(|d| -d / inside).collect())
        }

        fn inverse_curvature(&self, _: &[f64]) -> Vec<f64> {
            vec![1.0, if self.held { 0.0 } else { 1.0 }]
        }

        fn size(&self) -> f64 {
            1.0
        }
    }

    #[test]
    fn a_bent_valley_is_followed_to_its_top() {
        let control = Control::new();
        let ascent = Ascent::at(&Valley { held: false }, vec![-1.2, 1.0], 5, &control).unwrap();
        let limits = Limits { tolerance: 1e-15, iterations: 500 };
        let ((x, value), journey) = drive(ascent, limits, &control).unwrap();
        assert!(matches!(journey.stop, Stop::Converged | Stop::Stalled), "{:?}", journey.stop);
        assert!(
            (x[0] - 1.0).abs() < 1e-5 && (x[1] - 1.0).abs() < 1e-5 && value.abs() < 1e-9,
            "{x:?} {value}"
        );
    }

    #[test]
    fn a_variable_that_is_held_stays() {
        let control = Control::new();
        let ascent = Ascent::at(&Valley { held: true }, vec![-1.2, 4.0], 5, &control).unwrap();
        let ((x, _), _) = drive(ascent, Limits { tolerance: 1e-12, iterations: 200 }, &control).unwrap();
        // With b = 4, 400 a³ − 1598 a − 2 = 0 at the top: a = −1.99812….
        assert_eq!(x[1], 4.0);
        assert!((400.0 * x[0].powi(3) - 1598.0 * x[0] - 2.0).abs() < 1e-2, "{x:?}");
    }
}

//! Batches of rows: Adam \[KB15\], for more rows than all of which can be looked at hundreds of times.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::stopping::Course;
use super::{Place, Trained, Training};
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::data::{Chunk, RowSource};
use crate::error::{Error, Result};

/// Length of a step, and how fast the means of slopes and of their squares forget.
const RATE: f64 = 3e-3;
const FORGET: (f64, f64) = (0.9, 0.999);
/// Keeps steps finite where a slope has always been 0.
const LEAST: f64 = 1e-8;
/// Rows of a batch, about: with fewer chance leads, with more an epoch has few steps.
const BATCH_ROWS: usize = 512;
/// Pieces of a batch, which threads share.
const PIECES: usize = 4;
/// The stream of the generator that orders batches.
const STREAM: u64 = 0xada;

/// The search, at the point where it stands. A step is an epoch: each row once, in batches whose order is drawn anew.
pub(crate) struct Adam<'a> {
    training: Training<'a>,
    at: Place,
    mean: Vec<f64>,    // of slopes
    squares: Vec<f64>, // mean of squared slopes
    steps: i32,
    rate: f64,
    rng: ChaCha8Rng,
    course: Course,
    passes: usize,
}

impl<'a> Adam<'a> {
    /// At the start, after a pass that looks at it.
    ///
    /// # Errors
    /// [`Error::NotFinite`] when there is no loss there.
    pub(crate) fn new(training: Training<'a>, seed: u64, control: &Control<'_>) -> Result<Self> {
        let at = training.measure(training.start.numbers(), control)?;
        if !at.objective.is_finite() {
            return Err(Error::NotFinite { what: "the loss of the network" });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM);
        let (course, n) = (Course::new(&at, true), at.numbers.len());
        let (mean, squares) = (vec![0.0; n], vec![0.0; n]);
        Ok(Self { training, at, mean, squares, steps: 0, rate: RATE, rng, course, passes: 1 })
    }

    /// One step against the slopes of a batch, each divided by its usual size.
    fn move_by(&mut self, numbers: &mut [f64], gradient: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        let (a, b) = FORGET;
        let unbiased = (1.0 - a.powi(self.steps), 1.0 - b.powi(self.steps));
        for (k, g) in gradient.iter().enumerate() {
            self.mean[k] = a * self.mean[k] + (1.0 - a) * g;
            self.squares[k] = b * self.squares[k] + (1.0 - b) * g * g;
            let size = (self.squares[k] / unbiased.1).sqrt() + LEAST;
            numbers[k] -= self.rate * (self.mean[k] / unbiased.0) / size;
        }
    }

    /// Each row once.
    fn epoch(&mut self, control: &Control<'_>) -> Result<Vec<f64>> {
        let mut order: Vec<usize> = (0..self.training.rows.n_chunks()).collect();
        order.shuffle(&mut self.rng);
        let mut numbers = self.at.numbers.clone();
        for index in order {
            control.check()?;
            let chunk = self.training.rows.chunk(index)?;
            for rows in batches(chunk.nrows()) {
                let batch = Batch::new(&chunk, rows);
                match self.training.measure_on(&batch, numbers.clone(), &control.quiet()) {
                    Err(Error::NoRows) => {} // all of them hidden, empty or of no weight
                    place => self.move_by(&mut numbers, &place?.gradient),
                }
            }
        }
        Ok(numbers)
    }
}

/// Where the batches of so many rows begin and end.
fn batches(rows: usize) -> Vec<Range<usize>> {
    let count = (rows / BATCH_ROWS).max(1);
    (0..count).map(|k| k * rows / count..(k + 1) * rows / count).collect()
}

/// Some rows of a chunk, in pieces.
struct Batch<'a> {
    pieces: Vec<Chunk<'a>>,
    features: usize,
}

impl<'a> Batch<'a> {
    fn new(chunk: &'a Chunk<'_>, rows: Range<usize>) -> Self {
        let (first, n) = (rows.start, rows.len());
        let piece = |k: usize| chunk.part(first + k * n / PIECES..first + (k + 1) * n / PIECES);
        Self { pieces: (0..PIECES).map(piece).collect(), features: chunk.ncols() }
    }
}

impl RowSource for Batch<'_> {
    fn n_features(&self) -> usize {
        self.features
    }

    fn n_chunks(&self) -> usize {
        self.pieces.len()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        Ok(self.pieces[index].borrowed())
    }
}

impl Iteration for Adam<'_> {
    type Output = Trained;

    /// It falls on the whole, not in each epoch.
    fn objective(&self) -> Objective {
        Objective { name: self.training.measure_name(), guard: Guard::Free }
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.course.is_flat(&self.training, &self.at) || self.course.ended(&self.training, tolerance)
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let numbers = self.epoch(control)?;
        let there = self.training.measure(numbers, control)?;
        self.passes += 2;
        if !there.objective.is_finite() {
            return Ok(None);
        }
        let change = self.at.objective - there.objective;
        // Where an epoch did not help, steps were too long.
        if change <= 0.0 {
            self.rate *= 0.5;
        }
        self.at = there;
        self.course.add(&self.at);
        Ok(Some(Step { objective: self.at.objective, change }))
    }

    fn passes(&self) -> usize {
        self.passes
    }

    fn finish(self) -> Result<Trained> {
        Ok(self.course.finish())
    }
}

//! Fits with missing values that gain one component after the other, each starting where the last one ended.

use super::MissingCells;
use super::incomplete::StartingPoint;
use crate::algorithm::{Journey, Limits, Passes, Stop, drive, em};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::expectation::LatentParameters;
use crate::spectrum::Spectrum;

/// Where all components would start, and where those that have joined are now.
#[derive(Debug, Clone)]
pub(crate) struct Growth {
    start: LatentParameters,
    current: LatentParameters,
    floor: f64, // noise below it is rounding, in units
    rows: (usize, f64),
    tolerance: Option<f64>,
    max_iterations: usize,
}

/// What a first pass says about the fits to come.
pub(crate) struct IncompleteSummary {
    /// What is missing.
    pub(crate) holes: MissingCells,
    /// The largest number of components that the cells support.
    pub(crate) possible: usize,
}

/// The optimum for a number of components.
pub(crate) struct Grown {
    /// Of its covariance, with the log-likelihood of the observed cells.
    pub(crate) spectrum: Spectrum,
    /// Whether the rows lie in its plane, so that more components have nothing to explain.
    pub(crate) noiseless: bool,
    /// Whether it came to its end.
    pub(crate) converged: bool,
}

impl Growth {
    /// Begins with the first so many components of a start.
    pub(super) fn new(begin: &StartingPoint, first: usize) -> Self {
        Self {
            current: begin.parameters.leading(first),
            floor: begin.floor(),
            rows: (begin.census.rows(), begin.census.weight()),
            start: begin.parameters.clone(),
            tolerance: None,
            max_iterations: usize::MAX,
        }
    }

    /// With the limits of each stage.
    pub(super) fn within(self, tolerance: Option<f64>, max_iterations: usize) -> Self {
        Self { tolerance, max_iterations, ..self }
    }

    /// The largest number of components.
    pub(crate) fn most(&self) -> usize {
        self.start.n_latent()
    }

    /// Whether all components have joined.
    pub(super) fn is_whole(&self) -> bool {
        self.current.n_latent() == self.start.n_latent()
    }

    /// To the maximum near where the components are now.
    pub(super) fn climb(
        &self,
        tolerance: f64,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(em::Optimum, Journey)> {
        let stage = em::Em::new(self.current.clone(), self.floor);
        let limits = Limits { tolerance, iterations: self.max_iterations };
        drive(Passes::over(source, stage), limits, control)
    }

    /// Goes on from an optimum with one component more, in the direction that the start has for it.
    pub(super) fn join(&mut self, found: &em::Optimum) {
        // Rows that lie in a plane already leave nothing to join: all at once then.
        self.current =
            if found.noiseless { self.start.clone() } else { found.parameters.joined_by(&self.start) };
    }

    /// The optimum for the number of components that have joined, to so many nats per row unless told; the
    /// next time, for one more.
    ///
    /// # Errors
    /// Those of the rows and of the iteration; [`Error::Interrupted`] when the caller asks to stop.
    pub(crate) fn next(
        &mut self,
        tolerance: f64,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Grown> {
        let (found, journey) = self.climb(self.tolerance.unwrap_or(tolerance), source, control)?;
        if journey.stop == Stop::Interrupted {
            return Err(Error::Interrupted);
        }
        if !self.is_whole() {
            self.join(&found);
        }
        let (noiseless, converged) = (found.noiseless, journey.stop == Stop::Converged);
        Ok(Grown { spectrum: found.spectrum(self.rows)?, noiseless, converged })
    }
}

//! The leading directions in passes over the rows, for data that are large both ways: O(n·p·q) time, O(p·q)
//! memory.

use std::sync::Arc;

use super::refine::refine;
use super::{Components, Guard, Journey, Limits, Objective, Passes, RowIteration, Step, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::evidence::Sketch;
use crate::linalg::{BlockKrylov, Mat};
use crate::spectrum::{RawSpectrum, Spectrum};

/// When to stop, and where to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// Residual relative to each eigenvalue; the default suits double precision.
    pub(crate) tolerance: Option<f64>,
    pub(crate) max_iterations: usize,
}

/// The spectrum of the rows of any source: block Krylov \[MM15\] with the exact trace, so σ² stays exact.
pub(crate) fn solve(
    source: &dyn RowSource,
    q: usize,
    options: Options,
    control: &Control<'_>,
) -> Result<(Spectrum, Journey)> {
    let p = source.n_features();
    // One more row than components is needed, but how many there are is known only after a pass.
    Components::Count(q).resolve(source.n_rows().unwrap_or(usize::MAX), p, &[], 0.0)?;
    let limits = Limits {
        tolerance: options.tolerance.unwrap_or(BlockKrylov::TOLERANCE),
        iterations: options.max_iterations,
    };
    let krylov = BlockKrylov::new(p, q, options.seed).tolerance(limits.tolerance);
    let (mut raw, mut journey) =
        drive(Passes::over(source, LeadingDirections::new(krylov, q)), limits, control)?;
    journey.passes += usize::from(refine(&mut raw, source, control)?);
    Ok((Spectrum::new(raw)?, journey))
}

/// The iteration for the leading directions of the covariance.
struct LeadingDirections {
    krylov: BlockKrylov,
    block: Arc<Mat<f64>>,
    q: usize,
    summary: Option<(usize, f64, Vec<f64>, f64)>, // rows, weight, mean, total variance
    done: bool,
}

impl LeadingDirections {
    fn new(krylov: BlockKrylov, q: usize) -> Self {
        Self { block: Arc::new(krylov.next_block().to_owned()), krylov, q, summary: None, done: false }
    }
}

impl RowIteration for LeadingDirections {
    type Evidence = Sketch;
    type Output = RawSpectrum;

    fn objective(&self) -> Objective {
        Objective { name: "captured variance", guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> Sketch {
        Sketch::empty(Arc::clone(&self.block))
    }

    fn update(&mut self, sketch: Sketch) -> Result<Step> {
        let (rows, weight) = (sketch.rows(), sketch.weight());
        Components::Count(self.q).resolve(rows, self.block.nrows(), &[], 0.0)?;
        let mut image = sketch.image().to_owned(); // scatter × block
        image.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= weight));
        self.summary = Some((rows, weight, sketch.mean().to_vec(), sketch.trace() / weight));
        let step = self.krylov.absorb(image.as_ref())?;
        self.block = Arc::new(self.krylov.next_block().to_owned());
        self.done = step.done;
        Ok(Step { objective: step.captured, change: step.residual })
    }

    /// The block knows its tolerance, and what is rounding.
    fn converged(&self, _: f64) -> bool {
        self.done
    }

    fn finish(self) -> Result<RawSpectrum> {
        let found = self.krylov.into_eigen();
        let ((rows, weight, mean, total_variance), eigen) =
            self.summary.zip(found).ok_or(crate::Error::Interrupted)?;
        let (eigenvalues, vectors) = (eigen.values, eigen.vectors);
        Ok(RawSpectrum::new(mean, (eigenvalues, vectors), total_variance, (rows, weight)))
    }
}

//! A fit by the variational bound: PPCA's start, the noise held for the first steps, several choices of inducing points,
//! and the model of the best.

use std::time::Instant;

use super::super::{Details, Fit, Report};
use super::start::{Look, plan};
use super::{Gplvm, GplvmReport, INDUCING};
use crate::algorithm::gplvm::{Layout, VariationalBound};
use crate::algorithm::optimise::{Ascent, Smooth, best};
use crate::algorithm::{Journey, Limits, Stop, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::{Mat, descending, leading_entry};
use crate::memory;
use crate::model::{LatentProcess, ProcessParts, relevances};

/// Gain of a step per observed cell at which a search ends.
const TOLERANCE: f64 = 1e-5;
/// Steps at most.
const STEPS: usize = 1000;
/// Steps during which noise and variance of the kernel are held: free from the first step, they may end where all is
/// noise.
const HELD: usize = 50;
/// Steps after those, before the best of several starts goes on.
const ROUGH: usize = 50;
/// Past steps that are remembered, and numbers that they may take.
const MEMORY: usize = 50;
const MEMORY_NUMBERS: usize = 1 << 25;
const LEAST_MEMORY: usize = 8;
/// Variance of each position at the start, and by how much the noise is smaller than the data's variance.
const START_VARIANCE: f64 = 0.5;
const START_NOISE: f64 = 100.0;
/// α at the start is this divided by the squared range of the positions.
const START_RELEVANCE: f64 = 5.0;

/// Where one start has come to.
struct End {
    x: Vec<f64>,
    value: f64,
    journey: Journey,
}

impl End {
    /// One for each value, and one for the derivatives where a step ends.
    fn passes(&self) -> usize {
        self.journey.passes + self.journey.trace.len()
    }
}

impl Gplvm {
    pub(super) fn fit_bound(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<LatentProcess>> {
        let started = Instant::now();
        let look = Look::at(self, source, control)?;
        let layout = self.layout(&look);
        let depth = (MEMORY_NUMBERS / layout.len()).clamp(LEAST_MEMORY, MEMORY);
        memory::check("the past steps of the search", &[2 * depth + 12, layout.len()])?;
        let bound = VariationalBound {
            rows: source,
            layout,
            form: self.form,
            centre: look.mean.clone(),
            masked: look.holes.is_some(),
            cells: look.cells,
            held: false,
        };
        let mut ends = Vec::with_capacity(self.starts);
        for start in 0..self.starts {
            match self.climb(&bound, self.begin(&look, layout, start), depth, control) {
                // What other starts have found is a usable model.
                Err(Error::Interrupted) if !ends.is_empty() => break,
                end => ends.push(end?),
            }
            if ends.last().is_some_and(|end| end.journey.stop == Stop::Interrupted) {
                break;
            }
        }
        let winner = best(&ends, |end| -end.value, |a, b| a == b, |_| true).ok_or(Error::NoRows)?;
        let starts = ends.len();
        let interrupted = ends.iter().any(|end| end.journey.stop == Stop::Interrupted);
        let mut end = ends.swap_remove(winner);
        if interrupted {
            end.journey.stop = Stop::Interrupted;
        } else if self.starts > 1 {
            self.go_on(&bound, &mut end, depth, control)?;
        }
        let passes = ends.iter().map(End::passes).sum::<usize>() + end.passes();
        let mut fit = self.finish(&bound, end, &look, starts)?;
        fit.report.passes += passes;
        fit.report.seconds = started.elapsed().as_secs_f64();
        Ok(fit)
    }

    /// The number of inducing points: the axes of a linear kernel, which are all that it needs.
    fn layout(&self, look: &Look) -> Layout {
        let inducing = match self.form {
            LatentForm::Linear => look.latent,
            LatentForm::Rbf => self.inducing.unwrap_or(INDUCING).min(look.rows),
        };
        Layout { rows: look.scores.nrows(), inducing, latent: look.latent }
    }

    /// The vector at which a search begins.
    fn begin(&self, look: &Look, layout: Layout, start: usize) -> Vec<f64> {
        let (q, scores) = (look.latent, &look.scores);
        let position = |i: usize| (0..q).map(move |k| scores[(i, k)]);
        // Rows that say nothing have the prior.
        let variance = |i: usize| if look.counts[i] { START_VARIANCE } else { 1.0 };
        let mean = (0..scores.nrows())
            .flat_map(|i| position(i).map(move |x| (i, x)))
            .map(|(i, x)| if look.counts[i] { x } else { 0.0 });
        let mut x: Vec<f64> = mean.collect();
        x.extend((0..scores.nrows()).flat_map(|i| std::iter::repeat_n(variance(i).ln(), q)));
        match self.form {
            LatentForm::Linear => {
                x.extend((0..q * q).map(|i| f64::from(u8::from(i / q == i % q))));
                x.extend((0..q).map(|_| look.variance().ln()));
            }
            LatentForm::Rbf => {
                let drawn = look.drawn(layout.inducing, self.run.seed, start);
                x.extend(drawn.into_iter().flat_map(position));
                x.extend((0..q).map(|k| (START_RELEVANCE / range(scores.col_as_slice(k)).powi(2)).ln()));
            }
        }
        x.push(match self.form {
            LatentForm::Linear => 0.0,
            LatentForm::Rbf => look.variance().ln(),
        });
        x.push((START_NOISE / look.variance()).ln());
        x
    }

    fn limits(&self, iterations: usize) -> Limits {
        Limits { tolerance: self.run.tolerance.unwrap_or(TOLERANCE), iterations }
    }

    fn steps(&self) -> usize {
        self.run.max_iterations.unwrap_or(STEPS)
    }

    /// The first steps with the noise held, then with everything free: to the end, or so far that starts can be compared.
    fn climb(
        &self,
        bound: &VariationalBound<'_>,
        x: Vec<f64>,
        depth: usize,
        control: &Control<'_>,
    ) -> Result<End> {
        let limit = if self.starts > 1 { self.steps().min(HELD + ROUGH) } else { self.steps() };
        let held = VariationalBound { held: true, centre: bound.centre.clone(), ..*bound };
        let first = limit.min(HELD);
        let ascent = Ascent::at(&held, x, depth, control)?;
        let ((x, value), journey) = drive(ascent, self.limits(first), control)?;
        let mut end = End { x, value, journey };
        if end.journey.stop != Stop::Interrupted {
            self.free(bound, &mut end, limit, depth, control)?;
        }
        Ok(end)
    }

    /// Goes on with everything free until so many steps have been made in all.
    fn free(
        &self,
        bound: &VariationalBound<'_>,
        end: &mut End,
        limit: usize,
        depth: usize,
        control: &Control<'_>,
    ) -> Result<()> {
        let control = &control.after(end.journey.trace.len());
        let left = limit.saturating_sub(end.journey.trace.len());
        if left == 0 {
            end.journey.stop = Stop::IterationLimit;
            return Ok(());
        }
        let ascent = match Ascent::at(bound, end.x.clone(), depth, control) {
            Err(Error::Interrupted) => {
                end.journey.stop = Stop::Interrupted;
                return Ok(());
            }
            ascent => ascent?,
        };
        let ((x, value), journey) = match drive(ascent, self.limits(left), control) {
            Err(Error::Interrupted) => {
                end.journey.stop = Stop::Interrupted;
                return Ok(());
            }
            found => found?,
        };
        (end.x, end.value) = (x, value);
        end.journey.stop = journey.stop;
        end.journey.trace.extend(journey.trace);
        end.journey.passes += journey.passes;
        Ok(())
    }

    /// The best of several starts to its end.
    fn go_on(
        &self,
        bound: &VariationalBound<'_>,
        end: &mut End,
        depth: usize,
        control: &Control<'_>,
    ) -> Result<()> {
        match end.journey.stop {
            Stop::IterationLimit => self.free(bound, end, self.steps(), depth, control),
            _ => Ok(()),
        }
    }

    /// The model at the end of a search: dimensions in descending relevance, the largest position of each positive.
    fn finish(
        &self,
        bound: &VariationalBound<'_>,
        end: End,
        look: &Look,
        starts: usize,
    ) -> Result<Fit<LatentProcess>> {
        let (layout, control) = (bound.layout, Control::new());
        let (value, found) = bound.value(&end.x, &control)?;
        let function = bound.function(&end.x, &found)?;
        let (n, q, at) = (layout.rows, layout.latent, &found.at);
        let means = Mat::from_fn(n, q, |i, k| at.mean[i * q + k]);
        let kernel = at.psi.kernel();
        let axes = Axes::of(kernel.relevance(), &means);
        let divergence = axes.order.iter().map(|k| found.sums.divergence[*k] / look.weight).collect();
        let alpha = axes.order.iter().map(|k| kernel.relevance()[*k]).collect();
        let kernel = LatentKernel::new(kernel.form(), kernel.variance(), alpha)?;
        let points = at.psi.points();
        let inducing = match self.form {
            // The axes stay as they are, so that the weights are turned instead.
            LatentForm::Linear => points.clone(),
            LatentForm::Rbf => axes.turned(points),
        };
        let variances = Mat::from_fn(n, q, |i, k| at.variance[i * q + axes.order[k]]);
        let (weights, reduction) = match self.form {
            LatentForm::Linear => axes.turned_function(&function.weights, &function.reduction),
            LatentForm::Rbf => (function.weights, function.reduction),
        };
        let model = LatentProcess::new(ProcessParts {
            mean: look.mean.clone(),
            divisors: vec![1.0; look.mean.len()],
            kernel: kernel.clone(),
            bias: 0.0,
            noise: 1.0 / bound.precision(&end.x),
            inducing,
            weights,
            reduction,
            latent_mean: axes.turned(&means),
            latent_variance: variances,
        })?;
        let details = GplvmReport {
            method: self.method.name().into(),
            kernel: self.form.name().into(),
            kernel_variance: kernel.variance(),
            noise_variance: model.parts().noise,
            inducing: layout.inducing,
            asked: self.inducing.filter(|asked| *asked > layout.inducing && self.form == LatentForm::Rbf),
            objective: value,
            relevance: model.relevance(),
            divergence: Some(divergence),
            iterations: end.journey.trace.len(),
            starts,
        };
        let memory = 8 * layout.len() * (2 * MEMORY + 12);
        let reason = "a variational bound with inducing points, in two passes over the rows for each step";
        let report = Report {
            details: Some(Details::Gplvm(Box::new(details))),
            trace: end.journey.trace,
            ..look.report(plan(reason.into(), memory), end.journey.stop)
        };
        Ok(Fit { model, report })
    }
}

/// Largest minus smallest, at least a little.
fn range(column: &[f64]) -> f64 {
    let (least, most) =
        column.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    (most - least).max(1.0)
}

/// The order and the signs of latent dimensions.
pub(super) struct Axes {
    pub(super) order: Vec<usize>,
    signs: Vec<f64>,
}

impl Axes {
    /// In descending relevance, the position of largest magnitude positive.
    pub(super) fn of(alpha: &[f64], positions: &Mat<f64>) -> Self {
        let relevance = relevances(alpha, positions);
        let order = descending(&relevance);
        let sign = |k: &usize| {
            let column = positions.col_as_slice(*k);
            if column[leading_entry(column)] < 0.0 { -1.0 } else { 1.0 }
        };
        let signs = order.iter().map(sign).collect();
        Self { order, signs }
    }

    /// Coordinates (n × q) along the new axes.
    pub(super) fn turned(&self, coordinates: &Mat<f64>) -> Mat<f64> {
        let q = self.order.len();
        Mat::from_fn(coordinates.nrows(), q, |i, k| self.signs[k] * coordinates[(i, self.order[k])])
    }

    /// Weights and reductions of a linear kernel, whose points are the axes.
    fn turned_function(&self, weights: &Mat<f64>, reduction: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        use crate::linalg::{packed, packed_len};
        let q = self.order.len();
        let turned = Mat::from_fn(q, weights.ncols(), |k, j| self.signs[k] * weights[(self.order[k], j)]);
        let mut pairs = Mat::zeros(packed_len(q), reduction.ncols());
        for (a, b) in (0..q).flat_map(|a| (0..=a).map(move |b| (a, b))) {
            let (i, j) = (self.order[a].max(self.order[b]), self.order[a].min(self.order[b]));
            for g in 0..reduction.ncols() {
                pairs[(packed(a, b), g)] = self.signs[a] * self.signs[b] * reduction[(packed(i, j), g)];
            }
        }
        (turned, pairs)
    }
}

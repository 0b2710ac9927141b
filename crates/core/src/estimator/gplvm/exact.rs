//! A fit of the most probable positions, exactly: for few rows.

use std::time::Instant;

use super::super::{Details, Fit, Report};
use super::fit::Axes;
use super::start::{Look, plan};
use super::{Gplvm, GplvmReport};
use crate::algorithm::gplvm::ExactPosterior;
use crate::algorithm::optimise::{Ascent, Smooth};
use crate::algorithm::{Limits, drive};
use crate::control::Control;
use crate::data::{RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::{Mat, packed, packed_len};
use crate::memory;
use crate::model::{LatentProcess, ProcessParts};

/// Rows at most: time grows with their cube.
pub(super) const MOST_ROWS: usize = 2000;
/// As in the fit of the bound.
const TOLERANCE: f64 = 1e-5;
const STEPS: usize = 500;
const MEMORY: usize = 50;
/// Noise and bias at the start, as shares of the data's variance.
const START_NOISE: f64 = 0.1;
const START_BIAS: f64 = 0.01;

impl Gplvm {
    pub(super) fn fit_exact(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<LatentProcess>> {
        let started = Instant::now();
        check_rows(source.n_rows())?;
        let look = Look::at(self, source, control)?;
        let n = look.scores.nrows();
        check_rows(Some(n))?;
        let cells = centred(source, &look)?;
        memory::check("the covariance of the rows", &[8, n, n])?;
        let (q, variance) = (look.latent, look.variance());
        let posterior = ExactPosterior { cells, latent: q, variance };
        let mut x: Vec<f64> =
            (0..n).flat_map(|i| (0..q).map(move |k| (i, k))).map(|ik| look.scores[ik]).collect();
        x.extend([(START_BIAS * variance).ln(), (START_NOISE * variance).ln()]);
        let ascent = Ascent::at(&posterior, x, MEMORY, control)?;
        let limits = Limits {
            tolerance: self.run.tolerance.unwrap_or(TOLERANCE),
            iterations: self.run.max_iterations.unwrap_or(STEPS),
        };
        let ((x, _), journey) = drive(ascent, limits, control)?;
        let (value, found) = posterior.value(&x, &Control::new())?;
        let places = Mat::from_fn(n, q, |i, k| x[i * q + k]);
        let axes = Axes::of(&vec![1.0; q], &places);
        let mut reduction = Mat::zeros(packed_len(n), 1);
        for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            reduction[(packed(i, j), 0)] = found.inverse[(i, j)];
        }
        let latent_mean = axes.turned(&places);
        let model = LatentProcess::new(ProcessParts {
            mean: look.mean.clone(),
            divisors: vec![1.0; look.mean.len()],
            kernel: LatentKernel::new(LatentForm::Rbf, variance, vec![1.0; q])?,
            bias: x[posterior.bias()].exp(),
            noise: x[posterior.noise()].exp(),
            inducing: latent_mean.clone(),
            weights: found.weights,
            reduction,
            latent_variance: Mat::zeros(n, q),
            latent_mean,
        })?;
        let details = GplvmReport {
            method: self.method.name().into(),
            kernel: self.form.name().into(),
            kernel_variance: variance,
            noise_variance: model.parts().noise,
            inducing: n,
            asked: None,
            objective: value,
            relevance: model.relevance(),
            divergence: None,
            iterations: journey.trace.len(),
            starts: 1,
        };
        let reason = format!("the exact posterior of the positions of {n} rows");
        let report = Report {
            details: Some(Details::Gplvm(Box::new(details))),
            trace: journey.trace,
            seconds: started.elapsed().as_secs_f64(),
            ..look.report(plan(reason, 64 * n * n), journey.stop)
        };
        Ok(Fit { model, report })
    }
}

/// Too many rows are refused before any work.
fn check_rows(rows: Option<usize>) -> Result<()> {
    match rows {
        Some(n) if n > MOST_ROWS => Err(Error::Parameter {
            name: "the number of rows of an exact GP-LVM (method map)",
            value: n.to_string(),
            allowed: "at most 2000, because time grows with its cube; the method bayes takes any number",
        }),
        _ => Ok(()),
    }
}

/// The cells around their means (n × p): all there, and all rows alike.
pub(super) fn centred(source: &dyn RowSource, look: &Look) -> Result<Mat<f64>> {
    let p = source.n_features();
    let parts = map_chunks(source, |chunk| {
        if chunk.weights().is_some_and(|w| w.iter().any(|w| *w != 1.0)) {
            let (name, value) = ("the weights of an exact GP-LVM (method map)", "not all 1".into());
            return Err(Error::Parameter { name, value, allowed: "1; the method bayes takes weights" });
        }
        if chunk.has_missing() {
            let (name, value) = ("the data of an exact GP-LVM (method map)", "with missing values".into());
            return Err(Error::Parameter {
                name,
                value,
                allowed: "complete; the method bayes takes missing values",
            });
        }
        Ok(chunk.with_wide(|view| Mat::from_fn(view.nrows(), p, |i, j| view[(i, j)] - look.mean[j])))
    })?;
    let n = parts.iter().map(Mat::nrows).sum();
    let mut out = Mat::zeros(n, p);
    let mut first = 0;
    for part in &parts {
        out.as_mut().subrows_mut(first, part.nrows()).copy_from(part);
        first += part.nrows();
    }
    Ok(out)
}

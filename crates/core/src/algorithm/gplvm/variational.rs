//! The bound of a Bayesian GP-LVM as a function of one vector: positions, inducing points and parameters.

use std::sync::Arc;

use super::bound::{Collapsed, FunctionPosterior, JITTER};
use super::slopes::Slopes;
use crate::algorithm::optimise::Smooth;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{LatentPositions, PsiSums, gather};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::Mat;

/// Where the parts of the vector stand: μ and log S row after row (n · q each), Z row after row (M · q), log α (q),
/// log σ², log β.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) rows: usize,
    pub(crate) inducing: usize,
    pub(crate) latent: usize,
}

impl Layout {
    pub(crate) fn len(self) -> usize {
        self.noise() + 1
    }

    pub(crate) fn mean(self) -> std::ops::Range<usize> {
        0..self.rows * self.latent
    }

    pub(crate) fn log_variance(self) -> std::ops::Range<usize> {
        self.mean().end..2 * self.mean().end
    }

    pub(crate) fn points(self) -> std::ops::Range<usize> {
        let first = self.log_variance().end;
        first..first + self.inducing * self.latent
    }

    pub(crate) fn relevance(self) -> std::ops::Range<usize> {
        self.points().end..self.points().end + self.latent
    }

    pub(crate) fn kernel(self) -> usize {
        self.relevance().end
    }

    pub(crate) fn noise(self) -> usize {
        self.kernel() + 1
    }
}

/// The bound on rows.
pub(crate) struct VariationalBound<'a> {
    pub(crate) rows: &'a dyn RowSource,
    pub(crate) layout: Layout,
    pub(crate) form: LatentForm,
    pub(crate) centre: Vec<f64>,
    pub(crate) masked: bool,
    pub(crate) cells: f64, // observed cells, by weight
    pub(crate) held: bool, // whether noise and variance of the kernel stay as they are
}

/// What belongs to a value of the bound.
pub(crate) struct Found {
    pub(crate) at: Arc<LatentPositions>,
    pub(crate) sums: PsiSums,
    kernel: Mat<f64>, // K without its jitter (M × M)
    bound: Arc<Collapsed>,
}

impl VariationalBound<'_> {
    /// The positions and the kernel of a vector.
    pub(crate) fn positions(&self, x: &[f64]) -> Result<LatentPositions> {
        let Layout { inducing: m, latent: q, .. } = self.layout;
        let exp = |of: &[f64]| of.iter().map(|v| v.exp()).collect::<Vec<f64>>();
        let relevance = exp(&x[self.layout.relevance()]);
        let kernel = LatentKernel::new(self.form, x[self.layout.kernel()].exp(), relevance)?;
        let z = &x[self.layout.points()];
        let points = Mat::from_fn(m, q, |i, k| z[i * q + k]);
        let place = (x[self.layout.mean()].to_vec(), exp(&x[self.layout.log_variance()]));
        LatentPositions::new(kernel, points, place, self.centre.clone(), self.masked)
    }

    /// Noise precision β.
    pub(crate) fn precision(&self, x: &[f64]) -> f64 {
        x[self.layout.noise()].exp()
    }

    /// What predictions need, at a vector.
    pub(crate) fn function(&self, x: &[f64], found: &Found) -> Result<FunctionPosterior> {
        let kernel = with_jitter(&found.kernel, found.at.psi.kernel());
        FunctionPosterior::of(&kernel, &found.sums, self.precision(x))
    }
}

/// K with what is added to its diagonal. That of a linear kernel is diagonal itself.
fn with_jitter(kernel: &Mat<f64>, of: &LatentKernel) -> Mat<f64> {
    let mut out = kernel.clone();
    (0..out.nrows()).for_each(|i| out[(i, i)] += jitter(of));
    out
}

fn jitter(of: &LatentKernel) -> f64 {
    match of.form() {
        LatentForm::Rbf => JITTER * of.variance(),
        LatentForm::Linear => 0.0,
    }
}

impl Smooth for VariationalBound<'_> {
    type Found = Found;

    fn name(&self) -> &'static str {
        "bound"
    }

    fn value(&self, x: &[f64], control: &Control<'_>) -> Result<(f64, Found)> {
        let at = Arc::new(self.positions(x)?);
        let beta = self.precision(x);
        if !(beta.is_finite() && beta > 0.0) {
            return Err(Error::Scale);
        }
        let sums = gather(self.rows, || PsiSums::empty(Arc::clone(&at)), control)?;
        let points = at.psi.points();
        let kernel = at.psi.kernel().matrix(points.as_ref(), points.as_ref());
        let bound = Collapsed::of(&with_jitter(&kernel, at.psi.kernel()), &sums, beta)?;
        Ok((bound.value, Found { at, sums, kernel, bound: Arc::new(bound) }))
    }

    fn gradient(&self, x: &[f64], found: &Found, control: &Control<'_>) -> Result<Vec<f64>> {
        let Found { at, kernel, bound, .. } = found;
        let slopes = gather(self.rows, || Slopes::empty(Arc::clone(at), Arc::clone(bound)), control)?;
        let (psi, Layout { inducing: m, latent: q, .. }) = (&at.psi, self.layout);
        let mut out = Vec::with_capacity(x.len());
        let (by_mean, by_variance) = slopes.by_positions();
        out.extend(by_mean);
        out.extend(by_variance.iter().zip(&at.variance).map(|(d, s)| d * s));
        let (by_points, by_relevance) = psi.by_points(&slopes.sums);
        let of_kernel = psi.kernel().pull_back(psi.points(), kernel, &bound.by_kernel);
        let held_points = self.form == LatentForm::Linear;
        out.extend((0..m).flat_map(|i| (0..q).map(move |k| (i, k))).map(|ik| match held_points {
            true => 0.0,
            false => by_points[ik] + of_kernel.points[ik],
        }));
        let alpha = psi.kernel().relevance();
        out.extend((0..q).map(|k| alpha[k] * (by_relevance[k] + of_kernel.relevance[k])));
        let diagonal: f64 = (0..m).map(|i| bound.by_kernel[(i, i)]).sum();
        out.push(match self.form {
            LatentForm::Rbf => {
                slopes.sums.log_variance + of_kernel.log_variance + jitter(psi.kernel()) * diagonal
            }
            LatentForm::Linear => 0.0,
        });
        out.push(bound.by_log_precision);
        match out.iter().all(|g| g.is_finite()) {
            true => Ok(out),
            false => Err(Error::Scale),
        }
    }

    /// S for μ, 2 for log S, S·M/n for Z, 1/(1 + Σ μ²/4S) for log α, 2/(Mp) for log σ² and 2/cells for log β.
    fn inverse_curvature(&self, x: &[f64]) -> Vec<f64> {
        let (layout, Layout { rows: n, inducing: m, latent: q }) = (self.layout, self.layout);
        let mean = &x[layout.mean()];
        let variance: Vec<f64> = x[layout.log_variance()].iter().map(|v| v.exp()).collect();
        let mut spread = vec![0.0; q]; // Σ S
        let mut ratio = vec![0.0; q]; // Σ μ²/4S
        for (i, s) in variance.iter().enumerate() {
            spread[i % q] += s;
            ratio[i % q] += mean[i] * mean[i] / (4.0 * s);
        }
        let mut out = variance;
        out.resize(2 * n * q, 2.0);
        let linear = self.form == LatentForm::Linear;
        let point = |k: usize| if linear { 0.0 } else { spread[k] * m as f64 / (n as f64 * n as f64) };
        out.extend((0..m).flat_map(|_| (0..q).map(point)));
        out.extend(ratio.iter().map(|r| 1.0 / (1.0 + r)));
        let free = if self.held { 0.0 } else { 2.0 };
        out.push(if linear { 0.0 } else { free / (m as f64 * self.centre.len() as f64) });
        out.push(free / self.cells);
        out
    }

    fn size(&self) -> f64 {
        self.cells
    }
}

//! Dual PPCA: the likelihood of the columns given latent positions, in closed form \[L05\].
//!
//! With the loadings integrated out, column j of the centred table has N(0, XXᵀ + σ²I), n × n. It is maximal at
//! X = U(Λ − σ²I)^½ with the leading eigenvectors U and eigenvalues Λ of YYᵀ/p: the spectrum of PPCA, whose λ belong
//! to YᵀY/n, read with the roles of rows and columns exchanged, Λ = nλ/p. Positions are told as √n U, whose variance is 1, and the
//! rest of their length as relevances α = (Λ − σ²)/n of the linear kernel.

use std::time::Instant;

use super::super::{Details, Fit, Plan, Ppca, Report, Run, Solver};
use super::fit::Axes;
use super::start::Look;
use super::{Gplvm, GplvmReport};
use crate::algorithm::Stop;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::{Cholesky, Mat, packed, packed_len, product};
use crate::model::{LatentProcess, ProcessParts};

impl Gplvm {
    pub(super) fn fit_dual(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<LatentProcess>> {
        let started = Instant::now();
        let look = Look::at(self, source, control)?;
        let cells = super::exact::centred(source, &look)?;
        let run = Run { tolerance: None, max_iterations: None, ..self.run };
        let ppca = Ppca::new(look.latent).run(run).fit_with(source, control)?;
        let Some(spectrum) = ppca.report.spectrum else { return Err(Error::NoRows) };
        let (n, p, q) = (cells.nrows(), cells.ncols(), look.latent);
        let per = n as f64 / p as f64;
        let values: Vec<f64> = spectrum.eigenvalues().iter().take(q).map(|v| per * v).collect(); // Λ (q)
        let rest = (per * spectrum.total_variance() - values.iter().sum::<f64>()).max(0.0);
        let noise = rest / (n - q) as f64;
        if noise <= 0.0 || values.iter().any(|v| *v <= noise) {
            let (rows, features) = (look.rows, p);
            return Err(Error::Components { requested: q, possible: q - 1, rows, features });
        }
        // √n U = Y v/√λ for the directions v of PPCA.
        let along = product(cells.as_ref(), spectrum.vectors().as_ref().subcols(0, q));
        let places = Mat::from_fn(n, q, |i, k| along[(i, k)] * (per / values[k]).sqrt());
        let alpha: Vec<f64> = values.iter().map(|v| (v - noise) / n as f64).collect();
        let tau = std::f64::consts::TAU;
        let logs: f64 = values.iter().map(|v| v.ln()).sum::<f64>() + (n - q) as f64 * noise.ln();
        let objective = -0.5 * p as f64 * (n as f64 * (tau.ln() + 1.0) + logs);
        let axes = Axes::of(&alpha, &places);
        let (places, alpha) =
            (axes.turned(&places), axes.order.iter().map(|k| alpha[*k]).collect::<Vec<_>>());
        let (weights, reduction) = function(&places, &cells, &alpha, noise)?;
        let model = LatentProcess::new(ProcessParts {
            mean: look.mean.clone(),
            divisors: vec![1.0; p],
            kernel: LatentKernel::new(LatentForm::Linear, 1.0, alpha)?,
            bias: 0.0,
            noise,
            inducing: Mat::identity(q, q),
            weights,
            reduction,
            latent_variance: Mat::zeros(n, q),
            latent_mean: places,
        })?;
        let details = GplvmReport {
            method: self.method.name().into(),
            kernel: self.form.name().into(),
            kernel_variance: 1.0,
            noise_variance: noise,
            inducing: q,
            asked: None,
            objective,
            relevance: model.relevance(),
            divergence: None,
            iterations: 0,
            starts: 1,
        };
        let reason = "dual PPCA: the spectrum of the rows, read for columns".into();
        let plan = Plan { solver: Solver::Eigen, reason, memory: ppca.report.plan.memory };
        let report = Report {
            details: Some(Details::Gplvm(Box::new(details))),
            seconds: started.elapsed().as_secs_f64(),
            ..look.report(plan, Stop::Converged)
        };
        Ok(Fit { model, report })
    }
}

/// What is known of the loadings w ~ N(0, A) given the rows, A = diag α: their means ŵ = (XᵀX + σ²A⁻¹)⁻¹XᵀY as A⁻¹ŵ (q × p), and
/// their covariance Σ = σ²(XᵀX + σ²A⁻¹)⁻¹ as A⁻¹ − A⁻¹ΣA⁻¹ (q × q, packed).
fn function(places: &Mat<f64>, cells: &Mat<f64>, alpha: &[f64], noise: f64) -> Result<(Mat<f64>, Mat<f64>)> {
    let q = places.ncols();
    let mut inside = product(places.transpose(), places.as_ref());
    (0..q).for_each(|k| inside[(k, k)] += noise / alpha[k]);
    let factor = Cholesky::new(inside, "the positions' second moments")?;
    let mut means = product(places.transpose(), cells.as_ref());
    factor.solve(means.as_mut());
    let weights = Mat::from_fn(q, cells.ncols(), |k, j| means[(k, j)] / alpha[k]);
    let mut inverse = Mat::identity(q, q);
    factor.solve(inverse.as_mut());
    let mut reduction = Mat::zeros(packed_len(q), 1);
    for (i, j) in (0..q).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        let own = if i == j { 1.0 / alpha[i] } else { 0.0 };
        reduction[(packed(i, j), 0)] = own - noise * inverse[(i, j)] / (alpha[i] * alpha[j]);
    }
    Ok((weights, reduction))
}

//! Robust PPCA of rows that come in batches: the first is fitted, each other is a step of online EM.

use std::sync::Arc;
use std::time::Instant;

use super::{DegreesOfFreedom, RobustPpca, RobustReport};
use crate::algorithm::robust_step::online_step;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::estimator::online::of_model;
use crate::estimator::online_fit::census_of;
use crate::estimator::{Details, Fit, KeptEvidence, OnlineFit, Report, Solver, explained, with_threads};
use crate::evidence::{Census, StudentEvidence, gather};
use crate::expectation::{LatentParameters, Student};
use crate::memory;
use crate::model::LinearStudent;
use crate::spectrum::Spectrum;

impl RobustPpca {
    /// Takes in a batch of rows: a fit of the first, and for each other one step of online EM \[CM09\]. Its rows
    /// are weighted by the model so far, averaged with what is kept of the batches before, with a share that falls
    /// as t^-0.6, and the step is made from the average. It needs no second look at earlier rows, and comes near a
    /// fit of all rows, nearer when batches are given several times.
    ///
    /// A model that was fitted at once stands for its rows: as if they had exactly its location, scale and ν.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); when the model before is not of these features, or has no noise.
    pub fn step(
        &self,
        before: Option<&OnlineFit<LinearStudent>>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<LinearStudent>> {
        let Some(before) = before else { return self.begun(self.fit_with(rows, control)?, rows, control) };
        self.check()?;
        let stepped = with_threads(self.run.threads, || self.stepped(before, rows, control));
        stepped.map_err(|e| explained(e, rows, control))
    }

    /// The fit of the first batch, with the evidence that is kept of it.
    pub(super) fn begun(
        &self,
        fit: Fit<LinearStudent>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<LinearStudent>> {
        let collected = with_threads(self.run.threads, || {
            let census = census_of(rows, fit.model.n_features(), control)?;
            self.collect(&point_of(&fit.model)?, fit.model.degrees_of_freedom(), &census, rows, control)
        })?;
        let kept = collected.times(1.0 / collected.weight());
        let mut report = fit.report.first_of_batches(kept.log_likelihood());
        if let Some(Details::Robust(details)) = &mut report.details {
            details.online_steps = Some(1);
        }
        Ok(OnlineFit { fit: Fit { model: fit.model, report }, kept: Some(KeptEvidence::Robust(kept)) })
    }

    fn stepped(
        &self,
        before: &OnlineFit<LinearStudent>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<LinearStudent>> {
        let (started, OnlineFit { fit, kept }) = (Instant::now(), before);
        let census = census_of(rows, fit.model.n_features(), control)?;
        let kept = match kept {
            Some(KeptEvidence::Robust(kept)) => kept.clone(),
            _ => standing_for(fit)?,
        };
        let batch = self.collect(kept.parameters(), kept.degrees_of_freedom(), &census, rows, control)?;
        if batch.weight() == 0.0 {
            return Ok(before.clone());
        }
        let seen = fit.report.weight + census.weight();
        let next = online_step(&kept, &batch, seen, self.nu == DegreesOfFreedom::Auto)?;
        let mut report = self.reported(&fit.report, &census, &batch, &next)?;
        report.seconds = started.elapsed().as_secs_f64();
        let spectrum = report.spectrum.as_ref().ok_or(Error::NoRows)?;
        let model = LinearStudent::new(spectrum.ppca()?, next.degrees_of_freedom())?;
        Ok(OnlineFit { fit: Fit { model, report }, kept: Some(KeptEvidence::Robust(next)) })
    }

    /// What the rows of a batch say.
    fn collect(
        &self,
        parameters: &Arc<LatentParameters>,
        nu: f64,
        census: &Census,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<StudentEvidence> {
        let by_cells = census.missing() > 0 || rows.observed_only() || self.solver == Solver::Em;
        let empty = match by_cells || !self.moments_fit(rows.n_features()) {
            true => StudentEvidence::incomplete(Arc::clone(parameters), nu)?,
            false => StudentEvidence::complete(Arc::clone(parameters), nu)?,
        };
        gather(rows, || empty.clone(), control)
    }

    fn reported(
        &self,
        before: &Report,
        census: &Census,
        batch: &StudentEvidence,
        next: &StudentEvidence,
    ) -> Result<Report> {
        let known = before.robust();
        let steps = known.and_then(|r| r.online_steps).unwrap_or(usize::from(before.rows > 0)) + 1;
        let mut report = before.after_batch(census, steps, batch.log_likelihood() / batch.weight());
        let parameters = next.parameters();
        let noise = parameters.noise_variance(0);
        let (mean, w) = (parameters.mean().to_vec(), parameters.loadings());
        let spectrum = Spectrum::of_model(mean, w.as_ref(), noise, (report.rows, report.weight), f64::NAN)?;
        let (low, least) = batch.sums().map_or((0, 1.0), |sums| (sums.low, sums.least));
        report.details = Some(Details::Robust(RobustReport {
            degrees_of_freedom: Some(next.degrees_of_freedom()),
            found: self.nu == DegreesOfFreedom::Auto,
            low_rows: known.map_or(0, |r| r.low_rows) + low,
            least_weight: known.map_or(least, |r| r.least_weight.min(least)),
            online_steps: Some(steps),
        }));
        report.total_variance = spectrum.total_variance();
        report.components = spectrum.n_components();
        report.spectrum = Some(spectrum);
        Ok(report)
    }
}

/// The parameters of a model that has noise: without, no row would have a weight.
fn point_of(model: &LinearStudent) -> Result<Arc<LatentParameters>> {
    let (name, value) = ("the rows of a batch", "in a plane, without any noise".into());
    let allowed = "around the plane of the components: ask for fewer, or give more rows at first";
    of_model(model.scale()).map(Arc::new).ok_or(Error::Parameter { name, value, allowed })
}

/// A fitted model as evidence: as if its rows had exactly its location, scale and ν.
fn standing_for(fit: &Fit<LinearStudent>) -> Result<StudentEvidence> {
    let p = fit.model.n_features();
    memory::check("the covariance of the rows", &[2, p, p])?;
    let student = Student::new(fit.model.degrees_of_freedom())?;
    StudentEvidence::of_model(point_of(&fit.model)?, student, fit.report.rows)
}

//! Mixtures of rows that come in batches: the first is fitted, each other is a step of online EM.

use std::sync::Arc;
use std::time::Instant;

use super::fit::NEWTON_FEATURES;
use super::report::parameters;
use super::{Mixture, MixturePpca};
use crate::algorithm::MixtureEvidence;
use crate::algorithm::mixture::online_step;
use crate::control::Control;
use crate::data::{RowSource, counted_weight};
use crate::error::{Error, Result};
use crate::estimator::online_fit::census_of;
use crate::estimator::{
    Details, Fit, KeptEvidence, MixtureReport, OnlineFit, Report, explained, with_threads,
};
use crate::evidence::{Census, gather};
use crate::memory;
use crate::model::{LinearGaussian, Model};

impl MixturePpca {
    /// Takes in a batch of rows: a fit of the first, and for each other one step of online EM \[CM09\]. Its
    /// responsibilities and evidence under the mixture so far are averaged with what is kept of the batches
    /// before, with a share that falls as t^-0.6, and the step is made from the average. It needs no second look
    /// at earlier rows, and comes near a fit of all rows, nearer when batches are given several times.
    ///
    /// A mixture that was fitted at once stands for its rows: as if they had exactly the means and covariances of
    /// its components.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); when the mixture before is not of these features.
    pub fn step(
        &self,
        before: Option<&OnlineFit<Mixture>>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<Mixture>> {
        self.check_method()?;
        let Some(before) = before else { return self.begun(self.fit_with(rows, control)?, rows, control) };
        self.check()?;
        let stepped = with_threads(self.run.threads, || self.stepped(before, rows, control));
        stepped.map_err(|e| explained(e, rows, control))
    }

    /// Steps are those of maximum likelihood.
    fn check_method(&self) -> Result<()> {
        let (name, value) = ("the method of a mixture of batches", "variational Bayes".into());
        match self.variational {
            true => Err(Error::Parameter { name, value, allowed: "maximum likelihood; fit takes all rows" }),
            false => Ok(()),
        }
    }

    /// The fit of the first batch, with the evidence that is kept of it.
    pub(super) fn begun(
        &self,
        fit: Fit<Mixture>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<Mixture>> {
        self.check_method()?;
        let collected = with_threads(self.run.threads, || {
            let census = census_of(rows, fit.model.n_features(), control)?;
            self.collect(&Arc::new(fit.model.clone()), &census, rows, control)
        })?;
        let kept = collected.normalised();
        let mut report = fit.report.first_of_batches(kept.log_likelihood());
        if let Some(Details::Mixture(details)) = &mut report.details {
            details.online_steps = Some(1);
        }
        Ok(OnlineFit { fit: Fit { model: fit.model, report }, kept: Some(KeptEvidence::Mixture(kept)) })
    }

    fn stepped(
        &self,
        before: &OnlineFit<Mixture>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<Mixture>> {
        let (started, OnlineFit { fit, kept }) = (Instant::now(), before);
        let census = census_of(rows, fit.model.n_features(), control)?;
        let kept = match kept {
            Some(KeptEvidence::Mixture(kept)) if **kept.mixture() == fit.model => kept.clone(),
            _ => standing_for(fit)?,
        };
        let batch = self.collect(kept.mixture(), &census, rows, control)?;
        if batch.component_weights().iter().all(|w| *w == 0.0) {
            return Ok(before.clone());
        }
        let seen = fit.report.weight + census.weight();
        let next = online_step(&kept, &batch, seen, (self.noise, self.prior))?;
        let steps = steps_of(&fit.report) + 1;
        let report = fit.report.after_batch(&census, steps, batch.log_likelihood() / batch.weight());
        let mut report = self.reported(report, &next, steps);
        report.seconds = started.elapsed().as_secs_f64();
        let model = Mixture::clone(next.mixture());
        Ok(OnlineFit { fit: Fit { model, report }, kept: Some(KeptEvidence::Mixture(next)) })
    }

    /// What the rows of a batch say about a mixture.
    fn collect(
        &self,
        mixture: &Arc<Mixture>,
        census: &Census,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<MixtureEvidence> {
        match census.missing() > 0 || rows.observed_only() || self.steps_by_cells(rows.n_features()) {
            true => gather(rows, || MixtureEvidence::incomplete(Arc::clone(mixture)), control),
            false => gather(rows, || MixtureEvidence::complete(Arc::clone(mixture)), control),
        }
    }

    /// Whether steps work on the cells of complete rows too.
    fn steps_by_cells(&self, features: usize) -> bool {
        self.noise.diagonal && (self.noise.shared || features > NEWTON_FEATURES)
    }

    /// The report of a mixture after some batches. Its criteria are estimates: log densities of rows under the
    /// mixture that they met, averaged as the evidence is.
    fn reported(&self, mut report: Report, kept: &MixtureEvidence, steps: usize) -> Report {
        let mixture = kept.mixture();
        let n = counted_weight(report.rows, report.weight);
        let (likelihood, entropy) = (n * kept.log_likelihood(), -n * kept.totals().negative_entropy);
        let free = parameters(mixture, self.noise.shared);
        let bic = -2.0 * likelihood + free as f64 * n.ln();
        let details = MixtureReport {
            shared_noise: self.noise.shared,
            prior_rows: self.prior.filter(|_| mixture.n_components() > 1),
            objective: likelihood,
            parameters: free,
            bic,
            aic: -2.0 * likelihood + 2.0 * free as f64,
            icl: bic + 2.0 * entropy,
            dropped: report.mixture().map_or(0, |before| before.dropped),
            grown: Vec::new(),
            variational: None,
            online_steps: Some(steps),
        };
        report.details = Some(Details::Mixture(Box::new(details)));
        (report.total_variance, report.components) = (total_variance(mixture), mixture.n_latent());
        report
    }
}

/// A fitted mixture as evidence: as if its rows had exactly its means and covariances.
fn standing_for(fit: &Fit<Mixture>) -> Result<MixtureEvidence> {
    let (groups, p) = (fit.model.n_components(), fit.model.n_features());
    memory::check("the covariances of the components", &[2, groups, p, p])?;
    MixtureEvidence::of_model(Arc::new(fit.model.clone()), fit.report.rows)
}

/// Batches so far.
fn steps_of(report: &Report) -> usize {
    report.mixture().and_then(|details| details.online_steps).unwrap_or(usize::from(report.rows > 0))
}

/// Σ π (tr C + ‖μ − μ̄‖²): the variance of rows of a mixture.
fn total_variance(mixture: &Mixture) -> f64 {
    let parts = || mixture.weights().iter().zip(mixture.components());
    let p = mixture.n_features();
    let mean: Vec<f64> = (0..p).map(|j| parts().map(|(w, c)| w * c.mean()[j]).sum()).collect();
    let apart = |c: &LinearGaussian, j: usize| (c.mean()[j] - mean[j]).powi(2);
    let spread = |c: &LinearGaussian, j: usize| c.noise().of(j) + c.loadings().row(j).squared_norm_l2();
    parts().map(|(w, c)| w * (0..p).map(|j| apart(c, j) + spread(c, j)).sum::<f64>()).sum()
}

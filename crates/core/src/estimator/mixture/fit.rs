//! The fit: the pooled model first, then components one by one, moves between them, and all rows at the end.

use std::time::Instant;

use super::report::{MixtureReport, NumberOfGroups};
use super::search::{Search, sample};
use super::{LatentVariables, Mixture, MixturePpca};
use crate::algorithm::mixture::{CollapsePrior, ComponentEvidence, MixtureOptimum, MixtureSettings};
use crate::algorithm::{Journey, Limits};
use crate::control::{Control, Event};
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::estimator::{Details, FactorAnalysis, Fit, Plan, Ppca, Report, Solver};
use crate::evidence::{Latent, Moments};
use crate::model::{LinearGaussian, Noise};

/// Nats per row that may be left to gain.
const TOLERANCE: f64 = 1e-8;
/// Least unexplained variance of a feature that the prior speaks of, as a share of all variance: rows in a
/// plane leave none.
const LEAST_UNEXPLAINED: f64 = 1e-6;
/// Features up to which factors of complete rows are found from their correlations in each step.
const NEWTON_FEATURES: usize = 200;

/// Latent variables of a component where nobody has asked for a number.
const USUAL_LATENT: usize = 2;

/// One model of all rows: where components come from.
struct Pooled {
    component: LinearGaussian,
    report: Report,
}

/// The best mixture of the number of components that was chosen, and how it was come by.
struct Grown<E> {
    best: MixtureOptimum<E>,
    table: Vec<NumberOfGroups>,
    dropped: usize,
}

impl MixturePpca {
    pub(super) fn fit_source(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let p = source.n_features();
        let q = self.latent_variables(p)?;
        control.emit(Event::Choosing);
        let pooled = self.pooled(q, source, &control.quiet())?;
        let settings = self.settings(&pooled);
        let latent = pooled.report.holes.is_some()
            || source.observed_only()
            || self.noise.diagonal && (self.noise.shared || p > NEWTON_FEATURES);
        match latent {
            true => self.fit_parts::<Latent>(&pooled, &settings, source, control, started),
            false => self.fit_parts::<Moments>(&pooled, &settings, source, control, started),
        }
    }

    /// The number of latent variables of each component.
    fn latent_variables(&self, p: usize) -> Result<usize> {
        let most = p.saturating_sub(1);
        match self.latent {
            _ if p == 0 => Err(Error::NoFeatures),
            LatentVariables::Count(q) if q > most => {
                let (name, value) = ("the number of latent variables", q.to_string());
                Err(Error::Parameter { name, value, allowed: "below the number of features" })
            }
            LatentVariables::Count(q) => Ok(q),
            LatentVariables::Usual | LatentVariables::Chosen => Ok(most.min(USUAL_LATENT)),
        }
    }

    /// PPCA or factor analysis of all rows.
    fn pooled(&self, q: usize, source: &dyn RowSource, control: &Control<'_>) -> Result<Pooled> {
        let p = source.n_features();
        let run = crate::estimator::Run { tolerance: None, max_iterations: None, ..self.run };
        // One latent variable tells the noise of each feature where none is wanted.
        let fitted = q.max(usize::from(p > 1));
        let (model, report) = if self.noise.diagonal {
            let Fit { model, report } =
                FactorAnalysis::new(fitted).undetermined(true).run(run).fit_with(source, control)?;
            (model.gaussian().clone(), report)
        } else {
            let Fit { model, report } = Ppca::new(fitted).run(run).fit_with(source, control)?;
            (model, report)
        };
        let component = if q < fitted { without_latent(&model)? } else { model };
        Ok(Pooled { component, report })
    }

    fn settings(&self, pooled: &Pooled) -> MixtureSettings {
        let (p, total) = (pooled.report.features, pooled.report.total_variance);
        let least = LEAST_UNEXPLAINED * total / p as f64;
        let unexplained: Vec<f64> = (0..p).map(|j| pooled.component.noise().of(j).max(least)).collect();
        let prior = self.prior.map(|rows| CollapsePrior { rows, variances: unexplained.clone() });
        MixtureSettings { noise: self.noise, prior, unexplained }
    }

    fn fit_parts<E: ComponentEvidence>(
        &self,
        pooled: &Pooled,
        settings: &MixtureSettings,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let some = if self.start.is_some() { None } else { sample(source, self.run.seed)? };
        let all = Search::<E>::over(source, settings, control);
        let grown = match &some {
            Some(table) => {
                let part = Search::<E>::over(table, settings, control);
                self.grow(&part, pooled)?
            }
            None => self.grow(&all, pooled)?,
        };
        control.emit(Event::Fitting);
        let tolerance = self.run.tolerance.unwrap_or(TOLERANCE);
        let limits = Limits { tolerance, iterations: self.run.iterations() };
        let Grown { best, table, mut dropped } = grown;
        let (mut found, mut journey) = all.run(best.mixture, limits)?;
        // All rows may starve a component that a sample has fed.
        while let Some(k) = found.starved {
            dropped += 1;
            (found, journey) = all.run(without_component(&found.mixture, k)?, limits)?;
        }
        let passes = all.passes() + pooled.report.passes;
        Ok(self.finished(found, Journey { passes, ..journey }, pooled, (table, dropped), started))
    }

    /// The optimum of the number of components that is wanted, on the rows of a search.
    fn grow<E: ComponentEvidence>(&self, search: &Search<'_, E>, pooled: &Pooled) -> Result<Grown<E>> {
        if let Some(start) = &self.start {
            let best = search.optimum(start.clone())?;
            return Ok(Grown { best, table: Vec::new(), dropped: 0 });
        }
        let (fewest, most) = self.groups.range();
        let rows = pooled.report.counted_weight();
        let row = |found: &MixtureOptimum<E>| NumberOfGroups::of(found, self.noise.shared, rows);
        let mut current = search.optimum(Mixture::new(vec![1.0], vec![pooled.component.clone()])?)?;
        let mut table = vec![row(&current)];
        let mut best = None;
        while current.mixture.n_components() < most {
            search.control.check()?;
            let Some(next) = search.grown(&current)? else { break };
            let before = std::mem::replace(&mut current, next);
            table.push(row(&current));
            let at = before.mixture.n_components();
            best = better(best, before, at >= fewest, &row);
        }
        let dropped = fewest.saturating_sub(current.mixture.n_components());
        let best = better(best, current, true, &row).ok_or(Error::NoRows)?;
        Ok(Grown { best: search.moved(best)?, table, dropped })
    }

    fn finished<E: ComponentEvidence>(
        &self,
        found: MixtureOptimum<E>,
        journey: Journey,
        pooled: &Pooled,
        grown: (Vec<NumberOfGroups>, usize),
        started: Instant,
    ) -> Fit<Mixture> {
        let Pooled { report, .. } = pooled;
        let prior = self.prior.map(|rows| CollapsePrior { rows, variances: Vec::new() });
        let details =
            MixtureReport::new(&found, self.noise.shared, prior.as_ref(), report.counted_weight(), grown);
        let model = found.mixture.sorted();
        let reason = match report.holes.is_some() {
            true => "the data have missing values: a step of EM for each component in each pass",
            false => "rows are complete: the closed form of each component in each pass",
        };
        let plan = Plan { solver: Solver::Em, reason: reason.into(), memory: report.plan.memory };
        let report = Report {
            plan,
            components: crate::model::Model::n_latent(&model),
            log_likelihood: Some(found.log_likelihood),
            details: Some(Details::Mixture(Box::new(details))),
            rotation: None,
            stop: journey.stop,
            passes: journey.passes,
            trace: journey.trace,
            seconds: started.elapsed().as_secs_f64(),
            spectrum: None,
            ..report.clone()
        };
        Fit { model, report }
    }
}

/// Of two optima the one of lower BIC, if there are two.
fn better<E>(
    best: Option<MixtureOptimum<E>>,
    found: MixtureOptimum<E>,
    counts: bool,
    row: &impl Fn(&MixtureOptimum<E>) -> NumberOfGroups,
) -> Option<MixtureOptimum<E>> {
    match best {
        _ if !counts => best,
        Some(best) if row(&best).bic <= row(&found).bic => Some(best),
        _ => Some(found),
    }
}

/// The same mean and variances without latent variables.
fn without_latent(model: &LinearGaussian) -> Result<LinearGaussian> {
    let (p, w) = (model.n_features(), model.loadings());
    let variance = |j: usize| model.noise().of(j) + w.row(j).squared_norm_l2();
    let noise = match model.noise() {
        Noise::Isotropic(_) => Noise::Isotropic((0..p).map(variance).sum::<f64>() / p as f64),
        Noise::Diagonal(_) => Noise::Diagonal((0..p).map(variance).collect()),
    };
    LinearGaussian::new(model.mean().to_vec(), crate::linalg::Mat::zeros(p, 0), noise)
}

/// A mixture without one of its components.
fn without_component(mixture: &Mixture, k: usize) -> Result<Mixture> {
    let kept = (0..mixture.n_components()).filter(|other| *other != k);
    let weights = kept.clone().map(|k| mixture.weights()[k]).collect();
    Mixture::new(weights, kept.map(|k| mixture.components()[k].clone()).collect())
}

//! The fit: the pooled model first, then components one by one, moves between them, and all rows at the end.

use std::ops::RangeInclusive;
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
pub(super) const NEWTON_FEATURES: usize = 200;

/// Latent variables of a component where nobody has asked for a number.
const USUAL_LATENT: usize = 2;
/// The most that are looked at where the number is to be chosen.
const MOST_LATENT: usize = 12;
/// Numbers in a row without a better BIC after which no more are looked at.
const PATIENCE: usize = 2;

/// One model of all rows: where components come from.
pub(super) struct Pooled {
    pub(super) component: LinearGaussian,
    pub(super) report: Report,
}

/// The best mixture of a number of latent variables, and how it was come by.
struct Candidate<E> {
    pooled: Pooled,
    settings: MixtureSettings,
    best: MixtureOptimum<E>,
    bic: f64,
    table: Vec<NumberOfGroups>,
    dropped: usize,
    passes: usize,
}

impl MixturePpca {
    pub(super) fn fit_source(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let p = source.n_features();
        let latent = self.latent_variables(p)?;
        control.emit(Event::Choosing);
        let pooled = self.pooled(*latent.start(), source, &control.quiet())?;
        match self.goes_by_cells(&pooled, source) {
            true => self.fit_parts::<Latent>(pooled, latent, source, control, started),
            false => self.fit_parts::<Moments>(pooled, latent, source, control, started),
        }
    }

    /// Whether a step works on the cells of each row; else the closed form of complete rows serves.
    pub(super) fn goes_by_cells(&self, pooled: &Pooled, source: &dyn RowSource) -> bool {
        pooled.report.holes.is_some()
            || source.observed_only()
            || self.noise.diagonal && (self.noise.shared || source.n_features() > NEWTON_FEATURES)
    }

    /// The numbers of latent variables of a component that are looked at.
    fn latent_variables(&self, p: usize) -> Result<RangeInclusive<usize>> {
        let most = p.saturating_sub(1);
        match self.latent {
            _ if p == 0 => Err(Error::NoFeatures),
            LatentVariables::Count(q) if q > most => {
                let (name, value) = ("the number of latent variables", q.to_string());
                Err(Error::Parameter { name, value, allowed: "below the number of features" })
            }
            LatentVariables::Count(q) => Ok(q..=q),
            LatentVariables::Usual => Ok(most.min(USUAL_LATENT)..=most.min(USUAL_LATENT)),
            LatentVariables::Chosen => Ok(0..=most.min(MOST_LATENT)),
        }
    }

    /// PPCA or factor analysis of all rows.
    pub(super) fn pooled(&self, q: usize, source: &dyn RowSource, control: &Control<'_>) -> Result<Pooled> {
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

    pub(super) fn settings(&self, pooled: &Pooled) -> MixtureSettings {
        let (p, total) = (pooled.report.features, pooled.report.total_variance);
        let least = LEAST_UNEXPLAINED * total / p as f64;
        let unexplained: Vec<f64> = (0..p).map(|j| pooled.component.noise().of(j).max(least)).collect();
        let prior = self.prior.map(|rows| CollapsePrior { rows, variances: unexplained.clone() });
        MixtureSettings { noise: self.noise, prior, unexplained, least }
    }

    fn fit_parts<E: ComponentEvidence>(
        &self,
        pooled: Pooled,
        latent: RangeInclusive<usize>,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let some = if self.start.is_some() { None } else { sample(source, self.run.seed)? };
        let rows: &dyn RowSource = some.as_ref().map_or(source, |table| table);
        let found = self.best_latent::<E>(pooled, latent, (source, rows), control)?;
        control.emit(Event::Fitting);
        let all = Search::<E>::over(source, found.settings.clone(), control);
        let tolerance = self.run.tolerance.unwrap_or(TOLERANCE);
        let limits = Limits { tolerance, iterations: self.run.iterations() };
        let Candidate { best, table, mut dropped, pooled, .. } = found;
        let (mut found_all, mut journey) = all.run(best.mixture, limits)?;
        // All rows may starve a component that a sample has fed.
        while let Some(k) = found_all.starved {
            dropped += 1;
            (found_all, journey) = all.run(without_component(&found_all.mixture, k)?, limits)?;
        }
        let looked = if some.is_none() { found.passes } else { 0 };
        let passes = all.passes() + pooled.report.passes + looked;
        Ok(self.finished(&found_all, Journey { passes, ..journey }, &pooled, (table, dropped), started))
    }

    /// The best of the numbers of latent variables by BIC, looked at on `rows`; where there are several, each
    /// component then has its own.
    fn best_latent<E: ComponentEvidence>(
        &self,
        pooled: Pooled,
        latent: RangeInclusive<usize>,
        (source, rows): (&dyn RowSource, &dyn RowSource),
        control: &Control<'_>,
    ) -> Result<Candidate<E>> {
        let mut best = self.candidate::<E>(pooled, rows, control)?;
        let several = latent.end() > latent.start();
        let mut worse = 0;
        for q in latent.skip(1) {
            let pooled = match self.pooled(q, source, &control.quiet()) {
                // No more latent variables can be told from noise.
                Err(Error::TooFewCells { .. } | Error::Components { .. }) => break,
                pooled => pooled?,
            };
            let next = self.candidate::<E>(pooled, rows, control)?;
            let passes = best.passes + next.passes;
            worse = if next.bic < best.bic { 0 } else { worse + 1 };
            best = Candidate { passes, ..if next.bic < best.bic { next } else { best } };
            if worse == PATIENCE {
                break;
            }
        }
        if !several {
            return Ok(best);
        }
        let search = Search::over(rows, best.settings.clone(), control);
        let row = |found: &MixtureOptimum<E>| self.row(found, &best.pooled);
        let refined = search.with_own_latent(best.best, &row)?;
        Ok(Candidate { best: refined, ..best })
    }

    pub(super) fn row<E>(&self, found: &MixtureOptimum<E>, pooled: &Pooled) -> NumberOfGroups {
        NumberOfGroups::of(found, self.noise.shared, pooled.report.counted_weight())
    }

    /// The optimum of the number of components that is wanted, on some rows.
    fn candidate<E: ComponentEvidence>(
        &self,
        pooled: Pooled,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Candidate<E>> {
        let mut search = Search::over(rows, self.settings(&pooled), control);
        let (best, table) = match &self.start {
            Some(start) => {
                let found = search.optimum(start.clone())?;
                (search.settle(found)?, Vec::new())
            }
            None => self.grow(&mut search, &pooled)?,
        };
        let (bic, groups) = (self.row(&best, &pooled).bic, best.mixture.n_components());
        let wanted = if self.start.is_some() { 0 } else { self.groups.range().0 };
        let (dropped, passes) = (wanted.saturating_sub(groups), search.passes());
        Ok(Candidate { pooled, settings: search.settings, best, bic, table, dropped, passes })
    }

    /// Components join one by one, until there are as many as wanted or BIC has had enough of them.
    fn grow<E: ComponentEvidence>(
        &self,
        search: &mut Search<'_, E>,
        pooled: &Pooled,
    ) -> Result<(MixtureOptimum<E>, Vec<NumberOfGroups>)> {
        let (fewest, most) = self.groups.range();
        let mut current = search.optimum(Mixture::new(vec![1.0], vec![pooled.component.clone()])?)?;
        let mut table = vec![self.row(&current, pooled)];
        let (mut best, mut best_bic) = (None, f64::INFINITY);
        while current.mixture.n_components() < most {
            search.control.check()?;
            let groups = current.mixture.n_components();
            let since = table.iter().rev().take_while(|row| row.bic > best_bic).count();
            if groups > fewest && since >= PATIENCE {
                break;
            }
            let settings = search.settings.clone();
            let next = match search.grown(&current, pooled, self.run.seed) {
                // There are enough without the one that would shrink.
                Err(Error::ShrunkComponent { .. }) if groups >= fewest => {
                    search.settings = settings;
                    break;
                }
                next => next?,
            };
            let Some(next) = next else { break };
            let before = std::mem::replace(&mut current, next);
            if groups >= fewest && table[groups - 1].bic < best_bic {
                (best, best_bic) = (Some((before, settings)), table[groups - 1].bic);
            }
            table.push(self.row(&current, pooled));
        }
        let last = table.last().map_or(f64::INFINITY, |row| row.bic);
        if let Some((before, settings)) = best.filter(|_| best_bic <= last) {
            (current, search.settings) = (before, settings);
        }
        let moved = search.moved(current)?;
        let found = search.settle(moved)?;
        Ok((search.second_opinion(found, pooled, (self.random_starts, self.run.seed))?, table))
    }

    fn finished<E: ComponentEvidence>(
        &self,
        found: &MixtureOptimum<E>,
        journey: Journey,
        pooled: &Pooled,
        grown: (Vec<NumberOfGroups>, usize),
        started: Instant,
    ) -> Fit<Mixture> {
        let Pooled { report, .. } = pooled;
        // A single component has no prior.
        let prior = self.prior.filter(|_| found.mixture.n_components() > 1);
        let details = MixtureReport::new(found, self.noise.shared, prior, report.counted_weight(), grown);
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
            choice: (self.latent == LatentVariables::Chosen).then(|| "chosen by BIC".into()),
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

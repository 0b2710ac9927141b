//! The fit: the pooled model first, then components one by one, moves between them, and all rows at the end.

use std::ops::RangeInclusive;
use std::time::Instant;

use super::report::{MixtureReport, NumberOfGroups, VariationalReport};
use super::search::{Optimum, Search, rows_to_choose, rows_to_find, sample};
use super::{LatentVariables, Mixture, MixturePpca};
use crate::algorithm::mixture::measured;
use crate::algorithm::mixture::{
    CollapsePrior, MaximumLikelihood, MixtureMethod, MixtureOptimum, MixtureSettings, PooledRows, Variational,
};
use crate::algorithm::{Journey, Limits};
use crate::control::{Control, Event};
use crate::data::{RowSource, Table, with_weights_times};
use crate::error::{Error, Result};
use crate::estimator::bayesian::averaged;
use crate::estimator::shares::count_of_shares;
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
struct Candidate<M: MixtureMethod> {
    pooled: Pooled,
    settings: MixtureSettings,
    best: Optimum<M>,
    criterion: f64,
    table: Vec<NumberOfGroups>,
    dropped: usize,
    passes: usize,
}

impl MixturePpca {
    /// Fits rows of which each counts as one, or as often as its weight says. A prior counts beside the rows,
    /// and groups need a number of them, so weights that are shares are scaled to what they count first.
    pub(super) fn fit_source(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let p = source.n_features();
        let latent = self.latent_variables(p)?;
        control.emit(Event::Choosing);
        let pooled = match self.variational {
            true => self.widest(*latent.end(), source, &control.quiet())?,
            false => self.pooled(*latent.start(), source, &control.quiet())?,
        };
        let (rows, weight) = (pooled.report.rows, pooled.report.weight);
        if let Some(factor) = count_of_shares(rows, weight)? {
            let Fit { model, report } =
                self.fit_source(&*with_weights_times(source, factor)?, control, started)?;
            return Ok(Fit { model, report: report.with_weight(weight) });
        }
        match self.goes_by_cells(&pooled, source) {
            _ if self.variational => self.fit_parts::<Variational>(pooled, latent, source, control, started),
            true => self.fit_parts::<MaximumLikelihood<Latent>>(pooled, latent, source, control, started),
            false => self.fit_parts::<MaximumLikelihood<Moments>>(pooled, latent, source, control, started),
        }
    }

    /// The pooled model of at most so many latent variables: as many as the rows allow.
    fn widest(&self, most: usize, source: &dyn RowSource, control: &Control<'_>) -> Result<Pooled> {
        match self.pooled(most, source, control) {
            Err(Error::TooFewCells { possible, .. } | Error::Components { possible, .. })
                if 0 < possible && possible < most =>
            {
                self.widest(possible, source, control)
            }
            pooled => pooled,
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
            // Columns that explain nothing are driven out.
            _ if self.variational => Ok(most.min(MOST_LATENT)..=most.min(MOST_LATENT)),
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
        let (mean, weight) = (pooled.component.mean().to_vec(), pooled.report.weight);
        let rows = PooledRows { mean, variance: total / p as f64, weight };
        MixtureSettings { noise: self.noise, prior, unexplained, least, pooled: Some(rows) }
    }

    fn fit_parts<M: MixtureMethod>(
        &self,
        pooled: Pooled,
        latent: RangeInclusive<usize>,
        source: &dyn RowSource,
        control: &Control<'_>,
        started: Instant,
    ) -> Result<Fit<Mixture>> {
        let some = if self.start.is_some() { None } else { self.some_rows(&latent, source)? };
        let rows: &dyn RowSource = some.as_ref().map_or(source, |table| table);
        let found = self.best_latent::<M>(pooled, latent, (source, rows), control)?;
        control.emit(Event::Fitting);
        let all = Search::<M>::over(source, found.settings.clone(), control);
        let tolerance = self.run.tolerance.unwrap_or(TOLERANCE);
        let limits = Limits { tolerance, iterations: self.run.iterations() };
        let Candidate { best, table, mut dropped, pooled, .. } = found;
        let (mut found_all, mut journey) = all.run(best.mixture, limits)?;
        // All rows may starve a component that a sample has fed.
        while let Some(k) = found_all.starved {
            dropped += 1;
            (found_all, journey) = all.run(without_component(&found_all.mixture, k)?, limits)?;
        }
        let concluded = conclude::<M>(found_all, source, control)?;
        let looked = if some.is_none() { found.passes } else { 0 };
        let passes = all.passes() + pooled.report.passes + looked;
        Ok(self.finished(concluded, Journey { passes, ..journey }, &pooled, (table, dropped), started))
    }

    /// The rows on which optima are looked for, where not all are needed.
    fn some_rows(
        &self,
        latent: &RangeInclusive<usize>,
        source: &dyn RowSource,
    ) -> Result<Option<Table<'static>>> {
        let ((fewest, most), p) = (self.groups_to_grow(), source.n_features());
        let given = fewest == most && latent.start() == latent.end();
        let wanted = if given { rows_to_find(most, p) } else { rows_to_choose(most, p) };
        sample(source, wanted, self.run.seed)
    }

    /// The best of the numbers of latent variables by the criterion, looked at on `rows`; where there are several, each
    /// component then has its own.
    fn best_latent<M: MixtureMethod>(
        &self,
        pooled: Pooled,
        latent: RangeInclusive<usize>,
        (source, rows): (&dyn RowSource, &dyn RowSource),
        control: &Control<'_>,
    ) -> Result<Candidate<M>> {
        let mut best = self.candidate::<M>(pooled, rows, control)?;
        let several = latent.end() > latent.start() || self.variational;
        let mut worse = 0;
        for q in latent.skip(1) {
            let pooled = match self.pooled(q, source, &control.quiet()) {
                // No more latent variables can be told from noise.
                Err(Error::TooFewCells { .. } | Error::Components { .. }) => break,
                pooled => pooled?,
            };
            let next = self.candidate::<M>(pooled, rows, control)?;
            let (passes, better) = (best.passes + next.passes, next.criterion < best.criterion);
            worse = if better { 0 } else { worse + 1 };
            best = Candidate { passes, ..if better { next } else { best } };
            if worse == PATIENCE {
                break;
            }
        }
        if !several {
            return Ok(best);
        }
        let search = Search::<M>::over(rows, best.settings.clone(), control);
        let row = |found: &Optimum<M>| self.row(found, &best.pooled);
        let refined = search.with_own_latent(best.best, &row)?;
        Ok(Candidate { best: refined, ..best })
    }

    /// By what numbers were chosen, where they were.
    fn choice(&self) -> Option<String> {
        match self.latent {
            _ if self.variational => Some("kept by variational Bayes".into()),
            LatentVariables::Chosen => Some("chosen by BIC".into()),
            _ => None,
        }
    }

    pub(super) fn row<E>(&self, found: &MixtureOptimum<E>, pooled: &Pooled) -> NumberOfGroups {
        let row = NumberOfGroups::of(found, self.noise.shared, pooled.report.counted_weight());
        NumberOfGroups { bound: self.variational.then_some(found.objective), ..row }
    }

    /// The same with the log-likelihood at the expected parameters, which variational Bayes does not need.
    fn measured_row<M: MixtureMethod>(
        &self,
        found: &Optimum<M>,
        pooled: &Pooled,
        search: &Search<'_, M>,
    ) -> Result<NumberOfGroups> {
        let row = self.row(found, pooled);
        if !self.variational {
            return Ok(row);
        }
        let (likelihood, entropy) = measured(&found.mixture, search.source, &search.control.quiet())?;
        let rows = pooled.report.counted_weight();
        let measured = NumberOfGroups::at(&found.mixture, likelihood, entropy, (self.noise.shared, rows));
        Ok(NumberOfGroups { bound: row.bound, ..measured })
    }

    /// The optimum of the number of components that is wanted, on some rows.
    fn candidate<M: MixtureMethod>(
        &self,
        pooled: Pooled,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Candidate<M>> {
        let mut search = Search::<M>::over(rows, self.settings(&pooled), control);
        let (best, table) = match &self.start {
            Some(start) => {
                let found = search.optimum(start.clone())?;
                (search.settle(found)?, Vec::new())
            }
            None => self.grow(&mut search, &pooled)?,
        };
        let (criterion, groups) = (self.row(&best, &pooled).criterion(), best.mixture.n_components());
        let wanted = if self.start.is_some() { 0 } else { self.groups_to_grow().0 };
        let (dropped, passes) = (wanted.saturating_sub(groups), search.passes());
        Ok(Candidate { pooled, settings: search.settings, best, criterion, table, dropped, passes })
    }

    /// The fewest and the most groups; variational Bayes takes a number as the most.
    fn groups_to_grow(&self) -> (usize, usize) {
        let (fewest, most) = self.groups.range();
        if self.variational && fewest == most { (1, most) } else { (fewest, most) }
    }

    /// Components join one by one, until there are as many as wanted or the criterion has had enough of them.
    fn grow<M: MixtureMethod>(
        &self,
        search: &mut Search<'_, M>,
        pooled: &Pooled,
    ) -> Result<(Optimum<M>, Vec<NumberOfGroups>)> {
        let (fewest, most) = self.groups_to_grow();
        // Random starts are asked for where the search is to be thorough.
        if fewest == most
            && most > 1
            && self.random_starts == 0
            && let Some(found) = search.groups_apart(pooled, most, self.run.seed)?
        {
            let table = vec![self.measured_row(&found, pooled, search)?];
            return Ok((found, table));
        }
        let mut current = search.optimum(Mixture::new(vec![1.0], vec![pooled.component.clone()])?)?;
        let mut table = vec![self.measured_row(&current, pooled, search)?];
        let (mut best, mut least) = (None, f64::INFINITY);
        while current.mixture.n_components() < most {
            search.control.check()?;
            let groups = current.mixture.n_components();
            let since = table.iter().rev().take_while(|row| row.criterion() > least).count();
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
            let criterion = table[groups - 1].criterion();
            if groups >= fewest && criterion < least {
                (best, least) = (Some((before, settings)), criterion);
            }
            table.push(self.measured_row(&current, pooled, search)?);
        }
        let last = table.last().map_or(f64::INFINITY, NumberOfGroups::criterion);
        if let Some((before, settings)) = best.filter(|_| least <= last) {
            (current, search.settings) = (before, settings);
        }
        let moved = search.moved(current)?;
        let found = search.settle(moved)?;
        Ok((search.second_opinion(found, pooled, (self.random_starts, self.run.seed))?, table))
    }

    fn finished<E>(
        &self,
        Conclusion { model, found, posterior }: Conclusion<E>,
        journey: Journey,
        pooled: &Pooled,
        grown: (Vec<NumberOfGroups>, usize),
        started: Instant,
    ) -> Fit<Mixture> {
        let Pooled { report, .. } = pooled;
        // A single component has no prior.
        let prior = self.prior.filter(|_| found.mixture.n_components() > 1);
        let rows = report.counted_weight();
        let details = MixtureReport::new(&found, self.noise.shared, prior, rows, grown);
        let details = MixtureReport { variational: posterior, ..details };
        let reason = match report.holes.is_some() {
            _ if self.variational => "variational Bayes was asked for: all parameters have distributions",
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
            choice: self.choice(),
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

/// The model of an optimum, and what its report is made from.
struct Conclusion<E> {
    model: Mixture,
    found: MixtureOptimum<E>,
    posterior: Option<VariationalReport>,
}

/// Components in descending weight; where parameters have distributions, with what is not known of them in the
/// noise of each component, and the log-likelihood under that model.
fn conclude<M: MixtureMethod>(
    found: Optimum<M>,
    source: &dyn RowSource,
    control: &Control<'_>,
) -> Result<Conclusion<M::Evidence>> {
    let Some(posteriors) = M::posteriors(&found) else {
        return Ok(Conclusion { model: found.mixture.sorted(), found, posterior: None });
    };
    let known = posteriors.iter().map(|of| averaged(of, false)).collect::<Result<Vec<_>>>()?;
    let order = found.mixture.order();
    let posterior = VariationalReport {
        bound: found.objective,
        noise: order.iter().map(|k| known[*k].noise_variance()).collect(),
        precisions: order.iter().map(|k| known[*k].precisions().to_vec()).collect(),
    };
    let components = alike(known.iter().map(|of| of.gaussian().clone()).collect())?;
    let model = Mixture::new(found.mixture.weights().to_vec(), components)?.sorted();
    let (log_likelihood, entropy) = match measured(&model, source, control) {
        // The model is there all the same.
        Err(Error::Interrupted) => (f64::NAN, f64::NAN),
        measured => measured?,
    };
    Ok(Conclusion {
        model,
        found: MixtureOptimum { log_likelihood, entropy, ..found },
        posterior: Some(posterior),
    })
}

/// The same components with noise of one kind: diagonal where one of them needs that.
fn alike(components: Vec<LinearGaussian>) -> Result<Vec<LinearGaussian>> {
    if components.iter().all(|c| matches!(c.noise(), Noise::Isotropic(_))) {
        return Ok(components);
    }
    let diagonal =
        |c: &LinearGaussian| Noise::Diagonal((0..c.n_features()).map(|j| c.noise().of(j)).collect());
    components.iter().map(|c| c.clone().with_noise(diagonal(c))).collect()
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

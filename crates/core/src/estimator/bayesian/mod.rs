//! Bayesian PCA: components that the data do not support are driven out.

mod models;
mod report;
mod stages;
mod stand_in;

use std::sync::Arc;
use std::time::Instant;

use super::incomplete::{StartingPoint, TOLERANCE, plan_of};
use super::report::known;
use super::shares::count_of_shares;
use super::spectral::{FirstPass, Solution};
use super::{
    Chooser, Details, Family, Fit, MissingCells, Plan, Ppca, Report, Run, Solver, explained, with_threads,
};
use crate::algorithm::prior::{Prior, independent};
use crate::algorithm::relevance::{self, Supported};
use crate::algorithm::resolution::{check_scales, whole_values};
use crate::algorithm::{Components, Journey, RedundantFeatures, Stop};
use crate::control::Control;
use crate::data::{FeatureSubset, RowSource, Rows, with_weights_times};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::expectation::LatentParameters;
use crate::linalg::negligible;
use crate::model::{AnyModel, Kind, Predictive, kind};
use crate::spectrum::Spectrum;
use models::{conclude, log_likelihood, most_probable, supported_start};
use stages::{IterationRows, Stages};
use stand_in::StandIn;

pub(crate) use models::averaged;
pub use report::{BayesMethod, BayesReport};

/// Where all components are allowed, an iteration starts with this many times those that the available cases
/// seem to support, and a few more.
const PROMISING: (usize, usize) = (2, 2);
/// Nats per row that are left to gain, and the steps that this may take, where steps are over few rows or
/// rows in memory: as good as a closed form.
const TO_THE_END: (f64, usize) = (1e-22, 10_000);
/// The most p q² for that: 257 pixels with 140 components took 47 steps of 0.3 s, of which 30 gained nothing.
const CHEAP: usize = 1_000_000;

/// Features of which all directions are worth finding, so that a few rows can stand for many.
const MOST_STANDING: usize = 2000;

/// What is known of complete rows besides their spectrum.
#[derive(Clone, Copy)]
enum CompleteData<'a> {
    Rows(&'a dyn RowSource),
    Moments(&'a Moments),
}

/// Bayesian PCA \[B99a, B99b\]: PPCA with a precision for each column of W, found from the data, so that
/// surplus columns vanish.
///
/// Of complete rows the spectrum tells in closed form which components the data support; with W averaged
/// over, what the means of the features have in common is then found from the moments. Rows with missing
/// values take passes, where the weakest component is dropped when the bound is higher without it (that all
/// are allowed means there: as many as the available cases promise, and a margin). The model's density
/// includes how well W and μ are known.
///
/// Weights count rows. Those that sum to less than the number of rows are shares, and are scaled to sum to it
/// ([`counted_weight`](crate::data::counted_weight)).
///
/// ```
/// use covary::data::Rows;
/// // Two directions of 40 rows vary by more than noise.
/// let cell = |i: usize, j: usize| {
///     let (a, b) = ((i as f64 * 1.7).sin() * 9.0, (i as f64 * 0.9).cos() * 5.0);
///     let noise = ((i * 31 + j * 17 + i * j * 7) % 23) as f64 / 23.0 - 0.5;
///     a * ((j % 3) as f64 - 1.0) + b * ((j % 2) as f64) + noise
/// };
/// let cells: Vec<f64> = (0..40 * 6).map(|k| cell(k / 6, k % 6)).collect();
/// let fit = covary::BayesianPca::new(5).fit(Rows::from_slice(&cells, 6)?)?;
/// assert_eq!(fit.model.n_latent(), 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BayesianPca {
    options: Ppca,
    method: BayesMethod,
}

impl BayesianPca {
    /// With at most so many components (`5`), so many as explain a share of the variance (`0.9`), or all that
    /// the data allow ([`Components::All`]).
    pub fn new(components: impl Into<Components>) -> Self {
        Self::of(Ppca::new(components))
    }

    /// With the options of a fit by maximum likelihood: solver, memory, tolerance, limits, seed, start and
    /// threads mean the same here.
    pub fn of(options: Ppca) -> Self {
        Self { options, method: BayesMethod::default() }
    }

    /// How the precisions are found; by variational Bayes by default.
    pub fn method(self, method: BayesMethod) -> Self {
        Self { method, ..self }
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<Predictive>> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Fit<Predictive>> {
        let (rows, started) = (rows.into(), Instant::now());
        let source = rows.source();
        self.check()?;
        with_threads(self.options.run.threads, || {
            let Fit { model, report } = self.fit_source(source, control)?;
            let seconds = started.elapsed().as_secs_f64();
            Ok(Fit { model, report: Report { seconds, ..report } })
        })
    }

    /// Fits rows of which each counts as one, or as often as its weight says. A prior counts beside the rows,
    /// so weights that are shares are scaled to what they count first.
    fn fit_source(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<Predictive>> {
        let seen = self.options.look_at(source, control)?;
        let (rows, weight) = seen.counts();
        let Some(factor) = count_of_shares(rows, weight)? else {
            return self.fit_seen(seen, source, control);
        };
        let counted = with_weights_times(source, factor)?;
        let fit = self.fit_seen(self.options.look_at(&*counted, control)?, &*counted, control)?;
        let passes = fit.report.passes + 1;
        Ok(Fit { report: Report { passes, ..fit.report.with_weight(weight) }, ..fit })
    }

    /// From what the first pass has seen.
    fn fit_seen(
        &self,
        seen: FirstPass,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let fit = match seen {
            FirstPass::Complete(mut solved) => {
                let moments = solved.moments.take();
                let moments = moments.filter(|m| m.n_features() <= MOST_STANDING && StandIn::fits(m));
                let known = moments.as_ref().map_or(CompleteData::Rows(source), CompleteData::Moments);
                self.complete(solved, known, control)
            }
            FirstPass::Incomplete(begin) => self.incomplete(begin, source, control),
        };
        fit.map_err(|e| explained(e, source, control))
    }

    /// Fits moments: no rows are needed.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::Solver`] when another solver than `eigen` is asked for.
    pub fn fit_moments(&self, moments: &Moments) -> Result<Fit<Predictive>> {
        self.fit_moments_with(moments, &Control::new())
    }

    /// Fits moments under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit_moments`](Self::fit_moments), and [`Error::Interrupted`].
    pub fn fit_moments_with(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<Predictive>> {
        self.check()?;
        control.check()?;
        if let Some(factor) = count_of_shares(moments.rows(), moments.weight())? {
            let Fit { model, report } = self.fit_moments_with(&moments.times(factor), control)?;
            return Ok(Fit { model, report: report.with_weight(moments.weight()) });
        }
        let (plan, spectrum) = self.options.solve_moments_alone(moments)?;
        let solved = Solution::new(plan, spectrum);
        with_threads(self.options.run.threads, || {
            self.complete(solved, CompleteData::Moments(moments), control)
        })
    }

    fn check(&self) -> Result<()> {
        self.options.run.check()?;
        match self.options.components {
            Components::Count(0) => {
                let (name, value) = ("the most components that are allowed", "0".into());
                Err(Error::Parameter { name, value, allowed: "at least 1" })
            }
            _ => Ok(()),
        }
    }

    /// The fit of a model that was found, whatever the way.
    fn fit_of(
        &self,
        found: Found,
        plan: Plan,
        spectrum: Spectrum,
        journey: Option<Journey>,
    ) -> Fit<Predictive> {
        let Found { model, log_likelihood, objective, allowed } = found;
        let details = BayesReport { method: self.method, objective: known(objective), allowed };
        let report = Report {
            log_likelihood: known(log_likelihood),
            details: Some(Details::Bayes(details)),
            ..Report::new(plan, spectrum, journey, 0.0)
        };
        Fit { model, report }
    }

    /// From the spectrum of complete rows; a distribution of W also from what the spectrum is of. Features
    /// that add no direction have no say in the number of components.
    fn complete(
        &self,
        mut solved: Solution,
        known: CompleteData<'_>,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let CompleteData::Moments(moments) = known else {
            return self.complete_spectrum(solved, known, control);
        };
        let redundant = RedundantFeatures::of(moments);
        if redundant.is_empty() {
            return self.complete_spectrum(solved, known, control);
        }
        let others = moments.of_features(&redundant.others(moments.n_features()));
        let allowed = solved.spectrum.n_components();
        solved.spectrum = solved.spectrum.leading(allowed.min(self.supported_by(&others)?));
        Ok(without(redundant, allowed, self.complete_spectrum(solved, known, control)?))
    }

    /// The number of components that complete rows of these moments support.
    fn supported_by(&self, moments: &Moments) -> Result<usize> {
        let (rows, p) = (moments.rows(), moments.n_features());
        if p == 0 {
            return Ok(0);
        }
        let values = whole_values(moments)?;
        let found = relevance::SampleSpectrum {
            values: &values[..p.min(rows - 1)],
            left: 0.0,
            n: moments.weight(),
            p: p as f64,
            negligible: negligible(rows, p, values[0]),
        };
        Ok(found.supported(self.method == BayesMethod::Variational).lengths.len())
    }

    fn complete_spectrum(
        &self,
        solved: Solution,
        known: CompleteData<'_>,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let (spectrum, averaged) = (&solved.spectrum, self.method == BayesMethod::Variational);
        let (p, n, allowed) = (spectrum.n_features(), spectrum.weight(), spectrum.n_components());
        let rows = relevance::SampleSpectrum {
            values: &spectrum.eigenvalues()[..allowed],
            left: spectrum.distortion(),
            n,
            p: p as f64,
            negligible: spectrum.rounding(),
        };
        let found = rows.supported(averaged);
        match known {
            _ if !averaged || found.noise == 0.0 => {}
            CompleteData::Rows(source) => {
                return self.averaged(solved, &found, IterationRows { source, stand_in: false }, control);
            }
            CompleteData::Moments(moments) => {
                let variance = |j: usize| moments.scatter_lower()[(j, j)] / moments.weight();
                check_scales(&(0..p).map(variance).collect::<Vec<_>>())?;
                let rows = StandIn::of(moments)?;
                return self.averaged(
                    solved,
                    &found,
                    IterationRows { source: &rows.table()?, stand_in: true },
                    control,
                );
            }
        }
        let Solution { plan, spectrum, journey, .. } = solved;
        let spectrum = spectrum.leading(found.lengths.len());
        let model = most_probable(&spectrum, &found)?;
        // Rows in the plane of the components have an infinite density.
        let (log_likelihood, objective) = match found.noise == 0.0 {
            true => (f64::INFINITY, f64::INFINITY),
            false => (log_likelihood(&spectrum, &model), found.objective),
        };
        let found = Found { model, log_likelihood, objective, allowed };
        Ok(self.fit_of(found, plan, spectrum, journey))
    }

    /// From what a flat prior of μ leads to, to the best bound.
    fn averaged(
        &self,
        solved: Solution,
        found: &Supported,
        given: IterationRows<'_>,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let Solution { plan, spectrum, journey: solver, .. } = solved;
        let (p, n, total) = (spectrum.n_features(), spectrum.weight(), spectrum.total_variance());
        let at_hand = given.source.as_table().is_some() && plan.solver != Solver::Krylov;
        let start = supported_start(&spectrum, found);
        let cheap = p.saturating_mul(start.n_latent().saturating_pow(2)) <= CHEAP;
        let (tolerance, max_iterations) = match at_hand && cheap {
            true => TO_THE_END,
            false => (self.options.run.tolerance.unwrap_or(TOLERANCE), self.options.run.iterations()),
        };
        let mut stages = Stages {
            prior: Prior::Averaged { least: total / p as f64 / n },
            floor: start.rounding(spectrum.rows()),
            max_iterations,
            given,
            control,
            passes: solver.as_ref().map_or(1, |journey| journey.passes),
        };
        let (found, journey) = stages.climb(start, tolerance, (n, 1.0))?;
        let (model, log_likelihood, journey) = conclude(&found, journey, given, control)?;
        let stop = solver.map_or(Stop::Converged, |journey| journey.stop);
        let stop = if journey.stop == Stop::Converged { stop } else { journey.stop };
        let allowed = spectrum.n_components();
        let spectrum = spectrum.leading(model.n_latent());
        let found = Found { model, log_likelihood, objective: found.objective, allowed };
        Ok(self.fit_of(found, plan, spectrum, Some(Journey { stop, ..journey })))
    }

    /// In passes over rows with missing values. Features that add no direction have no say in the number of
    /// components: a fit of the others tells it.
    fn incomplete(
        &self,
        mut begin: StartingPoint,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let redundant = match begin.cases.take() {
            Some(cases) if !source.observed_only() => RedundantFeatures::of_cases(&cases, source, control)?,
            _ => RedundantFeatures::default(),
        };
        let others = redundant.others(source.n_features());
        if redundant.is_empty() || others.len() < 2 {
            return self.incomplete_features(begin, source, control);
        }
        let allowed = begin.parameters.n_latent();
        let part = FeatureSubset::new(source, &others);
        let found = match self.limited(allowed.min(others.len() - 1)).fit_with(&part, control) {
            // The cells of the others are fewer.
            Err(Error::TooFewCells { possible, .. }) if possible > 0 => {
                self.limited(possible).fit_with(&part, control)?
            }
            found => found?,
        };
        begin.passes += found.report.passes;
        begin.parameters = begin.parameters.leading(found.model.n_latent().clamp(1, allowed));
        Ok(without(redundant, allowed, self.incomplete_features(begin, source, control)?))
    }

    /// The same fit with so many components allowed, from its own start.
    fn limited(&self, components: usize) -> Self {
        let mut options = self.options.clone();
        (options.components, options.start) = (Components::Count(components), None);
        Self { options, method: self.method }
    }

    fn incomplete_features(
        &self,
        begin: StartingPoint,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<Predictive>> {
        let tolerance = self.options.run.tolerance.unwrap_or(TOLERANCE);
        let given = IterationRows { source, stand_in: false };
        let mut stages = Stages {
            prior: match self.method {
                BayesMethod::Variational => Prior::Averaged { least: begin.error_of_means },
                BayesMethod::Relevance => Prior::Relevance,
            },
            floor: begin.floor(),
            max_iterations: self.options.run.iterations(),
            given,
            control,
            passes: begin.passes,
        };
        let StartingPoint { census, unseen_pairs, parameters: start, .. } = begin;
        let (p, allowed) = (start.n_features(), start.n_latent());
        let share = census.observed() as f64 / (census.rows() * p) as f64;
        let rows = census.weight() * share;
        let start = self.uncertain(&self.promising(&start, (census.rows(), rows)), rows);
        let (found, journey) = stages.climb(start, tolerance, (census.weight(), share))?;
        let (model, log_likelihood, journey) = conclude(&found, journey, given, control)?;
        let spectrum = Spectrum::of_model(
            model.mean().to_vec(),
            model.gaussian().loadings().as_ref(),
            model.noise_variance(),
            (census.rows(), census.weight()),
            log_likelihood,
        )?;
        let holes = MissingCells::new(&census, unseen_pairs);
        let plan = plan_of(&holes, allowed, p);
        let found = Found { model, log_likelihood, objective: found.objective, allowed };
        let Fit { model, report } = self.fit_of(found, plan, spectrum, Some(journey));
        Ok(Fit { model, report: Report { holes: Some(holes).filter(|h| h.missing > 0), ..report } })
    }

    /// The leading components of the start, when there is no limit on their number: as many as would be worth
    /// it if the available cases were complete rows, and more. Starting with all would cost p² numbers for
    /// each feature.
    fn promising(&self, start: &LatentParameters, (rows, n): (usize, f64)) -> LatentParameters {
        let (p, q) = (start.n_features(), start.n_latent());
        if self.options.components != Components::All || self.options.start.is_some() || n <= 1.0 {
            return start.clone();
        }
        let values: Vec<f64> = Prior::lengths(start).iter().map(|l| l + start.noise()).collect();
        let found = relevance::SampleSpectrum {
            values: &values,
            left: (p - q) as f64 * start.noise(),
            n,
            p: p as f64,
            negligible: start.rounding(rows),
        };
        let supported = found.supported(true).lengths.len();
        start.leading(q.min(PROMISING.0 * supported + PROMISING.1))
    }

    /// The start with the uncertainty that so many rows leave.
    fn uncertain(&self, start: &LatentParameters, rows: f64) -> LatentParameters {
        if self.method != BayesMethod::Variational {
            return start.clone();
        }
        let variances = vec![start.noise() / rows; start.n_latent() + 1];
        start.clone().with_spread(Some(independent(&variances, start.n_features())))
    }
}

/// A model and what is told of it.
struct Found {
    model: Predictive,
    log_likelihood: f64,
    /// The bound, or the density of W.
    objective: f64,
    /// The most components that were allowed.
    allowed: usize,
}

/// A fit in which some features had no say in the number of components, of which so many were allowed.
fn without(redundant: RedundantFeatures, allowed: usize, fit: Fit<Predictive>) -> Fit<Predictive> {
    let Fit { model, mut report } = fit;
    if let Some(Details::Bayes(details)) = &mut report.details {
        details.allowed = allowed;
    }
    Fit { model, report: Report { redundant: Some(redundant), ..report } }
}

impl Family for BayesianPca {
    fn kind(&self) -> &'static Kind {
        &kind::BPCA
    }

    fn components(&self) -> Components {
        self.options.components
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        let mut options = self.options.clone();
        options.components = components;
        Arc::new(Self { options, ..*self })
    }

    fn how(&self) -> Run {
        self.options.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(Self { options: self.options.clone().run(run), ..*self })
    }

    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>> {
        let start = start.with_loadings()?.factors().gaussian().clone();
        Ok(Arc::new(Self { options: self.options.clone().start(start), ..*self }))
    }

    fn chooser(&self) -> Chooser {
        Chooser::Fit
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn fit_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_moments_with(moments, control)?.into())
    }
}

//! PPCA and PCA: one closed form, two readings of it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use super::incomplete::{Incomplete, StartingPoint};
use super::report::known;
use super::run::run_options;
use super::{
    Batch, Family, Fit, MissingCells, Online, Plan, Problem, Report, Run, Solver, choose, explained,
    with_threads,
};
use crate::algorithm::resolution::{lost_in_passes, of_rests, rows_know_more};
use crate::algorithm::{Components, Journey, RedundantFeatures, Stop, dual, eigen, krylov, svd};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::{Found, Moments, Pairwise, gather};
use crate::model::{AnyModel, Kind, LinearGaussian, Model, PrincipalComponents, kind};
use crate::spectrum::Spectrum;

/// Relative error of the noise variance that single precision may leave.
const NOISE_ACCURACY: f64 = 1e-4;

/// A model that a spectrum determines.
pub trait FromSpectrum: Clone + Send {
    /// Makes it.
    ///
    /// # Errors
    /// When a number overflows.
    fn from_spectrum(spectrum: &Spectrum) -> Result<Self>;
}

impl FromSpectrum for LinearGaussian {
    fn from_spectrum(spectrum: &Spectrum) -> Result<Self> {
        spectrum.ppca()
    }
}

impl FromSpectrum for PrincipalComponents {
    fn from_spectrum(spectrum: &Spectrum) -> Result<Self> {
        spectrum.pca()
    }
}

/// Probabilistic PCA by maximum likelihood, in closed form \[TB99\].
///
/// ```
/// use covary::data::Rows;
/// let cells = [1.0, 2.1, 2.0, 3.9, 3.0, 6.2, 4.0, 7.8];
/// let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 2)?)?;
/// let z = fit.model.posterior(Rows::from_slice(&cells, 2)?)?;
/// assert_eq!((z.mean.nrows(), z.mean.ncols()), (4, 1));
/// # Ok::<(), covary::Error>(())
/// ```
pub type Ppca = Spectral<LinearGaussian>;

/// Classical PCA: the same spectrum, read as an orthogonal projection.
///
/// ```
/// use covary::data::Rows;
/// let cells = [1.0, 2.1, 2.0, 3.9, 3.0, 6.2, 4.0, 7.8];
/// let fit = covary::Pca::new(0.9).fit(Rows::from_slice(&cells, 2)?)?;
/// assert_eq!(fit.model.n_components(), 1);
/// # Ok::<(), covary::Error>(())
/// ```
pub type Pca = Spectral<PrincipalComponents>;

/// The options of a fit that starts from the spectrum of the data.
#[derive(Debug, Clone)]
pub struct Spectral<M> {
    pub(super) components: Components,
    solver: Solver,
    pub(super) start: Option<LinearGaussian>,
    completion: Option<Completion>,
    pub(super) run: Run,
    model: PhantomData<fn() -> M>,
}

/// To how many directions those of complete rows are completed by others of no variance, which some expect of
/// PCA: n rows lie in a plane of n − 1 directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// As many as there are rows or features, whichever are fewer, where the directions hold all variance.
    Rows,
    /// So many.
    To(usize),
}

impl<M> Spectral<M> {
    /// So many components (`5`), a share of the variance (`0.9`) or [`Components::All`].
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            solver: Solver::Auto,
            start: None,
            completion: None,
            run: Run::default(),
            model: PhantomData,
        }
    }

    /// How the spectrum is found; chosen automatically by default.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Where a fit with missing values starts, instead of the spectrum of the observed cells: a model of the
    /// same features and number of components. Complete data need no start.
    pub fn start(mut self, model: LinearGaussian) -> Self {
        self.start = Some(model);
        self
    }

    run_options! {
        /// When an iteration ends. Krylov: residual of each direction, relative to its eigenvalue (1e-12 by
        /// default). EM: nats per row of log-likelihood that are left to gain, extrapolated (1e-8 by
        /// default).
    }
}

impl Pca {
    /// Adds directions of no variance to those of complete rows.
    pub fn completion(mut self, completion: Completion) -> Self {
        self.completion = Some(completion);
        self
    }

    /// The fit with the directions that were asked for besides.
    fn completed(&self, fit: Fit<PrincipalComponents>) -> Result<Fit<PrincipalComponents>> {
        let asked = self.completion.filter(|_| fit.report.holes.is_none());
        let q = match asked {
            Some(Completion::To(q)) => q,
            Some(Completion::Rows) if fit.model.noise_variance() == 0.0 => {
                fit.report.counted_rows().min(fit.report.features)
            }
            _ => 0,
        };
        if q <= fit.model.n_components() {
            return Ok(fit);
        }
        let model = fit.model.completed(q)?;
        Ok(Fit { report: Report { components: model.n_components(), ..fit.report }, model })
    }
}

impl<M: FromSpectrum> Spectral<M> {
    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<M>> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Fit<M>> {
        self.run.check()?;
        let rows = rows.into();
        let source = rows.source();
        with_threads(self.run.threads, || self.fit_source(source, control))
    }

    /// Fits moments: no rows are needed.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::Solver`] when another solver than `eigen` is asked for.
    pub fn fit_moments(&self, moments: &Moments) -> Result<Fit<M>> {
        self.fit_moments_with(moments, &Control::new())
    }

    /// Fits moments under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit_moments`](Self::fit_moments), and [`Error::Interrupted`].
    pub fn fit_moments_with(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<M>> {
        if self.components == Components::Count(0) {
            return without_components(self.with_one().fit_moments_with(moments, control)?);
        }
        let started = Instant::now();
        control.check()?;
        let (plan, spectrum) = self.solve_moments_alone(moments)?;
        let moments = (self.components == Components::Evidence).then(|| moments.clone());
        finish(Solution { moments, ..Solution::new(plan, spectrum) }, self.components, started)
    }

    /// The same with one component.
    fn with_one(&self) -> Self {
        Self { components: Components::Count(1), ..self.clone() }
    }

    fn fit_source(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<M>> {
        if self.components == Components::Count(0) {
            return without_components(self.with_one().fit_source(source, control)?);
        }
        let started = Instant::now();
        let solved = match self.look_at(source, control)? {
            FirstPass::Complete(solved) => Ok(solved),
            FirstPass::Incomplete(begin) => self.iterate(begin, source, control).map(Solution::from),
        };
        finish(solved.map_err(|e| explained(e, source, control))?, self.components, started)
    }
}

/// What distinguishes the readings of a spectrum as families.
pub trait SpectralModel: FromSpectrum + Model {
    /// Its kind.
    fn family() -> &'static Kind;

    /// The fit as the family's options want it.
    ///
    /// # Errors
    /// When the data do not allow it.
    fn finished(family: &Spectral<Self>, fit: Fit<Self>) -> Result<Fit<Self>> {
        let _ = family;
        Ok(fit)
    }
}

impl SpectralModel for LinearGaussian {
    fn family() -> &'static Kind {
        &kind::PPCA
    }
}

impl SpectralModel for PrincipalComponents {
    fn family() -> &'static Kind {
        &kind::PCA
    }

    fn finished(family: &Spectral<Self>, fit: Fit<Self>) -> Result<Fit<Self>> {
        family.completed(fit)
    }
}

impl<M: SpectralModel> Family for Spectral<M> {
    fn kind(&self) -> &'static Kind {
        M::family()
    }

    fn components(&self) -> Components {
        self.components
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        Arc::new(Self { components, ..self.clone() })
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>> {
        Ok(Arc::new(self.clone().start(start.with_loadings()?.factors().gaussian().clone())))
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(M::finished(self, self.fit_with(rows, control)?)?.into())
    }

    fn fit_moments(&self, moments: &Moments, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(M::finished(self, self.fit_moments_with(moments, control)?)?.into())
    }

    fn look(&self, seen: &Online, rows: &dyn RowSource, control: &Control<'_>) -> Result<Batch> {
        Self::look(self, seen, rows, control)
    }

    fn fit_online(&self, seen: &Online, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(M::finished(self, Self::fit_online(self, seen)?)?.into())
    }
}

impl<M> Spectral<M> {
    /// The spectrum of moments.
    pub(super) fn solve_moments_alone(&self, moments: &Moments) -> Result<(Plan, Spectrum)> {
        self.run.check()?;
        self.components.check()?;
        if !matches!(self.solver, Solver::Auto | Solver::Eigen) {
            let reason = "moments hold a covariance and no rows; use eigen".into();
            return Err(Error::Solver { solver: self.solver.name(), reason });
        }
        let plan = Plan {
            solver: Solver::Eigen,
            reason: "moments hold the covariance already".into(),
            memory: moments.n_features().pow(2) * 48,
        };
        Ok((plan, eigen::solve(moments, self.components, self.run.seed)?))
    }

    /// Complete rows are solved in closed form; of rows with missing values it shows where EM starts. Which
    /// it is shows when a pass meets the first missing value.
    pub(super) fn look_at(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<FirstPass> {
        self.components.check()?;
        control.check()?; // whole-matrix solvers do not ask again
        let p = source.n_features();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        if let Some(n) = source.n_rows() {
            self.components.check_possible(n, p)?;
        }
        // Tables of which only some cells were seen have missing values: nothing to choose, and no p × p
        // matrix that must fit.
        let seen_in_part = self.solver == Solver::Auto && source.observed_only();
        let asked = if seen_in_part { Solver::Em } else { self.solver };
        let plan = choose(asked, &self.problem(source))?;
        if plan.solver != Solver::Em {
            plan.check_memory()?; // what EM takes shows when it is known what is missing
        }
        self.look_with(plan, source, control).map_err(|e| explained(e, source, control))
    }

    fn look_with(&self, plan: Plan, source: &dyn RowSource, control: &Control<'_>) -> Result<FirstPass> {
        if plan.solver == Solver::Em {
            return self.begin_incomplete(source, control).map(FirstPass::Incomplete);
        }
        if self.solver == Solver::Auto && plan.solver == Solver::Eigen && self.pairs_fit(source) {
            let p = source.n_features();
            return match gather(source, || Pairwise::empty(p), control)?.finish()? {
                Found::Complete(moments) => {
                    self.solve_moments(plan, moments, source, control).map(FirstPass::Complete)
                }
                Found::Incomplete(cases) => {
                    self.begin_available(cases, source, control).map(FirstPass::Incomplete)
                }
            };
        }
        match self.solve(plan, source, control) {
            Err(Error::Missing { .. }) if self.solver == Solver::Auto => {
                self.begin_incomplete(source, control).map(FirstPass::Incomplete)
            }
            other => other.map(FirstPass::Complete),
        }
    }

    fn problem(&self, source: &dyn RowSource) -> Problem {
        Problem {
            rows: source.n_rows(),
            features: source.n_features(),
            in_memory: source.as_table().is_some(),
            components: self.components,
            memory: self.run.bytes(),
        }
    }

    fn solve(&self, plan: Plan, source: &dyn RowSource, control: &Control<'_>) -> Result<Solution> {
        let solver = plan.solver;
        let in_memory = || {
            let reason = "it needs all rows in memory".into();
            source.as_table().ok_or(Error::Solver { solver: solver.name(), reason })
        };
        let q = self.components;
        match (solver, q) {
            (Solver::Svd, _) => Ok(Solution::new(plan, svd::solve(in_memory()?, q)?)),
            (Solver::Dual, _) => {
                Ok(Solution::new(plan, dual::solve(in_memory()?, q, self.run.seed, control)?))
            }
            (Solver::Krylov, Components::Count(q)) => {
                let (seed, tolerance, max_iterations) =
                    (self.run.seed, self.run.tolerance, self.run.iterations());
                let options = krylov::Options { seed, tolerance, max_iterations };
                let (spectrum, journey) = krylov::solve(source, q, options, control)?;
                match lost_in_passes(&spectrum, source, control)? {
                    Some(lost) => self.solve_scales(lost, source, control),
                    None => Ok(Solution { journey: Some(journey), ..Solution::new(plan, spectrum) }),
                }
            }
            _ => {
                let p = source.n_features();
                self.solve_moments(plan, gather(source, || Moments::empty_fast(p), control)?, source, control)
            }
        }
    }

    /// Features of very different scales, which passes cannot tell: the covariance can, where there is memory
    /// for it.
    fn solve_scales(&self, lost: Error, source: &dyn RowSource, control: &Control<'_>) -> Result<Solution> {
        let plan = choose(Solver::Eigen, &self.problem(source))?;
        if plan.memory > self.run.bytes() {
            return Err(lost);
        }
        let reason = "features differ by orders of magnitude: the covariance keeps each to its own scale";
        let p = source.n_features();
        let moments = gather(source, || Moments::empty(p), control)?;
        self.solve_moments(Plan { reason: reason.into(), ..plan }, moments, source, control)
    }

    /// After one pass; a second one in double precision when products in single are too coarse for the noise
    /// that is there.
    pub(super) fn solve_moments(
        &self,
        plan: Plan,
        moments: Moments,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Solution> {
        let (p, q) = (source.n_features(), self.components);
        let spectrum = eigen::solve(&moments, q, self.run.seed);
        if rows_know_more(&moments, &spectrum) {
            let journey = Some(Journey { stop: Stop::Converged, trace: Vec::new(), passes: 2 });
            let spectrum = of_rests(&moments, source, eigen::counted(q, &moments)?, control)?;
            return Ok(Solution { journey, moments: Some(moments), ..Solution::new(plan, spectrum) });
        }
        let error = moments.single_precision_error();
        let coarse = |s: &Spectrum| error * s.eigenvalues()[0] > NOISE_ACCURACY * s.noise_variance();
        if error == 0.0 || spectrum.as_ref().is_ok_and(|s| !coarse(s)) {
            return Ok(Solution { moments: Some(moments), ..Solution::new(plan, spectrum?) });
        }
        let moments = gather(source, || Moments::empty(p), control)?;
        let spectrum = eigen::solve(&moments, q, self.run.seed)?;
        let journey = Some(Journey { stop: Stop::Converged, trace: Vec::new(), passes: 2 });
        Ok(Solution { journey, moments: Some(moments), ..Solution::new(plan, spectrum) })
    }
}

/// What is left of a fit when its components are given to the noise.
fn without_components<M: FromSpectrum>(fit: Fit<M>) -> Result<Fit<M>> {
    if fit.report.holes.is_some() {
        let (name, value) = ("the number of components", "0".into());
        return Err(Error::Parameter { name, value, allowed: "at least 1 when rows have missing values" });
    }
    let Some(spectrum) = fit.report.spectrum.as_ref().map(|spectrum| spectrum.leading(0)) else {
        return Ok(fit);
    };
    let log_likelihood = known(spectrum.log_likelihood());
    let model = M::from_spectrum(&spectrum)?;
    let report = Report { components: 0, log_likelihood, spectrum: Some(spectrum), ..fit.report };
    Ok(Fit { model, report })
}

/// What a look at the rows gives.
pub(super) enum FirstPass {
    /// None has a missing value, and this is their spectrum.
    Complete(Solution),
    /// Where an iteration starts.
    Incomplete(StartingPoint),
}

impl FirstPass {
    /// Rows of positive weight, and their total weight.
    pub(super) fn counts(&self) -> (usize, f64) {
        match self {
            Self::Complete(solved) => (solved.spectrum.rows(), solved.spectrum.weight()),
            Self::Incomplete(begin) => (begin.census.rows(), begin.census.weight()),
        }
    }
}

/// A spectrum with the way it was found.
pub(super) struct Solution {
    pub(super) plan: Plan,
    pub(super) spectrum: Spectrum,
    pub(super) journey: Option<Journey>,
    pub(super) holes: Option<MissingCells>,
    /// What it was found from, where that is moments.
    pub(super) moments: Option<Moments>,
}

impl Solution {
    /// In closed form, from complete rows.
    pub(super) fn new(plan: Plan, spectrum: Spectrum) -> Self {
        Self { plan, spectrum, journey: None, holes: None, moments: None }
    }
}

impl From<Incomplete> for Solution {
    fn from(found: Incomplete) -> Self {
        let Incomplete { spectrum, journey, holes, plan } = found;
        let holes = Some(holes).filter(|h| h.missing > 0);
        Self { journey: Some(journey), holes, ..Self::new(plan, spectrum) }
    }
}

fn finish<M: FromSpectrum>(solved: Solution, components: Components, started: Instant) -> Result<Fit<M>> {
    let Solution { plan, spectrum, journey, holes, moments } = solved;
    // Only evidence is asked of some features alone.
    let moments = moments.filter(|_| components == Components::Evidence);
    let redundant = moments.map(|m| RedundantFeatures::of(&m)).filter(|found| !found.is_empty());
    let model = M::from_spectrum(&spectrum)?;
    let report = Report::new(plan, spectrum, journey, started.elapsed().as_secs_f64());
    Ok(Fit { model, report: Report { holes, redundant, ..report } })
}

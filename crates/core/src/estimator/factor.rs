//! Factor analysis by maximum likelihood: options, checked into a plan, run by an algorithm.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::factor_assess::Yardstick;
use super::factor_plan::{FactorChoice, FactorRequest, choose_factor};
use super::{FactorReport, Holes, Plan, Report, RotationReport, Solver};
use crate::algorithm::{
    Components, FoundFactors, Search, Start, Stop, em_factor, krylov_factor, newton_factor,
};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::{Found, Moments, Pairwise, Survey, gather};
use crate::linalg::{Mat, MatRef};
use crate::model::{Factors, LinearGaussian, Noise};
use crate::rotate::Rotate;

/// Relative error of a uniqueness that single precision may leave.
const NOISE_ACCURACY: f64 = 1e-4;
/// Least uniqueness unless told, and the least that it is lowered to.
pub(super) const LOWER: (f64, f64) = (0.005, 5e-9);
/// Starts that are tried where one ends at a bound, when their number is not given.
const DOUBTFUL_STARTS: usize = 5;
/// Discrepancies this close are the same optimum.
pub(super) const SAME_OPTIMUM: f64 = 1e-6;
/// Distance of a correlation from ±1 that is rounding.
const SAME: f64 = 1e-12;

/// How the noise variances are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorSolver {
    /// Chosen by shape and memory.
    #[default]
    Auto,
    /// Newton's method on log ψ with whole decompositions of the p × p correlations: a few hundred features.
    Newton,
    /// Leading eigenvectors by block Krylov and limited-memory BFGS on log ψ: many features; no p × p matrix where there are rows.
    Krylov,
    /// Expectation and maximisation on the p × p covariance: simple and slow.
    Em,
}

/// A fitted model of factors with its provenance.
#[derive(Debug, Clone)]
pub struct FactorFit {
    /// The model, on the scale of the data.
    pub model: Factors,
    /// How the fit went; `factor` has what is particular to factors.
    pub report: Report,
}

/// Factor analysis by maximum likelihood: x = W z + μ + ε with a noise variance ψ for each feature.
///
/// Minimises the discrepancy $F = \ln|C| + \operatorname{tr}(SC^{-1}) - \ln|S| - p$ of $C = WW^\top + \Psi$ and the covariance S of the data
/// (divisor n) over log ψ, the loadings being known in closed form for given noise \[J67\]. The scale of features does not matter:
/// a fit to correlations is the same fit.
///
/// ```
/// use covary::FactorAnalysis;
/// use covary::evidence::Moments;
/// use covary::linalg::Mat;
///
/// // Four tests and their correlations in a class of 30: one factor.
/// let r = [[1.0, 0.56, 0.48, 0.4], [0.56, 1.0, 0.42, 0.35], [0.48, 0.42, 1.0, 0.3], [0.4, 0.35, 0.3, 1.0]];
/// let r = Mat::from_fn(4, 4, |i, j| r[i][j]);
/// let fit = FactorAnalysis::new(1).fit_moments(&Moments::from_covariance(r.as_ref(), None, 30)?)?;
/// let expected = [0.8, 0.7, 0.6, 0.5];
/// assert!((0..4).all(|j| (fit.model.pattern()[(j, 0)] - expected[j]).abs() < 1e-6));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FactorAnalysis {
    pub(super) factors: usize,
    solver: FactorSolver,
    pub(super) lower: Option<f64>,
    pub(super) starts: Option<usize>,
    memory: usize,
    pub(super) tolerance: f64,
    pub(super) max_iterations: usize,
    pub(super) seed: u64,
    rotation: Option<Rotate>,
    threads: Option<usize>,
}

impl FactorAnalysis {
    /// So many factors.
    pub fn new(factors: usize) -> Self {
        Self {
            factors,
            solver: FactorSolver::Auto,
            lower: None,
            starts: None,
            memory: usize::MAX,
            tolerance: 1e-8,
            max_iterations: 1000,
            seed: 0,
            rotation: None,
            threads: None,
        }
    }

    /// How the optimum is found; chosen automatically by default.
    pub fn solver(mut self, solver: FactorSolver) -> Self {
        self.solver = solver;
        self
    }

    /// How the factors are turned; not at all by default. The loadings on the scale of correlations are turned, so that the unit of
    /// a feature does not matter.
    pub fn rotation(mut self, rotate: Rotate) -> Self {
        self.rotation = Some(rotate);
        self
    }

    /// Least uniqueness ψ/variance of a feature.
    ///
    /// By default 0.005, as R's factanal has it. At a maximum of the likelihood of regular data no more than q uniquenesses can vanish,
    /// so where more than q features end at the bound, it is the data that have less noise: it is then lowered, a hundredfold at a time.
    pub fn lower(mut self, lower: f64) -> Self {
        self.lower = Some(lower);
        self
    }

    /// Number of starts, of which the best is kept. By default one, and five where it ends at a bound or does not converge, except
    /// in passes over the rows.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = Some(starts);
        self
    }

    /// Bytes that the fit may hold besides rows that are in memory already; no limit by default.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Norm of the gradient at which the fit ends; 1e-8 by default.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Limit on the iterations from each start.
    pub fn max_iterations(mut self, limit: usize) -> Self {
        self.max_iterations = limit;
        self
    }

    /// Seed of the starts after the first; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Number of threads; all cores by default. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<FactorFit> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<FactorFit> {
        let rows = rows.into();
        let source = rows.source();
        with_threads(self.threads, || self.run(source, control))
    }

    /// Fits moments: no rows are needed. They may come from rows, from parts merged, or from a covariance or correlation matrix
    /// ([`Moments::from_covariance`]).
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    pub fn fit_moments(&self, moments: &Moments) -> Result<FactorFit> {
        let started = Instant::now();
        self.check(moments.n_features())?;
        let plan =
            choose_factor(self.solver, &FactorRequest::of_moments(moments.n_features(), self.factors))?.plan;
        let solved = with_threads(self.threads, || self.solve_moments(plan, moments, &Control::new()))?;
        self.finish(Solved { passes: 0, ..solved }, started)
    }

    fn run(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<FactorFit> {
        let started = Instant::now();
        let p = source.n_features();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        self.check(p)?;
        control.check()?;
        if let Some(n) = source.n_rows() {
            Components::Count(self.factors).check_possible(n, p)?;
        }
        let request = FactorRequest {
            rows: source.n_rows(),
            features: p,
            factors: self.factors,
            in_memory: source.as_table().is_some(),
            memory: self.memory,
        };
        let choice = choose_factor(self.solver, &request)?;
        let solved = self.solve_any(choice, source, control).map_err(|e| e.named(source.feature_names()))?;
        self.finish(solved, started)
    }

    /// What makes no sense whatever the data.
    fn check(&self, p: usize) -> Result<()> {
        let q = self.factors;
        Components::Count(q).check()?;
        if q > most_factors(p) {
            return Err(Error::Factors { requested: q, possible: most_factors(p), features: p });
        }
        if let Some(lower) = self.lower.filter(|l| !(*l > 0.0 && *l < 1.0)) {
            let (name, value) = ("the least uniqueness", lower.to_string());
            return Err(Error::Parameter { name, value, allowed: "above 0 and below 1" });
        }
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            let (name, value) = ("the tolerance", self.tolerance.to_string());
            return Err(Error::Parameter { name, value, allowed: "finite and positive" });
        }
        match self.starts {
            Some(0) => Err(Error::Parameter {
                name: "the number of starts",
                value: "0".into(),
                allowed: "at least 1",
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn search(&self, lower: f64) -> Search {
        Search {
            factors: self.factors,
            lower,
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
        }
    }

    /// From moments where they fit, else in passes; whether there are holes shows in the first pass.
    fn solve_any(
        &self,
        choice: FactorChoice,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Solved> {
        let FactorChoice { plan, in_passes } = choice;
        if in_passes {
            return self.solve_rows(plan, source, control);
        }
        let p = source.n_features();
        match gather(source, || Pairwise::empty(p), control)?.finish()? {
            Found::Complete(moments) => self.solve_gathered(plan, &moments, source, control),
            // A list of observed cells may turn out to have no holes.
            Found::Incomplete(cases) if cases.census.missing() == 0 => {
                let moments = gather(source, || Moments::empty(p), control)?;
                Ok(Solved { passes: 2, ..self.solve_moments(plan, &moments, control)? })
            }
            Found::Incomplete(cases) => self.solve_available(cases, source, control),
        }
    }

    /// After one pass; a second one in double precision when products in single are too coarse.
    fn solve_gathered(
        &self,
        plan: Plan,
        moments: &Moments,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Solved> {
        let p = source.n_features();
        let solved = self.solve_moments(plan.clone(), moments, control);
        let error = moments.single_precision_error() * p as f64;
        let coarse = |s: &Solved| s.tries.best.uniquenesses.iter().any(|u| error > NOISE_ACCURACY * u);
        if error == 0.0 || solved.as_ref().is_ok_and(|s| !coarse(s)) {
            return solved;
        }
        let moments = gather(source, || Moments::empty_double(p), control)?;
        Ok(Solved { passes: 2, ..self.solve_moments(plan, &moments, control)? })
    }

    fn solve_moments(&self, plan: Plan, moments: &Moments, control: &Control<'_>) -> Result<Solved> {
        Components::Count(self.factors).check_possible(moments.rows(), moments.n_features())?;
        let mut r = moments.covariance();
        let variances: Vec<f64> = (0..r.nrows()).map(|j| r[(j, j)]).collect();
        let deviations = deviations(moments.mean(), &variances)?;
        for j in 0..r.ncols() {
            let column = r.col_as_slice_mut(j).iter_mut().zip(&deviations);
            column.for_each(|(r, d)| *r = *r / d / deviations[j]);
            r[(j, j)] = 1.0;
        }
        check_different(r.as_ref())?;
        let lower = self.first_bound(plan.solver, r.as_ref())?;
        let tries = self.best_of(lower, DOUBTFUL_STARTS, |search, start| {
            Self::solve_correlations(plan.solver, r.as_ref(), (search, start), control)
        })?;
        let (mean, seen) = (moments.mean().to_vec(), (moments.rows(), moments.weight()));
        let weights = vec![moments.weight(); mean.len()];
        let yardstick = Yardstick::Correlations(r);
        Ok(Solved { plan, tries, mean, deviations, weights, seen, passes: 1, holes: None, yardstick })
    }

    pub(super) fn solve_correlations(
        solver: Solver,
        r: MatRef<'_, f64>,
        (search, start): (&Search, &Start),
        control: &Control<'_>,
    ) -> Result<FoundFactors> {
        match solver {
            Solver::Krylov => krylov_factor::solve(r, search, start, control),
            Solver::Em => em_factor::solve(r, search, start, control),
            _ => newton_factor::solve(r, search, start, control),
        }
    }

    fn solve_rows(&self, plan: Plan, source: &dyn RowSource, control: &Control<'_>) -> Result<Solved> {
        let p = source.n_features();
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        if census.missing() > 0 {
            return self.solve_filled(census, &margins, source, control);
        }
        Components::Count(self.factors).check_possible(census.rows(), p)?;
        let deviations = deviations(margins.mean(), &margins.variance())?;
        let mut passes = 1;
        let tries = self.best_of(self.usual_bound(), 1, |search, start| {
            let (found, more) = krylov_factor::solve_rows(source, &deviations, search, start, control)?;
            passes += more;
            Ok(found)
        })?;
        let (mean, seen) = (margins.mean().to_vec(), (census.rows(), census.weight()));
        let weights = margins.weight().to_vec();
        let yardstick = Yardstick::Nothing;
        Ok(Solved { plan, tries, mean, deviations, weights, seen, passes, holes: None, yardstick })
    }

    /// The best of some starts: the number asked for, or one, and `doubtful` in all where it ends at a bound or does not converge.
    fn best_of(
        &self,
        lower: f64,
        doubtful: usize,
        mut run: impl FnMut(&Search, &Start) -> Result<FoundFactors>,
    ) -> Result<Tries> {
        let (first, lower) = self.within_bound(lower, &mut run)?;
        let doubt = !first.heywood.is_empty() || first.stop == Stop::IterationLimit;
        let starts = self.starts.unwrap_or(if doubt { doubtful } else { 1 });
        let mut all = vec![first];
        for k in 1..starts {
            if all.iter().any(|found| found.stop == Stop::Interrupted) {
                break;
            }
            all.push(run(&self.search(lower), &Start::Random(self.seed.wrapping_add(k as u64)))?);
        }
        Ok(Tries::new(all, lower))
    }

    /// The bound that was asked for, or the default.
    pub(super) fn usual_bound(&self) -> f64 {
        self.lower.unwrap_or(LOWER.0)
    }

    /// The bound to begin with: below the default where the other features predict more than q features so well that those would end
    /// there, which saves Newton's method the way.
    fn first_bound(&self, solver: Solver, r: MatRef<'_, f64>) -> Result<f64> {
        let mut lower = self.usual_bound();
        if self.lower.is_some() || solver != Solver::Newton {
            return Ok(lower);
        }
        let start = newton_factor::log_psi(r, &self.search(LOWER.1), &Start::Usual)?;
        while lower > LOWER.1 && start.iter().filter(|x| **x < lower.ln()).count() > self.factors {
            lower = (lower / 100.0).max(LOWER.1);
        }
        Ok(lower)
    }

    /// From the usual start with the bound that was asked for, or one that leaves at most q features there.
    pub(super) fn within_bound(
        &self,
        mut lower: f64,
        run: &mut impl FnMut(&Search, &Start) -> Result<FoundFactors>,
    ) -> Result<(FoundFactors, f64)> {
        let mut found = run(&self.search(lower), &Start::Usual)?;
        while self.lower.is_none()
            && found.heywood.len() > self.factors
            && found.stop == Stop::Converged
            && lower > LOWER.1
        {
            lower = (lower / 100.0).max(LOWER.1);
            let next = run(&self.search(lower), &Start::At(found.uniquenesses.clone()))?;
            let trace = [found.trace, next.trace.clone()].concat();
            found = FoundFactors { trace, ..next };
        }
        Ok((found, lower))
    }

    fn finish(&self, solved: Solved, started: Instant) -> Result<FactorFit> {
        let (of_correlations, log_likelihood) = solved.log_likelihoods();
        let assessment = solved.assessment(log_likelihood)?;
        let Solved { plan, tries, mean, deviations: d, seen: (rows, weight), passes, holes, .. } = solved;
        let Tries { best, lower, starts, agreeing } = tries;
        let (p, q) = (mean.len(), self.factors);
        let loadings = Mat::from_fn(p, q, |j, k| best.loadings[(j, k)] * d[j]);
        let noise = (0..p).map(|j| best.uniquenesses[j] * d[j] * d[j]).collect();
        let mean = (0..p).map(|j| mean[j] + best.mean[j] * d[j]).collect();
        let model = LinearGaussian::new(mean, loadings, Noise::Diagonal(noise)).map_err(|_| Error::Scale)?;
        let (model, rotation) = self.turned(Factors::new(model), &d)?;
        let factor = FactorReport {
            discrepancy: best.discrepancy,
            dof: ((p - q).pow(2) - (p + q)) / 2,
            correlation_log_likelihood: of_correlations,
            gradient_norm: best.gradient_norm,
            iterations: best.trace.len(),
            starts,
            agreeing,
            lower,
            heywood: best.heywood,
            unused: best.unused,
            rotation,
            assessment,
        };
        let report = Report {
            plan,
            rows,
            weight,
            features: p,
            components: q,
            log_likelihood: Some(log_likelihood),
            total_variance: d.iter().map(|d| d * d).sum(),
            holes,
            factor: Some(factor),
            stop: best.stop,
            passes,
            trace: best.trace,
            seconds: started.elapsed().as_secs_f64(),
        };
        Ok(FactorFit { model, report })
    }

    /// The factors turned as asked; their loadings W in units of the deviations are what the rotation sees.
    fn turned(&self, model: Factors, deviations: &[f64]) -> Result<(Factors, Option<RotationReport>)> {
        let Some(rotate) = &self.rotation else { return Ok((model, None)) };
        let w = model.gaussian().loadings();
        let standard = Mat::from_fn(w.nrows(), w.ncols(), |j, k| w[(j, k)] / deviations[j]);
        let rotated = rotate.run(standard.as_ref())?;
        let report = RotationReport::new(rotate, &rotated);
        Ok((model.with_turn(rotated.turn)?, Some(report)))
    }
}

/// What a solver gives, with what is needed to go back to the scale of the data.
pub(super) struct Solved {
    pub(super) plan: Plan,
    pub(super) tries: Tries,
    pub(super) mean: Vec<f64>,
    pub(super) deviations: Vec<f64>,
    pub(super) weights: Vec<f64>,  // of each feature's cells
    pub(super) seen: (usize, f64), // rows, weight
    pub(super) passes: usize,
    pub(super) holes: Option<Holes>,
    pub(super) yardstick: Yardstick,
}

/// The best of some starts.
pub(super) struct Tries {
    pub(super) best: FoundFactors,
    lower: f64,
    starts: usize,
    agreeing: usize,
}

impl Tries {
    pub(super) fn new(mut all: Vec<FoundFactors>, lower: f64) -> Self {
        let starts = all.len();
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        let lowest = all[0].value;
        let agreeing = all.iter().filter(|found| found.value - lowest <= SAME_OPTIMUM).count();
        // Among equals, the first that has converged.
        let converged = all[..agreeing].iter().position(|found| found.stop == Stop::Converged);
        let best = all.swap_remove(converged.unwrap_or(0));
        Self { best, lower, starts, agreeing }
    }
}

/// The largest q with ((p − q)² − (p + q))/2 ≥ 0.
fn most_factors(p: usize) -> usize {
    (0..p).take_while(|q| (p - q).pow(2) >= p + q).last().unwrap_or(0)
}

/// Standard deviations; an error names features that have none.
pub(super) fn deviations(mean: &[f64], variances: &[f64]) -> Result<Vec<f64>> {
    if variances.iter().any(|v| !v.is_finite()) {
        return Err(Error::Scale);
    }
    let constant = |(m, v): (&f64, &f64)| *v <= (4.0 * f64::EPSILON * m).powi(2);
    let pairs = mean.iter().zip(variances).enumerate();
    let features: Vec<_> = pairs.filter(|(_, pair)| constant(*pair)).map(|(j, _)| (j, None)).collect();
    match features.len() {
        0 => Ok(variances.iter().map(|v| v.sqrt()).collect()),
        all if all == variances.len() => Err(Error::Constant),
        _ => Err(Error::ConstantFeatures { features }),
    }
}

/// An error names the first two features whose correlation is ±1.
fn check_different(r: MatRef<'_, f64>) -> Result<()> {
    let pairs = (0..r.ncols()).flat_map(|j| (j + 1..r.nrows()).map(move |i| (j, i)));
    match pairs.into_iter().find(|(j, i)| r[(*i, *j)].abs() > 1.0 - SAME) {
        Some((a, b)) => Err(Error::SameFeatures { features: vec![(a, None), (b, None)] }),
        None => Ok(()),
    }
}

/// Runs on so many threads.
fn with_threads<T: Send>(threads: Option<usize>, run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let Some(threads) = threads else { return run() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Error::Parameter {
        name: "the number of threads",
        value: format!("{threads} ({e})"),
        allowed: "what the system can start",
    })?;
    pool.install(run)
}

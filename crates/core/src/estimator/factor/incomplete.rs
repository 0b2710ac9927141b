//! Factor analysis of rows with missing values: maximum likelihood of the observed cells, from the optimum of
//! the available cases.

use super::finish::FactorSolution;
use super::plan::{FactorProblem, choose_factor};
use super::solve::deviations;
use super::starts::{LOWER, SAME_OPTIMUM, Tries};
use super::{FactorAnalysis, FactorSolver};
use crate::algorithm::{Components, FoundFactors, Journey, Passes, Search, Start, Stop, drive, em, start};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::estimator::{MissingCells, Plan, Solver};
use crate::evidence::{AvailableCases, Census, Margins};
use crate::expectation::LatentParameters;
use crate::linalg::{Mat, MatRef, product, standard_signs, symmetric_eigen};

/// Starts of the search on the available cases, when their number is not given: it costs no pass over the
/// rows.
const STARTS: usize = 5;
/// Different optima of the available cases that the iteration is tried from.
const MOST_CLIMBS: usize = 3;
/// Pairs with few rows in common can have a correlation of 1 or more, which no model has.
const MOST_CORRELATION: f64 = 0.98;
/// Uniqueness at which features start that the available cases put at the bound: the observed cells may not,
/// and the likelihood is flat there.
const LEAST_UNIQUENESS: f64 = 0.1;
/// A uniqueness this close to its bound, relative, lies on it.
const AT_BOUND: f64 = 1e-9;
/// Squared length, in units of the noise, of a factor of no length.
const NO_LENGTH: f64 = 1e-8;

/// What is known of the rows, whatever the start.
struct ObservedMargins {
    census: Census,
    weights: Vec<f64>, // of each feature's cells
    mean: Vec<f64>,
    deviations: Vec<f64>,
    unseen_pairs: Option<usize>,
}

/// Where the iteration is tried from.
struct Starts {
    starts: Vec<LatentParameters>,
    lower: f64, // least uniqueness
    passes: usize,
}

impl FactorAnalysis {
    /// After a pass that has seen the available cases.
    pub(super) fn solve_available(
        &self,
        cases: AvailableCases,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let AvailableCases { census, weights, mean, covariance, unseen_pairs } = cases;
        start::supported(Components::Count(self.factors()), &census)?;
        let variances: Vec<f64> = (0..mean.len()).map(|j| covariance[(j, j)]).collect();
        let deviations = deviations(&mean, &variances)?;
        let r = correlations(covariance.as_ref(), &deviations);
        let seen = ObservedMargins { census, weights, mean, deviations, unseen_pairs: Some(unseen_pairs) };
        let (optima, lower) = self.optima(r.as_ref(), control)?;
        let starts = optima.iter().map(|found| seen.parameters(found)).collect();
        self.climb(seen, Starts { starts, lower, passes: 1 }, source, control)
    }

    /// Too many features for all pairs: from the leading directions of rows whose missing values are filled
    /// with the mean.
    pub(super) fn solve_filled(
        &self,
        census: Census,
        margins: &Margins,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let (p, q) = (source.n_features(), Components::Count(self.factors()));
        let variances = margins.variance();
        let deviations = deviations(margins.mean(), &variances)?;
        let (found, passes) = start::from_filled_rows(source, (&census, margins), q, self.run.seed, control)?;
        let loadings = found.loadings();
        let left = |j: usize| variances[j] - loadings.row(j).squared_norm_l2();
        let noises: Vec<f64> =
            (0..p).map(|j| left(j).max(found.noise_variance(j).min(variances[j]))).collect();
        let start = LatentParameters::with_noises(margins.mean().to_vec(), loadings.as_ref(), &noises)?;
        let (weights, mean) = (margins.weight().to_vec(), margins.mean().to_vec());
        let seen = ObservedMargins { census, weights, mean, deviations, unseen_pairs: None };
        let lower = self.lower.unwrap_or(LOWER.0);
        self.climb(seen, Starts { starts: vec![start], lower, passes: passes + 1 }, source, control)
    }

    /// Different optima for the correlations of the available cases, the best first, and the least
    /// uniqueness.
    fn optima(&self, r: MatRef<'_, f64>, control: &Control<'_>) -> Result<(Vec<FoundFactors>, f64)> {
        let request = FactorProblem::of_moments(r.nrows(), self.factors());
        let solver = choose_factor(FactorSolver::Auto, &request)?.plan.solver;
        let mut run =
            |search: &Search, start: &Start| Self::solve_correlations(solver, r, (search, start), control);
        let (first, lower) = self.within_bound(self.usual_bound(), &mut run)?;
        let mut found = vec![first];
        for k in 1..self.starts.unwrap_or(STARTS) {
            found.push(run(&self.search(lower), &Start::Random(self.run.seed.wrapping_add(k as u64)))?);
        }
        found.sort_by(|a, b| a.value.total_cmp(&b.value));
        found.dedup_by(|a, b| (a.value - b.value).abs() <= SAME_OPTIMUM);
        found.truncate(MOST_CLIMBS);
        Ok((found, lower))
    }

    /// EM from each start; the best end is the answer.
    fn climb(
        &self,
        seen: ObservedMargins,
        Starts { starts, lower, mut passes }: Starts,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let least: Vec<f64> = seen.deviations.iter().map(|d| lower * d * d).collect();
        let mut found = Vec::with_capacity(starts.len());
        for start in starts {
            let em = Passes::over(source, em::Em::bounded(start, &least));
            let (optimum, journey) = drive(em, self.limits(), control)?;
            passes += journey.passes;
            let stopped = journey.stop == Stop::Interrupted;
            found.push(seen.found(&optimum, journey, lower)?);
            if stopped {
                break;
            }
        }
        let ObservedMargins { census, weights, mean, deviations, unseen_pairs } = seen;
        let (comparison, more) = self.saturated(&census, (&weights, &deviations), source, control)?;
        let holes = MissingCells::new(&census, unseen_pairs);
        Ok(FactorSolution {
            plan: self.plan_of_holes(&holes, mean.len()),
            tries: Tries::new(found, lower),
            mean,
            deviations,
            weights,
            seen: (census.rows(), census.weight()),
            passes: passes + more,
            holes: Some(holes),
            comparison,
        })
    }

    fn plan_of_holes(&self, holes: &MissingCells, p: usize) -> Plan {
        let q = self.factors();
        let reason = format!("{} cells are missing", holes.missing);
        Plan { solver: Solver::Em, reason, memory: 16 * 8 * p * (q + 1) * (q + 4) / 2 }
    }
}

impl ObservedMargins {
    /// Where the iteration starts: what was found for features of unit variance, in the units of the data.
    fn parameters(&self, found: &FoundFactors) -> LatentParameters {
        let mut roots: Vec<f64> = found.uniquenesses.iter().map(|u| u.sqrt()).collect();
        found.heywood.iter().for_each(|j| roots[*j] = roots[*j].max(LEAST_UNIQUENESS.sqrt()));
        let (p, q) = (found.loadings.nrows(), found.loadings.ncols());
        let loadings = Mat::from_fn(q, p, |k, j| found.loadings[(j, k)] / roots[j]);
        let deviations = roots.iter().zip(&self.deviations).map(|(root, d)| root * d).collect();
        LatentParameters::in_noise(self.mean.clone(), &loadings, deviations)
    }

    /// The end of an iteration, for features of unit variance.
    fn found(&self, optimum: &em::Optimum, journey: Journey, lower: f64) -> Result<FoundFactors> {
        let parameters = &optimum.parameters;
        let p = parameters.n_features();
        let shares: Vec<f64> = (0..p).map(|j| parameters.scale().of(j) / self.deviations[j]).collect();
        let (scaled, unused) = principal(parameters.loadings_transposed())?;
        let mut loadings = Mat::from_fn(p, scaled.ncols(), |j, k| scaled[(j, k)] * shares[j]);
        standard_signs(&mut loadings);
        let uniquenesses: Vec<f64> = shares.iter().map(|s| s * s).collect();
        let at_bound = |j: &usize| uniquenesses[*j] <= lower * (1.0 + AT_BOUND);
        let volume: f64 = self.weights.iter().zip(&self.deviations).map(|(w, d)| w * d.ln()).sum();
        let of_correlations = (optimum.objective + volume) / self.census.weight();
        let moved = |j: usize| (parameters.mean()[j] - self.mean[j]) / self.deviations[j];
        Ok(FoundFactors {
            mean: (0..p).map(moved).collect(),
            loadings,
            value: -2.0 * of_correlations - p as f64 * std::f64::consts::TAU.ln(),
            discrepancy: None,
            gradient_norm: optimum.gradient_norm,
            heywood: (0..p).filter(at_bound).collect(),
            uniquenesses,
            unused,
            stop: journey.stop,
            trace: journey.trace,
        })
    }
}

/// W with WᵀW diagonal and descending, from Wᵀ (q × p), and how many columns have no length.
fn principal(transposed: MatRef<'_, f64>) -> Result<(Mat<f64>, usize)> {
    let eigen = symmetric_eigen(product(transposed, transposed.transpose()).as_ref())?;
    let unused = eigen.values.iter().filter(|v| **v < NO_LENGTH).count();
    Ok((product(transposed.transpose(), eigen.vectors.as_ref()), unused))
}

/// Of the available cases, where a pair with few rows in common can go beyond what correlations can be.
fn correlations(covariance: MatRef<'_, f64>, deviations: &[f64]) -> Mat<f64> {
    let entry = |i: usize, j: usize| covariance[(i, j)] / deviations[i] / deviations[j];
    let within = |i: usize, j: usize| entry(i, j).clamp(-MOST_CORRELATION, MOST_CORRELATION);
    Mat::from_fn(covariance.nrows(), covariance.ncols(), |i, j| if i == j { 1.0 } else { within(i, j) })
}

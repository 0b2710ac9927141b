//! Maximum-likelihood factors of many features: leading eigenvectors by block Krylov, limited-memory BFGS on
//! log ψ \[DDM20\].
//!
//! The correlation matrix is known only by its products with blocks of vectors: of a matrix in memory, or of
//! rows in passes.

use std::sync::Arc;

use super::factor_profile::{FoundFactors, OBJECTIVE, Profile, Search, Start, shortened};
use super::optimise::{QuasiNewton, halved};
use super::{Iteration, Objective, Step, drive};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{Sketch, gather};
use crate::linalg::{BlockKrylov, Cholesky, Eigen, Mat, MatRef, product};

/// Residuals of eigenpairs, relative: the tightest, and the loosest that is of use far from the optimum.
const RESIDUALS: (f64, f64) = (1e-11, 1e-5);
/// Products after which eigenpairs are taken as they are.
const MOST_PRODUCTS: usize = 1000;
/// Lengths of a step, each half of the one before, that are tried along a direction.
const HALVINGS: usize = 20;
/// Noise at which the first step ends at least, or the share of it that is left.
const LEAST_FIRST: f64 = 0.05;
const LEAST_SHARE: f64 = 0.2;

/// Minimises log |C| + tr(R C⁻¹) for a correlation matrix in memory (both triangles).
pub(crate) fn solve(
    r: MatRef<'_, f64>,
    search: &Search,
    start: &Start,
    control: &Control<'_>,
) -> Result<FoundFactors> {
    let iteration = ProfileSearch::new(InMemory { r }, r.nrows(), *search, start);
    let (at, journey) = drive(iteration, search.limits, control)?;
    let found = at.found(search, journey);
    let log_det =
        Cholesky::new(r.to_owned(), "the correlation matrix").ok().filter(|l| l.smallest_pivot() > 1e-6);
    let discrepancy = log_det.map(|l| (found.value - l.log_det() - r.nrows() as f64).max(0.0));
    Ok(FoundFactors { discrepancy, ..found })
}

/// The same for rows, features divided by their deviations, in passes: no p × p matrix. Also the number of
/// passes.
pub(crate) fn solve_rows(
    source: &dyn RowSource,
    deviations: &[f64],
    search: &Search,
    start: &Start,
    control: &Control<'_>,
) -> Result<(FoundFactors, usize)> {
    let inverse = deviations.iter().map(|d| 1.0 / d).collect();
    let iteration =
        ProfileSearch::new(OfRows { source, inverse, passes: 0 }, deviations.len(), *search, start);
    let (at, journey) = drive(iteration, search.limits, control)?;
    let passes = journey.passes;
    Ok((at.found(search, journey), passes))
}

/// A correlation matrix R (p × p) that is known by its products.
trait Correlations {
    /// R B for a block B (p × b).
    fn times(&mut self, block: Mat<f64>, control: &Control<'_>) -> Result<Mat<f64>>;

    /// Passes over rows so far.
    fn passes(&self) -> usize {
        0
    }
}

struct InMemory<'a> {
    r: MatRef<'a, f64>,
}

impl Correlations for InMemory<'_> {
    fn times(&mut self, block: Mat<f64>, control: &Control<'_>) -> Result<Mat<f64>> {
        control.check()?;
        Ok(product(self.r, block.as_ref()))
    }
}

/// The correlations of rows: with D the deviations and n S the scatter, R B = D⁻¹ (n S) D⁻¹ B / n in one
/// pass.
struct OfRows<'a> {
    source: &'a dyn RowSource,
    inverse: Vec<f64>, // 1 / deviation of each feature
    passes: usize,
}

impl Correlations for OfRows<'_> {
    fn times(&mut self, block: Mat<f64>, control: &Control<'_>) -> Result<Mat<f64>> {
        let block = Arc::new(scaled_rows(block.as_ref(), &self.inverse));
        let sketch = gather(self.source, || Sketch::empty(Arc::clone(&block)), control)?;
        self.passes += 1;
        let weight = sketch.weight();
        let factors: Vec<f64> = self.inverse.iter().map(|f| f / weight).collect();
        Ok(scaled_rows(sketch.image(), &factors))
    }

    fn passes(&self) -> usize {
        self.passes
    }
}

/// The iteration: each step is a line search, and each point of it an eigenproblem.
struct ProfileSearch<R> {
    correlations: R,
    search: Search,
    start: Vec<f64>,         // log ψ
    block: Option<Mat<f64>>, // where the next eigenproblem starts
    at: Option<Profile>,     // the point where the search stands, once it is known
    rounding: f64,           // in the objective of the point before
    past: QuasiNewton,
    held: Vec<bool>,     // features at their bound
    direction: Vec<f64>, // of the next step
}

impl<R: Correlations> ProfileSearch<R> {
    /// Usually from ψ = 1.
    fn new(correlations: R, p: usize, search: Search, start: &Start) -> Self {
        Self {
            correlations,
            search,
            start: search.unusual(p, start).unwrap_or_else(|| vec![0.0; p]),
            block: None,
            at: None,
            rounding: 0.0,
            past: QuasiNewton::default(),
            held: vec![false; p],
            direction: Vec::new(),
        }
    }

    fn floor(&self) -> f64 {
        self.search.lower.ln()
    }

    /// The profile at log ψ, from eigenpairs of Ψ^-½ R Ψ^-½ with these residuals.
    fn profile(&mut self, log_psi: Vec<f64>, residual: f64, control: &Control<'_>) -> Result<Profile> {
        let (p, q) = (log_psi.len(), self.search.factors);
        let root: Vec<f64> = log_psi.iter().map(|x| (-0.5 * x).exp()).collect(); // Ψ^-½
        let mut krylov = BlockKrylov::new(p, q, 0).tolerance(residual);
        if let Some(block) = &self.block {
            krylov = krylov.starting_from(block);
        }
        for _ in 0..MOST_PRODUCTS {
            let image = self.correlations.times(scaled_rows(krylov.next_block(), &root), control)?;
            if krylov.absorb(scaled_rows(image.as_ref(), &root).as_ref())?.done {
                break;
            }
        }
        let next = BlockKrylov::new(p, q, 0).starting_from(krylov.ritz());
        self.block = Some(next.next_block().to_owned());
        let none = Eigen { values: Vec::new(), vectors: Mat::zeros(p, 0) };
        Ok(Profile::new(log_psi, &krylov.into_eigen().unwrap_or(none), q))
    }

    /// A better point than `at`: where the past points, else straight downhill; `None` when neither leads to
    /// one.
    fn search(&mut self, at: &Profile, control: &Control<'_>) -> Result<Option<Profile>> {
        let bold = std::mem::take(&mut self.direction);
        let found = self.along(at, &bold, control)?;
        if found.is_some() {
            return Ok(found);
        }
        self.past = QuasiNewton::default();
        let straight = self.uphill(at).into_iter().zip(curvatures(at)).map(|(g, h)| g / h).collect();
        self.along(at, &shortened(straight), control)
    }

    /// The first point along a direction that is good enough, with eigenpairs as accurate as is of use there.
    fn along(&mut self, at: &Profile, direction: &[f64], control: &Control<'_>) -> Result<Option<Profile>> {
        let (floor, size) = (self.floor(), (at.log_psi.len() as f64).sqrt());
        let residual = (1e-3 * at.gradient_norm(floor) / size).clamp(RESIDUALS.0, RESIDUALS.1);
        halved(1.0, HALVINGS, |length| {
            let next = self.profile(at.along(direction, length, floor), residual, control)?;
            Ok(at.accepts(&next, floor).then_some(next))
        })
    }

    /// Goes to a point: learns from its gradient, and chooses the direction of the next step.
    fn arrive(&mut self, next: Profile, first: bool) -> Step {
        let held = next.held(self.floor());
        if held != self.held {
            self.past = QuasiNewton::default();
            self.held = held;
        }
        let uphill = self.uphill(&next);
        self.past.observe(&next.log_psi, &uphill);
        self.direction =
            shortened(if first { first_direction(&next) } else { self.quasi_newton(&next, &uphill) });
        let step = Step { objective: next.objective(), change: next.gradient_norm(self.floor()) };
        self.at = Some(next);
        step
    }

    /// Minus the gradient of the features that are not held.
    fn uphill(&self, at: &Profile) -> Vec<f64> {
        at.gradient.iter().zip(&self.held).map(|(g, held)| if *held { 0.0 } else { -g }).collect()
    }

    /// Where the past points, unless that is uphill; the second derivatives are nearly diagonal where
    /// features are many.
    fn quasi_newton(&self, at: &Profile, uphill: &[f64]) -> Vec<f64> {
        let diagonal = curvatures(at);
        let precondition = |g: &[f64]| g.iter().zip(&diagonal).map(|(g, h)| g / h).collect::<Vec<f64>>();
        let proposed = self.past.propose(precondition).map(|to| {
            let step = to.iter().zip(&at.log_psi).zip(&self.held);
            step.map(|((to, from), held)| if *held { 0.0 } else { to - from }).collect::<Vec<f64>>()
        });
        let climbs = |d: &Vec<f64>| d.iter().zip(uphill).map(|(d, g)| d * g).sum::<f64>() > 0.0;
        proposed.filter(climbs).unwrap_or_else(|| precondition(uphill))
    }
}

impl<R: Correlations> Iteration for ProfileSearch<R> {
    type Output = Profile;

    fn objective(&self) -> Objective {
        OBJECTIVE
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.at.as_ref().is_some_and(|at| at.is_optimum(self.floor(), tolerance))
    }

    /// The first step is the profile at the start.
    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let Some(at) = self.at.take() else {
            let first = self.profile(self.start.clone(), RESIDUALS.1, control)?;
            return Ok(Some(self.arrive(first, true)));
        };
        self.rounding = at.objective_rounding();
        let found = self.search(&at, control);
        self.at = Some(at); // stays when no better one is found, or the search is interrupted
        Ok(found?.map(|next| self.arrive(next, false)))
    }

    fn rounding(&self) -> f64 {
        self.rounding
    }

    fn passes(&self) -> usize {
        self.correlations.passes()
    }

    fn finish(self) -> Result<Profile> {
        self.at.ok_or(Error::Interrupted)
    }
}

/// Diagonal of A ∘ B (see the exact second derivatives of Newton's method), kept away from 0.
fn curvatures(at: &Profile) -> Vec<f64> {
    let p = at.log_psi.len();
    let sum = |j: usize, weight: &dyn Fn(f64) -> f64| -> f64 {
        let terms = at.kept.values.iter().enumerate();
        terms.map(|(k, theta)| weight(*theta) * at.kept.vectors[(j, k)].powi(2)).sum()
    };
    let a = |j: usize| 1.0 - sum(j, &|_| 1.0);
    let b = |j: usize| (-at.log_psi[j]).exp() - sum(j, &|theta| theta);
    (0..p).map(|j| (a(j) * b(j)).max(0.05)).collect()
}

/// To the noise that the loadings at the first point leave.
fn first_direction(at: &Profile) -> Vec<f64> {
    // The gradient is (ψ + h² − 1)/ψ, so that 1 − h² = ψ(1 − g); not below a floor, nor by much at once when
    // already there.
    let left = |(x, g): (&f64, &f64)| (1.0 - g).max((LEAST_FIRST / x.exp()).min(LEAST_SHARE)).ln();
    at.log_psi.iter().zip(&at.gradient).map(left).collect()
}

/// A matrix with each row times a factor.
fn scaled_rows(m: MatRef<'_, f64>, factors: &[f64]) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * factors[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Limits, Stop};

    /// Correlations that turn out to be none after the first point.
    struct Deceiving {
        r: Mat<f64>,
        honest: bool,
    }

    impl Correlations for Deceiving {
        fn times(&mut self, block: Mat<f64>, _: &Control<'_>) -> Result<Mat<f64>> {
            Ok(if self.honest { product(self.r.as_ref(), block.as_ref()) } else { block })
        }
    }

    /// Without correlations log |C| + tr C⁻¹ is at least p for any noise, and the first point, of ψ = 1 and a
    /// factor, is below: no step leads to a better one.
    #[test]
    fn a_search_that_finds_no_better_point_stalls() {
        let p = 6;
        let r = Mat::from_fn(p, p, |i, j| if i == j { 1.0 } else { 0.5 });
        let limits = Limits { tolerance: 1e-8, iterations: 100 };
        let search = Search { factors: 1, lower: 0.005, limits };
        let mut iteration = ProfileSearch::new(Deceiving { r, honest: true }, p, search, &Start::Usual);
        let first = iteration.step(&Control::new()).unwrap().expect("a first point");
        iteration.correlations.honest = false;
        let (at, journey) = drive(iteration, limits, &Control::new()).unwrap();
        assert_eq!((journey.stop, journey.trace.len()), (Stop::Stalled, 0));
        assert_eq!(at.objective(), first.objective);
    }
}

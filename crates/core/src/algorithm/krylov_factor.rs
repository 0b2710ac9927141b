//! Maximum-likelihood factors of many features: leading eigenvectors by block Krylov, limited-memory BFGS on log ψ \[DDM20\].
//!
//! The correlation matrix is known only by its products with blocks of vectors: of a matrix in memory, or of rows in passes.

use std::sync::Arc;

use super::factor_profile::{FoundFactors, Profile, Search, Start, shortened};
use super::quasi_newton::QuasiNewton;
use super::{Algorithm, Step, Stop, drive};
use crate::control::{Control, Event};
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::Sketch;
use crate::linalg::{BlockKrylov, Cholesky, Eigen, Mat, MatRef, product};

/// Residuals of eigenpairs, relative: the tightest, and the loosest that is of use far from the optimum.
const RESIDUALS: (f64, f64) = (1e-11, 1e-5);
/// Share of a step at which its direction is given up.
const SHORTEST: f64 = 1e-6;
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
    let mut state = Climb::new(r.nrows(), *search, start);
    let mut products = 0;
    let stop = loop {
        let image = product(r, state.block().as_ref());
        let step = state.absorb(&image)?;
        products += 1;
        let (measure, Step { objective, change, .. }) = (Passes::MEASURE, step);
        control.emit(Event::Iteration { number: products, measure, objective, change });
        if step.converged {
            break state.stop();
        }
        if control.is_cancelled() {
            break Stop::Interrupted;
        }
        if state.trace.len() >= search.max_iterations {
            break Stop::IterationLimit;
        }
    };
    let found = state.finish(stop)?;
    let log_det =
        Cholesky::new(r.to_owned(), "the correlation matrix").ok().filter(|l| l.smallest_pivot() > 1e-6);
    let discrepancy = log_det.map(|l| (found.value - l.log_det() - r.nrows() as f64).max(0.0));
    Ok(FoundFactors { discrepancy, ..found })
}

/// The same for rows, features divided by their deviations, in passes: no p × p matrix. Also the number of passes.
pub(crate) fn solve_rows(
    source: &dyn RowSource,
    deviations: &[f64],
    search: &Search,
    start: &Start,
    control: &Control<'_>,
) -> Result<(FoundFactors, usize)> {
    let passes = Passes::new(Climb::new(deviations.len(), *search, start), deviations);
    let (state, journey) = drive(passes, source, search.max_iterations, control)?;
    let stop = if journey.stop == Stop::Converged { state.stop() } else { journey.stop };
    Ok((state.finish(stop)?, journey.passes))
}

/// The search as a machine that is fed with products.
struct Climb {
    search: Search,
    trial: Vec<f64>, // log ψ where eigenpairs are being looked for
    root: Vec<f64>,  // Ψ^-½ there
    krylov: BlockKrylov,
    at: Option<Profile>,
    past: QuasiNewton,
    held: Vec<bool>,
    direction: Vec<f64>,
    length: f64,
    straight: bool, // whether the direction is downhill without a past
    stalled: bool,
    trace: Vec<f64>,
}

impl Climb {
    /// Usually from ψ = 1.
    fn new(p: usize, search: Search, start: &Start) -> Self {
        let trial = search.unusual(p, start).unwrap_or_else(|| vec![0.0; p]);
        Self {
            search,
            root: inverse_roots(&trial),
            trial,
            krylov: BlockKrylov::new(p, search.factors, 0).tolerance(RESIDUALS.1),
            at: None,
            past: QuasiNewton::default(),
            held: vec![false; p],
            direction: Vec::new(),
            length: 1.0,
            straight: false,
            stalled: false,
            trace: Vec::new(),
        }
    }

    fn floor(&self) -> f64 {
        self.search.lower.ln()
    }

    /// What R must be multiplied with next: Ψ^-½ times a block of the iteration.
    fn block(&self) -> Mat<f64> {
        scaled_rows(self.krylov.next_block(), &self.root)
    }

    /// Takes the product.
    fn absorb(&mut self, image: &Mat<f64>) -> Result<Step> {
        let image = scaled_rows(image.as_ref(), &self.root);
        let found = self.krylov.absorb(image.as_ref())?;
        let mut converged = false;
        if found.done {
            let p = self.trial.len();
            let ritz = self.krylov.ritz().clone();
            let krylov = BlockKrylov::new(p, self.search.factors, 0).starting_from(&ritz);
            let eigen = std::mem::replace(&mut self.krylov, krylov).into_eigen();
            let none = Eigen { values: Vec::new(), vectors: Mat::zeros(p, 0) };
            converged = self.judge(&eigen.unwrap_or(none));
        }
        // Before the first point is known: that of no factors and ψ = 1.
        let none = -0.5 * self.trial.len() as f64;
        let (objective, change) = match &self.at {
            Some(at) => (-0.5 * at.value, at.gradient_norm(self.floor())),
            None => (none, f64::INFINITY),
        };
        Ok(Step { objective, change, converged })
    }

    /// Goes to the trial point or back to a shorter step; true when the search is over.
    fn judge(&mut self, eigen: &Eigen) -> bool {
        let floor = self.floor();
        let next = Profile::new(self.trial.clone(), eigen, self.search.factors);
        if self.at.as_ref().is_none_or(|at| at.accepts(&next, floor)) {
            self.arrive(next)
        } else {
            self.length *= 0.5;
            if self.length < SHORTEST {
                self.give_up_direction();
            }
            self.set_out();
            self.stalled
        }
    }

    /// Forgets the past and goes straight downhill; where that has failed too, nothing is left to gain.
    fn give_up_direction(&mut self) {
        self.stalled = self.straight;
        self.straight = true;
        self.past = QuasiNewton::default();
        if let Some(at) = &self.at {
            let uphill = at.gradient.iter().zip(&self.held).map(|(g, held)| if *held { 0.0 } else { -g });
            self.direction = shortened(uphill.zip(curvatures(at)).map(|(g, h)| g / h).collect());
        }
        self.length = 1.0;
    }

    fn arrive(&mut self, next: Profile) -> bool {
        let floor = self.floor();
        self.trace.push(-0.5 * next.value);
        let norm = next.gradient_norm(floor);
        let held = next.held(floor);
        if held != self.held {
            self.past = QuasiNewton::default();
            self.held = held;
        }
        let uphill: Vec<f64> =
            next.gradient.iter().zip(&self.held).map(|(g, h)| if *h { 0.0 } else { -g }).collect();
        self.past.observe(&next.log_psi, &uphill);
        let direction = match self.at.is_none() {
            true => first_direction(&next),
            false => self.quasi_newton(&next, &uphill),
        };
        self.direction = shortened(direction);
        (self.length, self.straight) = (1.0, false);
        let done = norm <= self.search.tolerance.max(next.gradient_rounding());
        self.at = Some(next);
        if !done {
            self.set_out();
        }
        done
    }

    /// Where the past points, unless that is uphill; the second derivatives are nearly diagonal where features are many.
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

    /// Sets the next trial point, with eigenpairs as accurate as is of use there.
    fn set_out(&mut self) {
        let floor = self.floor();
        let Some(at) = &self.at else { return };
        self.trial = at.along(&self.direction, self.length, floor);
        self.root = inverse_roots(&self.trial);
        let size = (self.trial.len() as f64).sqrt();
        let tolerance = (1e-3 * at.gradient_norm(floor) / size).clamp(RESIDUALS.0, RESIDUALS.1);
        let krylov = BlockKrylov::new(self.trial.len(), self.search.factors, 0);
        let start = self.krylov.next_block().to_owned();
        self.krylov = krylov.tolerance(tolerance).starting_from(&start);
    }

    fn stop(&self) -> Stop {
        if self.stalled { Stop::IterationLimit } else { Stop::Converged }
    }

    fn finish(self, stop: Stop) -> Result<FoundFactors> {
        let at = self.at.ok_or(Error::Interrupted)?;
        Ok(at.found(&self.search, stop, self.trace))
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
    // The gradient is (ψ + h² − 1)/ψ, so that 1 − h² = ψ(1 − g); not below a floor, nor by much at once when already there.
    let left = |(x, g): (&f64, &f64)| (1.0 - g).max((LEAST_FIRST / x.exp()).min(LEAST_SHARE)).ln();
    at.log_psi.iter().zip(&at.gradient).map(left).collect()
}

fn inverse_roots(log_psi: &[f64]) -> Vec<f64> {
    log_psi.iter().map(|x| (-0.5 * x).exp()).collect()
}

fn scaled_rows(m: MatRef<'_, f64>, factors: &[f64]) -> Mat<f64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * factors[i])
}

/// The search fed by passes over rows.
struct Passes {
    climb: Climb,
    inverse: Vec<f64>, // 1 / deviation of each feature
    block: Arc<Mat<f64>>,
}

impl Passes {
    fn new(climb: Climb, deviations: &[f64]) -> Self {
        let inverse: Vec<f64> = deviations.iter().map(|d| 1.0 / d).collect();
        let block = Arc::new(scaled_rows(climb.block().as_ref(), &inverse));
        Self { climb, inverse, block }
    }
}

impl Algorithm for Passes {
    const MEASURE: &'static str = "log-likelihood per row but for a constant";
    type Evidence = Sketch;
    type Output = Climb;

    fn evidence(&self) -> Sketch {
        Sketch::empty(Arc::clone(&self.block))
    }

    fn update(&mut self, sketch: Sketch) -> Result<Step> {
        let weight = sketch.weight();
        let factors: Vec<f64> = self.inverse.iter().map(|f| f / weight).collect();
        let step = self.climb.absorb(&scaled_rows(sketch.image(), &factors))?;
        self.block = Arc::new(scaled_rows(self.climb.block().as_ref(), &self.inverse));
        Ok(step)
    }

    fn finish(self) -> Result<Climb> {
        Ok(self.climb)
    }
}

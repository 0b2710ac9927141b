//! Which way to the factors, and why: a pure function of the shape of the data and the memory.

use super::FactorSolver;
use crate::error::{Error, Result};
use crate::estimator::{Plan, Solver};

/// Features up to which whole decompositions are the fastest way.
const NEWTON_FEATURES: usize = 200;
/// Products with the correlation matrix that a search without whole decompositions typically takes, doubled.
const PRODUCTS: f64 = 90.0;
/// Matrices of p × p that exist at once.
const SQUARES: usize = 6;

/// What is known when a solver is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactorProblem {
    pub(super) rows: Option<usize>,
    pub(super) features: usize,
    pub(super) factors: usize,
    pub(super) in_memory: bool,
    pub(super) memory: usize,
}

/// A plan, and whether it reads the rows again and again instead of forming a p × p matrix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FactorChoice {
    pub(super) plan: Plan,
    pub(super) in_passes: bool,
}

impl FactorProblem {
    /// The matrix is there already.
    pub(super) fn of_moments(features: usize, factors: usize) -> Self {
        Self { rows: None, features, factors, in_memory: false, memory: usize::MAX }
    }

    fn square_bytes(&self) -> usize {
        SQUARES * 8 * self.features.saturating_mul(self.features)
    }

    fn block(&self) -> usize {
        self.factors + 8 + self.factors / 4
    }

    /// Whether passes over rows in memory are less work than forming the matrix and multiplying that.
    fn passes_pay(&self) -> bool {
        let (Some(n), true) = (self.rows, self.in_memory) else { return false };
        let (n, p, b) = (n as f64, self.features as f64, self.block() as f64);
        PRODUCTS * 4.0 * n * p * b < n * p * p + PRODUCTS * 2.0 * p * p * b
    }
}

/// Decides, or checks what was asked for.
pub(super) fn choose_factor(asked: FactorSolver, request: &FactorProblem) -> Result<FactorChoice> {
    let p = request.features;
    let fits = request.square_bytes() <= request.memory;
    let choice = |solver: Solver, in_passes: bool, reason: String| {
        let memory = if in_passes { 16 * 8 * p * 7 * request.block() } else { request.square_bytes() };
        Ok(FactorChoice { plan: Plan { solver, reason, memory }, in_passes })
    };
    let rows = request.rows.map_or("many".to_string(), |n| n.to_string());
    match asked {
        FactorSolver::Newton | FactorSolver::Em if !fits => {
            let solver = if asked == FactorSolver::Em { "em" } else { "newton" };
            let needed = request.square_bytes() >> 20;
            let reason =
                format!("{p} × {p} matrices need about {needed} MiB; raise the memory limit or use krylov");
            Err(Error::Solver { solver, reason })
        }
        FactorSolver::Newton => choice(Solver::Newton, false, "asked for".into()),
        FactorSolver::Em => choice(Solver::Em, false, "asked for".into()),
        FactorSolver::Krylov => choice(Solver::Krylov, request.in_memory || !fits, "asked for".into()),
        FactorSolver::Auto if !fits => choice(
            Solver::Krylov,
            true,
            format!("the {p} × {p} covariance does not fit in memory: passes over the rows instead"),
        ),
        FactorSolver::Auto if p <= NEWTON_FEATURES => choice(
            Solver::Newton,
            false,
            format!("{p} features: whole decompositions of the {p} × {p} correlations are cheap"),
        ),
        FactorSolver::Auto if request.passes_pay() => choice(
            Solver::Krylov,
            true,
            format!(
                "{rows} rows of {p} features: products with the rows are cheaper than the {p} × {p} \
                 covariance"
            ),
        ),
        FactorSolver::Auto => choice(
            Solver::Krylov,
            false,
            format!("{p} features: leading eigenvectors of the {p} × {p} correlations are cheaper than all"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automatic_choice_as_a_table() {
        let cases = [
            // rows, features, in memory, memory, expected, in passes
            (Some(50_000), 100, true, usize::MAX, Solver::Newton, false),
            (Some(50), 100, true, usize::MAX, Solver::Newton, false),
            (Some(500), 5000, true, usize::MAX, Solver::Krylov, true),
            (Some(100_000), 1000, true, usize::MAX, Solver::Krylov, false),
            (None, 1000, false, usize::MAX, Solver::Krylov, false),
            (None, 20_000, false, 1 << 30, Solver::Krylov, true),
        ];
        for (rows, features, in_memory, memory, solver, in_passes) in cases {
            let request = FactorProblem { rows, features, factors: 5, in_memory, memory };
            let found = choose_factor(FactorSolver::Auto, &request).unwrap();
            assert_eq!((found.plan.solver, found.in_passes), (solver, in_passes), "{request:?}");
        }
        let small = FactorProblem { memory: 1 << 20, ..FactorProblem::of_moments(1000, 5) };
        assert!(choose_factor(FactorSolver::Newton, &small).is_err());
    }
}

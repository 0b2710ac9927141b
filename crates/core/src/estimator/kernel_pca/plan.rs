//! Exact or by landmarks, and why: a pure function of the number of rows, what is asked for, and the memory.

use super::super::{Plan, Solver};
use crate::algorithm::Components;
use crate::error::{Error, Result};

/// Landmarks where nobody says how many.
const LANDMARKS: usize = 1000;
/// n × n arrays that exist at once: K, or half of it where no cell is missing; with those of a whole decomposition.
const LEADING: f64 = 1.0;
const WHOLE: f64 = 5.0;
/// Accumulators of m × m that exist at once during a pass.
const SQUARES: f64 = 16.0;
/// Bytes beyond which the automatic choice takes landmarks where nobody has set a limit: the kernel matrix of 23 000
/// rows. It does not depend on what happens to be free, so that the same call has the same answer.
const USUAL: usize = 4 << 30;

/// The size of a fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) features: usize,
    pub(super) components: Components,
    /// Landmarks that are asked for.
    pub(super) landmarks: Option<usize>,
    /// Bytes that the fit may hold; `None` where nobody has set a limit.
    pub(super) memory: Option<usize>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KernelPlan {
    pub(super) plan: Plan,
    /// Number of landmarks; `None` when exact.
    pub(super) landmarks: Option<usize>,
}

/// Exact while the kernel matrix fits, landmarks beyond or when asked.
pub(super) fn choose(solver: Solver, size: &Size) -> Result<KernelPlan> {
    let n = size.rows;
    let exact = |solver: Solver, reason: String| KernelPlan {
        plan: Plan { solver, reason, memory: size.exact(solver) },
        landmarks: None,
    };
    let by_landmarks = |m: usize, reason: String| KernelPlan {
        plan: Plan { solver: Solver::Landmarks, reason, memory: size.of_landmarks(m) },
        landmarks: Some(m),
    };
    if let Some(m) = size.landmarks {
        if !matches!(solver, Solver::Auto | Solver::Eigen) {
            let reason = "it decomposes the whole kernel matrix; leave it or the landmarks out".into();
            return Err(Error::Solver { solver: solver.name(), reason });
        }
        let plan = by_landmarks(m, format!("{m} landmarks were asked for"));
        return within(plan, size.limit(), "ask for fewer landmarks, or raise the memory limit");
    }
    match solver {
        Solver::Dual | Solver::Krylov => {
            let plan = exact(solver, "asked for".into());
            return within(plan, size.limit(), "raise the limit, or use landmarks");
        }
        Solver::Auto => (),
        _ => {
            let reason = "kernel PCA has dual and krylov".into();
            return Err(Error::Solver { solver: solver.name(), reason });
        }
    }
    let best = if size.is_leading() { Solver::Krylov } else { Solver::Dual };
    if size.exact(best) <= size.usual() {
        let what = match best {
            Solver::Krylov => "its leading eigenvectors are wanted",
            _ => "all of it is decomposed",
        };
        return Ok(exact(best, format!("the {n} × {n} kernel matrix fits in memory: {what}")));
    }
    let needed = size.exact(best) >> 20;
    let m = size.affordable().min(n);
    let least = size.components.count().unwrap_or(1).max(1);
    if m < least {
        let reason = format!("{least} landmarks do not fit in the memory limit; raise it");
        return Err(Error::Solver { solver: "automatic", reason });
    }
    let reason = format!(
        "the {n} × {n} kernel matrix would take {needed} MiB, more than the memory limit leaves: {m} landmarks stand for the rows"
    );
    Ok(by_landmarks(m, reason))
}

/// The plan, if it keeps to the limit.
fn within(plan: KernelPlan, memory: usize, help: &str) -> Result<KernelPlan> {
    if plan.plan.memory <= memory {
        return Ok(plan);
    }
    let needed = plan.plan.memory >> 20;
    let reason = format!("it would hold about {needed} MiB, more than the memory limit leaves; {help}");
    Err(Error::Solver { solver: plan.plan.solver.name(), reason })
}

impl Size {
    /// What a plan that was asked for may hold.
    fn limit(&self) -> usize {
        self.memory.unwrap_or(usize::MAX)
    }

    /// What the automatic choice may hold.
    pub(super) fn usual(&self) -> usize {
        self.memory.unwrap_or(USUAL)
    }

    /// Whether the leading eigenvectors are enough, and few.
    fn is_leading(&self) -> bool {
        match self.components {
            Components::Count(q) => 6 * q < self.rows,
            Components::Fraction(_) => true,
            _ => false,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate; saturates")]
    fn exact(&self, solver: Solver) -> usize {
        let (n, p) = (self.rows as f64, self.features as f64);
        let q = self.components.count().unwrap_or(16) as f64;
        let squares = if solver == Solver::Krylov { LEADING } else { WHOLE };
        let block = if solver == Solver::Krylov { 20.0 * (1.25 * q + 8.0) } else { 0.0 };
        (8.0 * (squares * n * n + n * block.min(n) + 3.0 * n * p)) as usize
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate; saturates")]
    fn of_landmarks(&self, m: usize) -> usize {
        let (m, p) = (m as f64, self.features as f64);
        (8.0 * (SQUARES * m * m + 3.0 * m * p)) as usize
    }

    /// Landmarks that fit in memory, up to those that are usual.
    fn affordable(&self) -> usize {
        (0..=LANDMARKS).rev().find(|m| self.of_landmarks(*m) <= self.usual() / 2).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: usize = 1 << 30;

    #[test]
    fn the_automatic_choice_as_a_table() {
        use Components::{All, Count, Fraction};
        let cases = [
            // rows, components, landmarks, memory, expected solver and landmarks
            (5000, Count(10), None, GB, Solver::Krylov, None),
            (5000, Fraction(0.9), None, GB, Solver::Krylov, None),
            (5000, All, None, 4 * GB, Solver::Dual, None),
            (5000, All, None, GB / 2, Solver::Landmarks, Some(1000)),
            (150, Count(40), None, GB, Solver::Dual, None),
            (50_000, Count(10), None, GB, Solver::Landmarks, Some(1000)),
            (50_000, Count(10), None, 32 * GB, Solver::Krylov, None),
            (5000, Count(10), Some(300), GB, Solver::Landmarks, Some(300)),
            // 8 (16 m² + 3 m) is at most half of the memory.
            (1_000_000, Count(10), None, GB / 8, Solver::Landmarks, Some(723)),
        ];
        for (rows, components, landmarks, memory, solver, expected) in cases {
            let memory = Some(memory);
            let size = Size { rows, features: 1, components, landmarks, memory };
            let found = choose(Solver::Auto, &size).unwrap();
            assert_eq!((found.plan.solver, found.landmarks), (solver, expected), "{size:?}");
            assert!(Some(found.plan.memory) <= memory, "{size:?}");
        }
    }

    #[test]
    fn without_a_limit_the_number_of_rows_decides() {
        let size = |rows| Size {
            rows,
            features: 1,
            components: Components::Count(2),
            landmarks: None,
            memory: None,
        };
        assert_eq!(choose(Solver::Auto, &size(22_000)).unwrap().landmarks, None);
        assert_eq!(choose(Solver::Auto, &size(24_000)).unwrap().landmarks, Some(1000));
        // What is asked for is tried.
        assert_eq!(choose(Solver::Krylov, &size(100_000)).unwrap().landmarks, None);
    }

    #[test]
    fn what_does_not_fit_says_what_would_help() {
        let size = Size {
            rows: 100_000,
            features: 5,
            components: Components::Count(2),
            landmarks: None,
            memory: Some(GB),
        };
        for solver in [Solver::Dual, Solver::Krylov] {
            assert!(choose(solver, &size).unwrap_err().to_string().contains("use landmarks"));
        }
        let many = Size { landmarks: Some(20_000), ..size };
        assert!(choose(Solver::Auto, &many).unwrap_err().to_string().contains("fewer landmarks"));
        assert!(choose(Solver::Svd, &size).is_err());
    }

    #[test]
    fn memory_of_the_leading_part_is_little_more_than_the_matrix() {
        let size = Size {
            rows: 5000,
            features: 20,
            components: Components::Count(10),
            landmarks: None,
            memory: Some(GB),
        };
        let planned = choose(Solver::Auto, &size).unwrap().plan.memory as f64;
        assert!(planned <= 1.3 * 8.0 * 25e6, "{planned}");
    }
}

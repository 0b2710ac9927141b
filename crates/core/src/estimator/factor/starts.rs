//! Which start and which bound: searches end at different optima, and a bound can be in the way.

use super::FactorAnalysis;
use crate::algorithm::{FoundFactors, Search, Start, Stop, newton_factor, optimise};
use crate::error::{Error, Result};
use crate::estimator::Solver;
use crate::linalg::MatRef;

/// Least uniqueness unless told, and the least that it is lowered to.
pub(super) const LOWER: (f64, f64) = (0.005, 5e-9);
/// Discrepancies this close are the same optimum.
pub(super) const SAME_OPTIMUM: f64 = 1e-6;

impl FactorAnalysis {
    /// The best of some starts: the number asked for, or one, and `doubtful` in all where it ends at a bound
    /// or does not converge. A caller who stops a later start gets the best of those before it.
    pub(super) fn best_of(
        &self,
        lower: f64,
        doubtful: usize,
        mut run: impl FnMut(&Search, &Start) -> Result<FoundFactors>,
    ) -> Result<Tries> {
        let (first, lower) = self.within_bound(lower, &mut run)?;
        let unfinished = matches!(first.stop, Stop::IterationLimit | Stop::Stalled);
        let doubt = !first.heywood.is_empty() || unfinished;
        let starts = self.starts.unwrap_or(if doubt { doubtful } else { 1 });
        let mut all = vec![first];
        for k in 1..starts {
            if all.iter().any(|found| found.stop == Stop::Interrupted) {
                break;
            }
            match run(&self.search(lower), &Start::Random(self.run.seed.wrapping_add(k as u64))) {
                Err(Error::Interrupted) => break,
                found => all.push(found?),
            }
        }
        Ok(Tries::new(all, lower))
    }

    /// The bound that was asked for, or the default.
    pub(super) fn usual_bound(&self) -> f64 {
        self.lower.unwrap_or(LOWER.0)
    }

    /// The bound to begin with: below the default where the other features predict more than q features so
    /// well that those would end there, which saves Newton's method the way.
    pub(super) fn first_bound(&self, solver: Solver, r: MatRef<'_, f64>) -> Result<f64> {
        let mut lower = self.usual_bound();
        if self.lower.is_some() || solver != Solver::Newton {
            return Ok(lower);
        }
        let start = newton_factor::log_psi(r, &self.search(LOWER.1), &Start::Usual)?;
        while lower > LOWER.1 && start.iter().filter(|x| **x < lower.ln()).count() > self.factors() {
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
            && found.heywood.len() > self.factors()
            && found.stop == Stop::Converged
            && lower > LOWER.1
        {
            let lowered = (lower / 100.0).max(LOWER.1);
            let next = match run(&self.search(lowered), &Start::At(found.uniquenesses.clone())) {
                Err(Error::Interrupted) => {
                    found.stop = Stop::Interrupted;
                    break;
                }
                next => next?,
            };
            let trace = [found.trace, next.trace.clone()].concat();
            found = FoundFactors { trace, ..next };
            lower = lowered;
        }
        Ok((found, lower))
    }
}

/// The best of some starts.
pub(super) struct Tries {
    pub(super) best: FoundFactors,
    pub(super) lower: f64,
    pub(super) starts: usize,
    pub(super) agreeing: usize,
}

impl Tries {
    pub(super) fn new(mut all: Vec<FoundFactors>, lower: f64) -> Self {
        let starts = all.len();
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        let same = |value: f64, lowest: f64| value - lowest <= SAME_OPTIMUM;
        let agreeing = all.iter().filter(|found| same(found.value, all[0].value)).count();
        let converged = |found: &FoundFactors| found.stop == Stop::Converged;
        let best = all.swap_remove(optimise::best(&all, |found| found.value, same, converged).unwrap_or(0));
        Self { best, lower, starts, agreeing }
    }
}

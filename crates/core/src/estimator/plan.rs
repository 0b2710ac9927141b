//! Which solver, and why: a pure function of the shape of the data, the number of components and the memory.

use serde::{Deserialize, Serialize};

use crate::algorithm::Components;
use crate::error::{Error, Result};
use crate::memory;

/// A way to the spectrum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// Chosen by shape, number of components and memory.
    #[default]
    Auto,
    /// Eigendecomposition of the p × p covariance: one pass over the rows.
    Eigen,
    /// Singular values of the centred matrix: rows in memory, and a copy.
    Svd,
    /// Eigendecomposition of the n × n inner products: rows in memory, n below p.
    Dual,
    /// Block Krylov iteration: some passes over the rows, little memory, a few components.
    Krylov,
    /// Expectation and maximisation in passes over the rows: for data with missing values.
    Em,
    /// Newton's method on the noise of each feature: factor analysis only.
    Newton,
    /// Lloyd's method in passes over the rows: k-means only.
    Lloyd,
    /// Landmarks that stand for the rows, in passes over them: kernel PCA only.
    Landmarks,
    /// Limited-memory BFGS on all rows at once: models without a closed form, GP-LVMs and networks.
    Lbfgs,
    /// Adam on batches of rows: networks only.
    Adam,
    /// None: the parameters were given.
    Given,
}

impl Solver {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Eigen => "eigen",
            Self::Svd => "svd",
            Self::Dual => "dual",
            Self::Krylov => "krylov",
            Self::Em => "em",
            Self::Newton => "newton",
            Self::Lloyd => "lloyd",
            Self::Landmarks => "landmarks",
            Self::Lbfgs => "lbfgs",
            Self::Adam => "adam",
            Self::Given => "given",
        }
    }
}

/// The size of a fit: what is known when a solver is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Number of rows, when known before reading them.
    pub rows: Option<usize>,
    /// Number of features.
    pub features: usize,
    /// Whether all rows lie in memory.
    pub in_memory: bool,
    /// What is wanted.
    pub components: Components,
    /// Bytes that the fit may hold besides rows that lie in memory already.
    pub memory: usize,
}

/// A checked decision: what algorithms receive and reports print.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Never `Auto`.
    pub solver: Solver,
    /// Why, in words.
    pub reason: String,
    /// Bytes that it will hold, roughly.
    pub memory: usize,
}

impl Plan {
    /// Refuses a plan that takes more than there is of memory.
    pub(super) fn check_memory(&self) -> Result<()> {
        let what = match self.solver {
            Solver::Eigen => "the eigen solver",
            Solver::Svd => "the svd solver",
            Solver::Dual => "the dual solver",
            Solver::Krylov => "the krylov solver",
            Solver::Newton => "the newton solver",
            Solver::Em => "the em solver",
            Solver::Lloyd => "the lloyd solver",
            Solver::Landmarks => "the landmarks of the rows",
            Solver::Lbfgs => "the lbfgs solver",
            Solver::Adam => "the adam solver",
            Solver::Auto | Solver::Given => return Ok(()),
        };
        memory::check_bytes(what, self.memory)
    }
}

/// Decides on a solver, or checks the one that was asked for.
///
/// # Errors
/// When the solver asked for, or every solver, is impossible here; the reason says what would help.
pub fn choose(asked: Solver, problem: &Problem) -> Result<Plan> {
    let costs = Costs::new(problem);
    let plan = |solver: Solver, reason: String| Plan { solver, reason, memory: costs.memory(solver) };
    if asked != Solver::Auto {
        costs.check(asked, problem)?;
        costs.check_memory(asked, problem)?;
        return Ok(plan(asked, "asked for".into()));
    }
    let possible: Vec<Solver> = [Solver::Eigen, Solver::Dual, Solver::Krylov]
        .into_iter()
        .filter(|s| costs.check(*s, problem).is_ok() && costs.memory(*s) <= problem.memory)
        .collect();
    let cheapest = possible.iter().copied().min_by(|a, b| costs.work(*a).total_cmp(&costs.work(*b)));
    match cheapest {
        Some(solver) => Ok(plan(solver, costs.reason(solver, &possible, problem))),
        None => Err(costs.nothing_fits(problem)),
    }
}

/// Rough operation counts and memory of each solver.
struct Costs {
    n: f64,
    p: f64,
    q: Option<f64>,
    block: f64,
}

/// Applications of the covariance that a Krylov iteration typically needs, doubled: it may need more.
const KRYLOV_PASSES: f64 = 12.0;
/// Accumulators of p × p that exist at once during a pass, with the decomposition's.
const SQUARES: f64 = 6.0;
/// Accumulators of latent evidence that exist at once during a pass, with the parameters.
const EVIDENCES: f64 = 16.0;

impl Costs {
    fn new(problem: &Problem) -> Self {
        let q = problem.components.count().map(|q| q as f64);
        // Unknown rows are many: they come from a file that does not fit.
        let n = problem.rows.map_or(f64::INFINITY, |n| n as f64);
        Self { n, p: problem.features as f64, q, block: q.map_or(0.0, |q| 1.25 * q + 8.0) }
    }

    /// Numbers that latent evidence holds for each feature.
    fn evidence(&self) -> f64 {
        let q = self.q.unwrap_or(self.p);
        (q + 1.0) * (q + 4.0) / 2.0
    }

    /// Decomposing a symmetric matrix of this size.
    fn decomposition(&self, size: f64) -> f64 {
        match self.q {
            Some(q) if 6.0 * q < size => KRYLOV_PASSES * size * size * self.block,
            _ => 9.0 * size.powi(3),
        }
    }

    fn work(&self, solver: Solver) -> f64 {
        let (n, p) = (self.n, self.p);
        match solver {
            // Unknown n: what counts is the work per row.
            Solver::Eigen if n.is_infinite() => p * p,
            Solver::Krylov if n.is_infinite() => KRYLOV_PASSES * 4.0 * p * self.block,
            Solver::Eigen => n * p * p + self.decomposition(p),
            Solver::Dual => n * n * p + self.decomposition(n) + 2.0 * n * p * self.q.unwrap_or(n),
            Solver::Krylov => KRYLOV_PASSES * 4.0 * n * p * self.block,
            Solver::Em => KRYLOV_PASSES * n * p * self.evidence(),
            Solver::Svd
            | Solver::Auto
            | Solver::Newton
            | Solver::Lloyd
            | Solver::Landmarks
            | Solver::Lbfgs
            | Solver::Adam
            | Solver::Given => 6.0 * n * p * n.min(p),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate; saturates")]
    fn memory(&self, solver: Solver) -> usize {
        let cells = match solver {
            Solver::Eigen => SQUARES * self.p * self.p,
            Solver::Dual => SQUARES * self.n * self.n + self.p * self.q.unwrap_or(self.n),
            Solver::Krylov => 16.0 * self.p * self.block,
            Solver::Em => EVIDENCES * self.p * self.evidence(),
            Solver::Svd
            | Solver::Auto
            | Solver::Newton
            | Solver::Lloyd
            | Solver::Landmarks
            | Solver::Lbfgs
            | Solver::Adam
            | Solver::Given => 3.0 * self.n * self.p,
        };
        (cells * 8.0) as usize
    }

    /// Whether a solver can work on these data at all.
    fn check(&self, solver: Solver, problem: &Problem) -> Result<()> {
        let no = |reason: &str| Err(Error::Solver { solver: solver.name(), reason: reason.into() });
        match solver {
            Solver::Svd | Solver::Dual if !problem.in_memory => {
                no("it needs all rows in memory, and they are read in parts; raise the memory limit or use \
                 eigen or krylov")
            }
            Solver::Newton => no("it is for factor analysis; use eigen"),
            Solver::Lloyd => no("it is for k-means; use eigen"),
            Solver::Landmarks => no("it is for kernel PCA; use eigen"),
            Solver::Lbfgs | Solver::Adam => no("it is for networks; use eigen"),
            Solver::Given => no("it says that nothing was solved; use eigen"),
            Solver::Krylov if self.q.is_none() => no(
                "it finds a given number of components; give a number instead of a fraction, or use eigen, \
                 svd or dual",
            ),
            _ => Ok(()),
        }
    }

    /// Whether a solver that somebody asked for keeps to the limit.
    fn check_memory(&self, solver: Solver, problem: &Problem) -> Result<()> {
        let needed = self.memory(solver);
        if needed <= problem.memory {
            return Ok(());
        }
        let reason = format!(
            "it would hold about {} MiB, more than the memory limit leaves; raise the limit or let auto \
             choose",
            needed >> 20
        );
        Err(Error::Solver { solver: solver.name(), reason })
    }

    fn reason(&self, solver: Solver, possible: &[Solver], problem: &Problem) -> String {
        let p = problem.features;
        let rows = problem.rows.map_or("many".to_string(), |n| n.to_string());
        let alone = possible.len() == 1;
        match solver {
            Solver::Eigen if problem.in_memory => {
                format!("{rows} rows of {p} features: the {p} × {p} covariance is the smaller side")
            }
            Solver::Em => "the data have missing values".into(),
            Solver::Eigen => format!("one pass over the rows gives the {p} × {p} covariance"),
            Solver::Dual => format!(
                "{rows} rows are fewer than {p} features: the {rows} × {rows} inner products are the smaller \
                 side"
            ),
            _ if alone => {
                format!("the {p} × {p} covariance does not fit in memory: passes over the rows instead")
            }
            _ => format!(
                "few components of {rows} rows and {p} features: cheaper than any whole decomposition"
            ),
        }
    }

    fn nothing_fits(&self, problem: &Problem) -> Error {
        let needed = self.memory(Solver::Eigen).min(self.memory(Solver::Dual)) >> 20;
        let p = problem.features;
        let help = if self.q.is_none() { ", or ask for a number of components" } else { "" };
        Error::Solver {
            solver: "automatic",
            reason: format!("{p} features need about {needed} MiB; raise the memory limit{help}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: usize = 1 << 30;

    #[test]
    fn the_automatic_choice_as_a_table() {
        use Components::{All, Count, Fraction};
        use Solver::{Dual, Eigen, Krylov};
        let cases = [
            // rows, features, components, in memory, memory, expected
            (Some(200_000), 300, Count(10), true, 4 * GB, Eigen),
            (Some(150), 4, Fraction(0.9), true, 4 * GB, Eigen),
            (Some(500), 20_000, Count(20), true, 4 * GB, Dual),
            (Some(400), 4096, All, true, 4 * GB, Dual),
            (Some(400), 4096, Fraction(0.9), true, 4 * GB, Dual),
            (Some(8000), 8000, Count(20), true, 16 * GB, Krylov),
            (Some(8000), 8000, Fraction(0.5), true, 16 * GB, Eigen),
            (Some(100), 100, Count(2), true, 4 * GB, Eigen),
            (None, 100, Count(5), false, GB / 2, Eigen),
            (None, 100, Fraction(0.9), false, GB / 2, Eigen),
            (None, 50_000, Count(5), false, GB / 2, Krylov),
            (Some(10_000_000), 20_000, Count(5), false, GB / 2, Krylov),
        ];
        for (rows, features, components, in_memory, memory, expected) in cases {
            let problem = Problem { rows, features, in_memory, components, memory };
            let plan = choose(Solver::Auto, &problem).unwrap();
            assert_eq!(plan.solver, expected, "{problem:?}: {}", plan.reason);
        }
    }

    #[test]
    fn impossible_requests_say_what_would_help() {
        let problem = Problem {
            rows: None,
            features: 100_000,
            in_memory: false,
            components: Components::Fraction(0.9),
            memory: GB,
        };
        let text = choose(Solver::Auto, &problem).unwrap_err().to_string();
        assert!(text.contains("raise the memory limit") && text.contains("number of components"), "{text}");
        for solver in [Solver::Svd, Solver::Dual, Solver::Krylov] {
            assert!(choose(solver, &problem).is_err());
        }
    }
}

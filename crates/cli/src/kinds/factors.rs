//! Factor analysis.

use std::sync::Arc;

use covary::estimator::Family;
use covary::rotate::Rotate;
use covary::{Components, FactorAnalysis, FactorSolver};

use super::Wanted;
use crate::args::{RotationName, kaiser};
use crate::exit::{Failure, Result};
use crate::flags;

pub(super) fn fa(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let mut family =
        FactorAnalysis::new(number_of_factors(wanted.components)?).solver(solver(wanted.solver)?);
    if let Some(flags) = wanted.factor {
        if let Some(lower) = flags.lower {
            family = family.lower(lower);
        }
        if let Some(starts) = flags.starts {
            family = family.starts(starts);
        }
        if let Some(rotate) = rotation(flags, wanted.seed)? {
            family = family.rotation(rotate);
        }
    }
    Ok((Arc::new(family), "asked for".into()))
}

/// The number itself: factors explain covariances, so no share of the variance says how many there are.
fn number_of_factors(asked: Option<Components>) -> Result<Components> {
    match asked {
        Some(known @ (Components::Count(_) | Components::Auto)) => Ok(known),
        Some(_) => Err(Failure::usage(
            "factor analysis needs the number of factors, such as -q 3 or -q auto; a share of the variance \
             is for ppca and pca",
        )),
        None => Err(Failure::usage(
            "factor analysis needs the number of factors: add, for example, -q 3 or -q auto",
        )),
    }
}

fn rotation(flags: &flags::Factor, seed: u64) -> Result<Option<Rotate>> {
    match &flags.rotate {
        None | Some(RotationName::None) => Ok(None),
        Some(RotationName::Named(method)) => {
            let rotate = Rotate::new(method.clone()).seed(seed);
            Ok(Some(kaiser(rotate, flags.kaiser, flags.no_kaiser)))
        }
        Some(RotationName::Target | RotationName::Procrustes) => Err(Failure::usage(
            "a rotation to a target needs the target; fit without --rotate, then covary rotate MODEL \
             --target FILE",
        )),
    }
}

fn solver(solver: flags::Solver) -> Result<FactorSolver> {
    match solver {
        flags::Solver::Auto => Ok(FactorSolver::Auto),
        flags::Solver::Newton => Ok(FactorSolver::Newton),
        flags::Solver::Krylov => Ok(FactorSolver::Krylov),
        flags::Solver::Em => Ok(FactorSolver::Em),
        _ => Err(Failure::usage(
            "that solver finds principal components; factor analysis has auto, newton, krylov and em",
        )),
    }
}

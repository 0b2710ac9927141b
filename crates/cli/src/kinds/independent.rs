//! Independent components.

use std::sync::Arc;

use covary::estimator::Family;
use covary::{Ica, IcaMethod};

use super::Wanted;
use super::axes::components;
use crate::exit::{Failure, Result};
use crate::flags::{Method, Solver};

pub(super) fn ica(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    if wanted.solver != Solver::Auto {
        return Err(Failure::usage("ica has the solver auto only: leave --solver out"));
    }
    let mut family = Ica::new(components).method(method(wanted.method)?).noise(!wanted.no_noise);
    if let Some(starts) = wanted.factor.and_then(|flags| flags.starts) {
        family = family.starts(starts);
    }
    Ok((Arc::new(family), because))
}

fn method(asked: Option<Method>) -> Result<IcaMethod> {
    match asked {
        None => Ok(IcaMethod::default()),
        Some(Method::Picard) => Ok("picard".parse()?),
        Some(Method::Infomax) => Ok("infomax".parse()?),
        Some(Method::Fastica) => Ok("fastica".parse()?),
        Some(Method::Vb | Method::Ard) => Err(Failure::usage(
            "--method vb and --method ard are for Bayesian PCA; add --model bpca, or take picard, infomax or fastica",
        )),
    }
}

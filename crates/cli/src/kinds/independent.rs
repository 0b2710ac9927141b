//! Independent components.

use std::sync::Arc;

use covary::estimator::Family;
use covary::evidence::Contrast;
use covary::{Ica, IcaMethod};

use super::Wanted;
use super::axes::components;
use crate::exit::{Failure, Result};
use crate::flags::{ContrastName, Method, Solver};

pub(super) fn ica(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    if wanted.solver != Solver::Auto {
        return Err(Failure::usage("ica has the solver auto only: leave --solver out"));
    }
    let mut family = Ica::new(components).method(method(wanted)?).noise(!wanted.no_noise);
    if let Some(starts) = wanted.factor.and_then(|flags| flags.starts) {
        family = family.starts(starts);
    }
    Ok((Arc::new(family), because))
}

fn method(wanted: &Wanted<'_>) -> Result<IcaMethod> {
    let of_fastica = [("--contrast", wanted.contrast.is_some()), ("--deflation", wanted.deflation)];
    let misused = of_fastica.into_iter().find(|(_, used)| *used && wanted.method != Some(Method::Fastica));
    if let Some((flag, _)) = misused {
        return Err(Failure::usage(format!("{flag} is for --method fastica; add it, or leave {flag} out")));
    }
    match wanted.method {
        None => Ok(IcaMethod::default()),
        Some(Method::Picard) => Ok("picard".parse()?),
        Some(Method::Infomax) => Ok("infomax".parse()?),
        Some(Method::Fastica) => {
            Ok(IcaMethod::FastIca { contrast: contrast(wanted.contrast), deflation: wanted.deflation })
        }
        Some(Method::Bayes | Method::Map) => Err(Failure::usage(
            "--method bayes and --method map are for a GP-LVM; add --model gplvm, or take picard, infomax or fastica",
        )),
        Some(Method::Vb | Method::Ard) => Err(Failure::usage(
            "--method vb and --method ard are for Bayesian PCA; add --model bpca, or take picard, infomax or fastica",
        )),
    }
}

fn contrast(name: Option<ContrastName>) -> Contrast {
    match name {
        None | Some(ContrastName::Logcosh) => Contrast::default(),
        Some(ContrastName::Exp) => Contrast::Exp,
        Some(ContrastName::Cube) => Contrast::Cube,
    }
}

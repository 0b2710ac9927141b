//! Curved surfaces: Gaussian process latent variable models.

use std::sync::Arc;

use covary::estimator::Family;
use covary::{Components, Gplvm, GplvmMethod, LatentForm};

use super::Wanted;
use super::axes::components;
use crate::exit::{Failure, Result};
use crate::flags::{KernelName, Method, Solver};

pub(super) fn gplvm(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = match wanted.components {
        None | Some(Components::Auto) => {
            (Components::All, "at most 10, and those that carry nothing are named".into())
        }
        _ => components(wanted),
    };
    if wanted.solver != Solver::Auto {
        return Err(Failure::usage("gplvm has the solver auto only: leave --solver out"));
    }
    let (method, form) = (method(wanted)?, form(wanted)?);
    let mut family = Gplvm::new(components).method(method).kernel(form);
    if let Some(starts) = wanted.factor.and_then(|flags| flags.starts) {
        family = family.starts(starts);
    }
    if let Some(inducing) = wanted.inducing {
        if method == GplvmMethod::Map || form == LatentForm::Linear {
            return Err(Failure::usage(
                "--inducing is for the rbf kernel with --method bayes; leave it out, because nothing else needs \
                 inducing points",
            ));
        }
        family = family.inducing(inducing);
    }
    Ok((Arc::new(family), because))
}

fn method(wanted: &Wanted<'_>) -> Result<GplvmMethod> {
    match wanted.method {
        None | Some(Method::Bayes) => Ok(GplvmMethod::Bayes),
        Some(Method::Map) => Ok(GplvmMethod::Map),
        Some(Method::Vb | Method::Ard) => Err(Failure::usage(
            "--method vb and --method ard are for Bayesian PCA; add --model bpca, or take bayes or map",
        )),
        Some(Method::Picard | Method::Infomax | Method::Fastica) => Err(Failure::usage(
            "--method picard, infomax and fastica are for independent component analysis; add --model ica, or take \
             bayes or map",
        )),
    }
}

fn form(wanted: &Wanted<'_>) -> Result<LatentForm> {
    match wanted.kernel.and_then(|flags| flags.kernel) {
        None | Some(KernelName::Rbf) => Ok(LatentForm::Rbf),
        Some(KernelName::Linear) => Ok(LatentForm::Linear),
        Some(_) => Err(Failure::usage(
            "a --kernel other than rbf and linear is for kernel PCA; add --model kpca, or take one of the two",
        )),
    }
}

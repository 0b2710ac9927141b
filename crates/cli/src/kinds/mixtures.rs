//! Mixtures of PPCA and of factor analysers.

use std::sync::Arc;

use covary::estimator::Family;
use covary::{Components, MixturePpca};

use super::Wanted;
use super::axes::other_method;
use crate::exit::{Failure, Result};
use crate::flags::{Method, Noise, Solver};

pub(super) fn mixture(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (latent, because) = match wanted.components {
        Some(Components::Fraction(_)) => {
            return Err(Failure::usage(
                "a mixture needs the number of latent variables of its components, such as -q 2; a share of \
                 the variance is for ppca and pca",
            ));
        }
        Some(Components::Auto) => (Components::Auto, "to be chosen".into()),
        Some(latent) => (latent, "asked for".into()),
        None => (Components::All, "as nothing else was asked for with -q".into()),
    };
    if !matches!(wanted.solver, Solver::Auto | Solver::Em) {
        return Err(Failure::usage("a mixture has the solvers auto and em"));
    }
    let Some(groups) = wanted.groups.and_then(|flags| flags.groups) else {
        return Err(Failure::usage(
            "a mixture needs the number of its components: add, for example, -k 3, -k 2-8 or -k auto",
        ));
    };
    if let Some(method) = wanted.method.filter(|method| method.bayesian().is_none()) {
        return Err(other_method(method));
    }
    if wanted.method == Some(Method::Ard) {
        return Err(Failure::usage(
            "a mixture has the method vb, or maximum likelihood without --method; ard is for bpca",
        ));
    }
    let mut family = MixturePpca::new(groups, latent).variational(wanted.method == Some(Method::Vb));
    if let Some(flags) = wanted.groups {
        family = family.diagonal(flags.noise == Some(Noise::Diagonal)).shared_noise(flags.shared_noise);
        family = flags.prior.map_or(family.clone(), |prior| family.prior(prior.0));
    }
    Ok((Arc::new(family), because))
}

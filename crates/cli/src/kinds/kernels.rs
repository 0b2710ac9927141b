//! Kernel PCA.

use std::sync::Arc;

use covary::estimator::Family;
use covary::kernel::KernelForm;
use covary::{Components, Gamma, KernelPca, Landmarks, Solver};

use super::Wanted;
use super::axes::components;
use crate::exit::{Failure, Result};
use crate::flags::{self, KernelName};

/// Degree and constant of kernels that have one, when nobody gives them.
const DEGREE: usize = 3;
const COEF0: f64 = 1.0;

pub(super) fn kpca(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = match components(wanted) {
        (Components::Auto, _) if is_precomputed(wanted.kernel) => {
            return Err(Failure::usage(
                "a precomputed kernel needs a number of components, such as -q 5, or a share of its trace, such as \
                 -q 0.9; auto permutes columns of rows",
            ));
        }
        (share @ Components::Fraction(_), because) => {
            (share, because.replace("of the variance", "of the variance in the feature space"))
        }
        other => other,
    };
    let solver = match wanted.solver {
        flags::Solver::Auto => Solver::Auto,
        flags::Solver::Dual => Solver::Dual,
        flags::Solver::Krylov => Solver::Krylov,
        _ => return Err(Failure::usage("kernel PCA has the solvers auto, dual and krylov")),
    };
    let mut family = with_kernel(KernelPca::new(components), wanted.kernel)?.solver(solver);
    if let Some(landmarks) = wanted.kernel.and_then(|flags| flags.landmarks) {
        family = family.landmarks(Landmarks::Pivoted(landmarks));
    }
    Ok((Arc::new(family), because))
}

fn is_precomputed(flags: Option<&flags::KernelFlags>) -> bool {
    flags.is_some_and(|flags| flags.kernel == Some(KernelName::Precomputed))
}

/// The kernel that flags tell.
pub(crate) fn with_kernel(family: KernelPca, flags: Option<&flags::KernelFlags>) -> Result<KernelPca> {
    let family = family.kernel(form(flags)?);
    Ok(match flags.and_then(|flags| flags.gamma) {
        Some(gamma) => family.gamma(Gamma::Given(gamma)),
        None => family,
    })
}

fn form(flags: Option<&flags::KernelFlags>) -> Result<KernelForm> {
    let Some(flags) = flags else { return Ok(KernelForm::Rbf) };
    let name = flags.kernel.unwrap_or(KernelName::Rbf);
    let has = |names: &[KernelName]| names.contains(&name);
    let unused = [
        (
            "--gamma",
            flags.gamma.is_some(),
            !has(&[KernelName::Cosine, KernelName::Linear, KernelName::Precomputed]),
        ),
        ("--degree", flags.degree.is_some(), has(&[KernelName::Poly])),
        ("--coef0", flags.coef0.is_some(), has(&[KernelName::Poly, KernelName::Sigmoid])),
    ];
    if let Some((flag, ..)) = unused.iter().find(|(_, given, used)| *given && !used) {
        return Err(Failure::usage(format!("the {} kernel does not have {flag}; leave it out", word(name))));
    }
    let coef0 = flags.coef0.unwrap_or(COEF0);
    Ok(match name {
        KernelName::Rbf => KernelForm::Rbf,
        KernelName::Poly => {
            let degree = u32::try_from(flags.degree.unwrap_or(DEGREE)).unwrap_or(u32::MAX);
            KernelForm::Polynomial { degree, coef0 }
        }
        KernelName::Sigmoid => KernelForm::Sigmoid { coef0 },
        KernelName::Laplacian => KernelForm::Laplacian,
        KernelName::Cosine => KernelForm::Cosine,
        KernelName::Linear => KernelForm::Linear,
        KernelName::Precomputed => KernelForm::Precomputed,
    })
}

fn word(name: KernelName) -> String {
    format!("{name:?}").to_lowercase()
}

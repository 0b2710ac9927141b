//! Principal axes: probabilistic, classical and Bayesian PCA.

use std::sync::Arc;

use covary::estimator::{Family, FromSpectrum, Spectral};
use covary::{BayesianPca, Components, Pca, Ppca, Solver};

use super::{DEFAULT_SHARE, Wanted, share_because};
use crate::exit::{Failure, Result};
use crate::flags;

/// The refusal of a method that finds sources.
pub(super) const METHODS_OF_SOURCES: &str = "--method picard, infomax and fastica are for independent component \
    analysis; add --model ica, or take vb or ard";

/// The refusal of a method that finds latent positions.
pub(super) const METHODS_OF_CURVES: &str =
    "--method bayes and --method map are for a GP-LVM; add --model gplvm, or take vb or ard";

/// The refusal of a method that is not for Bayesian PCA or mixtures.
pub(super) fn other_method(method: flags::Method) -> Failure {
    match method {
        flags::Method::Bayes | flags::Method::Map => Failure::usage(METHODS_OF_CURVES),
        _ => Failure::usage(METHODS_OF_SOURCES),
    }
}

pub(super) fn ppca(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    let family: Ppca = spectral(wanted, components)?;
    Ok((Arc::new(family), because))
}

pub(super) fn pca(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = components(wanted);
    let family: Pca = spectral(wanted, components)?;
    Ok((Arc::new(family), because))
}

/// Bayesian PCA chooses by itself from all that the data allow.
pub(super) fn bpca(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    let (components, because) = match (wanted.components, wanted.start) {
        (None | Some(Components::Auto), None) => (Components::All, "all that the data allow".into()),
        _ => components(wanted),
    };
    let family = BayesianPca::of(spectral(wanted, components)?);
    let family = match wanted.method.map(|method| method.bayesian().ok_or(method)) {
        None => family,
        Some(Ok(method)) => family.method(method),
        Some(Err(method)) => return Err(other_method(method)),
    };
    Ok((Arc::new(family), because))
}

fn spectral<M: FromSpectrum>(wanted: &Wanted<'_>, components: Components) -> Result<Spectral<M>> {
    Ok(Spectral::new(components).solver(solver(wanted)?))
}

pub(super) fn components(wanted: &Wanted<'_>) -> (Components, String) {
    match (wanted.components, wanted.start) {
        (Some(Components::Fraction(share)), _) => (Components::Fraction(share), share_because(share)),
        (Some(Components::Auto), _) => (Components::Auto, "to be chosen".into()),
        (Some(components), _) => (components, "asked for".into()),
        (None, Some(start)) => (Components::Count(start), "as the model to start from has".into()),
        (None, None) => {
            let because = format!("{}, as nothing else was asked for with -q", share_because(DEFAULT_SHARE));
            (Components::Fraction(DEFAULT_SHARE), because)
        }
    }
}

pub(super) fn solver(wanted: &Wanted<'_>) -> Result<Solver> {
    Ok(match wanted.solver {
        flags::Solver::Auto => Solver::Auto,
        flags::Solver::Eigen => Solver::Eigen,
        flags::Solver::Svd => Solver::Svd,
        flags::Solver::Dual => Solver::Dual,
        flags::Solver::Krylov => Solver::Krylov,
        flags::Solver::Em => Solver::Em,
        flags::Solver::Lbfgs | flags::Solver::Adam => {
            return Err(Failure::usage(
                "the solvers lbfgs and adam are for --model autoencoder; leave --solver out",
            ));
        }
        flags::Solver::Newton => {
            return Err(Failure::usage(format!(
                "the newton solver is for factor analysis; {} has auto, eigen, svd, dual, krylov and em",
                wanted.kind.name
            )));
        }
    })
}

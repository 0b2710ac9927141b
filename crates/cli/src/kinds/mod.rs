//! From flags to a family of models: one line for each kind, and one table of the flags that only some kinds
//! have.

mod axes;
mod clusters;
mod curved;
mod factors;
mod independent;
mod kernels;
mod mixtures;
mod networks;
mod robust;

use std::sync::Arc;

use covary::estimator::Family;
use covary::model::Kind;
use covary::{Components, DegreesOfFreedom};
use covary_io::shown;

use crate::exit::{Failure, Result};
use crate::flags;

pub(crate) use kernels::with_kernel;

/// Share of the variance to explain when nobody asks for a number of components.
const DEFAULT_SHARE: f64 = 0.9;

/// The kinds that have components or factors, of which -q says how many.
const WITH_COMPONENTS: &[&str] =
    &["ppca", "pca", "fa", "bpca", "robust", "mixture", "ica", "kpca", "gplvm", "autoencoder"];

/// What flags say about a family.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) components: Option<Components>,
    pub(crate) groups: Option<&'a flags::Groups>,
    /// Number of components of the model to start from, if there is one.
    pub(crate) start: Option<usize>,
    pub(crate) solver: flags::Solver,
    pub(crate) method: Option<flags::Method>,
    pub(crate) nu: Option<DegreesOfFreedom>,
    pub(crate) no_noise: bool,
    pub(crate) contrast: Option<flags::ContrastName>,
    pub(crate) deflation: bool,
    pub(crate) factor: Option<&'a flags::Factor>,
    pub(crate) kernel: Option<&'a flags::KernelFlags>,
    pub(crate) network: Option<&'a flags::NetworkFlags>,
    /// Inducing points of a GP-LVM.
    pub(crate) inducing: Option<usize>,
    pub(crate) seed: u64,
}

/// How flags become a family, and why it has so many components, in words.
type Builder = fn(&Wanted<'_>) -> Result<(Arc<dyn Family>, String)>;

/// Every kind that can be fitted.
static BUILDERS: &[(&str, Builder)] = &[
    ("ppca", axes::ppca),
    ("pca", axes::pca),
    ("bpca", axes::bpca),
    ("fa", factors::fa),
    ("mixture", mixtures::mixture),
    ("robust", robust::robust),
    ("kmeans", clusters::kmeans),
    ("ica", independent::ica),
    ("kpca", kernels::kpca),
    ("autoencoder", networks::autoencoder),
    ("gplvm", curved::gplvm),
];

/// The family that is wanted, and why it has so many components, in words.
pub(crate) fn family(wanted: &Wanted<'_>) -> Result<(Arc<dyn Family>, String)> {
    only_of_some_kinds(wanted)?;
    let builder = BUILDERS.iter().find(|(name, _)| *name == wanted.kind.name);
    builder.map_or_else(
        || Err(Failure::usage(format!("{} cannot be fitted by this command", wanted.kind.title))),
        |(_, build)| build(wanted),
    )
}

/// A flag of another kind would mislead.
fn only_of_some_kinds(wanted: &Wanted<'_>) -> Result<()> {
    let factor = |used: fn(&flags::Factor) -> bool| wanted.factor.is_some_and(used);
    let groups = |used: fn(&flags::Groups) -> bool| wanted.groups.is_some_and(used);
    let kernel = |used: fn(&flags::KernelFlags) -> bool| wanted.kernel.is_some_and(used);
    let network = |used: fn(&flags::NetworkFlags) -> bool| wanted.network.is_some_and(used);
    // flag, whether it was given, the kinds that have it, what else to do
    let table = [
        (
            "--rotate",
            factor(|f| f.rotate.is_some()),
            &["fa"][..],
            ", or turn the components afterwards with covary rotate",
        ),
        ("--starts", factor(|f| f.starts.is_some()), &["fa", "kmeans", "ica", "gplvm"], ", or leave it out"),
        ("--lower", factor(|f| f.lower.is_some()), &["fa"], ", or leave it out"),
        ("-k", groups(|g| g.groups.is_some()), &["kmeans", "mixture"], ", or leave it out"),
        ("--noise", groups(|g| g.noise.is_some()), &["mixture"], ", or leave it out"),
        ("--shared-noise", groups(|g| g.shared_noise), &["mixture"], ", or leave it out"),
        ("--prior", groups(|g| g.prior.is_some()), &["mixture"], ", or leave it out"),
        ("--init", groups(|g| g.init.is_some()), &["kmeans"], ", or leave it out"),
        ("--no-polish", groups(|g| g.no_polish), &["kmeans"], ", or leave it out"),
        ("-q", wanted.components.is_some(), WITH_COMPONENTS, ", or give the number of groups with -k"),
        ("--method", wanted.method.is_some(), &["bpca", "mixture", "ica", "gplvm"], ", or leave it out"),
        ("--nu", wanted.nu.is_some(), &["robust"], ", or leave it out"),
        ("--no-noise", wanted.no_noise, &["ica"], ", or leave it out"),
        ("--contrast", wanted.contrast.is_some(), &["ica"], ", or leave it out"),
        ("--deflation", wanted.deflation, &["ica"], ", or leave it out"),
        ("--kernel", kernel(|k| k.kernel.is_some()), &["kpca", "gplvm"], ", or leave it out"),
        ("--gamma", kernel(|k| k.gamma.is_some()), &["kpca"], ", or leave it out"),
        ("--degree", kernel(|k| k.degree.is_some()), &["kpca"], ", or leave it out"),
        ("--coef0", kernel(|k| k.coef0.is_some()), &["kpca"], ", or leave it out"),
        ("--inducing", wanted.inducing.is_some(), &["gplvm"], ", or leave it out"),
        ("--landmarks", kernel(|k| k.landmarks.is_some()), &["kpca"], ", or leave it out"),
        ("--hidden", network(|n| n.hidden.is_some()), &["autoencoder"], ", or leave it out"),
        ("--activation", network(|n| n.activation.is_some()), &["autoencoder"], ", or leave it out"),
        ("--no-encoder", network(|n| n.no_encoder), &["autoencoder"], ", or leave it out"),
        ("--alpha", network(|n| n.alpha.is_some()), &["autoencoder"], ", or leave it out"),
        ("--no-early-stopping", network(|n| n.no_early_stopping), &["autoencoder"], ", or leave it out"),
        (
            "--start",
            wanted.start.is_some(),
            &["ppca", "pca", "bpca", "mixture", "robust", "kmeans", "ica"],
            "; factor analysis starts from the data, with --starts N from N places, kernel PCA has nothing to start, \
             and a GP-LVM and a network start from PPCA of the rows",
        ),
    ];
    let misused = |(_, used, kinds, _): &&(_, bool, &[&str], _)| *used && !kinds.contains(&wanted.kind.name);
    match table.iter().find(misused) {
        None => Ok(()),
        Some((flag, _, kinds, or)) => {
            let titles: Vec<&str> = kinds.iter().filter_map(|name| Some(Kind::named(name)?.title)).collect();
            Err(Failure::usage(format!(
                "{flag} is for {}; add --model {}{or}",
                titles.join(", "),
                kinds.join(" or ")
            )))
        }
    }
}

/// The fewest that explain a share of the variance.
fn share_because(share: f64) -> String {
    // As it was typed: 0.29 is 29 %, not 28.999999999999996 %.
    let percent = format!("{:.12e}", 100.0 * share).parse().unwrap_or(100.0 * share);
    format!("the fewest that explain {} % of the variance", shown(percent))
}

//! The registry of kinds of models: one line for each.

pub use super::autoassociative::KIND as AUTOENCODER;
pub use super::clustering::KIND as KMEANS;
pub use super::factors::KIND as FA;
pub use super::independent::KIND as ICA;
pub use super::kernel_components::KIND as KPCA;
pub use super::latent_process::KIND as GPLVM;
pub use super::mixture::KIND as MIXTURE;
pub use super::ppca::KIND as PPCA;
pub use super::predictive::KIND as BPCA;
pub use super::principal_components::KIND as PCA;
pub use super::robust::KIND as ROBUST;

use super::arrays::StoredArrays;
use super::{AnyModel, Capability};
use crate::error::Result;

/// A kind of model.
#[derive(Debug)]
pub struct Kind {
    /// As people type it, and as it stands in files.
    pub name: &'static str,
    /// As people say it.
    pub title: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What its components are called.
    pub components: &'static str,
    /// What can be asked of it.
    pub capabilities: &'static [Capability],
    /// Makes a model of the arrays of its file.
    pub read: fn(&dyn StoredArrays) -> Result<AnyModel>,
}

/// Every kind, in the order in which they are listed.
pub static KINDS: &[&Kind] =
    &[&PPCA, &PCA, &FA, &BPCA, &MIXTURE, &ROBUST, &KMEANS, &ICA, &KPCA, &GPLVM, &AUTOENCODER];

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }

    /// The kinds that have a capability.
    pub fn with(capability: Capability) -> impl Iterator<Item = &'static Self> {
        KINDS.iter().copied().filter(move |kind| kind.capabilities.contains(&capability))
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

/// As people type it.
impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

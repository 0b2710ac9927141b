//! What a fitted model is, and what can be asked of it; nothing here knows how a model was found.

mod arrays;
mod autoassociative;
mod autoassociative_rows;
mod capability;
mod cells;
mod clustering;
mod contributions;
mod factored;
mod factors;
mod filling;
mod gaussian;
mod groups;
mod impute;
mod independent;
mod inference;
mod kernel_components;
pub mod kind;
mod latent_process;
mod limits;
mod linear_gaussian;
mod many_cells;
mod many_patterns;
mod mixture;
mod posterior;
mod ppca;
mod predictive;
mod preimage;
mod principal_components;
mod questions;
mod robust;
mod sample;

pub use arrays::{Array, Arrays, StoredArrays};
pub use autoassociative::{AutoassociativeNetwork, NetworkParts};
pub use capability::{
    AnyModel, Assign, Capability, Decode, Density, Encode, Explain, Fill, Generate, LatentPosterior,
    Loadings, Memberships, Model, Novelty, Reconstruct, Sampler,
};
pub use clustering::Clustering;
pub use contributions::Contributions;
pub use factors::{Factors, Scores};
pub use gaussian::Gaussian;
pub use impute::{Conditional, Imputed, Predicted};
pub use independent::IndependentComponents;
pub(crate) use kernel_components::check_expected;
pub use kernel_components::{KernelComponents, KernelParts};
pub use kind::{KINDS, Kind};
pub(crate) use latent_process::relevances;
pub use latent_process::{LatentProcess, Placement, ProcessParts};
pub use limits::{Limits, Sample};
pub use linear_gaussian::{LinearGaussian, Noise};
pub use mixture::{ChunkMemberships, Mixture};
pub use posterior::{LatentCovariance, Posterior};
pub use predictive::{Predictive, Uncertainty};
pub use preimage::Preimage;
pub use principal_components::PrincipalComponents;
pub use questions::{Outliers, Reconstruction};
pub use robust::LinearStudent;

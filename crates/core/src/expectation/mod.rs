//! The expectation step: what is expected of the latent variables of rows, given parameters.

mod parameters;

pub use parameters::LatentParameters;
pub(crate) use parameters::Units;

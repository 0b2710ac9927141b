//! Gaussian process latent variable models: the collapsed bound of the Bayesian one, the exact likelihood of the one
//! with positions at their most probable place, and their derivatives.

mod bound;
mod exact;
mod slopes;
#[cfg(test)]
mod tests;
mod variational;

pub(crate) use exact::ExactPosterior;
pub(crate) use variational::{Layout, VariationalBound};

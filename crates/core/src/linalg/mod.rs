//! Linear algebra: the only module that imports faer.

pub(crate) use faer::traits::RealField;
pub use faer::{Mat, MatMut, MatRef};

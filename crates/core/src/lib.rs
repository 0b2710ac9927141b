//! covary explains the covariance of data with a few hidden variables.
#![forbid(unsafe_code)]

mod control;
pub mod data;
pub mod error;
pub mod linalg;

pub use control::{Control, Event};
pub use error::{Error, ErrorClass, Result};

//! The arrays of a model as they stand in a file, whatever the file is.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::linalg::Mat;

/// An array of a model.
#[derive(Debug, Clone)]
pub enum Array {
    /// One number after the other.
    Vector(Vec<f64>),
    /// Rows and columns.
    Matrix(Mat<f64>),
}

/// Arrays by name.
pub type Arrays = BTreeMap<&'static str, Array>;

/// Where the arrays of a model are read from. Each is checked against the shape that the model needs before
/// anything uses it.
pub trait StoredArrays {
    /// Whether there is an array of this name.
    fn has(&self, name: &str) -> bool;

    /// A vector of finite numbers, of this length where it is known.
    ///
    /// # Errors
    /// When there is none, or it is of another shape.
    fn vector(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>>;

    /// The same where numbers may be infinite.
    ///
    /// # Errors
    /// As [`vector`](Self::vector).
    fn vector_with_limits(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>>;

    /// A matrix of finite numbers, with these sides where they are known. One must be, and not 0: the cells
    /// that are there limit the other.
    ///
    /// # Errors
    /// As [`vector`](Self::vector).
    fn matrix(&self, name: &str, sides: [Option<usize>; 2]) -> Result<Mat<f64>>;

    /// The same where cells may be missing, which NaN stands for.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix).
    fn matrix_with_missing(&self, name: &str, sides: [Option<usize>; 2]) -> Result<Mat<f64>>;

    /// The mean of at least one feature: its length is p, which the shapes of all other arrays follow from.
    ///
    /// # Errors
    /// When there is none, or it is empty.
    fn mean(&self) -> Result<Vec<f64>>;
}

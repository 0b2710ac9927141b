//! Evidence as bytes: parts of the data can be summarised in one place and merged in another.

mod clusters;
mod contrast;
mod kernel_features;
mod latent;
mod mixture;
mod moments;
mod network;
mod psi;
mod student;

use std::collections::BTreeMap;

use super::container::{Container, Tensor};
use crate::error::{Error, Result};
use crate::evidence::Accumulator;
use crate::model::StoredArrays;

/// Arrays of a file by their names.
type Tensors = BTreeMap<String, Tensor>;

/// What a part of the evidence calls its arrays, where a file holds several.
type Naming<'a> = &'a dyn Fn(&str) -> String;

/// Evidence that can be written and read back.
pub trait Portable: Accumulator {
    /// The bytes.
    ///
    /// # Errors
    /// When there is not one name per feature, or a number cannot be written (none of evidence from rows).
    fn to_bytes(&self, features: &[String]) -> Result<Vec<u8>>;

    /// Reads the bytes.
    ///
    /// # Errors
    /// When they are not such evidence, are damaged or of a newer version, or hold impossible numbers.
    fn from_bytes(bytes: &[u8]) -> Result<SavedEvidence<Self>>;
}

/// Evidence with the names of its features.
#[derive(Debug, Clone)]
pub struct SavedEvidence<A> {
    /// The evidence.
    pub evidence: A,
    /// Names of the features.
    pub features: Vec<String>,
}

/// What rounding has taken off the mean; files of earlier releases do not say.
fn mean_rest(file: &Container, features: usize, name: Naming<'_>) -> Result<Vec<f64>> {
    let name = name("mean_rest");
    if file.has(&name) { file.vector(&name, Some(features)) } else { Ok(vec![0.0; features]) }
}

/// Names of a file that holds one evidence.
fn plain(name: &str) -> String {
    name.into()
}

fn check_kind(file: &Container, kind: &str) -> Result<()> {
    if file.kind == kind {
        Ok(())
    } else {
        Err(Error::Format(format!("it holds '{}', not {kind}", file.kind)))
    }
}

/// One name per feature: anything else could be written but not read.
fn check_names(features: &[String], expected: usize) -> Result<()> {
    let found = features.len();
    if found == expected { Ok(()) } else { Err(Error::Length { what: "feature names", expected, found }) }
}

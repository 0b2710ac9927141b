//! Tasks and answers as bytes, of one version and checksummed; and what can be wrong with rows.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::{Cells, Chunk, Parcel, Real, from_bytes, mixed, to_bytes, with_view};
use crate::error::{Cell, Error, ErrorClass, Result};

/// Both sides must be of one release: what travels is no file that is kept.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What some of the rows answer.
#[derive(Serialize, Deserialize)]
pub(super) struct Reply {
    /// Rows that were read.
    pub(super) rows: u64,
    /// A checksum of their cells that does not depend on their order.
    pub(super) cells: u64,
    pub(super) found: Found,
}

/// The evidence, or why there is none.
#[derive(Serialize, Deserialize)]
pub(super) enum Found {
    Evidence(Parcel),
    Failed(Failure),
}

/// What is wrong with rows, as far as it travels: fits look at some of it.
#[derive(Serialize, Deserialize)]
pub(super) enum Failure {
    Infinite { value: f64, row: usize, column: usize },
    Missing { row: usize, column: usize, operation: String },
    Weight { row: usize, value: f64 },
    FeatureCount { expected: usize, found: usize },
    Scale,
    Other(String),
}

/// What a missing cell stands in the way of.
const OPERATIONS: [&str; 3] = ["a covariance", "choosing the number of components", "a contrast of sources"];

impl Failure {
    /// An error of evidence; others go on as they are.
    pub(super) fn of(error: Error) -> Result<Self> {
        Ok(match error {
            Error::Infinite { value, cell } => Self::Infinite { value, row: cell.row, column: cell.column },
            Error::Missing { cell, operation } => {
                Self::Missing { row: cell.row, column: cell.column, operation: operation.into() }
            }
            Error::Weight { row, value } => Self::Weight { row, value },
            Error::FeatureCount { expected, found } => Self::FeatureCount { expected, found },
            Error::Scale => Self::Scale,
            error @ (Error::Format(_) | Error::Interrupted) => return Err(error),
            other => Self::Other(other.to_string()),
        })
    }

    /// Whether it is told to people by the number of a row.
    pub(super) fn names_a_row(&self) -> bool {
        matches!(self, Self::Infinite { .. } | Self::Weight { .. })
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let at = |row: usize, column: usize| Cell { row, column, name: None };
        match failure {
            Failure::Infinite { value, row, column } => Self::Infinite { value, cell: at(row, column) },
            Failure::Missing { row, column, operation } => {
                let known = OPERATIONS.into_iter().find(|known| *known == operation);
                Self::Missing { cell: at(row, column), operation: known.unwrap_or("this fit") }
            }
            Failure::Weight { row, value } => Self::Weight { row, value },
            Failure::FeatureCount { expected, found } => Self::FeatureCount { expected, found },
            Failure::Scale => Self::Scale,
            Failure::Other(text) => Self::source(ErrorClass::Data, text),
        }
    }
}

impl Reply {
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        unseal(bytes)
    }
}

/// With the version before and a checksum behind.
pub(super) fn seal(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = to_bytes(&(VERSION, value))?;
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// What was sealed.
pub(super) fn unseal<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let damaged = || Error::Format("evidence that is damaged, or of another kind".into());
    let (body, checksum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(damaged());
    }
    let (version, rest): (String, &[u8]) = postcard::take_from_bytes(body).map_err(|_| damaged())?;
    if version != VERSION {
        return Err(Error::Format(format!(
            "it comes from covary {version}, and this is covary {VERSION}: install the same version everywhere"
        )));
    }
    from_bytes(rest)
}

/// The sum of a hash of each cell: the same for any order of the rows, and another when a cell changes.
pub(super) fn checksum(chunk: &Chunk<'_>) -> u64 {
    let of = |column: usize, cell: f64| match cell.is_nan() {
        true => 0,
        false => mixed(cell.to_bits(), column as u64),
    };
    match chunk.cells() {
        Cells::Observed(rows) => (0..chunk.nrows())
            .flat_map(|i| rows.row(i).0.iter().zip(rows.row(i).1))
            .fold(0, |sum: u64, (j, x)| sum.wrapping_add(of(*j as usize, *x))),
        dense => with_view!(dense, view => (0..view.ncols())
            .flat_map(|j| view.col(j).iter().map(move |x| of(j, Real::to_f64(*x))))
            .fold(0, u64::wrapping_add)),
    }
}

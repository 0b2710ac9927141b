//! The container of all files: named arrays of doubles and one JSON text, version checked first, every byte
//! checksummed.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::{Array, StoredArrays};

/// The newest version of the format that this library reads and the one that it writes.
pub const FORMAT_VERSION: u64 = 1;

/// The one key of the container's own metadata; a map with one key has one order.
const KEY: &str = "covary";
/// Stands in the text while the checksum is computed.
const BLANK: &str = "00000000";

/// An array of doubles, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    shape: Vec<usize>,
    cells: Vec<f64>,
}

/// A decoded file.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) kind: String,
    tensors: BTreeMap<String, Tensor>,
    details: serde_json::Value,
}

/// The part of the text that is read before anything else.
#[derive(Deserialize)]
struct Version {
    format: u64,
}

#[derive(Serialize, Deserialize)]
struct Header<D> {
    format: u64,
    kind: String,
    checksum: String,
    details: D,
}

/// Encodes arrays and details; the same content gives the same bytes.
pub(super) fn to_bytes(
    kind: &str,
    details: &impl Serialize,
    tensors: &BTreeMap<impl AsRef<str> + Ord, Tensor>,
) -> Result<Vec<u8>> {
    let tensors: BTreeMap<&str, &Tensor> = tensors.iter().map(|(name, t)| (name.as_ref(), t)).collect();
    let failed = |e: &dyn std::fmt::Display| Error::Format(format!("it cannot be encoded: {e}"));
    let data: BTreeMap<&str, Vec<u8>> = tensors
        .iter()
        .map(|(name, t)| (*name, t.cells.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let header = Header { format: FORMAT_VERSION, kind: kind.into(), checksum: BLANK.into(), details };
    let text = serde_json::to_string(&header).map_err(|e| failed(&e))?;
    let parts = tensors.iter().map(|(name, t)| (*name, t.shape.as_slice(), data[name].as_slice()));
    let text = with_checksum(&text, BLANK, &checksum(&text, parts));
    let views = tensors
        .iter()
        .map(|(name, t)| Ok((*name, TensorView::new(Dtype::F64, t.shape.clone(), &data[name])?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| failed(&e))?;
    serialize(views, Some(HashMap::from([(KEY.to_string(), text)]))).map_err(|e| failed(&e))
}

impl Container {
    /// Decodes and verifies.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged =
            |e: &dyn std::fmt::Display| Error::Format(format!("it is damaged or of another kind ({e})"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(&e))?;
        let text = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
        let text = text.ok_or_else(|| Error::Format("it is a safetensors file of other software".into()))?;
        let version: Version = serde_json::from_str(text).map_err(|e| damaged(&e))?;
        if version.format != FORMAT_VERSION {
            return Err(Error::Version { found: version.format, supported: FORMAT_VERSION });
        }
        let header: Header<serde_json::Value> = serde_json::from_str(text).map_err(|e| damaged(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(&e))?;
        let views: BTreeMap<String, TensorView<'_>> = file.tensors().into_iter().collect();
        let blank = with_checksum(text, &header.checksum, BLANK);
        let parts = views.iter().map(|(name, v)| (name.as_str(), v.shape(), v.data()));
        if checksum(&blank, parts) != header.checksum {
            return Err(Error::Format(
                "its checksum is wrong: some bytes have changed since it was written".into(),
            ));
        }
        let tensors = views.into_iter().map(|(name, v)| Ok((name, Tensor::of_view(&v)?)));
        Ok(Self { kind: header.kind, tensors: tensors.collect::<Result<_>>()?, details: header.details })
    }

    /// The details, as the type that the kind promises.
    pub(super) fn details<D: DeserializeOwned>(&self) -> Result<D> {
        D::deserialize(&self.details).map_err(|e| Error::Format(format!("its details cannot be read ({e})")))
    }

    fn tensor(&self, name: &str, sides: &[Option<usize>]) -> Result<&Tensor> {
        let t = self.tensors.get(name).ok_or_else(|| Error::Format(format!("'{name}' is missing")))?;
        let fits = |(found, needed): (&usize, &Option<usize>)| needed.is_none_or(|n| n == *found);
        if t.shape.len() == sides.len() && t.shape.iter().zip(sides).all(fits) {
            return Ok(t);
        }
        let side = |n: &Option<usize>| n.map_or("any".into(), |n| n.to_string());
        let needed: Vec<String> = sides.iter().map(side).collect();
        Err(Error::Format(format!(
            "'{name}' has shape {:?} where [{}] is needed",
            t.shape,
            needed.join(", ")
        )))
    }
}

impl StoredArrays for Container {
    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn mean(&self) -> Result<Vec<f64>> {
        let mean = self.vector("mean", None)?;
        if mean.is_empty() { Err(Error::Format("it has no features".into())) } else { Ok(mean) }
    }

    fn vector(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>> {
        let cells = self.vector_with_limits(name, length)?;
        check_finite(name, &cells)?;
        Ok(cells)
    }

    fn vector_with_limits(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>> {
        self.tensor(name, &[length]).map(|t| t.cells.clone())
    }

    fn matrix(&self, name: &str, sides: [Option<usize>; 2]) -> Result<Mat<f64>> {
        let t = self.tensor(name, &sides)?;
        check_finite(name, &t.cells)?;
        Ok(t.to_matrix())
    }

    fn matrix_with_missing(&self, name: &str, sides: [Option<usize>; 2]) -> Result<Mat<f64>> {
        let t = self.tensor(name, &sides)?;
        let observed: Vec<f64> = t.cells.iter().copied().filter(|x| !x.is_nan()).collect();
        check_finite(name, &observed)?;
        Ok(t.to_matrix())
    }
}

impl From<&Array> for Tensor {
    fn from(array: &Array) -> Self {
        match array {
            Array::Vector(cells) => Self::vector(cells),
            Array::Matrix(m) => Self::matrix(m),
        }
    }
}

impl Tensor {
    pub(super) fn vector(cells: &[f64]) -> Self {
        Self { shape: vec![cells.len()], cells: cells.to_vec() }
    }

    pub(super) fn matrix(m: &Mat<f64>) -> Self {
        let cells = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| m[(i, j)])).collect();
        Self { shape: vec![m.nrows(), m.ncols()], cells }
    }

    /// Of two sides.
    fn to_matrix(&self) -> Mat<f64> {
        let (height, width) = (self.shape[0], self.shape[1]);
        Mat::from_fn(height, width, |i, j| self.cells[i * width + j])
    }

    fn of_view(view: &TensorView<'_>) -> Result<Self> {
        if view.dtype() != Dtype::F64 {
            return Err(Error::Format(format!("an array of type {:?} instead of F64", view.dtype())));
        }
        let (words, _) = view.data().as_chunks::<8>();
        let cells: Vec<f64> = words.iter().map(|w| f64::from_le_bytes(*w)).collect();
        let shape = view.shape().to_vec();
        match shape.iter().try_fold(1, |n: usize, side| n.checked_mul(*side)) {
            Some(n) if n == cells.len() => Ok(Self { shape, cells }),
            _ => Err(Error::Format(format!("an array of shape {shape:?} with {} numbers", cells.len()))),
        }
    }
}

fn check_finite(name: &str, cells: &[f64]) -> Result<()> {
    match cells.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(Error::Format(format!("'{name}' holds {x}, which is not a number that it can have"))),
        None => Ok(()),
    }
}

/// CRC-32 (as in zlib) of the text, then of each array's name, shape and bytes in the order of the names.
fn checksum<'a>(text: &str, tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>) -> String {
    let mut crc = crc32fast::Hasher::new();
    crc.update(text.as_bytes());
    for (name, shape, data) in tensors {
        crc.update(name.as_bytes());
        shape.iter().for_each(|n| crc.update(&(*n as u64).to_le_bytes()));
        crc.update(data);
    }
    format!("{:08x}", crc.finalize())
}

/// Puts another checksum into the text.
fn with_checksum(text: &str, old: &str, new: &str) -> String {
    text.replacen(&format!("\"checksum\":\"{old}\""), &format!("\"checksum\":\"{new}\""), 1)
}

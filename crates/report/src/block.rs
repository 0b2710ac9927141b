//! The block of a page: JSON that names arrays, and the arrays, compressed and written in base64.
//!
//! Bytes before compression: the length of the JSON (u32), the JSON, zeros up to a multiple of 8, then the arrays,
//! each from a multiple of 8 on. Everything is little-endian.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use covary::{Error, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// What is known of an array: its type, shape and place.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    shape: [usize; 2],
    offset: usize,
}

/// Arrays in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
}

impl Arrays {
    /// Doubles of a matrix, row by row.
    pub(crate) fn doubles(&mut self, name: &str, shape: [usize; 2], values: &[f64]) {
        self.start(name, "f64", shape);
        values.iter().for_each(|x| self.bytes.extend_from_slice(&x.to_le_bytes()));
    }

    /// Numbers in single precision.
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the narrower type is the point")]
    pub(crate) fn singles(&mut self, name: &str, shape: [usize; 2], values: impl Iterator<Item = f64>) {
        self.start(name, "f32", shape);
        values.for_each(|x| self.bytes.extend_from_slice(&(x as f32).to_le_bytes()));
    }

    /// Whole numbers.
    pub(crate) fn words(&mut self, name: &str, shape: [usize; 2], values: &[u32]) {
        self.start(name, "u32", shape);
        values.iter().for_each(|x| self.bytes.extend_from_slice(&x.to_le_bytes()));
    }

    /// Bytes.
    pub(crate) fn bytes(&mut self, name: &str, shape: [usize; 2], values: &[u8]) {
        self.start(name, "u8", shape);
        self.bytes.extend_from_slice(values);
    }

    fn start(&mut self, name: &str, kind: &'static str, shape: [usize; 2]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.entries.push(Entry { name: name.into(), kind, shape, offset: self.bytes.len() });
    }
}

#[derive(Serialize)]
struct Whole<'a, T> {
    about: &'a T,
    arrays: &'a [Entry],
}

/// The block as it stands in a page.
pub(crate) fn encode(about: &impl Serialize, arrays: &Arrays) -> Result<String> {
    let json = serde_json::to_vec(&Whole { about, arrays: &arrays.entries }).map_err(|e| broken(&e))?;
    let length = u32::try_from(json.len()).map_err(|e| broken(&e))?;
    let mut zipped = GzEncoder::new(Vec::new(), Compression::new(6));
    let padding = vec![0; (4 + json.len()).next_multiple_of(8) - 4 - json.len()];
    for part in [&length.to_le_bytes()[..], &json, &padding, &arrays.bytes] {
        zipped.write_all(part).map_err(|e| broken(&e))?;
    }
    Ok(STANDARD.encode(zipped.finish().map_err(|e| broken(&e))?))
}

fn broken(error: &dyn std::fmt::Display) -> Error {
    Error::Format(format!("the data of the page cannot be written: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn arrays_start_at_multiples_of_eight() {
        let mut arrays = Arrays::default();
        arrays.bytes("odd", [3, 1], &[1, 2, 3]);
        arrays.doubles("x", [1, 2], &[0.5, -2.0]);
        let text = encode(&"told", &arrays).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&STANDARD.decode(text).unwrap()[..]).read_to_end(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let json: serde_json::Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        assert_eq!((json["about"].as_str(), json["arrays"][1]["offset"].as_u64()), (Some("told"), Some(8)));
        let start = (4 + length).next_multiple_of(8) + 8;
        assert_eq!(f64::from_le_bytes(bytes[start + 8..start + 16].try_into().unwrap()), -2.0);
    }
}

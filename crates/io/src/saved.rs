//! Files of models and moments, read whole.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result};

/// The bytes of a file of a model or of moments; of a file of another kind no more than its beginning, which
/// tells that it is one.
///
/// # Errors
/// File trouble. A pipe, which may never end, is refused.
pub fn read_saved(path: &Path) -> Result<Vec<u8>> {
    let found = fs::metadata(path).map_err(Error::open(path))?;
    if found.is_dir() {
        return Err(Error::Directory { path: path.into() });
    }
    if !found.is_file() {
        return Err(Error::NotAFile { path: path.into() });
    }
    bytes(path).map_err(Error::open(path))
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    /// Length of the header, eight bytes, and the brace that opens it.
    const BEGINNING: usize = 9;
    let mut file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(BEGINNING as u64).read_to_end(&mut bytes)?;
    if bytes.get(BEGINNING - 1) == Some(&b'{') {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

//! Files of models and moments: read whole, told apart, and complained about by name.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use covary::evidence::Moments;
use covary::persist::{Portable, SavedEvidence, SavedModel, kind};
use covary_io::Format;

use crate::args::is_moments;
use crate::exit::{Failure, Result};
use crate::phrase::{about_file, file_name};

/// A file of ours.
pub(crate) enum Saved {
    Model(Box<SavedModel>),
    Moments(SavedEvidence<Moments>),
}

/// Reads a model.
pub(crate) fn read_model(path: &Path) -> Result<SavedModel> {
    if is_moments(path) {
        let name = file_name(path);
        return Err(Failure::usage(format!(
            "{name} holds moments, not a model; make one with covary fit {name}"
        )));
    }
    if Format::from_path(path).is_ok() {
        return Err(Failure::usage(format!(
            "{} is where a model is expected, but its ending is that of a table; the model comes first, then \
             the data",
            file_name(path)
        )));
    }
    SavedModel::from_bytes(&read(path)?).map_err(about_file(path))
}

/// Reads moments.
pub(crate) fn read_moments(path: &Path) -> Result<SavedEvidence<Moments>> {
    Moments::from_bytes(&read(path)?).map_err(about_file(path))
}

/// Reads whatever it is.
pub(crate) fn read_saved(path: &Path) -> Result<Saved> {
    if Format::from_path(path).is_ok() {
        let name = file_name(path);
        return Err(Failure::usage(format!(
            "{name} is a table by its ending; give a model or a .moments file"
        )));
    }
    let bytes = read(path)?;
    let saved = match kind(&bytes).map_err(about_file(path))?.as_str() {
        "moments" => Moments::from_bytes(&bytes).map(Saved::Moments),
        _ => SavedModel::from_bytes(&bytes).map(|model| Saved::Model(Box::new(model))),
    };
    saved.map_err(about_file(path))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    read_bytes(path).map_err(|source| {
        let path = path.into();
        let error = match source.kind() {
            io::ErrorKind::IsADirectory => covary_io::Error::Directory { path },
            _ => covary_io::Error::Open { path, source },
        };
        error.into()
    })
}

/// Looks at the beginning first: a large file of another kind is not worth reading.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
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

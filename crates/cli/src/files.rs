//! Files of models and moments: read whole, told apart, and complained about by name.

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
    Ok(covary_io::read_saved(path)?)
}

//! Models and evidence as bytes: a safetensors container that two languages can read, versioned and
//! checksummed.
//!
//! The layout is written down in `docs/model-file.md`. Bytes only: writing files whole or not at all is the
//! business of `covary-io`.

mod check;
mod container;
mod evidence;
mod model;

pub use container::FORMAT_VERSION;
pub use evidence::{Portable, SavedEvidence};
pub use model::SavedModel;

use crate::error::Result;

/// What the bytes of a file of this library hold: `ppca`, `pca`, `moments`, …
///
/// # Errors
/// When the bytes are not a file of this library, are damaged, or are of a newer version.
pub fn kind(bytes: &[u8]) -> Result<String> {
    Ok(container::Container::from_bytes(bytes)?.kind)
}

//! `covary reconstruct`: each row rebuilt from its latent coordinates.

use covary::model::Reconstruction;

use super::answer::{prepare, write};
use crate::args::Question;
use crate::exit::{Code, Result};

/// Writes the model's features, rebuilt.
pub(super) fn run(mut args: Question, posterior: bool) -> Result<Code> {
    let (saved, reader) = prepare(&mut args)?;
    let kind = if posterior { Reconstruction::Posterior } else { Reconstruction::Orthogonal };
    let model = saved.model.reconstructor()?;
    write(&args, reader, &saved.features, |chunk| model.reconstruct(chunk, kind))?;
    Ok(Code::Done)
}

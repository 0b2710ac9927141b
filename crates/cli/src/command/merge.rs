//! `covary merge`: the moments of several parts as those of the whole.

use std::path::{Path, PathBuf};

use covary::evidence::Accumulator;
use covary::persist::Portable;

use super::moments::{difference, does_not_belong};
use crate::args::check_moments_name;
use crate::console::Console;
use crate::exit::{Code, Failure, Result};
use crate::files::read_moments;
use crate::flags::Merge;
use crate::output::new_file;
use crate::phrase::{count, file_name};

/// Reads one part after another, in the order given.
pub(super) fn run(flags: &Merge) -> Result<Code> {
    check_moments_name(&flags.output)?;
    let parts: Vec<&Path> = flags.parts.iter().map(PathBuf::as_path).collect();
    let target = new_file(&flags.output, &parts)?;
    let Some((first, others)) = flags.parts.split_first() else {
        return Err(Failure::usage("no parts to merge; give the files that covary moments wrote"));
    };
    let mut whole = read_moments(first)?;
    for path in others {
        let part = read_moments(path)?;
        if let Some(what) = difference(&whole.features, &part.features) {
            return Err(does_not_belong(&file_name(path), &file_name(first), &what));
        }
        whole.evidence.merge(&part.evidence)?;
    }
    target.write(&whole.evidence.to_bytes(&whole.features)?)?;
    let (parts, rows) = (count(flags.parts.len(), "part"), count(whole.evidence.rows(), "row"));
    Console::new(flags.quiet).note(&format!("{parts}, {rows} in '{}'", flags.output.display()));
    Ok(Code::Done)
}

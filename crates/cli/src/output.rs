//! What a command writes: never over what it reads, and with the truth told when somebody stops it.

use std::fs::{self, Metadata};
use std::path::Path;

use covary::linalg::MatRef;
use covary_io::arrow_array::ArrayRef;
use covary_io::{CarriedColumn, NewFile, Writer};

use crate::exit::{Failure, Result};
use crate::interrupt;
use crate::phrase::file_name;

/// Rows on their way out.
pub(crate) struct Output {
    writer: Writer,
}

impl Output {
    /// Prepares the output of a command that reads these files.
    pub(crate) fn create(
        path: &Path,
        inputs: &[&Path],
        carried: &[CarriedColumn],
        names: &[String],
    ) -> Result<Self> {
        check_apart(path, inputs)?;
        let writer = Writer::create(path, carried, names)?;
        // A temporary file wants removing, but nothing is worth waiting for somebody who types rows.
        let typed = inputs.iter().any(|input| input.as_os_str() == "-");
        interrupt::worth_saving(!writer.is_immediate() && !typed);
        Ok(Self { writer })
    }

    pub(crate) fn write(&mut self, carried: &[ArrayRef], numbers: MatRef<'_, f64>) -> Result<()> {
        if self.writer.is_immediate() {
            interrupt::wrote();
        }
        Ok(self.writer.write(carried, numbers)?)
    }

    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}

/// Prepares a file of bytes, written by a command that reads these files.
pub(crate) fn new_file(path: &Path, inputs: &[&Path]) -> Result<NewFile> {
    check_apart(path, inputs)?;
    Ok(NewFile::create(path)?)
}

/// Whether the output is none of the inputs, by whatever name.
pub(crate) fn check_apart(output: &Path, inputs: &[&Path]) -> Result<()> {
    let Some(target) = identity(output).filter(|_| output.as_os_str() != "-") else { return Ok(()) };
    match inputs.iter().find(|input| identity(input).as_ref() == Some(&target)) {
        None => Ok(()),
        Some(input) => Err(Failure::usage(format!(
            "-o {} is {}, which is read: it would be replaced; give another name",
            output.display(),
            match input.as_os_str() == "-" {
                true => "the file that standard input comes from".into(),
                false => format!("the input {}", file_name(input)),
            }
        ))),
    }
}

/// What tells a file that exists from all others; pipes and devices are not replaced.
fn identity(path: &Path) -> Option<Identity> {
    let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
    let found = fs::metadata(path).ok().filter(Metadata::is_file)?;
    identify(path, &found)
}

#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = std::path::PathBuf;

#[cfg(unix)]
fn identify(_: &Path, found: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identify(path: &Path, _: &Metadata) -> Option<Identity> {
    fs::canonicalize(path).ok()
}

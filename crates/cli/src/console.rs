//! What people see: results on standard output, remarks on standard error unless they asked for quiet.

use std::io::{self, ErrorKind, IsTerminal, Write};

use crate::exit::{Failure, Result};

/// Who is listening.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    quiet: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A result, unless quiet.
    pub(crate) fn show(self, text: &str) -> Result<()> {
        if self.quiet { Ok(()) } else { print(text) }
    }

    /// A remark, unless quiet.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            eprintln!("covary: {text}");
        }
    }

    /// Whether a moving display makes sense.
    pub(crate) fn is_watched(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Writes to standard output, whatever the flags say.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::file(format!("cannot write standard output: {error}")),
    })
}

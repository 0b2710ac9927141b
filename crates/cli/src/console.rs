//! What people see: results on standard output, remarks on standard error unless they asked for quiet.

use std::io::{self, ErrorKind, IsTerminal, Write};

use crate::escape;
use crate::exit::{Failure, Result};

/// Who is listening.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    quiet: bool,
    /// Whether a program listens, for which there is JSON.
    json: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, json: false }
    }

    /// For a command that may be asked for JSON.
    pub(crate) fn or_json(quiet: bool, json: bool) -> Self {
        Self { quiet, json }
    }

    /// A result for people, unless quiet.
    pub(crate) fn show(self, text: &str) -> Result<()> {
        if self.quiet || self.json { Ok(()) } else { print(&escape::lines(text)) }
    }

    /// A remark for people, unless quiet.
    pub(crate) fn note(self, text: &str) {
        if !self.json {
            self.warn(text);
        }
    }

    /// A remark that programs' owners need too, unless quiet.
    pub(crate) fn warn(self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Whether a moving display makes sense.
    pub(crate) fn is_watched(self) -> bool {
        !self.quiet && !self.json && io::stderr().is_terminal()
    }
}

/// A sentence on standard error.
pub(crate) fn say(text: &str) {
    eprintln!("covary: {}", escape::line(text));
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

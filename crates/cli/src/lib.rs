//! The `covary` command as a library, so that the Python package carries the command and its tables too.
#![forbid(unsafe_code)]

mod advice;
mod args;
mod command;
mod console;
mod escape;
mod exit;
mod files;
mod flags;
mod interrupt;
mod kinds;
mod notice;
mod output;
mod phrase;
mod print;
mod progress;
mod source;
mod table;

use std::ffi::OsString;

use clap::Parser;

use exit::Code;

pub use print::text;

/// Runs the command with these arguments, the first of which is its name, and gives the exit code.
///
/// A process calls it once: it takes over Ctrl-C and what is said about panics, and a second Ctrl-C ends the
/// process.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let code = exit::guarded(|| match flags::Flags::try_parse_from(args) {
        Ok(flags) => {
            covary::memory::available_from(covary_io::available_memory);
            interrupt::install();
            command::run(flags.command)
        }
        Err(told) => Ok(tell(&told)),
    });
    code as u8
}

/// Help on standard output, or what is wrong with the flags on standard error.
fn tell(told: &clap::Error) -> Code {
    // Whoever does not read it has nothing to complain about.
    drop(told.print());
    if told.use_stderr() { Code::Usage } else { Code::Done }
}

//! `covary completions` and `covary man`: made from the flags, so that they are never out of date.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::flags::Flags;

/// Completions for a shell, on standard output.
pub(super) fn completions(shell: Shell) -> Result<Code> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Flags::command(), "covary", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Code::Done)
}

/// The main page on standard output, or all pages in a folder.
pub(super) fn man(dir: Option<&Path>) -> Result<Code> {
    match dir {
        None => {
            let mut text = Vec::new();
            Man::new(Flags::command()).render(&mut text).map_err(|e| cannot_write("the page", &e))?;
            print(&String::from_utf8_lossy(&text))?;
        }
        Some(dir) => {
            let name = format!("'{}'", dir.display());
            fs::create_dir_all(dir).map_err(|e| cannot_write(&name, &e))?;
            clap_mangen::generate_to(Flags::command(), dir).map_err(|e| cannot_write(&name, &e))?;
        }
    }
    Ok(Code::Done)
}

fn cannot_write(what: &str, error: &std::io::Error) -> Failure {
    Failure::file(format!("cannot write {what}: {error}"))
}

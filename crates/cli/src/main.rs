//! The `covary` command: fit, transform, reconstruct, impute, score and sample latent-variable models of tables of numbers.
#![forbid(unsafe_code)]

mod args;
mod bayes;
mod command;
mod console;
mod escape;
mod exit;
mod factors;
mod files;
mod flags;
mod interrupt;
mod kinds;
mod loadings;
mod notice;
mod output;
mod phrase;
mod progress;
mod source;
mod summary;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    exit::guarded(|| {
        let flags = flags::Flags::parse();
        covary::memory::available_from(covary_io::available_memory);
        interrupt::install();
        command::run(flags.command)
    })
}

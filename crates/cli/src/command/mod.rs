//! One file for each command.

mod answer;
mod demo;
mod fit;
mod inspect;
mod manual;
mod merge;
mod moments;
mod reconstruct;
mod sample;
mod score;
mod transform;

use crate::args;
use crate::exit::{Code, Result};
use crate::flags::Command;

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<Code> {
    match command {
        Command::Fit(flags) => fit::run(&args::Fit::resolve(flags)?),
        Command::Transform(flags) => transform::run(args::Question::resolve(flags.question)?, flags.std),
        Command::Reconstruct(flags) => {
            reconstruct::run(args::Question::resolve(flags.question)?, flags.posterior)
        }
        Command::Score(flags) => score::run(args::Question::resolve(flags.question)?),
        Command::Sample(flags) => sample::run(flags),
        Command::Inspect(flags) => inspect::run(&flags),
        Command::Moments(flags) => moments::run(&args::Moments::resolve(flags)?),
        Command::Merge(flags) => merge::run(&flags),
        Command::Demo(flags) => demo::run(&flags),
        Command::Completions(flags) => manual::completions(flags.shell),
        Command::Man(flags) => manual::man(flags.dir.as_deref()),
    }
}

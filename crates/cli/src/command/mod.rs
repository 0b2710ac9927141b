//! One file for each command.

mod answer;
mod assign;
mod choose;
mod demo;
mod fill;
mod fit;
mod holdout;
mod inspect;
mod manual;
mod merge;
mod moments;
mod pairs;
mod reconstruct;
mod report;
mod rotate;
mod sample;
mod score;
mod score_cells;
mod score_worst;
mod select;
mod select_groups;
mod select_kernel;
mod transform;

use crate::args;
use crate::exit::{Code, Result};
use crate::flags::Command;

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<Code> {
    match command {
        Command::Fit(flags) => fit::run(&args::Fit::resolve(*flags)?),
        Command::Transform(flags) => {
            transform::run(args::Question::resolve(flags.question, flags.triples)?, flags.scores, flags.std)
        }
        Command::Reconstruct(flags) => {
            reconstruct::run(args::Question::resolve(flags.question, None)?, flags.posterior)
        }
        Command::Impute(flags) => impute(args::Impute::resolve(flags)?),
        Command::Score(flags) => score::run(args::Score::resolve(*flags)?),
        Command::Assign(flags) => {
            assign::run(args::Question::resolve(flags.question, flags.triples)?, flags.probabilities)
        }
        Command::Sample(flags) => sample::run(flags),
        Command::Select(flags) => {
            let args = args::Select::resolve(flags)?;
            match (&args.groups, &args.kernel) {
                (Some(of), _) => select_groups::run(&args, of),
                (_, Some(of)) => select_kernel::run(&args, of),
                _ => select::run(&args),
            }
        }
        Command::Rotate(flags) => rotate::run(&args::Rotate::resolve(flags)?),
        Command::Inspect(flags) => inspect::run(&flags),
        Command::Report(flags) => report::run(args::Report::resolve(*flags)?),
        Command::Moments(flags) => moments::run(&args::Moments::resolve(flags)?),
        Command::Merge(flags) => merge::run(&flags),
        Command::Demo(flags) => demo::run(&flags),
        Command::Completions(flags) => manual::completions(flags.shell),
        Command::Man(flags) => manual::man(flags.dir.as_deref()),
    }
}

fn impute(args: args::Impute) -> Result<Code> {
    match args {
        args::Impute::Fill { question, filling } => fill::run(question, filling),
        args::Impute::Pairs { question, pairs, std } => pairs::run(&question, &pairs, std),
        args::Impute::Holdout(args) => holdout::run(&args),
    }
}

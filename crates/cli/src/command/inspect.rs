//! `covary inspect`: what is in a model or in moments.

use covary::describe::{CUT, Description, Detail, Errors, choices, describe, describe_moments};
use covary::persist::SavedModel;

use crate::console;
use crate::exit::{Code, Failure, Result};
use crate::files::{Saved, read_saved};
use crate::flags::Inspect;
use crate::interrupt;
use crate::phrase::about_features;
use crate::print::{self, json};

/// Shows the file for people, or as JSON.
pub(super) fn run(flags: &Inspect) -> Result<Code> {
    let description = match read_saved(&flags.model)? {
        Saved::Model(saved) => of_model(flags, &saved)?,
        Saved::Moments(_) if flags.cut.is_some() || flags.errors => {
            return Err(only("--cut and --errors are for models", "moments"));
        }
        Saved::Moments(part) => describe_moments(&part),
    };
    console::print(&match flags.json {
        true => json(&description.facts)?,
        false => print::text(&description, &print::in_flags),
    })?;
    Ok(Code::Done)
}

/// The whole of a model, with what was asked for.
fn of_model(flags: &Inspect, saved: &SavedModel) -> Result<Description> {
    check(flags, saved)?;
    let control = interrupt::control();
    let errors = flags.errors.then_some(Errors { level: flags.level, control: &control });
    let detail = Detail { loadings: true, cut: flags.cut.unwrap_or(CUT), errors, because: None };
    describe(saved, &detail).map_err(about_features(&flags.model, &saved.features))
}

/// Refuses details that models of this kind do not have.
fn check(flags: &Inspect, saved: &SavedModel) -> Result<()> {
    let kind = saved.model.kind();
    let possible = choices(kind);
    let refused = [
        (flags.cut.is_some() && !possible.cut, "--cut is for models of factors"),
        (flags.errors && !possible.errors, "--errors is for ppca and fa"),
        (flags.level.is_some() && !possible.level, "--level is for ppca"),
    ];
    match refused.into_iter().find(|(refused, _)| *refused) {
        Some((_, sentence)) => Err(only(sentence, kind.name)),
        None => Ok(()),
    }
}

fn only(what: &str, kind: &str) -> Failure {
    Failure::usage(format!("{what}, and this file holds {kind}"))
}

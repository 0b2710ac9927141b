//! `covary select`: a table over the number of components, what each method chooses, and a recommendation.

use covary::Error;
use covary::describe::percent;
use covary::select::{Absent, Line, Select, Selection};
use serde::Serialize;

use super::choose;
use crate::args::{self, Reading};
use crate::console::print;
use crate::exit::{Code, Result};
use crate::files::read_moments;
use crate::interrupt;
use crate::phrase::{about_features, about_rows, count};
use crate::print::json;
use crate::source::{Rows, Source};
use crate::table;

/// Most lines that people are shown; the choices are among them.
const LINES: usize = 25;

/// The selection with the name of its data.
#[derive(Serialize)]
struct Told<'a> {
    data: String,
    #[serde(flatten)]
    selection: &'a Selection,
}

/// Looks and tells.
pub(super) fn run(args: &args::Select) -> Result<Code> {
    let (selection, features) = look(args)?;
    if args.json {
        let told = Told { data: args.pass.data.display().to_string(), selection: &selection };
        print(&json(&told)?)?;
    } else {
        args.pass.console.show(&text(&selection, &features))?;
    }
    if !selection.converged {
        args.pass.console.note(
            "some fits stopped at their limit of passes; the table is near, not at, what they would give",
        );
    }
    Ok(if selection.converged { Code::Done } else { Code::NotConverged })
}

/// The selection, and the names of the features that it is about.
fn look(args: &args::Select) -> Result<(Selection, Vec<String>)> {
    let args::Select { pass, select, triples, .. } = args;
    if args::is_moments(&pass.data) {
        let part = read_moments(&pass.data)?;
        let found = select.run_moments_with(&part.evidence, &interrupt::control());
        let found = found.map_err(about_features(&pass.data, &part.features))?;
        return Ok((found, part.features));
    }
    let reading = Reading { triples: triples.as_ref(), ..pass.reading() };
    let mut source = Source::open(&reading, None)?;
    let found = match of_source(&reading, select, &mut source)? {
        Err(Error::NeverObserved { features }) if args.drop_empty => {
            let empty: Vec<usize> = features.into_iter().map(|(j, _)| j).collect();
            source = source.without(&reading, &empty)?;
            of_source(&reading, select, &mut source)?
        }
        found => found,
    };
    let found = found.map_err(about_rows(&source.schema))?;
    Ok((found, source.schema.features.clone()))
}

fn of_source(
    reading: &Reading<'_>,
    select: &Select,
    source: &mut Source,
) -> Result<covary::Result<Selection>> {
    let in_memory = source.in_memory();
    if let Rows::Stream(stream) = &mut source.rows {
        return choose::of_stream(reading, select, stream);
    }
    match source.again() {
        Some(rows) => choose::of_rows(reading, select, rows, in_memory),
        None => Ok(Err(Error::NoRows)),
    }
}

fn text(selection: &Selection, features: &[String]) -> String {
    let choices =
        selection.choices.iter().map(|c| [c.method.clone(), c.components.to_string(), c.reason.clone()]);
    let head = format!("{} of {}", count(selection.rows, "row"), count(selection.features, "feature"));
    let holes = selection
        .holes
        .as_ref()
        .map_or(String::new(), |holes| format!(", {} of the cells missing", percent(holes.share())));
    let chosen = table::columns(&["method", "q", "because"], choices);
    let advice = format!("\ntake {}: {}\n", selection.recommended, selection.reason);
    let redundant = selection.redundant.as_ref();
    let redundant = redundant.map(|found| format!("left out: {}\n", found.in_words(features)));
    let redundant = redundant.unwrap_or_default();
    format!("{head}{holes}\n{redundant}\n{}\n{chosen}\n{}{advice}", lines(selection), absent(selection))
}

/// What chooses nothing, methods of the same reason together.
fn absent(selection: &Selection) -> String {
    let alike = selection.absent.chunk_by(|a, b| a.reason == b.reason);
    let names = |some: &[Absent]| some.iter().map(|a| a.method.as_str()).collect::<Vec<_>>().join(", ");
    alike.map(|some| format!("no choice by {}: {}\n", names(some), some[0].reason)).collect()
}

/// The table as far as anything chooses, and a little further; columns that say nothing are left out.
fn lines(selection: &Selection) -> String {
    let last = selection.choices.iter().map(|c| c.components).max().unwrap_or(0) + 2;
    let shown: Vec<&Line> = selection.table.iter().take(last.clamp(3, LINES)).collect();
    let column = |name: &'static str, of: fn(&Line) -> Option<f64>| {
        table::column(name, &shown.iter().map(|line| of(line)).collect::<Vec<_>>())
    };
    let numbers = shown.iter().map(|line| line.components.to_string()).collect();
    let shares = shown.iter().map(|line| percent(line.explained)).collect();
    let columns: Vec<_> = [
        Some(("q", numbers)),
        column("variance", |l| l.eigenvalue),
        Some(("explained", shares)),
        column("BIC", |l| l.bic),
        column("evidence", |l| l.log_evidence),
        column("held out", |l| l.cross_validated),
        column("± error", |l| l.cross_validated_error),
        column("Q² of cells", |l| l.q2),
        column("± error", |l| l.q2_error),
        column("correlations", |l| l.correlation_eigenvalue),
        column("noise", |l| l.noise_eigenvalue),
    ]
    .into_iter()
    .flatten()
    .collect();
    let rest = selection.table.len() - shown.len();
    let more = if rest > 0 { format!("… {rest} more with --json\n") } else { String::new() };
    table::side_by_side(&columns) + &more
}

//! `covary select`: a table over the number of components, what each method chooses, and a recommendation.

use covary::Control;
use covary::select::{Line, Selection};
use covary_io::{Reader, open};
use serde::Serialize;

use crate::args;
use crate::console::print;
use crate::exit::{Code, Failure, Result};
use crate::files::read_moments;
use crate::interrupt;
use crate::phrase::{about_features, about_rows, count};
use crate::progress::Progress;
use crate::summary::json;
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
    let selection = look(args)?;
    if args.json {
        let told = Told { data: args.data.display().to_string(), selection: &selection };
        print(&json(&told)?)?;
    } else {
        args.console.show(&text(&selection))?;
    }
    Ok(Code::Done)
}

fn look(args: &args::Select) -> Result<Selection> {
    if args::is_moments(&args.data) {
        let part = read_moments(&args.data)?;
        let found = args.select.run_moments(&part.evidence);
        return found.map_err(about_features(&args.data, &part.features));
    }
    let reader = open(&args.data, &args.options)?;
    let schema = reader.schema().clone();
    let p = schema.features.len();
    // Every fold has moments of its own.
    if let Some(needed) = args.budget.too_many_for_moments(p.saturating_mul(args.folds.isqrt() + 1)) {
        return Err(Failure::usage(format!(
            "the moments of {} in {} folds need about {} MiB; raise --memory, or select columns",
            count(p, "feature"),
            args.folds,
            needed >> 20
        )));
    }
    let found = pass(args, reader);
    found.map_err(about_rows(&schema))
}

fn pass(args: &args::Select, reader: Reader) -> covary::Result<Selection> {
    let progress = Progress::new(args.console, "reading", reader.schema().n_rows);
    let observer = |event| progress.follow(event);
    let control = Control::new().observer(&observer).cancel(interrupt::flag());
    match reader.grid() {
        Some(grid) => args.select.run_with(&grid as &dyn covary::data::RowSource, &control),
        None => args.select.run_stream(&mut reader.stream(), &control),
    }
}

fn text(selection: &Selection) -> String {
    let choices = selection.choices.iter().map(|c| {
        let q = c.components.to_string();
        [c.method.clone(), q, c.reason.clone()]
    });
    let head = format!("{} of {}\n\n", count(selection.rows, "row"), count(selection.features, "feature"));
    let chosen = table::columns(&["method", "q", "because"], choices);
    let advice = format!("\ntake {}: {}\n", selection.recommended, selection.reason);
    head + &lines(selection) + "\n" + &chosen + &advice
}

/// The table as far as anything chooses, and a little further.
fn lines(selection: &Selection) -> String {
    let last = selection.choices.iter().map(|c| c.components).max().unwrap_or(0) + 2;
    let shown: Vec<&Line> = selection.table.iter().take(last.clamp(3, LINES)).collect();
    let header =
        ["q", "variance", "explained", "BIC", "evidence", "held out", "± error", "correlations", "noise"];
    let column = |of: &dyn Fn(&Line) -> Option<f64>| -> Vec<String> {
        let known: Vec<f64> = shown.iter().filter_map(|line| of(line)).collect();
        let mut told = table::numbers(&known).into_iter();
        shown.iter().map(|line| of(line).and_then(|_| told.next()).unwrap_or_default()).collect()
    };
    let columns = [
        shown.iter().map(|line| line.components.to_string()).collect(),
        column(&|l| l.eigenvalue),
        shown.iter().map(|line| table::percent(line.explained)).collect(),
        column(&|l| l.bic),
        column(&|l| l.log_evidence),
        column(&|l| l.cross_validated),
        column(&|l| l.cross_validated_error),
        column(&|l| l.correlation_eigenvalue),
        column(&|l| l.noise_eigenvalue),
    ];
    let rows =
        (0..shown.len()).map(|i| columns.iter().map(|c: &Vec<String>| c[i].clone()).collect::<Vec<_>>());
    let rest = selection.table.len() - shown.len();
    let more = if rest > 0 { format!("… {rest} more with --json\n") } else { String::new() };
    table::columns(&header, rows) + &more
}

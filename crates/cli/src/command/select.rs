//! `covary select`: a table over the number of components, what each method chooses, and a recommendation.

use covary::select::{Line, Selection};
use serde::Serialize;

use super::moments::{one_pass, open_for_moments};
use crate::args;
use crate::console::print;
use crate::exit::{Code, Result};
use crate::files::read_moments;
use crate::phrase::{about_features, about_rows, count};
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
        let told = Told { data: args.pass.data.display().to_string(), selection: &selection };
        print(&json(&told)?)?;
    } else {
        args.pass.console.show(&text(&selection))?;
    }
    Ok(Code::Done)
}

fn look(args: &args::Select) -> Result<Selection> {
    let args::Select { pass, select, folds, .. } = args;
    if args::is_moments(&pass.data) {
        let part = read_moments(&pass.data)?;
        let found = select.run_moments(&part.evidence);
        return found.map_err(about_features(&pass.data, &part.features));
    }
    let (schema, reader) = open_for_moments(pass, *folds)?;
    let found = one_pass(
        pass,
        reader,
        *folds,
        |grid, control| select.run_with(grid, control),
        |stream, control| select.run_stream(stream, control),
    );
    found.map_err(about_rows(&schema))
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

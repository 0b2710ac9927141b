//! Descriptions as text for people and as JSON for programs.

use covary::describe::{Advice, Description, Line, Table};
use serde::Serialize;

use crate::escape;
use crate::exit::{Failure, Result};
use crate::table;

/// The text of a description: its lines, then its tables. `advice` puts advice into words: what can be done,
/// with the means of whoever reads it.
pub fn text(description: &Description, advice: &dyn Fn(Advice) -> String) -> String {
    let lines: Vec<(&str, String)> =
        description.lines.iter().map(|Line { label, words }| (label.as_str(), words.with(advice))).collect();
    let tables = description.tables.iter().map(|table| table_text(table, advice));
    std::iter::once(table::pairs(&lines)).chain(tables).collect::<Vec<_>>().join("\n")
}

fn table_text(table: &Table, advice: &dyn Fn(Advice) -> String) -> String {
    let cells = match table.rows.is_empty() {
        true => String::new(),
        false => table::cells(table),
    };
    let note = table.note.as_ref().map(|words| format!(" {}\n", words.with(advice)));
    cells + &note.unwrap_or_default()
}

/// Advice in flags.
pub(crate) fn in_flags(advice: Advice) -> String {
    match advice {
        Advice::MoreIterations => "raise --max-iter or --tol".into(),
        Advice::LargerTolerance => "--tol says what is good enough".into(),
        Advice::Factors(q) => format!("ask for -q {q}"),
        Advice::AllLoadings => "--json has all".into(),
    }
}

/// JSON for programs, readable for people.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| escape::json(&text).into_owned() + "\n")
        .map_err(|error| Failure::file(format!("cannot write JSON: {error}")))
}

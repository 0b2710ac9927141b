//! Small tables for people: aligned, as wide as the terminal allows, plain where there is none.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use covary::describe;

use crate::escape;

/// Names on the left, values on the right.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> String {
    let mut table = plain();
    pairs.iter().for_each(|(name, value)| {
        table.add_row([*name, &escape::line(value)]);
    });
    lines(&table)
}

/// Columns of numbers under their headings; the last column is aligned to the left.
pub(crate) fn columns<R: IntoIterator<Item = String>>(
    header: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> String {
    cells(&describe::Table {
        header: header.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.into_iter().map(|row| row.into_iter().collect()).collect(),
        right: 0..header.len() - 1,
        wraps: true,
        note: None,
    })
}

/// A column of numbers under its heading, empty where there is none; `None` where there is no number at all.
pub(crate) fn column(name: &'static str, cells: &[Option<f64>]) -> Option<(&'static str, Vec<String>)> {
    let known: Vec<f64> = cells.iter().flatten().copied().collect();
    let mut told = describe::numbers(&known).into_iter();
    let shown = cells.iter().map(|cell| cell.and_then(|_| told.next()).unwrap_or_default());
    (!known.is_empty()).then(|| (name, shown.collect()))
}

/// Columns of the same length as a table.
pub(crate) fn side_by_side(columns: &[(&'static str, Vec<String>)]) -> String {
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let length = columns.first().map_or(0, |(_, cells)| cells.len());
    let row = |i: usize| columns.iter().map(|(_, cells)| cells[i].clone()).collect::<Vec<_>>();
    self::columns(&header, (0..length).map(row))
}

/// Header and rows of a description's table. Each cell stays in its place whatever it holds.
pub(crate) fn cells(of: &describe::Table) -> String {
    let mut table = plain();
    if !of.wraps {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    if !of.header.is_empty() {
        table.set_header(of.header.clone());
    }
    for row in &of.rows {
        table.add_row(row.iter().map(|cell| escape::line(cell).into_owned()));
    }
    for column in table.column_iter_mut().take(of.right.end).skip(of.right.start) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    lines(&table)
}

/// A table without lines.
fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

/// The table as lines of text.
fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

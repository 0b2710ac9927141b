//! Small tables for people: aligned, as wide as the terminal allows, plain where there is none.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::escape;

/// Widest bar, in characters.
const BAR: usize = 24;

/// A table without lines.
pub(crate) fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

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
    let mut table = plain();
    table.set_header(header.to_vec());
    add_rows(&mut table, rows);
    let last = header.len() - 1;
    for column in table.column_iter_mut().take(last) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    lines(&table)
}

/// Rows of cells, each of which stays in its place whatever it holds.
pub(crate) fn add_rows<R: IntoIterator<Item = String>>(table: &mut Table, rows: impl IntoIterator<Item = R>) {
    for row in rows {
        table.add_row(row.into_iter().map(|cell| escape::line(&cell).into_owned()));
    }
}

/// The table as lines of text.
pub(crate) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A bar for a share between 0 and 1, in eighths of a character.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bar's width")]
pub(crate) fn bar(share: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A probability as a percentage, with the decimals that it has.
pub(crate) fn level(probability: f64) -> String {
    format!("{} %", (1e8 * probability).round() / 1e6)
}

/// A number with six figures or so.
pub(crate) fn number(value: f64) -> String {
    formatted(value, value)
}

/// Numbers under each other, all with the decimals that suit the largest.
pub(crate) fn numbers(values: &[f64]) -> Vec<String> {
    let largest = values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    values.iter().map(|value| formatted(*value, largest)).collect()
}

fn formatted(value: f64, largest: f64) -> String {
    match largest.abs() {
        0.0 => "0".into(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.5e}"),
        size if size >= 1e5 => format!("{value:.1}"),
        size if size >= 100.0 => format!("{value:.3}"),
        size if size >= 1.0 => format!("{value:.5}"),
        _ => format!("{value:.7}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_shares() {
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(bar(0.5), "█".repeat(12));
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0 / 192.0), "▏");
        assert_eq!(bar(f64::NAN), "");
    }

    #[test]
    fn numbers_keep_six_figures() {
        let shown = [0.0, 1234.5678, -2.0, 0.000123456, 1e-9, 3.2e8].map(number);
        assert_eq!(shown, ["0", "1234.568", "-2.00000", "0.0001235", "1.00000e-9", "3.20000e8"]);
    }
}

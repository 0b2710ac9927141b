//! Which byte separates the cells of a text and which marks decimals, where nobody says so.

use super::cell::{Cell, CellRules};
use super::head::{Head, Record};
use crate::dialect::{DecimalMark, Delimiter};
use crate::schema::{ReadOptions, most_columns};

/// What may separate cells. A space does only where none of the others occurs.
const CANDIDATES: [Delimiter; 5] =
    [Delimiter::COMMA, Delimiter::SEMICOLON, Delimiter::TAB, Delimiter::PIPE, Delimiter::SPACE];

/// What the records say about the byte between their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separation {
    /// By what the ending of the file promises, or by nothing that is known.
    Promised,
    /// By something else.
    Other(Delimiter),
    /// They can be read in two ways.
    Open(Delimiter, Delimiter),
}

/// A way to cut records into cells under which all have the same number of them.
struct Cut {
    delimiter: Delimiter,
    /// Columns below the first line that are mostly numbers, and the others.
    numbers: usize,
    texts: usize,
    /// Whether the first line holds the promised delimiter in a cell that is no number.
    holds_promised: bool,
}

/// Tells the delimiter of the records that start here.
///
/// The promised one is kept unless another one cuts all records into the same number of cells and makes
/// numbers of columns that would otherwise be text.
pub(super) fn delimiter(head: &Head, start: usize, promised: Delimiter, options: &ReadOptions) -> Separation {
    let barred = |d: Delimiter| options.decimal == Some(DecimalMark::Comma) && d == Delimiter::COMMA;
    let is_narrow = |d: Delimiter| head.first_width(start, d) <= most_columns(options);
    if !is_narrow(promised) {
        return Separation::Promised;
    }
    let cut = |delimiter| Cut::of(head, start, delimiter, promised, options);
    let ours = if barred(promised) { None } else { cut(promised) };
    let single = head.few_records(start, promised.byte()).iter().all(|record| record.len() == 1);
    let is_other = |d: &Delimiter| *d != promised && *d != Delimiter::SPACE && !barred(*d) && is_narrow(*d);
    let others = CANDIDATES.into_iter().filter(is_other);
    let best = others
        .filter_map(cut)
        .filter(|cut| cut.numbers > 0 || single)
        .min_by_key(|cut| (cut.texts, std::cmp::Reverse(cut.numbers)));
    match (ours, best) {
        (None, Some(best)) => Separation::Other(best.delimiter),
        (Some(ours), Some(best)) if best.texts < ours.texts && best.numbers >= ours.numbers => {
            match best.holds_promised {
                true => Separation::Open(promised, best.delimiter),
                false => Separation::Other(best.delimiter),
            }
        }
        (None, None) if is_narrow(Delimiter::SPACE) && is_spaced(head, start) => {
            let spaced = cut(Delimiter::SPACE).filter(|cut| cut.numbers > 0);
            spaced.map_or(Separation::Promised, |cut| Separation::Other(cut.delimiter))
        }
        _ => Separation::Promised,
    }
}

/// Whether no other candidate than a space occurs between cells.
fn is_spaced(head: &Head, start: usize) -> bool {
    let marks = CANDIDATES.into_iter().filter(|d| *d != Delimiter::SPACE);
    let absent = |d: Delimiter| head.few_records(start, d.byte()).iter().all(|record| record.len() == 1);
    marks.into_iter().all(absent)
}

impl Cut {
    fn of(
        head: &Head,
        start: usize,
        delimiter: Delimiter,
        promised: Delimiter,
        options: &ReadOptions,
    ) -> Option<Self> {
        let records = head.few_records(start, delimiter.byte());
        let (first, body) = records.split_first()?;
        let width = body.first().map_or(first.len(), Vec::len);
        let is_even = body.iter().all(|record| record.len() == width);
        // A header may lack the name of a first column of row names.
        if width < 2 || !is_even || !(first.len() == width || first.len() + 1 == width) {
            return None;
        }
        let rules = possible_rules(delimiter, options);
        let rows = if body.is_empty() { &records } else { body };
        let numbers = (0..width).filter(|&j| is_numeric(rows, j, &rules)).count();
        let is_name = |cell: &[u8]| !rules.iter().any(|rules| rules.read(cell) != Cell::Text);
        let holds_promised = first.iter().any(|cell| cell.contains(&promised.byte()) && is_name(cell))
            && delimiter != promised;
        Some(Self { delimiter, numbers, texts: width - numbers, holds_promised })
    }
}

/// The ways in which numbers may be written beside a delimiter.
fn possible_rules(delimiter: Delimiter, options: &ReadOptions) -> Vec<CellRules> {
    let marks = match options.decimal {
        Some(decimal) => vec![decimal],
        None if delimiter == Delimiter::COMMA => vec![DecimalMark::Point],
        None => vec![DecimalMark::Point, DecimalMark::Comma],
    };
    marks.into_iter().map(|decimal| CellRules::new(decimal, &options.missing)).collect()
}

/// Whether a column holds numbers and hardly any text.
fn is_numeric(rows: &[Record<'_>], column: usize, rules: &[CellRules]) -> bool {
    let (mut numbers, mut texts) = (0, 0);
    for cell in rows.iter().filter_map(|row| row.get(column)) {
        let read: Vec<Cell> = rules.iter().map(|rules| rules.read(cell)).collect();
        match () {
            () if read.contains(&Cell::Missing) => {}
            () if read.iter().any(|cell| matches!(cell, Cell::Number(_))) => numbers += 1,
            () => texts += 1,
        }
    }
    numbers > texts
}

/// How decimals are written, as far as cells tell.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Decimals {
    pub(super) mark: DecimalMark,
    /// Columns of numbers with commas that may be decimal marks or separate thousands.
    pub(super) open: Vec<usize>,
}

/// Rows that tell how decimals are written.
const ROWS: usize = 1000;

/// Tells the decimal mark of records: a comma where some numbers can only be read so, and none has a point.
pub(super) fn decimals(head: &Head, start: usize, delimiter: Delimiter, options: &ReadOptions) -> Decimals {
    let rules = |decimal| CellRules::new(decimal, &options.missing);
    let (point, comma) = (rules(DecimalMark::Point), rules(DecimalMark::Comma));
    let is_number = |rules: &CellRules, cell: &[u8]| matches!(rules.read(cell), Cell::Number(_));
    let (mut points, mut commas, mut sure) = (0, Vec::new(), false);
    let first = usize::from(head.records(start, delimiter.byte()).nth(1).is_some());
    for record in head.records(start, delimiter.byte()).skip(first).take(ROWS) {
        for (column, cell) in record.iter().enumerate() {
            points += usize::from(cell.contains(&b'.') && is_number(&point, cell));
            if cell.contains(&b',') && (is_number(&comma, cell) || is_grouped(cell)) {
                sure |= !is_grouped(cell);
                commas.push(column);
            }
        }
    }
    match sure && points == 0 && delimiter != Delimiter::COMMA {
        true => Decimals { mark: DecimalMark::Comma, open: Vec::new() },
        false => {
            commas.sort_unstable();
            commas.dedup();
            Decimals { mark: DecimalMark::Point, open: commas }
        }
    }
}

/// Whether the commas of a cell may separate thousands: `1,234` and `12,345,678`, but not `0,123`.
fn is_grouped(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    let digits = cell.strip_prefix(b"-").or(cell.strip_prefix(b"+")).unwrap_or(cell);
    let whole = digits.split(|byte| *byte == b'.').next().unwrap_or_default();
    let mut groups = whole.split(|byte| *byte == b',');
    let are_digits = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
    let leads = |group: &[u8]| matches!(group.len(), 1..=3) && group[0] != b'0' && are_digits(group);
    groups.next().is_some_and(leads) && groups.all(|group| group.len() == 3 && are_digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, promised: Delimiter) -> Separation {
        let head = Head { text: text.into(), whole: true };
        delimiter(&head, 0, promised, &ReadOptions::default())
    }

    fn other(text: &str) -> Option<Delimiter> {
        match told(text, Delimiter::COMMA) {
            Separation::Other(delimiter) => Some(delimiter),
            _ => None,
        }
    }

    #[test]
    fn what_separates_cells() {
        for (text, delimiter) in [
            ("a;b\n1;2\n", Delimiter::SEMICOLON),
            ("a;b\n1,5;2,5\n", Delimiter::SEMICOLON),
            ("name;a;b\nx;1,5;2,5\n", Delimiter::SEMICOLON),
            ("\"Smith, J\";1.5\n\"Wu, L\";2.5\n", Delimiter::SEMICOLON),
            ("1,5;2,5;3,5\n4,5;5,5;6,5\n", Delimiter::SEMICOLON),
            ("a\tb\n1\t2\n", Delimiter::TAB),
            ("a|b\n1|2\n", Delimiter::PIPE),
            ("\"a\" \"b\"\n\"1\" 1.5 2\n\"2\" 2.5 3\n", Delimiter::SPACE),
            ("user;film\nanna;Alien\n", Delimiter::SEMICOLON),
        ] {
            assert_eq!(other(text), Some(delimiter), "{text:?}");
        }
    }

    #[test]
    fn what_the_ending_promises_is_kept() {
        for text in [
            "a,b\n1,2\n",
            "a\n1\n2\n",
            "a,b\n1,x;y\n2,z;w\n",
            "note,a\nx|y,1\n",
            "t,a\n2020-01-01 10:00,1\n2020-01-01 11:00,2\n",
            "name\nJohn Smith\nLi Wu\n",
            "a;b,c\n1;2,3\n4,5\n",
        ] {
            assert_eq!(told(text, Delimiter::COMMA), Separation::Promised, "{text:?}");
        }
        assert_eq!(told("a\tb\n1,5\t2\n", Delimiter::TAB), Separation::Promised);
    }

    #[test]
    fn two_ways_are_told() {
        let open = Separation::Open(Delimiter::COMMA, Delimiter::SEMICOLON);
        assert_eq!(told("Weight, kg;Height, cm\n1,5;2,5\n3,5;4,5\n", Delimiter::COMMA), open);
    }

    #[test]
    fn decimal_marks() {
        let mark = |text: &str| {
            let head = Head { text: text.into(), whole: true };
            decimals(&head, 0, Delimiter::SEMICOLON, &ReadOptions::default())
        };
        let comma = Decimals { mark: DecimalMark::Comma, open: Vec::new() };
        for text in ["a;b\n1,5;2\n", "a;b\n1,234;0,5\n", "0,125;1\n", "a\n1234,567\n", "a\n1,5e3\n"] {
            assert_eq!(mark(text), comma, "{text:?}");
        }
        let open = |open: &[usize]| Decimals { mark: DecimalMark::Point, open: open.to_vec() };
        for (text, columns) in [
            ("a;b\n1,234;2\n", &[0][..]),
            ("a;b\n1,5;2.5\n", &[0]),
            ("a;b\n1;1,234,567\n", &[1]),
            ("a;b\n1;2.5\n", &[]),
            ("a;b\nx,y;2\n", &[]),
        ] {
            assert_eq!(mark(text), open(columns), "{text:?}");
        }
    }
}

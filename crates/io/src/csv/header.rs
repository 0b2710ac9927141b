//! Whether the first line of a text names the columns, told by its cells and by those below.

use std::borrow::Cow;

use super::cell::{Cell, CellRules};
use super::fields;
use crate::header::{HeaderGuess, HeaderSign};

/// Signs that make a line of numbers a header.
const ENOUGH: usize = 2;
/// Numbers from which their order tells something, and even spaces between them.
const ORDERED: usize = 3;
const EVEN: usize = 4;
/// Rows from which it tells something that they are all otherwise.
const FEW_ROWS: usize = 3;
/// Words for a missing value that are read as text, so that they are told; no column is called so.
const MARKS: [&[u8]; 6] = [b"?", b"-", b".", b"none", b"nil", b"missing"];

/// What was decided about the first line.
pub(crate) struct Decision {
    pub(crate) header: bool,
    /// What is to be said, where it is not obvious.
    pub(crate) guess: Option<HeaderGuess>,
}

impl Decision {
    /// Nothing to be said.
    pub(crate) fn obvious(header: bool) -> Self {
        Self { header, guess: None }
    }

    fn said(header: bool, signs: Vec<HeaderSign>) -> Self {
        Self { header, guess: Some(HeaderGuess { header, signs }) }
    }
}

/// The records below the first line, in order.
pub(crate) type Records<'a> = [Vec<Cow<'a, [u8]>>];

/// Decides by what stands in the first line, `quoted` or not, and below it.
///
/// A name above numbers is a header. A missing value among numbers is a row. Numbers above numbers are a row,
/// unless at least two signs say that they are of another kind than those below: wavelengths or years above
/// measurements.
pub(crate) fn decide(
    first: &[Cow<'_, [u8]>],
    quoted: &[bool],
    below: &Records<'_>,
    rules: &CellRules,
) -> Decision {
    let columns: Vec<Column> = (0..first.len()).map(|j| Column::of(j, first, quoted, below, rules)).collect();
    let has = |cell: First| columns.iter().any(|c| c.first == cell);
    let text_above =
        |numbers: bool| columns.iter().any(|c| c.first == First::Text && c.has_numbers() == numbers);
    let numbers: Vec<&Column> = columns.iter().filter(|c| c.is_number() && c.is_numeric()).collect();
    if text_above(true) && !numbers.is_empty() {
        return Decision::said(true, vec![HeaderSign::BesideName]);
    }
    if text_above(true) || (below.is_empty() && has(First::Text)) {
        return Decision::obvious(true);
    }
    if numbers.is_empty() {
        return match (has(First::Text), columns.iter().any(Column::is_number)) {
            (_, true) => Decision::said(true, vec![HeaderSign::AboveText]),
            (true, false) => Decision::obvious(true),
            (false, false) => Decision::said(false, Vec::new()),
        };
    }
    let signs = signs(&numbers, below, rules);
    let names = distinct(first) && !has(First::Missing) && !columns.iter().any(|c| c.recurs);
    let header = names && (signs.len() >= ENOUGH || signs.contains(&HeaderSign::Quoted));
    match header || text_above(false) || (names && !signs.is_empty()) {
        true => Decision::said(header, signs),
        false => Decision::obvious(false),
    }
}

/// What a cell of the first line is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum First {
    Number(f64),
    Text,
    Missing,
    /// An empty first cell: the name that an index does not have.
    Corner,
}

/// A column with its cell in the first line.
struct Column {
    index: usize,
    first: First,
    /// Whether that cell is a whole number, and whether it is in quotes.
    whole: bool,
    quoted: bool,
    /// Whether its text stands below again, as a name does not.
    recurs: bool,
    /// Below the first line.
    numbers: usize,
    wholes: usize,
    texts: usize,
    range: (f64, f64),
}

impl Column {
    fn of(
        index: usize,
        first: &[Cow<'_, [u8]>],
        quoted: &[bool],
        below: &Records<'_>,
        rules: &CellRules,
    ) -> Self {
        let name = &first[index];
        let mut column = Self {
            index,
            first: First::Missing,
            whole: is_whole(name),
            quoted: quoted.get(index) == Some(&true),
            recurs: false,
            numbers: 0,
            wholes: 0,
            texts: 0,
            range: (f64::INFINITY, f64::NEG_INFINITY),
        };
        below.iter().filter_map(|record| record.get(index)).for_each(|cell| column.add(cell, rules));
        let is_mark = || MARKS.iter().any(|mark| name.trim_ascii().eq_ignore_ascii_case(mark));
        column.first = match rules.read(name) {
            Cell::Number(value) => First::Number(value),
            Cell::Text if column.is_numeric() && is_mark() => First::Missing,
            Cell::Text => First::Text,
            Cell::Missing if index == 0 && name.trim_ascii().is_empty() => First::Corner,
            Cell::Missing => First::Missing,
        };
        let same = |record: &Vec<Cow<'_, [u8]>>| record.get(index) == Some(name);
        column.recurs = column.first == First::Text && below.iter().any(same);
        column
    }

    fn add(&mut self, text: &[u8], rules: &CellRules) {
        match rules.read(text) {
            Cell::Missing => {}
            Cell::Text => self.texts += 1,
            Cell::Number(value) => {
                self.numbers += 1;
                self.wholes += usize::from(is_whole(text));
                self.range = (self.range.0.min(value), self.range.1.max(value));
            }
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.first, First::Number(_))
    }

    /// Whether most of what is below is numbers.
    fn has_numbers(&self) -> bool {
        self.texts < self.numbers
    }

    /// The same rule as for the kind of a column: one without any value is numeric too.
    fn is_numeric(&self) -> bool {
        self.has_numbers() || self.texts == 0
    }

    fn value(&self) -> f64 {
        if let First::Number(value) = self.first { value } else { f64::NAN }
    }

    /// Whether the first number is further from the range below than that is wide.
    fn is_far(&self) -> bool {
        let (low, high) = self.range;
        let outside = (low - self.value()).max(self.value() - high);
        self.numbers >= FEW_ROWS && outside > high - low
    }
}

/// What speaks for the numbers of the first line being names.
fn signs(columns: &[&Column], below: &Records<'_>, rules: &CellRules) -> Vec<HeaderSign> {
    let half = |count: usize| 2 * count > columns.len();
    let decimals = columns.iter().filter(|c| 2 * c.wholes < c.numbers).count();
    let far = columns.iter().filter(|c| c.is_far()).count();
    let values: Vec<f64> = columns.iter().map(|c| c.value()).collect();
    let rare = |holds: fn(&[f64]) -> bool, rows| {
        below.len() >= rows && holds(&values) && is_rare(columns, below, rules, holds)
    };
    let quoted = columns.iter().all(|c| c.quoted) && !below.is_empty();
    [
        (HeaderSign::Quoted, quoted),
        (HeaderSign::Whole, columns.iter().all(|c| c.whole) && half(decimals)),
        (HeaderSign::Ordered, values.len() >= ORDERED && rare(is_ordered, 1)),
        (HeaderSign::Even, values.len() >= EVEN && rare(is_even, FEW_ROWS)),
        (HeaderSign::Far, 10 * far >= 9 * columns.len()),
    ]
    .into_iter()
    .filter_map(|(sign, holds)| holds.then_some(sign))
    .collect()
}

/// Whether at most a tenth of the rows below, missing values aside, are so too.
fn is_rare(columns: &[&Column], below: &Records<'_>, rules: &CellRules, holds: fn(&[f64]) -> bool) -> bool {
    let number = |field: &Cow<'_, [u8]>| match rules.read(field) {
        Cell::Number(value) => Some(value),
        _ => None,
    };
    let row = |record: &Vec<Cow<'_, [u8]>>| -> Option<Vec<f64>> {
        columns.iter().map(|c| record.get(c.index).and_then(number)).collect()
    };
    let rows: Vec<Vec<f64>> = below.iter().filter_map(row).collect();
    10 * rows.iter().filter(|row| holds(row)).count() <= rows.len()
}

fn is_ordered(values: &[f64]) -> bool {
    values.is_sorted_by(|a, b| a < b) || values.is_sorted_by(|a, b| a > b)
}

fn is_even(values: &[f64]) -> bool {
    let step = values[1] - values[0];
    step != 0.0 && values.windows(2).all(|w| ((w[1] - w[0]) - step).abs() <= 1e-6 * step.abs())
}

/// Digits alone, with a sign or without.
fn is_whole(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn distinct(cells: &[Cow<'_, [u8]>]) -> bool {
    let mut sorted: Vec<&[u8]> = cells.iter().map(|cell| cell.trim_ascii()).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|w| w[0] != w[1])
}

/// Whether each cell of the first line is in quotes, if the numbers of the line below are not.
pub(super) fn quoted_above(text: &[u8], first: usize, second: usize, delimiter: u8) -> Vec<bool> {
    let below = fields::quoted(text, second, delimiter);
    let above = fields::quoted(text, first, delimiter).into_iter();
    above.enumerate().map(|(j, quoted)| quoted && below.get(j) == Some(&false)).collect()
}

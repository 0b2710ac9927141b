//! What the cells of the columns are: numbers, text, words for a missing value, numbers of rows.

use std::collections::HashSet;

use super::cell::{self, Cell};
use super::head::Head;
use super::recognise::Decimals;
use super::sample::Dialect;
use crate::recognised::Recognised;
use crate::schema::Kind;

/// Rows that decide whether a column is numeric.
const SAMPLE_ROWS: usize = 1000;

/// What the cells of a column are, so far.
#[derive(Default, Clone)]
pub(super) struct CellCounts {
    pub(super) numbers: usize,
    pub(super) texts: usize,
    /// Missing by words that somebody gave.
    given: usize,
    first_text: Option<String>,
    /// The text that stands in the cells, as long as it is the same in all.
    word: Word,
    code: Code,
    numbering: Option<Numbering>,
}

impl CellCounts {
    fn add(&mut self, row: usize, field: &[u8], dialect: &Dialect) {
        match dialect.rules.read(field) {
            Cell::Number(value) => {
                self.numbers += 1;
                self.code.add(value);
            }
            Cell::Missing => {
                self.given += usize::from(dialect.rules.is_given(field));
            }
            Cell::Text => {
                self.texts += 1;
                self.word.add(|| cell::show_text(&dialect.encoding.shown(field)));
                let shown = || cell::show_text(&dialect.encoding.shown(field));
                self.first_text.get_or_insert_with(|| format!("row {row} says '{}'", shown()));
            }
        }
        if let Some(numbering) = &mut self.numbering {
            numbering.add(field);
        }
    }

    /// Whether words that somebody gave leave nothing of it.
    pub(super) fn is_emptied(&self) -> bool {
        self.given > 0 && self.numbers + self.texts == 0
    }

    /// The only text among numbers, more than once, or a code that lies far from the other numbers.
    fn suspicious_word(&self) -> Option<String> {
        match &self.word {
            Word::One(word) if self.numbers > 0 && self.texts > 1 => Some(word.clone()),
            Word::None => self.code.far().map(|code| code.to_string()),
            _ => None,
        }
    }

    fn is_text(&self) -> bool {
        self.texts > 0 && self.texts >= self.numbers
    }

    /// Whether they number the rows below a header that has no name for them, as indices of data frames do.
    pub(super) fn is_numbering(&self, name: &[u8]) -> bool {
        name.trim_ascii().is_empty() && self.numbering.as_ref().is_some_and(Numbering::holds)
    }

    /// Text among more numbers is a mistake in a numeric column: it will be told when the cell is read.
    pub(super) fn kind(self) -> Kind {
        match self.first_text {
            Some(text) if self.texts >= self.numbers => Kind::Other(text),
            _ => Kind::Double,
        }
    }
}

/// A text that may be a word for a missing value.
#[derive(Default, Clone)]
enum Word {
    #[default]
    None,
    One(String),
    Several,
}

impl Word {
    fn add(&mut self, text: impl FnOnce() -> String) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(text()),
            Self::One(word) if word == text() => Self::One(word),
            _ => Self::Several,
        }
    }
}

/// A number that may be a code for a missing value, and the range of the others.
#[derive(Clone)]
struct Code {
    found: Option<f64>,
    others: (f64, f64),
}

/// Numbers by which missing values are often coded.
const CODES: [f64; 4] = [-99.0, -999.0, -9999.0, -99999.0];

impl Default for Code {
    fn default() -> Self {
        Self { found: None, others: (f64::INFINITY, f64::NEG_INFINITY) }
    }
}

impl Code {
    fn add(&mut self, value: f64) {
        match self.found.is_none_or(|found| found == value) && CODES.contains(&value) {
            true => self.found = Some(value),
            false => self.others = (self.others.0.min(value), self.others.1.max(value)),
        }
    }

    /// The code, if it lies further from the other numbers than they do from each other.
    fn far(&self) -> Option<f64> {
        let (low, high) = self.others;
        self.found.filter(|code| high > low && low - code > high - low)
    }
}

/// What is to be said of columns: commas that nobody understands, words for a missing value that leave nothing,
/// and words and numbers that look like missing values.
pub(super) fn remarks(
    names: &[String],
    counts: &[CellCounts],
    decimals: &Decimals,
) -> impl Iterator<Item = Recognised> {
    let columns = |holds: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..names.len()).filter(|&j| holds(j)).map(|j| names[j].clone()).collect()
    };
    let open = |j: usize| decimals.open.binary_search(&j).is_ok() && counts[j].is_text();
    let commas = Some(columns(&open)).filter(|columns| !columns.is_empty());
    let emptied = Some(columns(&|j| counts[j].is_emptied())).filter(|columns| !columns.is_empty());
    commas
        .map(Recognised::Commas)
        .into_iter()
        .chain(emptied.map(Recognised::Emptied))
        .chain(words(names, counts))
}

/// Words and numbers in columns that look like missing values.
fn words(names: &[String], counts: &[CellCounts]) -> Vec<Recognised> {
    let mut words: Vec<(String, Vec<String>)> = Vec::new();
    for (name, counts) in names.iter().zip(counts) {
        let Some(word) = counts.suspicious_word() else { continue };
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, columns)) => columns.push(name.clone()),
            None => words.push((word, vec![name.clone()])),
        }
    }
    words.into_iter().map(|(word, columns)| Recognised::Word { word, columns }).collect()
}

/// Cells that may number the rows: whole numbers, no two the same.
#[derive(Default, Clone)]
pub(crate) struct Numbering {
    numbers: HashSet<u64>,
    is_broken: bool,
}

impl Numbering {
    /// Rows from which it tells something that they are numbered.
    const FEW_ROWS: usize = 3;

    pub(crate) fn add(&mut self, cell: &[u8]) {
        let number = std::str::from_utf8(cell.trim_ascii()).ok().and_then(|text| text.parse().ok());
        self.is_broken |= !number.is_some_and(|number| self.numbers.insert(number));
    }

    pub(crate) fn holds(&self) -> bool {
        !self.is_broken && self.numbers.len() >= Self::FEW_ROWS
    }
}

/// A column is numeric unless half of the cells of the sample, missing values aside, are text.
pub(super) fn count(head: &Head, start: usize, n_columns: usize, dialect: &Dialect) -> Vec<CellCounts> {
    let mut counts = vec![CellCounts::default(); n_columns];
    counts[0].numbering = Some(Numbering::default());
    for (i, record) in head.records(start, dialect.delimiter).take(SAMPLE_ROWS).enumerate() {
        counts.iter_mut().zip(&record).for_each(|(count, field)| count.add(i + 1, field, dialect));
    }
    counts
}

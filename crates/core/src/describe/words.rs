//! What descriptions for people are made of: words with advice, lines and tables.

use std::ops::Range;

/// A text, and what to do about it. How to do it is said by the surface that shows it, in flags or arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The text.
    pub text: String,
    /// What can be done about it.
    pub advice: Option<Advice>,
}

/// What to do about something that a description tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Allow more iterations, or be content with less.
    MoreIterations,
    /// Be content with less: more iterations do not help.
    LargerTolerance,
    /// Ask for this many factors.
    Factors(usize),
    /// Look where all loadings are, not only those that a table lists.
    AllLoadings,
}

impl Words {
    /// A text that comes with advice.
    pub(super) fn advised(text: String, advice: Advice) -> Self {
        Self { text, advice: Some(advice) }
    }

    /// The text, followed by the advice in the words of the surface.
    pub fn with(&self, advice: &dyn Fn(Advice) -> String) -> String {
        match self.advice {
            Some(given) => format!("{}; {}", self.text, advice(given)),
            None => self.text.clone(),
        }
    }
}

impl<T: Into<String>> From<T> for Words {
    fn from(text: T) -> Self {
        Self { text: text.into(), advice: None }
    }
}

/// A label and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The label.
    pub label: String,
    /// What it stands for.
    pub words: Words,
}

impl Line {
    /// A line.
    pub fn new(label: impl Into<String>, words: impl Into<Words>) -> Self {
        Self { label: label.into(), words: words.into() }
    }
}

/// Rows of cells under a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// One for each column; empty when the columns have no names.
    pub header: Vec<String>,
    /// Cells. A row may be shorter than the header.
    pub rows: Vec<Vec<String>>,
    /// Columns that are aligned to the right.
    pub right: Range<usize>,
    /// Whether long cells may be broken into lines.
    pub wraps: bool,
    /// What stands below.
    pub note: Option<Words>,
}

impl Table {
    /// Numbers, or names of components, and a text in the last column.
    pub(super) fn with_text_last(header: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let right = 0..header.len() - 1;
        Self { header, rows, right, wraps: true, note: None }
    }

    /// A name in the first column and numbers in the others; wrapped columns of numbers cannot be read.
    pub(super) fn of_numbers(header: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let right = 1..header.len();
        Self { header, rows, right, wraps: false, note: None }
    }

    /// Labels and values without a header.
    pub(super) fn of_pairs(pairs: Vec<(&'static str, String)>) -> Self {
        let rows = pairs.into_iter().map(|(label, value)| vec![label.to_owned(), value]).collect();
        Self { header: Vec::new(), rows, right: 0..0, wraps: true, note: None }
    }

    /// A sentence in place of a table.
    pub(super) fn of_note(note: &str) -> Self {
        Self { note: Some(note.into()), ..Self::of_pairs(Vec::new()) }
    }
}

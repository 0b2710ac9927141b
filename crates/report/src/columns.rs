//! Columns that are carried along: numbers, or labels that many rows share.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::json;

use crate::block::Arrays;

/// A part of a carried column: one cell for each row of a piece.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers; NaN for none.
    Numbers(Vec<f64>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of the rows.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        match self {
            Self::Numbers(cells) => Self::Numbers(cells[rows].to_vec()),
            Self::Texts(cells) => Self::Texts(cells[rows].to_vec()),
        }
    }

    pub(crate) fn cell(&self, row: usize) -> Cell {
        match self {
            Self::Numbers(cells) => Cell::Number(cells[row]),
            Self::Texts(cells) => cells[row].clone().map_or(Cell::Number(f64::NAN), Cell::Text),
        }
    }
}

/// A carried cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Number(f64),
    Text(String),
}

/// What the page is told of a column; its cells are an array.
#[derive(Debug, Serialize)]
pub(crate) struct Carried {
    name: String,
    /// What the codes of the array stand for; nothing for numbers.
    labels: Option<Vec<String>>,
    array: String,
}

impl Carried {
    /// A column of the rows that a page shows: numbers where all texts are some.
    pub(crate) fn new(name: &str, index: usize, cells: &[&Cell], arrays: &mut Arrays) -> Self {
        let array = format!("carried{index}");
        let (name, numbers) = (name.to_owned(), as_numbers(cells));
        if let Some(numbers) = numbers {
            arrays.doubles(&array, [numbers.len(), 1], &numbers);
            return Self { name, labels: None, array };
        }
        let (codes, labels) = as_labels(cells);
        arrays.words(&array, [codes.len(), 1], &codes);
        Self { name, labels: Some(labels), array }
    }
}

/// The numbers that all cells are, if they are; what is empty is NaN.
fn as_numbers(cells: &[&Cell]) -> Option<Vec<f64>> {
    let number = |cell: &&Cell| match cell {
        Cell::Number(x) => Some(*x),
        Cell::Text(text) if text.trim().is_empty() => Some(f64::NAN),
        Cell::Text(text) => text.trim().parse::<f64>().ok().filter(|x| x.is_finite()),
    };
    cells.iter().map(number).collect()
}

/// A code for each cell and what the codes stand for, in the order in which they appear.
fn as_labels(cells: &[&Cell]) -> (Vec<u32>, Vec<String>) {
    let (mut known, mut labels) = (HashMap::new(), Vec::new());
    let code = |cell: &&Cell| {
        let text = match cell {
            Cell::Text(text) => text.clone(),
            Cell::Number(x) if x.is_nan() => String::new(),
            Cell::Number(x) => json!(x).to_string(),
        };
        *known.entry(text.clone()).or_insert_with(|| {
            labels.push(text);
            u32::try_from(labels.len() - 1).unwrap_or(u32::MAX)
        })
    };
    (cells.iter().map(code).collect(), labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(of: &[&str]) -> Vec<Cell> {
        of.iter().map(|text| Cell::Text((*text).to_owned())).collect()
    }

    #[test]
    fn texts_of_numbers_are_numbers() {
        let cells = texts(&["1", " 2.5 ", ""]);
        let numbers = as_numbers(&cells.iter().collect::<Vec<_>>());
        assert!(numbers.is_some_and(|found| found[1] == 2.5 && found[2].is_nan()));
        let names = texts(&["1", "one"]);
        assert_eq!(as_numbers(&names.iter().collect::<Vec<_>>()), None);
    }

    #[test]
    fn labels_are_coded_in_their_order() {
        let cells = texts(&["b", "a", "b"]);
        let (codes, labels) = as_labels(&cells.iter().collect::<Vec<_>>());
        assert_eq!(
            (codes.as_slice(), labels.as_slice()),
            (&[0, 1, 0][..], &["b".to_owned(), "a".to_owned()][..])
        );
    }
}

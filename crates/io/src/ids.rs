//! Ids of rows and items: text or whole numbers, told apart, checked, and put in order.

use std::collections::HashMap;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::csv::cell::{self, Cell};
use crate::error::{Error, Place, Result};
use crate::format::Format;
use crate::schema::Schema;
use crate::select::{self, Selection};

/// Doubles hold every whole number up to here.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// What a column of ids is known to hold before its cells are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdKind {
    Numbers,
    Text,
    /// Text files do not say: numbers if all cells are.
    Undeclared,
}

/// A column of ids among the carried columns of a file.
#[derive(Debug, Clone)]
pub(crate) struct IdColumn {
    path: PathBuf,
    pub(crate) name: String,
    /// Position among the carried columns.
    carried: usize,
    kind: IdKind,
}

impl IdColumn {
    /// The column that a selection means, which is to be carried.
    pub(crate) fn find(schema: &Schema, selection: &Selection) -> Result<Self> {
        let name = column_name(schema, selection)?;
        let missing = || Error::ColumnTwice { path: schema.path.clone(), column: name.clone() };
        let carried = schema.carried.iter().position(|c| c.name == name).ok_or_else(missing)?;
        let data_type = match &schema.carried[carried].data_type {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        let kind = match schema.format {
            Format::Delimited { .. } | Format::Spreadsheet => IdKind::Undeclared,
            _ if data_type.is_numeric() => IdKind::Numbers,
            _ => IdKind::Text,
        };
        Ok(Self { path: schema.path.clone(), name, carried, kind })
    }

    /// The ids of a batch as text.
    pub(crate) fn texts(&self, carried: &[ArrayRef]) -> Result<StringArray> {
        let unsupported = |error| Error::Unsupported {
            path: self.path.clone(),
            what: format!("the column '{}' cannot be used as ids ({error}); make it text", self.name),
        };
        Ok(cast(&carried[self.carried], &DataType::Utf8).map_err(unsupported)?.as_string().clone())
    }

    /// The id in this row of a batch.
    pub(crate) fn id<'a>(&self, texts: &'a StringArray, i: usize, first_row: usize) -> Result<&'a str> {
        let id = if texts.is_valid(i) { texts.value(i).trim() } else { "" };
        if id.is_empty() { Err(self.empty(first_row + i)) } else { Ok(id) }
    }

    pub(crate) fn place(&self, row: usize) -> Place {
        Place { path: self.path.clone(), row: row + 1, line: None }
    }

    fn empty(&self, row: usize) -> Error {
        Error::EmptyId { place: self.place(row), column: self.name.clone() }
    }

    fn bad(&self, row: usize, id: &str) -> Error {
        Error::BadId { place: self.place(row), column: self.name.clone(), text: cell::show(id.as_bytes()) }
    }

    pub(crate) fn unknown(&self, row: usize, id: &str, known: &[String]) -> Error {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let (place, column) = (self.place(row), self.name.clone());
        Error::UnknownId {
            place,
            column,
            text: cell::show(id.as_bytes()),
            nearest: select::nearest(&names, id),
        }
    }
}

/// The one column that a selection means.
pub(crate) fn column_name(schema: &Schema, selection: &Selection) -> Result<String> {
    let names: Vec<&str> = schema.columns.iter().map(String::as_str).collect();
    match selection.resolve(&schema.path, &names)?[..] {
        [index] => Ok(names[index].to_owned()),
        _ => Err(Error::NotThree { text: selection.to_string() }),
    }
}

/// Which of some names an id is: as written, or the same whole number written otherwise.
pub(crate) struct NameIndex<'a> {
    index: HashMap<&'a str, usize>,
}

impl<'a> NameIndex<'a> {
    pub(crate) fn new(names: &'a [String]) -> Self {
        Self { index: names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect() }
    }

    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied().or_else(|| self.index.get(whole(id)?.as_str()).copied())
    }
}

/// The ids of a column in the order in which they first appear.
#[derive(Default)]
pub(crate) struct DistinctIds {
    index: HashMap<String, usize>,
    names: Vec<String>,
    first_rows: Vec<usize>,
}

/// The names of all rows or items, and the position of each distinct id among them.
pub(crate) struct OrderedIds {
    pub(crate) names: Vec<String>,
    pub(crate) positions: Vec<usize>,
}

impl DistinctIds {
    /// The position of an id that stands in this row.
    pub(crate) fn position(&mut self, id: &str, row: usize) -> usize {
        if let Some(&position) = self.index.get(id) {
            return position;
        }
        let position = self.names.len();
        self.index.insert(id.to_owned(), position);
        self.names.push(id.to_owned());
        self.first_rows.push(row);
        position
    }

    /// Finds all ids among names that are given.
    pub(crate) fn positions_in(&self, column: &IdColumn, names: &[String]) -> Result<OrderedIds> {
        let index = NameIndex::new(names);
        let find =
            |(id, row): (&String, &usize)| index.find(id).ok_or_else(|| column.unknown(*row, id, names));
        let positions = self.names.iter().zip(&self.first_rows).map(find).collect::<Result<_>>()?;
        Ok(OrderedIds { names: names.to_vec(), positions })
    }

    /// Whole numbers ascend; anything else keeps the order in which it first appears.
    pub(crate) fn ordered(self, column: &IdColumn) -> Result<OrderedIds> {
        let is_text = |id: &String| cell::read(id.as_bytes()) == Cell::Text;
        let numbers = match column.kind {
            IdKind::Numbers => true,
            IdKind::Text => false,
            IdKind::Undeclared => !self.names.iter().any(is_text),
        };
        if !numbers {
            let positions = (0..self.names.len()).collect();
            return Ok(OrderedIds { names: self.names, positions });
        }
        let written: Vec<String> = self
            .names
            .iter()
            .zip(&self.first_rows)
            .map(|(id, row)| number(column, id, *row))
            .collect::<Result<_>>()?;
        let mut names = written.clone();
        names.sort_by(|a, b| order(a).cmp(&order(b)));
        names.dedup();
        let index = NameIndex::new(&names);
        let positions = written.iter().filter_map(|id| index.find(id)).collect();
        Ok(OrderedIds { positions, names })
    }
}

/// An id of a column of numbers.
fn number(column: &IdColumn, id: &str, row: usize) -> Result<String> {
    match whole(id) {
        Some(id) => Ok(id),
        None if cell::read(id.as_bytes()) == Cell::Missing => Err(column.empty(row)),
        None => Err(column.bad(row, id)),
    }
}

/// Digits as they are written (007 is not 7); 17.0 and 1.7e1 are 17.
fn whole(id: &str) -> Option<String> {
    if id.bytes().all(|b| b.is_ascii_digit()) {
        return Some(id.to_owned());
    }
    match cell::read(id.as_bytes()) {
        Cell::Number(value) if value.fract() == 0.0 && (0.0..=LARGEST).contains(&value) => {
            Some(format!("{:.0}", value.abs()))
        }
        _ => None,
    }
}

/// By value, however many digits there are; equal values by length.
fn order(digits: &str) -> (usize, &str, usize) {
    let value = digits.trim_start_matches('0');
    (value.len(), value, digits.len())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn ordered(kind: IdKind, ids: &[&str]) -> Result<OrderedIds> {
        let column = IdColumn { path: "t.csv".into(), name: "user".into(), carried: 0, kind };
        let mut distinct = DistinctIds::default();
        for (row, id) in ids.iter().enumerate() {
            distinct.position(id, row);
        }
        distinct.ordered(&column)
    }

    #[test]
    fn numbers_ascend_and_text_stays_as_it_came() {
        let ids = ordered(IdKind::Undeclared, &["10", "9", "123456789012345678901", "0", "9.0"]).unwrap();
        assert_eq!(ids.names, ["0", "9", "10", "123456789012345678901"]);
        assert_eq!(ids.positions, [2, 1, 3, 0, 1]);
        let ids = ordered(IdKind::Undeclared, &["10", "9", "b", "-1", "NA"]).unwrap();
        assert_eq!(ids.names, ["10", "9", "b", "-1", "NA"]);
        assert_eq!(ordered(IdKind::Text, &["3", "-1"]).unwrap().names, ["3", "-1"]);
        assert_eq!(ordered(IdKind::Numbers, &["7", "007", "2.0"]).unwrap().names, ["2", "7", "007"]);
    }

    #[test]
    fn numbers_that_are_no_ids_are_told() {
        for id in ["-1", "1.5", "inf", "1e300", "-0.5"] {
            let error = ordered(IdKind::Undeclared, &["1", "2", id]).err().unwrap();
            assert!(matches!(&error, Error::BadId { place, .. } if place.row == 3), "{id}: {error}");
        }
        assert!(matches!(ordered(IdKind::Undeclared, &["1", "NA"]), Err(Error::EmptyId { .. })));
    }
}

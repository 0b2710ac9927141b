//! What the contents of a file tell beyond its ending, in facts and in words.

use std::collections::HashSet;
use std::fmt;

use crate::dialect::{DecimalMark, Delimiter, TextEncoding};

/// Something that was told by the contents of a file and could be meant otherwise.
///
/// As text it is a sentence without an end, to which a surface adds what to do if it is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recognised {
    /// The cells are separated by something else than the ending promises.
    Delimiter(Delimiter),
    /// Decimals stand behind a comma.
    Decimal(DecimalMark),
    /// The text is no UTF-8, and is taken as this.
    Encoding(TextEncoding),
    /// Columns of text that would be numbers if their commas were decimal marks, or were not there.
    Commas(Vec<String>),
    /// Columns of which the words for a missing value leave nothing, as far as was looked.
    Emptied(Vec<String>),
    /// A word or a number that looks like one for a missing value, as it is the only text among numbers, or far
    /// from them.
    Word {
        /// What stands in the cells.
        word: String,
        /// The columns.
        columns: Vec<String>,
    },
    /// The first sheet of several was taken.
    Sheet {
        /// Its name.
        name: String,
        /// Those of the others.
        others: Vec<String>,
    },
    /// The header has no name for the first column, which holds the names of the rows.
    RowNames(String),
}

impl Recognised {
    /// The same without columns that are not read, if there is anything left to say.
    pub(crate) fn without(mut self, left_out: &HashSet<&str>) -> Option<Self> {
        match &mut self {
            Self::Commas(columns) | Self::Emptied(columns) | Self::Word { columns, .. } => {
                columns.retain(|name| !left_out.contains(name.as_str()));
                (!columns.is_empty()).then_some(self)
            }
            _ => Some(self),
        }
    }
}

impl fmt::Display for Recognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delimiter(delimiter) => write!(f, "its cells are separated by {delimiter}"),
            Self::Decimal(mark) => write!(f, "its decimal mark is {mark}"),
            Self::Encoding(encoding) => write!(f, "it is no UTF-8 and is taken as {encoding}"),
            Self::Commas(columns) => write!(
                f,
                "the commas in {} may be decimal marks or separate thousands, so this is text",
                quoted(columns)
            ),
            Self::Emptied(columns) => {
                write!(f, "the words for a missing value match every cell of {}", quoted(columns))
            }
            Self::Word { word, columns } => {
                write!(f, "'{word}' stands among the numbers of {} and is read as it is", quoted(columns))
            }
            Self::Sheet { name, others } => write!(f, "the sheet '{name}' is read, not {}", quoted(others)),
            Self::RowNames(_) => {
                f.write_str("the first column has no name and is taken as names of the rows, so not modelled")
            }
        }
    }
}

fn quoted(columns: &[String]) -> String {
    columns.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

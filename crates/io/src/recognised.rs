//! What the contents of a file tell beyond its ending, in facts and in words.

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
    /// The header has no name for the first column, which holds the names of the rows.
    RowNames(String),
}

impl fmt::Display for Recognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delimiter(delimiter) => write!(f, "its cells are separated by {delimiter}"),
            Self::Decimal(mark) => write!(f, "its decimal mark is {mark}"),
            Self::Encoding(encoding) => write!(f, "it is no UTF-8 and is taken as {encoding}"),
            Self::Commas(columns) => {
                let columns: Vec<String> = columns.iter().map(|name| format!("'{name}'")).collect();
                let columns = columns.join(", ");
                write!(
                    f,
                    "the commas in {columns} may be decimal marks or separate thousands, so this is text"
                )
            }
            Self::RowNames(_) => {
                f.write_str("the first column has no name and is taken as names of the rows, so not modelled")
            }
        }
    }
}

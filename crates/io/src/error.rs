//! The one error type of this crate: facts in fields, and a sentence that says what, where and what to do.

use std::io;
use std::path::{Path, PathBuf};

use covary::ErrorClass;

use crate::dialect::Delimiter;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where a cell of a file stands, as people count: rows and lines from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// Data row, counted from 1 (the header is not a row).
    pub row: usize,
    /// Line of the file in which the row starts, counted from 1, where that is known.
    pub line: Option<usize>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, row {}", name(&self.path), self.row)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

/// A file as messages call it.
pub(crate) fn name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".into(),
        _ => format!("'{}'", path.display()),
    }
}

/// A file that is written as messages call it.
fn output_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard output".into() } else { name(path) }
}

/// A question about the nearest name in brackets, if there is one.
fn hint(nearest: Option<&String>, question: &str) -> String {
    nearest.map_or_else(String::new, |name| format!(" ({})", question.replace("{}", name)))
}

/// A size as messages tell it.
fn mebibytes(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// A number as messages tell it: very small and large ones by their exponent.
pub fn shown(value: f64) -> String {
    match value.abs() {
        size if size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size) => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// The trouble itself, without the number that the operating system adds.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::FileTooLarge => "the file would be larger than the system allows".into(),
        _ => error.to_string(),
    }
}

/// Everything that can go wrong between files and rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened.
    #[error("cannot open {}: {}", name(path), reason(source))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {}", name(path), reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {}", output_name(path), reason(source))]
    Write {
        /// The file, `-` for standard output.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Columns that are only carried along are too long for their type.
    #[error("the columns that are carried along cannot be put together: {0}")]
    Carried(String),
    /// A directory where a file is expected.
    #[error("{} is a directory; give the name of a file", name(path))]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// An ending that tells no format.
    #[error(
        "the ending of {} tells no format; known are .csv, .tsv (both also with .gz or .zst), .parquet, \
        .arrow, .feather, .npy, .xlsx and .ods",
        name(path)
    )]
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// Bytes that are not what the ending promises, or only a part of it.
    #[error("{} is not a whole {format} file: {what}; make or copy it again", name(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format that it should have.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The file changed under the reader.
    #[error("{} changed while it was read; run again when nothing writes to it", name(path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Something in the file that covary does not read.
    #[error("{}: {what}", name(path))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What, and what to do instead.
        what: String,
    },
    /// Nothing in the file.
    #[error("{} is empty; a header line and rows are needed", name(path))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Columns but no rows.
    #[error("{} has no rows", name(path))]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// A text format with bytes that are not text.
    #[error("{} is not text: {what}", name(path))]
    NotText {
        /// The file.
        path: PathBuf,
        /// How it was noticed, and what to do.
        what: String,
    },
    /// A cell whose bytes are not UTF-8.
    #[error("{place}, column '{column}': the text is not UTF-8")]
    NotUtf8 {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// A row with more or fewer fields than there are columns.
    #[error("{place}: {found} fields where {expected} are expected")]
    Ragged {
        /// Where.
        place: Place,
        /// Number of columns.
        expected: usize,
        /// Fields in this row.
        found: usize,
    },
    /// A quoted field without an end.
    #[error("{}: a quoted field that opens in or after line {line} is never closed", name(path))]
    Unclosed {
        /// The file.
        path: PathBuf,
        /// Line in which the last row starts, counted from 1.
        line: usize,
    },
    /// A row of text that does not fit in memory.
    #[error(
        "{}: a row that starts in or after line {line} is longer than {}, which is all that the memory \
        limit leaves for one; close the quote if one is open there, or raise the limit",
        name(path), mebibytes(*most)
    )]
    LongRow {
        /// The file.
        path: PathBuf,
        /// Line in which it starts, or one before it, counted from 1.
        line: usize,
        /// Bytes that a row may have.
        most: usize,
    },
    /// More columns than fit in memory.
    #[error(
        "{} has {found} columns, and the memory limit leaves room for {most}; raise the limit, or turn the \
        table so that rows are columns",
        name(path)
    )]
    Wide {
        /// The file.
        path: PathBuf,
        /// Its columns.
        found: usize,
        /// Columns that fit.
        most: usize,
    },
    /// A part of a file that can only be read whole and does not fit in memory.
    #[error(
        "{}: {part} needs {} at once, more than the {} that the memory limit leaves for it; raise the \
        limit, or write the file in smaller parts",
        name(path), mebibytes(*needed), mebibytes(*most)
    )]
    LargePart {
        /// The file.
        path: PathBuf,
        /// Which part.
        part: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that there are for it.
        most: usize,
    },
    /// A pipe or a device where a format is read at many places.
    #[error(
        "{} is not a regular file, and {format} is read at many places of one; save it as a file first, or \
        send rows as CSV",
        name(path)
    )]
    NotRegular {
        /// The pipe or device.
        path: PathBuf,
        /// The format that its ending tells.
        format: &'static str,
    },
    /// A pipe or a device where a model or moments are expected.
    #[error("{} is a pipe or a device; models and moments are read from regular files", name(path))]
    NotAFile {
        /// The pipe or device.
        path: PathBuf,
    },
    /// Two columns of one name.
    #[error(
        "{} has two columns named '{column}' (positions {first} and {second}); rename one of them",
        name(path)
    )]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
        /// Position of the first, counted from 1.
        first: usize,
        /// Position of the second, counted from 1.
        second: usize,
    },
    /// Text in a column of numbers.
    #[error("{place}, column '{column}': '{text}' is not a number")]
    NotANumber {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What stands there.
        text: String,
    },
    /// An infinite number, or one too large for double precision.
    #[error(
        "{place}, column '{column}': '{text}' is infinite or too large; replace it by a number or, if it is \
        unknown, leave the cell empty"
    )]
    Infinite {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What stands there.
        text: String,
    },
    /// A weight that is negative, infinite or missing.
    #[error(
        "{}, row {row}, column '{column}': the weight is {}; weights must be finite and not negative",
        name(path), shown(*value)
    )]
    Weight {
        /// The file.
        path: PathBuf,
        /// Data row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// What stands there; NaN for a missing value.
        value: f64,
    },
    /// A column that was asked for but is not there.
    #[error(
        "{} has no column '{column}'{}; its columns are {known}",
        name(path), hint(nearest.as_ref(), "did you mean '{}'?")
    )]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        column: String,
        /// The name that is most like it.
        nearest: Option<String>,
        /// Some of the names.
        known: String,
    },
    /// Features of a model that the file does not have.
    #[error(
        "{} lacks {missing}, which the model needs{}; its columns are {known}",
        name(path), hint(nearest.as_ref(), "is '{}' meant?")
    )]
    MissingFeatures {
        /// The file.
        path: PathBuf,
        /// Some of their names.
        missing: String,
        /// A name in the file that is like one of them.
        nearest: Option<String>,
        /// Some of the names in the file.
        known: String,
    },
    /// A feature of a model whose column was asked for as something else.
    #[error(
        "{}: the model needs the column '{column}', which is dropped, carried along or used as weights; \
        leave it among the features",
        name(path)
    )]
    FeatureTaken {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// Columns or features of a model that have no names, and not as many of both.
    #[error(
        "{} has {found} columns of numbers where the model has {expected} features, and they cannot be \
        matched by name",
        name(path)
    )]
    FeatureCount {
        /// The file.
        path: PathBuf,
        /// The model's.
        expected: usize,
        /// The file's.
        found: usize,
    },
    /// A matrix of covariances that has not as many rows as columns.
    #[error(
        "{} is no matrix of covariances or correlations: it has {} and {columns} columns of numbers; as \
        many rows as columns are needed, with names of the features in the header and, if you like, in a \
        first column",
        name(path), if rows > columns { "more rows".into() } else { format!("{rows} rows") }
    )]
    NotSquare {
        /// The file.
        path: PathBuf,
        /// Rows that were read.
        rows: usize,
        /// Columns of numbers.
        columns: usize,
    },
    /// A row of a matrix that is called otherwise than its column.
    #[error(
        "{}, row {row}: the row is '{found}' where the header has '{expected}'; rows and columns of a \
        matrix must stand for the same features in the same order",
        name(path)
    )]
    RowName {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// What the row is called.
        found: String,
        /// What the column is called.
        expected: String,
    },
    /// A position outside the columns of the file.
    #[error(
        "{} has {columns} columns, so '{part}' does not select any that exist; positions count from 1",
        name(path)
    )]
    Position {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        part: String,
        /// Number of columns.
        columns: usize,
    },
    /// A selection that selects nothing.
    #[error("a selection of columns is empty; give names or positions such as a,b,c or 3-20")]
    EmptySelection,
    /// A column that was asked for as a feature or weight but holds no numbers.
    #[error("{}: column '{column}' is not numeric ({what}), so it cannot be used as {role}", name(path))]
    NotNumeric {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type, or a cell of it.
        what: String,
        /// What it was asked for.
        role: &'static str,
    },
    /// No column is left to model.
    #[error(
        "{} has no numeric column to model{}{}",
        name(path), if *selected { " after the selection" } else { "" }, hint(text.as_ref(), "{}")
    )]
    NoFeatures {
        /// The file.
        path: PathBuf,
        /// Whether columns were selected or dropped.
        selected: bool,
        /// What the first column is instead.
        text: Option<String>,
    },
    /// What cannot separate cells.
    #[error(
        "'{text}' cannot separate cells; give one mark that is no part of a number, such as ';', or tab or space"
    )]
    BadDelimiter {
        /// What was given.
        text: String,
    },
    /// What cannot mark decimals.
    #[error("'{text}' is no decimal mark; give '.' or ','")]
    BadDecimal {
        /// What was given.
        text: String,
    },
    /// A name of no encoding.
    #[error(
        "'{text}' is the name of no encoding; utf-8, utf-16, windows-1252 (latin-1) are some that are known"
    )]
    BadEncoding {
        /// What was given.
        text: String,
    },
    /// Text in an encoding that nobody told.
    #[error("{}: {what}; convert it to UTF-8, or say how it is encoded", name(path))]
    UnknownEncoding {
        /// The file.
        path: PathBuf,
        /// What is known of it.
        what: String,
    },
    /// Something said about a file that makes no sense for its format.
    #[error("{} is {format}, for which {what} has no meaning; leave it out", name(path))]
    NotForFormat {
        /// The file.
        path: PathBuf,
        /// The format that its ending tells.
        format: &'static str,
        /// What was said.
        what: &'static str,
    },
    /// A spreadsheet that only somebody with its password can read.
    #[error("{} is protected by a password; save a copy without one", name(path))]
    Password {
        /// The file.
        path: PathBuf,
    },
    /// A sheet that a workbook does not have.
    #[error("{} has no sheet '{sheet}'; its sheets are {known}", name(path))]
    UnknownSheet {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        sheet: String,
        /// The names of its sheets.
        known: String,
    },
    /// A format that is read but not written.
    #[error(
        "{} would be a spreadsheet, which is only read; write .csv, .parquet, .arrow or .npy",
        name(path)
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No word where those for a missing value are given.
    #[error("no word for a missing value is given; name one or more, such as ?,-999")]
    NoMissingWord,
    /// Words for a missing value that leave nothing.
    #[error(
        "{}: the words for a missing value match every cell; leave out those that are values",
        name(path)
    )]
    AllMissing {
        /// The file.
        path: PathBuf,
    },
    /// A delimiter that the file does not have, while another one cuts it into columns.
    #[error("{}: {given} does not occur in it; its cells seem to be separated by {found}", name(path))]
    AbsentDelimiter {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        given: Delimiter,
        /// What is there.
        found: Delimiter,
    },
    /// Two delimiters that both cut the file into columns.
    #[error("{}: its cells may be separated by {first} or by {second}", name(path))]
    OpenDelimiter {
        /// The file.
        path: PathBuf,
        /// What the ending promises.
        first: Delimiter,
        /// What makes more numbers of the cells.
        second: Delimiter,
    },
    /// Commas between cells and before decimals.
    #[error("{}: ',' cannot both separate its cells and mark their decimals", name(path))]
    SameMark {
        /// The file.
        path: PathBuf,
    },
    /// Something else than three columns where triples are described.
    #[error(
        "'{text}' does not name three columns; give who, what and how much, such as user,item,rating or 1,2,3"
    )]
    NotThree {
        /// What was given.
        text: String,
    },
    /// A column that was asked for in two roles.
    #[error("{}: the column '{column}' is asked for twice; give three different columns", name(path))]
    ColumnTwice {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// No id where one is needed.
    #[error("{place}, column '{column}': the id is empty; give it a name or a number, or leave the row out")]
    EmptyId {
        /// Where.
        place: Place,
        /// The column.
        column: String,
    },
    /// A number that is no id.
    #[error(
        "{place}, column '{column}': '{text}' is no id; ids are whole numbers from 0 on (up to 2^53 where \
        the file holds them as floats), or text"
    )]
    BadId {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What stands there.
        text: String,
    },
    /// An id that a model does not know.
    #[error(
        "{place}, column '{column}': the model has no feature '{text}'{}; leave such rows out, or fit a \
        model to data that have it",
        hint(nearest.as_ref(), "is '{}' meant?")
    )]
    UnknownId {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What stands there.
        text: String,
        /// A feature of the model that is like it.
        nearest: Option<String>,
    },
    /// Text where a triple should have a number.
    #[error(
        "{place}, column '{column}': '{text}' is not a number; correct it or, if it is unknown, leave it \
        empty"
    )]
    BadValue {
        /// Where.
        place: Place,
        /// The column.
        column: String,
        /// What stands there.
        text: String,
    },
    /// A cell that two triples give.
    #[error(
        "{}: rows {first} and {second} both say what '{row}' has for '{column}'; keep one of them, or their \
        mean",
        name(path)
    )]
    DuplicateTriple {
        /// The file.
        path: PathBuf,
        /// Data row of the first, counted from 1.
        first: usize,
        /// Data row of the second, counted from 1.
        second: usize,
        /// Whose cell.
        row: String,
        /// Which cell.
        column: String,
    },
    /// Text columns for a format that holds numbers only.
    #[error("{} can hold only numbers, not the column(s) {columns}", name(path))]
    OnlyNumbers {
        /// The file.
        path: PathBuf,
        /// The columns that are none.
        columns: String,
    },
    /// Rows that do not fit the columns announced to a writer, and other trouble of the core.
    #[error(transparent)]
    Core(#[from] covary::Error),
}

impl Error {
    /// The kind of trouble; surfaces map it to exit codes and exceptions.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Open { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Directory { .. }
            | Self::Damaged { .. }
            | Self::NotRegular { .. }
            | Self::NotAFile { .. }
            | Self::Changed { .. } => ErrorClass::File,
            Self::UnknownEnding { .. }
            | Self::UnknownColumn { .. }
            | Self::Position { .. }
            | Self::EmptySelection
            | Self::NotThree { .. }
            | Self::BadDelimiter { .. }
            | Self::BadDecimal { .. }
            | Self::BadEncoding { .. }
            | Self::NotForFormat { .. }
            | Self::UnknownSheet { .. }
            | Self::ReadOnly { .. }
            | Self::NoMissingWord
            | Self::AbsentDelimiter { .. }
            | Self::SameMark { .. }
            | Self::ColumnTwice { .. }
            | Self::OnlyNumbers { .. } => ErrorClass::Usage,
            Self::Core(error) => error.class(),
            _ => ErrorClass::Data,
        }
    }

    /// Whether the reader of our output went away (`| head`): nothing to complain about.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn open(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| match source.kind() {
            io::ErrorKind::IsADirectory => Self::Directory { path },
            _ => Self::Open { path, source },
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::Write { path, source }
    }

    pub(crate) fn damaged<E: std::fmt::Display>(path: &Path, format: &'static str) -> impl FnOnce(E) -> Self {
        let path = path.to_path_buf();
        move |what| Self::Damaged { path, format, what: what.to_string() }
    }
}

impl From<Error> for covary::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Core(error) => error,
            error => Self::source(error.class(), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_error(kind: io::ErrorKind) -> Error {
        Error::write(Path::new("-"))(kind.into())
    }

    #[test]
    fn a_reader_that_went_away_is_told_apart() {
        assert!(write_error(io::ErrorKind::BrokenPipe).is_broken_pipe());
        assert!(!write_error(io::ErrorKind::StorageFull).is_broken_pipe());
        assert!(!Error::EmptySelection.is_broken_pipe());
    }

    #[test]
    fn the_class_survives_the_way_through_the_core() {
        let file = covary::Error::from(write_error(io::ErrorKind::StorageFull));
        assert_eq!(file.class(), ErrorClass::File);
        assert_eq!(file.to_string(), "cannot write standard output: the disk is full");
        assert_eq!(covary::Error::from(Error::EmptySelection).class(), ErrorClass::Usage);
        assert!(matches!(covary::Error::from(Error::Core(covary::Error::NoRows)), covary::Error::NoRows));
    }
}

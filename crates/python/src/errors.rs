//! The one table from errors to exceptions, in the words of people who call a matrix X.

use std::fmt::Display;
use std::io;

use covary::{Error, ErrorClass};
use covary_io::{Format, Recognised, number_with_comma};
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyMemoryError, PyOSError,
    PyPermissionError, PyValueError,
};
use pyo3::prelude::*;

/// The exception that fits an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let text = in_words(error);
    match (error, error.class()) {
        (_, ErrorClass::Interrupted) => PyKeyboardInterrupt::new_err(()),
        (_, ErrorClass::Memory) => PyMemoryError::new_err(text),
        (Error::NoDensity { .. } | Error::Collapsed { .. } | Error::Format(_) | Error::Version { .. }, _) => {
            PyValueError::new_err(text)
        }
        (_, ErrorClass::Numerical) => linalg_error(py, &text),
        (Error::Source { error, .. }, ErrorClass::File) => file_error(error.downcast_ref(), text),
        (_, ErrorClass::File) => PyOSError::new_err(text),
        (_, ErrorClass::Usage | ErrorClass::Data) => PyValueError::new_err(text),
    }
}

/// The same for errors of files.
pub(crate) fn io_exception(py: Python<'_>, error: covary_io::Error) -> PyErr {
    exception(py, &error.into())
}

/// A number of threads that cannot be had.
pub(crate) fn bad_threads(threads: usize, why: &dyn Display) -> PyErr {
    PyValueError::new_err(format!("n_threads={threads} cannot be started: {why}"))
}

fn in_words(error: &Error) -> String {
    match error {
        Error::Infinite { value, cell } => {
            format!("X contains {value} at {cell}; replace it by a number or, if it is unknown, by NaN")
        }
        Error::Missing { cell, operation } => {
            format!(
                "X contains NaN at {cell}, and {operation} needs complete rows; drop or fill such rows first"
            )
        }
        Error::Parameter { name: "the kernel of rows with missing values", value, allowed } => {
            format!("X contains NaN, and kernel='{value}' must then be {allowed}")
        }
        Error::NoRows => "X has no rows of positive weight (0 samples)".into(),
        Error::TooFewRows { rows, needed } => {
            format!(
                "n_samples={rows} is too few: a covariance needs at least {needed} rows of positive weight"
            )
        }
        Error::Constant => "all features of X are constant, so there is no variance to explain".into(),
        Error::FeatureCount { expected, found } => {
            format!("X has {found} features, but the model is expecting {expected} features as input")
        }
        Error::Weight { row, value } => {
            format!("sample_weight[{row}] is {value}; weights must be finite and not negative")
        }
        Error::Components { requested, possible, rows, features } => format!(
            "n_components={requested} must be between 1 and {possible} for n_samples={rows}, \
             n_features={features}"
        ),
        Error::Factors { requested, possible, features } => format!(
            "n_components={requested} is too many for n_features={features}: {}",
            match possible {
                0 => "factor analysis needs at least 3 features".into(),
                _ => format!("ask for at most {possible}"),
            }
        ),
        Error::Source { error, .. } => match error.downcast_ref().and_then(remedy) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        },
        other => other.to_string(),
    }
}

/// What an argument of `covary.read` can do about an error of files.
fn remedy(error: &covary_io::Error) -> Option<String> {
    use covary_io::Error as FileError;
    Some(match error {
        FileError::NotUtf8 { column, .. } => {
            format!("say how it is encoded with encoding=..., or leave the column out with drop=['{column}']")
        }
        FileError::NotANumber { column, text, .. } => {
            let comma = match number_with_comma(text) {
                true => "say decimal=',' if the comma marks its decimals, ",
                false => "",
            };
            format!(
                "correct it, {comma}say na=[{text:?}] if it stands for a missing value, or leave the column out with \
                 drop=['{column}']"
            )
        }
        FileError::FeatureCount { .. } => "name those of the model in columns=[...]".into(),
        FileError::AbsentDelimiter { found, .. } => format!("say delimiter={:?}", found.typed()),
        FileError::OpenDelimiter { first, second, .. } => {
            format!("say delimiter={:?} or delimiter={:?}", first.typed(), second.typed())
        }
        FileError::SameMark { .. } => "say what separates the cells with delimiter=...".into(),
        FileError::UnknownEncoding { .. } => "encoding=... does that".into(),
        FileError::AllMissing { .. } => "they are those of na=[...]".into(),
        FileError::UnknownSheet { .. } => "sheet=... takes a name or a number from 1 on".into(),
        FileError::NoFeatures { path, selected: false, text: Some(_) } => match Format::from_path(path) {
            Ok(Format::Delimited { .. }) => {
                "if another mark separates its cells or their decimals, say so with delimiter=... or decimal=..."
                    .into()
            }
            Ok(Format::Spreadsheet) => "if the table is on another sheet, say which with sheet=...".into(),
            _ => return None,
        },
        FileError::Ragged { .. } => {
            "correct the row; if another mark separates the cells, say so with delimiter=...".into()
        }
        _ => return None,
    })
}

/// What an argument of `covary.read` can do if what was recognised is wrong.
pub(crate) fn otherwise(recognised: &Recognised) -> String {
    match recognised {
        Recognised::Delimiter(_) => "delimiter=... says otherwise".into(),
        Recognised::Decimal(_) => "decimal='.' says otherwise".into(),
        Recognised::Encoding(_) => "encoding=... says otherwise".into(),
        Recognised::Commas(_) => "if they mark decimals, say decimal=',', and otherwise remove them".into(),
        Recognised::Emptied(_) => "if they are values, leave the word out of na=[...]".into(),
        Recognised::Word { word, .. } => format!("if it stands for a missing value, say na=[{word:?}]"),
        Recognised::Sheet { .. } => "sheet=... says which".into(),
        Recognised::RowNames(_) => "header=False says otherwise".into(),
        _ => "if that is wrong, convert the file".into(),
    }
}

fn linalg_error(py: Python<'_>, text: &str) -> PyErr {
    let made = || py.import("numpy.linalg")?.getattr("LinAlgError")?.call1((text,));
    made().map_or_else(|error| error, PyErr::from_value)
}

fn file_error(error: Option<&covary_io::Error>, text: String) -> PyErr {
    let kind = match error {
        Some(covary_io::Error::Open { source, .. } | covary_io::Error::Write { source, .. }) => source.kind(),
        Some(covary_io::Error::Directory { .. }) => io::ErrorKind::IsADirectory,
        _ => io::ErrorKind::Other,
    };
    match kind {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
        io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

//! Errors of the core in the words of the command: the file, rows counted from 1, columns by name, and what
//! to do.

use std::path::Path;

use covary::Error;
pub(crate) use covary::describe::count;
use covary::error::Cell;
use covary_io::{Schema, shown};

use crate::advice;
use crate::exit::{Code, Failure};

/// A file as messages call it.
pub(crate) fn file_name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".into(),
        _ => format!("'{}'", path.display()),
    }
}

/// For errors that rows of this file have caused.
pub(crate) fn about_rows(schema: &Schema) -> impl Fn(Error) -> Failure + '_ {
    |error| in_words(&error.named(Some(&schema.features)), &file_name(&schema.path), &schema.features)
}

/// For errors of a file that holds no rows: moments or a model.
pub(crate) fn about_file(path: &Path) -> impl Fn(Error) -> Failure + '_ {
    |error| in_words(&error, &file_name(path), &[])
}

/// For errors of moments or of a model whose features have names.
pub(crate) fn about_features<'a>(path: &'a Path, features: &'a [String]) -> impl Fn(Error) -> Failure + 'a {
    |error| in_words(&error.named(Some(features)), &file_name(path), features)
}

fn in_words(error: &Error, file: &str, names: &[String]) -> Failure {
    let code = Code::from(error.class());
    let place = |cell: &Cell| place(file, cell, names);
    let sentence = match error {
        Error::Interrupted => return Failure::interrupted(),
        Error::Infinite { value, cell } => format!(
            "{}: the value is {value}; replace it by a number or, if it is unknown, by an empty cell",
            place(cell)
        ),
        Error::Missing { cell, operation: "a kernel" } => format!(
            "{}: the cell is empty, and a kernel needs complete rows; fill such cells first, for example with \
             covary impute and a model of kind ppca, or remove the row",
            place(cell)
        ),
        Error::Missing { cell, operation: "an encoder" } => format!(
            "{}: the cell is empty, and an encoder needs complete rows; fit with --no-encoder, or remove the row",
            place(cell)
        ),
        Error::Missing { cell, operation } => format!(
            "{}: the cell is empty, and {operation} needs complete rows; fill the cell, remove the row, or \
             fit the rows with --solver auto or em",
            place(cell)
        ),
        Error::NeverObserved { .. } => {
            format!("{file}: {error}; --drop does that, and --drop-empty for all that are empty")
        }
        Error::TooFewCells { requested, possible, cells } => format!(
            "{file}: the {cells} observed cells cannot tell a model of {} from noise, because it can pass \
             through all of them; {}",
            count(*requested, "component"),
            if *possible > 0 {
                format!("ask for -q {possible} or fewer")
            } else {
                "more cells are needed".into()
            }
        ),
        Error::NoRows => format!("{file} has no rows of positive weight"),
        Error::TooFewRows { rows, needed } => {
            format!("{file} has {}, but a covariance needs at least {needed}", count(*rows, "row"))
        }
        Error::Constant => format!(
            "{file}: every feature has the same value in all rows, so there is no variance to explain; \
             select columns that vary"
        ),
        Error::Components { requested, possible, rows, features } => format!(
            "{requested} components are too many for {file}: {} of {} allow -q 1 to {possible}",
            count(*rows, "row"),
            count(*features, "feature")
        ),
        Error::Factors { requested, possible, features } => format!(
            "{} of {features} features leave fewer than 0 degrees of freedom in {file}; {}",
            count(*requested, "factor"),
            match possible {
                0 => "factor analysis needs at least 3 features".into(),
                _ => format!("ask for -q {possible} or fewer"),
            }
        ),
        Error::ConstantFeatures { .. } | Error::SameFeatures { .. } => {
            format!("{file}: {error}; --drop does that")
        }
        Error::ZeroLoadings { .. } => format!("{file}: {error}; --no-kaiser does that"),
        Error::Asymmetric { row, column, value, mirrored } => {
            let there = place(&Cell { row: *row, column: *column, name: None });
            let mirror = names.get(*row).cloned().unwrap_or_else(|| (row + 1).to_string());
            format!(
                "{there}: {} stands here, but {} in row {}, column '{mirror}'; a matrix of covariances or \
                 correlations is symmetric",
                shown(*value),
                shown(*mirrored),
                column + 1
            )
        }
        Error::Format(what) => {
            format!("{file} is not a usable covary file: {what}; make it anew with covary, or copy it again")
        }
        Error::Source { error, .. } => advice::source_sentence(error.as_ref()),
        Error::Solver { .. } | Error::Parameter { .. } => error.to_string(),
        other => format!("{file}: {other}"),
    };
    Failure::Told { code, sentence }
}

/// A cell as messages call it.
pub(crate) fn place(file: &str, cell: &Cell, names: &[String]) -> String {
    let row = cell.row + 1;
    match names.get(cell.column).or(cell.name.as_ref()) {
        Some(name) => format!("{file}, row {row}, column '{name}'"),
        None => format!("{file}, row {row}, column {}", cell.column + 1),
    }
}

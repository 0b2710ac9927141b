//! What a flag can do about an error of files. The crates below do not know of flags: what names one is said
//! here.

use std::error::Error;

use covary_io::{Delimiter, Error as FileError, Format, Recognised, number_with_comma};

/// The error, and the flag that helps where one does.
pub(crate) fn sentence(error: &FileError) -> String {
    match remedy(error) {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

/// The same for an error that reached the command through the core.
pub(crate) fn source_sentence(error: &(dyn Error + Send + Sync + 'static)) -> String {
    error.downcast_ref().map_or_else(|| error.to_string(), sentence)
}

fn remedy(error: &FileError) -> Option<String> {
    Some(match error {
        FileError::NotUtf8 { column, .. } => {
            format!("say how it is encoded with --encoding, or leave the column out with --drop '{column}'")
        }
        FileError::NotANumber { column, text, .. } => not_a_number(column, text),
        FileError::FeatureCount { .. } => "select them by position with --columns".into(),
        FileError::OnlyNumbers { .. } => {
            "write .parquet, .arrow or .csv, or leave them out with --drop".into()
        }
        FileError::AbsentDelimiter { found, .. } => format!("say --delimiter {}", quoted(*found)),
        FileError::OpenDelimiter { first, second, .. } => {
            format!("say --delimiter {} or --delimiter {}", quoted(*first), quoted(*second))
        }
        FileError::SameMark { .. } => "say what separates the cells with --delimiter, such as ';'".into(),
        FileError::NoFeatures { path, selected: false, text: Some(_) } => match Format::from_path(path) {
            Ok(Format::Delimited { .. }) => {
                "if another mark separates its cells or their decimals, say so with --delimiter or --decimal"
                    .into()
            }
            Ok(Format::Spreadsheet) => "if the table is on another sheet, say which with --sheet".into(),
            _ => return None,
        },
        FileError::UnknownSheet { .. } => "--sheet takes a name or a number".into(),
        FileError::AllMissing { .. } => "they are those of --na".into(),
        FileError::UnknownEncoding { .. } => "--encoding does that".into(),
        FileError::Ragged { .. } => {
            "correct the row; if another mark separates the cells, say so with --delimiter".into()
        }
        _ => return None,
    })
}

/// A cell may be a slip, a word for a missing value, or a number that is written otherwise.
fn not_a_number(column: &str, text: &str) -> String {
    let comma = match number_with_comma(text) {
        true => "add --decimal , if the comma marks its decimals, ",
        false => "",
    };
    // What stands between quotes of a shell, and is not cut at commas.
    let na = match text.contains([',', '\'', '…', '\\']) {
        true => String::new(),
        false => format!("add --na '{text}' if it stands for a missing value, "),
    };
    format!("correct it, {comma}{na}or leave the column out with --drop '{column}'")
}

/// As people type it into a shell.
fn quoted(delimiter: Delimiter) -> String {
    match delimiter.typed() {
        word if word.len() > 1 => word,
        mark => format!("'{mark}'"),
    }
}

/// What to do if what was recognised is wrong.
pub(crate) fn otherwise(recognised: &Recognised) -> String {
    let advice = match recognised {
        Recognised::Word { word, .. } => {
            return format!("if it stands for a missing value, add --na '{word}'");
        }
        Recognised::Delimiter(_) => "if that is wrong, say --delimiter",
        Recognised::Decimal(_) => "if that is wrong, add --decimal .",
        Recognised::Encoding(_) => "if that is wrong, say --encoding",
        Recognised::Commas(_) => "if they mark decimals, add --decimal , and otherwise remove them",
        Recognised::Emptied(_) => "if they are values, leave the word out of --na",
        Recognised::Sheet { .. } => "--sheet says which",
        Recognised::RowNames(_) => "if that is wrong, add --header no",
        _ => "if that is wrong, convert the file",
    };
    advice.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_helps_with_a_cell() {
        assert!(not_a_number("b", "?").contains("--na '?'"));
        assert!(
            not_a_number("b", "1,5").contains("--decimal ,") && !not_a_number("b", "1,5").contains("--na")
        );
        assert!(!not_a_number("b", "it's").contains("--na"));
        assert!(not_a_number("b", "x").ends_with("--drop 'b'"));
    }
}

//! What a flag can do about an error of files. The crates below do not know of flags: what names one is said
//! here.

use std::error::Error;

use covary_io::Error as FileError;

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
            format!("convert the file, or leave the column out with --drop '{column}'")
        }
        FileError::NotANumber { column, .. } => {
            format!("correct it, or leave the column out with --drop '{column}'")
        }
        FileError::FeatureCount { .. } => "select them by position with --columns".into(),
        FileError::OnlyNumbers { .. } => {
            "write .parquet, .arrow or .csv, or leave them out with --drop".into()
        }
        _ => return None,
    })
}

//! Which format a file has, told by its ending.

use std::path::Path;

use crate::error::{Error, Result};

/// How a text file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (`.gz`).
    Gzip,
    /// Zstandard (`.zst`).
    Zstd,
}

/// The format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with one delimiter between cells.
    Delimited {
        /// `,` or a tab.
        delimiter: u8,
        /// Around the text.
        compression: Compression,
    },
    /// Apache Parquet.
    Parquet,
    /// The Arrow IPC file format, also known as Feather.
    Arrow,
    /// The array file of `NumPy`.
    Npy,
    /// A workbook of Excel (.xlsx) or of OpenDocument (.ods); read only.
    Spreadsheet,
}

impl Format {
    /// Plain comma-separated text: what standard input and output carry.
    pub const CSV: Self = Self::Delimited { delimiter: b',', compression: Compression::None };

    /// Tells the format by the ending; `-` is CSV.
    ///
    /// # Errors
    /// When the ending is not one of the known ones.
    ///
    /// ```
    /// use covary_io::Format;
    /// assert_eq!(Format::from_path("wine.parquet")?, Format::Parquet);
    /// assert_eq!(Format::from_path("-")?, Format::CSV);
    /// assert!(Format::from_path("wine.docx").is_err());
    /// # Ok::<(), covary_io::Error>(())
    /// ```
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Ok(Self::CSV);
        }
        let text = path.to_string_lossy().to_ascii_lowercase();
        let (stem, compression) = match () {
            () if text.ends_with(".gz") => (&text[..text.len() - 3], Compression::Gzip),
            () if text.ends_with(".zst") => (&text[..text.len() - 4], Compression::Zstd),
            () => (text.as_str(), Compression::None),
        };
        let ending = stem.rsplit_once('.').map_or("", |(_, ending)| ending);
        match (ending, compression) {
            ("csv", compression) => Ok(Self::Delimited { delimiter: b',', compression }),
            ("tsv", compression) => Ok(Self::Delimited { delimiter: b'\t', compression }),
            ("parquet", Compression::None) => Ok(Self::Parquet),
            ("arrow" | "feather", Compression::None) => Ok(Self::Arrow),
            ("npy", Compression::None) => Ok(Self::Npy),
            ("xlsx" | "xlsm" | "ods", Compression::None) => Ok(Self::Spreadsheet),
            _ => Err(Error::UnknownEnding { path: path.to_path_buf() }),
        }
    }

    /// The same for a file that is to be written.
    ///
    /// # Errors
    /// When the ending is not one of the known ones, or one of a format that is only read.
    pub fn of_output(path: impl AsRef<Path>) -> Result<Self> {
        match Self::from_path(&path)? {
            Self::Spreadsheet => Err(Error::ReadOnly { path: path.as_ref().into() }),
            format => Ok(format),
        }
    }

    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delimited { delimiter: b'\t', compression: Compression::None } => "TSV",
            Self::Delimited { compression: Compression::None, .. } => "CSV",
            Self::Delimited { compression: Compression::Gzip, .. } => "gzip",
            Self::Delimited { compression: Compression::Zstd, .. } => "zstd",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow IPC",
            Self::Npy => "NPY",
            Self::Spreadsheet => "spreadsheet",
        }
    }
}

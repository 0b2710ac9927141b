//! How text and spreadsheets are to be read, where their contents do not tell.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are help texts: backticks would show in the terminal"
)]

use clap::Args;
use covary_io::{DecimalMark, Delimiter, MissingWords, TextEncoding};

use crate::args;

/// What is said about a text or a spreadsheet.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading text and spreadsheets")]
pub(crate) struct Text {
    /// What separates the cells: a mark such as ';' or '|', or tab or space [default: recognised, and said where
    /// the ending promises another one]
    #[arg(long, value_name = "MARK", value_parser = args::parsed::<Delimiter>)]
    pub(crate) delimiter: Option<Delimiter>,
    /// What marks decimals: . or , [default: recognised, and said where it is a comma]
    #[arg(long, value_name = "MARK", value_parser = args::parsed::<DecimalMark>)]
    pub(crate) decimal: Option<DecimalMark>,
    /// Words that stand for a missing value, with commas between them, such as '?,-999'; may be repeated. An empty
    /// cell, NA, N/A, #N/A, NaN and null always do
    #[arg(long, value_name = "WORDS", value_parser = args::missing_words, allow_hyphen_values = true)]
    pub(crate) na: Vec<MissingWords>,
    /// Whether the first line is a header [default: guessed, and said where it is not obvious]
    #[arg(long, value_name = "yes|no", value_parser = args::yes_or_no)]
    pub(crate) header: Option<bool>,
    /// How letters are encoded, such as utf-8, utf-16 or latin-1 [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = args::parsed::<TextEncoding>)]
    pub(crate) encoding: Option<TextEncoding>,
    /// Of a spreadsheet: the sheet with the table, by name or by number from 1 on [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) sheet: Option<String>,
}

impl Text {
    /// The first of the flags that was used, if one was.
    pub(crate) fn used(&self) -> Option<&'static str> {
        let Self { delimiter, decimal, na, header, encoding, sheet } = self;
        let flags = [
            (delimiter.is_some(), "--delimiter"),
            (decimal.is_some(), "--decimal"),
            (!na.is_empty(), "--na"),
            (header.is_some(), "--header"),
            (encoding.is_some(), "--encoding"),
            (sheet.is_some(), "--sheet"),
        ];
        flags.into_iter().find_map(|(used, flag)| used.then_some(flag))
    }
}

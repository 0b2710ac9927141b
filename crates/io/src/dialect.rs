//! How a text is written: what separates its cells, what marks decimals, and which words stand for a missing
//! value.

use std::fmt;
use std::str::FromStr;

use encoding_rs::Encoding;

use crate::error::Error;

/// The byte between two cells of a text.
///
/// ```
/// use covary_io::Delimiter;
/// assert_eq!(";".parse::<Delimiter>()?, Delimiter::SEMICOLON);
/// assert_eq!("tab".parse::<Delimiter>()?.to_string(), "a tab");
/// assert!("ab".parse::<Delimiter>().is_err());
/// # Ok::<(), covary_io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter(u8);

impl Delimiter {
    /// `,`
    pub const COMMA: Self = Self(b',');
    /// `;`
    pub const SEMICOLON: Self = Self(b';');
    /// A tab.
    pub const TAB: Self = Self(b'\t');
    /// `|`
    pub const PIPE: Self = Self(b'|');
    /// A single space.
    pub const SPACE: Self = Self(b' ');

    /// The byte of a format, or one that a file names itself.
    pub(crate) const fn of(byte: u8) -> Self {
        Self(byte)
    }

    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    /// As somebody would type it on a command line or in a program.
    pub fn typed(self) -> String {
        match self {
            Self::TAB => "tab".into(),
            Self::SPACE => "space".into(),
            Self(byte) => char::from(byte).into(),
        }
    }
}

/// Any mark that is no part of a number, of a quoted field or of a line's end; tab and space also by name.
impl FromStr for Delimiter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match (text, text.as_bytes()) {
            ("tab" | "\\t" | "\t", _) => Ok(Self::TAB),
            ("space" | " ", _) => Ok(Self::SPACE),
            (_, [byte]) if byte.is_ascii_punctuation() && !b"\"'+-._".contains(byte) => Ok(Self(*byte)),
            _ => Err(Error::BadDelimiter { text: text.into() }),
        }
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TAB => f.write_str("a tab"),
            Self::SPACE => f.write_str("a space"),
            Self(byte) => write!(f, "'{}'", char::from(byte)),
        }
    }
}

/// What stands before the decimals of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1.5`
    #[default]
    Point,
    /// `1,5`
    Comma,
}

impl FromStr for DecimalMark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "." | "point" => Ok(Self::Point),
            "," | "comma" => Ok(Self::Comma),
            _ => Err(Error::BadDecimal { text: text.into() }),
        }
    }
}

impl fmt::Display for DecimalMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Point { "'.'" } else { "','" })
    }
}

/// How letters are written as bytes.
///
/// ```
/// use covary_io::TextEncoding;
/// let latin: TextEncoding = "latin-1".parse()?;
/// assert_eq!(latin.to_string(), "windows-1252");
/// assert!("latin-99".parse::<TextEncoding>().is_err());
/// # Ok::<(), covary_io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    pub(crate) const fn of(encoding: &'static Encoding) -> Self {
        Self(encoding)
    }

    pub(crate) const fn encoding(self) -> &'static Encoding {
        self.0
    }

    /// Whether each byte is one letter, and the bytes of ASCII are ASCII.
    pub(crate) fn is_single_byte(self) -> bool {
        self.0.is_single_byte()
    }
}

/// By the names that the web knows, with or without hyphens.
impl FromStr for TextEncoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let plain = text.trim().to_ascii_lowercase().replace('_', "-");
        let label = match plain.as_str() {
            "latin-1" => "latin1",
            "utf16" => "utf-16",
            other => other,
        };
        let found = Encoding::for_label_no_replacement(label.as_bytes());
        found.map(Self).ok_or_else(|| Error::BadEncoding { text: text.into() })
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name().to_ascii_lowercase())
    }
}

/// Words that stand for a missing value beside the usual ones, which are an empty cell, NA, N/A, #N/A, NaN and
/// null. A word that is a number also stands for other ways to write it: -999 for -999.0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingWords(Vec<String>);

impl MissingWords {
    /// These words; blanks around them do not matter.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let words = words.into_iter().map(|word| word.into().trim().to_owned());
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    /// Words with commas between them, as somebody types them: `?,-999`.
    ///
    /// # Errors
    /// When there is none.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match Self::new(text.split(',')) {
            Self(words) if words.is_empty() => Err(Error::NoMissingWord),
            words => Ok(words),
        }
    }

    /// The words of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn delimiters_as_people_type_them() {
        for (text, byte) in
            [(";", b';'), ("|", b'|'), ("tab", b'\t'), ("\\t", b'\t'), ("\t", b'\t'), (" ", b' ')]
        {
            assert_eq!(text.parse::<Delimiter>().unwrap().byte(), byte, "{text:?}");
        }
        for wrong in ["", ";;", "a", "1", ".", "-", "+", "\"", "\n", "é", "_"] {
            assert!(wrong.parse::<Delimiter>().is_err(), "{wrong:?}");
        }
        let typed = |text: &str| text.parse::<Delimiter>().unwrap().typed();
        assert_eq!([typed("tab"), typed(" "), typed(";")], ["tab", "space", ";"]);
    }

    #[test]
    fn words_lose_their_blanks() {
        assert_eq!(MissingWords::parse("?, -999,").unwrap().words(), ["?", "-999"]);
        assert!(MissingWords::parse(" ,").is_err());
    }
}

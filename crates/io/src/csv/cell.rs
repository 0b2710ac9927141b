//! One cell of text as a number, a missing value, or text.

use crate::dialect::{DecimalMark, MissingWords};

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// Finite or infinite, never NaN.
    Number(f64),
    /// One of the words for a missing value.
    Missing,
    /// Something else.
    Text,
}

/// Stand for a missing value in any case; so does an empty cell.
const MISSING: [&[u8]; 5] = [b"na", b"nan", b"null", b"n/a", b"#n/a"];

/// How the cells of a file are to be understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CellRules {
    pub(crate) decimal: DecimalMark,
    /// More words for a missing value, and those that are numbers by their value.
    words: Vec<Vec<u8>>,
    numbers: Vec<f64>,
}

impl CellRules {
    pub(crate) fn new(decimal: DecimalMark, missing: &MissingWords) -> Self {
        let words: Vec<Vec<u8>> = missing.words().iter().map(|word| word.as_bytes().to_vec()).collect();
        let value = |word: &Vec<u8>| number(word, DecimalMark::Point).or_else(|| number(word, decimal));
        let numbers = words.iter().filter_map(value).filter(|value| !value.is_nan()).collect();
        Self { decimal, words, numbers }
    }

    /// Reads a cell; blanks around it do not matter.
    pub(crate) fn read(&self, text: &[u8]) -> Cell {
        let text = text.trim_ascii();
        let is_usual = || MISSING.iter().any(|word| text.eq_ignore_ascii_case(word));
        if text.is_empty() || is_usual() || self.words.iter().any(|word| word == text) {
            return Cell::Missing;
        }
        match number(text, self.decimal) {
            Some(value) if value.is_nan() || self.is_missing(value) => Cell::Missing,
            Some(value) => Cell::Number(value),
            None => Cell::Text,
        }
    }

    /// Whether a cell is missing by a word that somebody gave.
    pub(crate) fn is_given(&self, text: &[u8]) -> bool {
        let is_word = |word: &Vec<u8>| word == text.trim_ascii();
        !self.words.is_empty()
            && (self.words.iter().any(is_word) || number(text.trim_ascii(), self.decimal).is_some())
    }

    /// Whether a number stands for a missing value.
    #[inline]
    pub(crate) fn is_missing(&self, value: f64) -> bool {
        !self.numbers.is_empty() && self.numbers.contains(&value)
    }
}

/// Reads a cell with a decimal point and the usual words.
pub(crate) fn read(text: &[u8]) -> Cell {
    CellRules::default().read(text)
}

/// Whether a cell is a number if its comma marks decimals, and only then.
pub fn number_with_comma(text: &str) -> bool {
    text.contains(',') && number(text.trim().as_bytes(), DecimalMark::Comma).is_some()
}

/// A number without blanks around it.
fn number(text: &[u8], decimal: DecimalMark) -> Option<f64> {
    let digits = match text {
        [b'+', b'+' | b'-', ..] => return None,
        [b'+', rest @ ..] => rest,
        _ => text,
    };
    match decimal {
        DecimalMark::Point => fast_float2::parse(digits).ok(),
        DecimalMark::Comma => with_comma(digits),
    }
}

/// A number with a decimal comma: of the same form as one with a point, which it must not have.
fn with_comma(digits: &[u8]) -> Option<f64> {
    const SHORT: usize = 64;
    let mut short = [0; SHORT];
    let mut long;
    let copy = match short.get_mut(..digits.len()) {
        Some(copy) => copy,
        None => {
            long = vec![0; digits.len()];
            &mut long[..]
        }
    };
    for (to, from) in copy.iter_mut().zip(digits) {
        *to = match from {
            b'.' => return None,
            b',' => b'.',
            other => *other,
        };
    }
    fast_float2::parse(&*copy).ok()
}

/// A cell as messages show it: short, and in one line.
pub(crate) fn show(text: &[u8]) -> String {
    show_text(&String::from_utf8_lossy(text))
}

/// The same for text that is decoded already.
pub(crate) fn show_text(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.trim().chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.trim().chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn missing_values_in_all_their_spellings() {
        for text in [
            "", "  ", "NA", "na", "NaN", "nan", "NAN", "null", "NULL", " Null\t", "-nan", "N/A", "n/a",
            "#N/A",
        ] {
            assert_eq!(read(text.as_bytes()), Cell::Missing, "{text:?}");
        }
    }

    #[test]
    fn numbers_as_people_write_them() {
        for (text, value) in [
            ("1", 1.0),
            ("-0.5", -0.5),
            (" +3e2 ", 300.0),
            (".25", 0.25),
            ("7.", 7.0),
            ("1E-3", 1e-3),
            ("0.1", 0.1),
            ("123456789012345678", 123456789012345678.0),
            ("5e-324", 5e-324),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(read(text.as_bytes()), Cell::Number(value), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_text() {
        for text in
            ["a", "1,5", "1 2", "0x10", "1e", "--1", "+-1", "++1", "-", ".", "?", "1_000", "nano", "12:30"]
        {
            assert_eq!(read(text.as_bytes()), Cell::Text, "{text:?}");
        }
    }

    #[test]
    fn decimal_commas() {
        let rules = CellRules::new(DecimalMark::Comma, &MissingWords::default());
        for (text, value) in [("1,5", 1.5), ("-0,25", -0.25), (" +3,5e2 ", 350.0), (",5", 0.5), ("7", 7.0)] {
            assert_eq!(rules.read(text.as_bytes()), Cell::Number(value), "{text:?}");
        }
        for text in ["1.5", "1.234,5", "1,234,5", ","] {
            assert_eq!(rules.read(text.as_bytes()), Cell::Text, "{text:?}");
        }
        let long = format!("0,{}", "3".repeat(200));
        assert_eq!(rules.read(long.as_bytes()), Cell::Number(1.0 / 3.0));
    }

    #[test]
    fn words_for_a_missing_value_match_as_they_are_and_numbers_by_value() {
        for decimal in [DecimalMark::Point, DecimalMark::Comma] {
            let rules = CellRules::new(decimal, &MissingWords::parse("?,-999,none").unwrap());
            for text in [
                "?",
                " ? ",
                "-999",
                "none",
                "NA",
                "-9.99e2".replace('.', if decimal == DecimalMark::Comma { "," } else { "." }).as_str(),
            ] {
                assert_eq!(rules.read(text.as_bytes()), Cell::Missing, "{text:?}");
            }
            for text in ["??", "None", "-"] {
                assert_eq!(rules.read(text.as_bytes()), Cell::Text, "{text:?}");
            }
            assert_eq!(rules.read(b"999"), Cell::Number(999.0));
        }
    }

    #[test]
    fn long_and_strange_text_is_shown_short_and_safe() {
        assert_eq!(show(b"a\nb"), "a\\nb");
        assert_eq!(show("x".repeat(50).as_bytes()).chars().count(), 41);
    }
}

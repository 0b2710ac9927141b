//! One cell of text as a number, a missing value, or text.

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// Finite or infinite, never NaN.
    Number(f64),
    /// Empty, NA, NaN or null, in any case.
    Missing,
    /// Something else.
    Text,
}

/// Reads a cell; blanks around it do not matter.
pub(crate) fn read(text: &[u8]) -> Cell {
    let text = text.trim_ascii();
    let is = |word: &[u8]| text.eq_ignore_ascii_case(word);
    if text.is_empty() || is(b"na") || is(b"nan") || is(b"null") {
        return Cell::Missing;
    }
    let digits = match text {
        [b'+', b'+' | b'-', ..] => return Cell::Text,
        [b'+', rest @ ..] => rest,
        _ => text,
    };
    match fast_float2::parse::<f64, _>(digits) {
        Ok(value) if value.is_nan() => Cell::Missing,
        Ok(value) => Cell::Number(value),
        Err(_) => Cell::Text,
    }
}

/// A cell as messages show it: short, and in one line.
pub(crate) fn show(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.trim().chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.trim().chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_in_all_their_spellings() {
        for text in ["", "  ", "NA", "na", "NaN", "nan", "NAN", "null", "NULL", " Null\t", "-nan"] {
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
            ["a", "1,5", "1 2", "0x10", "1e", "--1", "+-1", "++1", "N/A", "-", ".", "1_000", "nano", "12:30"]
        {
            assert_eq!(read(text.as_bytes()), Cell::Text, "{text:?}");
        }
    }

    #[test]
    fn long_and_strange_text_is_shown_short_and_safe() {
        assert_eq!(show(b"a\nb"), "a\\nb");
        assert_eq!(show("x".repeat(50).as_bytes()).chars().count(), 41);
    }
}

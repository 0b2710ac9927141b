//! Names from files may hold control characters; a terminal must show them, not obey them.

use std::borrow::Cow;

/// One line, with everything escaped that would move the cursor, change colours or turn the direction of
/// text.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Several lines, whose ends are our own.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_unsafe(c))
}

/// Control characters that JSON allows as they are, escaped the way of JSON.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unsafe(c) && c >= '\u{7f}', |c| format!("\\u{:04x}", u32::from(c)))
}

/// Control characters, and marks that turn the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, which, |c| c.escape_default().to_string())
}

fn replaced(text: &str, which: impl Fn(char) -> bool, by: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if which(c) { by(c) } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(line("a\u{1b}[31mb\r\n\u{9b}2J"), "a\\u{1b}[31mb\\r\\n\\u{9b}2J");
        assert_eq!(line("\u{202e}evil"), "\\u{202e}evil");
        assert_eq!(lines("a\u{7}\nb"), "a\\u{7}\nb");
        assert_eq!(json("\"a\u{9b}\""), "\"a\\u009b\"");
        assert!(matches!(line("weight (kg), naïve, 体重"), Cow::Borrowed(_)));
    }
}

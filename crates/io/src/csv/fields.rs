//! Where fields and records end: the one place that knows the rules of quoting.
//!
//! A quote opens a quoted field only as its first byte; inside, a doubled quote stands for one; what follows
//! the closing quote up to the delimiter belongs to the field as it is.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

/// Where the reader stands at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Between two records.
    Record,
    /// Inside a quoted field that began on an earlier line.
    Quoted,
}

/// What a piece of text that consists of whole lines holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Survey {
    /// Records that start in it, blank lines aside.
    pub(super) rows: usize,
    /// Line breaks.
    pub(super) lines: usize,
    /// One past the last whole record.
    pub(super) cut: usize,
    /// What belongs to a record that began earlier: its bytes, and the line breaks in them.
    pub(super) entered: (usize, usize),
    /// How it ends.
    pub(super) end: State,
}

/// Counts the records of a piece that starts in the given state.
pub(super) fn survey(text: &[u8], delimiter: u8, state: State) -> Survey {
    let mut found = Survey { rows: 0, lines: 0, cut: 0, entered: (0, 0), end: state };
    let has_quotes = memchr(b'"', text).is_some();
    if has_quotes || state == State::Quoted {
        found.lines = memchr_iter(b'\n', text).count();
    }
    if state == State::Quoted {
        let Some(end) = closing_quote(text, 0).and_then(|p| record_end(text, p, delimiter, true)) else {
            found.entered = (text.len(), found.lines);
            return found;
        };
        found.cut = end;
        found.entered = (end, memchr_iter(b'\n', &text[..end]).count());
    }
    found.end = State::Record;
    match has_quotes {
        true => survey_records(text, delimiter, &mut found),
        false => survey_lines(text, &mut found),
    }
    found
}

/// Without quotes a line is a record.
fn survey_lines(text: &[u8], found: &mut Survey) {
    for end in memchr_iter(b'\n', text) {
        found.rows += usize::from(!is_blank(&text[found.cut..end]));
        found.lines += 1;
        found.cut = end + 1;
    }
    found.rows += usize::from(!is_blank(&text[found.cut..]));
    found.cut = text.len();
}

fn survey_records(text: &[u8], delimiter: u8, found: &mut Survey) {
    while found.cut < text.len() {
        let line_end = memchr(b'\n', &text[found.cut..]).map_or(text.len(), |i| found.cut + i);
        let line = &text[found.cut..line_end];
        found.rows += usize::from(!is_blank(line));
        found.cut = match memchr(b'"', line) {
            None => (line_end + 1).min(text.len()),
            Some(_) => match record_end(text, found.cut, delimiter, false) {
                Some(end) => end,
                None => {
                    found.end = State::Quoted;
                    return;
                }
            },
        };
    }
}

/// Whether a line without its line break holds nothing.
pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line, [] | [b'\r'])
}

/// One past the line break that ends the record, when it ends. `inside` a field a quote has no meaning.
pub(super) fn record_end(text: &[u8], mut pos: usize, delimiter: u8, mut inside: bool) -> Option<usize> {
    loop {
        let end = if inside { unquoted_end(text, pos, delimiter) } else { field_end(text, pos, delimiter)? };
        match text.get(end) {
            None => return Some(text.len()),
            Some(b'\n') => return Some(end + 1),
            Some(_) => pos = end + 1,
        }
        inside = false;
    }
}

/// The byte that ends the field starting at `pos`: delimiter, line break or end of text. `None` when a quote
/// is never closed.
#[inline]
pub(super) fn field_end(text: &[u8], pos: usize, delimiter: u8) -> Option<usize> {
    match text.get(pos) {
        Some(b'"') => closing_quote(text, pos + 1).map(|p| unquoted_end(text, p, delimiter)),
        _ => Some(unquoted_end(text, pos, delimiter)),
    }
}

#[inline]
fn unquoted_end(text: &[u8], pos: usize, delimiter: u8) -> usize {
    memchr2(delimiter, b'\n', &text[pos..]).map_or(text.len(), |i| pos + i)
}

/// One past the quote that closes the field, from a place inside of it.
fn closing_quote(text: &[u8], mut pos: usize) -> Option<usize> {
    loop {
        pos += memchr(b'"', &text[pos..])? + 1;
        if text.get(pos) != Some(&b'"') {
            return Some(pos);
        }
        pos += 1;
    }
}

/// The contents of the field `text[start..end]`, quotes and a carriage return before the line break taken
/// off.
pub(super) fn contents(text: &[u8], start: usize, end: usize) -> Cow<'_, [u8]> {
    let mut field = &text[start..end];
    if text.get(end).is_none_or(|b| *b == b'\n') {
        field = field.strip_suffix(b"\r").unwrap_or(field);
    }
    match field.strip_prefix(b"\"") {
        None => Cow::Borrowed(field),
        Some(rest) => unquote(rest),
    }
}

/// The contents of a quoted field from behind its opening quote on.
fn unquote(field: &[u8]) -> Cow<'_, [u8]> {
    if let Some((b'"', inner)) = field.split_last()
        && memchr(b'"', inner).is_none()
    {
        return Cow::Borrowed(inner);
    }
    let close = closing_quote(field, 0).unwrap_or(field.len() + 1);
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field[..close - 1].iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == b'"' {
            bytes.next();
        }
    }
    out.extend_from_slice(&field[close.min(field.len())..]);
    Cow::Owned(out)
}

/// The fields of the record that starts at `pos`, and where the next record starts.
pub(super) fn record(text: &[u8], mut pos: usize, delimiter: u8) -> Option<(Vec<Cow<'_, [u8]>>, usize)> {
    let mut fields = Vec::new();
    loop {
        let end = field_end(text, pos, delimiter)?;
        fields.push(contents(text, pos, end));
        match text.get(end) {
            None => return Some((fields, text.len())),
            Some(b'\n') => return Some((fields, end + 1)),
            Some(_) => pos = end + 1,
        }
    }
}

/// Which fields of the record that starts at `pos` are in quotes.
pub(super) fn quoted(text: &[u8], mut pos: usize, delimiter: u8) -> Vec<bool> {
    let mut quoted = Vec::new();
    while let Some(end) = field_end(text, pos, delimiter) {
        quoted.push(text.get(pos) == Some(&b'"'));
        match text.get(end) {
            Some(byte) if *byte == delimiter => pos = end + 1,
            _ => break,
        }
    }
    quoted
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        let (fields, _) = record(text.as_bytes(), 0, b',').unwrap();
        fields.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect()
    }

    #[test]
    fn quoting_follows_the_rules() {
        assert_eq!(fields("a,b\r\nc"), ["a", "b"]);
        assert_eq!(fields("\"a,b\",\"c\nd\"\nx"), ["a,b", "c\nd"]);
        assert_eq!(fields("\"say \"\"hi\"\"\",\"\"\r\n"), ["say \"hi\"", ""]);
        assert_eq!(fields("5\" pipe,\"a\"b\"c"), ["5\" pipe", "ab\"c"]);
        assert_eq!(fields(",\n"), ["", ""]);
        assert_eq!(fields("\"\"\"\""), ["\""]);
    }

    #[test]
    fn an_unclosed_quote_has_no_record() {
        assert!(record(b"a,\"b\nc", 0, b',').is_none());
    }

    #[test]
    fn a_survey_counts_rows_lines_and_notices_open_quotes() {
        let s = |t: &str, state| survey(t.as_bytes(), b',', state);
        assert_eq!(
            s("a,b\n\r\n\nc,d\n", State::Record),
            Survey { rows: 2, lines: 4, cut: 11, entered: (0, 0), end: State::Record }
        );
        assert_eq!(
            s("a,b\n\"x\n", State::Record),
            Survey { rows: 2, lines: 2, cut: 4, entered: (0, 0), end: State::Quoted }
        );
        assert_eq!(
            s("y\",z\nq\n", State::Quoted),
            Survey { rows: 1, lines: 2, cut: 7, entered: (5, 1), end: State::Record }
        );
        assert_eq!(
            s("nothing\n", State::Quoted),
            Survey { rows: 0, lines: 1, cut: 0, entered: (8, 1), end: State::Quoted }
        );
        assert_eq!(
            s("last", State::Record),
            Survey { rows: 1, lines: 0, cut: 4, entered: (0, 0), end: State::Record }
        );
    }
}

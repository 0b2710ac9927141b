//! Text that is not UTF-8: converted while it is read, or cell by cell where each byte is one letter.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::head::Head;
use crate::dialect::TextEncoding;
use crate::error::{Error, Result};
use crate::recognised::Recognised;

/// How names and carried cells become text. Numbers are the same bytes in all of these encodings.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellEncoding(&'static Encoding);

impl CellEncoding {
    pub(super) const UTF_8: Self = Self(UTF_8);

    /// Tells by the beginning of a text, unless somebody says: UTF-8, or Windows-1252, which has all of
    /// latin-1, where it is none.
    pub(super) fn of(
        path: &Path,
        head: &Head,
        given: Option<TextEncoding>,
        recognised: &mut Vec<Recognised>,
    ) -> Result<Self> {
        match given {
            Some(given) if given.is_single_byte() => return Ok(Self(given.encoding())),
            _ if is_utf_8(head) || given.is_some() => return Ok(Self::UTF_8),
            _ => {}
        }
        // Windows-1252 has no letters here, where UTF-8 and encodings of other scripts often have bytes.
        if head.text.iter().any(|byte| matches!(byte, 0x81 | 0x8d | 0x8f | 0x90 | 0x9d)) {
            let what = "it is neither UTF-8 nor Windows-1252 (latin-1)";
            return Err(Error::UnknownEncoding { path: path.into(), what: what.into() });
        }
        recognised.push(Recognised::Encoding(TextEncoding::of(WINDOWS_1252)));
        Ok(Self(WINDOWS_1252))
    }

    /// The bytes of a cell as text, if they are text.
    pub(super) fn text(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        self.0.decode_without_bom_handling_and_without_replacement(bytes)
    }

    /// The same for messages, whatever the bytes are.
    pub(super) fn shown(self, bytes: &[u8]) -> Cow<'_, str> {
        self.0.decode_without_bom_handling(bytes).0
    }
}

fn is_utf_8(head: &Head) -> bool {
    match std::str::from_utf8(&head.text) {
        Ok(_) => true,
        // A letter may be cut where the beginning ends.
        Err(error) => error.error_len().is_none() && !head.whole,
    }
}

/// First bytes that tell an encoding.
pub(super) const FIRST: usize = 4;

/// The encoding that a text must be converted from, told by its first bytes or by somebody; `None` if its cells
/// can be found as it is.
pub(super) fn foreign(
    path: &Path,
    first: &[u8],
    given: Option<TextEncoding>,
) -> Result<Option<&'static Encoding>> {
    let given = given.map(TextEncoding::encoding).filter(|e| *e != UTF_8 && !e.is_single_byte());
    match *first {
        [0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff] => {
            let what = "it is UTF-32; save it as UTF-8";
            Err(Error::NotText { path: path.into(), what: what.into() })
        }
        [0xff, 0xfe, ..] => Ok(Some(UTF_16LE)),
        [0xfe, 0xff, ..] => Ok(Some(UTF_16BE)),
        _ if given.is_some() => Ok(given),
        // Two letters of ASCII without a byte order mark.
        [a, 0, b, 0] if a != 0 && b != 0 => Ok(Some(UTF_16LE)),
        [0, a, 0, b] if a != 0 && b != 0 => Ok(Some(UTF_16BE)),
        _ => Ok(None),
    }
}

/// A reader whose text is converted to UTF-8 if it must be.
pub(super) fn converted(
    path: &Path,
    mut reader: Box<dyn Read + Send>,
    given: Option<TextEncoding>,
    trouble: impl Fn(io::Error) -> Error,
) -> Result<Box<dyn Read + Send>> {
    let mut first = Vec::with_capacity(FIRST);
    reader.as_mut().take(FIRST as u64).read_to_end(&mut first).map_err(trouble)?;
    let encoding = foreign(path, &first, given)?;
    let whole = io::Cursor::new(first).chain(reader);
    Ok(match encoding {
        Some(encoding) => Box::new(Converted::new(whole, encoding)),
        None => Box::new(whole),
    })
}

/// Bytes that make no sense in the encoding that a text has.
#[derive(Debug)]
pub(super) struct Malformed {
    encoding: &'static Encoding,
    /// Bytes of UTF-8 that were made of what stands before them.
    before: usize,
}

impl std::error::Error for Malformed {}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its bytes are no {} after the first {} KiB or so",
            self.encoding.name(),
            self.before.div_ceil(1024)
        )
    }
}

/// A reader of UTF-8 made from one of another encoding.
struct Converted<R> {
    reader: R,
    decoder: Decoder,
    /// Bytes as they were read, and which of them are not yet converted.
    raw: Vec<u8>,
    unread: Range<usize>,
    /// Converted text, and which of it is not yet handed out.
    text: Vec<u8>,
    ungiven: Range<usize>,
    before: usize,
    ended: bool,
}

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

impl<R: Read> Converted<R> {
    fn new(reader: R, encoding: &'static Encoding) -> Self {
        let (raw, text) = (vec![0; PIECE], vec![0; PIECE]);
        let decoder = encoding.new_decoder();
        Self { reader, decoder, raw, unread: 0..0, text, ungiven: 0..0, before: 0, ended: false }
    }

    /// Converts the next piece.
    fn fill(&mut self) -> io::Result<()> {
        if self.unread.is_empty() {
            self.unread = 0..read_some(&mut self.reader, &mut self.raw)?;
            self.ended = self.unread.is_empty();
        }
        let source = &self.raw[self.unread.clone()];
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(source, &mut self.text, self.ended);
        self.unread.start += read;
        self.ungiven = 0..written;
        self.before += written;
        match result {
            DecoderResult::Malformed(..) => {
                let malformed = Malformed { encoding: self.decoder.encoding(), before: self.before };
                Err(io::Error::new(io::ErrorKind::InvalidData, malformed))
            }
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
        }
    }
}

/// Reads at least one byte, unless the end is reached.
fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl<R: Read> Read for Converted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.ungiven.is_empty() && !self.ended {
            self.fill()?;
        }
        let count = out.len().min(self.ungiven.len());
        out[..count].copy_from_slice(&self.text[self.ungiven.start..][..count]);
        self.ungiven.start += count;
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    /// A reader that gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = out.len().min(1).min(self.0.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn utf_16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn a_converted_text_is_the_same_however_it_comes() {
        let text = format!("größe,µ,𝄞\n{}", "1.5,2,3\n".repeat(20_000));
        for (bytes, encoding) in [
            (utf_16(&format!("\u{feff}{text}"), u16::to_le_bytes), UTF_16LE),
            (utf_16(&format!("\u{feff}{text}"), u16::to_be_bytes), UTF_16BE),
            (utf_16(&text, u16::to_le_bytes), UTF_16LE),
        ] {
            let mut found = String::new();
            Converted::new(&bytes[..], encoding).read_to_string(&mut found).unwrap();
            assert!(found == text);
            let mut found = String::new();
            Converted::new(Slow(&bytes), encoding).read_to_string(&mut found).unwrap();
            assert!(found == text);
        }
    }

    #[test]
    fn half_a_letter_at_the_end_is_told() {
        let mut bytes = utf_16("a,b\n1,2\n", u16::to_le_bytes);
        bytes.pop();
        let error = Converted::new(&bytes[..], UTF_16LE).read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.get_ref().unwrap().is::<Malformed>(), "{error}");
    }
}

//! The beginning of a text: what is looked at before anything is decided.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use memchr::{memchr, memchr_iter, memrchr};

use super::fields::{self, State};
use crate::dialect::Delimiter;
use crate::error::{Error, Result};
use crate::schema::ReadOptions;

/// Bytes to look at first; more when they hold no whole row.
const FIRST_LOOK: usize = 1 << 20;
/// Rows that tell how a text is written and whether its first line is a header, and the cells of them that are
/// kept for that.
const FEW_ROWS: usize = 100;
const FEW_CELLS: usize = 1 << 16;

/// The fields of a record.
pub(super) type Record<'a> = Vec<Cow<'a, [u8]>>;

/// The beginning of a text.
pub(super) struct Head {
    pub(super) text: Vec<u8>,
    /// Whether this is all there is.
    pub(super) whole: bool,
}

/// Where the first line that is not blank starts, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) offset: usize,
    pub(super) line: usize,
}

impl Head {
    /// Reads the beginning of a text, at least the header and one row if there are that many and they may be
    /// so long.
    pub(super) fn read(reader: &mut dyn Read, delimiter: u8, options: &ReadOptions) -> std::io::Result<Self> {
        let mut text = Vec::new();
        let mut wanted = FIRST_LOOK;
        loop {
            let missing = wanted - text.len();
            let got = reader.take(missing as u64).read_to_end(&mut text)?;
            let lines = memrchr(b'\n', &text).map_or(0, |i| i + 1);
            let enough = fields::survey(&text[..lines], delimiter, State::Record).rows >= 3;
            if got < missing || enough || wanted > options.piece_bytes {
                return Ok(Self { text, whole: got < missing });
            }
            wanted *= 2;
        }
    }

    /// Refuses what is no text.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let what = match self.text[..] {
            [0x1f, 0x8b, ..] => "it is compressed by gzip; give it the ending .gz",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed by zstd; give it the ending .zst",
            [b'P', b'A', b'R', b'1', ..] => "it is a Parquet file; give it the ending .parquet",
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "it is an Arrow file; give it the ending .arrow",
            _ if memchr(0, &self.text).is_some() => "it contains NUL bytes; is its ending right?",
            _ => return Ok(()),
        };
        Err(Error::NotText { path: path.into(), what: what.into() })
    }

    /// Where the records start, and the delimiter if the text says itself which it is: spreadsheets write and
    /// understand a first line such as `sep=;`.
    pub(super) fn start(&self) -> (Start, Option<Delimiter>) {
        let text = &self.text;
        let mut start = Start { offset: if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }, line: 1 };
        self.skip_blank(&mut start);
        let told = match text[start.offset..] {
            [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter, b'\n', ..] => Some((delimiter, 6)),
            [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter, b'\r', b'\n', ..] => {
                Some((delimiter, 7))
            }
            _ => None,
        };
        if let Some((_, length)) = told {
            start = Start { offset: start.offset + length, line: start.line + 1 };
            self.skip_blank(&mut start);
        }
        (start, told.map(|(delimiter, _)| Delimiter::of(delimiter)))
    }

    fn skip_blank(&self, start: &mut Start) {
        while let [b'\n', ..] | [b'\r', b'\n', ..] = self.text[start.offset..] {
            start.offset += if self.text[start.offset] == b'\n' { 1 } else { 2 };
            start.line += 1;
        }
    }

    /// The whole records from a place on, blank lines aside.
    pub(super) fn records(&self, start: usize, delimiter: u8) -> impl Iterator<Item = Record<'_>> {
        let text = &self.text;
        let mut pos = start;
        std::iter::from_fn(move || {
            while pos < text.len() {
                let (record, end) = fields::record(text, pos, delimiter)?;
                let cut_off = !self.whole && end == text.len() && text.last() != Some(&b'\n');
                let line = &text[pos..end - usize::from(text[end - 1] == b'\n')];
                pos = end;
                if !cut_off && !fields::is_blank(line) {
                    return Some(record);
                }
            }
            None
        })
    }

    /// How many cells the first line has if this separates them.
    pub(super) fn first_width(&self, start: usize, delimiter: Delimiter) -> usize {
        let rest = &self.text[start..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        1 + memchr_iter(delimiter.byte(), line).count()
    }

    /// The first few of them.
    pub(super) fn few_records(&self, start: usize, delimiter: u8) -> Vec<Record<'_>> {
        let mut cells = 0;
        let few = |record: &Record<'_>| {
            cells += record.len();
            cells <= FEW_CELLS.max(record.len())
        };
        self.records(start, delimiter).take(FEW_ROWS).take_while(few).collect()
    }
}

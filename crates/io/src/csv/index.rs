//! Where the records of a text file start: one parallel look at line breaks and quotes, before any number is parsed.
//!
//! The file is cut into ranges of fixed size, each moved to the next line break. Whether that break is the end of a
//! record or stands inside a quoted field, only the ranges before can tell; so each range is surveyed for both cases
//! at once, and a cheap pass in order then picks the right one. The result is exact for any quoting, and the rows
//! before each chunk are known.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memchr::memchr;
use rayon::prelude::*;

use super::fields::{self, State, Survey};
use crate::error::{Error, Result};
use crate::positioned::read_at;

/// Whole records: their bytes, their rows and their first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) bytes: Range<u64>,
    pub(super) rows: Range<usize>,
    pub(super) first_line: usize,
}

/// A range moved to line breaks, surveyed for both states in which it may be entered.
struct Segment {
    bytes: Range<u64>,
    record: Survey,
    quoted: Survey,
}

/// The part of a file that holds rows.
pub(super) struct Body<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a File,
    pub(super) bytes: Range<u64>,
    pub(super) first_line: usize,
    pub(super) delimiter: u8,
}

/// Cuts the body into extents of about `size` bytes.
pub(super) fn build(body: &Body<'_>, size: u64) -> Result<Vec<Extent>> {
    let size = size.max(1);
    let count = (body.bytes.end - body.bytes.start).div_ceil(size);
    let segments: Vec<Result<Option<Segment>>> = (0..count)
        .into_par_iter()
        .map(|i| {
            let start = body.bytes.start + i * size;
            body.segment(start..(start + size).min(body.bytes.end))
        })
        .collect();
    body.join(segments)
}

impl Body<'_> {
    /// Surveys the lines that start in a range; `None` when none does.
    fn segment(&self, range: Range<u64>) -> Result<Option<Segment>> {
        // The byte before the range tells whether a line starts right with it.
        let before = u64::from(range.start > self.bytes.start);
        let offset = range.start - before;
        let mut text = self.read(offset, range.end - offset)?;
        let skip = match before {
            0 => 0,
            _ => match memchr(b'\n', &text) {
                Some(i) if offset + i as u64 + 1 < range.end => i + 1,
                _ => return Ok(None),
            },
        };
        self.finish_line(&mut text, range.end)?;
        let start = offset + skip as u64;
        let survey = |state| fields::survey(&text[skip..], self.delimiter, state);
        Ok(Some(Segment {
            bytes: start..start + (text.len() - skip) as u64,
            record: survey(State::Record),
            quoted: survey(State::Quoted),
        }))
    }

    /// Reads on until the last line is whole.
    fn finish_line(&self, text: &mut Vec<u8>, mut offset: u64) -> Result<()> {
        const STEP: u64 = 1 << 16;
        while text.last() != Some(&b'\n') && offset < self.bytes.end {
            let more = self.read(offset, STEP.min(self.bytes.end - offset))?;
            let end = memchr(b'\n', &more).map_or(more.len(), |i| i + 1);
            text.extend_from_slice(&more[..end]);
            offset += more.len() as u64;
        }
        Ok(())
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        read_extent(self.path, self.file, &(offset..offset + length))
    }

    /// Picks the right survey of each segment, in order.
    fn join(&self, segments: Vec<Result<Option<Segment>>>) -> Result<Vec<Extent>> {
        let mut extents: Vec<Extent> = Vec::with_capacity(segments.len());
        let (mut state, mut line, mut row) = (State::Record, self.first_line, 0);
        for segment in segments {
            let Some(Segment { bytes, record, quoted }) = segment? else { continue };
            let survey = if state == State::Record { record } else { quoted };
            match (state, extents.last_mut()) {
                // A quoted field reaches into this segment: its records belong to the extent before.
                (State::Quoted, Some(last)) => {
                    last.bytes.end = bytes.end;
                    last.rows.end += survey.rows;
                }
                _ => extents.push(Extent { bytes, rows: row..row + survey.rows, first_line: line }),
            }
            line += survey.lines;
            row += survey.rows;
            state = survey.end;
        }
        let first_line = extents.last().map_or(self.first_line, |e| e.first_line);
        extents.retain(|e| !e.rows.is_empty());
        match state {
            State::Record => Ok(extents),
            State::Quoted => Err(Error::Unclosed { path: self.path.into(), line: first_line }),
        }
    }
}

/// Bytes of a file that must be there: it was longer a moment ago.
pub(super) fn read_extent(path: &Path, file: &File, bytes: &Range<u64>) -> Result<Vec<u8>> {
    let length = usize::try_from(bytes.end - bytes.start)
        .map_err(|e| Error::Read { path: path.into(), source: std::io::Error::other(e) })?;
    let mut text = vec![0; length];
    match read_at(file, &mut text, bytes.start).map_err(Error::read(path))? {
        n if n == length => Ok(text),
        _ => Err(Error::Changed { path: path.into() }),
    }
}

//! Where the records of a text file start: one parallel look at line breaks and quotes, before any number is
//! parsed.
//!
//! The file is cut into ranges of fixed size, each moved to the next line break. Whether that break is the
//! end of a record or stands inside a quoted field, only the ranges before can tell; so each range is
//! surveyed for both cases at once, and a cheap pass in order then picks the right one. The result is exact
//! for any quoting, and the rows before each chunk are known.

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
    /// Whether its last line was given up on, as it is too long for a record.
    endless: bool,
}

/// The part of a file that holds rows.
pub(super) struct Body<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a File,
    pub(super) bytes: Range<u64>,
    pub(super) first_line: usize,
    pub(super) delimiter: u8,
    /// Most bytes that a record may have.
    pub(super) longest: u64,
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
        let endless = !self.finish_line(&mut text, range.end)?;
        let start = offset + skip as u64;
        let survey = |state| fields::survey(&text[skip..], self.delimiter, state);
        Ok(Some(Segment {
            bytes: start..start + (text.len() - skip) as u64,
            record: survey(State::Record),
            quoted: survey(State::Quoted),
            endless,
        }))
    }

    /// Reads on until the last line is whole; gives up when that makes it too long for a record.
    fn finish_line(&self, text: &mut Vec<u8>, from: u64) -> Result<bool> {
        const STEP: u64 = 1 << 16;
        let mut offset = from;
        while text.last() != Some(&b'\n') && offset < self.bytes.end {
            if offset - from > self.longest {
                return Ok(false);
            }
            let more = self.read(offset, STEP.min(self.bytes.end - offset))?;
            let end = memchr(b'\n', &more).map_or(more.len(), |i| i + 1);
            text.extend_from_slice(&more[..end]);
            offset += more.len() as u64;
        }
        Ok(true)
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        read_extent(self.path, self.file, &(offset..offset + length))
    }

    /// Picks the right survey of each segment, in order.
    fn join(&self, segments: Vec<Result<Option<Segment>>>) -> Result<Vec<Extent>> {
        let mut joined = Joined::new(self.first_line, segments.len());
        for segment in segments {
            if let Some(segment) = segment? {
                joined.add(&segment);
                if segment.endless || joined.open > self.longest {
                    let most = usize::try_from(self.longest).unwrap_or(usize::MAX);
                    return Err(Error::LongRow { path: self.path.into(), line: joined.last_line, most });
                }
            }
        }
        joined.extents.retain(|e| !e.rows.is_empty());
        match joined.state {
            State::Record => Ok(joined.extents),
            State::Quoted => Err(Error::Unclosed { path: self.path.into(), line: joined.last_line }),
        }
    }
}

/// Segments in order, as far as they are joined.
struct Joined {
    extents: Vec<Extent>,
    /// How the next segment is entered.
    state: State,
    /// The lines and rows so far.
    line: usize,
    row: usize,
    /// Bytes so far of a record that is not at its end yet.
    open: u64,
    /// The line in which the last segment of records starts, to which an open record belongs.
    last_line: usize,
}

impl Joined {
    fn new(first_line: usize, segments: usize) -> Self {
        let extents = Vec::with_capacity(segments);
        Self { extents, state: State::Record, line: first_line, row: 0, open: 0, last_line: first_line }
    }

    fn add(&mut self, segment: &Segment) {
        let Segment { bytes, record, quoted, .. } = segment;
        let survey = if self.state == State::Record { record } else { quoted };
        let (entered, entered_lines) = survey.entered;
        let start = bytes.start + entered as u64;
        // A quoted field reaches into this segment: the rest of its record belongs to the extent before.
        if let Some(last) = self.extents.last_mut().filter(|_| entered > 0) {
            last.bytes.end = start;
        }
        if start < bytes.end {
            self.last_line = self.line + entered_lines;
            let rows = self.row..self.row + survey.rows;
            self.extents.push(Extent { bytes: start..bytes.end, rows, first_line: self.last_line });
        }
        let length = bytes.end - bytes.start;
        self.open = match survey.end {
            State::Record => 0,
            State::Quoted if start < bytes.end => length - survey.cut as u64,
            State::Quoted => self.open + length,
        };
        (self.line, self.row, self.state) = (self.line + survey.lines, self.row + survey.rows, survey.end);
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

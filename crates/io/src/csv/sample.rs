//! The beginning of a text file: its header, and which columns hold numbers.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use arrow_schema::DataType;
use memchr::{memchr, memrchr};

use super::cell::{self, Cell};
use super::fields::{self, State};
use crate::error::{Error, Result};
use crate::schema::{Column, Kind, default_name};

/// Bytes to look at first; more when they hold no whole row.
const FIRST_LOOK: usize = 1 << 20;
/// Rows that decide whether a column is numeric.
const SAMPLE_ROWS: usize = 1000;
/// A single row longer than this is a quote that was never closed.
pub(super) const LONGEST_RECORD: usize = 1 << 30;

/// What the beginning of a file tells.
pub(super) struct Sample {
    pub(super) columns: Vec<Column>,
    /// Whether there is a header; without one the columns are called x1, x2, ….
    pub(super) named: bool,
    /// Offset of the first row.
    pub(super) data_start: usize,
    /// Line of the first row, counted from 1.
    pub(super) first_line: usize,
}

/// The beginning of a text.
pub(super) struct Head {
    pub(super) text: Vec<u8>,
    /// Whether this is all there is.
    pub(super) whole: bool,
}

/// Reads the beginning of a text, at least the header and one row if there are that many.
pub(super) fn read_head(reader: &mut dyn Read, delimiter: u8) -> std::io::Result<Head> {
    let mut head = Vec::new();
    let mut wanted = FIRST_LOOK;
    loop {
        let missing = wanted - head.len();
        let got = reader.take(missing as u64).read_to_end(&mut head)?;
        let lines = memrchr(b'\n', &head).map_or(0, |i| i + 1);
        let enough = fields::survey(&head[..lines], delimiter, State::Record).rows >= 3;
        if got < missing || enough || wanted >= LONGEST_RECORD {
            return Ok(Head { text: head, whole: got < missing });
        }
        wanted *= 2;
    }
}

/// Looks at the beginning of a file.
pub(super) fn examine(path: &Path, head: &Head, delimiter: u8) -> Result<Sample> {
    let Head { text: head, whole } = head;
    check_text(path, head)?;
    let mut start = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut line = 1;
    while let [b'\n', ..] | [b'\r', b'\n', ..] = head[start..] {
        start += if head[start] == b'\n' { 1 } else { 2 };
        line += 1;
    }
    if start == head.len() {
        return Err(Error::Empty { path: path.into() });
    }
    let (header, end) =
        fields::record(head, start, delimiter).ok_or_else(|| Error::Unclosed { path: path.into(), line })?;
    let named = !header.iter().all(|f| matches!(cell::read(f), Cell::Number(_)));
    let names = match named {
        true => read_names(path, &header)?,
        false => (0..header.len()).map(default_name).collect(),
    };
    if named {
        line += memchr::memchr_iter(b'\n', &head[start..end]).count();
        start = end;
    }
    if fields::survey(&head[start..], delimiter, State::Record).rows == 0 {
        return Err(Error::NoRows { path: path.into() });
    }
    let columns = names.into_iter().zip(kinds(&head[start..], *whole, header.len(), delimiter));
    let columns = columns.map(|(name, kind)| Column { name, kind, data_type: DataType::Utf8 }).collect();
    Ok(Sample { columns, named, data_start: start, first_line: line })
}

fn check_text(path: &Path, head: &[u8]) -> Result<()> {
    let what = match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it seems to be UTF-16; save it as UTF-8",
        [0x1f, 0x8b, ..] => "it is compressed by gzip; give it the ending .gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed by zstd; give it the ending .zst",
        [b'P', b'A', b'R', b'1', ..] => "it is a Parquet file; give it the ending .parquet",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "it is an Arrow file; give it the ending .arrow",
        _ if memchr(0, head).is_some() => "it contains NUL bytes; is its ending right?",
        _ => return Ok(()),
    };
    Err(Error::NotText { path: path.into(), what: what.into() })
}

fn read_names(path: &Path, header: &[Cow<'_, [u8]>]) -> Result<Vec<String>> {
    header.iter().enumerate().map(|(i, field)| read_name(path, i, field)).collect()
}

fn read_name(path: &Path, index: usize, field: &[u8]) -> Result<String> {
    let not_text = |what: &str| Error::NotText { path: path.into(), what: what.into() };
    let name =
        std::str::from_utf8(field).map_err(|_| not_text("the header is not UTF-8; convert the file"))?;
    match name.trim() {
        name if name.contains('\r') => {
            Err(not_text("its lines end in bare carriage returns; convert them to line feeds"))
        }
        "" => Ok(default_name(index)),
        name => Ok(name.to_owned()),
    }
}

/// What the cells of a column are, so far.
#[derive(Default, Clone)]
struct Tally {
    numbers: usize,
    texts: usize,
    first_text: Option<String>,
}

impl Tally {
    fn add(&mut self, row: usize, field: &[u8]) {
        match cell::read(field) {
            Cell::Number(_) => self.numbers += 1,
            Cell::Hole => {}
            Cell::Text => {
                self.texts += 1;
                self.first_text.get_or_insert_with(|| format!("row {row} says '{}'", cell::show(field)));
            }
        }
    }

    /// Text among more numbers is a mistake in a numeric column: it will be told when the cell is read.
    fn kind(self) -> Kind {
        match self.first_text {
            Some(text) if self.texts >= self.numbers => Kind::Other(text),
            _ => Kind::Double,
        }
    }
}

/// A column is numeric unless half of the cells of the sample, holes aside, are text.
fn kinds(text: &[u8], whole: bool, n_columns: usize, delimiter: u8) -> Vec<Kind> {
    let mut tallies = vec![Tally::default(); n_columns];
    let (mut pos, mut rows) = (0, 0);
    while pos < text.len() && rows < SAMPLE_ROWS {
        let Some((record, end)) = fields::record(text, pos, delimiter) else { break };
        let cut_off = !whole && end == text.len() && text.last() != Some(&b'\n');
        if !cut_off && !fields::is_blank(&text[pos..end - usize::from(text[end - 1] == b'\n')]) {
            rows += 1;
            tallies.iter_mut().zip(&record).for_each(|(tally, field)| tally.add(rows, field));
        }
        pos = end;
    }
    tallies.into_iter().map(Tally::kind).collect()
}

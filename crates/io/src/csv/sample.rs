//! The beginning of a text file: its header, and which columns hold numbers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use arrow_schema::DataType;
use memchr::{memchr, memrchr};

use super::cell::{self, Cell};
use super::fields::{self, State};
use super::header::{self, Decision};
use crate::error::{Error, Result};
use crate::header::HeaderGuess;
use crate::schema::{Column, Kind, ReadOptions, check_width, default_name};

/// Bytes to look at first; more when they hold no whole row.
const FIRST_LOOK: usize = 1 << 20;
/// Rows that decide whether a column is numeric.
const SAMPLE_ROWS: usize = 1000;
/// Rows that tell whether the first line is a header, and the cells of them that are kept for that.
const HEADER_ROWS: usize = 100;
const HEADER_CELLS: usize = 1 << 16;

/// What the beginning of a file tells.
pub(super) struct Sample {
    pub(super) columns: Vec<Column>,
    /// Whether there is a header; without one the columns are called x1, x2, ….
    pub(super) named: bool,
    /// What was guessed about that, where it is not obvious.
    pub(super) guess: Option<HeaderGuess>,
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

/// Reads the beginning of a text, at least the header and one row if there are that many and they may be so
/// long.
pub(super) fn read_head(
    reader: &mut dyn Read,
    delimiter: u8,
    options: &ReadOptions,
) -> std::io::Result<Head> {
    let mut head = Vec::new();
    let mut wanted = FIRST_LOOK;
    loop {
        let missing = wanted - head.len();
        let got = reader.take(missing as u64).read_to_end(&mut head)?;
        let lines = memrchr(b'\n', &head).map_or(0, |i| i + 1);
        let enough = fields::survey(&head[..lines], delimiter, State::Record).rows >= 3;
        if got < missing || enough || wanted > options.piece_bytes {
            return Ok(Head { text: head, whole: got < missing });
        }
        wanted *= 2;
    }
}

/// Looks at the beginning of a file.
pub(super) fn examine(path: &Path, head: &Head, delimiter: u8, options: &ReadOptions) -> Result<Sample> {
    let text = &head.text;
    check_text(path, text)?;
    let (mut start, mut first_line) = beginning(text);
    if start == text.len() {
        return Err(Error::Empty { path: path.into() });
    }
    let (first, end) = first_record(path, head, (start, first_line), delimiter, options)?;
    let Decision { header: named, guess } = match options.header {
        Some(header) => Decision::obvious(header),
        None if has_all(&first, options.features.as_deref()) => Decision::obvious(true),
        None => {
            let quoted = header::quoted_above(text, start, end, delimiter);
            header::decide(&first, &quoted, &below(head, end, delimiter))
        }
    };
    let names = match named {
        true => read_names(path, &first)?,
        false => (0..first.len()).map(default_name).collect(),
    };
    if named {
        first_line += memchr::memchr_iter(b'\n', &text[start..end]).count();
        start = end;
    }
    if fields::survey(&text[start..], delimiter, State::Record).rows == 0 {
        return Err(Error::NoRows { path: path.into() });
    }
    let columns = names.into_iter().zip(kinds(head, start, first.len(), delimiter));
    let columns = columns.map(|(name, kind)| Column::new(name, kind, DataType::Utf8)).collect();
    Ok(Sample { columns, named, guess, data_start: start, first_line })
}

/// Whether a line has the names of all features that a model needs.
fn has_all(line: &[Cow<'_, [u8]>], features: Option<&[String]>) -> bool {
    let cells: HashSet<&[u8]> = line.iter().map(|cell| cell.trim_ascii()).collect();
    features.is_some_and(|features| features.iter().all(|name| cells.contains(name.as_bytes())))
}

/// Where the first line that is not blank starts, and its number.
fn beginning(text: &[u8]) -> (usize, usize) {
    let mut start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut line = 1;
    while let [b'\n', ..] | [b'\r', b'\n', ..] = text[start..] {
        start += if text[start] == b'\n' { 1 } else { 2 };
        line += 1;
    }
    (start, line)
}

/// The fields of the first record and where it ends, if it is not too long and has not too many fields.
fn first_record<'a>(
    path: &Path,
    head: &'a Head,
    (start, line): (usize, usize),
    delimiter: u8,
    options: &ReadOptions,
) -> Result<(Vec<Cow<'a, [u8]>>, usize)> {
    let text = &head.text;
    let end = fields::record_end(text, start, delimiter, false);
    let end = match end {
        Some(end) if head.whole || text[end - 1] == b'\n' => end,
        None if head.whole => return Err(Error::Unclosed { path: path.into(), line }),
        _ => return Err(Error::LongRow { path: path.into(), line, most: options.piece_bytes }),
    };
    check_width(path, 1 + memchr::memchr_iter(delimiter, &text[start..end]).count(), options)?;
    let record = fields::record(text, start, delimiter);
    record.ok_or_else(|| Error::Unclosed { path: path.into(), line })
}

/// The records below the first line that tell whether it is a header.
fn below(head: &Head, start: usize, delimiter: u8) -> Vec<Vec<Cow<'_, [u8]>>> {
    let mut cells = 0;
    let few = |record: &Vec<Cow<'_, [u8]>>| {
        cells += record.len();
        cells <= HEADER_CELLS.max(record.len())
    };
    records(head, start, delimiter).take(HEADER_ROWS).take_while(few).collect()
}

/// The whole records from a place on, blank lines aside.
fn records(head: &Head, start: usize, delimiter: u8) -> impl Iterator<Item = Vec<Cow<'_, [u8]>>> {
    let text = &head.text;
    let mut pos = start;
    std::iter::from_fn(move || {
        while pos < text.len() {
            let (record, end) = fields::record(text, pos, delimiter)?;
            let cut_off = !head.whole && end == text.len() && text.last() != Some(&b'\n');
            let line = &text[pos..end - usize::from(text[end - 1] == b'\n')];
            pos = end;
            if !cut_off && !fields::is_blank(line) {
                return Some(record);
            }
        }
        None
    })
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
struct CellCounts {
    numbers: usize,
    texts: usize,
    first_text: Option<String>,
}

impl CellCounts {
    fn add(&mut self, row: usize, field: &[u8]) {
        match cell::read(field) {
            Cell::Number(_) => self.numbers += 1,
            Cell::Missing => {}
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

/// A column is numeric unless half of the cells of the sample, missing values aside, are text.
fn kinds(head: &Head, start: usize, n_columns: usize, delimiter: u8) -> Vec<Kind> {
    let mut counts = vec![CellCounts::default(); n_columns];
    for (i, record) in records(head, start, delimiter).take(SAMPLE_ROWS).enumerate() {
        counts.iter_mut().zip(&record).for_each(|(count, field)| count.add(i + 1, field));
    }
    counts.into_iter().map(CellCounts::kind).collect()
}

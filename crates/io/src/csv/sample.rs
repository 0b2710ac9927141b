//! What the beginning of a text tells: how it is written, its header, and which columns hold numbers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use arrow_schema::DataType;

use super::cell::{Cell, CellRules};
use super::counts::{self, CellCounts};
use super::encoding::CellEncoding;
use super::fields::{self, State};
use super::head::{Head, Record, Start};
use super::header::{self, Decision};
use super::recognise::{self, Decimals, Separation};
use crate::dialect::{DecimalMark, Delimiter};
use crate::error::{Error, Result};
use crate::header::HeaderGuess;
use crate::recognised::Recognised;
use crate::schema::{Column, ReadOptions, check_width, default_name};

/// What the beginning of a file tells.
pub(super) struct Sample {
    pub(super) columns: Vec<Column>,
    pub(super) dialect: Dialect,
    /// Whether there is a header; without one the columns are called x1, x2, ….
    pub(super) named: bool,
    /// What was guessed about that, where it is not obvious.
    pub(super) guess: Option<HeaderGuess>,
    pub(super) recognised: Vec<Recognised>,
    /// Where the first row is.
    pub(super) start: Start,
}

/// How a text is written.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) rules: CellRules,
    pub(super) encoding: CellEncoding,
}

/// Looks at the beginning of a file.
pub(super) fn examine(path: &Path, head: &Head, promised: u8, options: &ReadOptions) -> Result<Sample> {
    head.check(path)?;
    let (mut start, told) = head.start();
    if start.offset == head.text.len() {
        return Err(Error::Empty { path: path.into() });
    }
    let mut recognised = Vec::new();
    let (dialect, decimals) = dialect(path, head, start, (promised, told), options, &mut recognised)?;
    let line = FirstLine::read(path, head, start, &dialect, options)?;
    let named = line.decision.header;
    if named {
        start.line += memchr::memchr_iter(b'\n', &head.text[start.offset..line.end]).count();
        start.offset = line.end;
    }
    if fields::survey(&head.text[start.offset..], dialect.delimiter, State::Record).rows == 0 {
        return Err(Error::NoRows { path: path.into() });
    }
    let counts = counts::count(head, start.offset, line.cells.len(), &dialect);
    if head.whole && counts.iter().all(CellCounts::is_emptied) {
        return Err(Error::AllMissing { path: path.into() });
    }
    let is_index = named && (line.row_names || counts[0].is_numbering(&line.cells[0]));
    let names = match named {
        true => read_names(path, &line.cells, dialect.encoding, is_index)?,
        false => (0..line.cells.len()).map(default_name).collect(),
    };
    if line.row_names {
        recognised.push(Recognised::RowNames(names[0].clone()));
    }
    recognised.extend(counts::remarks(&names, &counts, &decimals));
    let column = |(name, counts): (String, CellCounts)| Column::new(name, counts.kind(), DataType::Utf8);
    let mut columns: Vec<Column> = names.into_iter().zip(counts).map(column).collect();
    columns[0].is_index = is_index;
    Ok(Sample { columns, dialect, named, guess: line.decision.guess, recognised, start })
}

/// How the text is written, and which columns leave the decimal mark open.
fn dialect(
    path: &Path,
    head: &Head,
    start: Start,
    delimiters: (u8, Option<Delimiter>),
    options: &ReadOptions,
    recognised: &mut Vec<Recognised>,
) -> Result<(Dialect, Decimals)> {
    let encoding = CellEncoding::of(path, head, options.encoding, recognised)?;
    let delimiter = delimiter(path, head, start, delimiters, options, recognised)?;
    first_end(path, head, start, delimiter.byte(), options)?;
    let decimals = decimals(path, head, start, delimiter, options, recognised)?;
    let rules = CellRules::new(decimals.mark, &options.missing);
    Ok((Dialect { delimiter: delimiter.byte(), rules, encoding }, decimals))
}

/// What separates the cells: what somebody says, what the text says itself, or what is recognised.
fn delimiter(
    path: &Path,
    head: &Head,
    start: Start,
    (promised, told): (u8, Option<Delimiter>),
    options: &ReadOptions,
    recognised: &mut Vec<Recognised>,
) -> Result<Delimiter> {
    let by_contents = |promised| recognise::delimiter(head, start.offset, promised, options);
    if let Some(given) = options.delimiter {
        let is_absent = || head.few_records(start.offset, given.byte()).iter().all(|r| r.len() == 1);
        return match by_contents(given) {
            Separation::Other(found) if is_absent() => {
                Err(Error::AbsentDelimiter { path: path.into(), given, found })
            }
            _ => Ok(given),
        };
    }
    if let Some(told) = told {
        return Ok(told);
    }
    let promised = Delimiter::of(promised);
    match by_contents(promised) {
        Separation::Promised => Ok(promised),
        Separation::Other(found) => {
            recognised.push(Recognised::Delimiter(found));
            Ok(found)
        }
        Separation::Open(first, second) => Err(Error::OpenDelimiter { path: path.into(), first, second }),
    }
}

fn decimals(
    path: &Path,
    head: &Head,
    start: Start,
    delimiter: Delimiter,
    options: &ReadOptions,
    recognised: &mut Vec<Recognised>,
) -> Result<Decimals> {
    match options.decimal {
        Some(DecimalMark::Comma) if delimiter == Delimiter::COMMA => {
            Err(Error::SameMark { path: path.into() })
        }
        Some(mark) => Ok(Decimals { mark, open: Vec::new() }),
        None => {
            let decimals = recognise::decimals(head, start.offset, delimiter, options);
            if decimals.mark != DecimalMark::Point {
                recognised.push(Recognised::Decimal(decimals.mark));
            }
            Ok(decimals)
        }
    }
}

/// The first line, one cell for each column.
struct FirstLine<'a> {
    cells: Record<'a>,
    /// Where the next record starts.
    end: usize,
    decision: Decision,
    /// Whether the first of the cells is not in the file: above the names of the rows, which R writes so.
    row_names: bool,
}

impl<'a> FirstLine<'a> {
    fn read(
        path: &Path,
        head: &'a Head,
        start: Start,
        dialect: &Dialect,
        options: &ReadOptions,
    ) -> Result<Self> {
        let record = fields::record(&head.text, start.offset, dialect.delimiter);
        let (mut cells, end) =
            record.ok_or_else(|| Error::Unclosed { path: path.into(), line: start.line })?;
        let below = head.few_records(end, dialect.delimiter);
        let mut quoted = header::quoted_above(&head.text, start.offset, end, dialect.delimiter);
        let decide = |cells: &Record<'a>, quoted: &[bool]| match options.header {
            Some(header) => Decision::obvious(header),
            None if has_all(cells, dialect.encoding, options.features.as_deref()) => Decision::obvious(true),
            None => header::decide(cells, quoted, &below, &dialect.rules),
        };
        if has_row_names(&head.text, end, cells.len(), &below, dialect) {
            cells.insert(0, Cow::Borrowed(b""));
            quoted.insert(0, false);
            let decision = decide(&cells, &quoted);
            if decision.header {
                return Ok(Self { cells, end, decision, row_names: true });
            }
            cells.remove(0);
            quoted.remove(0);
        }
        let decision = decide(&cells, &quoted);
        Ok(Self { cells, end, decision, row_names: false })
    }
}

/// Whether all records below a line have one cell more than it, and the first of them is no number of the
/// table: in quotes, or text. A number could as well be cut by a decimal comma.
fn has_row_names(text: &[u8], second: usize, width: usize, below: &[Record<'_>], dialect: &Dialect) -> bool {
    let is_wider = !below.is_empty() && below.iter().all(|record| record.len() == width + 1);
    let is_text = |record: &Record<'_>| dialect.rules.read(&record[0]) == Cell::Text;
    let is_quoted = || fields::quoted(text, second, dialect.delimiter).first() == Some(&true);
    is_wider && (below.iter().all(is_text) || is_quoted() || dialect.delimiter != b',')
}

/// Whether a line has the names of all features that a model needs.
fn has_all(line: &[Cow<'_, [u8]>], encoding: CellEncoding, features: Option<&[String]>) -> bool {
    let Some(features) = features else { return false };
    let cells: HashSet<Cow<'_, str>> =
        line.iter().filter_map(|cell| encoding.text(cell.trim_ascii())).collect();
    features.iter().all(|name| cells.contains(name.as_str()))
}

/// Where the first record ends, if it is not too long and has not too many fields.
fn first_end(path: &Path, head: &Head, start: Start, delimiter: u8, options: &ReadOptions) -> Result<usize> {
    let (text, line) = (&head.text, start.line);
    let end = match fields::record_end(text, start.offset, delimiter, false) {
        Some(end) if head.whole || text[end - 1] == b'\n' => end,
        None if head.whole => return Err(Error::Unclosed { path: path.into(), line }),
        _ => return Err(Error::LongRow { path: path.into(), line, most: options.piece_bytes }),
    };
    check_width(path, 1 + memchr::memchr_iter(delimiter, &text[start.offset..end]).count(), options)?;
    Ok(end)
}

/// The names of the columns; those without one are called by their position, row numbers `row`.
fn read_names(
    path: &Path,
    header: &[Cow<'_, [u8]>],
    encoding: CellEncoding,
    is_index: bool,
) -> Result<Vec<String>> {
    let names = header.iter().enumerate().map(|(i, field)| read_name(path, i, field, encoding));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    if is_index && header[0].trim_ascii().is_empty() {
        name_index(&mut names);
    }
    Ok(names)
}

/// Calls a first column without a name what it holds, unless another one is called so.
pub(crate) fn name_index(names: &mut [String]) {
    const INDEX: &str = "row";
    if names.iter().all(|name| name != INDEX) {
        INDEX.clone_into(&mut names[0]);
    }
}

fn read_name(path: &Path, index: usize, field: &[u8], encoding: CellEncoding) -> Result<String> {
    let Some(name) = encoding.text(field) else {
        let what = format!("the name of column {} is not in its encoding", index + 1);
        return Err(Error::UnknownEncoding { path: path.into(), what });
    };
    match name.trim() {
        name if name.contains('\r') => {
            let what = "its lines end in bare carriage returns; convert them to line feeds";
            Err(Error::NotText { path: path.into(), what: what.into() })
        }
        "" => Ok(default_name(index)),
        name => Ok(name.to_owned()),
    }
}

//! Text to cells: the hot loop over the bytes of one piece.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use covary::data::Order;
use memchr::memchr_iter;

use super::cell::{self, Cell};
use super::fields;
use super::sample::Dialect;
use crate::batch::{Batch, Numbers};
use crate::dialect::DecimalMark;
use crate::error::{Error, Place, Result};
use crate::schema::{Role, Schema};

/// What is needed to understand the records of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) schema: Arc<Schema>,
    pub(super) roles: Vec<Role>,
    /// Names of all columns of the file.
    pub(super) names: Vec<String>,
    pub(super) dialect: Dialect,
}

/// Whole records, and where in the file they stand.
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    /// Rows in it.
    pub(super) rows: usize,
    /// Index of its first row, counted from 0.
    pub(super) first_row: usize,
    /// Number of its first line, counted from 1.
    pub(super) first_line: usize,
}

/// Parses a piece; the columns to carry only when asked for.
pub(super) fn parse(layout: &Layout, piece: &Piece<'_>, carried: bool) -> Result<Batch> {
    let mut parser = Parser::new(layout, piece, carried);
    parser.run()?;
    let carried = parser.carried.into_iter().map(|mut b| Arc::new(b.finish()) as ArrayRef).collect();
    let cells = (Numbers::F64(parser.cells), Order::Rows);
    Batch::new(&layout.schema, piece.first_row, piece.rows, cells, parser.weights, carried)
}

struct Parser<'a> {
    layout: &'a Layout,
    piece: &'a Piece<'a>,
    row: usize,
    /// Start of the current record.
    start: usize,
    cells: Vec<f64>,
    weights: Option<Vec<f64>>,
    carried: Vec<StringBuilder>,
    keep_carried: bool,
}

impl<'a> Parser<'a> {
    fn new(layout: &'a Layout, piece: &'a Piece<'a>, keep_carried: bool) -> Self {
        let schema = &layout.schema;
        let texts = if keep_carried { schema.carried.len() } else { 0 };
        Self {
            layout,
            piece,
            row: 0,
            start: 0,
            cells: vec![f64::NAN; piece.rows * schema.features.len()],
            weights: schema.weights.as_ref().map(|_| Vec::with_capacity(piece.rows)),
            carried: (0..texts).map(|_| StringBuilder::new()).collect(),
            keep_carried,
        }
    }

    fn run(&mut self) -> Result<()> {
        let text = self.piece.text;
        while self.start < text.len() {
            match text[self.start..] {
                [b'\n', ..] => self.start += 1,
                [b'\r', b'\n', ..] | [b'\r'] => self.start = (self.start + 2).min(text.len()),
                _ => self.start = self.record()?,
            }
        }
        match self.row == self.piece.rows {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// Reads the record at `start`; gives the start of the next.
    fn record(&mut self) -> Result<usize> {
        if self.row == self.piece.rows {
            return Err(self.changed());
        }
        let Layout { roles, dialect: Dialect { delimiter, .. }, schema, .. } = self.layout;
        let (text, p) = (self.piece.text, schema.features.len());
        let (mut pos, mut left) = (self.start, roles.len());
        for (column, role) in roles.iter().enumerate() {
            let end = match *role {
                Role::Feature(k) => {
                    let (value, end) = self.number(column, pos)?;
                    self.cells[self.row * p + k] = value;
                    end
                }
                role => self.other(column, role, pos)?,
            };
            left -= 1;
            match text.get(end) {
                Some(byte) if *byte == *delimiter && left > 0 => pos = end + 1,
                None | Some(b'\n') if left == 0 => {
                    self.row += 1;
                    return Ok(end + 1);
                }
                _ => break,
            }
        }
        Err(self.ragged())
    }

    /// The number that starts at `pos`, and the byte that ends it.
    #[inline]
    fn number(&self, column: usize, pos: usize) -> Result<(f64, usize)> {
        let text = self.piece.text;
        let Dialect { delimiter, rules, .. } = &self.layout.dialect;
        if rules.decimal == DecimalMark::Point
            && let Ok((value, length)) = fast_float2::parse_partial::<f64, _>(&text[pos..])
            && value.is_finite()
            && !rules.is_missing(value)
        {
            let end = pos + length;
            match text[end..] {
                [] | [b'\n', ..] => return Ok((value, end)),
                [byte, ..] if byte == *delimiter => return Ok((value, end)),
                [b'\r', b'\n', ..] => return Ok((value, end + 1)),
                _ => {}
            }
        }
        self.any_cell(column, pos)
    }

    /// The same without haste: blanks, quotes, missing values, and what is wrong with the rest.
    #[inline(never)]
    fn any_cell(&self, column: usize, pos: usize) -> Result<(f64, usize)> {
        let end = self.field_end(pos)?;
        let contents = fields::contents(self.piece.text, pos, end);
        match self.layout.dialect.rules.read(&contents) {
            Cell::Missing => Ok((f64::NAN, end)),
            Cell::Number(value) if value.is_finite() => Ok((value, end)),
            wrong => Err(self.bad_cell(column, wrong, self.shown(&contents))),
        }
    }

    /// A cell that is no feature; gives the byte that ends it.
    fn other(&mut self, column: usize, role: Role, pos: usize) -> Result<usize> {
        match role {
            Role::Weight => {
                let (value, end) = self.number(column, pos)?;
                self.weights.get_or_insert_default().push(value);
                Ok(end)
            }
            Role::Carried(k) if self.keep_carried => {
                let end = self.field_end(pos)?;
                let contents = fields::contents(self.piece.text, pos, end);
                match self.layout.dialect.encoding.text(&contents) {
                    Some(text) if text.is_empty() => self.carried[k].append_null(),
                    Some(text) => self.carried[k].append_value(text),
                    None => {
                        return Err(Error::NotUtf8 { place: self.place(), column: self.column_name(column) });
                    }
                }
                Ok(end)
            }
            _ => self.field_end(pos),
        }
    }

    #[inline]
    fn field_end(&self, pos: usize) -> Result<usize> {
        fields::field_end(self.piece.text, pos, self.layout.dialect.delimiter).ok_or_else(|| self.changed())
    }

    fn shown(&self, contents: &[u8]) -> String {
        cell::show_text(&self.layout.dialect.encoding.shown(contents))
    }

    fn place(&self) -> Place {
        Place {
            path: self.layout.schema.path.clone(),
            row: self.piece.first_row + self.row + 1,
            line: Some(self.piece.first_line + memchr_iter(b'\n', &self.piece.text[..self.start]).count()),
        }
    }

    fn column_name(&self, column: usize) -> String {
        self.layout.names[column].clone()
    }

    /// A row with too few fields often fails first at a cell that moved: then the number of fields is the
    /// news.
    #[cold]
    fn bad_cell(&self, column: usize, wrong: Cell, text: String) -> Error {
        let (place, column) = (self.place(), self.column_name(column));
        match wrong {
            _ if self.found_fields() != self.layout.roles.len() => self.ragged(),
            Cell::Number(_) => Error::Infinite { place, column, text },
            _ => Error::NotANumber { place, column, text },
        }
    }

    fn found_fields(&self) -> usize {
        fields::record(self.piece.text, self.start, self.layout.dialect.delimiter).map_or(0, |(f, _)| f.len())
    }

    #[cold]
    fn ragged(&self) -> Error {
        Error::Ragged { place: self.place(), expected: self.layout.roles.len(), found: self.found_fields() }
    }

    #[cold]
    fn changed(&self) -> Error {
        Error::Changed { path: self.layout.schema.path.clone() }
    }
}

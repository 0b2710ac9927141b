//! The rows of a sheet as typed columns: which are numbers is decided by all of their cells.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field};
use calamine::{Data, ExcelDateTime};

use super::sheet::Sheet;
use crate::csv::{Cell, CellRules, Decision, Numbering, decide, name_index, show_text};
use crate::dialect::DecimalMark;
use crate::error::{Error, Place, Result};
use crate::header::HeaderGuess;
use crate::schema::{Column, Kind, ReadOptions, Role, Schema, check_width, default_name};

/// Rows that tell whether the first one is a header.
const HEADER_ROWS: usize = 100;

/// A sheet whose columns are known.
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) named: bool,
    pub(super) guess: Option<HeaderGuess>,
    /// The rows below the header, by their number in the sheet.
    rows: Vec<(u32, BTreeMap<u32, Data>)>,
    /// The first column of the sheet that holds something.
    first: u32,
    rules: CellRules,
}

impl Table {
    pub(super) fn of(path: &Path, sheet: Sheet, options: &ReadOptions) -> Result<Self> {
        let keys = || sheet.rows.values().flat_map(BTreeMap::keys).copied();
        let (Some(first), Some(last)) = (keys().min(), keys().max()) else {
            return Err(Error::Empty { path: path.into() });
        };
        let width = (last - first) as usize + 1;
        check_width(path, width, options)?;
        let rules = CellRules::new(DecimalMark::Point, &options.missing);
        let mut rows: Vec<(u32, BTreeMap<u32, Data>)> = sheet.rows.into_iter().collect();
        let Decision { header: named, guess } = header(&rows, first, width, &rules, options);
        let mut names: Vec<String> = (0..width).map(|j| name(&rows[0].1, first, j, named)).collect();
        let is_index = named && !rows[0].1.contains_key(&first) && is_numbering(&rows[1..], first);
        if is_index {
            name_index(&mut names);
        }
        if named {
            rows.remove(0);
        }
        if rows.is_empty() {
            return Err(Error::NoRows { path: path.into() });
        }
        let mut table = Self { columns: Vec::new(), named, guess, rows, first, rules };
        let kinds: Vec<Kind> = (0..width).map(|j| table.kind(j)).collect();
        let column = |(name, kind): (String, Kind)| {
            let data_type = if kind == Kind::Boolean { DataType::Boolean } else { DataType::Utf8 };
            Column::new(name, kind, data_type)
        };
        table.columns = names.into_iter().zip(kinds).map(column).collect();
        table.columns[0].is_index = is_index;
        Ok(table)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = (usize, Option<&Data>)> {
        let key = key(self.first, column);
        self.rows.iter().enumerate().map(move |(i, (_, cells))| (i, cells.get(&key)))
    }

    /// A column is numeric unless half of its cells, missing values aside, are something else.
    fn kind(&self, column: usize) -> Kind {
        let (mut numbers, mut booleans, mut texts, mut first_text) = (0, 0, 0, None);
        for (i, cell) in self.cells(column).filter_map(|(i, cell)| Some((i, cell?))) {
            match (cell, value(cell, &self.rules)) {
                (Data::Bool(_), _) => booleans += 1,
                (_, Cell::Number(_)) => numbers += 1,
                (_, Cell::Missing) => {}
                (_, Cell::Text) => {
                    texts += 1;
                    let shown = || format!("row {} says '{}'", i + 1, show_text(&text(cell)));
                    first_text.get_or_insert_with(shown);
                }
            }
        }
        match first_text {
            None if booleans > 0 && numbers == 0 => Kind::Boolean,
            Some(text) if texts + booleans >= numbers => Kind::Other(text),
            None if booleans >= numbers && booleans > 0 => Kind::Other("truth values and numbers".into()),
            _ => Kind::Double,
        }
    }

    /// The columns that are used, cut into batches.
    pub(super) fn batches(
        &self,
        path: &Path,
        schema: &Schema,
        roles: &[Role],
        options: &ReadOptions,
    ) -> Result<Vec<RecordBatch>> {
        let arrays: Vec<ArrayRef> = roles
            .iter()
            .enumerate()
            .map(|(j, role)| match role {
                Role::Feature(_) | Role::Weight => self.numbers(path, j),
                Role::Carried(_) if self.columns[j].kind == Kind::Boolean => Ok(self.booleans(j)),
                Role::Carried(_) | Role::Skip => Ok(self.texts(j)),
            })
            .collect::<Result<_>>()?;
        let field = |(j, array): (usize, &ArrayRef)| {
            Field::new(&self.columns[j].name, array.data_type().clone(), true)
        };
        let fields: Vec<Field> = arrays.iter().enumerate().map(field).collect();
        let fields = Arc::new(arrow_schema::Schema::new(fields));
        let n = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let whole = RecordBatch::try_new_with_options(fields, arrays, &n)
            .map_err(Error::damaged(path, schema.format.name()))?;
        let size = (options.chunk_bytes / (size_of::<f64>() * schema.features.len().max(1))).max(1);
        let starts = (0..self.rows.len()).step_by(size);
        Ok(starts.map(|start| whole.slice(start, size.min(self.rows.len() - start))).collect())
    }

    fn numbers(&self, path: &Path, column: usize) -> Result<ArrayRef> {
        let number =
            |(i, cell): (usize, Option<&Data>)| match cell.map(|cell| (cell, value(cell, &self.rules))) {
                None | Some((_, Cell::Missing)) => Ok(None),
                Some((_, Cell::Number(value))) if value.is_finite() => Ok(Some(value)),
                Some((cell, found)) => {
                    let line = Some(self.rows[i].0 as usize + 1);
                    let place = Place { path: path.into(), row: i + 1, line };
                    let (column, text) = (self.columns[column].name.clone(), show_text(&text(cell)));
                    Err(match found {
                        Cell::Number(_) => Error::Infinite { place, column, text },
                        _ => Error::NotANumber { place, column, text },
                    })
                }
            };
        Ok(Arc::new(self.cells(column).map(number).collect::<Result<Float64Array>>()?))
    }

    fn booleans(&self, column: usize) -> ArrayRef {
        let truth = |cell: Option<&Data>| match cell {
            Some(Data::Bool(value)) => Some(*value),
            _ => None,
        };
        Arc::new(self.cells(column).map(|(_, cell)| truth(cell)).collect::<BooleanArray>())
    }

    fn texts(&self, column: usize) -> ArrayRef {
        let mut texts = StringBuilder::new();
        self.cells(column).for_each(|(_, cell)| texts.append_option(cell.map(text)));
        Arc::new(texts.finish())
    }
}

/// Whether a column numbers the rows, as the index of a data frame does.
fn is_numbering(rows: &[(u32, BTreeMap<u32, Data>)], column: u32) -> bool {
    let mut numbering = Numbering::default();
    for (_, row) in rows {
        numbering.add(row.get(&column).map(text).unwrap_or_default().as_bytes());
    }
    numbering.holds()
}

#[allow(clippy::cast_possible_truncation, reason = "a sheet has fewer columns than 2^32")]
fn key(first: u32, column: usize) -> u32 {
    first + column as u32
}

/// Whether the first row is a header, told as in text; its numbers are like names if they are stored as text.
fn header(
    rows: &[(u32, BTreeMap<u32, Data>)],
    first: u32,
    width: usize,
    rules: &CellRules,
    options: &ReadOptions,
) -> Decision {
    let bytes = |row: &BTreeMap<u32, Data>| -> Vec<Cow<'static, [u8]>> {
        let cell = |j| row.get(&key(first, j)).map_or_else(Vec::new, |cell| text(cell).into_bytes());
        (0..width).map(|j| Cow::Owned(cell(j))).collect()
    };
    if let Some(header) = options.header {
        return Decision::obvious(header);
    }
    let top = bytes(&rows[0].1);
    let has = |name: &String| top.iter().any(|cell| cell.trim_ascii() == name.as_bytes());
    if options.features.as_ref().is_some_and(|features| features.iter().all(has)) {
        return Decision::obvious(true);
    }
    let below: Vec<Vec<Cow<'_, [u8]>>> =
        rows.iter().skip(1).take(HEADER_ROWS).map(|(_, row)| bytes(row)).collect();
    let is_text = |row: usize, j| {
        let cell = rows.get(row).and_then(|(_, row)| row.get(&key(first, j)));
        matches!(cell, Some(Data::String(_)))
    };
    let quoted: Vec<bool> = (0..width).map(|j| is_text(0, j) && !is_text(1, j)).collect();
    decide(&top, &quoted, &below, rules)
}

fn name(row: &BTreeMap<u32, Data>, first: u32, column: usize, named: bool) -> String {
    match row.get(&key(first, column)).filter(|_| named).map(text) {
        Some(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => default_name(column),
    }
}

/// What a cell says; text is read as in a text file.
fn value(cell: &Data, rules: &CellRules) -> Cell {
    match cell {
        Data::Int(_) | Data::Float(_) | Data::String(_) | Data::Error(_) => rules.read(text(cell).as_bytes()),
        Data::Empty => Cell::Missing,
        Data::Bool(_) | Data::DateTime(_) | Data::DateTimeIso(_) | Data::DurationIso(_) => Cell::Text,
    }
}

/// A cell as text; numbers read back exactly.
fn text(cell: &Data) -> String {
    match cell {
        Data::DateTime(time) => date(*time),
        other => other.to_string(),
    }
}

/// As ISO 8601 writes dates; a duration as hours, minutes and seconds.
fn date(time: ExcelDateTime) -> String {
    if time.is_duration() {
        #[allow(clippy::cast_possible_truncation, reason = "saturates")]
        let seconds = (time.as_f64() * 86_400.0).round() as i64;
        return format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    match (hour, minute, second, milli) {
        (0, 0, 0, 0) => date,
        (_, _, _, 0) => format!("{date}T{hour:02}:{minute:02}:{second:02}"),
        _ => format!("{date}T{hour:02}:{minute:02}:{second:02}.{milli:03}"),
    }
}

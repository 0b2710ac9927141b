//! One sheet of a workbook as rows of cells, and what must not be in it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use calamine::{Data, Dimensions, Ods, OdsError, Reader, SheetType, Xlsx, XlsxError};
use zip::ZipArchive;

use crate::arrow_columns::guard;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::reader::open_regular;
use crate::schema::ReadOptions;

/// The cells of a sheet that hold something, row by row.
pub(super) struct Sheet {
    pub(super) name: String,
    /// The other sheets of the workbook.
    pub(super) others: Vec<String>,
    /// Rows that hold something, by their number in the sheet, from 0 on.
    pub(super) rows: BTreeMap<u32, BTreeMap<u32, Data>>,
}

const FORMAT: &str = "spreadsheet";

/// Reads the sheet that is asked for, or the first one.
pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Sheet> {
    let (file, _) = open_regular(path, Format::Spreadsheet)?;
    let most = options.part_bytes();
    let is_ods = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("ods"));
    check_size(path, BufReader::new(&file), most)?;
    let source = BufReader::new(file);
    match is_ods {
        false => read_xlsx(path, source, options, most),
        true => read_ods(path, source, options, most),
    }
}

/// Refuses what would be too large once it is unpacked. What is no archive is left to the reader to complain of.
fn check_size(path: &Path, source: impl Read + Seek, most: usize) -> Result<()> {
    let sizes = guard(path, FORMAT, || {
        let Ok(mut archive) = ZipArchive::new(source) else { return Ok(0) };
        let files = 0..archive.len();
        let size = |i| archive.by_index_raw(i).map_or(0, |file| file.size());
        Ok::<u64, String>(files.map(size).fold(0, u64::saturating_add))
    })?;
    check(path, usize::try_from(sizes).unwrap_or(usize::MAX), most)
}

fn check(path: &Path, needed: usize, most: usize) -> Result<()> {
    match needed <= most {
        true => Ok(()),
        false => Err(Error::LargePart { path: path.into(), part: "a spreadsheet", needed, most }),
    }
}

/// The name of the sheet that is asked for, by name or by number from 1 on, and those of the others.
fn choose(path: &Path, names: &[String], wanted: Option<&str>) -> Result<(String, Vec<String>)> {
    let chosen = match wanted {
        None => names.first(),
        Some(wanted) => names.iter().find(|name| *name == wanted).or_else(|| {
            let number: usize = wanted.parse().ok()?;
            names.get(number.checked_sub(1)?)
        }),
    };
    let Some(chosen) = chosen.cloned() else {
        let known = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let sheet = wanted.unwrap_or_default().into();
        return Err(Error::UnknownSheet { path: path.into(), sheet, known });
    };
    let others = names.iter().filter(|name| **name != chosen).cloned().collect();
    Ok((chosen, others))
}

fn read_xlsx(path: &Path, source: impl Read + Seek, options: &ReadOptions, most: usize) -> Result<Sheet> {
    let open = || match Xlsx::new(source) {
        Err(XlsxError::Password) => Ok(None),
        Err(error) => Err(error),
        Ok(book) => Ok(Some(book)),
    };
    let mut book = guard(path, FORMAT, open)?.ok_or_else(|| Error::Password { path: path.into() })?;
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let names: Vec<String> = sheets.map(|sheet| sheet.name.clone()).collect();
    let (name, others) = choose(path, &names, options.sheet.as_deref())?;
    let merged = guard(path, FORMAT, || book.merge_cells_by_sheet_name(&name))?;
    let mut cells = Cells::new(path, most);
    let mut reader = guard(path, FORMAT, || book.worksheet_cells_reader(&name))?;
    while let Some(cell) = guard(path, FORMAT, || reader.next_cell_with_formula())? {
        cells.add(cell.pos, cell.value.into(), cell.formula.is_some())?;
    }
    cells.check_merged(&merged)?;
    Ok(Sheet { name, others, rows: cells.rows })
}

fn read_ods(path: &Path, mut source: impl Read + Seek, options: &ReadOptions, most: usize) -> Result<Sheet> {
    if guard(path, FORMAT, || has_covered_cells(&mut source))? {
        let what = "it has merged cells, of which only the first would have a value; separate them first";
        return Err(Error::Unsupported { path: path.into(), what: what.into() });
    }
    let open = || match Ods::new(source) {
        Err(OdsError::Password) => Ok(None),
        Err(error) => Err(error),
        Ok(book) => Ok(Some(book)),
    };
    let mut book = guard(path, FORMAT, open)?.ok_or_else(|| Error::Password { path: path.into() })?;
    let (name, others) = choose(path, &book.sheet_names(), options.sheet.as_deref())?;
    let range = guard(path, FORMAT, || book.worksheet_range(&name))?;
    let formulas = guard(path, FORMAT, || book.worksheet_formula(&name))?;
    let mut cells = Cells::new(path, most);
    let (row, column) = range.start().unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, reason = "a sheet has fewer rows and columns than 2^32")]
    let place = |(i, j): (usize, usize)| (row + i as u32, column + j as u32);
    for (i, j, value) in range.used_cells() {
        cells.add(place((i, j)), value.clone(), false)?;
    }
    for (i, j, _) in formulas.used_cells() {
        let (row, column) = formulas.start().unwrap_or_default();
        #[allow(clippy::cast_possible_truncation, reason = "as above")]
        cells.add_formula((row + i as u32, column + j as u32))?;
    }
    Ok(Sheet { name, others, rows: cells.rows })
}

/// Whether cells lie under others: the library reads them as empty ones.
fn has_covered_cells(source: &mut (impl Read + Seek)) -> Result<bool, String> {
    let mut content = Vec::new();
    let Ok(mut archive) = ZipArchive::new(&mut *source) else { return Ok(false) };
    if let Ok(mut file) = archive.by_name("content.xml") {
        // An encrypted file is told as such later.
        drop(file.read_to_end(&mut content));
    }
    source.rewind().map_err(|error| error.to_string())?;
    Ok(memchr::memmem::find(&content, b"<table:covered-table-cell").is_some())
}

/// Cells as they are collected.
struct Cells<'a> {
    path: &'a Path,
    rows: BTreeMap<u32, BTreeMap<u32, Data>>,
    bytes: usize,
    most: usize,
}

/// What a cell takes in the maps.
const CELL_BYTES: usize = 2 * size_of::<Data>();

impl<'a> Cells<'a> {
    fn new(path: &'a Path, most: usize) -> Self {
        Self { path, rows: BTreeMap::new(), bytes: 0, most }
    }

    fn add(&mut self, (row, column): (u32, u32), value: Data, is_formula: bool) -> Result<()> {
        match value {
            Data::Empty if is_formula => return self.add_formula((row, column)),
            Data::Empty => return Ok(()),
            Data::String(text) if text.trim().is_empty() => return Ok(()),
            value => {
                self.rows.entry(row).or_default().insert(column, value);
            }
        }
        self.bytes += CELL_BYTES;
        check(self.path, self.bytes, self.most)
    }

    /// A formula must have a value: programs that only write formulas leave it out.
    fn add_formula(&self, (row, column): (u32, u32)) -> Result<()> {
        let is_empty = self.rows.get(&row).is_none_or(|cells| !cells.contains_key(&column));
        match is_empty {
            false => Ok(()),
            true => Err(Error::Unsupported {
                path: self.path.into(),
                what: format!(
                    "the file does not hold the value of the formula in cell {}; open it in a spreadsheet program and \
                     save it there",
                    address(row, column)
                ),
            }),
        }
    }

    /// Merged cells have one value, which would leave the others missing. Below the table they do not matter.
    fn check_merged(&self, merged: &[Dimensions]) -> Result<()> {
        let touched = merged
            .iter()
            .find(|area| area.start != area.end && self.rows.range(area.start.0..).next().is_some());
        match touched {
            None => Ok(()),
            Some(area) => Err(Error::Unsupported {
                path: self.path.into(),
                what: format!(
                    "the cells {} to {} are merged, and only the first has a value; separate them first",
                    address(area.start.0, area.start.1),
                    address(area.end.0, area.end.1)
                ),
            }),
        }
    }
}

/// A cell as spreadsheets call it: B7.
fn address(row: u32, column: u32) -> impl Display {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        letters.push(char::from(b'A' + u8::try_from((rest - 1) % 26).unwrap_or(0)));
        rest = (rest - 1) / 26;
    }
    format!("{}{}", letters.into_iter().rev().collect::<String>(), u64::from(row) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_called_as_in_spreadsheets() {
        for (row, column, name) in
            [(0, 0, "A1"), (6, 25, "Z7"), (0, 26, "AA1"), (9, 701, "ZZ10"), (0, 702, "AAA1")]
        {
            assert_eq!(address(row, column).to_string(), name);
        }
    }
}

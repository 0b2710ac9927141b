//! Tables as people have them (`tests/tables`), against what pandas reads when it is told how they are written.

use std::path::PathBuf;

use crate::support::*;
use covary_io::{MissingWords, ReadOptions, Schema, open};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    file: String,
    told: Told,
    /// Whether it cannot be read rightly, not even by pandas, or must not be.
    refused: bool,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    cells: Vec<Row>,
}

#[derive(Deserialize)]
struct Told {
    delimiter: Option<String>,
    decimal: Option<String>,
    na: Option<Vec<String>>,
    header: Option<bool>,
    encoding: Option<String>,
    sheet: Option<String>,
}

impl Told {
    fn options(&self) -> ReadOptions {
        ReadOptions {
            delimiter: self.delimiter.as_ref().map(|text| text.parse().unwrap()),
            decimal: self.decimal.as_ref().map(|text| text.parse().unwrap()),
            missing: MissingWords::new(self.na.iter().flatten()),
            header: self.header,
            encoding: self.encoding.as_ref().map(|text| text.parse().unwrap()),
            sheet: self.sheet.clone(),
            ..small(64)
        }
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name)
}

fn tables() -> Vec<Table> {
    let text = std::fs::read_to_string(path("expected.json")).unwrap();
    serde_json::from_str::<Expected>(&text).unwrap().tables
}

fn read(table: &Table, options: &ReadOptions) -> covary_io::Result<(Schema, Vec<Row>)> {
    let path = path(&table.file);
    let rows = load(&path, options)?;
    Ok((open(&path, options)?.schema().clone(), rows))
}

fn is_right(table: &Table, schema: &Schema, rows: &[Row]) -> bool {
    schema.features == table.names && rows == table.cells
}

#[test]
fn tables_are_read_as_pandas_reads_them_when_told() {
    let tables = tables();
    assert!(tables.len() >= 60);
    for table in &tables {
        match (read(table, &table.told.options()), table.refused) {
            (Ok((schema, rows)), false) => {
                assert!(is_right(table, &schema, &rows), "{}: {:?} {rows:?}", table.file, schema.features);
            }
            (Err(error), true) => assert!(error.to_string().contains(&table.file), "{error}"),
            (Ok((schema, rows)), true) => panic!("{}: {:?} {rows:?}", table.file, schema.features),
            (Err(error), false) => panic!("{}: {error}", table.file),
        }
    }
}

/// What is said of a file that leads to how it has to be read.
fn said(table: &Table, schema: &Schema) -> String {
    let recognised = schema.recognised.iter().map(ToString::to_string);
    let guess = schema.header_guess.iter().map(ToString::to_string);
    let carried = schema.carried.iter().filter(|column| table.names.contains(&column.name));
    let carried = carried.map(|column| format!("'{}' is not numeric", column.name));
    recognised.chain(guess).chain(carried).collect::<Vec<_>>().join("; ")
}

/// Without being told a table is read rightly, or refused, or it is said what is open.
#[test]
fn no_table_is_read_wrongly_in_silence() {
    let (mut right, mut others) = (0, Vec::new());
    for table in tables() {
        match read(&table, &small(64)) {
            Ok((schema, rows)) if is_right(&table, &schema, &rows) => right += 1,
            Ok((schema, _)) => {
                let said = said(&table, &schema);
                assert!(!said.is_empty(), "{}: {:?}", table.file, schema.features);
                others.push(format!("{}: {said}", table.file));
            }
            Err(error) if table.refused => drop(error),
            Err(error) => others.push(error.to_string().replace(&path("").display().to_string(), "")),
        }
    }
    let refused = tables().iter().filter(|table| table.refused).count();
    assert_eq!(right + refused + others.len(), tables().len());
    assert!(others.len() <= 8, "{} of {} are not read:\n{}", others.len(), tables().len(), others.join("\n"));
}

/// The type of a column and what becomes of it.
#[test]
fn dates_and_truth_values_of_a_spreadsheet_are_carried() {
    let options = ReadOptions::default();
    let reader = open(path("sheet-types.xlsx"), &options).unwrap();
    let carried: Vec<String> = reader.schema().carried.iter().map(|c| c.name.clone()).collect();
    assert_eq!(carried, ["site", "day", "good"]);
    let batch = reader.batches().next().unwrap().unwrap();
    assert_eq!(covary_io::shown_value(&batch.carried[1], 2), "2024-02-29");
    assert!(["true", "false"].contains(&covary_io::shown_value(&batch.carried[2], 0).as_str()));
}

#[test]
fn what_a_spreadsheet_must_not_hold_is_named() {
    for (file, words) in [
        ("sheet-merged.xlsx", "cells B2 to B3 are merged"),
        ("sheet-formulas.xlsx", "formula in cell B2"),
        ("sheet-password.xlsx", "protected by a password"),
    ] {
        let error = failure(open(path(file), &ReadOptions::default()));
        assert!(error.to_string().contains(words), "{error}");
    }
    let sheet = |sheet: &str| ReadOptions { sheet: Some(sheet.into()), ..ReadOptions::default() };
    assert_eq!(open(path("sheet-second.xlsx"), &sheet("2")).unwrap().schema().features.len(), 3);
    let error = failure(open(path("sheet-second.xlsx"), &sheet("Date")));
    assert!(error.to_string().contains("no sheet 'Date'; its sheets are 'Notes', 'Data'"), "{error}");
    let error = failure(open(path("csv-excel.csv"), &sheet("Data")));
    assert!(error.to_string().contains("a sheet has no meaning"), "{error}");
    // A stray cell is told with its row in the table and in the sheet.
    let error = failure(load(&path("sheet-stray.xlsx"), &ReadOptions::default()));
    assert!(error.to_string().contains("row 4 (line 6), column 'weight': '?' is not a number"), "{error}");
}

#[test]
fn damaged_spreadsheets_are_errors() {
    let folder = Folder::new();
    let whole = std::fs::read(path("sheet.xlsx")).unwrap();
    for (length, at) in
        [(whole.len() / 2, 0), (whole.len() - 3, 0), (whole.len(), 300), (whole.len(), 900), (10, 0)]
    {
        let mut bytes = whole[..length].to_vec();
        if at > 0 {
            bytes[at..at + 40].fill(0x5a);
        }
        let file = folder.file("t.xlsx", &bytes);
        if let Err(error) = load(&file, &ReadOptions::default()) {
            assert!(error.to_string().contains("t.xlsx"), "{error}");
        }
    }
    let file = folder.file("text.xlsx", "a,b\n1,2\n");
    assert!(failure(open(&file, &ReadOptions::default())).to_string().contains("not a whole spreadsheet"));
}

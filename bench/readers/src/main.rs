//! How fast text becomes a table of numbers, beside the `csv` crate and arrow-csv, on the same files in one run:
//! `cargo run --release --manifest-path bench/readers/Cargo.toml -- [MEGABYTES]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that people run by hand")]

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::{DataType, Field, Schema};
use covary_io::{DecimalMark, Loaded, ReadOptions, open};

const COLUMNS: usize = 50;

/// How a number is written.
type Format = fn(f64) -> String;

/// A file of about `size` bytes, its cells as `format` writes them.
fn make(path: &Path, size: usize, delimiter: char, format: Format) {
    let header: Vec<String> = (1..=COLUMNS).map(|j| format!("c{j}")).collect();
    let mut text = header.join(&delimiter.to_string()) + "\n";
    let mut state = 1_u64;
    while text.len() < size {
        for j in 0..COLUMNS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let end = if j + 1 == COLUMNS { '\n' } else { delimiter };
            write!(text, "{}{end}", format(10.0 * unit - 5.0)).unwrap();
        }
    }
    std::fs::write(path, text).unwrap();
}

fn ours(path: &Path, options: &ReadOptions) -> f64 {
    match open(path, options).unwrap().load(usize::MAX).unwrap() {
        Loaded::Table(table) => table.cells().get(table.shape().0 - 1, COLUMNS - 1),
        _ => unreachable!("everything fits"),
    }
}

/// The `csv` crate with the parser of numbers that we use too, into row-major cells.
fn by_csv(path: &Path) -> f64 {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let mut record = csv::ByteRecord::new();
    let mut cells: Vec<f64> = Vec::new();
    while reader.read_byte_record(&mut record).unwrap() {
        cells.extend(record.iter().map(|cell| fast_float2::parse::<f64, _>(cell).unwrap()));
    }
    cells[cells.len() - 1]
}

/// arrow-csv, whose columns are then put together row by row as ours are.
fn by_arrow(path: &Path) -> f64 {
    let fields: Vec<Field> = (1..=COLUMNS).map(|j| Field::new(format!("c{j}"), DataType::Float64, true)).collect();
    let reader = arrow_csv::ReaderBuilder::new(Arc::new(Schema::new(fields))).with_header(true);
    let mut cells: Vec<f64> = Vec::new();
    for batch in reader.build(File::open(path).unwrap()).unwrap() {
        let batch = batch.unwrap();
        let start = cells.len();
        cells.resize(start + batch.num_rows() * COLUMNS, 0.0);
        for (j, column) in batch.columns().iter().enumerate() {
            for (i, value) in column.as_primitive::<Float64Type>().values().iter().enumerate() {
                cells[start + i * COLUMNS + j] = *value;
            }
        }
    }
    cells[cells.len() - 1]
}

/// The best of a few runs in seconds, and the last cell.
fn best(mut run: impl FnMut() -> f64) -> (f64, f64) {
    let mut last = 0.0;
    let seconds = (0..3).map(|_| {
        let start = Instant::now();
        last = run();
        start.elapsed().as_secs_f64()
    });
    (seconds.fold(f64::INFINITY, f64::min), last)
}

fn main() {
    let megabytes: usize = std::env::args().nth(1).map_or(100, |a| a.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speed.csv");
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let formats: [(&str, Format); 3] =
        [("17 digits", |x| format!("{x:.16}")), ("shortest", |x| x.to_string()), ("3 decimals", |x| format!("{x:.3}"))];
    println!("MB/s         | ours, 1 thread | ours, {} threads | csv | arrow-csv | decimal comma, 1 thread",
        rayon::current_num_threads());
    for (name, format) in formats {
        make(&path, megabytes << 20, ',', format);
        let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
        let plain = ReadOptions::default();
        let runs = [
            best(|| one.install(|| ours(&path, &plain))),
            best(|| ours(&path, &plain)),
            best(|| by_csv(&path)),
            best(|| by_arrow(&path)),
        ];
        assert!(runs.iter().all(|(_, last)| *last == runs[0].1), "the same cells");
        let european = folder.path().join("european.csv");
        let text = std::fs::read_to_string(&path).unwrap().replace(',', ";").replace('.', ",");
        std::fs::write(&european, text).unwrap();
        let comma = ReadOptions { decimal: Some(DecimalMark::Comma), ..ReadOptions::default() };
        let comma = best(|| one.install(|| ours(&european, &comma)));
        assert!(comma.1 == runs[0].1, "the same cells");
        let speeds: Vec<String> = runs.iter().chain([&comma]).map(|(s, _)| format!("{:.0}", size / s)).collect();
        println!("{name:>12} | {}", speeds.join(" | "));
    }
}

//! Parts of files that do not fit in the memory limit are refused, with what to do.

use std::sync::Arc;

use crate::support::*;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use covary::data::RowSource;
use covary_io::{Error, ReadOptions, open};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const PIECE: usize = 64 << 10;

fn limited(chunk_bytes: usize) -> ReadOptions {
    ReadOptions { chunk_bytes, piece_bytes: PIECE, ..ReadOptions::default() }
}

/// What reading the text says, plain and compressed.
fn complaints(text: &str) -> [Error; 2] {
    let folder = Folder::new();
    let plain = folder.file("t.csv", text);
    let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
    [plain, gz].map(|path| failure(load(&path, &limited(1000))))
}

#[test]
fn a_row_that_is_too_long_is_refused_wherever_it_is() {
    let rows = "1,2\n".repeat(9);
    let long = "7".repeat(3 << 20);
    for text in [
        format!("a,{long}\n{rows}"),
        format!("a,b\n{rows}3,{long}\n{rows}"),
        format!("a,b\n{rows}3,\"{long}\"\n{rows}"),
        format!("a,b\n{rows}3,\"{}", "x,y\n".repeat(3 << 18)),
        format!("a,b\n\"3{}\",4\n", "\n".repeat(3 << 20)),
    ] {
        for error in complaints(&text) {
            let Error::LongRow { line, most, .. } = error else { panic!("{error}") };
            assert!((1..=11).contains(&line) && most == PIECE, "{line} {most}");
            assert!(error.to_string().contains("64 KiB") && error.to_string().contains("raise the limit"));
        }
    }
    // As long as it may be.
    let folder = Folder::new();
    let path = folder.file("t.csv", format!("a,t\n1,{}\n2,x\n", "y".repeat(PIECE - 100)));
    assert_eq!(load(&path, &limited(1000)).unwrap().len(), 2);
}

#[test]
fn more_columns_than_fit_are_refused_before_they_are_named() {
    let most = ReadOptions::PIECES * PIECE / 1024;
    let line = |columns: usize| vec!["1"; columns].join(",");
    for error in complaints(&format!("{}\n{}\n", line(most + 1), line(most + 1))) {
        assert!(
            matches!(error, Error::Wide { found, most: m, .. } if (found, m) == (most + 1, most)),
            "{error}"
        );
    }
    let folder = Folder::new();
    let path = folder.file("t.csv", format!("{}\n{}\n", line(most), line(most)));
    assert_eq!(load(&path, &limited(1000)).unwrap()[0].len(), most);
}

#[test]
fn quoted_line_breaks_do_not_pile_up_chunks() {
    let folder = Folder::new();
    let records = 500;
    let text: String = (0..records).map(|i| format!("{i},\"one\ntwo\nthree\nfour {i}\"\n")).collect();
    let path = folder.file("t.csv", format!("a,t\n{text}"));
    let reader = open(&path, &small(40)).unwrap();
    let grid = reader.grid().unwrap();
    // A chunk has its own bytes, and the rest of the record that it ends in.
    assert!(grid.n_chunks() > records / 3, "{} chunks", grid.n_chunks());
    let (rows, carried) = read_batches(&path, &small(40)).unwrap();
    assert_eq!(rows, (0..records).map(|i| vec![Some(i as f64)]).collect::<Vec<_>>());
    assert!(carried[0].iter().enumerate().all(|(i, t)| *t == Some(format!("one\ntwo\nthree\nfour {i}"))));
    // Lines are told as they stand in the file.
    let wrong = folder.file("w.csv", format!("a,t\n{text}oops,x\n"));
    let Error::NotANumber { place, .. } = failure(load(&wrong, &small(40))) else { panic!() };
    assert_eq!((place.row, place.line), (records + 1, Some(2 + 4 * records)));
}

fn batch(rows: usize) -> RecordBatch {
    let column: ArrayRef = Arc::new((0..rows).map(|i| i as f64).collect::<Float64Array>());
    RecordBatch::try_from_iter([("a", column)]).unwrap()
}

#[test]
fn a_page_of_parquet_that_is_too_large_is_refused() {
    let folder = Folder::new();
    let rows = 1 << 18; // 2 MiB, where 1 MiB is allowed
    let pages = |bytes: usize| {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_data_page_size_limit(bytes)
            .set_data_page_row_count_limit(usize::MAX)
            .set_write_batch_size(1 << 12)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch(1).schema(), Some(properties)).unwrap();
        writer.write(&batch(rows)).unwrap();
        folder.file("t.parquet", writer.into_inner().unwrap())
    };
    let error = failure(load(&pages(1 << 30), &limited(1000)));
    assert!(
        matches!(error, Error::LargePart { needed, most, .. } if needed > rows * 8 && most == 1 << 20),
        "{error}"
    );
    assert!(error.to_string().contains("page") && error.to_string().contains("raise the limit"), "{error}");
    assert_eq!(load(&pages(1 << 16), &limited(1 << 16)).unwrap().len(), rows);
}

#[test]
fn a_record_batch_of_arrow_that_is_too_large_is_refused() {
    let folder = Folder::new();
    let file = |rows: usize, compression| {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch(1).schema(), options).unwrap();
        writer.write(&batch(rows)).unwrap();
        folder.file("t.arrow", writer.into_inner().unwrap())
    };
    for compression in [None, Some(CompressionType::ZSTD)] {
        let error = failure(load(&file(1 << 18, compression), &limited(1000)));
        assert!(matches!(error, Error::LargePart { needed, .. } if needed >= 8 << 18), "{error}");
        assert!(error.to_string().contains("record batch"), "{error}");
        assert_eq!(load(&file(1 << 14, compression), &limited(1000)).unwrap().len(), 1 << 14);
    }
}

#[test]
fn a_long_window_of_zstd_is_refused() {
    use std::io::Write;
    let folder = Folder::new();
    let text = "a,b\n".to_owned() + &"1.5,2\n".repeat(1 << 20);
    let compress = |window: u32| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window).unwrap();
        encoder.write_all(text.as_bytes()).unwrap();
        folder.file("t.csv.zst", encoder.finish().unwrap())
    };
    let error = failure(load(&compress(22), &limited(1000)));
    assert!(matches!(&error, Error::Unsupported { what, .. } if what.contains("raise the limit")), "{error}");
    assert_eq!(load(&compress(20), &limited(1 << 16)).unwrap().len(), 1 << 20);
}

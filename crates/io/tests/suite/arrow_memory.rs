//! Record batches in memory are read like the file that holds them.

use std::sync::Arc;

use crate::support::*;
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::Schema;
use covary::data::RowSource;
use covary_io::{Error, Loaded, ReadOptions, Reader, Result, Selection, open, open_arrow};

fn column<T: Array + 'static>(array: T) -> ArrayRef {
    Arc::new(array)
}

/// Rows i of x = i, y = i² with every fourth missing, a name and a weight.
fn numbered(rows: std::ops::Range<i64>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("x", column(rows.clone().collect::<Int64Array>()), true),
        ("name", column(rows.clone().map(|i| Some(format!("r{i}"))).collect::<StringArray>()), true),
        (
            "y",
            column(rows.clone().map(|i| (i % 4 != 3).then_some((i * i) as f64)).collect::<Float64Array>()),
            true,
        ),
        ("w", column(rows.map(|i| Some(1.0 + i as f64)).collect::<Float64Array>()), true),
    ])
    .unwrap()
}

fn batches() -> Vec<RecordBatch> {
    vec![numbered(0..5), numbered(5..5), numbered(5..12)]
}

fn opened(options: &ReadOptions) -> Result<Reader> {
    open_arrow("X", &numbered(0..0).schema(), batches(), options)
}

fn table(reader: Reader) -> Vec<Row> {
    match reader.load(usize::MAX).unwrap() {
        Loaded::Table(table) => rows_of(table.cells()),
        _ => panic!("everything fits"),
    }
}

#[test]
fn batches_are_the_rows_of_the_file_that_holds_them() {
    let folder = Folder::new();
    let path = folder.path("t.arrow");
    let mut writer =
        FileWriter::try_new(std::fs::File::create(&path).unwrap(), &batches()[0].schema()).unwrap();
    batches().iter().for_each(|b| writer.write(b).unwrap());
    writer.finish().unwrap();
    let columns = Some(Selection::names(["y", "x"]));
    for options in [
        ReadOptions::default(),
        ReadOptions { columns, ..ReadOptions::default() },
        ReadOptions { weights: Some("w".into()), ..ReadOptions::default() },
    ] {
        let (ours, file) = (opened(&options).unwrap(), open(&path, &options).unwrap());
        assert_eq!(ours.schema().features, file.schema().features);
        assert_eq!((ours.schema().n_rows, ours.schema().named), (Some(12), true));
        assert_eq!(table(ours), load(&path, &options).unwrap());
    }
}

#[test]
fn a_grid_has_a_chunk_for_each_batch_that_has_rows() {
    let options = ReadOptions { weights: Some("w".into()), ..ReadOptions::default() };
    let grid = opened(&options).unwrap().grid().unwrap();
    assert_eq!((grid.n_chunks(), grid.n_rows(), grid.n_features()), (2, Some(12), 2));
    let second = grid.chunk(1).unwrap();
    assert_eq!((second.first_row(), second.nrows()), (5, 7));
    assert_eq!(rows_of(second.cells())[2], [Some(7.0), None]);
    assert_eq!(second.weights().unwrap()[0], 6.0);
    let names: Vec<String> = ["x", "y"].map(String::from).to_vec();
    assert_eq!(grid.feature_names(), Some(&names[..]));
}

#[test]
fn single_precision_stays_single_and_text_is_carried() {
    let singles = RecordBatch::try_from_iter([("a", column(Float32Array::from(vec![0.1, 0.2])))]).unwrap();
    let reader = open_arrow("X", &singles.schema(), vec![singles], &ReadOptions::default()).unwrap();
    assert!(reader.schema().single_precision);
    assert_eq!(table(reader), [[Some(f64::from(0.1_f32))], [Some(f64::from(0.2_f32))]]);
    let reader = opened(&ReadOptions::default()).unwrap();
    assert_eq!(reader.schema().carried.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["name"]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let no_rows = open_arrow("X", &numbered(0..0).schema(), vec![numbered(0..0)], &ReadOptions::default());
    assert_eq!(failure(no_rows).to_string(), "'X' has no rows");
    let wanted = |name: &str| Some(Selection::names([name]));
    let unknown = opened(&ReadOptions { columns: wanted("z"), ..ReadOptions::default() });
    assert!(failure(unknown).to_string().contains('z'));
    let text = opened(&ReadOptions { columns: wanted("name"), ..ReadOptions::default() });
    assert!(failure(text).to_string().contains("name"));
    let nothing = open_arrow("X", &Schema::empty(), vec![], &ReadOptions::default());
    assert!(!matches!(failure(nothing), Error::Open { .. }));
}

//! Parquet, Arrow IPC and NPY: types, order, precision, pieces; and every format read back after it was
//! written.

use std::path::Path;
use std::sync::Arc;

use crate::support::*;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int64Array,
    NullArray, RecordBatch, StringArray, UInt8Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::DataType;
use covary::data::{Cells, RowSource};
use covary::linalg::Mat;
use covary_io::{CarriedBecause, CarriedColumn, Loaded, ReadOptions, Selection, Writer, open};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;

fn column<T: Array + 'static>(array: T) -> ArrayRef {
    Arc::new(array)
}

fn many_types() -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("float", column(Float64Array::from(vec![Some(1.5), None, Some(f64::NAN)])), true),
        ("single", column(Float32Array::from(vec![0.1, 0.2, 0.3])), true),
        ("integer", column(Int64Array::from(vec![Some(-7), Some(1 << 40), None])), true),
        ("byte", column(UInt8Array::from(vec![0, 128, 255])), true),
        (
            "decimal",
            column(Decimal128Array::from(vec![125, -50, 0]).with_precision_and_scale(10, 2).unwrap()),
            true,
        ),
        ("nothing", column(NullArray::new(3)), true),
        ("flag", column(BooleanArray::from(vec![Some(true), Some(false), None])), true),
        ("text", column(StringArray::from(vec![Some("a"), None, Some("b,\"c\"")])), true),
        ("category", column(["u", "v", "u"].into_iter().collect::<DictionaryArray<Int32Type>>()), true),
    ])
    .unwrap()
}

fn write_parquet(path: &Path, batches: &[RecordBatch], group_rows: usize) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|b| writer.write(b).unwrap());
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batches: &[RecordBatch]) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &batches[0].schema()).unwrap();
    batches.iter().for_each(|b| writer.write(b).unwrap());
    writer.finish().unwrap();
}

/// The same batches in both formats.
fn both(folder: &Folder, batches: &[RecordBatch]) -> Vec<std::path::PathBuf> {
    write_parquet(&folder.path("t.parquet"), batches, 2);
    write_arrow(&folder.path("t.arrow"), batches);
    vec![folder.path("t.parquet"), folder.path("t.arrow")]
}

#[test]
fn numbers_of_every_type_are_features_and_the_rest_is_carried() {
    let folder = Folder::new();
    for path in both(&folder, &[many_types()]) {
        let schema = open(&path, &ReadOptions::default()).unwrap().schema().clone();
        assert_eq!(schema.features, ["float", "single", "integer", "byte", "decimal", "nothing"], "{path:?}");
        let carried: Vec<&str> = schema.carried.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(carried, ["flag", "text", "category"]);
        assert_eq!((schema.n_rows, schema.single_precision), (Some(3), false));
        let f = |x: f32| Some(f64::from(x));
        assert_eq!(
            load(&path, &ReadOptions::default()).unwrap(),
            [
                vec![Some(1.5), f(0.1), Some(-7.0), Some(0.0), Some(1.25), None],
                vec![None, f(0.2), Some((1u64 << 40) as f64), Some(128.0), Some(-0.5), None],
                vec![None, f(0.3), None, Some(255.0), Some(0.0), None],
            ]
        );
    }
}

#[test]
fn carried_columns_keep_their_type() {
    let folder = Folder::new();
    for path in both(&folder, &[many_types()]) {
        let reader = open(&path, &ReadOptions::default()).unwrap();
        let types: Vec<DataType> = reader.schema().carried.iter().map(|c| c.data_type.clone()).collect();
        for batch in reader.batches() {
            let found: Vec<DataType> = batch.unwrap().carried.iter().map(|c| c.data_type().clone()).collect();
            assert_eq!(found, types);
        }
    }
}

#[test]
fn truth_values_are_numbers_when_asked_for_and_text_never() {
    let folder = Folder::new();
    for path in both(&folder, &[many_types()]) {
        let with = |text: &str| ReadOptions { columns: Some(Selection::parse(text).unwrap()), ..small(8) };
        assert_eq!(load(&path, &with("flag")).unwrap(), [[Some(1.0)], [Some(0.0)], [None]]);
        let error = failure(open(&path, &with("text")));
        assert!(error.to_string().contains("Utf8"), "{error}");
        let order = load(&path, &with("byte,float")).unwrap();
        assert_eq!(order[0], [Some(0.0), Some(1.5)]);
    }
}

#[test]
fn single_precision_stays_single() {
    let folder = Folder::new();
    let batch = RecordBatch::try_from_iter([
        ("a", column(Float32Array::from(vec![Some(0.1), None]))),
        ("b", column(Float32Array::from(vec![0.25, 1e30]))),
    ])
    .unwrap();
    for path in both(&folder, &[batch]) {
        let reader = open(&path, &small(4)).unwrap();
        assert!(reader.schema().single_precision);
        assert!(matches!(reader.grid().unwrap().chunk(0).unwrap().cells(), Cells::F32(_)));
        let Loaded::Table(table) = reader.load(usize::MAX).unwrap() else { panic!() };
        assert!(matches!(table.cells(), Cells::F32(_)));
        assert_eq!(rows_of(table.cells())[0], [Some(f64::from(0.1f32)), Some(0.25)]);
        assert_eq!(rows_of(table.cells())[1], [None, Some(f64::from(1e30f32))]);
    }
}

fn numbered(rows: std::ops::Range<i32>) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("x", column(rows.clone().map(f64::from).collect::<Float64Array>())),
        ("name", column(rows.clone().map(|i| Some(format!("r{i}"))).collect::<StringArray>())),
        ("y", column(rows.map(|i| (i % 5 != 0).then(|| f64::from(i) / 3.0)).collect::<Float64Array>())),
    ])
    .unwrap()
}

#[test]
fn any_piece_size_gives_the_same_rows_in_order() {
    let folder = Folder::new();
    let (parquet, arrow) = (folder.path("t.parquet"), folder.path("t.arrow"));
    write_parquet(&parquet, &[numbered(0..1000)], 300);
    write_arrow(&arrow, &[numbered(0..100), numbered(100..100), numbered(100..1000)]);
    let expected: Vec<Row> =
        (0..1000).map(|i| vec![Some(f64::from(i)), (i % 5 != 0).then(|| f64::from(i) / 3.0)]).collect();
    let names: Vec<Option<String>> = (0..1000).map(|i| Some(format!("r{i}"))).collect();
    for path in [&parquet, &arrow] {
        for chunk_bytes in [1, 100, 16 * 37, 16 * 300, 1 << 20] {
            let options = small(chunk_bytes);
            assert_eq!(read_grid(path, &options).unwrap(), expected, "{chunk_bytes}");
            assert_eq!(load(path, &options).unwrap(), expected, "{chunk_bytes}");
            let (rows, carried) = read_batches(path, &options).unwrap();
            assert_eq!((&rows, &carried[0]), (&expected, &names), "{chunk_bytes}");
        }
    }
    let pieces = open(&parquet, &small(16 * 37)).unwrap().grid().unwrap();
    assert_eq!(pieces.n_chunks(), 3 * 9 + 3);
}

#[test]
fn a_grid_is_read_by_many_threads_at_once() {
    let folder = Folder::new();
    write_parquet(&folder.path("t.parquet"), &[numbered(0..5000)], 2000);
    write_arrow(&folder.path("t.arrow"), &[numbered(0..2500), numbered(2500..5000)]);
    for name in ["t.parquet", "t.arrow"] {
        let grid = open(folder.path(name), &small(1600)).unwrap().grid().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(7).build().unwrap();
        for _ in 0..3 {
            let firsts = pool
                .install(|| covary::data::map_chunks(&grid, |c| Ok((c.first_row(), c.cells().get(0, 0)))))
                .unwrap();
            assert!(firsts.iter().all(|(row, x)| *row as f64 == *x), "{firsts:?}");
        }
    }
}

fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    header.push_str(&" ".repeat(128 - 11 - header.len()));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn npy_of_every_number_type_and_byte_order() {
    let folder = Folder::new();
    let expected = vec![vec![Some(1.0), Some(2.0)], vec![Some(3.0), Some(100.0)]];
    macro_rules! check {
        ($($type:ty: $code:literal),*) => {$({
            let cells = [1u8, 2, 3, 100].map(|x| x as $type);
            for (mark, bytes) in [
                ("<", cells.map(<$type>::to_le_bytes).concat()),
                (">", cells.map(<$type>::to_be_bytes).concat()),
            ] {
                let mark = if size_of::<$type>() == 1 { "|" } else { mark };
                let path = folder.file("t.npy", npy(&format!("{mark}{}", $code), false, "(2, 2)", &bytes));
                assert_eq!(load(&path, &small(1)).unwrap(), expected, "{mark}{}", $code);
            }
        })*};
    }
    check!(i8: "i1", i16: "i2", i32: "i4", i64: "i8", u8: "u1", u16: "u2", u32: "u4", u64: "u8", f32: "f4", f64: "f8");
}

#[test]
fn npy_in_either_order_with_selection_weights_and_id() {
    let folder = Folder::new();
    let value = |i: usize, j: usize| (10 * i + j) as f64;
    let c: Vec<u8> = (0..5 * 4).flat_map(|k| value(k / 4, k % 4).to_le_bytes()).collect();
    let f: Vec<u8> = (0..5 * 4).flat_map(|k| value(k % 5, k / 5).to_le_bytes()).collect();
    for (fortran, data) in [(false, &c), (true, &f)] {
        let path = folder.file("t.npy", npy("<f8", fortran, "(5, 4)", data));
        for chunk_bytes in [1, 64, 1000] {
            let all: Vec<Row> = (0..5).map(|i| (0..4).map(|j| Some(value(i, j))).collect()).collect();
            assert_eq!(load(&path, &small(chunk_bytes)).unwrap(), all);
            assert_eq!(read_grid(&path, &small(chunk_bytes)).unwrap(), all);
            let options = ReadOptions {
                columns: Some(Selection::parse("x3,x1").unwrap()),
                weights: Some("x2".into()),
                id: Some("x4".into()),
                ..small(chunk_bytes)
            };
            let picked: Vec<Row> = (0..5).map(|i| vec![Some(value(i, 2)), Some(value(i, 0))]).collect();
            assert_eq!(load(&path, &options).unwrap(), picked);
            let batch = open(&path, &options).unwrap().batches().next().unwrap().unwrap();
            assert_eq!(batch.chunk.weights().unwrap()[0], value(0, 1));
            assert_eq!(batch.carried[0].data_type(), &DataType::Float64);
        }
    }
}

#[test]
fn npy_of_one_dimension_is_one_column_and_single_precision_stays() {
    let folder = Folder::new();
    let data: Vec<u8> = [1.5f32, f32::NAN, 2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let path = folder.file("t.npy", npy("<f4", false, "(3,)", &data));
    let reader = open(&path, &small(1)).unwrap();
    assert!(reader.schema().single_precision && !reader.schema().named);
    assert_eq!(reader.schema().features, ["x1"]);
    assert_eq!(load(&path, &small(1)).unwrap(), [[Some(1.5)], [None], [Some(2.5)]]);
}

const ENDINGS: [&str; 9] =
    ["csv", "tsv", "csv.gz", "tsv.gz", "csv.zst", "tsv.zst", "parquet", "arrow", "feather"];

#[test]
fn what_is_written_is_read_back_exactly_in_every_format() {
    let folder = Folder::new();
    let value = |i: usize, j: usize| match (i + j) % 5 {
        0 => f64::NAN,
        1 => 0.1 + i as f64,
        2 => -1e300 / (1 + i) as f64,
        3 => 5e-324 * (1 + i) as f64,
        _ => i as f64,
    };
    let n = 1500;
    let names = ["u".to_owned(), "v, \"w\"".to_owned()];
    let carried =
        [CarriedColumn { name: "id".into(), data_type: DataType::Utf8, because: CarriedBecause::Id }];
    let ids: Vec<Option<String>> =
        (0..n).map(|i| Some(format!("a{i},\"\t\n{i}")).filter(|_| i % 11 != 0)).collect();
    let expected: Vec<Row> =
        (0..n).map(|i| (0..2).map(|j| Some(value(i, j)).filter(|x| !x.is_nan())).collect()).collect();
    for ending in ENDINGS {
        let path = folder.path(&format!("t.{ending}"));
        let mut writer = Writer::create(&path, &carried, &names).unwrap();
        for rows in [0..0, 0..1, 1..1000, 1000..n] {
            let ids: ArrayRef = Arc::new(ids[rows.clone()].iter().cloned().collect::<StringArray>());
            let cells = Mat::from_fn(rows.len(), 2, |i, j| value(rows.start + i, j));
            writer.write(&[ids], cells.as_ref()).unwrap();
        }
        assert!(!path.exists(), "{ending}: nothing appears before the end");
        writer.finish().unwrap();
        let (rows, found_ids) = read_batches(&path, &small(1000)).unwrap();
        assert_eq!(open(&path, &small(1000)).unwrap().schema().features, names, "{ending}");
        assert_eq!(rows, expected, "{ending}");
        assert_eq!(found_ids[0], ids, "{ending}");
    }
}

#[test]
fn npy_is_read_back_and_holds_only_numbers() {
    let folder = Folder::new();
    let path = folder.path("t.npy");
    let mut writer = Writer::create(&path, &[], &["a".into(), "b".into(), "c".into()]).unwrap();
    for rows in [0..7, 7..20] {
        writer
            .write(&[], Mat::from_fn(rows.len(), 3, |i, j| ((rows.start + i) * 3 + j) as f64).as_ref())
            .unwrap();
    }
    writer.finish().unwrap();
    let expected: Vec<Row> = (0..20).map(|i| (0..3).map(|j| Some((i * 3 + j) as f64)).collect()).collect();
    assert_eq!(load(&path, &small(50)).unwrap(), expected);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 128 + 20 * 3 * 8);

    let carried =
        [CarriedColumn { name: "id".into(), data_type: DataType::Utf8, because: CarriedBecause::Id }];
    let error = failure(Writer::create(folder.path("u.npy"), &carried, &["a".into()]));
    assert!(error.to_string().contains("only numbers") && error.to_string().contains("'id'"), "{error}");
    assert_eq!(folder.names(), ["t.npy"]);
}

#[test]
fn a_hole_alone_in_its_row_is_not_lost() {
    let folder = Folder::new();
    let path = folder.path("t.csv");
    let mut writer = Writer::create(&path, &[], &["a".into()]).unwrap();
    writer.write(&[], Mat::from_fn(3, 1, |i, _| if i == 1 { f64::NAN } else { i as f64 }).as_ref()).unwrap();
    writer.finish().unwrap();
    assert_eq!(load(&path, &small(100)).unwrap(), [[Some(0.0)], [None], [Some(2.0)]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn numbers_in_text_read_back_bit_for_bit(cells in prop::collection::vec(any::<f64>(), 1..200)) {
        let cells: Vec<f64> = cells.into_iter().map(|x| if x.is_finite() { x } else { 0.5 }).collect();
        let folder = Folder::new();
        let path = folder.path("t.csv");
        let mut writer = Writer::create(&path, &[], &["a".into()]).unwrap();
        writer.write(&[], Mat::from_fn(cells.len(), 1, |i, _| cells[i]).as_ref()).unwrap();
        writer.finish().unwrap();
        let Loaded::Table(table) = open(&path, &small(64)).unwrap().load(usize::MAX).unwrap() else { panic!() };
        for (i, x) in cells.iter().enumerate() {
            prop_assert_eq!(table.cells().get(i, 0).to_bits(), x.to_bits());
        }
    }
}

/// What pandas 3.1 notes in a file of a frame from which rows were taken.
const PANDAS: &str = r#"{"index_columns": ["__index_level_0__"], "column_indexes": [{"name": null, "field_name": null,
    "pandas_type": "unicode", "numpy_type": "str", "metadata": null}], "columns": [], "pandas_version": "3.1.1"}"#;

/// What it notes of rows that are numbered anyway, and what nobody should write.
const NO_INDEX: [&str; 4] = [
    r#"{"index_columns": [{"kind": "range", "name": null, "start": 0, "stop": 3, "step": 1}]}"#,
    r#"{"index_columns": "a"}"#,
    "{}",
    "no JSON",
];

fn framed(note: &str) -> RecordBatch {
    let (a, index) = (Float64Array::from(vec![1.0, 2.5, 4.0]), Int64Array::from(vec![7, 9, 30]));
    let batch = RecordBatch::try_from_iter([("a", column(a)), ("__index_level_0__", column(index))]).unwrap();
    let metadata = std::collections::HashMap::from([("pandas".to_owned(), note.to_owned())]);
    let schema = batch.schema().as_ref().clone().with_metadata(metadata);
    batch.with_schema(Arc::new(schema)).unwrap()
}

#[test]
fn the_index_of_a_frame_is_carried_and_not_modelled() {
    let folder = Folder::new();
    for path in both(&folder, &[framed(PANDAS)]) {
        let schema = open(&path, &small(1000)).unwrap().schema().clone();
        assert_eq!(schema.features, ["a"], "{}", path.display());
        assert_eq!(schema.carried[0].name, "__index_level_0__");
        assert_eq!(schema.carried[0].because, CarriedBecause::Index);
        // Who asks for it gets it.
        let asked =
            ReadOptions { columns: Some(Selection::parse("__index_level_0__,a").unwrap()), ..small(1000) };
        assert_eq!(load(&path, &asked).unwrap()[1], [Some(9.0), Some(2.5)]);
    }
    for note in NO_INDEX {
        for path in both(&folder, &[framed(note)]) {
            assert_eq!(open(&path, &small(1000)).unwrap().schema().features.len(), 2, "{note}");
        }
    }
}

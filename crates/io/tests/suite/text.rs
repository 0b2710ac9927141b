//! CSV and TSV: what is read, whatever the quoting, line ends, chunk size and compression.

use crate::support::*;
use covary_io::{CarriedBecause, Carry, Error, LeftOutBecause, Loaded, ReadOptions, Selection, open};
use proptest::prelude::*;

#[test]
fn numbers_holes_and_text_columns() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "name,a,b\nx,1,2.5\n\"y, z\",NA,-3e2\n,nan,\nw, null , +7 \n");
    let reader = open(&path, &ReadOptions::default()).unwrap();
    let schema = reader.schema().clone();
    assert_eq!(schema.features, ["a", "b"]);
    assert_eq!(schema.carried[0].name, "name");
    assert_eq!(schema.carried[0].because, CarriedBecause::NotNumeric);
    assert_eq!((schema.n_rows, schema.named, schema.single_precision), (Some(4), true, false));
    let (rows, carried) = read_batches(&path, &ReadOptions::default()).unwrap();
    assert_eq!(
        rows,
        [vec![Some(1.0), Some(2.5)], vec![None, Some(-300.0)], vec![None, None], vec![None, Some(7.0)]]
    );
    let text = |t: &str| Some(t.to_owned());
    assert_eq!(carried, [[text("x"), text("y, z"), None, text("w")]]);
}

#[test]
fn a_first_line_of_numbers_is_a_row() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "1,2\n3,4\n");
    let reader = open(&path, &ReadOptions::default()).unwrap();
    assert!(!reader.schema().named);
    assert_eq!(reader.schema().features, ["x1", "x2"]);
    assert_eq!(load(&path, &ReadOptions::default()).unwrap().len(), 2);
}

#[test]
fn byte_order_mark_crlf_blank_lines_and_no_final_line_break() {
    let folder = Folder::new();
    let plain = folder.file("plain.csv", "a,b\n1,2\n3,4\n");
    let odd = folder.file("odd.csv", "\u{feff}\r\na,\"b\"\r\n\r\n1,2\r\n\r\n\n\"3\",\"4\"");
    for chunk_bytes in [1, 3, 7, 1000] {
        let options = small(chunk_bytes);
        assert_eq!(load(&odd, &options).unwrap(), load(&plain, &options).unwrap(), "{chunk_bytes}");
    }
    assert_eq!(open(&odd, &small(100)).unwrap().schema().features, ["a", "b"]);
}

#[test]
fn empty_names_are_positions() {
    let folder = Folder::new();
    let path = folder.file("t.csv", ",a,\"\"\n1,2,3\n");
    assert_eq!(open(&path, &small(100)).unwrap().schema().features, ["x1", "a", "x3"]);
}

#[test]
fn a_column_without_values_is_numeric() {
    let folder = Folder::new();
    let path = folder.file("t.tsv", "a\tb\n\t1\nNA\t2\n");
    assert_eq!(load(&path, &small(100)).unwrap(), [[None, Some(1.0)], [None, Some(2.0)]]);
}

#[test]
fn selection_drop_id_and_weights_decide_about_columns() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "id,a,b,c,w,note\n007,1,2,3,0.5,x\n008,4,5,6,2,y\n");
    let options = ReadOptions {
        columns: Some(Selection::parse("c,2").unwrap()),
        id: Some("id".into()),
        weights: Some("w".into()),
        ..ReadOptions::default()
    };
    let schema = open(&path, &options).unwrap().schema().clone();
    assert_eq!(schema.features, ["c", "a"]);
    assert_eq!(schema.weights.as_deref(), Some("w"));
    let left: Vec<_> = schema.left_out.iter().map(|c| (c.name.as_str(), c.because)).collect();
    assert_eq!(left, [("b", LeftOutBecause::NotSelected), ("note", LeftOutBecause::NotSelected)]);
    let (rows, carried) = read_batches(&path, &options).unwrap();
    assert_eq!(rows, [[Some(3.0), Some(1.0)], [Some(6.0), Some(4.0)]]);
    assert_eq!(carried, [[Some("007".to_owned()), Some("008".to_owned())]]);
    let Loaded::Table(table) = open(&path, &options).unwrap().load(usize::MAX).unwrap() else { panic!() };
    assert_eq!(table.weights(), Some(&[0.5, 2.0][..]));

    let options = ReadOptions { drop: Some(Selection::parse("1,b-c,b,w").unwrap()), ..options };
    assert_eq!(failure(open(&path, &options)).class(), covary::ErrorClass::Usage);
    let options = ReadOptions { drop: Some(Selection::parse("1,3-5").unwrap()), ..ReadOptions::default() };
    let schema = open(&path, &options).unwrap().schema().clone();
    assert_eq!(schema.features, ["a"]);
    assert_eq!(schema.carried.len(), 1);
}

#[test]
fn the_features_of_a_model_come_in_its_order_and_text_goes_along() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "extra,b,note,a\n9,2,x,1\n");
    let options = ReadOptions { features: Some(vec!["a".into(), "b".into()]), ..ReadOptions::default() };
    let schema = open(&path, &options).unwrap().schema().clone();
    assert_eq!(schema.features, ["a", "b"]);
    assert_eq!(schema.carried[0].name, "note");
    assert_eq!(schema.left_out[0].name, "extra");
    assert_eq!(load(&path, &options).unwrap(), [[Some(1.0), Some(2.0)]]);
}

#[test]
fn compressed_files_equal_plain_ones() {
    let folder = Folder::new();
    let mut text = String::from("k,a,b\n");
    for i in 0..5000 {
        text.push_str(&format!(
            "\"row\n{i}\",{},{}\n",
            f64::from(i) * 0.1,
            if i % 7 == 0 { "" } else { "1e-3" }
        ));
    }
    let plain = folder.file("t.csv", &text);
    let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
    let zst = folder.file("t.csv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
    for chunk_bytes in [100, 4096, 8 << 20] {
        let options = small(chunk_bytes);
        let expected = read_batches(&plain, &options).unwrap();
        assert_eq!(expected.0.len(), 5000);
        for path in [&gz, &zst] {
            assert_eq!(read_batches(path, &options).unwrap(), expected);
            assert_eq!(load(path, &options).unwrap(), expected.0);
            assert_eq!(read_stream(open(path, &options).unwrap().stream()).unwrap(), expected.0);
        }
    }
}

#[test]
fn a_stream_that_does_not_fit_goes_on_without_losing_a_row() {
    let folder = Folder::new();
    let text: String =
        std::iter::once("a,w\n".to_owned()).chain((0..3000).map(|i| format!("{i},1\n"))).collect();
    let path = folder.file("t.csv.gz", gzip(text.as_bytes()));
    let options = ReadOptions { weights: Some("w".into()), ..small(500) };
    for limit in [0, 1, 5_000, 16 * 2999, 16 * 3000] {
        match open(&path, &options).unwrap().load(limit).unwrap() {
            Loaded::Table(table) => assert_eq!((limit, table.shape()), (16 * 3000, (3000, 1))),
            Loaded::Grid(_) => panic!("a compressed file is no grid"),
            Loaded::Stream(stream) => {
                let rows = read_stream(stream).unwrap();
                let expected: Vec<Row> = (0..3000).map(|i| vec![Some(f64::from(i))]).collect();
                assert_eq!(rows, expected, "{limit}");
            }
        }
    }
    let plain = folder.file("t.csv", text);
    assert!(matches!(open(&plain, &options).unwrap().load(100).unwrap(), Loaded::Grid(_)));
}

#[test]
fn batches_work_inside_a_pool_of_one_thread() {
    let folder = Folder::new();
    let text: String = std::iter::once("a\n".to_owned()).chain((0..500).map(|i| format!("{i}\n"))).collect();
    let path = folder.file("t.csv", &text);
    let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for path in [path, gz] {
        let (rows, _) = pool.install(|| read_batches(&path, &small(50))).unwrap();
        assert_eq!(rows.len(), 500);
    }
}

#[test]
fn a_pipe_is_read_once_whatever_its_name() {
    let folder = Folder::new();
    let path = folder.path("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer = {
        let path = path.clone();
        std::thread::spawn(move || std::fs::write(path, "a,b\n1,2\n3,4\n").unwrap())
    };
    let rows = load(&path, &ReadOptions::default()).unwrap();
    writer.join().unwrap();
    assert_eq!(rows, [[Some(1.0), Some(2.0)], [Some(3.0), Some(4.0)]]);
}

/// A cell of text as it may stand in a file, and what it means.
fn text_cell() -> impl Strategy<Value = (String, Option<String>)> {
    "[a-c,\"\n ]{0,6}".prop_map(|text| {
        let quoted = format!("\"{}\"", text.replace('"', "\"\""));
        (quoted, Some(text).filter(|t| !t.is_empty()))
    })
}

fn number_cell() -> impl Strategy<Value = (String, Option<f64>)> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| (format!("{x:e}"), Some(x))),
        any::<f32>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| (x.to_string(), Some(f64::from(x.to_string().parse::<f32>().unwrap()))))
            .prop_filter("exact", |(t, x)| t.parse::<f64>().ok() == *x),
        (-1000i32..1000).prop_map(|x| (format!("\" {x}\""), Some(f64::from(x)))),
        prop::sample::select(vec!["", "NA", " nan", "\"NULL\""]).prop_map(|t| (t.to_owned(), None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_quoting_line_end_and_chunk_size_gives_the_same_rows(
        cells in prop::collection::vec((text_cell(), number_cell(), number_cell()), 1..40),
        crlf in any::<bool>(),
        blank in any::<bool>(),
        final_break in any::<bool>(),
        chunk_bytes in 1usize..200,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        // The first row makes sure that the first column is text.
        let mut text = format!("t,x,y{end}\"text\",0,0");
        let mut rows: Vec<Row> = vec![vec![Some(0.0), Some(0.0)]];
        let mut texts = vec![Some("text".to_owned())];
        for ((raw, meaning), (x_raw, x), (y_raw, y)) in cells {
            text.push_str(&format!("{end}{}{raw},{x_raw},{y_raw}", if blank { end } else { "" }));
            rows.push(vec![x, y]);
            texts.push(meaning);
        }
        if final_break {
            text.push_str(end);
        }
        let folder = Folder::new();
        let path = folder.file("t.csv", &text);
        let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
        for path in [&path, &gz] {
            let (found, carried) = read_batches(path, &small(chunk_bytes)).unwrap();
            prop_assert_eq!(&found, &rows);
            prop_assert_eq!(&carried[0], &texts);
            prop_assert_eq!(&load(path, &small(chunk_bytes)).unwrap(), &rows);
        }
        prop_assert_eq!(&read_grid(&path, &small(chunk_bytes)).unwrap(), &rows);
    }
}

fn features(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|n| (*n).to_owned()).collect())
}

#[test]
fn a_model_without_names_takes_columns_in_their_order() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "t,width,height\nx,1,2\n");
    let nameless = |names: &[&str]| ReadOptions { features: features(names), nameless: true, ..small(100) };
    let schema = open(&path, &nameless(&["x1", "x2"])).unwrap().schema().clone();
    assert_eq!((schema.features, schema.by_position), (vec!["width".into(), "height".into()], true));
    let error = failure(open(&path, &nameless(&["x1", "x2", "x3"])));
    assert!(matches!(error, Error::FeatureCount { expected: 3, found: 2, .. }), "{error}");
    // By name where the columns are called so, in any order.
    let named = folder.file("n.csv", "x2,x1\n1,2\n");
    let schema = open(&named, &nameless(&["x1", "x2"])).unwrap().schema().clone();
    assert_eq!((schema.features, schema.by_position), (vec!["x1".into(), "x2".into()], false));
    let strict = ReadOptions { features: features(&["x1", "x2"]), ..small(100) };
    assert!(matches!(failure(open(&path, &strict)), Error::MissingFeatures { .. }));
}

#[test]
fn a_feature_that_is_taken_is_not_said_to_be_missing() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "alcohol,ash\n1,2\n");
    let options = ReadOptions { features: features(&["alcohol"]), id: Some("alcohol".into()), ..small(100) };
    let error = failure(open(&path, &options));
    assert!(matches!(&error, Error::FeatureTaken { column, .. } if column == "alcohol"), "{error}");
    assert!(!error.to_string().contains("meant"), "{error}");
}

#[test]
fn a_column_that_is_a_feature_is_not_meant_for_another() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a,A\n1,2\n");
    let message = |names: &[&str]| {
        failure(open(&path, &ReadOptions { features: features(names), ..small(100) })).to_string()
    };
    assert!(!message(&["a", "b", "A"]).contains("meant"), "{}", message(&["a", "b", "A"]));
    assert!(message(&["a", "b"]).contains("is 'A' meant"), "{}", message(&["a", "b"]));
}

#[test]
fn what_a_model_has_no_feature_for_goes_along_when_asked() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "n,a,t,b\n1.50,2,x,3\n");
    let options = |carry| ReadOptions { features: features(&["b"]), carry, ..small(100) };
    let (rows, carried) = read_batches(&path, &options(Carry::Others)).unwrap();
    assert_eq!(rows, [[Some(3.0)]]);
    assert_eq!(carried, ["1.50", "2", "x"].map(|t| vec![Some(t.to_owned())]));
    assert_eq!(read_batches(&path, &options(Carry::Text)).unwrap().1.len(), 1);
}

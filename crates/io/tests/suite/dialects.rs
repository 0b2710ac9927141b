//! How text is written: delimiters, decimal marks, words for missing values and encodings, given and recognised.

use crate::support::*;
use covary_io::{
    DecimalMark, Delimiter, Error, MissingWords, ReadOptions, Recognised, Schema, Selection, open,
};

/// The schema, rows and carried text of a file of these bytes; compressed or cut otherwise it is the same.
fn read(bytes: &[u8], options: &ReadOptions) -> (Schema, Vec<Row>, Vec<Texts>) {
    let folder = Folder::new();
    let (plain, gz) = (folder.file("t.csv", bytes), folder.file("t.csv.gz", gzip(bytes)));
    let (rows, texts) = read_batches(&plain, options).unwrap();
    assert_eq!(read_batches(&gz, options).unwrap(), (rows.clone(), texts.clone()));
    assert_eq!(load(&plain, &ReadOptions { chunk_bytes: 7, ..options.clone() }).unwrap(), rows);
    (open(&plain, options).unwrap().schema().clone(), rows, texts)
}

fn complaint(bytes: &[u8], options: &ReadOptions) -> Error {
    let folder = Folder::new();
    failure(load(&folder.file("t.csv", bytes), options))
}

fn by_default(text: &str) -> (Schema, Vec<Row>, Vec<Texts>) {
    read(text.as_bytes(), &ReadOptions::default())
}

fn delimited(mark: &str) -> ReadOptions {
    ReadOptions { delimiter: Some(mark.parse().unwrap()), ..ReadOptions::default() }
}

fn cells(rows: &[&[f64]]) -> Vec<Row> {
    let cell = |x: &f64| Some(*x).filter(|x| !x.is_nan());
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

#[test]
fn semicolons_and_decimal_commas_are_recognised_and_that_is_told() {
    let (schema, rows, texts) = by_default("name;a;b\nx;1,5;2\ny;-0,25;\n");
    assert_eq!(
        (schema.features, rows),
        (vec!["a".into(), "b".into()], cells(&[&[1.5, 2.0], &[-0.25, f64::NAN]]))
    );
    assert_eq!(texts, [[Some("x".to_owned()), Some("y".to_owned())]]);
    let told = [Recognised::Delimiter(Delimiter::SEMICOLON), Recognised::Decimal(DecimalMark::Comma)];
    assert_eq!(schema.recognised, told);
}

#[test]
fn what_is_given_is_not_told() {
    let options = ReadOptions { decimal: Some(DecimalMark::Comma), ..delimited(";") };
    let (schema, rows, _) = read(b"a;b\n1,234;2\n", &options);
    assert_eq!((rows, schema.recognised), (cells(&[&[1.234, 2.0]]), vec![]));
    for (mark, text) in
        [("tab", "a\tb\n1\t2\n"), ("|", "a|b\n1|2\n"), ("space", "a b\n1 2\n"), ("@", "a@b\n1@2\n")]
    {
        let (schema, rows, _) = read(text.as_bytes(), &delimited(mark));
        assert_eq!((rows, schema.recognised), (cells(&[&[1.0, 2.0]]), vec![]), "{mark}");
    }
}

#[test]
fn commas_that_may_separate_thousands_are_text_and_told() {
    let (schema, rows, texts) = by_default("a;b\n1,234;2\n5,678;3\n");
    assert_eq!((rows, texts.len()), (cells(&[&[2.0], &[3.0]]), 1));
    assert_eq!(schema.recognised[1], Recognised::Commas(vec!["a".into()]));
    let (schema, _, _) = by_default("a,b\n\"1,5\",2\n\"2,5\",3\n");
    assert_eq!(schema.recognised, [Recognised::Commas(vec!["a".into()])]);
    // Thousands in one column do not turn the decimals of the other.
    let (schema, rows, _) = by_default("a;b\n1,234;2.5\n5,678;3.5\n");
    assert_eq!((schema.features, rows), (vec!["b".into()], cells(&[&[2.5], &[3.5]])));
}

#[test]
fn marks_that_do_not_fit_are_refused() {
    let comma = ReadOptions { decimal: Some(DecimalMark::Comma), ..ReadOptions::default() };
    for (text, options) in
        [("a,b\n1,2\n", comma.clone()), ("a,b\n1,2\n", ReadOptions { ..delimited(",") }.with_comma())]
    {
        let error = complaint(text.as_bytes(), &options);
        assert!(matches!(error, Error::SameMark { .. }), "{error}");
    }
    match complaint(b"a,b\n1,2\n", &delimited(";")) {
        Error::AbsentDelimiter { given: Delimiter::SEMICOLON, found: Delimiter::COMMA, .. } => {}
        other => panic!("{other}"),
    }
    // One column needs no delimiter.
    assert_eq!(read(b"a\n1\n2\n", &delimited(";")).1, cells(&[&[1.0], &[2.0]]));
    let error = complaint(b"Weight, kg;Height, cm\n1,5;2,5\n3,5;4,5\n", &ReadOptions::default());
    assert!(matches!(error, Error::OpenDelimiter { second: Delimiter::SEMICOLON, .. }), "{error}");
    // The comma of a decimal is not taken for the end of a row's name.
    let error = complaint(b"a\n1,5\n2,5\n", &ReadOptions::default());
    assert!(matches!(error, Error::Ragged { expected: 1, found: 2, .. }), "{error}");
}

trait WithComma {
    fn with_comma(self) -> Self;
}

impl WithComma for ReadOptions {
    fn with_comma(self) -> Self {
        Self { decimal: Some(DecimalMark::Comma), ..self }
    }
}

#[test]
fn words_for_missing_values() {
    let na =
        |text: &str| ReadOptions { missing: MissingWords::parse(text).unwrap(), ..ReadOptions::default() };
    let text = "a,b,w\n1,?,-999\n-999.0,2,?\nN/A,#N/A,3\n4,5,x\n";
    let (schema, rows, texts) = read(text.as_bytes(), &na("?,-999"));
    assert_eq!(schema.features, ["a", "b", "w"][..2]);
    let nan = f64::NAN;
    assert_eq!(rows, cells(&[&[1.0, nan], &[nan, 2.0], &[nan, nan], &[4.0, 5.0]]));
    // What is carried stays as it is.
    assert_eq!(texts[0][0].as_deref(), Some("-999"));
    let error = complaint(b"a\n1\n2\n?\n", &ReadOptions::default());
    assert!(matches!(error, Error::NotANumber { .. }), "{error}");
    // A word in the first line makes it a row.
    let (schema, rows, _) = read(b"1,?\n2,3\n4,5\n", &na("?"));
    assert_eq!((schema.named, rows.len()), (false, 3));
}

#[test]
fn what_looks_like_a_missing_value_is_told() {
    let word =
        |word: &str, column: &str| Recognised::Word { word: word.into(), columns: vec![column.into()] };
    let told = |text: &str| by_default(text).0.recognised;
    assert_eq!(told("a,b\n1,?\n2,?\n3,2\n"), [word("?", "b")]);
    assert_eq!(told("a,b\n1,50\n-999,60\n3,70\n"), [word("-999", "a")]);
    let dropped = ReadOptions { drop: Some(Selection::names(["b"])), ..ReadOptions::default() };
    assert_eq!(read(b"a,b\n1,?\n2,?\n3,2\n", &dropped).0.recognised, []);
    for text in ["a,b\n-99,50\n-98,60\n-150,70\n", "a,b\n1,x\n2,y\n3,2\n", "t,b\nx,1\nx,2\nx,3\n"] {
        assert_eq!(told(text), [], "{text}");
    }
}

#[test]
fn names_of_rows_as_r_writes_them() {
    for text in [
        "\"a\" \"b\"\n\"1\" 1.5 NA\n\"2\" 2.5 3\n",
        "\"a\"\t\"b\"\n\"1\"\t1.5\tNA\n\"2\"\t2.5\t3\n",
        "\"a\",\"b\"\n\"one\",1.5,NA\n\"two\",2.5,3\n",
        "\"a\";\"b\"\n\"1\";1,5;NA\n\"2\";2,5;3\n",
        "a b\n1 1.5 NA\n2 2.5 3\n",
    ] {
        let (schema, rows, texts) = by_default(text);
        assert_eq!(schema.features, ["a", "b"], "{text}");
        assert_eq!(rows, cells(&[&[1.5, f64::NAN], &[2.5, 3.0]]), "{text}");
        assert_eq!((schema.carried[0].name.as_str(), texts.len()), ("row", 1), "{text}");
        assert!(schema.recognised.contains(&Recognised::RowNames("row".into())), "{text}");
    }
}

#[test]
fn numbers_of_rows_without_a_name_are_no_feature() {
    let (schema, rows, _) = by_default(",a\n0,1.5\n1,2.5\n2,9\n");
    assert_eq!((schema.features, rows), (vec!["a".into()], cells(&[&[1.5], &[2.5], &[9.0]])));
    for measured in [",a\n0,1.5\n0,2.5\n2,9\n", ",a\n0.5,1.5\n1,2.5\n2,9\n", ",a\n-1,1.5\n1,2.5\n2,9\n"] {
        assert_eq!(by_default(measured).0.features, ["x1", "a"], "{measured}");
    }
}

#[test]
fn a_first_line_may_name_the_delimiter() {
    for text in ["sep=;\na;b\n1,5;2\n", "sep=;\r\na;b\r\n1,5;2\r\n", "\u{feff}SEP=;\n\na;b\n1,5;2\n"] {
        let (schema, rows, _) = by_default(text);
        assert_eq!((schema.features.len(), rows), (2, cells(&[&[1.5, 2.0]])), "{text:?}");
        assert!(!schema.recognised.contains(&Recognised::Delimiter(Delimiter::SEMICOLON)));
    }
    match complaint(b"sep=;\na;b\n1;2\nx;3\n5;6\n", &ReadOptions::default()) {
        Error::NotANumber { place, .. } => assert_eq!((place.row, place.line), (2, Some(4))),
        other => panic!("{other}"),
    }
}

fn utf_16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(to_bytes).collect()
}

#[test]
fn other_encodings_say_the_same() {
    let text = "größe,höhe\nklein,1.5\nà peu près,2.5\nx,3\n";
    let expected = by_default(text);
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let marked = format!("\u{feff}{text}");
    for (bytes, told) in [
        (latin, vec![Recognised::Encoding("latin1".parse().unwrap())]),
        (utf_16(&marked, u16::to_le_bytes), vec![]),
        (utf_16(&marked, u16::to_be_bytes), vec![]),
        (utf_16(text, u16::to_le_bytes), vec![]),
    ] {
        let folder = Folder::new();
        for path in [folder.file("t.csv", &bytes), folder.file("t.csv.gz", gzip(&bytes))] {
            let schema = open(&path, &small(100)).unwrap().schema().clone();
            assert_eq!((&schema.features, &schema.recognised), (&expected.0.features, &told));
            let (rows, texts) = read_batches(&path, &small(20)).unwrap();
            assert_eq!((&rows, &texts), (&expected.1, &expected.2));
        }
    }
    // Shift JIS: the second byte of a letter may be that of a mark.
    let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode("名,ソ|\nア,1\nー,2\n");
    let options = ReadOptions { encoding: Some("shift_jis".parse().unwrap()), ..ReadOptions::default() };
    let folder = Folder::new();
    let path = folder.file("t.csv", &bytes);
    assert_eq!(open(&path, &options).unwrap().schema().columns, ["名", "ソ|"]);
}

#[test]
fn encodings_that_make_no_sense() {
    let mut half = utf_16("\u{feff}a,b\n1,2\n", u16::to_le_bytes);
    half.pop();
    assert!(matches!(complaint(&half, &ReadOptions::default()), Error::UnknownEncoding { .. }));
    assert!(matches!(
        complaint(b"a,b\xe9\x81\n1,2\n", &ReadOptions::default()),
        Error::UnknownEncoding { .. }
    ));
    let folder = Folder::new();
    let npy = folder.file("t.npy", b"");
    for options in [delimited(";"), ReadOptions::default().with_comma()] {
        assert!(matches!(failure(open(&npy, &options)), Error::NotForFormat { format: "NPY", .. }));
    }
}

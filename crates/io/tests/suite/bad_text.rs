//! CSV and TSV that cannot be read: every complaint names the file, the row, the line and what to do.

use crate::support::*;
use covary::ErrorClass;
use covary_io::{Error, ReadOptions, Selection, open};

fn complaint(contents: impl AsRef<[u8]>) -> Error {
    let folder = Folder::new();
    let path = folder.file("t.csv", contents);
    failure(load(&path, &ReadOptions::default()))
}

#[test]
fn nothing_in_the_file_or_only_a_header() {
    for text in ["", "\n\r\n", "\u{feff}"] {
        assert!(matches!(complaint(text), Error::Empty { .. }), "{text:?}");
    }
    for text in ["a,b", "a,b\n", "a,b\n\n\r\n"] {
        let error = complaint(text);
        assert!(matches!(error, Error::NoRows { .. }), "{text:?}: {error}");
        assert_eq!(error.class(), ErrorClass::Data);
    }
    let folder = Folder::new();
    let path = folder.file("t.csv.gz", gzip(b"a,b\n"));
    assert!(matches!(failure(open(&path, &small(9))), Error::NoRows { .. }));
}

#[test]
fn rows_of_the_wrong_width() {
    for (text, found) in [
        ("a,b\n1,2\n\n3\n4,5\n", 1),
        ("a,b\n1,2\n\n3,4,5\n6,7", 3),
        ("a,b\n1,2\n\n3,4,", 3),
        ("a,b\n1,2\n\n3,\"4\",\"x\ny\"\n", 3),
    ] {
        match complaint(text) {
            Error::Ragged { place, expected: 2, found: f } => {
                assert_eq!((place.row, place.line, f), (2, Some(4), found), "{text:?}");
            }
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn a_row_that_is_too_short_is_told_as_such_even_when_text_moves_under_numbers() {
    assert!(matches!(complaint("a,b,t\n1,2,x\n1,x\n"), Error::Ragged { expected: 3, found: 2, .. }));
}

/// Many rows, one of them with something wrong in column b.
fn with_cell(row: usize, cell: &str) -> String {
    let mut text = String::from("note,a,b\n");
    for i in 1..=3000 {
        let b = if i == row { cell } else { "2.5" };
        text.push_str(&format!("\"two\nlines\",{i},{b}\n"));
    }
    text
}

#[test]
fn text_in_a_numeric_column_is_found_in_every_chunk_with_row_and_line() {
    let folder = Folder::new();
    for row in [1001, 1500, 3000] {
        let text = with_cell(row, "oops");
        let plain = folder.file("t.csv", &text);
        let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
        for chunk_bytes in [64, 1000, 1 << 20] {
            let errors = [
                failure(load(&plain, &small(chunk_bytes))),
                failure(load(&gz, &small(chunk_bytes))),
                failure(read_batches(&plain, &small(chunk_bytes))),
            ];
            for error in errors {
                let Error::NotANumber { place, column, text } = &error else { panic!("{error}") };
                assert_eq!((place.row, place.line), (row, Some(2 * row)));
                assert_eq!((column.as_str(), text.as_str()), ("b", "oops"));
                assert_eq!(error.class(), ErrorClass::Data);
                assert!(error.to_string().ends_with("'oops' is not a number"), "{error}");
            }
        }
    }
}

#[test]
fn infinite_and_overflowing_cells_are_named() {
    for cell in ["inf", "-Infinity", "1e999", "\"-1e400\"", " INF "] {
        match complaint(with_cell(2000, cell)) {
            Error::Infinite { place, column, text } => {
                assert_eq!((place.row, place.line, column.as_str()), (2000, Some(4000), "b"));
                assert_eq!(text, cell.trim_matches(['"', ' ']));
            }
            other => panic!("{cell}: {other}"),
        }
    }
    assert!(matches!(complaint("a\ninf\n"), Error::Infinite { .. }));
}

#[test]
fn headers_that_make_no_sense() {
    match complaint("a,b,a\n1,2,3\n") {
        Error::DuplicateColumn { column, first: 1, second: 3, .. } => assert_eq!(column, "a"),
        other => panic!("{other}"),
    }
    assert!(matches!(complaint(b"a,\x81\n1,2\n"), Error::UnknownEncoding { .. }));
    assert!(matches!(complaint("a,b\r1,2\r3,4\r"), Error::NotText { .. } | Error::NoRows { .. }));
    assert!(matches!(complaint("name,kind\nx,y\n"), Error::NoFeatures { .. }));
}

#[test]
fn bytes_that_are_not_text() {
    for bytes in
        [&b"a,b\n1,\x00\n"[..], b"PAR1xxxx", b"\xff\xfe\0\0a\0\0\0", b"\x1f\x8b\x08\x00", b"\x00\x01\x02"]
    {
        let error = complaint(bytes);
        assert!(matches!(error, Error::NotText { .. }), "{error}");
    }
}

/// Bytes of Windows-1252 far behind a beginning of ASCII.
#[test]
fn text_that_is_not_utf8_matters_only_when_it_is_carried() {
    let folder = Folder::new();
    let mut text = "t,a\n".to_owned() + &"x,1\n".repeat(400_000);
    text.push_str("et,2\n");
    let mut bytes = text.into_bytes();
    let e = bytes.len() - 5;
    bytes[e] = 0xe9;
    let path = folder.file("t.csv", &bytes);
    assert_eq!(load(&path, &small(1 << 20)).unwrap().len(), 400_001);
    match failure(read_batches(&path, &small(1 << 20))) {
        Error::NotUtf8 { place, column } => {
            assert_eq!((place.row, place.line, column.as_str()), (400_001, Some(400_002), "t"));
        }
        other => panic!("{other}"),
    }
    let latin = ReadOptions { encoding: Some("latin-1".parse().unwrap()), ..small(1 << 20) };
    assert_eq!(read_batches(&path, &latin).unwrap().1[0].last(), Some(&Some("\u{e9}t".to_owned())));
}

#[test]
fn a_quote_that_is_never_closed() {
    let text = "a,b\n1,2\n3,\"4\n5,6\n";
    assert!(matches!(complaint(text), Error::Unclosed { .. }));
    let folder = Folder::new();
    let gz = folder.file("t.csv.gz", gzip(text.as_bytes()));
    for chunk_bytes in [1, 5, 100] {
        let plain = folder.file("t.csv", text);
        assert!(matches!(failure(load(&plain, &small(chunk_bytes))), Error::Unclosed { .. }));
        assert!(matches!(failure(load(&gz, &small(chunk_bytes))), Error::Unclosed { .. }));
    }
}

#[test]
fn selections_that_do_not_fit() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "height,width,note\n1,2,x\n");
    let with = |text: &str| ReadOptions { columns: Some(Selection::parse(text).unwrap()), ..small(100) };
    let error = failure(open(&path, &with("heigth")));
    assert!(error.to_string().contains("did you mean 'height'?"), "{error}");
    assert_eq!(error.class(), ErrorClass::Usage);
    assert!(matches!(failure(open(&path, &with("2-4"))), Error::Position { columns: 3, .. }));
    let error = failure(open(&path, &with("height,note")));
    assert!(matches!(&error, Error::NotNumeric { column, .. } if column == "note"), "{error}");
    assert!(error.to_string().contains("'x'"), "{error}");
    let weights = ReadOptions { weights: Some("note".into()), ..small(100) };
    assert!(matches!(failure(open(&path, &weights)), Error::NotNumeric { role: "weights", .. }));
    let dropped = ReadOptions { drop: Some(Selection::parse("1-2").unwrap()), ..small(100) };
    assert!(matches!(failure(open(&path, &dropped)), Error::NoFeatures { selected: true, .. }));
}

#[test]
fn bad_weights_are_named() {
    let folder = Folder::new();
    for (weight, shown) in [("-1", "-1"), ("", "NaN"), ("-1e-300", "-1e-300;")] {
        let path = folder.file("t.csv", format!("a,w\n1,1\n2,{weight}\n"));
        let options = ReadOptions { weights: Some("w".into()), ..small(4) };
        let error = failure(load(&path, &options));
        assert!(matches!(&error, Error::Weight { row: 2, column, .. } if column == "w"), "{error}");
        assert!(error.to_string().contains(&format!("weight is {shown}")), "{error}");
    }
}

#[test]
fn files_that_cannot_be_opened() {
    let folder = Folder::new();
    let error = failure(open(folder.path("none.csv"), &small(1)));
    assert!(matches!(error, Error::Open { .. }), "{error}");
    assert!(error.to_string().contains("no such file"), "{error}");
    for name in ["d.csv", "d.parquet", "d.arrow", "d.npy", "d.csv.gz"] {
        std::fs::create_dir(folder.path(name)).unwrap();
        let error = failure(open(folder.path(name), &small(1)));
        assert!(matches!(error, Error::Directory { .. }), "{name}: {error}");
        assert_eq!(error.class(), ErrorClass::File);
    }
    let error = failure(open(folder.path("t.docx"), &small(1)));
    assert!(error.to_string().contains(".parquet"), "{error}");
    assert_eq!(error.class(), ErrorClass::Usage);
}

#[test]
fn truncated_or_foreign_compressed_files() {
    let folder = Folder::new();
    let text: String =
        std::iter::once("a,b\n".into()).chain((0..200_000).map(|i| format!("{i},{}\n", i * 7))).collect();
    let gz = gzip(text.as_bytes());
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("t.csv.gz", &gz), ("t.csv.zst", &zst)] {
        for length in [10, bytes.len() / 2, bytes.len() - 3] {
            let path = folder.file(name, &bytes[..length]);
            let error = failure(load(&path, &small(10_000)));
            assert!(
                matches!(&error, Error::Damaged { path: p, .. } if *p == path),
                "{name} {length}: {error}"
            );
            assert_eq!(error.class(), ErrorClass::File);
        }
        let path = folder.file(name, &text);
        assert!(matches!(failure(load(&path, &small(100))), Error::Damaged { .. }));
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    use covary::data::RowSource;
    let folder = Folder::new();
    let text: String = std::iter::once("a\n".into()).chain((0..1000).map(|i| format!("{i}\n"))).collect();
    let path = folder.file("t.csv", &text);
    let grid = open(&path, &small(1000)).unwrap().grid().unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(2000).unwrap();
    let error = grid.chunk(grid.n_chunks() - 1).unwrap_err();
    assert!(error.to_string().contains("changed while it was read"), "{error}");
    assert_eq!(error.class(), ErrorClass::File);
}

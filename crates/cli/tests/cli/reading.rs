//! Text as people have it: what the flags do, what is recognised and said, and which flag an error names.

use crate::support::{Place, stderr};

/// What a fit of this text prints on standard error; it must succeed.
fn said(place: &Place, content: &str, args: &[&str]) -> String {
    place.write("x.csv", content);
    let output = place.run(&[&["fit", "x.csv", "-q", "1", "-o", "m.covary"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stderr(&output)
}

fn mean(place: &Place) -> Vec<f64> {
    let told = place.json(&["inspect", "m.covary", "--json"]);
    told["mean"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

const EUROPEAN: &str = "name;a;b\nx;1,5;2\ny;2,5;4\nz;5;3\nw;1;1\n";

#[test]
fn a_european_file_is_recognised_and_that_is_said_with_the_flag() {
    let place = Place::new();
    let text = said(&place, EUROPEAN, &[]);
    for words in
        ["separated by ';'", "--delimiter", "decimal mark is ','", "--decimal .", "not modelled: 'name'"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(mean(&place), [2.5, 2.5]);
    let text = said(&place, EUROPEAN, &["--delimiter", ";", "--decimal", ","]);
    assert!(!text.contains("delimiter") && !text.contains("decimal"), "{text}");
    assert_eq!(mean(&place), [2.5, 2.5]);
    // Questions take the flags too, and standard input is read alike.
    let told = place.ok(&["transform", "m.covary", "x.csv", "--delimiter", ";", "--decimal", ",", "--quiet"]);
    let output = place.shell("covary transform m.covary - --quiet < x.csv");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()), (Some(0), told));
}

#[test]
fn words_for_missing_values_by_flag() {
    let place = Place::new();
    let text = "a,b\n1,2\n2,?\n-999,5\n4,7\n5,9.5\n6,-999.0\n";
    said(&place, text, &["--na", "?,-999"]);
    let both = mean(&place);
    said(&place, text, &["--na", "-999", "--na", "?"]);
    assert_eq!(mean(&place), both);
    let text = said(&place, "a,b,c\n1,2,7\n2,9,7\n4,3,7\n4,8,7\n", &["--na", "7", "--drop-empty"]);
    assert!(text.contains("match every cell of 'c'; if they are values"), "{text}");
    said(&place, "a,b\n1,2\n2,\n,5\n4,7\n5,9.5\n6,\n", &[]);
    assert_eq!(mean(&place), both);
}

#[test]
fn an_error_names_the_flag_that_helps() {
    let place = Place::new();
    for (content, args, code, words) in [
        ("a,b\n1,2\n3,?\n4,5\n6,7\n", &[][..], 3, &["row 2", "'b'", "--na '?'", "--drop 'b'"][..]),
        ("a;b\n1;2\n3;1,5\n2.5;1\n2.5;1\n", &[], 3, &["'1,5'", "--decimal ,"]),
        ("a,b\n1,2\n3,4\n", &["--delimiter", ";"], 2, &["';' does not occur", "--delimiter ','"]),
        ("a,b\n1,2\n3,4\n", &["--decimal", ","], 2, &["','", "--delimiter"]),
        ("a,b\n1,2\n3,4\n", &["--decimal", ",", "--delimiter", ","], 2, &["','", "--delimiter"]),
        ("w, kg;h, m\n1,5;2,5\n3,5;4,5\n", &[], 3, &["',' or by ';'", "--delimiter ';'"]),
        ("a,b\n1,2\n3,4\n", &["--na", "1,2,3,4"], 3, &["match every cell", "--na"]),
        ("a b\n1 2\n3\n", &[], 3, &["no numeric column", "'1 2'"]),
        ("a\tb\n1\t2\t3\n3\t4\n", &[], 3, &["no numeric column"]),
        ("a,b\n1,2\n3\n", &[], 3, &["1 fields", "--delimiter"]),
        ("a,b\u{81}\u{e9}\n1,2\n3,4\n", &["--encoding", "latin-99"], 2, &["'latin-99'", "utf-8"]),
        ("a,b\n1,2\n3,4\n", &["--delimiter", "ab"], 2, &["'ab'", "tab"]),
        ("a,b\n1,2\n3,4\n", &["--decimal", ";"], 2, &["';' is no decimal mark"]),
    ] {
        place.write("x.csv", content);
        let output = place.run(&[&["fit", "x.csv", "-o", "m.covary"], args].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{content:?} {args:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{content:?} {args:?} should say {word:?}: {text}");
        }
        assert!(!place.files().contains(&"m.covary".to_owned()));
    }
}

#[test]
fn flags_for_text_are_refused_elsewhere() {
    let place = Place::with_model();
    crate::support::table_of(&place, "x.npy", &crate::support::rows(5, 3, 1));
    place.fails(&["fit", "x.npy", "--delimiter", ";"], 2, &["'x.npy' is NPY", "a delimiter"]);
    place.ok(&["moments", "cross.csv", "-o", "m.moments"]);
    place.fails(&["fit", "m.moments", "--na", "?"], 2, &["--na", "moments"]);
}

#[test]
fn other_encodings() {
    let place = Place::new();
    let latin = b"h\xf6he,b\n1,2\n3,5\n4,4\n";
    place.write("x.csv", latin);
    let output = place.run(&["fit", "x.csv", "-q", "1", "-o", "m.covary"]);
    assert!(
        stderr(&output).contains("windows-1252; if that is wrong, say --encoding"),
        "{}",
        stderr(&output)
    );
    assert_eq!(place.json(&["inspect", "m.covary", "--json"])["feature_names"][0], "höhe");
    let wide: Vec<u8> = "\u{feff}höhe,b\n1,2\n3,5\n4,4\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("y.csv", wide);
    let z = place.ok(&["transform", "m.covary", "y.csv"]);
    assert_eq!(z, place.ok(&["transform", "m.covary", "x.csv", "--encoding", "latin1"]));
}

/// A workbook of notes and a table, made by openpyxl.
const WORKBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../io/tests/tables/sheet-second.xlsx");

#[test]
fn spreadsheets() {
    let place = Place::new();
    place.fails(&["fit", WORKBOOK], 3, &["no numeric column", "say which with --sheet"]);
    place.fails(&["fit", WORKBOOK, "--sheet", "3"], 2, &["no sheet '3'", "'Notes', 'Data'", "--sheet"]);
    for sheet in ["Data", "2"] {
        place.ok(&["fit", WORKBOOK, "--sheet", sheet, "-q", "1", "-o", "m.covary", "--quiet"]);
        let z = place.ok(&["transform", "m.covary", WORKBOOK, "--sheet", sheet]);
        assert_eq!((z.lines().count(), z.lines().next()), (9, Some("site,z1")));
    }
    place.fails(&["transform", "m.covary", WORKBOOK, "-o", "z.xlsx"], 2, &["'z.xlsx'", "only read", ".csv"]);
    let workbook = WORKBOOK.replace("sheet-second", "sheet-first");
    let output = place.run(&["fit", &workbook, "-q", "1", "-o", "m.covary"]);
    let text = stderr(&output);
    assert!(text.contains("the sheet 'Data' is read, not 'Notes'; --sheet says which"), "{text}");
}

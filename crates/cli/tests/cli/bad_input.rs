//! Data that cannot be used: the right code, and a sentence that says where and what to do.

use crate::support::{Place, rows, table_of};

fn fit_fails(content: &str, args: &[&str], code: i32, words: &[&str]) {
    let place = Place::new();
    place.write("x.csv", content);
    place.fails(&[&["fit", "x.csv", "-o", "m.covary"], args].concat(), code, words);
    assert_eq!(place.files(), ["x.csv"], "nothing is left behind");
}

#[test]
fn empty_file() {
    fit_fails("", &[], 3, &["'x.csv'", "empty"]);
}

#[test]
fn header_only() {
    fit_fails("a,b\n", &[], 3, &["'x.csv'", "no rows"]);
}

#[test]
fn ragged_rows() {
    fit_fails("a,b\n1,2\n3\n4,5\n", &[], 3, &["'x.csv'", "row 2", "line 3", "1 fields"]);
}

#[test]
fn text_in_a_numeric_column() {
    fit_fails("a,b\n1,2\n3,oops\n4,5\n6,7\n", &[], 3, &["'x.csv'", "row 2", "'b'", "'oops'", "--drop"]);
    let late: String =
        (0..3000).map(|i| format!("{},{}\n", i % 7, if i == 2500 { "?" } else { "1" })).collect();
    fit_fails(&format!("a,b\n{late}"), &[], 3, &["row 2501", "line 2502", "'b'", "'?'"]);
}

#[test]
fn a_column_of_text_cannot_be_asked_for() {
    fit_fails("a,b\n1,x\n3,y\n4,z\n", &["--columns", "a,b"], 3, &["'b'", "not numeric"]);
    fit_fails("a\nx\ny\n", &[], 3, &["no numeric column"]);
}

#[test]
fn infinite_cells() {
    fit_fails("a,b\n1,2\n3,-inf\n4,5\n", &[], 3, &["'x.csv'", "row 2", "'b'", "infinite"]);
    fit_fails("a,b\n1,2\n3,1e999\n4,5\n", &[], 3, &["row 2", "'b'"]);
    let place = Place::new();
    let mut x = rows(50, 3, 1);
    x[(33, 1)] = f64::INFINITY;
    for name in ["x.npy", "x.parquet"] {
        table_of(&place, name, &x);
        place.fails(&["fit", name], 3, &[&format!("'{name}'"), "row 34", "'x2'", "inf"]);
    }
}

#[test]
fn too_few_cells_for_any_component() {
    fit_fails(
        "a,b\n1,2\n3,\n4,5\n",
        &["-q", "1"],
        3,
        &["'x.csv'", "1 component", "5 observed cells", "more cells"],
    );
    let place = Place::new();
    place.write("x.csv", "a,b\n1,2\n3,NA\n4,5\n");
    let output = place.shell("covary fit - -q 1 < x.csv");
    crate::support::check_failure(&["-"], &output, 3, &["standard input", "observed cells"]);
    place.write("m.csv", "a,b\n1,2\n3,NA\n4,5\n");
    place.fails(&["moments", "m.csv", "-o", "m.moments"], 3, &["'m.csv'", "row 2", "'b'", "empty"]);
}

#[test]
fn constant_data_and_constant_columns() {
    fit_fails("a,b\n1,2\n1,2\n1,2\n", &[], 3, &["'x.csv'", "no variance"]);
    let place = Place::new();
    place.write("x.csv", "a,b\n1,2\n1,4\n1,6\n");
    let told = place.json(&["fit", "x.csv", "-q", "1", "--json"]);
    crate::support::close(told["eigenvalues"][0].as_f64().unwrap(), 8.0 / 3.0, 1e-14);
}

#[test]
fn one_row() {
    fit_fails("a,b\n1,2\n", &[], 3, &["'x.csv'", "1 row", "at least 2"]);
}

#[test]
fn more_components_than_possible() {
    fit_fails("a,b,c,d\n1,2,3,4\n3,5,1,2\n4,4,9,1\n", &["-q", "3"], 3, &["'x.csv'", "1 to 2", "3 rows"]);
    fit_fails("a,b\n1,2\n3,5\n4,4\n7,1\n", &["-q", "3"], 3, &["1 to 2", "2 features"]);
    for solver in ["eigen", "svd", "dual", "krylov"] {
        fit_fails("a,b\n1,2\n3,5\n4,4\n7,1\n", &["-q", "3", "--solver", solver], 3, &["1 to 2"]);
    }
}

#[test]
fn bad_weights() {
    fit_fails("a,b,w\n1,2,1\n3,5,-1\n", &["--weights", "w"], 3, &["row 2", "'w'", "-1"]);
    fit_fails("a,b,w\n1,2,0\n3,5,0\n", &["--weights", "w"], 3, &["'x.csv'", "weight"]);
}

#[test]
fn unknown_columns_and_endings() {
    fit_fails("width,b\n1,2\n3,5\n", &["--id", "widht"], 2, &["'widht'", "did you mean 'width'"]);
    fit_fails("a,b\n1,2\n3,5\n", &["--columns", "2-9"], 2, &["2 columns", "'2-9'"]);
    let place = Place::with_model();
    place.fails(&["fit", "x.docx"], 2, &["'x.docx'", ".parquet"]);
    place.fails(&["transform", "cross.covary", "cross.csv", "-o", "z.xlsx"], 2, &["'z.xlsx'"]);
    place.fails(&["fit", "cross.csv", "-o", "m.csv"], 2, &["m.csv", "model.covary"]);
}

#[test]
fn features_that_do_not_fit_the_model() {
    let place = Place::with_model();
    place.write("other.csv", "a,d,B\n1,2,3\n");
    place.fails(&["transform", "cross.covary", "other.csv"], 3, &["'b', 'c'", "is 'B' meant", "'other.csv'"]);
    place.fails(&["score", "cross.covary", "cross.csv", "--drop", "b"], 3, &["'b'", "model"]);
    let words = ["2 columns", "3 features"];
    place.fails(&["score", "cross.covary", "cross.csv", "--columns", "a,b"], 3, &words);
    let words = ["'b'", "'a'", "by name"];
    place.fails(&["score", "cross.covary", "cross.csv", "--columns", "b,a,c"], 3, &words);
    table_of(&place, "wide.npy", &rows(5, 4, 1));
    place.fails(&["reconstruct", "cross.covary", "wide.npy"], 3, &["4 columns", "3 features"]);
}

#[test]
fn truncated_files() {
    let place = Place::with_model();
    for name in ["x.parquet", "x.npy", "x.csv.gz", "x.csv.zst", "x.arrow"] {
        table_of(&place, name, &rows(20_000, 3, 3));
        let whole = place.read(name);
        for keep in [whole.len() / 2, whole.len() - 1] {
            place.write(name, &whole[..keep]);
            let output = place.run(&["fit", name, "-q", "1", "-o", "m.covary"]);
            crate::support::check_failure(&[name], &output, 5, &[&format!("'{name}'"), "not a whole"]);
        }
    }
    assert!(!place.files().contains(&"m.covary".to_owned()));
}

#[test]
fn a_bad_row_leaves_no_partial_answers() {
    let place = Place::with_model();
    let late: String =
        (0..90_000).map(|i| if i == 89_000 { "1,x,1\n" } else { "1,2,3\n" }.to_owned()).collect();
    place.write("late.csv", format!("a,b,c\n{late}"));
    place.write("z.csv", "old");
    for out in ["z.csv", "z.parquet", "z.npy"] {
        place.fails(&["transform", "cross.covary", "late.csv", "-o", out], 3, &["row 89001", "'b'"]);
    }
    assert_eq!(place.read("z.csv"), b"old");
    assert_eq!(place.files(), ["cross.covary", "cross.csv", "late.csv", "z.csv"]);
}

#[test]
fn a_column_that_the_output_would_have_twice() {
    let place = Place::with_model();
    place.write("z.csv", "z1,a,b,c\nx,1,2,3\n");
    place.fails(&["transform", "cross.covary", "z.csv"], 2, &["'z1'", "--drop"]);
    place.fails(&["transform", "cross.covary", "z.csv", "-o", "out.npy", "--id", "a"], 3, &["'a'"]);
}

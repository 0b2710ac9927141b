//! Triples and pairs: the same cells from every format, ids in a stated order, and what is wrong named.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Folder, failure, gzip, small};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use covary::data::RowSource;
use covary::linalg::Mat;
use covary_io::{
    CarriedBecause, CarriedColumn, Error, Result, TripleColumns, TripleOptions, Triples, Writer, pairs,
};

const RATINGS: &str =
    "stars,film,when,user\n5,Alien,x,bo\n,Brazil,x,bo\n3,Cube,x,al\n1,Alien,x,al\n2,Brazil,x,cy\n";

fn options(columns: &str) -> TripleOptions {
    TripleOptions { read: small(24), ..TripleOptions::new(TripleColumns::parse(columns).unwrap()) }
}

fn read(path: impl AsRef<Path>, columns: &str) -> Result<Triples> {
    covary_io::triples(path, &options(columns))
}

fn names(triples: &Triples) -> (Vec<&str>, Vec<&str>) {
    let text =
        |names: Option<&[String]>| names.unwrap().iter().map(|n| n.as_str().to_owned()).collect::<Vec<_>>();
    let leak = |names: Vec<String>| names.into_iter().map(|n| &*n.leak()).collect();
    (leak(text(triples.cells.row_names())), leak(text(triples.cells.feature_names())))
}

/// The table that the triples are part of.
fn table(triples: &Triples) -> Vec<crate::support::Row> {
    let n = triples.cells.nrows();
    let all = covary::data::Cells::Observed(triples.cells.rows(0..n));
    crate::support::rows_of(&all)
}

#[test]
fn names_keep_their_order_and_an_empty_value_was_not_seen() {
    let folder = Folder::new();
    let path = folder.file("r.csv", RATINGS);
    let expected =
        vec![vec![Some(5.0), None, None], vec![Some(1.0), None, Some(3.0)], vec![None, Some(2.0), None]];
    for columns in ["user,film,stars", " 4, 2 ,1", "user,2,1"] {
        let found = read(&path, columns).unwrap();
        assert_eq!(names(&found), (vec!["bo", "al", "cy"], vec!["Alien", "Brazil", "Cube"]));
        assert_eq!(table(&found), expected);
        assert_eq!(
            (found.cells.n_cells(), found.n_triples, found.schema.carried[0].name.as_str()),
            (4, 5, "user")
        );
    }
    let packed = folder.file("r.csv.gz", gzip(RATINGS.as_bytes()));
    assert_eq!(table(&read(packed, "user,film,stars").unwrap()), expected);
    let tabs = folder.file("r.tsv", RATINGS.replace(',', "\t"));
    assert_eq!(table(&read(tabs, "user,film,stars").unwrap()), expected);
}

#[test]
fn whole_numbers_ascend_whatever_the_format() {
    let folder = Folder::new();
    let triples = [(12.0, 3.0, 0.5), (2.0, 3.0, 1.5), (12.0, 0.0, -2.0)];
    let bare = triples.map(|(a, b, c)| format!("{a},{b},{c}\n")).concat();
    folder.file("t.csv", &bare);
    folder.file("h.csv", format!("u,i,v\n{bare}"));
    folder.file("f.csv", "u,i,v\n12.0,3,0.5\n2.0,3,1.5\n1.2e1,0,-2\n");
    let x = Mat::from_fn(3, 3, |i, j| [triples[i].0, triples[i].1, triples[i].2][j]);
    for name in ["t.npy", "t.parquet", "t.arrow"] {
        let mut writer =
            Writer::create(folder.path(name), &[], &["u".into(), "i".into(), "v".into()]).unwrap();
        writer.write(&[], x.as_ref()).unwrap();
        writer.finish().unwrap();
    }
    for name in ["t.csv", "h.csv", "f.csv", "t.npy", "t.parquet", "t.arrow"] {
        let found = read(folder.path(name), "1,2,3").unwrap();
        assert_eq!(names(&found), (vec!["2", "12"], vec!["0", "3"]), "{name}");
        assert_eq!(table(&found), [[None, Some(1.5)], [Some(-2.0), Some(0.5)]], "{name}");
    }
}

/// A Parquet file with a column of whole numbers and one of text.
fn typed(folder: &Folder, users: &[i64], items: &[&str], values: &[f64]) -> std::path::PathBuf {
    let carried =
        |name: &str, data_type| CarriedColumn { name: name.into(), data_type, because: CarriedBecause::Id };
    let columns = [carried("u", DataType::Int64), carried("i", DataType::Utf8)];
    let path = folder.path("typed.parquet");
    let mut writer = Writer::create(&path, &columns, &["v".into()]).unwrap();
    let arrays: [ArrayRef; 2] =
        [Arc::new(Int64Array::from(users.to_vec())), Arc::new(StringArray::from(items.to_vec()))];
    writer.write(&arrays, Mat::from_fn(values.len(), 1, |i, _| values[i]).as_ref()).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn a_column_of_text_may_hold_anything_and_one_of_numbers_may_not() {
    let folder = Folder::new();
    let found = read(typed(&folder, &[7, 3], &["-1", "2.5"], &[1.0, 2.0]), "u,i,v").unwrap();
    assert_eq!(names(&found), (vec!["3", "7"], vec!["-1", "2.5"]));
    let error = failure(read(typed(&folder, &[7, -3], &["a", "b"], &[1.0, 2.0]), "u,i,v"));
    assert!(matches!(&error, Error::BadId { text, place, .. } if text == "-3" && place.row == 2), "{error}");
    let error = failure(read(typed(&folder, &[7, 3], &["a", "b"], &[1.0, f64::NEG_INFINITY]), "u,i,v"));
    assert!(
        matches!(&error, Error::Infinite { column, place, .. } if column == "v" && place.row == 2),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let folder = Folder::new();
    let text = |body: &str, columns: &str| {
        failure(read(folder.file("t.csv", format!("u,i,v\n{body}")), columns)).to_string()
    };
    let says =
        |text: &str, words: &[&str]| words.iter().for_each(|w| assert!(text.contains(w), "{w}: {text}"));
    says(&text("a,x,1\nb,x,2\na,x,3\n", "u,i,v"), &["rows 1 and 3", "'a'", "'x'", "keep one"]);
    says(&text("1,x,1\n2,x,2\n1.0,x,3\n", "u,i,v"), &["rows 1 and 3", "'1'", "'x'"]);
    says(&text("a,x,1\nb,x,2\nc,x,two\n", "u,i,v"), &["row 3 (line 4)", "'v'", "'two'", "leave it empty"]);
    says(&text("a,x,1\nb,x,-inf\n", "u,i,v"), &["row 2 (line 3)", "'v'", "infinite"]);
    says(&text("a,x,1\n ,x,2\n", "u,i,v"), &["row 2", "'u'", "empty"]);
    says(&text("a,1,1\nb,NA,2\n", "u,i,v"), &["row 2", "'i'", "empty"]);
    says(&text("1,x,1\n1.5,x,2\n", "u,i,v"), &["row 2", "'u'", "'1.5'", "whole numbers"]);
    says(&text("1,x,1\n-1,x,2\n", "u,i,v"), &["row 2", "'u'", "'-1'"]);
    says(&text("a,x,1\n", "user,i,v"), &["no column 'user'", "'u', 'i', 'v'"]);
    says(&text("a,x,1\n", "u,u,v"), &["'u'", "twice"]);
    says(&text("a,x,1\n", "u,i,u"), &["'u'", "twice"]);
    says(&text("a,x,1\n", "1,2,4"), &["3 columns", "'4'"]);
    says(&text("a,x,y\n", "u,i,v"), &["'v'", "not numeric"]);
    for wrong in ["u,i", "u,i,v,w", "u,,v", ""] {
        assert!(matches!(TripleColumns::parse(wrong), Err(Error::NotThree { .. })), "{wrong}");
    }
}

#[test]
fn triples_without_a_header_are_all_read_and_that_is_said() {
    let folder = Folder::new();
    let bare = folder.file("bare.csv", "al,Alien,5\nbo,Cube,3\n");
    let found = read(bare, "1,2,3").unwrap();
    assert_eq!((found.n_triples, found.cells.n_features()), (2, 2));
    assert!(found.schema.header_guess.is_some_and(|guess| !guess.header));
}

#[test]
fn items_of_a_model_decide_about_the_features() {
    let folder = Folder::new();
    let path = folder.file("r.csv", RATINGS);
    let items = |names: &[&str]| TripleOptions {
        items: Some(names.iter().map(|n| (*n).to_owned()).collect()),
        ..options("user,film,stars")
    };
    let found = covary_io::triples(&path, &items(&["Cube", "Dune", "Brazil", "Alien"])).unwrap();
    assert_eq!(names(&found).1, ["Cube", "Dune", "Brazil", "Alien"]);
    assert_eq!(table(&found)[1], [Some(3.0), None, None, Some(1.0)]);
    let error = failure(covary_io::triples(&path, &items(&["cube", "Brazil", "Alien"])));
    let text = error.to_string();
    assert!(text.contains("row 3") && text.contains("'Cube'") && text.contains("'cube'"), "{text}");
}

#[test]
fn pairs_find_rows_and_items_and_carry_everything() {
    let folder = Folder::new();
    let path = folder.file("p.csv", "n,film,user\n1,Cube,bo\n2,Alien,zoe\n3,Alien,al\n");
    let columns = TripleColumns::parse("user,film,stars").unwrap();
    let (rows, items) = (["bo", "al"].map(String::from), ["Alien", "Cube"].map(String::from));
    let found = pairs(&path, &columns, &rows, &items, &small(10)).unwrap();
    assert_eq!(found.schema().carried.len(), 3);
    let batches: Vec<_> = found.map(Result::unwrap).collect();
    let whole =
        |f: fn(&covary_io::PairBatch) -> Vec<Option<usize>>| batches.iter().flat_map(f).collect::<Vec<_>>();
    assert_eq!(whole(|b| b.rows.clone()), [Some(0), None, Some(1)]);
    assert_eq!(whole(|b| b.items.iter().map(|i| Some(*i)).collect()), [Some(1), Some(0), Some(0)]);
    let first: Vec<&str> =
        batches.iter().flat_map(|b| b.carried[0].as_string::<i32>().iter().flatten()).collect();
    assert_eq!(first, ["1", "2", "3"]);
    let wrong = folder.file("w.csv", "film,user\nCube,bo\nDune,bo\n");
    let error = pairs(wrong, &columns, &rows, &items, &small(10)).unwrap().find_map(Result::err).unwrap();
    assert!(
        matches!(&error, Error::UnknownId { text, place, .. } if text == "Dune" && place.row == 2),
        "{error}"
    );
    assert!(pairs(folder.path("none.csv"), &columns, &rows, &items, &small(10)).is_err());
}

#[test]
fn pairs_keep_their_types() {
    let folder = Folder::new();
    let path = typed(&folder, &[3, 4], &["x", "y"], &[0.5, 1.5]);
    let columns = TripleColumns::parse("u,i,v").unwrap();
    let (rows, items) = (["4".to_owned()], ["x", "y"].map(String::from));
    let mut found = pairs(path, &columns, &rows, &items, &small(1 << 20)).unwrap();
    let batch = found.next().unwrap().unwrap();
    assert_eq!((batch.rows, batch.items), (vec![None, Some(0)], vec![0, 1]));
    let fields = ["u", "i", "v"].into_iter().zip(&batch.carried);
    let schema =
        Schema::new(fields.map(|(n, a)| Field::new(n, a.data_type().clone(), true)).collect::<Vec<_>>());
    let rows = RecordBatch::try_new(Arc::new(schema), batch.carried).unwrap();
    assert_eq!(rows.column(0).data_type(), &DataType::Int64);
    assert_eq!(rows.column(2).as_any().downcast_ref::<Float64Array>().unwrap().value(1), 1.5);
}

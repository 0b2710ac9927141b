//! Matrices with names on two sides.

use std::fs;

use covary_io::{Error, Matrix, ReadOptions, Result, Selection, matrix, square_matrix};

fn square(text: &str, columns: Option<&str>, drop: Option<&str>) -> Result<Matrix> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.csv");
    fs::write(&path, text).unwrap();
    let selection = |text: Option<&str>| text.map(|text| Selection::parse(text).unwrap());
    let options =
        ReadOptions { columns: selection(columns), drop: selection(drop), ..ReadOptions::default() };
    square_matrix(&path, &options)
}

const LABELLED: &str = "name,a,b,c\na,1,.2,.3\nb,.2,1,.4\nc,.3,.4,1\n";

#[test]
fn names_may_stand_on_two_sides_on_one_or_nowhere() {
    let names = |text: &str| {
        let found = square(text, None, None).unwrap();
        assert_eq!(found.cells[(2, 1)], 0.4);
        (found.columns, found.rows.is_some())
    };
    assert_eq!(names(LABELLED), (vec!["a".into(), "b".into(), "c".into()], true));
    assert!(!names("a,b,c\n1,.2,.3\n.2,1,.4\n.3,.4,1\n").1);
    assert_eq!(names("1,.2,.3\n.2,1,.4\n.3,.4,1\n").0, ["x1", "x2", "x3"]);
    assert_eq!(
        names(",7,8,9\n7,1,.2,.3\n8,.2,1,.4\n9,.3,.4,1\n"),
        (vec!["7".into(), "8".into(), "9".into()], true)
    );
}

#[test]
fn selections_take_rows_and_columns() {
    for (columns, drop) in [(Some("c,a"), None), (Some("4,2"), None)] {
        let found = square(LABELLED, columns, drop).unwrap();
        assert_eq!(found.columns, ["c", "a"]);
        assert_eq!((found.cells[(0, 1)], found.cells[(1, 1)]), (0.3, 1.0));
    }
    assert_eq!(square(LABELLED, None, Some("b")).unwrap().columns, ["a", "c"]);
    assert!(matches!(square(LABELLED, Some("d"), None), Err(Error::UnknownColumn { .. })));
    assert!(matches!(square(LABELLED, Some("a"), Some("a")), Err(Error::NoFeatures { .. })));
}

#[test]
fn what_is_not_square_or_called_otherwise_is_refused() {
    let long = "a,b\n1,2\n".to_owned() + &"3,4\n".repeat(100_000);
    assert!(matches!(square(&long, None, None), Err(Error::NotSquare { columns: 2, .. })));
    assert!(matches!(
        square("a,b,c\n1,2,3\n", None, None),
        Err(Error::NotSquare { rows: 1, columns: 3, .. })
    ));
    let other = LABELLED.replace("\nb,", "\nd,");
    assert!(matches!(square(&other, None, None), Err(Error::RowName { row: 2, .. })));
    let text = "name,a,note\na,1,x\n";
    assert!(matches!(square(text, None, None), Err(Error::NotNumeric { .. })));
}

#[test]
fn any_matrix_may_have_empty_cells() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    fs::write(&path, "feature,f1,f2\nu,0,\nv,,0\n").unwrap();
    let found = matrix(&path, &ReadOptions::default()).unwrap();
    assert_eq!((found.columns.len(), found.rows), (2, Some(vec!["u".into(), "v".into()])));
    assert!(found.cells[(0, 1)].is_nan() && found.cells[(0, 0)] == 0.0);
}

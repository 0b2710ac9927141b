//! Whether the first line is a header: numbers that are names, rows that miss a value, and what is said about
//! it.

use crate::support::*;
use covary_io::{HeaderGuess, HeaderSign, ReadOptions, Schema, open};

/// Names of the features, the first row, and what was guessed.
fn read(text: &str) -> (Schema, Row) {
    read_with(text, None)
}

fn read_with(text: &str, header: Option<bool>) -> (Schema, Row) {
    let folder = Folder::new();
    let options = ReadOptions { header, ..small(100) };
    let (plain, gz) = (folder.file("t.csv", text), folder.file("t.csv.gz", gzip(text.as_bytes())));
    let rows = load(&plain, &options).unwrap();
    assert_eq!(load(&gz, &options).unwrap(), rows, "{text:?}");
    (open(&plain, &options).unwrap().schema().clone(), rows[0].clone())
}

/// A first line, then rows of absorbances with three decimals.
fn spectra(first: &str, columns: usize) -> String {
    let mut text = format!("{first}\n");
    let mut state = 1_u32;
    for _ in 0..20 {
        let mut cell = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("0.{:03}", (state >> 16) % 1000)
        };
        text += &((0..columns).map(|_| cell()).collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

fn is_header(schema: &Schema, names: &[&str]) -> bool {
    assert_eq!(schema.features, names);
    schema.header_guess.as_ref().is_some_and(|guess| guess.header) && schema.named
}

#[test]
fn wavelengths_and_years_are_names_and_that_is_said() {
    let (schema, row) = read(&spectra("400,410,420", 3));
    assert!(is_header(&schema, &["400", "410", "420"]), "{:?}", schema.header_guess);
    assert!(row.iter().flatten().all(|x| *x < 1.0), "{row:?}");
    let guess = schema.header_guess.unwrap();
    assert_eq!(guess.signs, [HeaderSign::Whole, HeaderSign::Far]);
    assert!(guess.to_string().contains("taken as the header"), "{guess}");
    // Half nanometres, and descending wave numbers.
    let halves = ["400.5", "401.0", "401.5", "402.0", "402.5"];
    assert!(is_header(&read(&spectra(&halves.join(","), 5)).0, &halves));
    assert!(is_header(&read(&spectra("4000,3998,3996", 3)).0, &["4000", "3998", "3996"]));
    // Counts have no decimals either: order and even steps tell.
    let years = "1990,1991,1992,1993,1994\n12,7,4410,3,0\n3,25,1,980,4\n55,1,2,31,2200\n7,4,9,1,1\n";
    assert!(is_header(&read(years).0, &["1990", "1991", "1992", "1993", "1994"]));
    // The corner that pandas leaves empty above its index, which is no feature, and names above text.
    let indexed = spectra("400,410,420", 3).lines().enumerate().fold(String::new(), |text, (i, line)| {
        text + &if i == 0 { format!(",{line}\n") } else { format!("{},{line}\n", i - 1) }
    });
    assert!(is_header(&read(&indexed).0, &["400", "410", "420"]));
    let countries = "country,1990,1991,1992\nA,3.5,2.1,9.9\nB,1.5,7.25,1.0\nC,2.5,2.5,2.5\nD,0.1,0.2,0.1\n";
    let (schema, _) = read(countries);
    assert!(schema.header_guess.as_ref().is_some_and(|g| g.header), "{:?}", schema.header_guess);
    assert_eq!(schema.features, ["1990", "1991", "1992"]);
    // As R writes names.
    assert!(is_header(&read("\"1\",\"2\"\n3,5\n1,2\n").0, &["1", "2"]));
}

#[test]
fn a_first_row_that_misses_a_value_is_a_row() {
    for first in ["1.5,,2.5", "NA,1.5,2", ",1.5,2.5", "1,nan,3", "null,2,"] {
        let (schema, row) = read(&format!("{first}\n4.5,5.25,6\n7,8.5,1\n2,4,3.5\n"));
        assert!(!schema.named && schema.features == ["x1", "x2", "x3"], "{first}");
        assert_eq!((schema.n_rows, row.iter().flatten().count() < 3), (Some(4), true), "{first}");
        assert_eq!(schema.header_guess, None, "{first}: nothing to be said");
    }
    // A word for it that is not known is told when the cell is read, not swallowed as a name.
    let folder = Folder::new();
    let path = folder.file("t.csv", "1.5,?,2.5\n4.5,5.25,6\n7,8.5,1\n");
    assert!(matches!(
        failure(load(&path, &small(100))),
        covary_io::Error::NotANumber { place, text, .. } if place.row == 1 && text == "?"
    ));
}

#[test]
fn rows_of_numbers_are_rows() {
    for text in [
        "1,2\n3,5\n4,4\n",
        "1,2,3\n4,5,6\n7,8,9\n",
        "0,0,0\n0.5,1.5,2.5\n1.5,2.5,9.5\n2.5,0.5,0.5\n",
        "5.1,3.5,1.4\n4.9,3.0,1.4\n4.7,3.2,1.3\n4.6,3.1,1.5\n",
        "3\n1\n2\n",
        "1,2,3,4\n",
        "400,410,420\n",
    ] {
        let (schema, _) = read(text);
        assert!(!schema.named, "{text:?}: {:?}", schema.header_guess);
        assert_eq!((schema.n_rows, schema.header_guess), (Some(text.lines().count()), None), "{text:?}");
    }
}

#[test]
fn what_is_open_is_said() {
    // Only their order speaks for names.
    let (schema, _) = read("1,2,3,7\n9,5,7,1\n4,8,1,6\n2,2,9,3\n");
    let guess = HeaderGuess { header: false, signs: vec![HeaderSign::Ordered] };
    assert_eq!((schema.named, schema.header_guess.as_ref()), (false, Some(&guess)));
    assert!(guess.to_string().contains("taken as a row"), "{guess}");
    // A word above nothing says nothing about the numbers beside it.
    let (schema, _) = read("x,1\n,2\n,3\n,5\n");
    assert_eq!((schema.named, schema.header_guess.is_some()), (false, true));
    // A label among numbers, as in many files without a header.
    for first in ["setosa,5.1,3.5", "virginica,5.0,3.4"] {
        let text = format!("{first}\nsetosa,4.9,3.0\nvirginica,6.3,2.5\nvirginica,5.8,2.7\n");
        let (schema, row) = read(&text);
        assert_eq!((schema.n_rows, row.len()), (Some(4), 2), "{text}");
        assert!(schema.header_guess.is_some_and(|guess| !guess.header), "{text}");
    }
}

#[test]
fn a_name_above_numbers_is_a_header() {
    for text in ["a,b\n1,2\n", ",a\n1,2\n", "t,a\nx,1\n", "a\n1\n"] {
        let (schema, _) = read(text);
        assert_eq!((schema.named, schema.header_guess), (true, None), "{text:?}");
    }
    // Years beside a name, or a row with a slip in it: said.
    let (schema, _) = read("id,2001,2002\n7,1.5,2.5\n8,0.5,1.5\n");
    let guess = HeaderGuess { header: true, signs: vec![HeaderSign::BesideName] };
    assert_eq!((schema.named, schema.header_guess), (true, Some(guess)));
}

#[test]
fn a_line_with_all_names_that_a_model_needs_is_a_header() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "420,400\n0.5,0.25\n");
    let features = Some(vec!["400".into(), "420".into()]);
    let options = ReadOptions { features, ..small(100) };
    assert_eq!(load(&path, &options).unwrap(), [[Some(0.25), Some(0.5)]]);
    assert_eq!(open(&path, &options).unwrap().schema().header_guess, None);
}

#[test]
fn who_knows_can_say_so() {
    let text = spectra("400,410,420", 3);
    let (schema, row) = read_with(&text, Some(false));
    assert_eq!((schema.named, schema.header_guess), (false, None));
    assert_eq!(row, [Some(400.0), Some(410.0), Some(420.0)]);
    let (schema, _) = read_with("1,2\n3,5\n4,4\n", Some(true));
    assert_eq!(
        (schema.features, schema.n_rows, schema.header_guess),
        (vec!["1".into(), "2".into()], Some(2), None)
    );
}

/// The folder of data sets: `../shared/data` beside the repository, or what `COVARY_DATA` says.
fn data_sets() -> Option<std::fs::ReadDir> {
    let beside = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("COVARY_DATA").map_or_else(beside, std::path::PathBuf::from);
    std::fs::read_dir(folder).ok()
}

#[test]
fn public_data_sets_are_read_rightly_with_their_header_and_without() {
    let Some(files) = data_sets() else {
        eprintln!("skipped: the data sets are not there; COVARY_DATA says where");
        return;
    };
    let folder = Folder::new();
    for path in
        files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "csv"))
    {
        let schema = open(&path, &small(1 << 20)).unwrap().schema().clone();
        assert!(schema.named, "{}", path.display());
        let text = std::fs::read_to_string(&path).unwrap();
        let bare = folder.file("bare.csv", text.split_once('\n').unwrap().1);
        assert!(!open(&bare, &small(1 << 20)).unwrap().schema().named, "{}", path.display());
    }
}

//! First lines and names: what is guessed is said, what is missing is matched by position, what is harmful is
//! escaped.

use crate::support::{Place, check_failure, stderr};

/// Wavelengths above absorbances.
const SPECTRA: &str = "400,410,420\n0.31,0.25,0.12\n0.18,0.95,0.4\n0.2,0.55,0.77\n0.61,0.05,0.33\n";

#[test]
fn a_guess_about_the_first_line_is_said_with_the_way_out() {
    let place = Place::new();
    place.write("s.csv", SPECTRA);
    let output = place.run(&["fit", "s.csv", "-q", "1", "-o", "s.covary"]);
    let told = stderr(&output);
    assert!(told.contains("'s.csv'") && told.contains("header") && told.contains("--header no"), "{told}");
    let facts = place.json(&["inspect", "s.covary", "--json"]);
    assert_eq!((facts["rows"].as_u64(), facts["feature_names"][1].as_str()), (Some(4), Some("410")));
    // Programs do not read standard error, but their owners do.
    assert!(stderr(&place.run(&["fit", "s.csv", "-q", "1", "--json"])).contains("--header no"));
    assert_eq!(stderr(&place.run(&["fit", "s.csv", "-q", "1", "--quiet"])), "");
    let output = place.run(&["fit", "s.csv", "-q", "1", "--header", "no", "--json"]);
    assert_eq!(stderr(&output), "");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"rows\": 5,"));
}

#[test]
fn every_command_that_reads_text_takes_the_header_and_says_its_guess() {
    let place = Place::new();
    place.write("s.csv", SPECTRA);
    // A model whose names the first line has would settle it.
    place.ok(&["fit", "s.csv", "-q", "1", "-o", "named.covary", "--quiet"]);
    assert_eq!(stderr(&place.run(&["score", "named.covary", "s.csv"])), "");
    place.ok(&["fit", "s.csv", "-q", "1", "--header", "no", "-o", "m.covary", "--quiet"]);
    for line in [
        "transform m.covary s.csv",
        "reconstruct m.covary s.csv",
        "score m.covary s.csv",
        "impute m.covary s.csv",
        "select s.csv",
        "moments s.csv -o s.moments",
        "impute s.csv --holdout 0.3 -q 1 --json",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        assert!(stderr(&place.run(&args)).contains("--header no"), "{line}");
        let output = place.run(&[&args[..], &["--header", "yes"]].concat());
        assert!(output.status.success() && !stderr(&output).contains("first line"), "{line}");
    }
    place.write("t.csv", "al,Alien,5\nbo,Cube,3\nal,Cube,4\nbo,Alien,1\ncy,Cube,2\n");
    let told = stderr(&place.run(&["fit", "t.csv", "--triples", "1,2,3", "-q", "1"]));
    assert!(told.contains("taken as a row") && told.contains("--header yes"), "{told}");
    check_failure(&["moments"], &place.run(&["fit", "s.moments", "--header", "no"]), 2, &["moments"]);
}

#[test]
fn a_row_that_misses_its_first_value_is_not_lost() {
    let place = Place::new();
    place.write("h.csv", "1.5,,2\n4,5,6.5\n7,8.5,1\n2,4,3.5\n3,1,2\n");
    let output = place.run(&["fit", "h.csv", "-q", "1", "--json"]);
    assert_eq!(stderr(&output), "");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((told["rows"].as_u64(), told["holes"]["missing"].as_u64()), (Some(5), Some(1)));
}

#[test]
fn a_model_of_an_array_takes_columns_with_names() {
    let place = Place::with_model();
    place.write("bare.csv", crate::support::CROSS.split_once('\n').unwrap().1);
    place.ok(&["fit", "bare.csv", "-q", "1", "-o", "bare.covary", "--quiet"]);
    let output = place.run(&["score", "bare.covary", "cross.csv"]);
    let told = stderr(&output);
    assert!(told.contains("no names") && told.contains("'a', 'b', 'c'"), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), place.ok(&["score", "cross.covary", "cross.csv"]));
    assert!(place.ok(&["fit", "cross.csv", "--start", "bare.covary"]).contains("components"));
    place.write("wide.csv", "a,b,c,d\n1,2,3,4\n");
    place.fails(&["score", "bare.covary", "wide.csv"], 3, &["4 columns", "3 features", "--columns"]);
    place.ok(&["score", "bare.covary", "wide.csv", "--columns", "d,b,a"]);
}

#[test]
fn a_column_in_another_role_is_not_suggested_for_itself() {
    let place = Place::with_model();
    for flag in ["--drop", "--id"] {
        let output = place.run(&["score", "cross.covary", "cross.csv", flag, "b"]);
        check_failure(&[flag], &output, 3, &["'b'", "leave it among the features"]);
        assert!(!stderr(&output).contains("meant"), "{}", stderr(&output));
    }
}

/// A name that clears the screen, rings, turns the direction of text and fakes a line.
const EVIL: &str = "w\u{1b}[2J\u{7}\u{9b}31m\u{202e}\ncovary: all is well";

#[test]
fn names_cannot_command_the_terminal() {
    let place = Place::new();
    let rows = "3,0,0,x\n-3,0,1,y\n0,2,0,z\n0,-2,0,u\n1,2,1,v\n";
    place.write("e.csv", format!("\"{EVIL}\",b,c,\"t{EVIL}\"\n{rows}"));
    place.ok(&["fit", "e.csv", "-q", "1", "-o", "e.covary", "--quiet"]);
    let model = &["--model", "fa", "-q", "1", "-o", "f.covary"];
    place.ok(&[&["fit", "e.csv", "--quiet"][..], model].concat());
    place.write("other.csv", "b,c\n1,2\n");
    place.write("n.csv", format!("b,\"{EVIL}\"\n1,2\n3,oops\n4,5\n6,7\n"));
    place.write("i.csv", format!("\"{EVIL}\",b\n1,2\n3,inf\n4,5\n6,7\n"));
    let args: [&[&str]; 12] = [
        &["fit", "e.csv", "-q", "1"],
        &["fit", "e.csv", "-q", "1", "--json"],
        &["fit", "e.csv", "--columns", "none"],
        &["fit", "e.csv", "--model", "fa", "-q", "1"],
        &["fit", "n.csv", "-q", "1"],
        &["fit", "i.csv", "-q", "1"],
        &["inspect", "e.covary"],
        &["inspect", "e.covary", "--json"],
        &["inspect", "e.covary", "--errors"],
        &["inspect", "f.covary"],
        &["rotate", "f.covary", "--method", "varimax"],
        &["score", "e.covary", "other.csv"],
    ];
    for args in args {
        let output = place.run(args);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        let bad = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{args:?}: {shown:?}");
        assert!(!shown.contains("\ncovary: all is well"), "{args:?}: {shown}");
    }
    let names = place.json(&["inspect", "e.covary", "--json"])["feature_names"][0].clone();
    assert_eq!(names.as_str(), Some(EVIL), "programs get the true name");
    assert!(place.ok(&["reconstruct", "e.covary", "e.csv"]).contains(EVIL), "and so do tables");
}

#[test]
fn tiny_numbers_are_short() {
    let place = Place::new();
    place.write("w.csv", "a,b,w\n1,2,1e-300\n3,5,1e-300\n4,4,1e-300\n");
    let text = place.ok(&["fit", "w.csv", "--weights", "w", "-q", "1e-300"]);
    assert!(!text.contains("00000000"), "{text}");
    place.write("bad.csv", "a,b,w\n1,2,1e-300\n3,5,-1e-300\n4,4,1e-300\n");
    place.fails(&["fit", "bad.csv", "--weights", "w"], 3, &["row 2", "'w'", "is -1e-300;"]);
}

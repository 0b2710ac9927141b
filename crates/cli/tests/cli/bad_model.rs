//! Model files that are damaged, foreign or from the future.

use crate::support::Place;

#[test]
fn a_flipped_byte_is_noticed_wherever_it_is() {
    let place = Place::with_model();
    let whole = place.read("cross.covary");
    // The length of the header, its text and the numbers; every eighth byte keeps it fast.
    for at in (0..whole.len()).step_by(8).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        place.write("bad.covary", bytes);
        place.fails(&["inspect", "bad.covary"], 5, &["bad.covary"]);
    }
}

#[test]
fn a_truncated_model_is_noticed() {
    let place = Place::with_model();
    let whole = place.read("cross.covary");
    for keep in [0, 5, 9, 100, whole.len() / 2, whole.len() - 1] {
        place.write("bad.covary", &whole[..keep]);
        place.fails(&["score", "bad.covary", "cross.csv"], 5, &["'bad.covary'", "not a usable"]);
    }
}

#[test]
fn another_version_is_told_as_such() {
    let place = Place::with_model();
    let text = place.read("cross.covary");
    let old = br#"format\":1,"#;
    let at = text.windows(old.len()).position(|w| w == old).unwrap();
    let mut bytes = text.clone();
    bytes[at + old.len() - 2] = b'7';
    place.write("new.covary", bytes);
    place.fails(&["inspect", "new.covary"], 5, &["'new.covary'", "version 7", "upgrade"]);
}

#[test]
fn other_files_are_no_models() {
    let place = Place::with_model();
    place.write("poem.txt", "Of shoes and ships and sealing wax, of cabbages and kings");
    place.fails(&["inspect", "poem.txt"], 5, &["'poem.txt'", "not a usable"]);
    place.fails(&["inspect", "cross.csv"], 2, &["'cross.csv'", "table"]);
    place.fails(&["transform", "cross.csv", "cross.covary"], 2, &["the model comes first"]);
    place.fails(&["score", "nowhere.covary", "cross.csv"], 5, &["'nowhere.covary'", "no such file"]);
    place.fails(&["score", ".", "cross.csv"], 5, &["directory"]);
}

//! `covary report`: the page, what it holds, and what is refused.

use std::io::Read;

use serde_json::Value;

use crate::support::{Place, stderr};

/// What the page is told: the JSON at the start of its block.
fn told(place: &Place, page: &str) -> Value {
    let html = String::from_utf8(place.read(page)).unwrap();
    let (_, after) = html.split_once("id=\"data\">").unwrap();
    let (block, _) = after.split_once('<').unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&decoded(block)[..]).read_to_end(&mut bytes).unwrap();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    serde_json::from_slice::<Value>(&bytes[4..4 + length]).unwrap()["about"].clone()
}

/// Base64, the long way.
fn decoded(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |c: u8| (0u32..).zip(LETTERS).find(|(_, l)| **l == c).unwrap().0;
    let quads = text.trim_end_matches('=').as_bytes().chunks(4);
    let bytes = |quad: &[u8]| {
        let all = quad.iter().enumerate().fold(0, |sum, (k, c)| sum | (value(*c) << (18 - 6 * k)));
        all.to_be_bytes()[1..quad.len()].to_vec()
    };
    quads.flat_map(bytes).collect()
}

#[test]
fn a_page_is_one_file_without_anything_from_outside() {
    let place = Place::with_model();
    assert_eq!(place.ok(&["report", "cross.covary", "cross.csv", "-o", "page.html"]), "");
    let html = String::from_utf8(place.read("page.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("default-src 'none'"));
    assert!(!html.contains("src=\"http") && !html.contains("<link"));
    let told = told(&place, "page.html");
    assert_eq!((told["kind"].as_str(), told["rows"]["shown"].as_u64()), (Some("ppca"), Some(6)));
    assert_eq!(told["sentences"][0], "The table has 6 rows and 3 features: a, b and c.");
    assert_eq!(told["model"], "cross.covary");
}

#[test]
fn the_same_data_and_seed_make_the_same_page() {
    let place = Place::with_model();
    for (page, seed) in [("one.html", "1"), ("two.html", "1"), ("other.html", "2")] {
        place.ok(&[
            "report",
            "cross.covary",
            "cross.csv",
            "--rows",
            "3",
            "--seed",
            seed,
            "-o",
            page,
            "--quiet",
        ]);
    }
    assert_eq!(place.read("one.html"), place.read("two.html"));
    let told = told(&place, "other.html");
    assert_eq!((told["rows"]["shown"].as_u64(), told["rows"]["sampled"].as_bool()), (Some(3), Some(true)));
}

#[test]
fn a_sample_is_said_and_columns_of_numbers_come_along() {
    let place = Place::with_model();
    place.write("more.csv", "who,a,b,c,age\n<b>,3,0,0,7\nx,-3,0,0,8\ny,0,2,,9\n");
    let output =
        place.run(&["report", "cross.covary", "more.csv", "--id", "who", "--rows", "2", "-o", "p.html"]);
    assert!(stderr(&output).contains("2 of 3 rows"), "{}", stderr(&output));
    let told = told(&place, "p.html");
    assert_eq!(
        (told["carried"][0]["name"].as_str(), told["carried"][1]["name"].as_str()),
        (Some("who"), Some("age"))
    );
    assert_eq!((told["id"].as_u64(), told["missing"][2].as_u64()), (Some(0), Some(1)));
    assert!(told["sentences"][1].as_str().unwrap().starts_with("11.1 % of the cells are missing, in 1 row"));
}

#[test]
fn without_rows_there_are_counts_only() {
    let place = Place::with_model();
    place.ok(&["report", "cross.covary", "cross.csv", "--no-rows", "-o", "page.html"]);
    let told = told(&place, "page.html");
    assert_eq!((told["rows"]["shown"].as_u64(), told["rows"]["total"].as_u64()), (Some(0), Some(6)));
}

#[test]
fn features_can_be_pixels_or_markers() {
    let place = Place::with_model();
    place.ok(&["report", "cross.covary", "cross.csv", "--image", "1x3", "-o", "page.html"]);
    assert_eq!(told(&place, "page.html")["image"]["width"], 3);
    place.write("run.csv", "H:X,H:Y,H:Z,F:X,F:Y,F:Z\n1,2,3,4,5,7\n2,1,3,5,5,6\n3,2,1,4,6,5\n1,1,2,3,5,8\n");
    place.write("links.csv", "from,to\nH,F\n");
    place.ok(&["fit", "run.csv", "-q", "1", "-o", "run.covary", "--quiet"]);
    place.ok(&["report", "run.covary", "run.csv", "--stick", "links.csv", "-o", "run.html"]);
    assert_eq!(told(&place, "run.html")["stick"]["links"][0][1], 1);
    place.write("bad.csv", "H,NECK\n");
    let stick = ["report", "run.covary", "run.csv", "--stick", "bad.csv", "-o", "run.html"];
    place.fails(&stick, 2, &["bad.csv", "NECK"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::with_model();
    let report = |more: &[&'static str]| [&["report", "cross.covary", "cross.csv"], more].concat();
    place.fails(&report(&["-o", "page.pdf"]), 2, &["page.pdf", ".html"]);
    place.fails(&report(&["-o", "p.html", "--image", "8x8"]), 2, &["64 pixels", "3 features"]);
    place.fails(&report(&["-o", "p.html", "--stick", "none.csv"]), 5, &["none.csv"]);
    place.write("other.csv", "a,b\n1,2\n");
    place.fails(&["report", "cross.covary", "other.csv", "-o", "p.html"], 3, &["other.csv"]);
    assert!(!place.files().iter().any(|name| name == "p.html"));
}

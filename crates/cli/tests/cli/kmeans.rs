//! k-means through the binary: fit, assign, transform, reconstruct, inspect, and what is refused.

use serde_json::Value;

use crate::support::{Place, close, csv, names, rows_with_holes, table_of, triples_of};

/// Two clusters of a line, of four and three rows; one row has a missing cell, one has none.
const LINE: &str = "name,a,b\np,0,0\nq,2,0\nr,0,2\ns,2,2\nt,10,10\nu,12,10\nv,11,\nw,,\n";

fn line() -> Place {
    let place = Place::new();
    place.write("line.csv", LINE);
    place.ok(&["fit", "line.csv", "--model", "kmeans", "-k", "2", "-o", "m.covary", "--quiet"]);
    place
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn clusters_are_told_and_kept() {
    let place = line();
    let told = place.json(&["inspect", "m.covary", "--json"]);
    let clusters = &told["clusters"];
    // By hand: centres (1, 1) and (11, 10), squares 4·2 and 1 + 1 + 0.
    assert_eq!((told["model"].as_str(), told["components"].as_u64()), (Some("kmeans"), Some(2)));
    assert_eq!(numbers(&clusters["centres"][0]), [1.0, 1.0]);
    assert_eq!(numbers(&clusters["centres"][1]), [11.0, 10.0]);
    assert_eq!(numbers(&clusters["within"]), [8.0, 2.0]);
    assert_eq!(numbers(&clusters["sizes"]), [4.0, 3.0]);
    assert_eq!(clusters["inertia"].as_f64(), Some(10.0));
    assert_eq!((clusters["asked"].as_u64(), clusters["found"].as_u64()), (Some(2), Some(2)));
    assert!(told["log_likelihood"].is_null() && told["noise_variance"].is_null());
    let text = place.ok(&["inspect", "m.covary"]);
    for words in ["clusters (K)", "sum of squares (inertia)", "lie between clusters", "cluster", "share"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(!text.contains("log-likelihood"), "{text}");
}

#[test]
fn rows_are_assigned_measured_and_rebuilt() {
    let place = line();
    let (header, groups) = csv(&place.ok(&["assign", "m.covary", "line.csv", "--drop", "name"]));
    assert_eq!(header, ["group"]);
    let groups: Vec<f64> = groups.into_iter().flatten().collect();
    // The row without any cell belongs to the largest.
    assert_eq!(groups, [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0]);
    let (header, distances) = csv(&place.ok(&["transform", "m.covary", "line.csv", "--drop", "name"]));
    assert_eq!(header, ["d1", "d2"]);
    close(distances[0][0], 2f64.sqrt(), 1e-15);
    close(distances[6][0], 10.0, 1e-15);
    assert_eq!(distances[7], [0.0, 0.0]);
    let (_, rebuilt) = csv(&place.ok(&["reconstruct", "m.covary", "line.csv", "--drop", "name"]));
    assert_eq!((&rebuilt[0][..], &rebuilt[6][..]), (&[1.0, 1.0][..], &[11.0, 10.0][..]));
    let named = place.ok(&["assign", "m.covary", "line.csv"]);
    assert!(named.starts_with("name,group\np,1\n"), "{named}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = line();
    let fit = |more: &[&'static str]| [&["fit", "line.csv", "--model", "kmeans"][..], more].concat();
    place.fails(&fit(&[]), 2, &["k-means needs the number of clusters", "-k 3", "-k auto"]);
    place.fails(&fit(&["-q", "2"]), 2, &["-q is for", "--model ppca", "-k"]);
    place.fails(&fit(&["-k", "2", "--solver", "eigen"]), 2, &["Lloyd", "--solver"]);
    place.fails(&["fit", "line.csv", "-k", "2"], 2, &["-k is for k-means", "--model kmeans"]);
    place.fails(&["assign", "m.covary", "line.csv", "--probabilities"], 2, &["k-means does not have"]);
    place.fails(&["score", "m.covary", "line.csv"], 2, &["k-means does not have a density"]);
    place.fails(&["sample", "m.covary", "-n", "2"], 2, &["k-means does not have new rows to draw"]);
    place.write("bad.csv", "a,b\n1,2\ninf,3\n4,5\n");
    place.fails(&["fit", "bad.csv", "--model", "kmeans", "-k", "2"], 3, &["bad.csv", "inf"]);
    place.write("whole.csv", "a,b\n1,2\n2,3\n4,5\n");
    place.ok(&["moments", "whole.csv", "-o", "x.moments"]);
    place.fails(&["fit", "x.moments", "--model", "kmeans", "-k", "2"], 2, &["moments", "rows"]);
}

#[test]
fn fewer_different_rows_than_clusters_make_fewer_clusters() {
    let place = Place::new();
    place.write("twice.csv", "a,b\n1,2\n1,2\n3,4\n3,4\n3,4\n");
    let told = place.json(&["fit", "twice.csv", "--model", "kmeans", "-k", "4", "--json"]);
    let clusters = &told["clusters"];
    assert_eq!((clusters["asked"].as_u64(), clusters["found"].as_u64()), (Some(4), Some(2)));
    assert_eq!(numbers(&clusters["shares"]), [0.6, 0.4]);
    assert_eq!(clusters["inertia"].as_f64(), Some(0.0));
    let text = place.ok(&["fit", "twice.csv", "--model", "kmeans", "-k", "4"]);
    assert!(text.contains("2 of 4 asked for: there are no more different rows"), "{text}");
}

/// Three far clusters: the number is found, and the table over K is told.
#[test]
fn the_number_of_clusters_can_be_chosen() {
    let place = Place::new();
    let mut text = String::from("a,b\n");
    for i in 0..60 {
        let (x, y) = [(0.0, 0.0), (40.0, 0.0), (0.0, 40.0)][i % 3];
        let (dx, dy) = ((i * 7 % 11) as f64 / 5.0, (i * 5 % 13) as f64 / 6.0);
        text += &format!("{},{}\n", x + dx, y + dy);
    }
    place.write("three.csv", text);
    let told = place.json(&["fit", "three.csv", "--model", "kmeans", "-k", "auto", "--json"]);
    assert_eq!(told["clusters"]["found"].as_u64(), Some(3));
    assert!(told["components_because"].as_str().unwrap().contains("gap statistic"), "{told}");
    let rows = told["clusters"]["chosen"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["clusters"].as_u64(), Some(1));
    let text = place.ok(&["fit", "three.csv", "--model", "kmeans", "-k", "2-5"]);
    assert!(text.contains("gap") && text.contains("standard error"), "{text}");
}

/// Cells of a table, triples, threads and a start agree.
#[test]
fn where_the_rows_lie_does_not_matter() {
    let place = Place::new();
    let x = rows_with_holes(300, 5, 0.05, 11);
    table_of(&place, "x.csv", &x);
    place.write("cells.csv", triples_of(&x, &names(5)));
    let fit = |file: &str, more: &[&str]| {
        let fit = ["fit", file, "--model", "kmeans", "-k", "4", "--json"];
        place.json(&[&fit[..], more].concat())["clusters"].clone()
    };
    let (whole, listed) = (fit("x.csv", &[]), fit("cells.csv", &["--triples", "user,item,value"]));
    // The rows come in another order, so that other ones are drawn first; the optimum is the same.
    close(listed["inertia"].as_f64().unwrap(), whole["inertia"].as_f64().unwrap(), 1e-9);
    assert_eq!(whole, fit("x.csv", &["--threads", "3"]));
    place.ok(&["fit", "x.csv", "--model", "kmeans", "-k", "4", "-o", "m.covary", "--quiet"]);
    let again = fit_from(&place, "m.covary");
    close(again["inertia"].as_f64().unwrap(), whole["inertia"].as_f64().unwrap(), 1e-12);
    place.fails(&["fit", "x.csv", "--model", "kmeans", "-k", "3", "--start", "m.covary"], 2, &["4 clusters"]);
}

fn fit_from(place: &Place, model: &str) -> Value {
    place.json(&["fit", "x.csv", "--model", "kmeans", "--start", model, "--json"])["clusters"].clone()
}

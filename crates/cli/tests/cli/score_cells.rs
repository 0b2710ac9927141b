//! `covary score`: contributions of cells, the least likely rows, and control limits.

use crate::support::{Place, close, csv, rows_with_holes, stderr, table_of};

/// CROSS has covariance diag(3, 4/3, 1/3): with one component its noise is the mean of the others.
const NOISE: f64 = 5.0 / 6.0;

/// The lines of a CSV table as text.
fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Flags that cannot be, with what is said about them.
fn refused(place: &Place, flags: &[&str], word: &str) {
    let output = place.run(&[&["score", "cross.covary", "cross.csv"], flags].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(word), "{}", stderr(&output));
}

#[test]
fn contributions_are_a_line_for_each_cell() {
    let place = Place::with_model();
    let told = lines(&place.ok(&["score", "cross.covary", "cross.csv", "--contributions"]));
    assert_eq!(told[0], ["row", "feature", "value", "expected", "deviation", "t2", "spe", "cell"]);
    assert_eq!(told.len(), 1 + 18);
    // Features are independent under this model: the others say nothing.
    let number = |line: usize, column: usize| told[line][column].parse::<f64>().unwrap();
    assert_eq!(told[1][..3], ["1", "a", "3"]);
    assert!(number(1, 3).abs() < 1e-14);
    close(number(1, 4), 3f64.sqrt(), 1e-14);
    close(number(1, 5), 3.0, 1e-14);
    close(number(1, 7), 3.0, 1e-14);
    assert_eq!(told[8][..2], ["3", "b"]);
    close(number(8, 6), 4.0, 1e-14);
    close(number(8, 7), 4.0 / NOISE, 1e-14);
}

#[test]
fn contributions_add_up_and_leave_out_what_is_missing() {
    let place = Place::new();
    let x = rows_with_holes(60, 5, 0.2, 4);
    table_of(&place, "x.csv", &x);
    place.ok(&["fit", "x.csv", "-q", "2", "-o", "m.covary", "--quiet"]);
    let (_, scores) = csv(&place.ok(&["score", "m.covary", "x.csv"]));
    let told = lines(&place.ok(&["score", "m.covary", "x.csv", "--contributions"]));
    let observed = (0..60).flat_map(|i| (0..5).map(move |j| (i, j))).filter(|at| !x[*at].is_nan()).count();
    assert_eq!(told.len() - 1, observed);
    let mut sums = vec![(0.0, 0.0); 60];
    for line in &told[1..] {
        let row: usize = line[0].parse().unwrap();
        sums[row - 1].0 += line[5].parse::<f64>().unwrap();
        sums[row - 1].1 += line[6].parse::<f64>().unwrap();
    }
    for (sum, score) in sums.iter().zip(&scores) {
        assert!((sum.0 - score[1]).abs() < 1e-9 * (1.0 + score[1]), "{sum:?} {score:?}");
        assert!((sum.1 - score[2]).abs() < 1e-9 * (1.0 + score[2]), "{sum:?} {score:?}");
    }
    // The same from a file of cells, one in each line.
    let cell = |i: usize, j: usize| format!("r{i},x{},{}\n", j + 1, x[(i, j)]);
    let cells = (0..60).flat_map(|i| (0..5).map(move |j| (i, j))).filter(|at| !x[*at].is_nan());
    let text: String = cells.map(|(i, j)| cell(i, j)).collect();
    place.write("cells.csv", format!("who,what,much\n{text}"));
    let asked = ["score", "m.covary", "cells.csv", "--triples", "who,what,much", "--contributions"];
    let from_cells = lines(&place.ok(&asked));
    assert_eq!(from_cells[0][0], "who");
    assert!(from_cells[1..].iter().zip(&told[1..]).all(|(a, b)| a[2..4] == b[1..3]));
}

/// 40 rows along a line, and one that leaves it in one cell.
fn with_a_stranger(place: &Place) {
    let row = |i: usize| {
        let t = (i as f64 - 20.0) / 4.0;
        let noise = |k: usize| 0.05 * (((i * 7 + k * 13) % 11) as f64 - 5.0);
        format!("id{i},{},{},{}\n", 10.0 + t + noise(0), 20.0 - t + noise(1), 30.0 + 2.0 * t + noise(2))
    };
    let text: String = (0..40).map(row).collect();
    place.write("x.csv", format!("name,alcohol,ash,hue\n{text}stranger,10,35,30\n"));
    place.ok(&["fit", "x.csv", "-q", "1", "--model", "robust", "-o", "m.covary", "--quiet"]);
}

#[test]
fn the_least_likely_rows_come_first() {
    let place = Place::new();
    with_a_stranger(&place);
    let (header, all) = csv(&place.ok(&["score", "m.covary", "x.csv", "--drop", "name"]));
    let told = lines(&place.ok(&["score", "m.covary", "x.csv", "--worst", "3", "--id", "name"]));
    assert_eq!(told[0][..2], ["name", "row"]);
    assert_eq!(told[0][2..], header);
    assert_eq!((told.len(), told[1][..2].join(" ")), (4, "stranger 41".into()));
    let p = |line: &Vec<String>| line[5].parse::<f64>().unwrap();
    assert!(p(&told[1]) <= p(&told[2]) && p(&told[2]) <= p(&told[3]));
    let less_likely = all.iter().filter(|row| row[3] < p(&told[3])).count();
    assert_eq!(less_likely, 2, "no other row is less likely");
    // More than there are: all.
    let every = lines(&place.ok(&["score", "m.covary", "x.csv", "--worst", "999"]));
    assert_eq!(every.len(), 42);
    // With their cells.
    let cells = place.ok(&["score", "m.covary", "x.csv", "--worst", "2", "--contributions", "--id", "name"]);
    let cells = lines(&cells);
    assert_eq!(cells.len(), 7);
    assert_eq!(cells[2][..4], ["stranger", "41", "ash", "35"]);
}

#[test]
fn the_least_likely_rows_in_words() {
    let place = Place::new();
    with_a_stranger(&place);
    let told = place.ok(&["score", "m.covary", "x.csv", "--worst", "2", "--words", "--id", "name"]);
    let first: Vec<&str> = told.lines().collect();
    assert!(first[0].starts_with("row 41 (name stranger): p-value "), "{told}");
    assert!(first[1].starts_with("  ash is 35"), "{told}");
    assert!(first[1].contains("the rest of the row says 20.") && first[1].contains(" ± "), "{told}");
    assert!(told.contains("stands out") || told.matches("row ").count() >= 2);
}

#[test]
fn rows_without_a_density_are_told_by_their_distance() {
    let place = Place::new();
    place.write("line.csv", "a,b\n1,2\n2,4\n3,6\n4,8\n");
    place.write("new.csv", "a,b\n1,2\n2,5\n3,6.5\n");
    place.ok(&["fit", "line.csv", "-q", "1", "-o", "m.covary", "--quiet"]);
    let told = lines(&place.ok(&["score", "m.covary", "new.csv", "--worst", "2", "--quiet"]));
    assert_eq!((told[1][0].as_str(), told[2][0].as_str()), ("2", "3"));
    let words = place.ok(&["score", "m.covary", "new.csv", "--worst", "1", "--words", "--quiet"]);
    assert!(words.contains("a is 2.00000; the rest of the row says 2.50000\n"), "{words}");
}

#[test]
fn limits_stand_beside_the_rows() {
    let place = Place::with_model();
    let (header, rows) = csv(&place.ok(&["score", "cross.covary", "cross.csv", "--limits", "0.99"]));
    assert_eq!(header[4..], ["t2_limit", "spe_limit"]);
    // scipy.stats: 1·7/5 f.ppf(0.99, 1, 5) and 5/6 chi2.ppf(0.99, 2).
    close(rows[0][4], 22.761_447_855_767_11, 1e-9);
    close(rows[5][5], NOISE * 9.210_340_371_976_182, 1e-9);
    place.write("holes.csv", "a,b,c\n3,,0\n,,\n");
    let (_, rows) = csv(&place.ok(&["score", "cross.covary", "holes.csv", "--limits", "0.99"]));
    close(rows[0][5], NOISE * 6.634_896_601_021_213, 1e-9); // chi2.ppf(0.99, 1)
    assert_eq!((rows[1][4], rows[1][5]), (0.0, 0.0));
    refused(&place, &["--limits", "2"], "between 0 and 1");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let place = Place::with_model();
    refused(&place, &["--words"], "--worst");
    refused(&place, &["--worst", "0"], "--worst");
    refused(&place, &["--worst", "2", "--words", "-o", "x.csv"], "--output");
    place.ok(&["fit", "cross.csv", "--model", "kpca", "-q", "1", "-o", "k.covary", "--quiet"]);
    for flags in [&["--contributions"][..], &["--limits", "0.9"], &["--worst", "1", "--words"]] {
        let asked = [&["score", "k.covary", "cross.csv"], flags].concat();
        place.fails(&asked, 2, &["contributions of cells", "ppca, pca, fa, bpca, mixture, robust and ica"]);
    }
    // SPE alone has an order too.
    assert_eq!(lines(&place.ok(&["score", "k.covary", "cross.csv", "--worst", "2"])).len(), 3);
    place.write("row.csv", "row,a,b,c\nx,1,0,0\n");
    let output = place.run(&["score", "cross.covary", "row.csv", "--contributions"]);
    assert!(stderr(&output).contains("--drop 'row'"), "{}", stderr(&output));
}

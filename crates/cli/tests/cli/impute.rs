//! `covary impute` on tables: holes filled as a dense computation says, everything else untouched.

use covary::linalg::Mat;

use crate::support::{
    Parameters, Place, check_failure, close, csv, place_with_holes, row_of, rows_with_holes, stderr, table_of,
};

#[test]
fn holes_become_what_the_other_cells_say() {
    let (place, x) = place_with_holes();
    let model = Parameters::of(&place, "m.covary");
    let (header, filled) = csv(&place.ok(&["impute", "m.covary", "holes.csv"]));
    assert_eq!((header.join(","), filled.len()), ("x1,x2,x3,x4,x5".into(), 120));
    let (header, with_std) = csv(&place.ok(&["impute", "m.covary", "holes.csv", "--std"]));
    assert_eq!(header[4..7], ["x5", "x1_std", "x2_std"]);
    let mut holes = 0;
    for i in 0..x.nrows() {
        let row = row_of(&x, i);
        for (j, observed) in row.iter().enumerate() {
            assert_eq!(filled[i][j], with_std[i][j]);
            let std = with_std[i][5 + j];
            if !observed.is_nan() {
                assert_eq!((filled[i][j], std), (*observed, 0.0));
                continue;
            }
            let (mean, deviation) = model.conditional(&row, j);
            close(filled[i][j], mean, 1e-9);
            close(std, deviation, 1e-9);
            holes += 1;
        }
    }
    assert!(holes > 80, "{holes}");
    assert_eq!(filled[7], model.mean, "an empty row becomes the mean");
}

#[test]
fn observed_cells_and_carried_columns_are_as_they_were() {
    let (place, _) = place_with_holes();
    place.write("t.csv", "day,x1,note,x2,x3,x4,x5,n\n7,5.25,a,,5,4.75,5.5,9\n8,NA,\"b, c\",null,NaN,,,9\n");
    let text = place.ok(&["impute", "m.covary", "t.csv", "--id", "day"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "day,note,n,x1,x2,x3,x4,x5");
    assert!(lines[1].starts_with("7,a,9,5.25,") && lines[1].ends_with(",5,4.75,5.5"), "{text}");
    assert!(lines[2].starts_with("8,\"b, c\",9,"), "{text}");
}

#[test]
fn every_format_and_every_way_in_give_the_same() {
    let (place, x) = place_with_holes();
    let expected = place.ok(&["impute", "m.covary", "holes.csv", "--std"]);
    for name in ["h.csv.gz", "h.tsv.zst", "h.parquet", "h.arrow", "h.npy"] {
        table_of(&place, name, &x);
        assert_eq!(place.ok(&["impute", "m.covary", name, "--std"]), expected, "{name}");
    }
    let output = place.shell("covary impute m.covary - --std < holes.csv");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    for name in ["o.parquet", "o.csv.gz", "o.npy"] {
        place.ok(&["impute", "m.covary", "holes.csv", "-o", name]);
        let again = place.ok(&["impute", "m.covary", name]);
        assert_eq!(again, place.ok(&["impute", "m.covary", "holes.csv"]), "{name}");
    }
}

#[test]
fn rows_in_many_chunks_are_filled_like_rows_in_one() {
    let (place, _) = place_with_holes();
    // Two batches of text and one of Parquet.
    let x = rows_with_holes(25_000, 5, 0.3, 5);
    table_of(&place, "big.csv", &x);
    table_of(&place, "big.parquet", &x);
    for args in [&["--std"][..], &["--draws", "2", "--seed", "3"]] {
        let run = |name| place.ok(&[&["impute", "m.covary", name], args].concat());
        assert_eq!(run("big.csv"), run("big.parquet"));
        let on_three = place.ok(&[&["impute", "m.covary", "big.csv", "--threads", "3"], args].concat());
        assert_eq!(run("big.csv"), on_three);
    }
}

#[test]
fn draws_are_stacked_and_have_the_conditional_distribution() {
    let (place, x) = place_with_holes();
    let model = Parameters::of(&place, "m.covary");
    let n = 2000;
    place.write("one.csv", "x1,x2,x3,x4,x5\n5.1,,4.9,,5.3\n5,5,5,5,5\n");
    let text = place.ok(&["impute", "m.covary", "one.csv", "--draws", &n.to_string(), "--seed", "5"]);
    let (header, drawn) = csv(&text);
    assert_eq!((header.join(","), drawn.len()), ("draw,x1,x2,x3,x4,x5".into(), 2 * n));
    let row = [5.1, f64::NAN, 4.9, f64::NAN, 5.3];
    for j in [1, 3] {
        let values: Vec<f64> = drawn.iter().step_by(2).map(|d| d[1 + j]).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        let (expected, std) = model.conditional(&row, j);
        // Four standard errors of a mean and of a variance.
        assert!((mean - expected).abs() < 4.0 * std / (n as f64).sqrt(), "{mean} {expected}");
        assert!((variance / (std * std) - 1.0).abs() < 4.0 * (2.0 / n as f64).sqrt(), "{variance}");
    }
    for (k, row) in drawn.iter().enumerate() {
        assert_eq!(row[0], (k / 2 + 1) as f64, "all rows of a draw stand together");
        let known = if k % 2 == 0 { vec![row[1], row[3], row[5]] } else { row[1..].to_vec() };
        assert_eq!(known, if k % 2 == 0 { vec![5.1, 4.9, 5.3] } else { vec![5.0; 5] });
    }
    let three =
        |seed: &str, data: &str| place.ok(&["impute", "m.covary", data, "--draws", "3", "--seed", seed]);
    assert!(text.starts_with(&three("5", "one.csv")), "fewer draws are the first of more");
    assert_ne!(three("5", "one.csv"), three("6", "one.csv"));
    table_of(&place, "h.npy", &x);
    let expected = three("1", "holes.csv");
    assert_eq!(three("1", "h.npy"), expected);
    let output = place.shell("covary impute m.covary - --draws 3 --seed 1 < holes.csv");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "rows that pass once are kept");
    for out in ["d.npy", "d.parquet"] {
        place.ok(&["impute", "m.covary", "holes.csv", "--draws", "3", "--seed", "1", "-o", out]);
        let told = place.json(&["fit", out, "--columns", "1", "-q", "1", "--json"]);
        close(told["total_variance"].as_f64().unwrap(), 2.0 / 3.0, 1e-12); // of 1, 2, 3
    }
}

#[test]
fn classical_pca_fills_holes_too() {
    let (place, x) = place_with_holes();
    place.ok(&["fit", "whole.csv", "-q", "2", "--model", "pca", "-o", "pca.covary", "--quiet"]);
    let (_, filled) = csv(&place.ok(&["impute", "pca.covary", "holes.csv"]));
    assert!(filled.iter().flatten().all(|v| v.is_finite()) && filled.len() == x.nrows());
}

#[test]
fn requests_that_make_no_sense() {
    let (place, _) = place_with_holes();
    let usage = |args: &[&str]| {
        let output = place.run(&[&["impute"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        stderr(&output)
    };
    usage(&["m.covary", "holes.csv", "--std", "--draws", "3"]);
    usage(&["m.covary", "holes.csv", "--draws", "0"]);
    usage(&["m.covary", "holes.csv", "--pairs", "p.csv"]);
    usage(&["m.covary", "holes.csv", "--holdout", "0.1", "-o", "x.csv"]);
    for share in ["0", "1", "-0.1", "ten"] {
        usage(&["m.covary", "holes.csv", "--holdout", share]);
    }
    usage(&["m.covary", "holes.csv", "-q", "2"]);
    usage(&["m.covary", "holes.csv", "--triples", "user,item,value", "--columns", "a"]);
    assert!(usage(&["m.covary", "holes.csv", "--triples", "user,item"]).contains("three columns"));
    assert!(usage(&["m.covary", "t.csv", "--triples", "user,item,value"]).contains("--pairs"));
    assert!(usage(&["m.covary", "holes.csv", "--holdout", "0.1", "-q", "2"]).contains("-q"));
    let alone = usage(&["holes.csv"]);
    assert!(alone.contains("'holes.csv'") && alone.contains("--holdout"), "{alone}");
    assert!(usage(&["holes.csv", "m.covary"]).contains("the model comes first"));
}

#[test]
fn bad_cells_leave_the_output_as_it_was() {
    let (place, _) = place_with_holes();
    place.write("out.csv", "old");
    let late = |bad: &str| {
        let body: String =
            (0..90_000).map(|i| if i == 89_000 { bad } else { "1,,3,4,5\n" }.to_owned()).collect();
        place.write("late.csv", format!("x1,x2,x3,x4,x5\n{body}"));
    };
    late("1,inf,3,4,5\n");
    let before = place.files();
    for args in [&["-o", "out.csv"][..], &["-o", "out.parquet"], &["-o", "out.npy", "--draws", "2"]] {
        let args = [&["impute", "m.covary", "late.csv"], args].concat();
        place.fails(&args, 3, &["row 89001", "'x2'", "infinite"]);
    }
    late("1,two,3,4,5\n");
    place.fails(&["impute", "m.covary", "late.csv", "-o", "out.csv"], 3, &["row 89001", "'x2'", "'two'"]);
    let mut x = Mat::full(50, 5, f64::NAN);
    x[(33, 1)] = f64::INFINITY;
    table_of(&place, "inf.npy", &x);
    place.fails(
        &["impute", "m.covary", "inf.npy", "-o", "out.csv"],
        3,
        &["'inf.npy'", "row 34", "'x2'", "inf"],
    );
    place.write("other.csv", "x1,x2\n1,2\n");
    place.fails(&["impute", "m.covary", "other.csv"], 3, &["'x3'", "'x5'", "model"]);
    place.fails(&["impute", "m.covary", "holes.csv", "-o", "no/where.csv"], 5, &["no/where.csv"]);
    place.write("std.csv", "x1_std,x1,x2,x3,x4,x5\na,1,2,3,4,5\n");
    place.fails(&["impute", "m.covary", "std.csv", "--std"], 2, &["'x1_std'", "--drop"]);
    place.write("draw.csv", "draw,x1,x2,x3,x4,x5\na,1,2,3,4,5\n");
    place.fails(&["impute", "m.covary", "draw.csv", "--draws", "2"], 2, &["'draw'", "--drop"]);
    assert_eq!(place.read("out.csv"), b"old");
    assert_eq!(place.files().len(), before.len() + 4, "{:?}", place.files());
    let output = place.shell("covary impute nowhere.covary holes.csv");
    check_failure(&["impute"], &output, 5, &["'nowhere.covary'", "no such file"]);
}

/// The questions that were there before agree with a dense computation on rows with holes.
#[test]
fn other_questions_take_holes() {
    let (place, x) = place_with_holes();
    let model = Parameters::of(&place, "m.covary");
    let (header, scores) = csv(&place.ok(&["score", "m.covary", "holes.csv"]));
    assert_eq!(header[0], "log_density");
    for i in 0..x.nrows() {
        // By the chain rule: each observed cell given those before it.
        let (mut before, mut expected) = (vec![f64::NAN; 5], 0.0);
        for j in (0..5).filter(|j| !x[(i, *j)].is_nan()) {
            let (mean, std) = model.conditional(&before, j);
            let error = (x[(i, j)] - mean) / std;
            expected -= 0.5 * (std::f64::consts::TAU.ln() + error * error) + std.ln();
            before[j] = x[(i, j)];
        }
        assert!((scores[i][0] - expected).abs() < 1e-9, "{i}: {} {expected}", scores[i][0]);
    }
    let (_, z) = csv(&place.ok(&["transform", "m.covary", "holes.csv", "--std"]));
    assert_eq!(z[7], [0.0, 0.0, 1.0, 1.0], "an empty row has the prior");
    let (_, rebuilt) = csv(&place.ok(&["reconstruct", "m.covary", "holes.csv", "--posterior"]));
    for (i, j) in (0..120).flat_map(|i| (0..5).map(move |j| (i, j))).filter(|&(i, j)| x[(i, j)].is_nan()) {
        close(rebuilt[i][j], model.conditional(&row_of(&x, i), j).0, 1e-9);
    }
    let place = Place::with_model();
    place.write("empty.csv", "a,b,c\n,,\n");
    let (_, scores) = csv(&place.ok(&["score", "cross.covary", "empty.csv"]));
    assert!(scores[0][0].abs() < 1e-12, "{}", scores[0][0]);
}

#[test]
fn columns_that_the_model_does_not_have_go_along() {
    let place = Place::with_model();
    place.write("more.csv", "n,t,a,extra,b,c\n7,x,1,1.50,,3\n8,y,,,1,1\n");
    let text = place.ok(&["impute", "cross.covary", "more.csv"]);
    // Means of the other cells are 0, and loadings of 'b' and 'c' too.
    assert_eq!(text, "n,t,extra,a,b,c\n7,x,1.50,1,0,3\n8,y,,0,1,1\n");
    let text = place.ok(&["impute", "cross.covary", "more.csv", "--drop", "extra", "--draws", "1"]);
    assert!(text.starts_with("draw,n,t,a,b,c\n1,7,x,1,"), "{text}");
    place.ok(&["impute", "cross.covary", "more.csv", "-o", "whole.parquet"]);
    let text = place.ok(&["impute", "cross.covary", "whole.parquet"]);
    assert!(text.starts_with("n,t,extra,a,b,c\n"), "{text}");
    // Other answers are about the model's features alone.
    assert!(place.ok(&["reconstruct", "cross.covary", "more.csv"]).starts_with("t,a,b,c\n"));
}

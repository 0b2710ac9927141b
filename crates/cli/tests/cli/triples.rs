//! Cells one by one: `--triples`, `--pairs` and `--holdout` against tables and a dense computation.

use crate::support::{
    Parameters, Place, close, csv, names, place_with_holes, row_of, rows_with_holes, stderr, table_of,
    triples_of,
};

const COLUMNS: [&str; 2] = ["--triples", "user,item,value"];

#[test]
fn questions_about_cells_are_those_about_the_table() {
    let (place, x) = place_with_holes();
    // The empty row is nowhere among the triples.
    let kept: Vec<usize> = (0..120).filter(|i| *i != 7).collect();
    place.write("t.csv", triples_of(&x, &names(5)));
    for args in [&["score"][..], &["transform"], &["transform", "--std"]] {
        let run = |data: &[&str]| csv(&place.ok(&[&[args[0], "m.covary"], data, &args[1..]].concat()));
        let (expected_names, expected) = run(&["holes.csv"]);
        let (header, found) = run(&["t.csv", COLUMNS[0], COLUMNS[1]]);
        assert_eq!(header, [vec!["user".to_owned()], expected_names].concat());
        assert_eq!(found.len(), 119);
        for (row, i) in found.iter().zip(&kept) {
            assert_eq!(row[0], *i as f64, "whole numbers ascend");
            row[1..].iter().zip(&expected[*i]).for_each(|(a, b)| assert!((a - b).abs() < 1e-10, "{a} {b}"));
        }
    }
    let expected = place.ok(&["score", "m.covary", "t.csv", COLUMNS[0], COLUMNS[1]]);
    let piped = place.shell("gzip -k t.csv; covary score m.covary - --triples 3,2,1 < t.csv");
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), expected);
    assert_eq!(place.ok(&["score", "m.covary", "t.csv.gz", "--triples", "user,2,value"]), expected);
}

#[test]
fn pairs_are_predicted_as_a_dense_computation_says() {
    let (place, x) = place_with_holes();
    let model = Parameters::of(&place, "m.covary");
    place.write("t.csv", triples_of(&x, &names(5)));
    let cells: Vec<(usize, usize)> = (0..40).map(|k| (k * 3, k % 5)).filter(|c| c.0 != 7).collect();
    let lines: String = cells.iter().map(|(i, j)| format!("x{},w{i},{i}\n", j + 1)).collect();
    place.write("p.csv", format!("item,why,user\n{lines}x2,new,stranger\n"));
    let args = ["impute", "m.covary", "t.csv", COLUMNS[0], COLUMNS[1], "--pairs", "p.csv"];
    let output = place.run(&[&args[..], &["--std"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("1 of {} pairs", cells.len() + 1)), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    assert_eq!(found.next().unwrap(), ["item", "why", "user", "prediction", "std"]);
    for ((i, j), line) in cells.iter().zip(found.by_ref()) {
        assert_eq!(line[..3], [format!("x{}", j + 1), format!("w{i}"), i.to_string()]);
        let (mean, std): (f64, f64) = (line[3].parse().unwrap(), line[4].parse().unwrap());
        match x[(*i, *j)] {
            known if !known.is_nan() => assert_eq!((mean, std), (known, 0.0)),
            _ => {
                let expected = model.conditional(&row_of(&x, *i), *j);
                close(mean, expected.0, 1e-9);
                close(std, expected.1, 1e-9);
            }
        }
    }
    let stranger = found.next().unwrap();
    close(stranger[3].parse().unwrap(), model.mean[1], 1e-14);
    close(stranger[4].parse().unwrap(), model.covariance[1][1].sqrt(), 1e-12);
    let quiet = place.run(&[&args[..], &["--quiet", "-o", "out.parquet"]].concat());
    assert_eq!((quiet.status.code(), stderr(&quiet).as_str()), (Some(0), ""));
    assert!(place.path("out.parquet").is_file());
}

#[test]
fn ids_that_are_not_in_the_model_and_other_bad_triples() {
    let (place, x) = place_with_holes();
    place.write("t.csv", triples_of(&x, &names(5)));
    let bad = |body: &str, words: &[&str]| {
        place.write("bad.csv", format!("user,item,value\n{body}"));
        for command in [&["score"][..], &["transform"], &["impute", "--pairs", "p.csv"]] {
            let args = [&[command[0], "m.covary", "bad.csv", COLUMNS[0], COLUMNS[1]], &command[1..]].concat();
            place.fails(&args, 3, words);
        }
    };
    bad("1,x1,3\n1,x9,3\n", &["'bad.csv'", "row 2", "'item'", "no feature 'x9'"]);
    bad("1,x1,3\n2,x1,3\n1,x1,4\n", &["'bad.csv'", "rows 1 and 3", "'1'", "'x1'"]);
    bad("1,x1,3\n-2,x1,3\n", &["row 2", "'user'", "'-2'", "whole numbers"]);
    bad("1,x1,3\n2.5,x1,3\n", &["row 2", "'user'", "'2.5'"]);
    bad("1,x1,3\n,x1,3\n", &["row 2", "'user'", "empty"]);
    bad("1,x1,3\n2,x1,inf\n", &["row 2", "'value'", "infinite"]);
    bad("1,x1,3\n2,x1,3\n3,x1,three\n", &["row 3", "'value'", "'three'"]);
    bad("", &["no rows"]);
    let pairs = |content: &str, code: i32, words: &[&str]| {
        place.write("p.csv", content);
        let args =
            ["impute", "m.covary", "t.csv", COLUMNS[0], COLUMNS[1], "--pairs", "p.csv", "-o", "out.csv"];
        place.fails(&args, code, words);
        assert!(!place.path("out.csv").exists());
    };
    pairs("user,item\n1,x1\n2,y1\n", 3, &["'p.csv'", "row 2", "'item'", "'y1'"]);
    pairs("user,thing\n1,x1\n", 2, &["'p.csv'", "no column 'item'", "'thing'"]);
    pairs("user,item\n1,\n", 3, &["'p.csv'", "row 1", "empty"]);
    pairs("user,item,prediction\n1,x1,2\n", 2, &["'prediction'"]);
    let words = ["no column 'who'", "'user'"];
    place.fails(&["score", "m.covary", "t.csv", "--triples", "who,item,value"], 2, &words);
}

#[test]
fn hidden_cells_are_predicted_alike_from_rows_and_from_cells() {
    let (place, _) = place_with_holes();
    let x = rows_with_holes(400, 5, 0.2, 21);
    let x = covary::linalg::Mat::from_fn(400, 5, |i, j| if i % 100 == 0 && j == 0 { 5.0 } else { x[(i, j)] });
    table_of(&place, "h.csv", &x);
    table_of(&place, "h.parquet", &x);
    place.write("t.csv", triples_of(&x, &names(5)));
    let run = |data: &[&str]| {
        place.json(&[&["impute", "m.covary"], data, &["--holdout", "0.2", "--json"]].concat())
    };
    let expected = run(&["h.csv"]);
    let observed = (0..2000).filter(|k| !x[(k / 5, k % 5)].is_nan()).count();
    assert_eq!(expected["observed"].as_u64(), Some(observed as u64));
    let hidden = expected["hidden"].as_f64().unwrap();
    // Four standard deviations of a binomial.
    assert!((hidden / observed as f64 - 0.2).abs() < 4.0 * (0.16 / observed as f64).sqrt(), "{hidden}");
    for data in [&["h.parquet"][..], &["h.csv", "--memory", "16M", "--threads", "1"]] {
        let mut found = run(data);
        for key in ["data", "seconds"] {
            found[key] = expected[key].clone();
        }
        assert_eq!(found, expected, "{data:?}");
    }
    let found = run(&["t.csv", COLUMNS[0], COLUMNS[1]]);
    assert_eq!(found["hidden"], expected["hidden"]);
    for key in ["rmse", "baseline_rmse", "mean_log_density", "coverage_95"] {
        close(found[key].as_f64().unwrap(), expected[key].as_f64().unwrap(), 1e-9);
    }
    let other = place.json(&["impute", "m.covary", "h.csv", "--holdout", "0.2", "--seed", "1", "--json"]);
    assert_ne!(other["rmse"], expected["rmse"]);
    let text = place.ok(&["impute", "m.covary", "h.csv", "--holdout", "0.2"]);
    for word in ["RMSE", "95 %", "m.covary", "too kindly", "per cell", &hidden.to_string()] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn intervals_of_a_right_model_cover_what_they_should() {
    let (place, _) = place_with_holes();
    place.ok(&["sample", "m.covary", "-n", "4000", "--seed", "2", "-o", "s.csv"]);
    let told = place.json(&["impute", "m.covary", "s.csv", "--holdout", "0.3", "--json"]);
    let number = |key: &str| told[key].as_f64().unwrap();
    let error = (0.95 * 0.05 / number("hidden")).sqrt();
    assert!((number("coverage_95") - 0.95).abs() < 4.0 * error, "{told}");
    // The baseline is the deviation of each feature, weighted by how often it is hidden: about equally.
    let model = Parameters::of(&place, "m.covary");
    let spread = ((0..5).map(|j| model.covariance[j][j]).sum::<f64>() / 5.0).sqrt();
    close(number("baseline_rmse"), spread, 0.03);
    assert!(number("rmse") < 0.5 * spread, "{told}");
}

#[test]
fn cells_that_cannot_be_hidden() {
    let place = Place::with_model();
    // One cell for each feature: to hide it would leave nothing.
    place.write("few.csv", "a,b,c\n1,,\n,2,\n,,3\n");
    let args = ["impute", "cross.covary", "few.csv", "--holdout", "0.9"];
    place.fails(&args, 3, &["'few.csv'", "3 observed cells"]);
}

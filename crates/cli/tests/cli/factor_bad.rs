//! Factor analysis and rotations that cannot be: the right code, and a sentence that says where and what to do.

use crate::factor::{one_factor, two_factors};
use crate::support::{Place, table_of};

const FIT: [&str; 9] = ["fit", "r.csv", "--matrix", "--rows", "50", "--model", "fa", "-q", "1"];

fn matrix_fails(content: &str, code: i32, words: &[&str]) {
    let place = Place::new();
    place.write("r.csv", content);
    place.fails(&[&FIT[..], &["-o", "m.covary"]].concat(), code, words);
    assert_eq!(place.files(), ["r.csv"], "nothing is left behind");
}

#[test]
fn matrices_that_are_none() {
    let good = one_factor();
    matrix_fails(
        &good.replacen("t3,0.63", "t3,0.64", 1),
        3,
        &["'r.csv'", "row 3", "'t1'", "0.64", "0.63", "symmetric"],
    );
    matrix_fails(&good.replacen("\nt3,", "\nt7,", 1), 3, &["row 3", "'t7'", "'t3'", "same order"]);
    let short = good.lines().take(4).collect::<Vec<_>>().join("\n");
    matrix_fails(&short, 3, &["3 rows", "5 columns", "as many rows as columns"]);
    matrix_fails(&format!("{good}t6,1,1,1,1,1\n"), 3, &["more rows"]);
    matrix_fails(&good.replacen("0.63", "", 1), 3, &["'t1'", "'t3'", "empty"]);
    matrix_fails(",a,b,c\na,1,0.9,0.9\nb,0.9,1,-0.9\nc,0.9,-0.9,1\n", 3, &["eigenvalue -8", "positive"]);
    matrix_fails(",a,b,c\na,1,0,0\nb,0,0,0\nc,0,0,1\n", 3, &["variance of 'b'", "--drop 'b'"]);
    matrix_fails(",a,b,c\na,1,1,.5\nb,1,1,.5\nc,.5,.5,1\n", 3, &["'a' and 'b'", "the same", "--drop"]);
    matrix_fails(",a,b,c\na,1,x,.5\nb,y,1,.5\nc,.5,.5,1\n", 3, &["'r.csv'", "row 1", "'x' is not a number"]);
    matrix_fails(",a,b,c\na,1,x,.5\nb,.5,x,.5\nc,.5,x,1\n", 3, &["'r.csv'", "'b'", "not numeric"]);
}

#[test]
fn a_matrix_needs_its_number_of_rows() {
    let place = Place::new();
    place.write("r.csv", one_factor());
    place.fails(&["fit", "r.csv", "--matrix", "--model", "fa", "-q", "1"], 2, &["how many rows", "--rows N"]);
    place.fails(&["fit", "r.csv", "--matrix", "-q", "1"], 2, &["--rows N"]);
    assert_eq!(place.run(&["fit", "r.csv", "--rows", "9"]).status.code(), Some(2));
    let fits: [&[&str]; 2] = [&["--weights", "t1"], &["--id", "test"]];
    for more in fits {
        assert_eq!(place.run(&[&FIT[..], more].concat()).status.code(), Some(2), "{more:?}");
    }
}

#[test]
fn the_number_of_factors() {
    let place = Place::new();
    table_of(&place, "x.csv", &two_factors(50, 1));
    let fit = ["fit", "x.csv", "--model", "fa"];
    place.fails(&fit, 2, &["number of factors", "-q 3"]);
    place.fails(&[&fit[..], &["-q", "0.9"]].concat(), 2, &["number of factors", "share"]);
    place.fails(&[&fit[..], &["-q", "4"]].concat(), 3, &["'x.csv'", "degrees of freedom", "-q 3 or fewer"]);
    place.write("two.csv", "a,b\n1,2\n2,1\n4,5\n3,3\n");
    place.fails(&["fit", "two.csv", "--model", "fa", "-q", "1"], 3, &["at least 3 features"]);
    place.fails(&["fit", "two.csv", "--model", "fa", "-q", "auto"], 3, &["at least 3 features"]);
}

#[test]
fn options_of_other_models() {
    let place = Place::new();
    table_of(&place, "x.csv", &two_factors(50, 1));
    place.ok(&["fit", "x.csv", "-q", "2", "-o", "p.covary", "--quiet"]);
    let fit =
        |more: &[&str], words: &[&str]| place.fails(&[&["fit", "x.csv", "-q", "2"], more].concat(), 2, words);
    fit(&["--rotate", "varimax"], &["--model fa", "covary rotate"]);
    fit(&["--starts", "3"], &["--starts", "--model fa"]);
    fit(&["--lower", "0.1"], &["--lower", "--model fa"]);
    fit(&["--solver", "newton"], &["newton", "eigen"]);
    fit(&["--model", "fa", "--solver", "svd"], &["newton, krylov and em"]);
    fit(&["--model", "fa", "--start", "p.covary"], &["--start", "--starts"]);
    fit(&["--model", "fa", "--rotate", "target"], &["covary rotate", "--target"]);
    place.fails(&["transform", "p.covary", "x.csv", "--scores", "bartlett"], 2, &["--scores", "ppca"]);
    place.fails(&["inspect", "p.covary", "--cut", "0.5"], 2, &["--cut", "ppca"]);
    place.ok(&["fit", "x.csv", "--model", "fa", "-q", "2", "-o", "f.covary", "--quiet"]);
    place.fails(
        &["transform", "f.covary", "x.csv", "--scores", "bartlett", "--std"],
        2,
        &["--scores regression"],
    );
}

#[test]
fn features_without_variance_and_copies() {
    let place = Place::new();
    let x = two_factors(50, 1);
    let row = |i: usize| (0..6).map(|j| format!("{},", x[(i, j)])).collect::<String>();
    let constant: String = (0..50).map(|i| format!("{}7\n", row(i))).collect();
    let copied: String = (0..50).map(|i| format!("{}{}\n", row(i), 1.0 - 2.0 * x[(i, 1)])).collect();
    place.write("constant.csv", format!("a,b,c,d,e,f,still\n{constant}"));
    place.write("copied.csv", format!("a,b,c,d,e,f,twin\n{copied}"));
    let fit = |name: &str, words: &[&str]| place.fails(&["fit", name, "--model", "fa", "-q", "2"], 3, words);
    fit("constant.csv", &["'constant.csv'", "'still'", "constant", "--drop"]);
    fit("copied.csv", &["'copied.csv'", "'b' and 'twin'", "--drop"]);
    place.ok(&["moments", "copied.csv", "-o", "copied.moments", "--quiet"]);
    fit("copied.moments", &["'copied.moments'", "'b' and 'twin'"]);
    place.ok(&["fit", "constant.csv", "-q", "2", "-o", "c.covary", "--quiet"]);
    place.fails(
        &["rotate", "c.covary", "--method", "varimax"],
        3,
        &["'still'", "no loadings", "--no-kaiser"],
    );
    place.ok(&["rotate", "c.covary", "--method", "varimax", "--no-kaiser"]);
}

#[test]
fn rotations_that_cannot_be() {
    let place = Place::new();
    table_of(&place, "x.csv", &two_factors(50, 1));
    place.ok(&["fit", "x.csv", "--model", "fa", "-q", "2", "-o", "m.covary", "--quiet"]);
    place.ok(&["moments", "x.csv", "-o", "x.moments", "--quiet"]);
    let unknown = place.run(&["rotate", "m.covary", "--method", "spin"]);
    let text = crate::support::stderr(&unknown);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text.contains("spin") && text.contains("varimax") && text.contains("geomin"), "{text}");
    assert_eq!(place.run(&["rotate", "m.covary"]).status.code(), Some(2));
    let rotate = |more: &[&str], code: i32, words: &[&str]| {
        place.fails(&[&["rotate", "m.covary"], more].concat(), code, words);
    };
    place.fails(&["rotate", "x.moments", "--method", "varimax"], 2, &["moments", "covary fit"]);
    place.fails(&["rotate", "none.covary", "--method", "varimax"], 5, &["none.covary"]);
    rotate(&["--method", "oblimin", "--power", "3"], 2, &["--power", "promax"]);
    rotate(&["--method", "varimax", "--gamma", "0"], 2, &["--gamma", "oblimin"]);
    rotate(&["--method", "promax", "--power", "0.5"], 2, &["power", "above 1"]);
    rotate(&["--method", "geomin", "--delta", "-1"], 2, &["delta", "positive"]);
    rotate(&["--method", "target"], 2, &["--target FILE"]);
    rotate(&["--method", "varimax", "-o", "y.csv"], 2, &["y.csv", "no table"]);
    place.write("narrow.csv", "f1\n1\n0\n1\n0\n1\n0\n");
    rotate(&["--target", "narrow.csv"], 3, &["1 column", "2 factors"]);
    place.write("short.csv", "f1,f2\n1,0\n0,1\n");
    rotate(&["--target", "short.csv"], 3, &["2 rows", "6 features"]);
    place.write("other.csv", "name,f1,f2\nx1,1,0\ny,0,1\n");
    rotate(&["--target", "other.csv"], 3, &["row 2", "'y'"]);
    rotate(&["--target", "other.csv", "--method", "varimax"], 2, &["--target is for"]);
}

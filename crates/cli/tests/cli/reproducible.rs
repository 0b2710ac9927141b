//! The same input gives the same bytes: twice, and for any number of threads.

use crate::support::{Place, rows, table_of};

#[test]
fn two_runs_write_the_same_bytes() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(3000, 8, 4));
    for (model, solver) in [("ppca", "eigen"), ("pca", "eigen"), ("ppca", "krylov")] {
        for out in ["1.covary", "2.covary"] {
            place
                .ok(&["fit", "x.csv", "-q", "3", "--model", model, "--solver", solver, "-o", out, "--quiet"]);
        }
        assert_eq!(place.read("1.covary"), place.read("2.covary"), "{model} {solver}");
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let place = Place::new();
    table_of(&place, "x.csv", &rows(40_000, 9, 6));
    let outputs = |threads: &str| -> Vec<Vec<u8>> {
        let run = |args: &[&str]| place.ok(&[args, &["--quiet", "--threads", threads]].concat());
        run(&["fit", "x.csv", "-q", "3", "-o", "m.covary"]);
        run(&["fit", "x.csv", "-q", "3", "--solver", "krylov", "-o", "k.covary"]);
        run(&["fit", "x.csv", "-q", "3", "--memory", "16M", "-o", "g.covary"]);
        run(&["moments", "x.csv", "-o", "x.moments"]);
        run(&["transform", "m.covary", "x.csv", "--std", "-o", "z.csv"]);
        run(&["score", "m.covary", "x.csv", "-o", "s.parquet"]);
        run(&["sample", "m.covary", "-n", "2000", "-o", "n.csv"]);
        ["m.covary", "k.covary", "g.covary", "x.moments", "z.csv", "s.parquet", "n.csv"]
            .map(|name| place.read(name))
            .to_vec()
    };
    let one = outputs("1");
    for threads in ["2", "3", "7"] {
        assert!(outputs(threads) == one, "{threads} threads");
    }
}

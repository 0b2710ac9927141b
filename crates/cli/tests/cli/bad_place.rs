//! Places that cannot be read or written: directories, no permission, full disks.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Place, check_failure};

#[test]
fn directories_and_missing_files() {
    let place = Place::with_model();
    fs::create_dir(place.path("d.csv")).unwrap();
    fs::create_dir(place.path("d.covary")).unwrap();
    place.fails(&["fit", "d.csv"], 5, &["'d.csv'", "directory"]);
    place.fails(&["fit", "cross.csv", "-o", "d.covary"], 5, &["'d.covary'", "directory"]);
    place.fails(&["fit", "none.csv"], 5, &["'none.csv'", "no such file"]);
    place.fails(&["fit", "none.moments"], 5, &["'none.moments'", "no such file"]);
    let out = "nowhere/m.covary";
    place.fails(&["fit", "cross.csv", "-o", out], 5, &[out, "no such file or directory"]);
    place.fails(&["score", "cross.covary", "cross.csv", "-o", "d.csv"], 5, &["'d.csv'", "directory"]);
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_the_data_are_read() {
    let place = Place::new();
    place.fails(&["fit", "none.csv", "-o", "nowhere/m.covary"], 5, &["nowhere/m.covary"]);
}

#[test]
fn no_permission() {
    let place = Place::with_model();
    fs::set_permissions(place.path("cross.csv"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(place.path("cross.csv")).is_ok() {
        eprintln!("skipped: this user may read everything (root)");
        return;
    }
    place.fails(&["fit", "cross.csv"], 5, &["'cross.csv'", "permission denied"]);
    fs::create_dir(place.path("locked")).unwrap();
    fs::set_permissions(place.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let args = ["sample", "cross.covary", "-n", "3", "-o", "locked/n.csv"];
    place.fails(&args, 5, &["locked/n.csv", "permission denied"]);
}

#[test]
fn a_full_disk() {
    let place = Place::with_model();
    symlink("/dev/full", place.path("full.csv")).unwrap();
    symlink("/dev/full", place.path("full.covary")).unwrap();
    let args = ["sample", "cross.covary", "-n", "9", "-o", "full.csv"];
    place.fails(&args, 5, &["'full.csv'", "disk is full"]);
    let args = ["fit", "cross.csv", "--quiet", "-o", "full.covary"];
    place.fails(&args, 5, &["'full.covary'", "disk is full"]);
    let output = place.shell("covary sample cross.covary -n 9 > /dev/full");
    check_failure(&["sample"], &output, 5, &["standard output"]);
    let output = place.shell("covary fit cross.csv --json > /dev/full");
    check_failure(&["fit"], &output, 5, &["standard output"]);
}

#[test]
fn a_limit_on_the_size_of_files_leaves_nothing_behind() {
    let place = Place::with_model();
    let before = place.files();
    place.write("old.covary", "old");
    let limited = |line: &str| place.shell(&format!("trap '' XFSZ; ulimit -f 1; {line}"));
    for out in ["n.csv", "n.parquet", "n.npy", "n.csv.gz"] {
        let output = limited(&format!("covary sample cross.covary -n 3000 -o {out}"));
        check_failure(&[out], &output, 5, &[out, "larger than the system allows"]);
    }
    // 300 features make a model of more than a kilobyte.
    let line = |i: usize| (0..300).map(|j| (i * j % 7).to_string()).collect::<Vec<_>>().join(",");
    place.write("wide.csv", (0..5).map(|i| line(i) + "\n").collect::<String>());
    let output = limited("covary fit wide.csv -q 2 --quiet -o old.covary");
    check_failure(&["fit"], &output, 5, &["'old.covary'"]);
    assert_eq!(place.read("old.covary"), b"old");
    assert_eq!(place.files().len(), before.len() + 2, "{:?}", place.files());
}

#[test]
fn an_input_is_not_replaced_by_the_output() {
    let place = Place::with_model();
    symlink("cross.csv", place.path("link.csv")).unwrap();
    fs::hard_link(place.path("cross.csv"), place.path("hard.csv")).unwrap();
    place.ok(&["moments", "cross.csv", "-o", "m.moments", "--quiet"]);
    let before: Vec<_> = place.files().iter().map(|name| (name.clone(), place.read(name))).collect();
    for line in [
        "transform cross.covary cross.csv -o cross.csv",
        "transform cross.covary cross.csv -o ./link.csv",
        "transform cross.covary link.csv -o cross.csv",
        "score cross.covary cross.csv -o hard.csv",
        "reconstruct cross.covary cross.csv -o cross.csv",
        "impute cross.covary cross.csv --draws 2 -o cross.csv",
        "merge m.moments m.moments -o m.moments",
        "rotate cross.covary --method varimax -o cross.covary",
        "fit cross.csv -q 1 --start cross.covary -o cross.covary",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        place.fails(&args, 2, &["would be replaced", "another name"]);
    }
    let output = place.shell("covary transform cross.covary - -o cross.csv < cross.csv");
    check_failure(&["-"], &output, 2, &["standard input", "would be replaced"]);
    let after: Vec<_> = place.files().iter().map(|name| (name.clone(), place.read(name))).collect();
    assert!(before == after, "every file is as it was");
}

#[test]
fn a_pipe_where_a_file_is_needed() {
    let place = Place::new();
    let output = place.shell("mkfifo p.npy; covary fit p.npy");
    check_failure(&["fit"], &output, 5, &["'p.npy'", "not a regular file"]);
    // Nobody writes into them, so that reading would wait for ever.
    for line in ["inspect p.covary", "score p.covary -", "fit p.moments -q 1", "merge p.moments -o m.moments"]
    {
        let output = place.shell(&format!("mkfifo p.covary p.moments; covary {line} < /dev/null"));
        check_failure(&[line], &output, 5, &["'p.", "a pipe or a device"]);
    }
}

#[test]
fn parts_that_do_not_fit_in_the_limit_are_refused() {
    use std::io::Write;
    let place = Place::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"a").unwrap();
    gz.write_all(",1".repeat(5_000_000).as_bytes()).unwrap();
    place.write("bomb.csv.gz", gz.finish().unwrap());
    // Less than a fifth of what 5 million columns would take, and far more than 16M.
    let output = place.shell("ulimit -v 400000; covary fit bomb.csv.gz -q 1 --memory 16M --threads 2");
    check_failure(&["fit"], &output, 3, &["'bomb.csv.gz'", "line 1", "512 KiB", "raise the limit"]);
    place.write("open.csv", format!("a,b\n1,2\n3,\"{}", "4,5\n".repeat(1 << 20)));
    place.fails(&["fit", "open.csv", "-q", "1", "--memory", "16M"], 3, &["quote", "raise the limit"]);
}

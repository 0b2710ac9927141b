//! Output files appear whole or not at all, with the permissions and at the place that people expect.
#![cfg(unix)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::support::*;
use covary::ErrorClass;
use covary::linalg::Mat;
use covary_io::{Error, Writer, write_file};

#[test]
fn a_writer_that_is_dropped_leaves_everything_as_it_was() {
    let folder = Folder::new();
    for name in ["t.csv", "t.csv.gz", "t.parquet", "t.arrow", "t.npy"] {
        let path = folder.file(name, "old");
        let mut writer = Writer::create(&path, &[], &["a".into()]).unwrap();
        writer.write(&[], Mat::from_fn(50_000, 1, |i, _| i as f64).as_ref()).unwrap();
        drop(writer);
        assert_eq!(std::fs::read(&path).unwrap(), b"old", "{name}");
        std::fs::remove_file(path).unwrap();
    }
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn replacing_a_file_leaves_only_the_new_one() {
    let folder = Folder::new();
    for contents in ["one", "two", "three"] {
        write_file(folder.path("model"), contents.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path("model")).unwrap(), contents);
    }
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn permissions_are_those_of_a_normal_file_or_of_the_old_one() {
    let folder = Folder::new();
    let mode = |name: &str| std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    folder.file("normal", "");
    write_file(folder.path("new"), b"x").unwrap();
    assert_eq!(mode("new"), mode("normal"));
    std::fs::set_permissions(folder.path("new"), PermissionsExt::from_mode(0o640)).unwrap();
    write_file(folder.path("new"), b"y").unwrap();
    assert_eq!(mode("new"), 0o640);
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("sub")).unwrap();
    symlink("sub/real", folder.path("link")).unwrap();
    for contents in ["dangling first", "then existing"] {
        write_file(folder.path("link"), contents.as_bytes()).unwrap();
        assert!(std::fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(folder.path("sub/real")).unwrap(), contents);
    }
    symlink("loop", folder.path("loop")).unwrap();
    assert!(matches!(failure(write_file(folder.path("loop"), b"x")), Error::Write { .. }));
}

#[test]
fn places_that_cannot_be_written() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("d.csv")).unwrap();
    let error = failure(Writer::create(folder.path("d.csv"), &[], &["a".into()]));
    assert!(matches!(error, Error::Directory { .. }), "{error}");
    let error = failure(write_file(folder.path("no/such/folder"), b"x"));
    assert!(matches!(error, Error::Write { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::File);
    let twice = failure(Writer::create(folder.path("t.csv"), &[], &["a".into(), "a".into()]));
    assert!(matches!(twice, Error::DuplicateColumn { .. }), "{twice}");
    let error = failure(Writer::create(folder.path("t.txt"), &[], &["a".into()]));
    assert!(matches!(error, Error::UnknownEnding { .. }), "{error}");
}

#[test]
fn devices_are_written_to_and_not_replaced() {
    write_file("/dev/null", b"x").unwrap();
    let error = failure(write_file("/dev/full", b"x"));
    assert!(error.to_string().contains("disk is full"), "{error}");
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
}

#[test]
fn batches_must_have_the_columns_that_were_announced() {
    let folder = Folder::new();
    let mut writer = Writer::create(folder.path("t.csv"), &[], &["a".into(), "b".into()]).unwrap();
    let error = failure(writer.write(&[], Mat::<f64>::zeros(2, 3).as_ref()));
    assert!(error.to_string().contains("columns of numbers"), "{error}");
}

/// Runs one of the hidden tests below in a process of its own.
fn in_child(test: &str, wrapper: &str, target: &std::path::Path) -> std::process::Child {
    let exe = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{wrapper} exec \"$0\" --ignored --exact whole_or_nothing::{test}")])
        .arg(exe)
        .env("COVARY_TEST_TARGET", target)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn target() -> std::path::PathBuf {
    std::env::var_os("COVARY_TEST_TARGET").unwrap().into()
}

#[test]
fn when_there_is_no_room_the_target_is_untouched() {
    let folder = Folder::new();
    for name in ["t.csv", "t.csv.zst", "t.parquet", "t.arrow", "t.npy"] {
        let path = folder.file(name, "old");
        // The limit counts blocks of 512 or 1024 bytes; a write beyond it fails as on a full disk.
        let child = in_child("child_writes_too_much", "trap '' XFSZ; ulimit -f 64;", &path);
        let output = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{name}: {output:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old", "{name}");
        std::fs::remove_file(path).unwrap();
    }
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
#[ignore = "runs in a child process with a limit on file size"]
fn child_writes_too_much() {
    let mut writer = Writer::create(target(), &[], &["a".into(), "b".into()]).unwrap();
    let mut noise = 1u64;
    let mut next = |_, _| {
        noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        noise as f64
    };
    let cells = Mat::from_fn(100_000, 2, &mut next);
    let result = writer.write(&[], cells.as_ref()).and_then(|()| writer.finish());
    let error = failure(result);
    assert!(matches!(error, Error::Write { .. }), "{error}");
    assert!(error.to_string().contains("larger than the system allows"), "{error}");
}

#[test]
fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    let folder = Folder::new();
    let path = folder.file("model", vec![0u8; 300_000]);
    let mut seen = std::collections::HashSet::new();
    for round in 0..40 {
        let mut child = in_child("child_writes_for_ever", "", &path);
        std::thread::sleep(std::time::Duration::from_millis(20 + 3 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in folder.names() {
            let bytes = std::fs::read(folder.path(&name)).unwrap();
            assert_eq!(bytes.len(), 300_000, "{name} is not whole");
            assert!(bytes.iter().all(|b| *b == bytes[0]), "{name} is a mixture");
            seen.insert(bytes[0]);
        }
    }
    assert!(seen.len() > 3, "the children hardly wrote anything: {seen:?}");
}

#[test]
#[ignore = "runs in a child process that is killed"]
fn child_writes_for_ever() {
    for byte in (1..=255u8).cycle() {
        write_file(target(), &vec![byte; 300_000]).unwrap();
    }
}

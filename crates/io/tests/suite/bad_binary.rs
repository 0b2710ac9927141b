//! Parquet, Arrow IPC and NPY files that are damaged, cut off, or lie about themselves.

use crate::support::*;
use covary::ErrorClass;
use covary::linalg::Mat;
use covary_io::{Error, Writer, open};

/// A good file of 500 × 3 numbers.
fn good(folder: &Folder, name: &str) -> Vec<u8> {
    let path = folder.path(name);
    let mut writer = Writer::create(&path, &[], &["a".into(), "b".into(), "c".into()]).unwrap();
    writer.write(&[], Mat::from_fn(500, 3, |i, j| (i * j) as f64 + 0.1).as_ref()).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_cut_at_any_place_is_noticed_and_names_the_file() {
    let folder = Folder::new();
    for name in ["t.parquet", "t.arrow", "t.npy"] {
        let bytes = good(&folder, name);
        for length in [1, 5, 9, 50, 127, bytes.len() / 3, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
            let path = folder.file(name, &bytes[..length]);
            let error = failure(load(&path, &small(1000)));
            assert!(
                matches!(&error, Error::Damaged { path: p, .. } if *p == path),
                "{name} {length}: {error}"
            );
            assert_eq!(error.class(), ErrorClass::File);
        }
        let path = folder.file(name, "");
        assert!(matches!(failure(open(&path, &small(1))), Error::Empty { .. }), "{name}");
        let path = folder.file(name, "this is something else altogether, and long enough to look at");
        assert!(matches!(failure(open(&path, &small(1))), Error::Damaged { .. }), "{name}");
    }
}

#[test]
fn flipped_bytes_give_an_error_or_numbers_but_never_a_panic() {
    let folder = Folder::new();
    for name in ["t.parquet", "t.arrow", "t.npy"] {
        let bytes = good(&folder, name);
        let step = (bytes.len() / 150).max(1);
        let places = (0..bytes.len()).step_by(step).chain(bytes.len().saturating_sub(150)..bytes.len());
        for place in places {
            let mut broken = bytes.clone();
            broken[place] ^= 0x41;
            let path = folder.file(name, &broken);
            // The formats themselves have no checksum: damaged numbers look like numbers.
            if let Ok(rows) = load(&path, &small(4000)) {
                assert!(rows.iter().all(|row| row.len() <= 3), "{name} {place}");
            }
        }
    }
}

fn npy(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn npy_headers_that_lie_or_ask_too_much() {
    let folder = Folder::new();
    let open_with = |descr: &str, shape: &str, data| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        failure(open(folder.file("t.npy", npy(&header, data)), &small(100)))
    };
    let error = open_with("<f8", "(10, 2)", 100);
    let text = error.to_string();
    assert!(text.contains("promises 160 bytes") && text.contains("has 100"), "{text}");
    assert!(matches!(open_with("<f8", "(10, 2)", 161), Error::Damaged { .. }));
    assert!(matches!(open_with("<f8", "(4294967296, 4294967296)", 16), Error::Damaged { .. }));
    assert!(matches!(open_with("<f8", "(0, 2)", 0), Error::NoRows { .. }));
    assert!(matches!(open_with("<f8", "(2, 0)", 0), Error::NoFeatures { .. }));
    assert!(matches!(open_with("<f8", "(2, 2, 2)", 64), Error::Unsupported { .. }));
    assert!(matches!(open_with("<f8", "()", 8), Error::Unsupported { .. }));
    let error = open_with("<c16", "(2, 2)", 64);
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("c16"), "{error}");
    assert!(matches!(open_with("<U3", "(2, 2)", 48), Error::Unsupported { .. }));
    assert!(matches!(open_with("|O", "(2, 2)", 48), Error::Unsupported { .. } | Error::Damaged { .. }));
}

#[test]
fn files_without_rows() {
    let folder = Folder::new();
    for name in ["t.parquet", "t.arrow", "t.npy", "t.csv"] {
        let path = folder.path(name);
        Writer::create(&path, &[], &["a".into()]).unwrap().finish().unwrap();
        let error = failure(open(&path, &small(1)));
        assert!(matches!(error, Error::NoRows { .. }), "{name}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_cannot_be_read_at_many_places() {
    let folder = Folder::new();
    for name in ["t.parquet", "t.arrow", "t.npy"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path(name)).status().unwrap();
        assert!(made.success());
        let error = failure(open(folder.path(name), &small(1)));
        assert!(matches!(error, Error::NotRegular { .. }), "{name}: {error}");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}

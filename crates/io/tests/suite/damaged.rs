//! Tables of every format, damaged in every way: reading them ends in an error or a table, never in a panic,
//! an abort or a wait without end.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::*;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use covary::linalg::Mat;
use covary_io::{Loaded, ReadOptions, Writer, open};
use parquet::arrow::ArrowWriter;

/// Numbers that look random and are the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides.max(1) as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }

    fn byte(&mut self) -> u8 {
        const TELLING: [u8; 12] = [0, 1, 0x7f, 0x80, 0xff, b'"', b',', b'\n', b'\r', b'{', b'-', b'e'];
        if self.roll(2) == 0 { u8::try_from(self.roll(256)).unwrap() } else { *self.pick(&TELLING) }
    }
}

/// Whole tables: a name whose ending tells the format, and the bytes.
fn tables() -> Vec<(&'static str, Vec<u8>)> {
    let text = text();
    let mut tables: Vec<(&str, Vec<u8>)> = vec![
        ("t.csv", text.clone().into_bytes()),
        ("t.csv.gz", gzip(text.as_bytes())),
        ("t.csv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap()),
        ("t.parquet", parquet()),
        ("t.arrow", arrow(None)),
        ("t.feather", arrow(Some(CompressionType::LZ4_FRAME))),
        ("z.feather", arrow(Some(CompressionType::ZSTD))),
    ];
    tables.extend(["n.parquet", "n.arrow", "n.npy"].map(|name| (name, written(name))));
    tables
}

fn text() -> String {
    let row = |i: usize| {
        format!(
            "{i},\"say \"\"{i}\"\"\nand\",{}.5,{}\n",
            i * 7 % 11,
            if i.is_multiple_of(3) { "NA" } else { "1e-3" }
        )
    };
    std::iter::once("a,note,b,c\n".into()).chain((0..60).map(row)).collect()
}

fn batch() -> RecordBatch {
    let numbers = |k: usize| {
        Arc::new((0..80).map(|i| (i % 5 != 0).then_some((i * k) as f64)).collect::<Float64Array>())
    };
    let names: StringArray = (0..80).map(|i| Some(format!("name {}", i % 9))).collect();
    let columns: [(&str, ArrayRef); 3] = [("a", numbers(3)), ("name", Arc::new(names)), ("b", numbers(5))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet() -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch().schema(), None).unwrap();
    writer.write(&batch()).unwrap();
    writer.flush().unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn arrow(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch().schema(), options).unwrap();
    writer.write(&batch()).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

/// As covary writes it.
fn written(name: &str) -> Vec<u8> {
    let folder = Folder::new();
    let mut writer = Writer::create(folder.path(name), &[], &["a".into(), "b".into(), "c".into()]).unwrap();
    writer.write(&[], Mat::from_fn(100, 3, |i, j| (i * j) as f64 + 0.1).as_ref()).unwrap();
    writer.finish().unwrap();
    std::fs::read(folder.path(name)).unwrap()
}

/// One of the ways in which bytes are damaged.
fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    const LIES: [u64; 9] =
        [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, 0x7fff_ffff_ffff_ffff, u64::MAX];
    if bytes.is_empty() {
        return;
    }
    // Heads and tails say most about a file.
    let n = bytes.len();
    let at = match dice.roll(3) {
        0 => dice.roll(n.min(200)),
        1 => n - 1 - dice.roll(n.min(400)),
        _ => dice.roll(n),
    };
    let length = (1 + dice.roll(40)).min(n - at);
    match dice.roll(7) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << dice.roll(8),
        2 => bytes[at] = dice.byte(),
        3 => {
            let more: Vec<u8> = (0..length).map(|_| dice.byte()).collect();
            bytes.splice(at..at, more).for_each(drop);
        }
        4 => drop(bytes.drain(at..at + length)),
        5 => {
            let lie = dice.pick(&LIES).to_le_bytes();
            let width = [2, 4, 8][dice.roll(3)].min(n - at);
            bytes[at..at + width].copy_from_slice(&lie[..width]);
        }
        _ => {
            let copy = bytes[at..at + length].to_vec();
            bytes.splice(at..at, copy).for_each(drop);
        }
    }
}

/// Damages the file, or what is compressed in it.
fn damaged(name: &str, whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut inner = dice.roll(2) == 0;
    let mut bytes = match name {
        "t.csv.gz" | "t.csv.zst" if inner => text().into_bytes(),
        _ => {
            inner = false;
            whole.to_vec()
        }
    };
    for _ in 0..1 + dice.roll(4) {
        damage(&mut bytes, dice);
    }
    match name {
        "t.csv.gz" if inner => gzip(&bytes),
        "t.csv.zst" if inner => zstd::encode_all(&bytes[..], 1).unwrap(),
        _ => bytes,
    }
}

/// Reads in one of the ways; whatever comes out must fit together.
fn read(path: &Path, options: &ReadOptions, way: usize) {
    let Ok(reader) = open(path, options) else { return };
    let (p, carried) = (reader.schema().features.len(), reader.schema().carried.len());
    match way {
        0 => {
            if let Ok(Loaded::Table(table)) = reader.load(1 << 24) {
                assert_eq!(table.shape().1, p);
            }
        }
        1 => {
            for batch in reader.batches().map_while(Result::ok) {
                assert_eq!((batch.chunk.ncols(), batch.carried.len()), (p, carried));
                assert!(batch.carried.iter().all(|c| c.len() == batch.chunk.nrows()));
            }
        }
        _ => drop(read_stream(reader.stream())),
    }
}

#[test]
fn soak_damaged_tables_are_an_error_or_a_table() {
    let tables = tables();
    let count = soak(200, 8000);
    let (sender, receiver) = channel();
    let reading = std::thread::spawn(move || {
        let folder = Folder::new();
        for seed in 0..count {
            let mut dice = Dice(seed as u64);
            let (name, whole) = &tables[seed % tables.len()];
            let path = folder.file(name, damaged(name, whole, &mut dice));
            let sizes = [(16, 1 << 12), (400, 1 << 16), (1 << 20, 1 << 20)];
            let (chunk_bytes, piece_bytes) = *dice.pick(&sizes);
            let header = *dice.pick(&[None, None, Some(true), Some(false)]);
            let options = ReadOptions { chunk_bytes, piece_bytes, header, ..ReadOptions::default() };
            sender.send((seed, *name)).unwrap();
            read(&path, &options, dice.roll(3));
        }
    });
    let mut last = None;
    while let Ok(next) = receiver.recv_timeout(Duration::from_secs(120)) {
        last = Some(next);
    }
    assert!(reading.is_finished() || last.is_some_and(|(seed, _)| seed + 1 == count), "{last:?} has no end");
    assert!(reading.join().is_ok(), "{last:?} panics");
}

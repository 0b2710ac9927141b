//! How fast CSV becomes numbers: `cargo run --release -p covary-io --example csv_speed [MEGABYTES]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that people run by hand")]

use std::fmt::Write as _;
use std::time::Instant;

use covary_io::{ReadOptions, open};

/// How a number is written.
type Format = fn(f64) -> String;

/// A file of about `size` bytes with 50 columns, its cells as `format` writes them.
fn make(path: &std::path::Path, size: usize, format: Format) {
    let header: Vec<String> = (1..=50).map(|j| format!("c{j}")).collect();
    let mut text = header.join(",") + "\n";
    let mut state = 1u64;
    while text.len() < size {
        for j in 0..50 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
            let end = if j == 49 { '\n' } else { ',' };
            write!(text, "{}{end}", format(10.0 * unit - 5.0)).unwrap();
        }
    }
    std::fs::write(path, text).unwrap();
}

fn best(mut run: impl FnMut()) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let megabytes: usize = std::env::args().nth(1).map_or(200, |a| a.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("speed.csv");
    let formats: [(&str, Format); 3] = [
        ("17 digits", |x| format!("{x:.16e}").replace("e0", "")),
        ("shortest", |x| x.to_string()),
        ("3 decimals", |x| format!("{x:.3}")),
    ];
    for (name, format) in formats {
        make(&path, megabytes << 20, format);
        let size = std::fs::metadata(&path).unwrap().len() as f64 / 1e6;
        for threads in [1, rayon::current_num_threads()] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let index = best(|| drop(pool.install(|| open(&path, &ReadOptions::default())).unwrap()));
            let load = best(|| {
                let reader = open(&path, &ReadOptions::default()).unwrap();
                drop(pool.install(|| reader.load(usize::MAX)).unwrap());
            });
            println!(
                "{name:>10}, {threads} thread(s): open and index {:5.0} MB/s, open, index and load {:5.0} MB/s",
                size / index,
                size / load
            );
        }
    }
}

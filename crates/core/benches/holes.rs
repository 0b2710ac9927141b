//! Fits of rows with holes: time against rows, against the closed form of the same rows, and memory against the data.
//!
//! `make bench` runs it; `-- --quick` is a smaller size. Peers are in `bench/compare.py`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::Ppca;
use covary::linalg::{Mat, MatRef};
use covary::model::{LinearGaussian, Noise};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};

/// Rows of a model with q strong directions and noise 0.5, row-major, and the same with holes at random.
fn rows(n: usize, p: usize, q: usize, share: f64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let strength = |k: usize| 3.0 - 2.0 * k as f64 / (q - 1) as f64;
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let w = Mat::from_fn(p, q, |_, k| normal() * strength(k));
    let mean = (0..p).map(|_| normal()).collect();
    let model = LinearGaussian::new(mean, w, Noise::Isotropic(0.25)).unwrap();
    let mut cells = Vec::with_capacity(n * p);
    for first in (0..n).step_by(10_000) {
        let part = model.sample_rows(first..n.min(first + 10_000), 0);
        (0..part.nrows()).for_each(|i| cells.extend(part.row(i).iter()));
    }
    let mut hole = || -> bool { Distribution::<f64>::sample(&StandardUniform, &mut rng) < share };
    let holes = cells.iter().map(|x| if hole() { f64::NAN } else { *x }).collect();
    (cells, holes)
}

/// Best seconds of some fits.
fn seconds(rounds: usize, x: MatRef<'_, f64>, q: usize) -> f64 {
    let one = |_| {
        let started = Instant::now();
        drop(Ppca::new(q).fit(x).unwrap());
        started.elapsed().as_secs_f64()
    };
    (0..rounds).map(one).fold(f64::INFINITY, f64::min)
}

fn status(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(f64::NAN)
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let (n, p, q) = if quick { (100_000, 100, 10) } else { (1_000_000, 100, 10) };
    memory(n, p, q);
    let (n, p, q) = (20_000, 50, 5);
    let (complete, holes) = rows(4 * n, p, q, 0.2);
    let view = |cells, n| MatRef::from_row_major_slice(cells, n, p);
    let fit = Ppca::new(q).fit(view(&holes[..n * p], n)).unwrap();
    let (some, four) = (seconds(7, view(&holes[..n * p], n), q), seconds(7, view(&holes, 4 * n), q));
    let closed = seconds(7, view(&complete[..n * p], n), q);
    println!("{n} × {p}, q {q}, a fifth missing: {some:.4} s in {} passes", fit.report.passes);
    println!("  four times the rows: {four:.4} s, ratio {:.2} (linear: 3.6 to 4.4)", four / some);
    println!(
        "  a pass against the closed form without holes: {:.2}",
        some / fit.report.passes as f64 / closed
    );
}

/// Peak memory of a fit, the data included, relative to the data.
fn memory(n: usize, p: usize, q: usize) {
    let (complete, holes) = rows(n, p, q, 0.1);
    drop(complete);
    let _ = std::fs::write("/proc/self/clear_refs", "5"); // the peak is counted from here (Linux)
    let before = status("VmRSS:");
    let started = Instant::now();
    let fit = Ppca::new(q).fit(MatRef::from_row_major_slice(&holes, n, p)).unwrap();
    let (time, peak) = (started.elapsed().as_secs_f64(), status("VmHWM:"));
    let data = (n * p * 8) as f64 / 1024.0;
    println!("{n} × {p}, q {q}, a tenth missing: {time:.2} s in {} passes", fit.report.passes);
    println!(
        "  peak memory {:.2} × the data (limit 1.6); the fit itself added {:.1} %",
        1.0 + (peak - before) / data,
        100.0 * (peak - before) / data
    );
}

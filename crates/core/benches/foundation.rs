//! The closed-form fits against the physical work they contain, in one run: ratios, best of several, quality beside.
//!
//! `make bench` runs it; `cargo bench -p covary --bench foundation -- --quick` is a smaller size, and a word selects
//! cases by name.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a program that prints a table, and makes single-precision copies of its data"
)]

use std::time::Instant;

use covary::linalg::{Mat, MatRef};
use covary::{Components, Ppca, Solver};
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Par};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Rows of a model with q strong directions and noise 0.5, row-major.
fn low_rank(n: usize, p: usize, q: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let strength = |k: usize| 3.0 - 2.0 * k as f64 / (q - 1) as f64;
    let w = Mat::from_fn(p, q, |_, k| normal() * strength(k));
    let mean: Vec<f64> = (0..p).map(|_| normal()).collect();
    let z = Mat::from_fn(n, q, |_, _| normal());
    let signal = &z * w.transpose();
    let mut cells = Vec::with_capacity(n * p);
    for i in 0..n {
        cells.extend((0..p).map(|j| signal[(i, j)] + mean[j] + 0.5 * normal()));
    }
    cells
}

/// Best seconds of each alternative, taken in turn.
fn best<const K: usize>(rounds: usize, mut run: [Box<dyn FnMut() + '_>; K]) -> [f64; K] {
    let mut seconds = [f64::INFINITY; K];
    for _ in 0..rounds {
        for (s, f) in seconds.iter_mut().zip(&mut run) {
            let started = Instant::now();
            f();
            *s = s.min(started.elapsed().as_secs_f64());
        }
    }
    seconds
}

/// faer's own triangular product of the whole array on all threads: `XᵀX`, lower triangle.
fn crossproduct(x: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(x.ncols(), x.ncols());
    triangular_matmul(
        out.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Replace,
        x.transpose(),
        BlockStructure::Rectangular,
        x,
        BlockStructure::Rectangular,
        1.0,
        Par::rayon(0),
    );
    out
}

fn line(case: &str, seconds: f64, against: &str, other: f64, target: &str) {
    println!(
        "{case:<44} {seconds:>8.3} s   {against:<38} {other:>8.3} s   ratio {:>6.2}   target {target}",
        seconds / other
    );
}

fn kib(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(f64::NAN)
}

/// MiB that the peak of resident memory lies above what was there before (Linux).
fn extra_memory(f: impl FnOnce()) -> f64 {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = kib("VmRSS:");
    f();
    (kib("VmHWM:") - before) / 1024.0
}

fn tall(quick: bool) {
    let (n, p, q) = if quick { (40_000, 300, 10) } else { (200_000, 300, 10) };
    let cells = low_rank(n, p, q);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    // First of all: later fits would reuse memory that earlier ones have left.
    drop(Ppca::new(q).fit(x.subrows(0, 5000)).unwrap()); // threads and code are there already
    let extra = extra_memory(|| drop(Ppca::new(q).fit(x).unwrap()));
    let cells32: Vec<f32> = cells.iter().map(|v| *v as f32).collect();
    let x32 = MatRef::from_row_major_slice(&cells32, n, p);
    let model = Ppca::new(q).fit(x).unwrap().model;
    let [syrk, fit, fit32, density] = best(
        7,
        [
            Box::new(|| drop(crossproduct(x))),
            Box::new(|| drop(Ppca::new(q).fit(x).unwrap())),
            Box::new(|| drop(Ppca::new(q).fit(x32).unwrap())),
            Box::new(|| drop(model.log_density(x).unwrap())),
        ],
    );
    println!("tall {n} × {p}, q {q}");
    line("  fit f64", fit, "faer syrk of the array", syrk, "≤ 1.00");
    line("  fit f64", fit, "fit f32 (throughput)", fit32, "≥ 1.60");
    line("  log density of all rows", density, "fit f64", fit, "≤ 0.60");
    let square = (p * p * 8) as f64 / 1048576.0;
    let data = (n * p * 8) as f64 / 1048576.0;
    println!(
        "  extra memory of the fit {extra:.1} MiB = {:.1} % of the data ({data:.0} MiB); a p × p matrix has {square:.2} MiB",
        100.0 * extra / data
    );
    let [a, b] = [Ppca::new(q).fit(x).unwrap(), Ppca::new(q).fit(x32).unwrap()];
    println!(
        "  σ² {:.9} (f64) {:.9} (f32), truth 0.25",
        a.spectrum().unwrap().noise_variance(),
        b.spectrum().unwrap().noise_variance()
    );
}

fn wide(quick: bool) {
    let (n, p, q) = if quick { (300, 8_000, 20) } else { (500, 20_000, 20) };
    let cells = low_rank(n, p, q);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let [gram, fit] = best(
        7,
        [Box::new(|| drop(crossproduct(x.transpose()))), Box::new(|| drop(Ppca::new(q).fit(x).unwrap()))],
    );
    println!("wide {n} × {p}, q {q}");
    line("  fit", fit, "faer syrk, the n × n Gram product", gram, "≤ 1.50");
}

fn large(quick: bool) {
    let (n, q) = if quick { (3000, 20) } else { (8000, 20) };
    let cells = low_rank(n, n, q);
    let x = MatRef::from_row_major_slice(&cells, n, n);
    // The block of the iteration is wider than q; a pass multiplies by all of it.
    let block = Mat::from_fn(n, q + 8 + q / 4, |i, j| ((i * 31 + j * 17) % 97) as f64 - 48.0);
    let mut fit = None;
    let [product, seconds] = best(
        3,
        [
            Box::new(|| {
                let mut out = Mat::<f64>::zeros(n, block.ncols());
                faer::linalg::matmul::matmul(
                    out.as_mut(),
                    Accum::Replace,
                    x,
                    block.as_ref(),
                    1.0,
                    Par::rayon(0),
                );
            }),
            Box::new(|| fit = Some(Ppca::new(q).solver(Solver::Krylov).fit(x).unwrap())),
        ],
    );
    let fit = fit.unwrap();
    println!("large {n} × {n}, q {q}: krylov, {} passes", fit.report.passes);
    line("  fit", seconds, "one product of the array with a block", product, "≤ 15.00");
    let exact = Ppca::new(Components::All).solver(Solver::Eigen);
    if quick {
        let exact = exact.fit(x).unwrap();
        let error = (0..q).map(|j| {
            (fit.spectrum().unwrap().eigenvalues()[j] / exact.spectrum().unwrap().eigenvalues()[j] - 1.0)
                .abs()
        });
        println!(
            "  eigenvalues against the whole decomposition: {:.1e} relative, target 1e-8",
            error.fold(0.0, f64::max)
        );
    } else {
        let started = Instant::now();
        let exact = Ppca::new(q).solver(Solver::Eigen).fit(x).unwrap();
        let error = (0..q).map(|j| {
            (fit.spectrum().unwrap().eigenvalues()[j] / exact.spectrum().unwrap().eigenvalues()[j] - 1.0)
                .abs()
        });
        println!(
            "  eigenvalues against the covariance's ({:.1} s): {:.1e} relative, target 1e-8",
            started.elapsed().as_secs_f64(),
            error.fold(0.0, f64::max)
        );
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let quick = words.iter().any(|w| w == "--quick");
    let wanted = |name: &str| {
        let mut names = words.iter().filter(|w| !w.starts_with("--")).peekable();
        names.peek().is_none() || names.any(|w| w == name)
    };
    println!("{} threads", rayon::current_num_threads());
    if wanted("tall") {
        tall(quick);
    }
    if wanted("wide") {
        wide(quick);
    }
    if wanted("large") {
        large(quick);
    }
}

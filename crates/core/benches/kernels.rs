//! Kernel PCA and independent components beside the physical work that they contain, in one run.
//!
//! `make bench` runs it; `-- --quick` is a smaller size. Peers are in `bench/compare.py`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::linalg::{Mat, MatRef};
use covary::{Gamma, Ica, KernelPca, Landmarks};
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Par};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Standardised rows of a model with five directions and noise 0.5, row-major.
fn standardised(n: usize, p: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let w = Mat::from_fn(p, 5, |_, k| normal() * (3.0 - 0.5 * k as f64));
    let deviation = |j: usize| (w.row(j).squared_norm_l2() + 0.25).sqrt();
    let deviations: Vec<f64> = (0..p).map(deviation).collect();
    let mut cells = Vec::with_capacity(n * p);
    for _ in 0..n {
        let z: Vec<f64> = (0..5).map(|_| normal()).collect();
        let cell = |j: usize| (0..5).map(|k| w[(j, k)] * z[k]).sum::<f64>() / deviations[j];
        cells.extend((0..p).map(|j| cell(j) + 0.5 * normal() / deviations[j]));
    }
    cells
}

/// Mixtures of as many uniform and Laplace sources as features, row-major.
fn mixed(n: usize, p: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let a: Mat<f64> = Mat::from_fn(p, p, |_, _| StandardNormal.sample(&mut rng));
    let source = |k: usize, u: f64| match k % 2 {
        0 => u,
        _ => -u.signum() * (1.0 - u.abs()).ln(),
    };
    let mut cells = Vec::with_capacity(n * p);
    for _ in 0..n {
        let s: Vec<f64> = (0..p).map(|k| source(k, rng.random_range(-1.0..1.0))).collect();
        cells.extend((0..p).map(|j| (0..p).map(|k| a[(j, k)] * s[k]).sum::<f64>()));
    }
    cells
}

/// Best seconds of some runs, and what the last gave.
fn seconds<T>(rounds: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut once = || {
        let started = Instant::now();
        let result = run();
        (started.elapsed().as_secs_f64(), result)
    };
    let (mut best, mut last) = once();
    for _ in 1..rounds {
        let (seconds, result) = once();
        (best, last) = (best.min(seconds), result);
    }
    (best, last)
}

fn exact(n: usize, p: usize, q: usize) {
    let cells = standardised(n, p);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let family = KernelPca::new(q).gamma(Gamma::PerFeature);
    let (fit, found) = seconds(7, || family.fit(x).unwrap());
    let (matrix, block) = (Mat::<f64>::full(n, n, 0.5), Mat::<f64>::full(n, q + 2, 0.5));
    let (product, _) = seconds(7, || &matrix * &block);
    println!("exact {n} × {p}, rbf, q {q}: {fit:.4} s, {} passes", found.report.passes);
    println!(
        "  one product of an n × n matrix with a block by faer {product:.4} s, ratio {:.1}",
        fit / product
    );
}

fn nystrom(n: usize, p: usize, q: usize, m: usize) {
    let cells = standardised(n, p);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let family = KernelPca::new(q).gamma(Gamma::PerFeature).landmarks(Landmarks::Pivoted(m));
    let (fit, _) = seconds(3, || family.fit(x).unwrap());
    let mapped = Mat::<f64>::full(m, n, 0.5);
    let square = || {
        let mut out = Mat::zeros(m, m);
        let (whole, lower) = (BlockStructure::Rectangular, BlockStructure::TriangularLower);
        let (a, b) = (mapped.as_ref(), mapped.transpose());
        triangular_matmul(out.as_mut(), lower, Accum::Replace, a, whole, b, whole, 1.0, Par::rayon(0));
        out
    };
    let (crossproduct, _) = seconds(3, square);
    println!("landmarks {n} × {p}, rbf, q {q}, {m} landmarks: {fit:.3} s");
    println!("  faer syrk of m features of the rows {crossproduct:.3} s, ratio {:.2}", fit / crossproduct);
}

fn sources(n: usize, p: usize) {
    let cells = mixed(n, p);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let family = Ica::new(p).noise(false).starts(1);
    let (fit, found) = seconds(7, || family.fit(x).unwrap());
    let (product, _) = seconds(7, || x * Mat::<f64>::identity(p, p));
    println!("ica {n} × {p}: {fit:.4} s, {} passes", found.report.passes);
    println!("  one product of the rows with p × p by faer {product:.4} s, ratio {:.1}", fit / product);
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let small = if quick { 5 } else { 1 };
    exact(5000 / small, 20, 10);
    nystrom(200_000 / small, 20, 10, 500 / small);
    sources(100_000 / small, 20);
}

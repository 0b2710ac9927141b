//! Steps of a Bayesian GP-LVM: seconds over the number of rows, a whole fit, and new rows.
//!
//! `make bench` runs it; `-- --quick` is a smaller size. Peers are in `bench/curved.py`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::Gplvm;
use covary::data::Rows;
use covary::linalg::{Mat, MatRef};
use covary::model::Encode;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Rows on a surface of two dimensions: waves of random directions, and noise 0.1.
fn rows(n: usize, p: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let waves: Vec<[f64; 3]> = (0..p).map(|_| [normal(), normal(), normal()]).collect();
    let mut cells = Vec::with_capacity(n * p);
    for _ in 0..n {
        let (a, b) = (normal(), normal());
        cells.extend(waves.iter().map(|[u, v, w]| (u * a + v * b + w).sin()));
        let last = cells.len() - p;
        cells[last..].iter_mut().for_each(|x| *x += 0.1 * normal());
    }
    cells
}

fn seconds<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let result = run();
    (started.elapsed().as_secs_f64(), result)
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let steps = if quick { 20 } else { 40 };
    for (n, p, q, m) in [(1000, 12, 10, 50), (1000, 20, 5, 50), (10_000, 20, 5, 50), (100_000, 20, 5, 50)] {
        if quick && n > 10_000 {
            continue;
        }
        let cells = rows(n, p);
        let x = MatRef::from_row_major_slice(&cells, n, p);
        let family = |steps| Gplvm::new(q).inducing(m).tolerance(1e-300).max_iterations(steps);
        let (start, _) = seconds(|| family(1).fit(x).unwrap());
        let (all, fit) = seconds(|| family(1 + steps).fit(x).unwrap());
        let bound = fit.report.gplvm().unwrap().objective;
        let step = (all - start) / steps as f64;
        println!("{n} × {p}, q {q}, M {m}: {:.2} ms a step, bound {bound:.1}", 1e3 * step);
    }
    let (n, p) = (1000, 12);
    let cells = rows(n, p);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let (time, fit) = seconds(|| Gplvm::new(5).fit(x).unwrap());
    let report = fit.report.gplvm().unwrap();
    println!(
        "a fit of {n} × {p}, q 5: {time:.2} s, {} steps, bound {:.1}",
        report.iterations, report.objective
    );
    let new = Mat::from_fn(n, p, |i, j| x[(i, j)]);
    let (time, _) = seconds(|| fit.model.encode(Rows::from(&new).source()).unwrap());
    println!("{n} new rows: {time:.2} s");
}

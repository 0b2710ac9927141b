//! Fits of groups: a mixture and k-means, beside one pass over the same rows for given parameters.
//!
//! `make bench` runs it; `-- --quick` is a smaller size. Peers are in `bench/compare.py`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::data::Rows;
use covary::linalg::{Mat, MatRef};
use covary::model::{Density, LinearGaussian, Mixture, Noise};
use covary::{KMeans, MixturePpca};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Rows of k groups around means four deviations of a loading apart, each with q directions and noise 0.3.
fn rows(n: usize, p: usize, q: usize, k: usize) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut component = |_| {
        let w = Mat::from_fn(p, q, |_, _| normal());
        let mean = (0..p).map(|_| 4.0 * normal()).collect();
        LinearGaussian::new(mean, w, Noise::Isotropic(0.09)).unwrap()
    };
    let components = (0..k).map(&mut component).collect();
    Mixture::new(vec![1.0 / k as f64; k], components).unwrap().sample_rows(0..n, 0)
}

/// Best seconds of some runs, and what the last gave.
fn seconds<T>(rounds: usize, run: impl Fn() -> T) -> (f64, T) {
    let once = || {
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

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let (n, p, q, k) = if quick { (2000, 20, 3, 5) } else { (20_000, 20, 3, 5) };
    let x = rows(n, p, q, k);
    let cells: Vec<f64> = (0..n).flat_map(|i| x.row(i).iter().copied().collect::<Vec<_>>()).collect();
    let x = MatRef::from_row_major_slice(&cells, n, p);
    for latent in [q, p - 1] {
        let (fit, found) = seconds(5, || MixturePpca::new(k, latent).fit(x).unwrap());
        let (density, _) = seconds(5, || found.model.log_density(Rows::from(x).source()).unwrap());
        let likelihood = found.report.log_likelihood.unwrap() / n as f64;
        println!(
            "mixture {n} × {p}, K {k}, q {latent}: {fit:.4} s, {} passes, {likelihood:.4} nats a row",
            found.report.passes
        );
        println!("  densities of the rows: {density:.4} s, ratio {:.1}", fit / density);
    }
    for (n, k) in [(10 * n, 10), (10 * n, 100)] {
        let x = rows(n, p, q, k);
        let cells: Vec<f64> = (0..n).flat_map(|i| x.row(i).iter().copied().collect::<Vec<_>>()).collect();
        let x = MatRef::from_row_major_slice(&cells, n, p);
        let (fit, found) = seconds(3, || KMeans::new(k).fit(x).unwrap());
        let (nearest, _) = seconds(3, || found.model.nearest(x).unwrap());
        println!("k-means {n} × {p}, K {k}: {fit:.4} s, {} passes", found.report.passes);
        println!("  nearest centres of the rows: {nearest:.4} s, ratio {:.1}", fit / nearest);
    }
}

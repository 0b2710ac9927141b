//! Factor analysis against the one pass over the rows that it needs, and of more features than rows: seconds, memory, quality.
//!
//! `make bench` runs it. The rows are a model like `factor` of the peers' workloads: 100 features, noise of each its own.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::evidence::{Moments, gather};
use covary::linalg::{Mat, MatRef};
use covary::model::Factors;
use covary::model::{LinearGaussian, Noise};
use covary::{FactorAnalysis, FactorSolver, Fit};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};

/// Rows of q factors of falling strength and noise deviations of 0.15 to 0.85, row-major.
fn rows(n: usize, p: usize, q: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let strength = |k: usize| 3.0 - 2.0 * k as f64 / (q - 1) as f64;
    let w = Mat::from_fn(p, q, |_, k| strength(k) * Distribution::<f64>::sample(&StandardNormal, &mut rng));
    let mut noise = || -> f64 { 0.15 + 0.7 * Distribution::<f64>::sample(&StandardUniform, &mut rng) };
    let noise = Noise::Diagonal((0..p).map(|_| noise().powi(2)).collect());
    let model = LinearGaussian::new(vec![0.0; p], w, noise).unwrap();
    let mut cells = Vec::with_capacity(n * p);
    for first in (0..n).step_by(10_000) {
        let part = model.sample_rows(first..n.min(first + 10_000), 0);
        (0..part.nrows()).for_each(|i| cells.extend(part.row(i).iter()));
    }
    cells
}

fn status(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(f64::NAN)
}

/// Best seconds of some rounds.
fn seconds(rounds: usize, mut f: impl FnMut()) -> f64 {
    let one = |_| {
        let started = Instant::now();
        f();
        started.elapsed().as_secs_f64()
    };
    (0..rounds).map(one).fold(f64::INFINITY, f64::min)
}

fn describe(fit: &Fit<Factors>) -> String {
    let factor = fit.report.factor().unwrap();
    format!(
        "{} iterations, {} passes, gradient {:.1e}, log-likelihood per row {:.9} ({:?})",
        factor.iterations,
        fit.report.passes,
        factor.gradient_norm,
        fit.report.log_likelihood.unwrap() / fit.report.weight,
        fit.report.stop
    )
}

fn main() {
    let (n, p, q) = (50_000, 100, 5);
    let cells = rows(n, p, q);
    let x = MatRef::from_row_major_slice(&cells, n, p);
    let table = covary::data::Rows::from(x);
    let pass =
        seconds(7, || drop(gather(table.source(), || Moments::empty(p), &covary::Control::new()).unwrap()));
    println!("{n} × {p}, q {q}: one pass for the moments {pass:.4} s");
    for solver in [FactorSolver::Newton, FactorSolver::Krylov] {
        let moments = gather(table.source(), || Moments::empty(p), &covary::Control::new()).unwrap();
        let spec = FactorAnalysis::new(q).solver(solver);
        let alone = seconds(7, || drop(spec.fit_moments(&moments).unwrap()));
        println!(
            "  {solver:?} from the moments {alone:.4} s: {}",
            describe(&spec.fit_moments(&moments).unwrap())
        );
    }
    let whole = seconds(7, || drop(FactorAnalysis::new(q).fit(x).unwrap()));
    println!("  the whole fit {whole:.4} s, ratio to the pass {:.2}", whole / pass);
    drop(cells);
    for (n, p) in [(500, 5000), (20_000, 1000)] {
        wide(n, p, q);
    }
}

/// Seconds and peak memory, the data included.
fn wide(n: usize, p: usize, q: usize) {
    let cells = rows(n, p, q);
    let _ = std::fs::write("/proc/self/clear_refs", "5"); // the peak is counted from here (Linux)
    let before = status("VmRSS:");
    let started = Instant::now();
    let fit = FactorAnalysis::new(q).fit(MatRef::from_row_major_slice(&cells, n, p)).unwrap();
    let (time, peak) = (started.elapsed().as_secs_f64(), status("VmHWM:"));
    println!("{n} × {p}, q {q}: {time:.2} s by {}: {}", fit.report.plan.solver.name(), describe(&fit));
    println!("  peak memory {:.0} MiB, of which the fit {:.0} MiB", peak / 1024.0, (peak - before) / 1024.0);
}

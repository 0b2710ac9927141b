//! Choosing the number of components beside one fit: all numbers share one pass and one spectrum.
//!
//! `make bench` runs it. The rows are 200 000 of 300 features, ten directions of falling strength in noise.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table")]

use std::time::Instant;

use covary::Ppca;
use covary::data::Rows;
use covary::evidence::{Moments, gather};
use covary::linalg::Mat;
use covary::model::{LinearGaussian, Noise};
use covary::select::Select;

const FEATURES: usize = 300;
const ROWS: usize = 200_000;
const ROUNDS: usize = 5;

fn rows() -> Vec<f64> {
    let loadings =
        Mat::from_fn(FEATURES, 10, |j, k| ((j * (2 * k + 3)) as f64 * 0.37).sin() / (k + 1) as f64);
    let model = LinearGaussian::new(vec![1.0; FEATURES], loadings, Noise::Isotropic(0.25)).unwrap();
    let mut cells = Vec::with_capacity(ROWS * FEATURES);
    for first in (0..ROWS).step_by(10_000) {
        let part = model.sample_rows(first..first + 10_000, 0);
        (0..part.nrows()).for_each(|i| cells.extend(part.row(i).iter()));
    }
    cells
}

/// Best seconds of some rounds.
fn seconds(mut f: impl FnMut()) -> f64 {
    let one = |_| {
        let started = Instant::now();
        f();
        started.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(one).fold(f64::INFINITY, f64::min)
}

fn main() {
    let cells = rows();
    let data = || Rows::from_slice(&cells, FEATURES).unwrap();
    let fit = seconds(|| drop(Ppca::new(10).fit(data()).unwrap()));
    let whole = seconds(|| drop(Select::new().run(data()).unwrap()));
    let moments = || gather(data().source(), || Moments::empty(FEATURES), &Default::default()).unwrap();
    let spectrum = seconds(|| drop(Select::new().run_moments(&moments()).unwrap()));
    println!("{ROWS} × {FEATURES}, best of {ROUNDS}: seconds, and as a multiple of a fit");
    println!("{:32}{fit:8.3}", "one fit, q 10");
    for (name, time) in [("what the spectrum decides", spectrum), ("with ten folds of the rows", whole)] {
        println!("{name:32}{time:8.3}{:8.2}×", time / fit);
    }
}

//! The n × n side: inner products of the rows decomposed, their vectors carried over to the features
//! (PRML 12.1.4).

use rayon::prelude::*;

use super::Components;
use super::eigen::decompose;
use super::refine::refine;
use super::resolution::{ComputedEigenvalues, of_rows};
use super::svd::centre;
use crate::blocks::{Gram, ShiftedBlock};
use crate::control::Control;
use crate::data::{Cells, Chunk, Real, Table, with_view};
use crate::error::{Error, Result};
use crate::evidence::center_of;
use crate::linalg::{Eigen, Mat, MatRef, negligible, orthonormal_columns, product, set_product};
use crate::spectrum::{RawSpectrum, Spectrum};

/// Features that are carried over at once.
const PANEL: usize = 256;
/// Means up to so many deviations cost three digits at most when cells are multiplied as they lie.
const MODERATE: f64 = 1e3;

/// The spectrum of a table by its Gram matrix: uᵢ = Xᵀvᵢ/‖Xᵀvᵢ‖.
pub(crate) fn solve(
    table: &Table<'_>,
    components: Components,
    seed: u64,
    control: &Control<'_>,
) -> Result<Spectrum> {
    let (n, p) = table.shape();
    let counted = |w: &[f64]| w.iter().filter(|w| **w > 0.0).count();
    components.check_possible(table.weights().map_or(n, counted), p)?;
    let chunk = table.whole();
    let Gram { rows, weight, mean, products } = Gram::of(&chunk)?;
    let total_variance = (0..n).map(|i| products[(i, i)]).sum::<f64>() / weight;
    if !total_variance.is_finite() {
        return Err(Error::Scale);
    }
    let Eigen { values, vectors: v } = decompose(products.as_ref(), components, seed)?;
    let mut eigenvalues: Vec<f64> = values.iter().map(|x| x / weight).collect();
    eigenvalues.truncate(p); // n > p is allowed: the rest is 0
    let q = components.resolve(rows, p, &eigenvalues, negligible(rows, p, eigenvalues[0]))?;
    let computed = ComputedEigenvalues { values: &eigenvalues, total: total_variance, rows, features: p };
    if computed.lost_in_rounding(components, q, || variances(&chunk, &mean, weight)) {
        // Inner products of rows hold nothing of the small features.
        let (_, _, mean, rest) = center_of(&chunk)?;
        let centred = chunk.with_wide(|v| centre(v, (&mean, &rest), chunk.weights()));
        let found = of_rows(centred.as_ref(), components, (rows, weight))?;
        let raw = RawSpectrum::new(mean, found, total_variance, (rows, weight));
        return Spectrum::new(RawSpectrum { own_scale: true, ..raw });
    }
    let deviation = (total_variance / p as f64).sqrt();
    let vectors = match plain_cells(&chunk, &mean, deviation) {
        Some(x) => carry_over_plain(x, &mean, v.subcols(0, q)),
        None => carry_over(&chunk, &mean, v.subcols(0, q)),
    };
    // Those of small eigenvalues have lost some orthogonality to the large ones, and get it back.
    let vectors = orthonormal_columns(vectors);
    let mut raw = RawSpectrum::new(mean, (eigenvalues, vectors), total_variance, (rows, weight));
    refine(&mut raw, table, control)?;
    Spectrum::new(raw)
}

/// Variance of each feature.
fn variances(chunk: &Chunk<'_>, mean: &[f64], weight: f64) -> Vec<f64> {
    let weights = chunk.weights();
    let square = |i: usize, x: f64, m: f64| weights.map_or(1.0, |w| w[i]) * (x - m).powi(2);
    let of = |(j, m): (usize, &f64)| {
        let counted = (0..chunk.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0));
        counted.map(|i| square(i, chunk.cells().get(i, j), *m)).sum::<f64>() / weight
    };
    mean.iter().enumerate().map(of).collect()
}

/// Directions Xᵀv of the features (p × q), X the centred and weighted rows.
fn carry_over(chunk: &Chunk<'_>, mean: &[f64], v: MatRef<'_, f64>) -> Mat<f64> {
    let mut u = Mat::zeros(mean.len(), v.ncols());
    let panels = u.par_row_chunks_mut(PANEL).enumerate();
    with_view!(chunk.cells(), x => {
        let room = || ShiftedBlock::new(x.nrows(), &mean[..PANEL.min(mean.len())], 1.0, x);
        panels.for_each_init(room, |block, (k, out)| {
            let means = &mean[k * PANEL..k * PANEL + out.nrows()];
            let panel = x.subcols(k * PANEL, means.len()); // (n × features)
            let centred = block.shift_to(means).fill(panel, chunk.weights());
            Real::with_wide(centred, |centred| set_product(out, centred.transpose(), v));
        });
    });
    u
}

/// The cells as they lie, when they can be multiplied without being centred first: double precision, no
/// weights, and means that are not large beside the deviations.
fn plain_cells<'a>(chunk: &'a Chunk<'_>, mean: &[f64], deviation: f64) -> Option<MatRef<'a, f64>> {
    let small = mean.iter().all(|m| m.abs() <= MODERATE * deviation);
    match chunk.cells() {
        Cells::F64(cells) if small && chunk.weights().is_none() => Some(cells.view()),
        _ => None,
    }
}

/// The same directions by one product of the cells as they lie: Xᵀv − m (1ᵀv), where 1ᵀv is 0 but for
/// rounding.
fn carry_over_plain(x: MatRef<'_, f64>, mean: &[f64], v: MatRef<'_, f64>) -> Mat<f64> {
    let mut u = product(x.transpose(), v);
    for (k, mut column) in u.col_iter_mut().enumerate() {
        let sum: f64 = v.col(k).iter().sum();
        column.as_mut().iter_mut().zip(mean).for_each(|(u, m)| *u -= m * sum);
    }
    u
}

//! The n × n side: inner products of the rows decomposed, their vectors carried over to the features (PRML 12.1.4).

use rayon::prelude::*;

use super::Components;
use super::eigen::decompose;
use super::refine::refine;
use crate::control::Control;
use crate::data::{Chunk, Real, Table, with_view};
use crate::error::{Error, Result};
use crate::evidence::{Gram, PANEL, ShiftedBlock};
use crate::linalg::{Eigen, Mat, MatRef, set_product};
use crate::model::{RawSpectrum, Spectrum};

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
    let q = components.resolve(rows, p, &eigenvalues)?;
    let vectors = carry_over(&chunk, &mean, v.subcols(0, q));
    let mut raw = RawSpectrum { mean, eigenvalues, vectors, total_variance, rows, weight, distortion: None };
    refine(&mut raw, table, control)?;
    Spectrum::new(raw)
}

/// Orthonormal directions Xᵀv of the features (p × q), X the centred and weighted rows.
fn carry_over(chunk: &Chunk<'_>, mean: &[f64], v: MatRef<'_, f64>) -> Mat<f64> {
    let mut u = Mat::zeros(mean.len(), v.ncols());
    u.par_row_chunks_mut(PANEL).enumerate().for_each(|(k, out)| {
        let start = k * PANEL;
        let means = &mean[start..start + out.nrows()];
        with_view!(chunk.cells(), x => {
            let panel = x.subcols(start, means.len()); // (n × features)
            let mut block = ShiftedBlock::new(panel.nrows(), means, 1.0, panel);
            let centred = block.fill(panel, chunk.weights());
            Real::with_wide(centred, |centred| set_product(out, centred.transpose(), v));
        });
    });
    orthonormal_columns(u)
}

/// Unit columns; those of small eigenvalues have lost some orthogonality to the large ones and get it back.
fn orthonormal_columns(mut u: Mat<f64>) -> Mat<f64> {
    (0..u.ncols()).for_each(|j| {
        crate::linalg::orthonormalise(&mut u, j);
    });
    u
}

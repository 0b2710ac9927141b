//! The centred matrix itself decomposed: small variances keep their relative accuracy, at the price of a copy.

use super::Components;
use crate::data::Table;
use crate::error::{Error, Result};
use crate::evidence::center_of;
use crate::linalg::{Mat, MatRef, power_of_two, right_singular};
use crate::model::{RawSpectrum, Spectrum};

/// The spectrum of a table, by singular values s of √w(x − m): λ = s²/n.
pub(crate) fn solve(table: &Table<'_>, components: Components) -> Result<Spectrum> {
    let chunk = table.whole();
    let (rows, weight, mean) = center_of(&chunk)?;
    let p = mean.len();
    components.check_possible(rows, p)?;
    let mut centred = chunk.with_wide(|v| centre(v, &mean, chunk.weights())); // (n × p)
    let unit = power_of_two(centred.norm_max());
    centred.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
    let (singular, vectors) = right_singular(centred.as_ref())?;
    let square = unit * unit / weight;
    let eigenvalues: Vec<f64> = singular.iter().map(|s| s * s * square).collect();
    let total_variance: f64 = centred.squared_norm_l2() * square;
    if !total_variance.is_finite() {
        return Err(Error::Scale);
    }
    let q = components.resolve(rows, p, &eigenvalues)?;
    let vectors = vectors.subcols(0, q).to_owned();
    Spectrum::new(RawSpectrum::new(mean, (eigenvalues, vectors), total_variance, (rows, weight)))
}

/// √w (x − m) (n × p).
fn centre(view: MatRef<'_, f64>, mean: &[f64], weights: Option<&[f64]>) -> Mat<f64> {
    let root: Vec<f64> = (0..view.nrows()).map(|i| weights.map_or(1.0, |w| w[i].sqrt())).collect();
    Mat::from_fn(view.nrows(), view.ncols(), |i, j| {
        if root[i] == 0.0 { 0.0 } else { (view[(i, j)] - mean[j]) * root[i] }
    })
}

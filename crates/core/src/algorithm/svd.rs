//! The centred matrix itself decomposed: small variances keep their relative accuracy, at the price of a
//! copy.

use super::Components;
use super::resolution::{ComputedEigenvalues, of_rows};
use crate::data::Table;
use crate::error::{Error, Result};
use crate::evidence::center_of;
use crate::linalg::{Mat, MatRef, negligible, power_of_two, right_singular};
use crate::spectrum::{RawSpectrum, Spectrum};

/// The spectrum of a table, by singular values s of √w(x − m): λ = s²/n.
pub(crate) fn solve(table: &Table<'_>, components: Components) -> Result<Spectrum> {
    let chunk = table.whole();
    let (rows, weight, mean, rest) = center_of(&chunk)?;
    let p = mean.len();
    components.check_possible(rows, p)?;
    let mut centred = chunk.with_wide(|v| centre(v, (&mean, &rest), chunk.weights())); // (n × p)
    let unit = power_of_two(centred.norm_max());
    centred.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
    let (singular, vectors) = right_singular(centred.as_ref())?;
    let square = unit * unit / weight;
    let eigenvalues: Vec<f64> = singular.iter().map(|s| s * s * square).collect();
    let total_variance: f64 = centred.squared_norm_l2() * square;
    if !total_variance.is_finite() {
        return Err(Error::Scale);
    }
    let q = components.resolve(rows, p, &eigenvalues, negligible(rows, p, eigenvalues[0]))?;
    let computed = ComputedEigenvalues { values: &eigenvalues, total: total_variance, rows, features: p };
    let variances = || centred.col_iter().map(|c| c.squared_norm_l2() * square).collect();
    let own_scale = computed.lost_in_rounding(components, q, variances);
    let found = match own_scale {
        true => of_rows(centred.as_ref(), components, (rows, 1.0 / square))?,
        false => (eigenvalues, vectors.subcols(0, q).to_owned()),
    };
    let raw = RawSpectrum::new(mean, found, total_variance, (rows, weight));
    Spectrum::new(RawSpectrum { own_scale, ..raw })
}

/// √w (x − m) (n × p); the mean with what rounding has taken off it.
pub(super) fn centre(
    view: MatRef<'_, f64>,
    (mean, rest): (&[f64], &[f64]),
    weights: Option<&[f64]>,
) -> Mat<f64> {
    let root: Vec<f64> = (0..view.nrows()).map(|i| weights.map_or(1.0, |w| w[i].sqrt())).collect();
    Mat::from_fn(view.nrows(), view.ncols(), |i, j| {
        if root[i] == 0.0 { 0.0 } else { (view[(i, j)] - mean[j] - rest[j]) * root[i] }
    })
}

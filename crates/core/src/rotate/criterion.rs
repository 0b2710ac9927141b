//! What rotations minimise: a smooth function of the pattern, with its gradient.

use super::Method;
use crate::linalg::{Mat, MatRef, column_norm};

/// A criterion for loadings of one shape.
#[derive(Debug, Clone)]
pub(super) enum Criterion {
    /// $\frac{1-\kappa}{4} \sum_i \sum_{j \ne l} \lambda_{ij}^2\lambda_{il}^2
    /// + \frac{\kappa}{4} \sum_j \sum_{i \ne k} \lambda_{ij}^2\lambda_{kj}^2$ \[CF70\].
    CrawfordFerguson(f64),
    /// $\frac14 \sum_{j \ne l} \left( \sum_i \lambda_{ij}^2\lambda_{il}^2
    /// - \frac{\gamma}{p} \sum_i \lambda_{ij}^2 \sum_i \lambda_{il}^2 \right)$ \[JS66\].
    Oblimin(f64),
    /// $\sum_i \left( \prod_j (\lambda_{ij}^2 + \delta_i) \right)^{1/q}$ \[Y97\].
    Geomin(Vec<f64>),
    /// $\sum (\lambda_{ij} - t_{ij})^2$ over the cells where t is not NaN \[B72\].
    Target(Mat<f64>),
}

impl Criterion {
    /// The criterion of a method for rows that have been divided by `rows` (p); `None` for closed forms.
    pub(super) fn of(method: &Method, q: usize, rows: &[f64]) -> Option<Self> {
        let (p, q) = (rows.len() as f64, q as f64);
        Some(match method {
            Method::Varimax => Self::CrawfordFerguson(1.0 / p),
            Method::Quartimax => Self::CrawfordFerguson(0.0),
            Method::Equamax => Self::CrawfordFerguson(q / (2.0 * p)),
            Method::Parsimax => Self::CrawfordFerguson((q - 1.0) / (p + q - 2.0).max(1.0)),
            Method::Oblimin { gamma } => Self::Oblimin(*gamma),
            Method::Geomin { delta, .. } => Self::Geomin(rows.iter().map(|r| delta / r / r).collect()),
            Method::Target { target: t, .. } => {
                Self::Target(Mat::from_fn(t.nrows(), t.ncols(), |i, j| t[(i, j)] / rows[i]))
            }
            Method::Promax { .. } | Method::Procrustes { .. } => return None,
        })
    }

    /// Value and gradient with respect to the pattern (p × q).
    pub(super) fn at(&self, pattern: MatRef<'_, f64>) -> (f64, Mat<f64>) {
        match self {
            Self::CrawfordFerguson(kappa) => crawford_ferguson(pattern, *kappa),
            Self::Oblimin(gamma) => oblimin(pattern, *gamma),
            Self::Geomin(delta) => geomin(pattern, delta),
            Self::Target(target) => distance(pattern, target),
        }
    }

    /// The power of the loadings' unit in which the value is measured.
    pub(super) fn degree(&self) -> i32 {
        match self {
            Self::CrawfordFerguson(_) | Self::Oblimin(_) => 4,
            Self::Geomin(_) | Self::Target(_) => 2,
        }
    }
}

/// Sums of squares of the rows.
fn row_squares(l: MatRef<'_, f64>) -> Vec<f64> {
    (0..l.nrows()).map(|i| (0..l.ncols()).map(|j| l[(i, j)].powi(2)).sum()).collect()
}

/// Sums of squares of the columns.
fn column_squares(l: MatRef<'_, f64>) -> Vec<f64> {
    (0..l.ncols()).map(|j| column_norm(l, j).powi(2)).collect()
}

/// Value ¼ Σ λ²x and gradient λx of a form that is quadratic in the λ², whose derivative by λᵢⱼ² is xᵢⱼ/2.
fn quartic(l: MatRef<'_, f64>, x: impl Fn(usize, usize) -> f64) -> (f64, Mat<f64>) {
    let gradient = Mat::from_fn(l.nrows(), l.ncols(), |i, j| l[(i, j)] * x(i, j));
    let value = (0..l.ncols()).flat_map(|j| (0..l.nrows()).map(move |i| (i, j)));
    (value.map(|ij| l[ij] * gradient[ij]).sum::<f64>() / 4.0, gradient)
}

fn crawford_ferguson(l: MatRef<'_, f64>, kappa: f64) -> (f64, Mat<f64>) {
    let (rows, columns) = (row_squares(l), column_squares(l));
    quartic(l, |i, j| {
        let square = l[(i, j)].powi(2);
        (1.0 - kappa) * (rows[i] - square) + kappa * (columns[j] - square)
    })
}

fn oblimin(l: MatRef<'_, f64>, gamma: f64) -> (f64, Mat<f64>) {
    let (rows, columns) = (row_squares(l), column_squares(l));
    let (all, share) = (columns.iter().sum::<f64>(), gamma / l.nrows() as f64);
    quartic(l, |i, j| rows[i] - l[(i, j)].powi(2) - share * (all - columns[j]))
}

fn geomin(l: MatRef<'_, f64>, delta: &[f64]) -> (f64, Mat<f64>) {
    let q = l.ncols() as f64;
    let mean =
        |i: usize| ((0..l.ncols()).map(|j| (l[(i, j)].powi(2) + delta[i]).ln()).sum::<f64>() / q).exp();
    let means: Vec<f64> = (0..l.nrows()).map(mean).collect();
    let slope = |i: usize, j: usize| 2.0 / q * l[(i, j)] / (l[(i, j)].powi(2) + delta[i]) * means[i];
    (means.iter().sum(), Mat::from_fn(l.nrows(), l.ncols(), slope))
}

fn distance(l: MatRef<'_, f64>, target: &Mat<f64>) -> (f64, Mat<f64>) {
    let off = Mat::from_fn(l.nrows(), l.ncols(), |i, j| match l[(i, j)] - target[(i, j)] {
        free if free.is_nan() => 0.0,
        off => off,
    });
    (off.squared_norm_l2(), 2.0 * off)
}

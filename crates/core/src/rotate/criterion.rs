//! What rotations minimise: a smooth function of the pattern, with its gradient.

use super::Method;
use super::normalise::Normalisation;
use crate::linalg::{Mat, MatRef};

/// A criterion for loadings of one shape.
#[derive(Debug, Clone)]
pub(super) enum Criterion {
    /// $\frac{1-\kappa}{4} \sum_i \sum_{j \ne l} \lambda_{ij}^2\lambda_{il}^2
    /// + \frac{\kappa}{4} \sum_j \sum_{i \ne k} \lambda_{ij}^2\lambda_{kj}^2$ \[CF70\].
    CrawfordFerguson(f64),
    /// $\frac14 \sum_{j \ne l} \left( \sum_i \lambda_{ij}^2\lambda_{il}^2
    /// - \frac{\gamma}{p} \sum_i \lambda_{ij}^2 \sum_i \lambda_{il}^2 \right)$ \[JS66\].
    Oblimin(f64),
    /// $\sum_i \left( \prod_j (\lambda_{ij}^2 + \delta) \right)^{1/q}$ \[Y87\].
    Geomin(f64),
    /// $\sum (\lambda_{ij} - t_{ij})^2$ over the cells where t is not NaN \[B72\].
    Target(Mat<f64>),
}

impl Criterion {
    /// The criterion of a method for loadings of q factors with rows divided like this; `None` for closed
    /// forms.
    pub(super) fn of(method: &Method, q: usize, scales: &Normalisation) -> Option<Self> {
        let (p, q) = (scales.divisors.len() as f64, q as f64);
        Some(match method {
            Method::Varimax => Self::CrawfordFerguson(1.0 / p),
            Method::Quartimax => Self::CrawfordFerguson(0.0),
            Method::Equamax => Self::CrawfordFerguson(q / (2.0 * p)),
            Method::Parsimax => Self::CrawfordFerguson((q - 1.0) / (p + q - 2.0).max(1.0)),
            Method::Oblimin { gamma } => Self::Oblimin(*gamma),
            Method::Geomin { delta, .. } => Self::Geomin(delta / scales.common / scales.common),
            Method::Target { target, .. } => Self::Target(scales.apply(target.as_ref())),
            Method::Promax { .. } | Method::Procrustes { .. } => return None,
        })
    }

    /// Value and gradient with respect to the pattern (p × q).
    pub(super) fn at(&self, pattern: MatRef<'_, f64>) -> (f64, Mat<f64>) {
        match self {
            Self::CrawfordFerguson(kappa) => crawford_ferguson(pattern, *kappa),
            Self::Oblimin(gamma) => oblimin(pattern, *gamma),
            Self::Geomin(delta) => geomin(pattern, *delta),
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
    let mut sums = vec![0.0; l.nrows()];
    for column in l.col_iter() {
        sums.iter_mut().zip(column.iter()).for_each(|(s, x)| *s += x * x);
    }
    sums
}

/// Sums of squares of the columns.
fn column_squares(l: MatRef<'_, f64>) -> Vec<f64> {
    l.col_iter().map(|c| c.squared_norm_l2()).collect()
}

/// Value ¼ Σ λ²x and gradient λx of a form that is quadratic in the λ², with x(i, j, λᵢⱼ²) twice its
/// derivative by λᵢⱼ².
fn quartic(l: MatRef<'_, f64>, x: impl Fn(usize, usize, f64) -> f64) -> (f64, Mat<f64>) {
    let mut value = 0.0;
    let gradient = Mat::from_fn(l.nrows(), l.ncols(), |i, j| {
        let slope = l[(i, j)] * x(i, j, l[(i, j)].powi(2));
        value += l[(i, j)] * slope;
        slope
    });
    (value / 4.0, gradient)
}

fn crawford_ferguson(l: MatRef<'_, f64>, kappa: f64) -> (f64, Mat<f64>) {
    let (rows, columns) = (row_squares(l), column_squares(l));
    quartic(l, |i, j, square| (1.0 - kappa) * (rows[i] - square) + kappa * (columns[j] - square))
}

fn oblimin(l: MatRef<'_, f64>, gamma: f64) -> (f64, Mat<f64>) {
    let (rows, columns) = (row_squares(l), column_squares(l));
    let (all, share) = (columns.iter().sum::<f64>(), gamma / l.nrows() as f64);
    quartic(l, |i, j, square| rows[i] - square - share * (all - columns[j]))
}

fn geomin(l: MatRef<'_, f64>, delta: f64) -> (f64, Mat<f64>) {
    let q = l.ncols() as f64;
    let mut means = vec![0.0; l.nrows()];
    for column in l.col_iter() {
        means.iter_mut().zip(column.iter()).for_each(|(m, x)| *m += (x * x + delta).ln());
    }
    means.iter_mut().for_each(|m| *m = (*m / q).exp());
    let slope = |i: usize, j: usize| 2.0 / q * l[(i, j)] / (l[(i, j)].powi(2) + delta) * means[i];
    (means.iter().sum(), Mat::from_fn(l.nrows(), l.ncols(), slope))
}

fn distance(l: MatRef<'_, f64>, target: &Mat<f64>) -> (f64, Mat<f64>) {
    let off = Mat::from_fn(l.nrows(), l.ncols(), |i, j| match l[(i, j)] - target[(i, j)] {
        free if free.is_nan() => 0.0,
        off => off,
    });
    (off.squared_norm_l2(), 2.0 * off)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central differences of the value.
    fn slopes(criterion: &Criterion, l: &Mat<f64>) -> Mat<f64> {
        const H: f64 = 1e-5;
        Mat::from_fn(l.nrows(), l.ncols(), |i, j| {
            let at = |h: f64| {
                let mut near = l.clone();
                near[(i, j)] += h;
                criterion.at(near.as_ref()).0
            };
            (at(H) - at(-H)) / (2.0 * H)
        })
    }

    #[test]
    fn gradients_are_derivatives() {
        let l = Mat::from_fn(5, 3, |i, j| ((3 * i + 5 * j) as f64).sin());
        let target = Mat::from_fn(5, 3, |i, j| if i == j { f64::NAN } else { 0.1 * i as f64 });
        let methods = [
            Method::Varimax,
            Method::Quartimax,
            Method::Equamax,
            Method::Parsimax,
            Method::Oblimin { gamma: 0.3 },
            Method::quartimin(),
            Method::geomin(),
            Method::Target { target, oblique: true },
        ];
        for method in methods {
            let criterion = Criterion::of(&method, 3, &Normalisation::equal(5, 1.0)).unwrap();
            let (value, gradient) = method.gradient(l.as_ref()).unwrap();
            assert_eq!(value, criterion.at(l.as_ref()).0);
            let off = (&gradient - slopes(&criterion, &l)).norm_max();
            assert!(off < 1e-8, "{method}: {off}");
        }
        assert!(Method::promax().gradient(l.as_ref()).is_none());
    }

    /// Loadings that were divided by a number have the δ that belongs to them.
    #[test]
    fn units_of_rows() {
        let l = Mat::from_fn(4, 2, |i, j| 1.0 + (i + 2 * j) as f64);
        for method in [Method::geomin(), Method::quartimin(), Method::Varimax] {
            let scaled = Criterion::of(&method, 2, &Normalisation::equal(4, 8.0)).unwrap();
            let value = scaled.at((&l * (1.0 / 8.0)).as_ref()).0 * 8f64.powi(scaled.degree());
            let whole = method.gradient(l.as_ref()).unwrap().0;
            assert!((value - whole).abs() < 1e-13 * whole.abs());
        }
    }
}

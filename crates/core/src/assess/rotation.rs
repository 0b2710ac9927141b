//! Standard errors of loadings that this library's rotations made.

use super::identification::{Identification, RowScale};
use super::parameters::FactorModel;
use super::standard_errors::{Precision, standard_errors_after_with, standard_errors_with};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, product, symmetric_eigen};
use crate::rotate::{Method, Rotate};

/// How loadings were rotated.
#[derive(Debug, Clone, Copy)]
pub struct Rotation<'a> {
    /// The criterion, or closed form.
    pub method: &'a Method,
    /// Whether rows had been brought to length 1.
    pub kaiser: bool,
    /// Whether it was standardised loadings, those of the correlation matrix, that were rotated.
    pub standardised: bool,
}

impl Rotation<'_> {
    /// Standard errors of a rotated model from n rows; a uniqueness in `fixed` is treated as known.
    ///
    /// Criteria pin the axes down by their gradients ([`standard_errors`](super::standard_errors())). Closed
    /// forms (promax, Procrustes) are functions of the unrotated loadings and go by the delta method; their
    /// factors are expected in the order of [`Rotate::run`].
    ///
    /// ```
    /// use covary::assess::{FactorModel, Rotation};
    /// use covary::linalg::Mat;
    /// use covary::rotate::{Method, Rotate};
    ///
    /// let a = Mat::from_fn(6, 2, |j, k| if (j < 3) == (k == 0) { 0.7 + 0.05 * j as f64 } else { 0.1 });
    /// let turned = Rotate::new(Method::quartimin()).run(a.as_ref())?;
    /// let psi = [0.4; 6];
    /// let model = FactorModel::new(turned.pattern.as_ref(), Some(turned.correlation.as_ref()), &psi)?;
    /// let rotation = Rotation { method: &Method::quartimin(), kaiser: false, standardised: false };
    /// let precision = rotation.standard_errors(&model, 300.0, &[])?;
    /// assert!(precision.off_axis < 1e-8 && precision.given.correlation[(0, 1)] > 0.0);
    /// # Ok::<(), covary::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`standard_errors`](super::standard_errors()).
    pub fn standard_errors(&self, model: &FactorModel<'_>, rows: f64, fixed: &[usize]) -> Result<Precision> {
        self.standard_errors_with(model, rows, fixed, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`standard_errors`](Self::standard_errors), and [`Error::Interrupted`].
    pub fn standard_errors_with(
        &self,
        model: &FactorModel<'_>,
        rows: f64,
        fixed: &[usize],
        control: &Control<'_>,
    ) -> Result<Precision> {
        if self.method.gradient(model.loadings()).is_none() {
            return self.of_closed_form(model, rows, fixed, control);
        }
        let gradient = |l: MatRef<'_, f64>| match self.method.gradient(l) {
            Some((_, gradient)) => gradient,
            None => Mat::zeros(0, 0),
        };
        let identification = match self.method.is_oblique() {
            true => Identification::Oblique(&gradient, self.row_scale()),
            false => Identification::Orthogonal(&gradient, self.row_scale()),
        };
        standard_errors_with(model, rows, identification, fixed, control)
    }

    fn row_scale(&self) -> RowScale {
        match (self.kaiser, self.standardised) {
            (true, _) => RowScale::Kaiser,
            (false, true) => RowScale::Standardised,
            (false, false) => RowScale::Given,
        }
    }

    fn of_closed_form(
        &self,
        model: &FactorModel<'_>,
        rows: f64,
        fixed: &[usize],
        control: &Control<'_>,
    ) -> Result<Precision> {
        let unrotated = canonical(model)?;
        let first = FactorModel::new(unrotated.as_ref(), None, model.uniquenesses())?;
        let rotate = Rotate::new(self.method.clone()).kaiser(self.kaiser).starts(1);
        let then = |l: MatRef<'_, f64>| rotate.run_with(l, control).map(|r| (r.pattern, r.correlation));
        let axes = Identification::Canonical;
        standard_errors_after_with(&first, rows, axes, fixed, &then, self.standardised, control)
    }
}

/// The loadings of the same covariance for which AᵀΨ⁻¹A is diagonal (p × q).
fn canonical(model: &FactorModel<'_>) -> Result<Mat<f64>> {
    let a = model.unrotated()?;
    let psi = model.uniquenesses();
    let scaled = Mat::from_fn(a.nrows(), a.ncols(), |j, k| a[(j, k)] / psi[j]);
    let eigen = symmetric_eigen(product(a.transpose(), scaled.as_ref()).as_ref())?;
    if eigen.values.iter().any(|v| !v.is_finite()) {
        return Err(Error::Scale);
    }
    Ok(product(a.as_ref(), eigen.vectors.as_ref()))
}

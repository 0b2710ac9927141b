//! Standard errors of fitted factors, however they were turned.

use crate::assess::{FactorModel, Identification, Precision, Rotation, standard_errors_with as unrotated};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::estimator::{Report, RotationReport};
use crate::model::{Factors, Noise};
use crate::rotate::Method;

/// Standard errors of loadings, factor correlations and noise variances of a fit, from the expected
/// information of complete rows.
///
/// Uniquenesses at their bound count as known. They are computed when asked for: the cost grows with (p q)³.
///
/// ```
/// use covary::estimator::standard_errors;
/// use covary::evidence::Moments;
/// use covary::linalg::Mat;
///
/// let r = [[1.0, 0.56, 0.48, 0.4], [0.56, 1.0, 0.42, 0.35], [0.48, 0.42, 1.0, 0.3], [0.4, 0.35, 0.3, 1.0]];
/// let moments = Moments::from_covariance(Mat::from_fn(4, 4, |i, j| r[i][j]).as_ref(), None, 300)?;
/// let fit = covary::FactorAnalysis::new(1).fit_moments(&moments)?;
/// let errors = standard_errors(&fit.model, &fit.report)?;
/// assert!(errors.standardised.loadings[(0, 0)] < 0.06);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// For a fit with missing values, whose information depends on which cells are missing; for equal noise;
/// after a turn towards a target, which a report does not keep; and where the information is singular.
pub fn standard_errors(model: &Factors, report: &Report) -> Result<Precision> {
    standard_errors_with(model, report, &Control::new())
}

/// The same under the eyes of a caller.
///
/// # Errors
/// As [`standard_errors`], and [`Error::Interrupted`].
pub fn standard_errors_with(model: &Factors, report: &Report, control: &Control<'_>) -> Result<Precision> {
    let Noise::Diagonal(noise) = model.gaussian().noise() else { return Err(none_for("equal noise")) };
    if report.holes.is_some() {
        return Err(none_for("a fit with missing values"));
    }
    let factor = report.factor().ok_or_else(|| none_for("a model that is not of a fit of factors"))?;
    let (pattern, correlation) = (model.pattern(), model.correlation());
    let turned = model.turn().is_some().then(|| correlation.as_ref());
    let numbers = FactorModel::new(pattern.as_ref(), turned, noise)?;
    let rows = report.counted_weight();
    match &report.rotation {
        None => unrotated(&numbers, rows, Identification::Canonical, &factor.heywood, control),
        Some(rotation) => {
            let method = rotation.method()?;
            let rotation = Rotation { method: &method, kaiser: rotation.kaiser, standardised: true };
            rotation.standard_errors_with(&numbers, rows, &factor.heywood, control)
        }
    }
}

impl RotationReport {
    /// The method with its parameter.
    ///
    /// # Errors
    /// For a turn towards a target, which is not kept.
    pub fn method(&self) -> Result<Method> {
        let method: Method = self.method.parse().map_err(|_| none_for("a turn towards a target"))?;
        Ok(match (method, self.parameter) {
            (Method::Promax { .. }, Some(power)) => Method::Promax { power },
            (Method::Oblimin { .. }, Some(gamma)) => Method::Oblimin { gamma },
            (Method::Geomin { oblique, .. }, Some(delta)) => Method::Geomin { delta, oblique },
            (other, _) => other,
        })
    }
}

fn none_for(value: &str) -> Error {
    Error::Parameter {
        name: "the fit whose standard errors are asked for",
        value: value.into(),
        allowed: "of complete rows, with a noise variance for each feature, unrotated or rotated by a \
            criterion",
    }
}

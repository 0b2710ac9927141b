//! Factors of a fitted model turned by a rotation of its loadings.

use super::RotationReport;
use crate::control::Control;
use crate::error::Result;
use crate::model::Factors;
use crate::rotate::Rotate;

/// The same model with factors turned so that its loadings are simple: those on the scale of correlations, so
/// that the unit of a feature does not matter. A turn that was there before is replaced: rotations begin at
/// the loadings as they were found.
///
/// ```
/// use covary::estimator::turned;
/// use covary::linalg::Mat;
/// use covary::model::{Factors, LinearGaussian, Noise};
/// use covary::rotate::{Method, Rotate};
///
/// let w = Mat::from_fn(4, 2, |i, j| if (i < 2) == (j == 0) || j == 0 { 0.5 } else { -0.5 });
/// let model = LinearGaussian::new(vec![0.0; 4], w, Noise::Isotropic(0.5))?;
/// let (model, report) = turned(Factors::new(model), &Rotate::new(Method::Varimax))?;
/// assert!(report.converged && model.pattern()[(0, 1)].abs() < 1e-12);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// What [`Rotate::run`] says.
pub fn turned(model: Factors, rotate: &Rotate) -> Result<(Factors, RotationReport)> {
    turned_with(model, rotate, &Control::new())
}

/// The same under the eyes of a caller.
///
/// # Errors
/// As [`turned`], and [`Error::Interrupted`](crate::Error::Interrupted).
pub fn turned_with(
    model: Factors,
    rotate: &Rotate,
    control: &Control<'_>,
) -> Result<(Factors, RotationReport)> {
    let standard = model.standardised(model.gaussian().loadings().as_ref());
    let rotated = rotate.run_with(standard.as_ref(), control)?;
    let report = RotationReport::new(rotate, &rotated);
    Ok((model.with_turn(rotated.turn)?, report))
}

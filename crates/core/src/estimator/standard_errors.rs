//! How sure the numbers of a fit of PPCA are.

use super::{Report, Solver};
use crate::assess::PpcaEstimate;
use crate::error::{Error, Result};
use crate::model::{LinearGaussian, Noise};

/// A fit of PPCA as an estimate: standard errors and intervals of its mean, noise variance, eigenvalues and
/// loadings.
///
/// They follow from the model and the number of rows alone, so that models from files have them as well.
/// With weights the number of rows is their [`counted_weight`](crate::data::counted_weight): the total
/// weight, or the number of rows where weights are shares.
///
/// ```
/// use covary::data::Rows;
/// use covary::estimator::ppca_estimate;
///
/// let cells = [1.0, 2.1, 0.3, 2.0, 3.9, 0.1, 3.0, 6.2, 0.2, 4.0, 7.8, 0.4, 5.0, 9.9, 0.3];
/// let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 3)?)?;
/// let estimate = ppca_estimate(&fit.model, &fit.report)?;
/// let (low, high) = estimate.intervals(0.95)?.mean[0];
/// assert!(low < 3.0 && 3.0 < high && estimate.standard_errors().mean[0] > 0.6);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// For a fit with missing values, whose information depends on which cells are missing; for given numbers;
/// for noise that differs between features; and for too few rows ([`PpcaEstimate::new`]).
pub fn ppca_estimate<'a>(model: &'a LinearGaussian, report: &Report) -> Result<PpcaEstimate<'a>> {
    let Noise::Isotropic(noise) = *model.noise() else {
        return Err(none_for("a noise variance for each feature"));
    };
    if report.holes.is_some() {
        return Err(none_for("a fit with missing values"));
    }
    if report.plan.solver == Solver::Given {
        return Err(none_for("a model of given numbers"));
    }
    PpcaEstimate::new(model.mean(), model.loadings().as_ref(), noise, report.counted_weight())
}

fn none_for(value: &str) -> Error {
    Error::Parameter {
        name: "the fit whose standard errors are asked for",
        value: value.into(),
        allowed: "PPCA of complete rows",
    }
}

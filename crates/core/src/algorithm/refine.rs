//! Small variances measured on the rows themselves, where differences of large ones would be rounding.

use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::evidence::measure;
use crate::spectrum::RawSpectrum;

/// Share of the total below which a difference of eigenvalues has lost digits that matter.
const LITTLE: f64 = 1e-3;

/// Whether too little is left of the total to be known as the difference from the leading eigenvalues.
pub(super) fn cancels(total: f64, leading: &[f64]) -> bool {
    total - leading.iter().sum::<f64>() < LITTLE * total
}

/// Measures the variance along each direction, and what they leave, in one more pass when that is needed;
/// says whether.
pub(super) fn refine(raw: &mut RawSpectrum, source: &dyn RowSource, control: &Control<'_>) -> Result<bool> {
    let q = raw.vectors.ncols();
    if !cancels(raw.total_variance, &raw.eigenvalues[..q]) || control.is_cancelled() {
        return Ok(false);
    }
    let (along, left) = measure(source, &raw.mean, raw.vectors.as_ref(), raw.weight, control)?;
    raw.eigenvalues[..q].copy_from_slice(&along);
    raw.distortion = Some(left);
    Ok(true)
}

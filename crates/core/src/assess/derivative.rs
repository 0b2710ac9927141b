//! Derivatives of vector functions by central differences.

use crate::control::Control;
use crate::error::Result;
use crate::linalg::Mat;

/// Step in units of a parameter's size: the error of the formula is its fourth power, that of rounding 1e-16
/// / step.
const STEP: f64 = 1.0 / 4096.0;

/// ∂f/∂θ at θ, one column for each parameter, by (8(f₊ − f₋) − (f₊₊ − f₋₋))/12h; `sizes` are typical for the
/// parameters.
pub(super) fn jacobian(
    theta: &[f64],
    sizes: &[f64],
    outputs: usize,
    control: &Control<'_>,
    mut f: impl FnMut(&[f64]) -> Result<Vec<f64>>,
) -> Result<Mat<f64>> {
    let mut out = Mat::zeros(outputs, theta.len());
    let mut point = theta.to_vec();
    for (k, (&centre, size)) in theta.iter().zip(sizes).enumerate() {
        control.check()?;
        let step = STEP * size;
        for (steps, weight) in [(1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0)] {
            point[k] = centre + steps * step;
            let values = f(&point)?;
            out.col_as_slice_mut(k)
                .iter_mut()
                .zip(values)
                .for_each(|(o, v)| *o += weight * v / (12.0 * step));
        }
        point[k] = centre;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_functions_known() {
        let f = |x: &[f64]| Ok(vec![x[0].exp() * x[1], (x[0] * x[1]).sin()]);
        let at = [0.3, -1.2];
        let j = jacobian(&at, &[1.0; 2], 2, &Control::new(), f).unwrap();
        let c = (at[0] * at[1]).cos();
        let exact = [[at[0].exp() * at[1], at[0].exp()], [at[1] * c, at[0] * c]];
        for a in 0..2 {
            for b in 0..2 {
                assert!((j[(a, b)] - exact[a][b]).abs() < 1e-11);
            }
        }
    }
}

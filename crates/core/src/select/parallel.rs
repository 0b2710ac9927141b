//! Horn's parallel analysis: components whose variance exceeds that of components of noise \[Horn65\].

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Mat, MatRef, lower_crossproduct, symmetric_eigenvalues};
use crate::parallel;

/// Share of the samples of noise that a component must exceed \[Gl95\].
const QUANTILE: f64 = 0.95;

/// Samples of noise of up to 100 features, and the fewest of more: one in twenty is what the quantile asks
/// for.
const SAMPLES: (f64, f64) = (50.0, 20.0);

/// How many samples of noise do.
///
/// Between samples the largest eigenvalue varies as $p^{-2/3}$ of the width of the spectrum \[Jo01\], so
/// $p^{-4/3}$ times as many tell its quantile as well.
pub(super) fn samples(p: usize) -> usize {
    let (most, fewest) = SAMPLES;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 50")]
    let samples = (most * (p as f64 / 100.0).powf(-4.0 / 3.0)).clamp(fewest, most) as usize;
    samples
}

/// The eigenvalues of correlations (descending) that samples of n rows of uncorrelated normal features exceed
/// in one of twenty cases.
///
/// No rows are drawn: the scatter of n normal rows is LLᵀ with independent entries, χ on the diagonal and
/// normal below (Bartlett's decomposition of the Wishart distribution \[Ba33\]).
pub(super) fn thresholds(
    p: usize,
    rows: usize,
    samples: usize,
    seed: u64,
    control: &Control<'_>,
) -> Result<Vec<f64>> {
    let spectrum = |k: usize| {
        control.check()?;
        noise_spectrum(p, rows, seed, k as u64)
    };
    let spectra = parallel::try_map(samples, spectrum)?;
    Ok((0..p).map(|j| quantile(spectra.iter().map(|s| s[j]).collect())).collect())
}

/// How many leading eigenvalues exceed the thresholds, one after the other.
pub(super) fn dimension(eigenvalues: &[f64], thresholds: &[f64]) -> usize {
    eigenvalues.iter().zip(thresholds).take_while(|(value, threshold)| value > threshold).count()
}

/// The correlations of a covariance (p × p), as much of it as is given; features without variance have none
/// with others.
pub(super) fn correlations(covariance: MatRef<'_, f64>) -> Mat<f64> {
    let roots: Vec<f64> = (0..covariance.nrows()).map(|j| covariance[(j, j)].sqrt()).collect();
    let entry = |i: usize, j: usize| match roots[i] > 0.0 && roots[j] > 0.0 {
        _ if i == j => 1.0,
        true => covariance[(i, j)] / roots[i] / roots[j],
        false => 0.0,
    };
    Mat::from_fn(covariance.nrows(), covariance.ncols(), entry)
}

fn noise_spectrum(p: usize, rows: usize, seed: u64, sample: u64) -> Result<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(sample);
    let factor = noise_factor(p, rows.saturating_sub(1), &mut rng); // the mean takes one degree of freedom
    let mut scatter = Mat::zeros(p, p);
    lower_crossproduct(scatter.as_mut(), factor.transpose(), false);
    symmetric_eigenvalues(correlations(scatter.as_ref()).as_ref())
}

/// L (p × min(p, freedom)) with L Lᵀ distributed as the scatter of so many rows.
fn noise_factor(p: usize, freedom: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut factor = Mat::zeros(p, p.min(freedom));
    for j in 0..factor.ncols() {
        let chi = ChiSquared::new((freedom - j) as f64).map_or(0.0, |d| d.sample(rng));
        factor[(j, j)] = chi.sqrt();
        for i in j + 1..p {
            factor[(i, j)] = StandardNormal.sample(rng);
        }
    }
    factor
}

pub(super) fn quantile(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = QUANTILE * (values.len() - 1) as f64;
    let (below, share) = (place.floor(), place.fract());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
    let below = below as usize;
    values[below] + share * (values[(below + 1).min(values.len() - 1)] - values[below])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    /// Drawn scatters have the mean of the distribution, (n − 1) I, and the largest eigenvalue of noise lies
    /// where theory has it.
    #[test]
    fn noise_is_noise() {
        let (p, rows) = (6, 40);
        let mut mean: Mat<f64> = Mat::zeros(p, p);
        for k in 0..4000 {
            let mut rng = ChaCha8Rng::seed_from_u64(k);
            let factor = noise_factor(p, rows - 1, &mut rng);
            mean += product(factor.as_ref(), factor.transpose());
        }
        for i in 0..p {
            for j in 0..p {
                let expected = if i == j { 39.0 } else { 0.0 };
                // Standard errors: √(2·39/4000) on the diagonal, √(39/4000) beside it.
                assert!((mean[(i, j)] / 4000.0 - expected).abs() < 0.6, "{i} {j}");
            }
        }
        let spectrum = thresholds(100, 1000, 20, 1, &Control::new()).unwrap();
        let edge = (1.0 + (100.0f64 / 999.0).sqrt()).powi(2);
        assert!((spectrum[0] - edge).abs() < 0.1 && spectrum.windows(2).all(|w| w[0] >= w[1]));
    }

    #[test]
    fn more_features_take_fewer_samples() {
        // 50 (p/100)^(-4/3), between 20 and 50.
        assert_eq!([2, 100, 150, 1000].map(samples), [50, 50, 29, 20]);
    }

    #[test]
    fn fewer_rows_than_features_leave_zeros() {
        let spectrum = thresholds(20, 8, 10, 0, &Control::new()).unwrap();
        assert!(spectrum[6] > 0.1 && spectrum[7].abs() < 1e-12);
    }
}

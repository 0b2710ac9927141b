//! The optimal hard threshold for singular values of a low-rank matrix in white noise of unknown level
//! \[GD14\].

use std::f64::consts::PI;

/// Halvings of the interval that holds the median.
const HALVINGS: usize = 60;
/// Intervals of the integral, even.
const INTERVALS: usize = 512;

/// How many of the eigenvalues of a covariance lie above the threshold.
///
/// Singular values √(n λ) of the centred n × p matrix are kept when they exceed ω(β) times their median, β =
/// min(n, p)/max(n, p).
pub(super) fn dimension(eigenvalues: &[f64], n: f64) -> usize {
    let p = eigenvalues.len() as f64;
    let positions = eigenvalues.iter().zip(1u32..).take_while(|(_, k)| f64::from(*k) <= n);
    let values: Vec<f64> = positions.map(|(v, _)| *v).collect(); // as many as the matrix has singular values
    let Some(middle) = median(&values) else { return 0 };
    let factor = omega(n.min(p) / n.max(p));
    values.iter().take_while(|v| v.sqrt() > factor * middle.sqrt()).count()
}

/// Of values in descending order; `None` of none.
fn median(values: &[f64]) -> Option<f64> {
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(0.5 * (low + high))
}

/// ω(β) = λ(β)/√μ: the threshold for noise of known level over the root of the median of the Marchenko–Pastur
/// law.
fn omega(beta: f64) -> f64 {
    let known = 2.0 * (beta + 1.0) + 8.0 * beta / (beta + 1.0 + (beta * beta + 14.0 * beta + 1.0).sqrt());
    (known / marchenko_pastur_median(beta)).sqrt()
}

/// Where the distribution of the eigenvalues of a sample covariance of white noise of unit variance reaches
/// one half.
fn marchenko_pastur_median(beta: f64) -> f64 {
    let (mut low, mut high) = ((1.0 - beta.sqrt()).powi(2), (1.0 + beta.sqrt()).powi(2));
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if below(beta, middle) < 0.5 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The share of eigenvalues below x, by Simpson's rule in the angle that makes the density smooth.
fn below(beta: f64, x: f64) -> f64 {
    let (center, radius) = (1.0 + beta, 2.0 * beta.sqrt());
    let end = ((center - x) / radius).clamp(-1.0, 1.0).acos(); // x = center − radius cos t
    // √((b − x)(x − a)) dx = radius² sin² t dt, over 2π β x; at β = 1 the density grows without limit at t =
    // 0, this does not.
    let density = |t: f64| {
        let x = center - radius * t.cos();
        if x <= 0.0 {
            2.0 * radius / (2.0 * PI * beta)
        } else {
            (radius * t.sin()).powi(2) / (2.0 * PI * beta * x)
        }
    };
    let h = end / INTERVALS as f64;
    let weight = |k: usize| {
        if k == 0 || k == INTERVALS {
            1.0
        } else if k % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=INTERVALS).map(|k| weight(k) * density(k as f64 * h)).sum::<f64>() * h / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_of_the_paper() {
        // [GD14]: 2.858 for square matrices, and 0.56β³ − 0.95β² + 1.82β + 1.43 to within 0.02 for all
        // others.
        assert!((omega(1.0) - 2.858).abs() < 5e-4, "{}", omega(1.0));
        for k in 1..=20 {
            let b = f64::from(k) / 20.0;
            let approximate = 0.56 * b.powi(3) - 0.95 * b * b + 1.82 * b + 1.43;
            assert!((omega(b) - approximate).abs() < 0.02, "{b}: {} {approximate}", omega(b));
        }
    }

    #[test]
    fn the_law_has_mass_one() {
        for beta in [0.05, 0.3, 1.0] {
            let b: f64 = beta;
            assert!((below(b, (1.0 + b.sqrt()).powi(2)) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn less_than_one_row_keeps_nothing() {
        assert_eq!(dimension(&[3.0, 1.0], 0.5), 0);
    }

    #[test]
    fn strong_values_are_kept() {
        assert_eq!(dimension(&[100.0, 50.0, 1.1, 1.0, 0.95, 0.9, 0.85], 100.0), 2);
    }
}

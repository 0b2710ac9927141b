//! The noncentral χ² distribution, which the interval of the RMSEA inverts.

use statrs::function::gamma::{checked_gamma_lr, ln_gamma};

/// A sum of probabilities is complete to rounding once what is left weighs less than this.
const NEGLIGIBLE: f64 = 1e-18;

/// Pr(X ≤ x) for X noncentral χ² with `dof` degrees of freedom and noncentrality λ.
///
/// A Poisson mixture of central distributions, $\sum_j e^{-\lambda/2} (\lambda/2)^j / j!\; P(k/2 + j, x/2)$, summed outward from its
/// heaviest weight by the recurrence $P(a, x) = P(a + 1, x) + x^a e^{-x} / \Gamma(a + 1)$ \[JKB95, ch. 29\]; absolute error about 1e-14.
pub(super) fn noncentral_chi2_cdf(x: f64, dof: f64, noncentrality: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (x, shape, mean) = (x / 2.0, dof / 2.0, noncentrality / 2.0);
    let middle = mean.floor();
    let weight = log_poisson(middle, mean).exp();
    let central = checked_gamma_lr(shape + middle, x).unwrap_or(f64::NAN);
    // x^a e^{-x} / Γ(a + 1) at a = shape + middle: P(a, x) − P(a + 1, x).
    let drop = log_poisson(shape + middle, x).exp();

    let (mut sum, mut w, mut p, mut d, mut j) = (weight * central, weight, central, drop, middle);
    while j > 0.0 && w > NEGLIGIBLE {
        w *= j / mean;
        d *= (shape + j) / x;
        p += d;
        j -= 1.0;
        sum += w * p;
    }
    (w, p, d, j) = (weight, central, drop, middle);
    while w > NEGLIGIBLE && p > 0.0 {
        j += 1.0;
        w *= mean / j;
        p -= d;
        d *= x / (shape + j);
        sum += w * p.max(0.0);
    }
    sum.clamp(0.0, 1.0)
}

/// log of e^{-m} mᵏ / Γ(k + 1), for any k ≥ 0.
fn log_poisson(k: f64, m: f64) -> f64 {
    let power = if k == 0.0 { 0.0 } else { k * m.ln() };
    power - m - ln_gamma(k + 1.0)
}

/// The λ at which Pr(X ≤ x) equals `probability`; 0 when already the central distribution has no more below x.
pub(super) fn noncentrality(x: f64, dof: f64, probability: f64) -> f64 {
    let above = |lambda: f64| noncentral_chi2_cdf(x, dof, lambda) > probability;
    if !above(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, (x - dof).max(1.0));
    while above(high) {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > 1e-13 * high {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_r() {
        let json: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/suite/tools/assess.json")).unwrap();
        let column =
            |name: &str| serde_json::from_value::<Vec<f64>>(json["noncentral"][name].clone()).unwrap();
        let (x, dof, ncp, p) = (column("x"), column("df"), column("ncp"), column("p"));
        for i in 0..x.len() {
            let ours = noncentral_chi2_cdf(x[i], dof[i], ncp[i]);
            // R stops its own sum at 1e-12.
            assert!((ours - p[i]).abs() < 2e-12, "{} {} {}: {ours} and {}", x[i], dof[i], ncp[i], p[i]);
        }
    }

    #[test]
    fn one_degree_is_a_shifted_normal() {
        // X = (Z + √λ)², so Pr(X ≤ x) = Φ(√x − √λ) − Φ(−√x − √λ).
        let normal = |z: f64| 0.5 * statrs::function::erf::erfc(-z / 2f64.sqrt());
        for (x, lambda) in [(0.01, 0.5), (3.0, 2.0), (50.0, 40.0), (1e4, 9.9e3), (1e6, 1.001e6)] {
            let (x, lambda): (f64, f64) = (x, lambda);
            let exact = normal(x.sqrt() - lambda.sqrt()) - normal(-x.sqrt() - lambda.sqrt());
            let ours = noncentral_chi2_cdf(x, 1.0, lambda);
            assert!((ours - exact).abs() < 1e-9, "{x} {lambda}: {ours} and {exact}");
        }
    }

    #[test]
    fn inverted_is_inverted() {
        for (x, dof) in [(30.0, 12.0), (226.68, 186.0), (1e6, 50.0)] {
            for probability in [0.05, 0.95] {
                let lambda = noncentrality(x, dof, probability);
                assert!((noncentral_chi2_cdf(x, dof, lambda) - probability).abs() < 1e-9, "{x} {dof}");
            }
        }
        assert_eq!(noncentrality(3.0, 12.0, 0.95), 0.0);
        assert_eq!(noncentrality(0.0, 12.0, 0.05), 0.0);
    }
}

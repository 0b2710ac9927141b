//! The noncentral χ² distribution, which the interval of the RMSEA inverts.

use std::f64::consts::TAU;

use statrs::function::gamma::{checked_gamma_lr, ln_gamma};

use super::adequacy::upper_tail;

/// A sum of probabilities is complete to rounding once what is left weighs less than this.
const NEGLIGIBLE: f64 = 1e-18;
/// From this k + λ on Edgeworth's series is exact to 2e-13, while the mixture takes √λ terms and loses
/// digits.
const MANY: f64 = 1e5;
/// Beyond so many standard deviations a normal tail is 0 in double precision.
const FAR: f64 = 38.0;

/// Pr(X ≤ x) for X noncentral χ² with `dof` = k degrees of freedom and noncentrality λ, at a cost that has
/// a bound for any λ.
pub(super) fn noncentral_chi2_cdf(x: f64, dof: f64, noncentrality: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if dof + noncentrality < MANY {
        poisson_mixture(x, dof, noncentrality)
    } else {
        edgeworth(x, dof, noncentrality)
    }
}

/// Edgeworth's series to order (k + λ)⁻² \[BC89\] from the cumulants
/// $\kappa_r = 2^{r-1} (r-1)! (k + r\lambda)$.
///
/// With k + λ ≥ 1e5 the absolute error is at most 2e-13 (measured against arithmetic of 60 digits), and
/// 1e-15 from 1e6 on.
fn edgeworth(x: f64, dof: f64, noncentrality: f64) -> f64 {
    let half = dof + 2.0 * noncentrality; // κ₂/2
    let deviation = (2.0 * half).sqrt();
    let z = ((x - noncentrality) - dof) / deviation; // in this order: x and λ may be large and close
    if z.abs() > FAR {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    // κᵣ/κ₂^(r/2) for r = 3 … 6.
    let excess = |r: f64, factor: f64| factor * ((dof + r * noncentrality) / half);
    let r3 = excess(3.0, 4.0) / deviation;
    let r4 = excess(4.0, 24.0) / deviation.powi(2);
    let r5 = excess(5.0, 192.0) / deviation.powi(3);
    let r6 = excess(6.0, 1920.0) / deviation.powi(4);
    // What stands before Hermite's polynomials He₀, He₁, …
    let coefficients = [
        0.0,
        0.0,
        r3 / 6.0,
        r4 / 24.0,
        r5 / 120.0,
        r3 * r3 / 72.0 + r6 / 720.0,
        r3 * r4 / 144.0,
        r4 * r4 / 1152.0 + r3 * r5 / 720.0,
        r3.powi(3) / 1296.0,
        r3 * r3 * r4 / 1728.0,
        0.0,
        r3.powi(4) / 31104.0,
    ];
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    (normal_cdf(z) - density * hermite_sum(&coefficients, z)).clamp(0.0, 1.0)
}

/// Φ(z): z² is χ² with one degree of freedom.
fn normal_cdf(z: f64) -> f64 {
    let tail = 0.5 * upper_tail(z * z, 1.0).unwrap_or(f64::NAN);
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Σ cₙHeₙ(z), by Heₙ₊₁ = z Heₙ − n Heₙ₋₁.
fn hermite_sum(coefficients: &[f64], z: f64) -> f64 {
    let (mut sum, mut before, mut he) = (0.0, 0.0, 1.0);
    for (n, c) in coefficients.iter().enumerate() {
        sum += c * he;
        (before, he) = (he, z * he - n as f64 * before);
    }
    sum
}

/// A Poisson mixture of central distributions, $\sum_j e^{-\lambda/2} (\lambda/2)^j / j!\; P(k/2 + j, x/2)$,
/// summed outward from its heaviest weight by the recurrence
/// $P(a, x) = P(a + 1, x) + x^a e^{-x} / \Gamma(a + 1)$ \[JKB95, ch. 29\]; absolute error about 1e-14 for
/// small λ and 1e-10 for λ = 1e5.
fn poisson_mixture(x: f64, dof: f64, noncentrality: f64) -> f64 {
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

/// The λ at which Pr(X ≤ x) equals `probability`; 0 when already the central distribution has no more below
/// x.
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
        for (x, lambda) in [(0.01, 0.5), (3.0, 2.0), (50.0, 40.0), (1e4, 9.9e3), (1e6, 1.001e6)] {
            let (x, lambda): (f64, f64) = (x, lambda);
            let exact = normal_cdf(x.sqrt() - lambda.sqrt()) - normal_cdf(-x.sqrt() - lambda.sqrt());
            let ours = noncentral_chi2_cdf(x, 1.0, lambda);
            assert!((ours - exact).abs() < 1e-9, "{x} {lambda}: {ours} and {exact}");
        }
    }

    #[test]
    fn huge_noncentrality_has_an_answer() {
        // mpmath 1.4.1 with 60 digits: the shifted normal of one degree and, two degrees at a time, the
        // recurrence of Marcum's Q function; even numbers of degrees by ncx2.cdf of scipy 1.17.1.
        let table = [
            (99_500.0, 3.0, 1e5, 0.213_386_349_847_515_3),
            (100_700.0, 15.0, 1e5, 0.860_544_656_902_276_8),
            (100_300.0, 1000.0, 1e5, 0.134_712_179_259_199_1),
            (1_001_000.0, 1.0, 1e6, 0.691_418_473_724_712_3),
            (999_000.0, 27.0, 1e6, 0.303_930_782_478_035_2),
            (1e6, 495_000.0, 5e5, 0.998_060_261_292_092_8),
            (1e9 + 1e5, 5.0, 1e9, 0.943_065_103_493_342),
            (1e12 - 3e6, 35.0, 1e12, 0.066_804_853_792_478_01),
            (1e15 + 5e7, 9.0, 1e15, 0.785_402_309_976_242_6),
            (1e18, 3.0, 999_999_998e9, 0.841_344_745_947_557_6),
        ];
        for (x, dof, lambda, expected) in table {
            let ours = noncentral_chi2_cdf(x, dof, lambda);
            assert!((ours - expected).abs() < 1e-12, "{x} {dof} {lambda}: {ours} and {expected}");
        }
        assert_eq!([1e300, 1e100, 1e6].map(|x| noncentral_chi2_cdf(x, 5.0, 1e12)), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn the_two_ways_agree_where_they_meet() {
        for (dof, lambda) in [(2.0, 99_998.0), (500.0, 1e5), (9e4, 1e4)] {
            for z in [-6.0, -2.0, -0.5, 0.0, 1.0, 3.0, 7.0] {
                let x = dof + lambda + z * f64::sqrt(2.0 * (dof + 2.0 * lambda));
                let (a, b) = (poisson_mixture(x, dof, lambda), edgeworth(x, dof, lambda));
                assert!((a - b).abs() < 1e-9, "{dof} {lambda} {z}: {a} and {b}");
            }
        }
    }

    #[test]
    fn huge_statistics_are_inverted() {
        // The root of the same function of mpmath.
        let table = [
            (1e6, 51.0, [996_663.039_425_373_7, 1_003_242.371_689_961]),
            (1e12, 35.0, [999_996_710_261.451_7, 1_000_003_289_675.959_4]),
            (1e15, 9.0, [999_999_895_970_317.1, 1_000_000_104_029_672.2]),
            (4.5e17, 5.0, [449_999_997_793_197_285.0, 450_000_002_206_802_712.0]),
        ];
        for (x, dof, expected) in table {
            for (probability, expected) in [0.95, 0.05].into_iter().zip(expected) {
                let ours = noncentrality(x, dof, probability);
                assert!((ours / expected - 1.0).abs() < 1e-12, "{x} {dof}: {ours} and {expected}");
            }
        }
        assert!(noncentrality(f64::MAX, 5.0, 0.05) > 0.0);
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

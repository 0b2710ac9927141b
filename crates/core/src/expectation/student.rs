//! Student's t in place of the normal: weights, densities and the slope in ν, accurate up to ν = ∞.
//!
//! A row with k observed cells and squared Mahalanobis distance δ has $x \mid u \sim N(\mu, C/u)$ with
//! $u \sim \Gamma(\nu/2, \nu/2)$, so x is multivariate t. Given x, $u \sim \Gamma((\nu+k)/2, (\nu+\delta)/2)$,
//! whose mean $(\nu + k)/(\nu + \delta)$ is the weight of the row in a fit \[LLT89\].

use serde::{Deserialize, Serialize};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::{gamma_ur, ln_gamma};

use crate::error::{Error, Result};

/// From here on the asymptotic series of ln Γ and its derivatives are exact to rounding.
const SERIES: f64 = 12.0;
/// Slopes in 1/ν hardly change from here to ν = ∞, and are free of rounding up to here.
const LARGEST_SLOPE: f64 = 1e7;
/// Above this ν the tail of F is that of χ² with one correction; the error of either way is 1e-8 here.
const LARGEST_F: f64 = 3e6;

/// Degrees of freedom ν > 0; infinite for the normal distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Student(f64);

/// Derivatives of a row's log density in τ = 1/ν, which is 0 for the normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InverseSlope {
    /// The first.
    pub(crate) first: f64,
    /// The second.
    pub(crate) second: f64,
}

impl Student {
    /// The normal distribution.
    pub(crate) const NORMAL: Self = Self(f64::INFINITY);

    /// Of so many degrees of freedom.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless ν is above 0.
    pub(crate) fn new(dof: f64) -> Result<Self> {
        if dof > 0.0 {
            return Ok(Self(dof));
        }
        let (name, value) = ("the degrees of freedom (nu)", dof.to_string());
        Err(Error::Parameter { name, value, allowed: "above 0; inf for the normal distribution" })
    }

    /// ν.
    pub(crate) fn dof(self) -> f64 {
        self.0
    }

    /// u = (ν + k)/(ν + δ).
    pub(crate) fn weight(self, cells: usize, distance: f64) -> f64 {
        if self.0.is_infinite() { 1.0 } else { (self.0 + cells as f64) / (self.0 + distance) }
    }

    /// (ν + δ)/(ν + k − 2): what covariances given the row are multiplied by; infinite where they do not
    /// exist.
    pub(crate) fn spread(self, cells: usize, distance: f64) -> f64 {
        let left = self.0 + cells as f64 - 2.0;
        match (self.0.is_infinite(), left > 0.0) {
            (true, _) => 1.0,
            (false, true) => (self.0 + distance) / left,
            (false, false) => f64::INFINITY,
        }
    }

    /// ln of the density at distance δ relative to that of the normal of the same C at its centre:
    /// $\ln\Gamma(\frac{\nu+k}2) - \ln\Gamma(\frac\nu2) - \frac k2 \ln\frac\nu2 - \frac{\nu+k}2 \ln(1 +
    /// \frac\delta\nu)$.
    pub(crate) fn relative_log_density(self, cells: usize, distance: f64) -> f64 {
        if cells == 0 {
            return 0.0;
        }
        if self.0.is_infinite() {
            return -0.5 * distance;
        }
        let (a, h) = (0.5 * self.0, 0.5 * cells as f64);
        log_gamma_step(a, h) - (a + h) * (distance / self.0).ln_1p()
    }

    /// P(δ or more) for a row of k cells: δ/k has the F distribution with k and ν degrees of freedom.
    pub(crate) fn upper_tail(self, cells: usize, distance: f64) -> f64 {
        if cells == 0 {
            return 1.0;
        }
        if distance.is_infinite() {
            return 0.0;
        }
        let (a, h) = (0.5 * self.0, 0.5 * cells as f64);
        if self.0 <= LARGEST_F {
            return beta_reg(a, h, self.0 / (self.0 + distance));
        }
        // χ² and the first correction in 1/ν, (δ(δ − k + 2)/2ν).
        if distance <= 0.0 {
            return 1.0;
        }
        let x = 0.5 * distance;
        let density = ((h - 1.0) * x.ln() - x - ln_gamma(h)).exp() * 0.5;
        let correction = distance * (distance - cells as f64 + 2.0) / (2.0 * self.0);
        (gamma_ur(h, x) + density * correction).clamp(0.0, 1.0)
    }

    /// ln u − E ln u of a row, which does not depend on δ: ln x − ψ(x) at x = (ν + k)/2.
    pub(crate) fn log_bias(self, cells: usize) -> f64 {
        if self.0.is_infinite() { 0.0 } else { log_minus_digamma(0.5 * (self.0 + cells as f64)) }
    }

    /// Derivatives of the log density in τ = 1/ν.
    ///
    /// By Fisher's identity $\partial\ell/\partial\nu = \frac12 B$ with $B = \ln u + 1 - u + c(\frac\nu2) -
    /// c(\frac{\nu+k}2)$ and $c(x) = \ln x - \psi(x)$. Each part is small where ν is large and computed as
    /// such; then $\partial\ell/\partial\tau = -\frac12\nu^2 B$ and $\partial^2\ell/\partial\tau^2 =
    /// \frac12\nu^3 (2B + \nu B')$.
    pub(crate) fn slope(self, cells: usize, distance: f64) -> InverseSlope {
        if cells == 0 {
            return InverseSlope { first: 0.0, second: 0.0 };
        }
        let nu = self.0.min(LARGEST_SLOPE);
        let k = cells as f64;
        // Of a row at an infinite distance the slope is that of a very far one.
        let distance = distance.min(1e300);
        let v = (distance - k) / (nu + distance); // 1 − u
        let (gap, slope) = digamma_gap(0.5 * nu, 0.5 * k);
        let b = log_1m_plus(v) + gap;
        let b_slope = v * v / (nu + k) + 0.5 * slope;
        InverseSlope { first: -0.5 * nu * nu * b, second: 0.5 * nu.powi(3) * (2.0 * b + nu * b_slope) }
    }

    /// The ν that maximises the expected log-likelihood of the u: the root of $c(\frac\nu2) = r$, where r is
    /// the mean of c((ν₀ + k)/2) − ln u, and ln of the mean of u.
    pub(crate) fn of_mean_log_bias(r: f64) -> Self {
        if r <= 0.0 {
            return Self(f64::INFINITY);
        }
        // c lies between 1/2x and 1/x; Newton's steps in ln x, on which ln c is nearly linear.
        let mut x = 0.5 / r;
        for _ in 0..50 {
            let c = log_minus_digamma(x);
            let step = (c / r).ln() * c / (-x * log_minus_digamma_slope(x));
            x *= step.clamp(-2.0, 2.0).exp();
            if step.abs() < 1e-14 {
                break;
            }
        }
        Self(2.0 * x)
    }
}

/// ln(1 − v) + v, without cancellation for small v < 1.
fn log_1m_plus(v: f64) -> f64 {
    if v.abs() > 0.05 {
        return (-v).ln_1p() + v;
    }
    let mut sum = 0.0;
    for n in (2..=14).rev() {
        sum = sum * v - 1.0 / f64::from(n);
    }
    sum * v * v
}

/// ln Γ(a + h) − ln Γ(a) − h ln a; near h(h − 1)/2a for large a.
fn log_gamma_step(a: f64, h: f64) -> f64 {
    if a < SERIES {
        return ln_gamma(a + h) - ln_gamma(a) - h * a.ln();
    }
    (a + h - 0.5) * (h / a).ln_1p() - h + stirling(a + h) - stirling(a)
}

/// ln Γ(x) − (x − ½) ln x + x − ½ ln 2π, for large x.
fn stirling(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    let terms = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    terms.iter().rev().fold(0.0, |sum, t| sum * y + t) / x
}

/// c(a) − c(a + h) and its derivative in a, where c(x) = ln x − ψ(x) = 1/2x + …: the first term of the
/// difference is taken by itself, because it is small beside either.
fn digamma_gap(a: f64, h: f64) -> (f64, f64) {
    let b = a + h;
    let (value, slope) = (h / (2.0 * a * b), -0.5 * h * (a + b) / (a * a * b * b));
    let rest = |x: f64| log_minus_digamma_rest(x);
    let ((ra, sa), (rb, sb)) = (rest(a), rest(b));
    (value + ra - rb, slope + sa - sb)
}

/// c(x) = ln x − ψ(x).
pub(crate) fn log_minus_digamma(x: f64) -> f64 {
    0.5 / x + log_minus_digamma_rest(x).0
}

/// c'(x) = 1/x − ψ'(x).
fn log_minus_digamma_slope(x: f64) -> f64 {
    -0.5 / (x * x) + log_minus_digamma_rest(x).1
}

/// c(x) − 1/2x and its derivative: the series at y ≥ 12, to which ψ(x) = ψ(x + 1) − 1/x leads.
fn log_minus_digamma_rest(x: f64) -> (f64, f64) {
    let steps = (SERIES - x).ceil().max(0.0);
    let y = x + steps;
    let s = 1.0 / (y * y);
    let terms = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0];
    let value = terms.iter().rev().fold(0.0, |sum, t| sum * s + t) * s;
    let powers = terms.iter().enumerate().rev();
    let slope = powers.fold(0.0, |sum, (i, t)| sum * s - 2.0 * (i + 1) as f64 * t) * s / y;
    if steps == 0.0 {
        return (value, slope);
    }
    let (mut sum, mut squares, mut at) = (0.0, 0.0, x);
    while at < y - 0.5 {
        sum += 1.0 / at;
        squares += 1.0 / (at * at);
        at += 1.0;
    }
    let value = (x / y).ln() + 0.5 / y + value + sum - 0.5 / x;
    let slope = 1.0 / x - 1.0 / y - 0.5 * s + slope - squares + 0.5 / (x * x);
    (value, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{a} {b}");
    }

    /// ψ(1) = −γ, ψ(½) = −γ − 2 ln 2, ψ'(1) = π²/6, ψ'(½) = π²/2.
    #[test]
    fn digamma_at_known_points() {
        let gamma = 0.577_215_664_901_532_9;
        near(log_minus_digamma(1.0), gamma, 1e-14);
        near(log_minus_digamma(0.5), 0.5f64.ln() + gamma + 4f64.ln(), 1e-14);
        let pi2 = std::f64::consts::PI.powi(2);
        near(log_minus_digamma_slope(1.0), 1.0 - pi2 / 6.0, 1e-13);
        near(log_minus_digamma_slope(0.5), 2.0 - pi2 / 2.0, 1e-13);
        // On both sides of where the series begins.
        near(log_minus_digamma(SERIES - 1e-9), log_minus_digamma(SERIES), 1e-9);
        near(log_gamma_step(SERIES - 1e-9, 3.5), log_gamma_step(SERIES, 3.5), 1e-9);
    }

    /// Γ(a + 1) = aΓ(a), so the step of h = 2 is ln(1 + 1/a) at any a.
    #[test]
    fn steps_of_the_gamma_function() {
        for a in [0.3, 2.0, 11.9, 12.1, 1e4, 1e10] {
            near(log_gamma_step(a, 2.0), (1.0 / a).ln_1p(), if a < 1e4 { 1e-12 } else { 1e-15 * a });
        }
    }

    #[test]
    fn slopes_are_those_of_the_density() {
        let density = |tau: f64, k: usize, d: f64| Student(1.0 / tau).relative_log_density(k, d);
        for (nu, k, d) in [(1.0, 3, 9.0), (4.0, 1, 0.2), (4.0, 10, 400.0), (30.0, 5, 5.0), (200.0, 8, 30.0)] {
            let (tau, h): (f64, f64) = (1.0 / nu, 1e-4 / nu);
            let at = |i: f64| density(tau + i * h, k, d);
            let first = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
            let second =
                (16.0 * (at(1.0) + at(-1.0)) - (at(2.0) + at(-2.0)) - 30.0 * at(0.0)) / (12.0 * h * h);
            let found = Student(nu).slope(k, d);
            assert!(
                (found.first - first).abs() < 1e-7 * (1.0 + first.abs()),
                "{nu}: {} {first}",
                found.first
            );
            assert!(
                (found.second - second).abs() < 1e-4 * (1.0 + second.abs()),
                "{nu}: {} {second}",
                found.second
            );
        }
    }

    /// Towards the normal: ((δ − k)² − 2k)/4, and the density itself.
    #[test]
    fn the_limit_is_the_normal_distribution() {
        for (k, d) in [(1usize, 0.3), (5, 11.0), (40, 35.0)] {
            let limit = ((d - k as f64).powi(2) - 2.0 * k as f64) / 4.0;
            for nu in [1e7, 1e12, f64::INFINITY] {
                let student = Student(nu);
                assert!((student.slope(k, d).first - limit).abs() < 1e-3, "{nu}");
                let gap = student.relative_log_density(k, d) + 0.5 * d;
                assert!((gap - limit / nu).abs() < 1e-10, "{nu}: {gap}");
            }
        }
        assert_eq!(Student(f64::INFINITY).spread(3, 100.0), 1.0);
        assert_eq!(Student(2.0).spread(0, 0.0), f64::INFINITY);
    }

    #[test]
    fn tails_of_f() {
        // k = 2 has the closed form (1 + δ/ν)^(−ν/2).
        for nu in [0.5, 3.0, 50.0, 9e4, 2e5, 1e6, 1e9] {
            for d in [0.1f64, 2.0, 9.0, 30.0] {
                let exact = (-0.5 * nu * (d / nu).ln_1p()).exp();
                near(Student(nu).upper_tail(2, d), exact, 1e-7);
            }
        }
        assert_eq!(Student(4.0).upper_tail(0, 0.0), 1.0);
        assert_eq!(Student(4.0).upper_tail(3, f64::INFINITY), 0.0);
    }

    #[test]
    fn the_root_of_the_mean_bias() {
        for nu in [0.1, 1.0, 4.0, 77.0, 1e5] {
            near(Student::of_mean_log_bias(log_minus_digamma(0.5 * nu)).dof(), nu, 1e-11);
        }
        assert!(Student::of_mean_log_bias(0.0).dof().is_infinite());
    }
}

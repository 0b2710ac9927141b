//! Bayesian PCA of complete rows: which components of a spectrum the data support, in closed form when μ has
//! a flat prior.
//!
//! The eigenvectors of the covariance are the directions of W in every fixed point of ARD and of variational
//! Bayes, so each component is a number and only σ² couples them. With n rows, p features, an eigenvalue λ,
//! and $v = \sigma^2$:
//!
//! - variational Bayes: $E = \mathrm E\lVert w \rVert^2$ is the larger root of
//!   $n E^2 - (n\lambda - (n + p) v) E + p v^2 = 0$, which exists when $\lambda \ge v (1 + \sqrt{p/n})^2$
//!   \[NSBT13\]; with $x = E / v$ the bound is
//!   $\tfrac12 \left[ n (x - \ln(1 + x)) - p \ln(1 + n x / p) \right]$ higher than without the component, and
//!   $(n - 1) p v = n \left( \sum \lambda - \sum E \right)$;
//! - ARD: $u = \lVert w \rVert^2$ is the larger root of
//!   $(n + p) u^2 - (n (\lambda - v) - 2 p v) u + p v^2 = 0$, where the slopes of the likelihood and of the
//!   prior at its best α cancel, and $(p - q) v = \sum_{i > q} \lambda_i + v^2 \sum_{i \le q} p / (n u_i)$.

use std::f64::consts::TAU;

use statrs::function::gamma::ln_gamma;

use super::optimise::fixed_point;
use crate::linalg::power_of_two;

/// The eigenvalues of the covariance of complete rows, and the size of the sample.
pub(crate) struct SampleSpectrum<'a> {
    /// The leading eigenvalues, descending, at most p.
    pub(crate) values: &'a [f64],
    /// What the values leave of the trace of the covariance.
    pub(crate) left: f64,
    /// Number of rows, n.
    pub(crate) n: f64,
    /// Number of features, p.
    pub(crate) p: f64,
    /// Variance below which there is none.
    pub(crate) negligible: f64,
}

/// The components that the rows support.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Supported {
    /// ‖E w‖² of each.
    pub(crate) lengths: Vec<f64>,
    /// Variance of each entry of a column; 0 where W is a point.
    pub(crate) variances: Vec<f64>,
    /// σ²; 0 when the rows lie in the plane of the components.
    pub(crate) noise: f64,
    /// The bound on the log evidence, or the logarithm of the posterior density; infinite without noise.
    pub(crate) objective: f64,
}

impl SampleSpectrum<'_> {
    /// The components that the rows support, W averaged over or most probable, in units in which no square
    /// leaves its range.
    pub(crate) fn supported(&self, averaged: bool) -> Supported {
        let unit = power_of_two(self.rest(0) / self.p); // of variances
        let values: Vec<f64> = self.values.iter().map(|l| l / unit).collect();
        let (left, negligible) = (self.left / unit, self.negligible / unit);
        let scaled = SampleSpectrum { values: &values, left, negligible, ..*self };
        let found = if averaged { scaled.averaged() } else { scaled.most_probable() };
        let times = |numbers: Vec<f64>| numbers.into_iter().map(|x| x * unit).collect();
        // μ is integrated out, so the rows count one less; a density of W has its own unit.
        let volume = if averaged { -self.p } else { self.p * found.lengths.len() as f64 };
        Supported {
            objective: found.objective - 0.5 * (self.n * self.p + volume) * unit.ln(),
            lengths: times(found.lengths),
            variances: times(found.variances),
            noise: found.noise * unit,
        }
    }

    /// By variational Bayes: of all numbers of leading components the one with the highest bound.
    fn averaged(&self) -> Supported {
        // As the noise vanishes the bound goes as −((n − 1) p − (n + p) q)/2 · ln v: up only in a plane of
        // few dimensions.
        let few = |q: usize| (self.n + self.p) * (q as f64) < (self.n - 1.0) * self.p;
        if let Some(plane) = self.plane().filter(|plane| few(plane.lengths.len())) {
            return plane;
        }
        let candidates = (0..=self.values.len()).filter_map(|q| self.averaged_noise(q).map(|v| (q, v)));
        let bound = |(q, v): &(usize, f64)| self.bound(*q, *v);
        let best = candidates.max_by(|a, b| bound(a).total_cmp(&bound(b)));
        let (q, v) = best.unwrap_or((0, self.n * self.rest(0) / ((self.n - 1.0) * self.p)));
        let lengths = self.values[..q].iter().map(|l| self.averaged_length(*l, v).unwrap_or(0.0));
        let (mut means, mut variances) = (Vec::with_capacity(q), Vec::with_capacity(q));
        for (lambda, e) in self.values.iter().zip(lengths) {
            means.push(e * (v + e) / lambda);
            variances.push(v * e / (self.n * e + self.p * v));
        }
        Supported { lengths: means, variances, noise: v, objective: self.bound(q, v) }
    }

    /// By ARD: from all components, the weakest driven out until each has a point where likelihood and prior
    /// balance.
    fn most_probable(&self) -> Supported {
        if let Some(plane) = self.plane() {
            return plane;
        }
        // With as many components as features nothing is left for noise.
        let possible = |q: &usize| (*q as f64) < self.p;
        let found = (1..=self.values.len())
            .rev()
            .filter(possible)
            .find_map(|q| self.most_probable_noise(q).map(|v| (q, v)));
        let (q, v) = found.unwrap_or((0, self.rest(0) / self.p));
        let length = |l: &f64| self.most_probable_length(*l, v).unwrap_or(0.0);
        let lengths: Vec<f64> = self.values[..q].iter().map(length).collect();
        let objective = self.log_posterior(&lengths, v);
        Supported { variances: vec![0.0; q], lengths, noise: v, objective }
    }

    /// Rows that lie in a plane, explained by it.
    fn plane(&self) -> Option<Supported> {
        let rank = (1..=self.values.len()).find(|q| self.rest(*q) <= self.negligible)?;
        let (lengths, variances) = (self.values[..rank].to_vec(), vec![0.0; rank]);
        // A plane of as many dimensions as there are features is none.
        ((rank as f64) < self.p).then_some(Supported {
            lengths,
            variances,
            noise: 0.0,
            objective: f64::INFINITY,
        })
    }

    /// What is left beside q components: the parts added up from the smallest, because the whole can be so
    /// much larger that nothing of them is left in a difference.
    fn rest(&self, q: usize) -> f64 {
        self.values[q..].iter().rev().fold(self.left, |sum, l| sum + l)
    }

    /// E of a component; `None` when the noise drowns it.
    fn averaged_length(&self, lambda: f64, v: f64) -> Option<f64> {
        self.averaged_shortfall(lambda, v).map(|shortfall| lambda - shortfall)
    }

    /// λ − E = (1 + p/n) v + δ, where δ is the smaller root of the equation of E: small beside λ where v is.
    fn averaged_shortfall(&self, lambda: f64, v: f64) -> Option<f64> {
        let (taken, product) = ((1.0 + self.p / self.n) * v, self.p / self.n * v * v);
        let half = 0.5 * (lambda - taken);
        let square = half * half - product;
        (half > 0.0 && square >= 0.0).then(|| taken + product / (half + square.sqrt()))
    }

    /// The fixed point of the noise with q components, reached from below as EM does; `None` when one of them
    /// is drowned.
    fn averaged_noise(&self, q: usize) -> Option<f64> {
        let (n, p) = (self.n, self.p);
        let left = (p - q as f64).max(1.0);
        let start = (self.rest(q) / left).max(self.negligible);
        let v = fixed_point(start, |v| {
            let (mut rest, mut slope) = (self.rest(q), 0.0); // trace less Σ E
            for lambda in &self.values[..q] {
                let shortfall = self.averaged_shortfall(*lambda, v)?;
                let e = lambda - shortfall;
                rest += shortfall;
                slope -= ((n + p) * e + 2.0 * p * v) / (2.0 * n * e + (n + p) * v - n * lambda);
            }
            let next = n * rest / ((n - 1.0) * p);
            let rate = -n * slope / ((n - 1.0) * p);
            let step = if rate < 1.0 { (next - v) / (1.0 - rate) } else { next - v };
            Some((if v + step > 0.0 { v + step } else { next }, step))
        })?;
        (v > 0.0).then_some(v)
    }

    /// The bound on the log evidence with the first q components and noise v.
    fn bound(&self, q: usize, v: f64) -> f64 {
        let (n, p) = (self.n, self.p);
        // n (x − ln(1 + x)) − p ln(1 + n x / p) of each component, its n x taken from what the noise has to
        // explain.
        let price = |lambda: &f64| {
            let x = self.averaged_length(*lambda, v).unwrap_or(0.0) / v;
            0.5 * (n * x.ln_1p() + p * (n * x / p).ln_1p())
        };
        let shortfall = |lambda: &f64| self.averaged_shortfall(*lambda, v).unwrap_or(*lambda);
        let rest = self.values[..q].iter().rev().fold(self.rest(q), |sum, l| sum + shortfall(l));
        let noise = -0.5 * n * (p * (TAU.ln() + v.ln()) + rest / v);
        let mean = 0.5 * p * (TAU * v / n).ln();
        let c = 0.5 * n * p;
        noise + mean + c + ln_gamma(c) - c * c.ln() - self.values[..q].iter().map(price).sum::<f64>()
    }

    /// u of a component; `None` when the prior drives it out.
    fn most_probable_length(&self, lambda: f64, v: f64) -> Option<f64> {
        let (n, p) = (self.n, self.p);
        let half = 0.5 * (n * (lambda - v) - 2.0 * p * v) / (n + p);
        let square = half * half - p * v * v / (n + p);
        (half > 0.0 && square >= 0.0).then(|| half + square.sqrt())
    }

    fn most_probable_noise(&self, q: usize) -> Option<f64> {
        let (n, p, left) = (self.n, self.p, self.p - q as f64);
        let rest = self.rest(q);
        fixed_point(rest / left, |v| {
            let mut taken = 0.0;
            for lambda in &self.values[..q] {
                taken += p / (n * self.most_probable_length(*lambda, v)?);
            }
            let next = (rest + v * v * taken) / left;
            Some((next, next - v))
        })
    }

    /// log p(X | W, σ²) + log p(W | α) at the best α.
    fn log_posterior(&self, lengths: &[f64], v: f64) -> f64 {
        let (n, p, q) = (self.n, self.p, lengths.len());
        let along = |(u, lambda): (&f64, &f64)| (u + v).ln() + lambda / (u + v);
        let kept: f64 = lengths.iter().zip(self.values).map(along).sum();
        let fit = -0.5 * n * (p * TAU.ln() + kept + (p - q as f64) * v.ln() + self.rest(q) / v);
        let prior = |u: &f64| 0.5 * p * ((p / u).ln() - TAU.ln() - 1.0);
        fit + lengths.iter().map(prior).sum::<f64>()
    }
}

//! The likelihood of a factor model whose loadings are already the best for given noise: a function of log ψ
//! alone.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};

use super::{Guard, Journey, Limits, Objective, Stop};
use crate::linalg::{Eigen, Mat, standard_signs};

/// Distance from the bound, in log ψ, at which a feature counts as being there.
const AT_BOUND: f64 = 1e-9;
/// Squared length of an eigenvector outside one feature that is rounding.
const ALONE: f64 = 1e-18;
/// Least uniqueness of a random start.
const LEAST_RANDOM: f64 = 0.05;
/// Longest step in log ψ of a feature.
const LONGEST: f64 = 3.0;
/// Share of the slope that a step must bring.
const SLOPE: f64 = 1e-4;
/// A change of the discrepancy below this, relative to the terms that it is the sum of, is rounding.
const ROUNDING: f64 = 1e-13;

/// What is looked for, and when to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// Number of factors, q.
    pub(crate) factors: usize,
    /// Least uniqueness.
    pub(crate) lower: f64,
    /// The tolerance is of the norm of the gradient; for EM, of the gain of a step in nats per row.
    pub(crate) limits: Limits,
}

/// What all searches maximise: −(log |C| + tr(R C⁻¹))/2.
pub(super) const OBJECTIVE: Objective =
    Objective { name: "log-likelihood per row but for a constant", guard: Guard::NeverFalls };

/// Where a search starts.
#[derive(Debug, Clone)]
pub(crate) enum Start {
    /// Where the solver usually does.
    Usual,
    /// At random uniquenesses.
    Random(u64),
    /// At these.
    At(Vec<f64>),
}

impl Search {
    /// log ψ of a start that is not the usual one.
    pub(super) fn unusual(&self, p: usize, start: &Start) -> Option<Vec<f64>> {
        match start {
            Start::Usual => None,
            Start::Random(seed) => Some(self.random_start(p, *seed)),
            Start::At(psi) => Some(psi.iter().map(|v| v.max(self.lower).ln()).collect()),
        }
    }

    /// log ψ of random uniquenesses.
    fn random_start(&self, p: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = || -> f64 { StandardUniform.sample(&mut rng) };
        (0..p).map(|_| uniform().max(LEAST_RANDOM).max(self.lower).ln()).collect()
    }
}

/// What a search has found, for features of unit variance.
#[derive(Debug, Clone)]
pub(crate) struct FoundFactors {
    /// Mean: 0 unless missing values make it another than that of the cells.
    pub(crate) mean: Vec<f64>,
    /// Loadings (p × q) with ΛᵀΨ⁻¹Λ diagonal and descending.
    pub(crate) loadings: Mat<f64>,
    /// Noise variances.
    pub(crate) uniquenesses: Vec<f64>,
    /// log |C| + tr(R C⁻¹).
    pub(crate) value: f64,
    /// The same minus log |R| + p; `None` when R is singular or not known.
    pub(crate) discrepancy: Option<f64>,
    /// Of the gradient by log ψ, without the features held at the bound.
    pub(crate) gradient_norm: f64,
    /// Features at the bound.
    pub(crate) heywood: Vec<usize>,
    /// Factors of no length.
    pub(crate) unused: usize,
    /// Why the search ended.
    pub(crate) stop: Stop,
    /// −`value`/2 after each iteration: the log-likelihood of a row but for a constant.
    pub(crate) trace: Vec<f64>,
}

/// The profile at a point.
///
/// With θ, ω the eigenpairs of Ψ^-½ R Ψ^-½ and k the kept ones (the q largest, as far as they exceed 1), the
/// best loadings are $\Psi^{1/2} \omega_k (\theta_k - 1)^{1/2}$ and
/// $\ln|C| + \mathrm{tr}(RC^{-1}) = \sum_j (\ln\psi_j + 1/\psi_j) + \sum_k (\ln\theta_k - \theta_k + 1)$
/// \[J67\]: no eigenvalue that is not kept is needed, so R may be singular.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    /// log ψ.
    pub(super) log_psi: Vec<f64>,
    /// Kept pairs.
    pub(super) kept: Eigen,
    /// log |C| + tr(R C⁻¹).
    pub(super) value: f64,
    /// By log ψ: the diagonal of C − R in units of ψ.
    pub(super) gradient: Vec<f64>,
}

impl Profile {
    /// From log ψ and at least q leading pairs (fewer where there are not so many).
    pub(super) fn new(log_psi: Vec<f64>, leading: &Eigen, factors: usize) -> Self {
        let count = leading.values.iter().take(factors).filter(|v| **v > 1.0).count();
        let kept = Eigen {
            values: leading.values[..count].to_vec(),
            vectors: leading.vectors.subcols(0, count).to_owned(),
        };
        let noise: f64 = log_psi.iter().map(|x| x + (-x).exp()).sum();
        let value = noise + kept.values.iter().map(|t| t.ln() - t + 1.0).sum::<f64>();
        let mut gradient: Vec<f64> = log_psi.iter().map(|x| 1.0 - (-x).exp()).collect();
        for (k, theta) in kept.values.iter().enumerate() {
            let omega = kept.vectors.col_as_slice(k);
            gradient.iter_mut().zip(omega).for_each(|(g, w)| *g += (theta - 1.0) * w * w);
        }
        Self { log_psi, kept, value, gradient }
    }

    /// Features at the bound that would go below.
    pub(super) fn held(&self, floor: f64) -> Vec<bool> {
        let held = |(x, g): (&f64, &f64)| *x <= floor + AT_BOUND && *g >= 0.0;
        self.log_psi.iter().zip(&self.gradient).map(held).collect()
    }

    /// Norm of the gradient without the features that are held.
    pub(super) fn gradient_norm(&self, floor: f64) -> f64 {
        let free = self.gradient.iter().zip(self.held(floor)).filter(|(_, held)| !held);
        free.map(|(g, _)| g * g).sum::<f64>().sqrt()
    }

    /// What is rounding in the value: a share of the numbers that it is the sum of.
    fn value_rounding(&self) -> f64 {
        let noise = self.log_psi.iter().map(|x| x.abs() + (-x).exp()).sum::<f64>();
        ROUNDING * (noise + self.kept.values.iter().sum::<f64>())
    }

    /// The log-likelihood per row but for a constant.
    pub(super) fn objective(&self) -> f64 {
        -0.5 * self.value
    }

    /// What is rounding in [`objective`](Self::objective).
    pub(super) fn objective_rounding(&self) -> f64 {
        0.5 * self.value_rounding()
    }

    /// Whether the gradient, without the features that are held, is short enough or rounding.
    pub(super) fn is_optimum(&self, floor: f64, tolerance: f64) -> bool {
        self.gradient_norm(floor) <= tolerance.max(self.gradient_rounding())
    }

    /// Norm of the gradient below which it is rounding.
    fn gradient_rounding(&self) -> f64 {
        16.0 * f64::EPSILON * self.log_psi.iter().map(|x| (-2.0 * x).exp()).sum::<f64>().sqrt()
    }

    /// Whether `next` is a point to go to: enough below, or as low up to rounding and flatter.
    pub(super) fn accepts(&self, next: &Self, floor: f64) -> bool {
        let moved = next.log_psi.iter().zip(&self.log_psi).zip(&self.gradient);
        let slope: f64 = moved.map(|((to, from), g)| g * (to - from)).sum();
        let rounding = self.value_rounding();
        next.value <= self.value + SLOPE * slope.min(0.0)
            || (next.value <= self.value + rounding && next.gradient_norm(floor) < self.gradient_norm(floor))
    }

    /// The point at some length along a direction, within the bound.
    pub(super) fn along(&self, direction: &[f64], length: f64, floor: f64) -> Vec<f64> {
        let moved = |(x, d): (&f64, &f64)| (x + length * d).max(floor);
        self.log_psi.iter().zip(direction).map(moved).collect()
    }

    /// The answer at this point, and how it was reached.
    pub(super) fn found(self, search: &Search, journey: Journey) -> FoundFactors {
        let floor = search.lower.ln();
        let mut uniquenesses: Vec<f64> = self.log_psi.iter().map(|x| x.exp().max(search.lower)).collect();
        let mut used = Vec::new();
        for (k, theta) in self.kept.values.iter().enumerate() {
            match alone(self.kept.vectors.col_as_slice(k)) {
                // An eigenvalue within the tolerance of 1 is one: the factor explains nothing.
                _ if theta - 1.0 <= search.limits.tolerance => {}
                // A factor of one feature is noise of that feature.
                Some(j) => uniquenesses[j] *= theta,
                None => used.push(k),
            }
        }
        let loading = |j: usize, k: usize| {
            let k = used.get(k).copied()?;
            Some(
                self.log_psi[j].exp().sqrt() * self.kept.vectors[(j, k)] * (self.kept.values[k] - 1.0).sqrt(),
            )
        };
        let p = self.log_psi.len();
        let mut loadings = Mat::from_fn(p, search.factors, |j, k| loading(j, k).unwrap_or(0.0));
        standard_signs(&mut loadings);
        let heywood = (0..p).filter(|j| uniquenesses[*j].ln() <= floor + AT_BOUND).collect();
        FoundFactors {
            mean: vec![0.0; self.log_psi.len()],
            loadings,
            value: self.value,
            discrepancy: None,
            gradient_norm: self.gradient_norm(floor),
            heywood,
            unused: search.factors - used.len(),
            uniquenesses,
            stop: journey.stop,
            trace: journey.trace,
        }
    }
}

/// The only feature that a unit vector has a part in.
fn alone(omega: &[f64]) -> Option<usize> {
    let largest = (0..omega.len()).max_by(|a, b| omega[*a].abs().total_cmp(&omega[*b].abs()))?;
    let others: f64 = omega.iter().enumerate().filter(|(j, _)| *j != largest).map(|(_, w)| w * w).sum();
    (others < ALONE).then_some(largest)
}

/// The direction, shortened where a feature would move too far.
pub(super) fn shortened(mut direction: Vec<f64>) -> Vec<f64> {
    let largest = direction.iter().fold(0.0, |a: f64, d| a.max(d.abs()));
    if largest > LONGEST {
        direction.iter_mut().for_each(|d| *d *= LONGEST / largest);
    }
    direction
}

//! What is known of one row, as a hill over the places where it may lie, and the way up.

use super::LatentProcess;
use crate::kernel::{LatentForm, RowAdjoint};
use crate::linalg::{Mat, MatRef, QuasiNewton, halved, product};

/// Steps of a search, its memory, and halvings of a step.
const STEPS: usize = 300;
const MEMORY: usize = 20;
const HALVINGS: usize = 20;
/// A search ends where several steps in a row gain less than this.
const GAIN: f64 = 1e-11;
/// Share of the slope that a step must gain.
const LEAST_SHARE: f64 = 1e-4;
/// Largest change of a variable in a step.
const LARGEST: f64 = 2.0;

/// A position and how good it is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) mean: Vec<f64>,
    pub(super) variance: Vec<f64>,
    pub(super) bound: f64,
}

/// What a search climbs, for one row.
trait Hill: Sync {
    /// Value and gradient at a vector of free variables.
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>);

    /// Inverse curvature of each variable, roughly.
    fn scale(&self, x: &[f64]) -> Vec<f64>;
}

/// Climbs to where steps gain nothing any more.
fn climbed(hill: &dyn Hill, start: &[f64]) -> (Vec<f64>, f64) {
    let mut newton = QuasiNewton::remembering(MEMORY);
    let (mut x, (mut value, mut gradient)) = (start.to_vec(), hill.climb(start));
    let mut idle = 0;
    newton.observe(&x, &gradient);
    for _ in 0..STEPS {
        let scale = hill.scale(&x);
        let times = |g: &[f64]| -> Vec<f64> { g.iter().zip(&scale).map(|(g, d)| g * d).collect() };
        let proposed = newton.propose(times);
        let plain = times(&gradient);
        let mut direction: Vec<f64> =
            proposed.map_or(plain.clone(), |next| next.iter().zip(&x).map(|(a, b)| a - b).collect());
        let dot = |a: &[f64]| -> f64 { a.iter().zip(&gradient).map(|(a, g)| a * g).sum() };
        if dot(&direction) <= 0.0 {
            direction = plain;
        }
        let largest = direction.iter().fold(0.0, |m: f64, d| m.max(d.abs()));
        let first = if largest > LARGEST { LARGEST / largest } else { 1.0 };
        let slope = dot(&direction);
        let step = halved(first, HALVINGS, |length| {
            let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (there, gradient) = hill.climb(&next);
            let enough = there.is_finite() && there > value + LEAST_SHARE * length * slope;
            Ok(enough.then_some((next, there, gradient)))
        });
        let Ok(Some((next, there, slopes))) = step else { break };
        let gain = there - value;
        (x, value, gradient) = (next, there, slopes);
        newton.observe(&x, &gradient);
        idle = if gain <= GAIN * (1.0 + value.abs()) { idle + 1 } else { 0 };
        if idle >= 3 {
            break;
        }
    }
    (x, value)
}

/// The bound on one row as a function of μ and log S.
pub(super) struct SpreadHill<'a> {
    model: &'a LatentProcess,
    one: Vec<f64>, // β W y (M)
    two: Vec<f64>, // −β/2 Σ (wwᵀ − R), pairs (P)
    zero: f64,     // −β/2 · observed cells
    constant: f64,
}

impl<'a> SpreadHill<'a> {
    pub(super) fn new(model: &'a LatentProcess, observed: &[usize], y: &[f64], curvature: &[f64]) -> Self {
        let beta = 1.0 / model.parts.noise;
        let weight = |i: usize| -> f64 {
            observed.iter().zip(y).map(|(j, y)| model.parts.weights[(i, *j)] * y).sum::<f64>() * beta
        };
        let cells = observed.len() as f64;
        let squares: f64 = y.iter().map(|y| y * y).sum();
        Self {
            model,
            one: (0..model.n_inducing()).map(weight).collect(),
            two: curvature.iter().map(|c| -0.5 * beta * c).collect(),
            zero: -0.5 * beta * cells,
            constant: 0.5 * cells * (beta / std::f64::consts::TAU).ln() - 0.5 * beta * squares,
        }
    }

    pub(super) fn search(&self, (mean, variance): (Vec<f64>, Vec<f64>)) -> Place {
        let q = mean.len();
        let start: Vec<f64> = mean.into_iter().chain(variance.iter().map(|v| v.max(1e-12).ln())).collect();
        let (x, bound) = climbed(self, &start);
        Place { mean: x[..q].to_vec(), variance: x[q..].iter().map(|v| v.exp()).collect(), bound }
    }
}

impl Hill for SpreadHill<'_> {
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let q = x.len() / 2;
        let (mean, variance): (&[f64], Vec<f64>) = (&x[..q], x[q..].iter().map(|v| v.exp()).collect());
        let psi = self.model.psi.of(mean, &variance);
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let divergence: f64 = (0..q).map(|k| 0.5 * (mean[k].powi(2) + variance[k] - x[q + k] - 1.0)).sum();
        let value = self.constant
            + dot(&self.one, psi.one.col_as_slice(0))
            + dot(&self.two, psi.two.col_as_slice(0))
            + self.zero * psi.zero[0]
            - divergence;
        let mut by_mean: Vec<f64> = mean.iter().map(|m| -m).collect();
        let mut by_variance: Vec<f64> = variance.iter().map(|s| 0.5 * (1.0 / s - 1.0)).collect();
        let column = |of: &[f64]| Mat::from_fn(of.len(), 1, |i, _| of[i]);
        let by = RowAdjoint {
            zero: &[self.zero],
            one: column(&self.one),
            two: column(&self.two),
            mean: &mut by_mean,
            variance: &mut by_variance,
        };
        self.model.psi.pull_back(&psi, (mean, &variance), by, None);
        by_mean.extend(by_variance.iter().zip(&variance).map(|(d, s)| d * s));
        (value, by_mean)
    }

    fn scale(&self, x: &[f64]) -> Vec<f64> {
        let q = x.len() / 2;
        x[q..].iter().map(|v| v.exp()).chain((0..q).map(|_| 2.0)).collect()
    }
}

/// The log density of one row at a point and of the point itself, as a function of the point.
pub(super) struct PointHill<'a> {
    model: &'a LatentProcess,
    observed: &'a [usize],
    y: Vec<f64>,
    reduction: &'a Mat<f64>, // (M × M)
}

impl<'a> PointHill<'a> {
    pub(super) fn new(
        model: &'a LatentProcess,
        observed: &'a [usize],
        y: Vec<f64>,
        reduction: &'a Mat<f64>,
    ) -> Self {
        Self { model, observed, y, reduction }
    }

    pub(super) fn search(&self, (start, _): (Vec<f64>, Vec<f64>)) -> Place {
        let (mean, bound) = climbed(self, &start);
        let (_, jacobian, total) = self.slopes(&mean);
        // Laplace's approximation by Gauss and Newton: S⁻¹ = 1 + Σⱼ (∂mⱼ/∂x)² / (v + σ²)
        let steep = |k: usize| self.observed.iter().map(|j| jacobian[(k, *j)].powi(2)).sum::<f64>();
        let variance = (0..mean.len()).map(|k| 1.0 / (1.0 + steep(k) / total)).collect();
        Place { mean, variance, bound }
    }

    /// k(x, Z) + bias and its derivative by x (q × M), in one.
    fn kernel(&self, x: &[f64]) -> (Vec<f64>, Mat<f64>) {
        let parts = &self.model.parts;
        let (m, q, alpha) = (parts.inducing.nrows(), x.len(), parts.kernel.relevance());
        let plain = parts.kernel.matrix(MatRef::from_row_major_slice(x, 1, q), parts.inducing.as_ref());
        let slope = Mat::from_fn(q, m, |k, i| match parts.kernel.form() {
            LatentForm::Rbf => -alpha[k] * (x[k] - parts.inducing[(i, k)]) * plain[(0, i)],
            LatentForm::Linear => alpha[k] * parts.inducing[(i, k)],
        });
        ((0..m).map(|i| plain[(0, i)] + parts.bias).collect(), slope)
    }

    /// Slopes of the variance (q), of the means (q × p), and the variance with the noise.
    fn slopes(&self, x: &[f64]) -> (Vec<f64>, Mat<f64>, f64) {
        let parts = &self.model.parts;
        let (values, slope) = self.kernel(x);
        let m = values.len();
        let column = Mat::from_fn(m, 1, |i, _| values[i]);
        let reduced = product(self.reduction.as_ref(), column.as_ref());
        let own = parts.kernel.own(x) + parts.bias;
        let less: f64 = (0..m).map(|i| values[i] * reduced[(i, 0)]).sum();
        let along = product(slope.as_ref(), reduced.as_ref());
        let linear = parts.kernel.form() == LatentForm::Linear;
        let own_slope = |k: usize| if linear { 2.0 * parts.kernel.relevance()[k] * x[k] } else { 0.0 };
        let by_variance = (0..x.len()).map(|k| own_slope(k) - 2.0 * along[(k, 0)]).collect();
        (by_variance, product(slope.as_ref(), parts.weights.as_ref()), (own - less).max(0.0) + parts.noise)
    }
}

impl Hill for PointHill<'_> {
    fn climb(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let (by_variance, jacobian, total) = self.slopes(x);
        let mean = self.model.mean_at(MatRef::from_row_major_slice(x, 1, x.len()));
        let rest: Vec<f64> = self.observed.iter().zip(&self.y).map(|(j, y)| y - mean[(0, *j)]).collect();
        let squares: f64 = rest.iter().map(|r| r * r).sum();
        let cells = rest.len() as f64;
        let prior: f64 = x.iter().map(|x| -0.5 * (x * x + std::f64::consts::TAU.ln())).sum();
        let value = prior - 0.5 * (squares / total + cells * (std::f64::consts::TAU * total).ln());
        let by_total = 0.5 * (squares / (total * total) - cells / total);
        let slope = |k: usize| {
            let along: f64 = self.observed.iter().zip(&rest).map(|(j, r)| jacobian[(k, *j)] * r).sum();
            -x[k] + along / total + by_total * by_variance[k]
        };
        (value, (0..x.len()).map(slope).collect())
    }

    fn scale(&self, x: &[f64]) -> Vec<f64> {
        vec![0.1; x.len()]
    }
}

//! ψ-statistics: expectations of a kernel over latent positions that are known as normal distributions, by blocks
//! of rows, with their derivatives \[TL10, appendix\].
//!
//! With q(xᵢ) = N(μᵢ, diag Sᵢ) and inducing points z₁ … z_M:
//! ψ₀ᵢ = E k(xᵢ, xᵢ), Ψ₁ᵢₘ = E k(xᵢ, zₘ), Ψ₂ᵢₘₘ′ = E k(xᵢ, zₘ) k(xᵢ, zₘ′). The last is symmetric, so that only
//! P = M(M + 1)/2 pairs are computed. Logarithms of an rbf kernel's are products of what belongs to rows and
//! what belongs to points, and one exponential.

use super::latent::{LatentForm, LatentKernel};
use crate::linalg::{Mat, add_product, exp, packed, packed_len, set_product};

/// A kernel and the points with which latent positions are compared.
#[derive(Debug, Clone)]
pub(crate) struct Psi {
    kernel: LatentKernel,
    points: Mat<f64>,  // Z (M × q)
    pairs: Mat<f64>,   // z̄², z̄, −¼ Σ α (z − z′)², 1 (P × 2q + 2), of an rbf kernel
    singles: Mat<f64>, // z², z, 1 (M × 2q + 1), of an rbf kernel
}

/// ψ-statistics of b rows.
#[derive(Debug)]
pub(crate) struct PsiBlock {
    pub(crate) zero: Vec<f64>, // ψ₀ (b)
    pub(crate) one: Mat<f64>,  // Ψ₁ᵀ (M × b)
    pub(crate) two: Mat<f64>,  // pairs of Ψ₂ (P × b)
    rows_two: Mat<f64>,        // −a, 2aμ, 1, c (2q + 2 × b)
    rows_one: Mat<f64>,        // −½b, bμ, c (2q + 1 × b)
}

/// Derivatives that rows add up to.
#[derive(Debug, Clone)]
pub(crate) struct PsiAdjoint {
    pairs: Mat<f64>,                // Σ Q₂ (−a, 2aμ, 1, c) (P × 2q + 2)
    singles: Mat<f64>,              // Σ Q₁ (−½b, bμ, c) (M × 2q + 1)
    pub(crate) relevance: Vec<f64>, // by α (q), through the rows
    pub(crate) log_variance: f64,   // by log σ²
}

/// Derivatives by what belongs to the rows of a block, and what a function has by their ψ-statistics.
pub(crate) struct RowAdjoint<'a> {
    pub(crate) zero: &'a [f64],         // by ψ₀ (b)
    pub(crate) one: Mat<f64>,           // by Ψ₁ᵀ (M × b)
    pub(crate) two: Mat<f64>,           // by each pair of Ψ₂, those off the diagonal counted twice (P × b)
    pub(crate) mean: &'a mut [f64],     // by μ, row after row (b · q)
    pub(crate) variance: &'a mut [f64], // by S, row after row (b · q)
}

impl Psi {
    pub(crate) fn new(kernel: LatentKernel, points: Mat<f64>) -> Self {
        let (m, q) = (points.nrows(), kernel.n_latent());
        if kernel.form() == LatentForm::Linear {
            return Self { kernel, points, pairs: Mat::new(), singles: Mat::new() };
        }
        let alpha = kernel.relevance();
        let mut pairs = Mat::zeros(packed_len(m), 2 * q + 2);
        for (i, j) in (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let pair = packed(i, j);
            for k in 0..q {
                let (z, other) = (points[(i, k)], points[(j, k)]);
                let middle = 0.5 * (z + other);
                pairs[(pair, k)] = middle * middle;
                pairs[(pair, q + k)] = middle;
                pairs[(pair, 2 * q)] -= 0.25 * alpha[k] * (z - other).powi(2);
            }
            pairs[(pair, 2 * q + 1)] = 1.0;
        }
        let singles = Mat::from_fn(m, 2 * q + 1, |i, c| match c {
            c if c < q => points[(i, c)].powi(2),
            c if c < 2 * q => points[(i, c - q)],
            _ => 1.0,
        });
        Self { kernel, points, pairs, singles }
    }

    pub(crate) fn kernel(&self) -> &LatentKernel {
        &self.kernel
    }

    /// Z (M × q).
    pub(crate) fn points(&self) -> &Mat<f64> {
        &self.points
    }

    /// The statistics of rows, whose means and variances stand row after row (b · q).
    pub(crate) fn of(&self, mean: &[f64], variance: &[f64]) -> PsiBlock {
        match self.kernel.form() {
            LatentForm::Rbf => self.of_rbf(mean, variance),
            LatentForm::Linear => self.of_linear(mean, variance),
        }
    }

    fn of_rbf(&self, mean: &[f64], variance: &[f64]) -> PsiBlock {
        let (alpha, q) = (self.kernel.relevance(), self.kernel.n_latent());
        let b = mean.len() / q;
        let log = self.kernel.variance().ln();
        let (mut rows_two, mut rows_one) = (Mat::zeros(2 * q + 2, b), Mat::zeros(2 * q + 1, b));
        for i in 0..b {
            // −½ Σ log(1 + 2αS) − Σ aμ², and the same with αS for Ψ₁: logarithms of products
            let (mut two, mut one, mut scale_two, mut scale_one) = (2.0 * log, log, 1.0, 1.0);
            for k in 0..q {
                let (mu, s, alpha) = (mean[i * q + k], variance[i * q + k], alpha[k]);
                let (spread_two, spread_one) = (1.0 + 2.0 * alpha * s, 1.0 + alpha * s);
                let (a, b) = (alpha / spread_two, alpha / spread_one);
                (rows_two[(k, i)], rows_two[(q + k, i)]) = (-a, 2.0 * a * mu);
                (rows_one[(k, i)], rows_one[(q + k, i)]) = (-0.5 * b, b * mu);
                two -= a * mu * mu;
                one -= 0.5 * b * mu * mu;
                if scale_two > 1e100 {
                    two -= 0.5 * f64::ln(scale_two);
                    one -= 0.5 * f64::ln(scale_one);
                    (scale_two, scale_one) = (1.0, 1.0);
                }
                scale_two *= spread_two;
                scale_one *= spread_one;
            }
            (rows_two[(2 * q, i)], rows_two[(2 * q + 1, i)]) = (1.0, two - 0.5 * scale_two.ln());
            rows_one[(2 * q, i)] = one - 0.5 * scale_one.ln();
        }
        let exponential = |points: &Mat<f64>, rows: &Mat<f64>| {
            let mut out = Mat::zeros(points.nrows(), b);
            set_product(out.as_mut(), points.as_ref(), rows.as_ref());
            (0..b).for_each(|i| exp(out.col_as_slice_mut(i)));
            out
        };
        let (two, one) = (exponential(&self.pairs, &rows_two), exponential(&self.singles, &rows_one));
        PsiBlock { zero: vec![self.kernel.variance(); b], one, two, rows_two, rows_one }
    }

    /// Ψ₁ = μ∘α Zᵀ and Ψ₂ = Zα (μμᵀ + diag S) αZᵀ.
    fn of_linear(&self, mean: &[f64], variance: &[f64]) -> PsiBlock {
        let (alpha, q, m) = (self.kernel.relevance(), self.kernel.n_latent(), self.points.nrows());
        let b = mean.len() / q;
        let (mut zero, mut one, mut two) = (vec![0.0; b], Mat::zeros(m, b), Mat::zeros(packed_len(m), b));
        for i in 0..b {
            let (mu, s) = (&mean[i * q..(i + 1) * q], &variance[i * q..(i + 1) * q]);
            zero[i] = (0..q).map(|k| alpha[k] * (mu[k] * mu[k] + s[k])).sum();
            for r in 0..m {
                one[(r, i)] = (0..q).map(|k| alpha[k] * mu[k] * self.points[(r, k)]).sum();
                for c in 0..=r {
                    let spread =
                        |k: usize| alpha[k].powi(2) * s[k] * self.points[(r, k)] * self.points[(c, k)];
                    two[(packed(r, c), i)] = one[(r, i)] * one[(c, i)] + (0..q).map(spread).sum::<f64>();
                }
            }
        }
        PsiBlock { zero, one, two, rows_two: Mat::new(), rows_one: Mat::new() }
    }

    /// No derivatives yet.
    pub(crate) fn no_adjoint(&self) -> PsiAdjoint {
        let (m, q) = (self.points.nrows(), self.kernel.n_latent());
        PsiAdjoint {
            pairs: Mat::zeros(packed_len(m), 2 * q + 2),
            singles: Mat::zeros(m, 2 * q + 1),
            relevance: vec![0.0; q],
            log_variance: 0.0,
        }
    }

    /// Derivatives by the positions of the rows of a block, and, where they are wanted, what rows add to those by
    /// all else.
    pub(crate) fn pull_back(
        &self,
        block: &PsiBlock,
        (mean, variance): (&[f64], &[f64]),
        mut by: RowAdjoint<'_>,
        sums: Option<&mut PsiAdjoint>,
    ) {
        match self.kernel.form() {
            LatentForm::Rbf => self.pull_back_rbf(block, (mean, variance), by, sums),
            LatentForm::Linear => self.pull_back_linear((mean, variance), &mut by, sums),
        }
    }

    fn pull_back_rbf(
        &self,
        block: &PsiBlock,
        (mean, variance): (&[f64], &[f64]),
        by: RowAdjoint<'_>,
        mut sums: Option<&mut PsiAdjoint>,
    ) {
        let (q, b) = (self.kernel.n_latent(), block.zero.len());
        let RowAdjoint { zero, one: mut q1, two: mut q2, mean: by_mean, variance: by_variance } = by;
        for i in 0..b {
            let times = |to: &mut [f64], by: &[f64]| to.iter_mut().zip(by).for_each(|(t, x)| *t *= x);
            times(q1.col_as_slice_mut(i), block.one.col_as_slice(i)); // Q₁ = Ḡ₁ ∘ Ψ₁
            times(q2.col_as_slice_mut(i), block.two.col_as_slice(i)); // Q₂ = Ḡ₂ ∘ Ψ₂
        }
        if let Some(sums) = sums.as_deref_mut() {
            add_product(sums.pairs.as_mut(), q2.as_ref(), block.rows_two.transpose(), 1.0);
            add_product(sums.singles.as_mut(), q1.as_ref(), block.rows_one.transpose(), 1.0);
        }
        let (mut of_pairs, mut of_singles) = (Mat::zeros(2 * q + 2, b), Mat::zeros(2 * q + 1, b));
        set_product(of_pairs.as_mut(), self.pairs.transpose(), q2.as_ref());
        set_product(of_singles.as_mut(), self.singles.transpose(), q1.as_ref());
        for i in 0..b {
            let (all_two, all_one) = (of_pairs[(2 * q + 1, i)], of_singles[(2 * q, i)]);
            if let Some(sums) = sums.as_deref_mut() {
                sums.log_variance += 2.0 * all_two + all_one + zero[i] * self.kernel.variance();
            }
            for k in 0..q {
                let (at, mu, s) = (i * q + k, mean[i * q + k], variance[i * q + k]);
                let (a, b) = (-block.rows_two[(k, i)], -2.0 * block.rows_one[(k, i)]);
                // Σ Q (μ − z̄)² and Σ Q (μ − z̄)
                let moments = |of: &Mat<f64>, all: f64| {
                    let (square, first) = (of[(k, i)], of[(q + k, i)]);
                    (mu * mu * all - 2.0 * mu * first + square, mu * all - first)
                };
                let ((two_square, two_first), (one_square, one_first)) =
                    (moments(&of_pairs, all_two), moments(&of_singles, all_one));
                by_mean[at] += -2.0 * a * two_first - b * one_first;
                by_variance[at] +=
                    -a * all_two + 2.0 * a * a * two_square - 0.5 * b * all_one + 0.5 * b * b * one_square;
                // ∂a/∂α = (a/α)², ∂b/∂α = (b/α)²
                let alpha = self.kernel.relevance()[k];
                let (u, v) = (a / alpha, b / alpha);
                if let Some(sums) = sums.as_deref_mut() {
                    sums.relevance[k] -=
                        s * u * all_two + u * u * two_square + 0.5 * (s * v * all_one + v * v * one_square);
                }
            }
        }
    }

    fn pull_back_linear(
        &self,
        (mean, variance): (&[f64], &[f64]),
        by: &mut RowAdjoint<'_>,
        mut sums: Option<&mut PsiAdjoint>,
    ) {
        let (alpha, q, m) = (self.kernel.relevance(), self.kernel.n_latent(), self.points.nrows());
        let z = &self.points;
        for (i, zero) in by.zero.iter().enumerate() {
            let (mu, s) = (&mean[i * q..(i + 1) * q], &variance[i * q..(i + 1) * q]);
            // H = Zᵀ Ḡ₂ Z (q × q) and h = Zᵀ ḡ₁ (q): derivatives by the moments of α∘x
            let pair = |r: usize, c: usize| {
                let half = if r == c { 1.0 } else { 0.5 };
                half * by.two[(packed(r.max(c), r.min(c)), i)]
            };
            let entry = |k: usize, l: usize| -> f64 {
                (0..m)
                    .flat_map(|r| (0..m).map(move |c| (r, c)))
                    .map(|(r, c)| z[(r, k)] * pair(r, c) * z[(c, l)])
                    .sum()
            };
            for k in 0..q {
                let first: f64 = (0..m).map(|r| z[(r, k)] * by.one[(r, i)]).sum();
                let across: f64 = (0..q).map(|l| entry(k, l) * alpha[l] * mu[l]).sum();
                let own = entry(k, k) * alpha[k];
                by.mean[i * q + k] += alpha[k] * (first + 2.0 * across + 2.0 * zero * mu[k]);
                by.variance[i * q + k] += alpha[k] * (own + zero);
                if let Some(sums) = sums.as_deref_mut() {
                    sums.relevance[k] += mu[k] * first
                        + 2.0 * mu[k] * across
                        + 2.0 * own * s[k]
                        + zero * (mu[k] * mu[k] + s[k]);
                }
            }
        }
    }

    /// Derivatives by the points (M × q) and by α (q) of what the rows add up to. The points of a linear kernel
    /// stay where they are.
    pub(crate) fn by_points(&self, sums: &PsiAdjoint) -> (Mat<f64>, Vec<f64>) {
        let (m, q) = (self.points.nrows(), self.kernel.n_latent());
        let (mut points, mut relevance) = (Mat::zeros(m, q), sums.relevance.clone());
        if self.kernel.form() == LatentForm::Linear {
            return (points, relevance);
        }
        for (i, j) in (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let (pair, z) = (packed(i, j), &self.points);
            let all = sums.pairs[(pair, 2 * q)];
            for k in 0..q {
                let (minus_a, twice) = (sums.pairs[(pair, k)], sums.pairs[(pair, q + k)]);
                let middle = 0.5 * (z[(i, k)] + z[(j, k)]);
                let by_middle = 2.0 * minus_a * middle + twice; // of −a z̄² + 2aμ z̄
                let apart = z[(i, k)] - z[(j, k)];
                let by_apart = -0.5 * self.kernel.relevance()[k] * apart * all;
                points[(i, k)] += 0.5 * by_middle + by_apart;
                points[(j, k)] += 0.5 * by_middle - by_apart;
                relevance[k] -= 0.25 * apart * apart * all;
            }
        }
        for (i, k) in (0..m).flat_map(|i| (0..q).map(move |k| (i, k))) {
            let (half, first) = (sums.singles[(i, k)], sums.singles[(i, q + k)]);
            points[(i, k)] += 2.0 * half * self.points[(i, k)] + first;
        }
        (points, relevance)
    }
}

impl PsiAdjoint {
    /// Takes in the derivatives of other rows.
    pub(crate) fn add(&mut self, other: &Self) {
        self.pairs += &other.pairs;
        self.singles += &other.singles;
        self.relevance.iter_mut().zip(&other.relevance).for_each(|(a, b)| *a += b);
        self.log_variance += other.log_variance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: [f64; 6] = [0.3, -1.2, 0.0, 2.5, -0.7, 0.4];
    const VARIANCE: [f64; 6] = [0.2, 0.9, 1e-3, 0.5, 2.0, 0.05];

    fn psi(form: LatentForm) -> Psi {
        let z = Mat::from_fn(3, 2, |i, k| [[0.5, -1.0], [-0.4, 0.3], [1.5, 1.0]][i][k]);
        Psi::new(LatentKernel::new(form, 1.7, vec![0.8, 2.3]).unwrap(), z)
    }

    /// E f(x) for x ~ N(m, v), by the trapezoidal rule, whose error falls faster than any power.
    fn expect(m: f64, v: f64, f: impl Fn(f64) -> f64) -> f64 {
        let h = 0.02;
        let weight = |t: f64| h * (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt();
        (-600..=600).map(|i| f64::from(i) * h).map(|t| weight(t) * f(m + v.sqrt() * t)).sum()
    }

    #[test]
    fn rbf_statistics_are_those_of_quadrature() {
        let psi = psi(LatentForm::Rbf);
        let (block, alpha, z) = (psi.of(&MEAN, &VARIANCE), [0.8, 2.3], psi.points());
        let factor = |k: usize, x: f64, m: usize| (-0.5 * alpha[k] * (x - z[(m, k)]).powi(2)).exp();
        let close = |found: f64, expected: f64| {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1e-3), "{found} {expected}");
        };
        for (i, m) in (0..3).flat_map(|i| (0..3).map(move |m| (i, m))) {
            let over = |f: &dyn Fn(usize, f64) -> f64| -> f64 {
                (0..2).map(|k| expect(MEAN[2 * i + k], VARIANCE[2 * i + k], |x| f(k, x))).product()
            };
            close(block.one[(m, i)], 1.7 * over(&|k, x| factor(k, x, m)));
            for l in 0..=m {
                let two = 1.7 * 1.7 * over(&|k, x| factor(k, x, m) * factor(k, x, l));
                close(block.two[(packed(m, l), i)], two);
            }
        }
        assert_eq!(block.zero, [1.7; 3]);
    }

    #[test]
    fn linear_statistics_are_those_of_quadrature() {
        let psi = psi(LatentForm::Linear);
        let block = psi.of(&MEAN, &VARIANCE);
        let (kernel, z) = (psi.kernel(), psi.points());
        let point = |m: usize| [z[(m, 0)], z[(m, 1)]];
        for (i, m) in (0..3).flat_map(|i| (0..3).map(move |m| (i, m))) {
            let over = |f: &dyn Fn(&[f64]) -> f64| {
                let inner = |x: f64| expect(MEAN[2 * i + 1], VARIANCE[2 * i + 1], |y| f(&[x, y]));
                expect(MEAN[2 * i], VARIANCE[2 * i], inner)
            };
            let one = over(&|x| kernel.of(x, &point(m)));
            let two = over(&|x| kernel.of(x, &point(m)) * kernel.of(x, &point(0)));
            assert!((block.one[(m, i)] - one).abs() < 1e-12 * (1.0 + one.abs()), "{one}");
            assert!((block.two[(packed(m, 0), i)] - two).abs() < 1e-12 * (1.0 + two.abs()), "{two}");
            if m == 0 {
                let zero = over(&|x| kernel.own(x));
                assert!((block.zero[i] - zero).abs() < 1e-12 * (1.0 + zero), "{zero}");
            }
        }
    }
}

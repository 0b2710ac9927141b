//! The collapsed bound of a Bayesian GP-LVM, and its derivatives by the sums that rows add up to \[TL10, eqs 14–17\].
//!
//! With K = K(Z, Z) = LLᵀ, A = L⁻¹Ψ₂L⁻ᵀ, B = I + βA and C = L⁻¹Ψ₁ᵀY, features that are observed in the same n rows
//! add, for each of them,
//!
//! F = −n/2 log 2π + n/2 log β − ½ log|B| − β/2 yᵀy + β²/2 cᵀB⁻¹c − β/2 (ψ₀ − tr A),
//!
//! and the positions take off their divergence from N(0, I). Nothing here is inverted but triangles.

use crate::error::{Error, Result};
use crate::evidence::PsiSums;
use crate::linalg::{Cholesky, Mat, MatRef, packed, packed_len, product};
use crate::parallel;

/// What is added to the diagonal of K, relative to the kernel's variance: inducing points may fall together.
pub(crate) const JITTER: f64 = 1e-6;

/// The bound, and what the way back to positions and parameters begins with.
#[derive(Debug)]
pub(crate) struct Collapsed {
    pub(crate) value: f64,
    pub(crate) by_zero: Vec<f64>,   // by ψ₀ of each group (g)
    pub(crate) by_one: Mat<f64>,    // by Ψ₁ᵀY (M × p)
    pub(crate) by_two: Mat<f64>,    // by pairs of Ψ₂, those off the diagonal counted twice (P × g)
    pub(crate) by_kernel: Mat<f64>, // by K (M × M)
    pub(crate) by_log_precision: f64,
}

/// The function at the inducing points, given the rows: what predictions need.
#[derive(Debug, Clone)]
pub(crate) struct FunctionPosterior {
    pub(crate) weights: Mat<f64>, // βVΨ₁ᵀY, V = (K + βΨ₂)⁻¹ (M × p): the mean at x is k(x, Z) times it
    pub(crate) reduction: Mat<f64>, // K⁻¹ − V, pairs (P × g): the variance at x is k(x, x) less k(x, Z) (…) k(Z, x)
}

/// What one group of features needs.
struct Group {
    a: Mat<f64>,       // A (M × M)
    inverse: Mat<f64>, // B⁻¹ (M × M)
    log_det: f64,      // log|B|
    solved: Mat<f64>,  // D = B⁻¹C (M × features)
    quadratic: f64,    // Σ cᵀB⁻¹c
}

impl Group {
    fn of(lower: MatRef<'_, f64>, two: &[f64], one: MatRef<'_, f64>, beta: f64) -> Result<Self> {
        let m = lower.nrows();
        let psi = Mat::from_fn(m, m, |i, j| two[packed(i.max(j), i.min(j))]);
        let a = product(product(lower, psi.as_ref()).as_ref(), lower.transpose());
        let b = Mat::from_fn(m, m, |i, j| beta * a[(i, j)] + if i == j { 1.0 } else { 0.0 });
        let factor = Cholesky::new(b, "I + βA of the bound")?;
        let mut inverse = Mat::identity(m, m);
        factor.solve(inverse.as_mut());
        let c = product(lower, one);
        let mut solved = c.clone();
        factor.solve(solved.as_mut());
        let quadratic = inner(&c, &solved);
        Ok(Self { a, inverse, log_det: factor.log_det(), solved, quadratic })
    }
}

/// Σ a ∘ b.
fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let column =
        |j: usize| -> f64 { a.col_as_slice(j).iter().zip(b.col_as_slice(j)).map(|(a, b)| a * b).sum() };
    (0..a.ncols()).map(column).sum()
}

/// L⁻¹ (M × M) of K = LLᵀ.
fn inverse_root(kernel: &Mat<f64>) -> Result<Mat<f64>> {
    let factor = Cholesky::new(kernel.clone(), "the kernel matrix of the inducing points")?;
    let mut lower = Mat::identity(kernel.nrows(), kernel.nrows());
    factor.solve_lower(lower.as_mut());
    Ok(lower)
}

/// The features of a group.
fn features(sums: &PsiSums, group: usize) -> std::ops::Range<usize> {
    match sums.weight.len() {
        1 => 0..sums.squares.len(),
        _ => group..group + 1,
    }
}

/// One group's part of the bound.
struct Part {
    value: f64,
    by_zero: f64,
    by_one: Mat<f64>,    // (M × features)
    by_two: Vec<f64>,    // (P)
    by_kernel: Mat<f64>, // Lᵀ K̄ L (M × M)
    by_log_precision: f64,
}

impl Collapsed {
    /// Of a kernel matrix with its jitter (M × M) and noise precision β.
    ///
    /// # Errors
    /// When a matrix is not positive definite in floating point, or the bound is not finite.
    pub(crate) fn of(kernel: &Mat<f64>, sums: &PsiSums, beta: f64) -> Result<Self> {
        let lower = inverse_root(kernel)?;
        let (m, p, groups) = (kernel.nrows(), sums.squares.len(), sums.weight.len());
        let parts = parallel::try_map(groups, |g| part(&lower, sums, g, beta))?;
        let mut out = Self {
            value: -sums.divergence.iter().sum::<f64>(),
            by_zero: Vec::with_capacity(groups),
            by_one: Mat::zeros(m, p),
            by_two: Mat::zeros(packed_len(m), groups),
            by_kernel: Mat::zeros(m, m),
            by_log_precision: 0.0,
        };
        for (g, part) in parts.into_iter().enumerate() {
            out.value += part.value;
            out.by_zero.push(part.by_zero);
            out.by_log_precision += part.by_log_precision;
            out.by_kernel += &part.by_kernel;
            out.by_two.col_as_slice_mut(g).copy_from_slice(&part.by_two);
            for (c, j) in features(sums, g).enumerate() {
                out.by_one.col_as_slice_mut(j).copy_from_slice(part.by_one.col_as_slice(c));
            }
        }
        out.by_kernel = sandwich(&lower, &out.by_kernel);
        if out.value.is_finite() { Ok(out) } else { Err(Error::Scale) }
    }
}

/// LᵀXL with the inverse root in place of L (M × M).
fn sandwich(lower: &Mat<f64>, inside: &Mat<f64>) -> Mat<f64> {
    product(product(lower.transpose(), inside.as_ref()).as_ref(), lower.as_ref())
}

fn part(lower: &Mat<f64>, sums: &PsiSums, g: usize, beta: f64) -> Result<Part> {
    let (m, columns) = (lower.nrows(), features(sums, g));
    let one = sums.one.as_ref().subcols(columns.start, columns.len());
    let Group { a, inverse, log_det, solved, quadratic } =
        Group::of(lower.as_ref(), sums.two.col_as_slice(g), one, beta)?;
    let (p, n) = (columns.len() as f64, sums.weight[g]);
    let squares: f64 = sums.squares[columns].iter().sum();
    let trace: f64 = (0..m).map(|i| a[(i, i)]).sum();
    let unexplained = (sums.zero[g] - trace).max(0.0); // cannot be negative but for rounding
    let constant = 0.5 * p * n * (beta / std::f64::consts::TAU).ln();
    let value = constant - 0.5 * p * log_det - 0.5 * beta * squares + 0.5 * beta * beta * quadratic
        - 0.5 * beta * p * unexplained;
    let outer = product(solved.as_ref(), solved.transpose()); // DDᵀ (M × M)
    let by_beta = 0.5 * p * n / beta - 0.5 * p * inner(&inverse, &a) - 0.5 * squares + beta * quadratic
        - 0.5 * beta * beta * inner(&outer, &a)
        - 0.5 * p * unexplained;
    // β p/2 (I − B⁻¹) − β³/2 DDᵀ, and the same without β p/2 A for K
    let explained = |i: usize, j: usize| f64::from(u8::from(i == j)) - inverse[(i, j)];
    let two = Mat::from_fn(m, m, |i, j| 0.5 * beta * (p * explained(i, j) - beta * beta * outer[(i, j)]));
    let by_kernel = Mat::from_fn(m, m, |i, j| {
        0.5 * p * (explained(i, j) - beta * a[(i, j)]) - 0.5 * beta * beta * outer[(i, j)]
    });
    let two = sandwich(lower, &two);
    let pairs = (0..m).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let by_two = pairs.map(|(i, j)| if i == j { two[(i, j)] } else { two[(i, j)] + two[(j, i)] }).collect();
    let mut by_one = product(lower.transpose(), solved.as_ref());
    by_one.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= beta * beta));
    Ok(Part { value, by_zero: -0.5 * beta * p, by_one, by_two, by_kernel, by_log_precision: beta * by_beta })
}

impl FunctionPosterior {
    /// Of a kernel matrix with its jitter (M × M) and noise precision β.
    pub(crate) fn of(kernel: &Mat<f64>, sums: &PsiSums, beta: f64) -> Result<Self> {
        let lower = inverse_root(kernel)?;
        let (m, groups) = (kernel.nrows(), sums.weight.len());
        let mut weights = Mat::zeros(m, sums.squares.len());
        let mut reduction = Mat::zeros(packed_len(m), groups);
        for g in 0..groups {
            let columns = features(sums, g);
            let one = sums.one.as_ref().subcols(columns.start, columns.len());
            let group = Group::of(lower.as_ref(), sums.two.col_as_slice(g), one, beta)?;
            let found = product(lower.transpose(), group.solved.as_ref());
            for (c, j) in columns.enumerate() {
                let into = weights.col_as_slice_mut(j);
                into.iter_mut().zip(found.col_as_slice(c)).for_each(|(w, x)| *w = beta * x);
            }
            let explained = Mat::from_fn(m, m, |i, j| f64::from(u8::from(i == j)) - group.inverse[(i, j)]);
            let reduced = sandwich(&lower, &explained);
            for (i, j) in (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                reduction[(packed(i, j), g)] = 0.5 * (reduced[(i, j)] + reduced[(j, i)]);
            }
        }
        Ok(Self { weights, reduction })
    }
}

//! The centred kernel matrix and its leading eigenvectors: exact kernel PCA \[SSM98\].

use super::Components;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::{
    BlockKrylov, Eigen, Mat, MatRef, SymmetricTiles, leading_eigen_by_reading, leading_eigen_of,
    leading_entry, negligible, power_of_two, symmetric_eigen,
};

/// Below this size the whole decomposition is as fast as the leading part.
const SMALL: usize = 96;
/// Components that are looked for first where a share of the trace is asked for.
const FIRST: usize = 16;

/// Residual at which the most negative eigenvalue counts as found: its error is about the square.
const LEAST_RESIDUAL: f64 = 1e-5;

/// The kernel matrix of weighted rows, centred as it is multiplied.
///
/// With r = √w and n = Σw, the matrix is $G = (I - rr^\top/n) R K R (I - rr^\top/n)$, R = diag(r): its eigenvalues
/// are n times the variances along the directions in the feature space. Half of K is the only array of such a size.
pub(crate) struct CentredKernel {
    values: SymmetricTiles, // K (n × n)
    roots: Vec<f64>,        // √w (n)
    weight: f64,
    unit: f64,
    /// Σⱼ wⱼ k(xᵢ, xⱼ) / n (n).
    pub(crate) means: Vec<f64>,
    /// Squared length of the mean in the feature space.
    pub(crate) square: f64,
    /// Trace of G.
    pub(crate) trace: f64,
}

/// What was found of the spectrum of a centred kernel.
#[derive(Debug, Clone)]
pub(crate) struct KernelSpectrum {
    /// Eigenvalues that are kept, descending; 0 beyond the rank.
    pub(crate) values: Vec<f64>,
    /// Their unit vectors (n × q).
    pub(crate) vectors: Mat<f64>,
    /// Number of eigenvalues above rounding among those that are kept.
    pub(crate) rank: usize,
    /// Trace of the centred kernel.
    pub(crate) trace: f64,
    /// Sum of the eigenvalues that were left out.
    pub(crate) rest: f64,
    /// The most negative eigenvalue, where there is one beyond rounding.
    pub(crate) negative: Option<f64>,
}

/// How a spectrum is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpectrumOptions {
    pub(crate) components: Components,
    /// Whether the whole decomposition is made in any case.
    pub(crate) whole: bool,
    /// Whether eigenvalues may be negative.
    pub(crate) indefinite: bool,
    pub(crate) seed: u64,
}

impl CentredKernel {
    /// Of kernel values (n × n) and weights.
    pub(crate) fn new(values: SymmetricTiles, weights: &[f64]) -> Result<Self> {
        if !values.is_all_finite() {
            return Err(Error::Scale);
        }
        let n = weights.len();
        let weight: f64 = weights.iter().sum();
        let shares = Mat::from_fn(n, 1, |i, _| weights[i] / weight);
        let means: Vec<f64> = values.times(shares.as_ref()).col_as_slice(0).to_vec();
        let diagonal = values.diagonal();
        let square = means.iter().enumerate().map(|(i, m)| m * shares[(i, 0)]).sum::<f64>();
        // Each term is a squared distance from the mean: none is a difference of large sums.
        let own = |i: usize| weights[i] * (diagonal[i] - 2.0 * means[i] + square);
        let trace = (0..n).map(own).sum();
        let largest = (0..n).fold(0.0, |a: f64, i| a.max(diagonal[i].abs() * weights[i]));
        let roots = weights.iter().map(|w| w.sqrt()).collect();
        Ok(Self { values, roots, weight, unit: power_of_two(largest), means, square, trace })
    }

    /// G B / unit for a block of vectors (n × b): the block is centred, never the matrix.
    fn multiply(&self, block: MatRef<'_, f64>) -> Mat<f64> {
        let mut inner = block.to_owned();
        self.centre(&mut inner);
        self.times_roots(&mut inner, 1.0);
        let mut out = self.values.times(inner.as_ref());
        self.times_roots(&mut out, 1.0 / self.unit);
        self.centre(&mut out);
        out
    }

    /// B − r(rᵀB)/n.
    fn centre(&self, block: &mut Mat<f64>) {
        for column in block.col_iter_mut() {
            let along: f64 = column.as_ref().iter().zip(&self.roots).map(|(b, r)| b * r).sum();
            let shift = along / self.weight;
            column.iter_mut().zip(&self.roots).for_each(|(b, r)| *b -= shift * r);
        }
    }

    fn times_roots(&self, block: &mut Mat<f64>, factor: f64) {
        for column in block.col_iter_mut() {
            column.iter_mut().zip(&self.roots).for_each(|(b, r)| *b *= r * factor);
        }
    }

    /// The leading eigenpairs, or all.
    pub(crate) fn solve(self, options: SpectrumOptions, control: &Control<'_>) -> Result<KernelSpectrum> {
        let trace = self.trace;
        if !trace.is_finite() {
            return Err(Error::Scale);
        }
        let negative = match options.indefinite && !options.whole {
            true => self.least(options.seed, control)?,
            false => None,
        };
        let roots = self.roots.clone();
        let found = if options.whole { None } else { self.leading(options, control)? };
        let (eigen, whole) = match found {
            Some(eigen) => (eigen, false),
            None => (self.whole()?, true),
        };
        let n = eigen.vectors.nrows();
        let floor = rounding(n, &eigen.values);
        let last = eigen.values.last().copied().filter(|v| whole && *v < -floor);
        let q = number(options.components, &eigen.values, trace, floor);
        let mut vectors = eigen.vectors.subcols(0, q).to_owned();
        coordinates_signed(&mut vectors, &roots);
        let known = |v: &f64| if v.abs() <= floor { 0.0 } else { *v };
        let values: Vec<f64> = eigen.values[..q].iter().map(known).collect();
        let rank = values.iter().filter(|v| **v > 0.0).count();
        let rest = match whole {
            true => eigen.values[q..].iter().map(known).sum(),
            false => trace - values.iter().sum::<f64>(),
        };
        Ok(KernelSpectrum { values, vectors, rank, trace, rest, negative: negative.or(last) })
    }

    /// By block Lanczos iteration: so many, or as many as hold a share of the trace; `None` where it does not pay.
    fn leading(&self, options: SpectrumOptions, control: &Control<'_>) -> Result<Option<Eigen>> {
        let n = self.roots.len();
        let pays = |q: usize| n > SMALL && 6 * q < n;
        let find = |q: usize| {
            let multiply = |block: MatRef<'_, f64>| {
                control.check()?;
                Ok(self.multiply(block))
            };
            let found = leading_eigen_by_reading((n, q, options.seed), multiply)?.converged();
            Ok::<_, Error>(found.map(|eigen| scaled(eigen, self.unit)))
        };
        match options.components {
            Components::Count(q) if pays(q) => find(q.max(1)),
            Components::Fraction(share) => {
                let mut q = FIRST;
                while pays(q) {
                    let Some(found) = find(q)? else { return Ok(None) };
                    if found.values.iter().sum::<f64>() >= share * self.trace {
                        return Ok(Some(found));
                    }
                    q *= 2;
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The most negative eigenvalue, where there is one beyond rounding; where many are all but the same, nearly.
    fn least(&self, seed: u64, control: &Control<'_>) -> Result<Option<f64>> {
        let n = self.roots.len();
        let krylov = BlockKrylov::new(n, 1, seed).tolerance(LEAST_RESIDUAL);
        let found = leading_eigen_of(krylov, |block| {
            control.check()?;
            let mut out = self.multiply(block);
            out.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x = -*x));
            Ok(out)
        })?;
        let least = found.best.and_then(|eigen| eigen.values.first().map(|v| -v * self.unit));
        Ok(least.filter(|v| *v < -(rounding(n, &[self.trace.abs()]))))
    }

    /// All eigenpairs, of the centred matrix.
    fn whole(self) -> Result<Eigen> {
        let Self { values, means, square, roots, unit, .. } = self;
        let centred = |i: usize, j: usize, value: f64| {
            (value - means[i] - means[j] + square) * roots[i] * roots[j] / unit
        };
        Ok(scaled(symmetric_eigen(values.into_whole(centred).as_ref())?, unit))
    }
}

fn scaled(mut eigen: Eigen, unit: f64) -> Eigen {
    eigen.values.iter_mut().for_each(|v| *v *= unit);
    eigen
}

/// Flips vectors so that the coordinate of largest magnitude, v/√w, is positive: a row of weight 2 has the sign of
/// a row that is written twice.
fn coordinates_signed(vectors: &mut Mat<f64>, roots: &[f64]) {
    let divided = |v: f64, root: f64| if root > 0.0 { v / root } else { 0.0 };
    for j in 0..vectors.ncols() {
        let column = vectors.col_as_slice_mut(j);
        let along: Vec<f64> = column.iter().zip(roots).map(|(v, root)| divided(*v, *root)).collect();
        if !along.is_empty() && along[leading_entry(&along)] < 0.0 {
            column.iter_mut().for_each(|v| *v = -*v);
        }
    }
}

/// An eigenvalue up to this is rounding.
pub(crate) fn rounding(n: usize, values: &[f64]) -> f64 {
    negligible(n, n, values.iter().fold(0.0, |a: f64, v| a.max(v.abs())))
}

/// How many of the eigenvalues are kept.
pub(crate) fn number(components: Components, values: &[f64], trace: f64, floor: f64) -> usize {
    let positive = values.iter().filter(|v| **v > floor).count();
    match components {
        Components::Count(q) => q.min(values.len()),
        Components::Fraction(share) => {
            let mut held = 0.0;
            let covers = |v: &f64| {
                held += v;
                held >= share * trace
            };
            values[..positive].iter().position(covers).map_or(positive, |q| q + 1)
        }
        _ => positive,
    }
}

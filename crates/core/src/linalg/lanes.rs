//! Many small positive definite matrices at once: entry (i, j) of all of them lies side by side, one lane
//! each.
//!
//! A q × q factorisation is too small for vector instructions, but the same step of 64 of them is not. Lower
//! triangles are packed row after row, so the first entries of a larger packed matrix are those of its
//! leading block.

use super::{Cholesky, Mat, MatRef, clean_zeros};

/// Where entry (i, j), j ≤ i, of a packed lower triangle lies.
pub(crate) const fn packed(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

/// Entries of a packed lower triangle.
pub(crate) const fn packed_len(q: usize) -> usize {
    q * (q + 1) / 2
}

/// The packed products aⱼaⱼᵀ of the columns of `a` (q × p), one column each: (q(q+1)/2 × p).
///
/// Added up over the features that a row has they give AᵀA of those, so a product with the 0/1 mask gives all
/// rows'.
pub(crate) fn pair_products(a: MatRef<'_, f64>) -> Mat<f64> {
    let q = a.nrows();
    let mut out = clean_zeros(packed_len(q), a.ncols());
    for j in 0..a.ncols() {
        let (to, from) = (out.col_as_slice_mut(j), a.col(j));
        for i in 0..q {
            (0..=i).for_each(|k| to[packed(i, k)] = from[i] * from[k]);
        }
    }
    out
}

/// Cholesky factors L of matrices M = L Lᵀ, one lane each.
pub(crate) struct Lanes {
    q: usize,
    factors: Mat<f64>,            // (lanes × q(q+1)/2)
    arch: pulp::Arch, // vector instructions for each short loop: longer ones are not inlined into them
    dense: Option<Box<Cholesky>>, // of the only matrix
}

/// The lower triangle of one matrix as a lane (1 × q(q+1)/2).
fn packed_rows(matrix: &Mat<f64>) -> Mat<f64> {
    let mut out = Mat::zeros(1, packed_len(matrix.nrows()));
    for i in 0..matrix.nrows() {
        (0..=i).for_each(|j| out[(0, packed(i, j))] = matrix[(i, j)]);
    }
    out
}

/// Size from which one matrix alone is factored dense.
const DENSE: usize = 24;

impl Lanes {
    /// Factors `M + ridge · I` for packed matrices M, positive semidefinite (lanes × q(q+1)/2).
    ///
    /// In exact arithmetic no pivot lies below the ridge; in ours none is let below it, nor below the
    /// rounding of the diagonal, so this cannot fail.
    pub(crate) fn new(matrices: Mat<f64>, q: usize, ridge: f64) -> Self {
        let mut lanes = Self { q, factors: matrices, arch: pulp::Arch::new(), dense: None };
        lanes.factor(ridge, None);
        lanes
    }

    /// Factors M for solutions alone, with 0 for the unknowns that M does not tell from those before them: of
    /// whose diagonal at most the share `unknown` of the lane is left.
    pub(crate) fn of_known(matrices: Mat<f64>, q: usize, unknown: &[f64]) -> Self {
        let mut lanes = Self { q, factors: matrices, arch: pulp::Arch::new(), dense: None };
        lanes.factor(0.0, Some(unknown));
        lanes
    }

    /// The same; where there is one large matrix only, by a dense factor, which is many times faster than a
    /// lane of one. The last bits then depend on how many matrices there are.
    pub(crate) fn new_any(matrices: Mat<f64>, q: usize, ridge: f64) -> Self {
        if matrices.nrows() == 1 && q >= DENSE {
            let entry = |i: usize, j: usize| matrices[(0, packed(i.max(j), i.min(j)))];
            let dense = Mat::from_fn(q, q, |i, j| entry(i, j) + if i == j { ridge } else { 0.0 });
            if let Ok(factor) = Cholesky::new(dense, "a covariance of latent variables") {
                let factors = packed_rows(factor.lower());
                return Self { q, factors, arch: pulp::Arch::new(), dense: Some(Box::new(factor)) };
            }
        }
        Self::new(matrices, q, ridge)
    }

    /// Number of matrices.
    pub(crate) fn lanes(&self) -> usize {
        self.factors.nrows()
    }

    pub(super) fn entry(&self, i: usize, j: usize) -> &[f64] {
        self.factors.col_as_slice(packed(i, j))
    }

    fn factor(&mut self, ridge: f64, unknown: Option<&[f64]>) {
        let mut sum = vec![0.0; self.lanes()];
        let mut inverse = vec![0.0; self.lanes()];
        let mut diagonal = Vec::new();
        for j in 0..self.q {
            for i in j..self.q {
                sum.copy_from_slice(self.entry(i, j));
                (0..j).for_each(|k| self.subtract_product(&mut sum, self.entry(i, k), self.entry(j, k)));
                let (arch, out) = (self.arch, self.factors.col_as_slice_mut(packed(i, j)));
                if i == j {
                    diagonal.clear();
                    diagonal.extend_from_slice(out);
                    arch.dispatch(|| pivot(out, &sum, &mut inverse, ridge));
                    let unknown = unknown.into_iter().flatten().zip(&diagonal).map(|(share, d)| share * d);
                    for (l, _) in unknown.enumerate().filter(|(l, least)| sum[*l] <= *least) {
                        (out[l], inverse[l]) = (f64::INFINITY, 0.0);
                    }
                } else {
                    arch.dispatch(|| multiply(out, &sum, &inverse));
                }
            }
        }
    }

    /// `b ← M⁻¹ b` for one right-hand side per lane (lanes × q).
    pub(crate) fn solve(&self, b: &mut Mat<f64>) {
        self.forward(b);
        self.backward(b);
    }

    /// Solutions for right-hand sides of which each belongs to the matrix of its lane (right-hand sides × q).
    pub(crate) fn solved(&self, lane: &[usize], right: &Mat<f64>) -> Mat<f64> {
        let mut x = right.clone();
        if self.lanes() == lane.len() {
            self.solve(&mut x); // lanes are numbered as they first appear, so each has its own
        } else {
            self.select(lane).solve(&mut x);
        }
        x
    }

    /// `b ← L⁻ᵀ b`: independent normal deviates become deviates of covariance M⁻¹.
    pub(crate) fn solve_transposed(&self, b: &mut Mat<f64>) {
        self.backward(b);
    }

    fn forward(&self, b: &mut Mat<f64>) {
        let mut sum = vec![0.0; self.lanes()];
        for i in 0..self.q {
            sum.copy_from_slice(b.col_as_slice(i));
            (0..i).for_each(|k| self.subtract_product(&mut sum, self.entry(i, k), b.col_as_slice(k)));
            self.divide(b.col_as_slice_mut(i), &sum, self.entry(i, i));
        }
    }

    fn backward(&self, b: &mut Mat<f64>) {
        let mut sum = vec![0.0; self.lanes()];
        for i in (0..self.q).rev() {
            sum.copy_from_slice(b.col_as_slice(i));
            (i + 1..self.q)
                .for_each(|k| self.subtract_product(&mut sum, self.entry(k, i), b.col_as_slice(k)));
            self.divide(b.col_as_slice_mut(i), &sum, self.entry(i, i));
        }
    }

    /// log |M| of each lane.
    pub(crate) fn log_det(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.lanes()];
        let mut product = vec![1.0; self.lanes()];
        for i in 0..self.q {
            product.iter_mut().zip(self.entry(i, i)).for_each(|(p, l)| *p *= l);
            // Logarithms are dear, and a few factors stay in range.
            if i % 4 == 3 || i + 1 == self.q {
                out.iter_mut()
                    .zip(&mut product)
                    .for_each(|(o, p)| *o += 2.0 * std::mem::replace(p, 1.0).ln());
            }
        }
        out
    }

    /// `scale · M⁻¹` of each lane, packed (lanes × q(q+1)/2).
    pub(crate) fn inverse(&self, scale: f64) -> Mat<f64> {
        if let Some(factor) = &self.dense {
            let mut inverse = Mat::identity(self.q, self.q);
            factor.solve(inverse.as_mut());
            inverse.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= scale));
            return packed_rows(&inverse);
        }
        self.inverse_of_factors().squared(scale)
    }

    /// L⁻¹.
    pub(super) fn inverse_of_factors(&self) -> Self {
        let factors = Mat::zeros(self.lanes(), packed_len(self.q));
        let mut out = Self { q: self.q, factors, arch: self.arch, dense: None };
        let mut sum = vec![0.0; self.lanes()];
        for j in 0..self.q {
            for i in j..self.q {
                sum.fill(if i == j { 1.0 } else { 0.0 });
                (j..i).for_each(|k| self.subtract_product(&mut sum, self.entry(i, k), out.entry(k, j)));
                self.divide(out.factors.col_as_slice_mut(packed(i, j)), &sum, self.entry(i, i));
            }
        }
        out
    }

    /// `scale · LᵀL`.
    fn squared(&self, scale: f64) -> Mat<f64> {
        let mut out = Mat::zeros(self.lanes(), packed_len(self.q));
        for i in 0..self.q {
            for j in 0..=i {
                let sum = out.col_as_slice_mut(packed(i, j));
                for k in i..self.q {
                    self.arch.dispatch(|| add_product(sum, scale, self.entry(k, i), self.entry(k, j)));
                }
            }
        }
        out
    }

    /// The factors of the given lanes, any number of times each.
    pub(crate) fn select(&self, lanes: &[usize]) -> Self {
        let mut factors = Mat::zeros(lanes.len(), self.factors.ncols());
        for j in 0..factors.ncols() {
            let from = self.factors.col_as_slice(j);
            factors.col_as_slice_mut(j).iter_mut().zip(lanes).for_each(|(o, lane)| *o = from[*lane]);
        }
        Self { q: self.q, factors, arch: self.arch, dense: None }
    }

    fn subtract_product(&self, sum: &mut [f64], a: &[f64], b: &[f64]) {
        self.arch.dispatch(|| add_product(sum, -1.0, a, b));
    }

    fn divide(&self, out: &mut [f64], sum: &[f64], by: &[f64]) {
        self.arch.dispatch(|| out.iter_mut().zip(sum.iter().zip(by)).for_each(|(o, (s, l))| *o = s / l));
    }
}

#[inline(always)]
fn pivot(out: &mut [f64], sum: &[f64], inverse: &mut [f64], ridge: f64) {
    for ((o, s), r) in out.iter_mut().zip(sum).zip(inverse) {
        let root = (s + ridge).max(ridge).max(f64::EPSILON * *o).max(f64::MIN_POSITIVE).sqrt();
        *o = root;
        *r = 1.0 / root;
    }
}

#[inline(always)]
fn multiply(out: &mut [f64], a: &[f64], b: &[f64]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(o, (a, b))| *o = a * b);
}

#[inline(always)]
fn add_product(sum: &mut [f64], factor: f64, a: &[f64], b: &[f64]) {
    sum.iter_mut().zip(a.iter().zip(b)).for_each(|(s, (a, b))| *s += factor * a * b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Cholesky, product};

    /// Each lane against the ordinary factor of the same matrix.
    #[test]
    fn lanes_are_ordinary_factors() {
        let (q, ridge) = (4, 0.3);
        let parts: Vec<Mat<f64>> = (0..9)
            .map(|l| Mat::from_fn(q, 6, |i, j| ((7 * i + 3 * j + 5 * l) % 11) as f64 / 3.0 - 1.0))
            .collect();
        let mut grams = Mat::zeros(parts.len(), packed_len(q));
        for (l, a) in parts.iter().enumerate() {
            let pairs = pair_products(a.as_ref());
            (0..packed_len(q)).for_each(|k| grams[(l, k)] = pairs.row(k).iter().sum());
        }
        let lanes = Lanes::new(grams, q, ridge);
        let (log_det, inverse) = (lanes.log_det(), lanes.inverse(2.0));
        let mut x = Mat::from_fn(parts.len(), q, |l, i| (l + i) as f64);
        let mut half = x.clone();
        lanes.solve(&mut x);
        lanes.solve_transposed(&mut half);
        for (l, a) in parts.iter().enumerate() {
            let mut m = product(a.as_ref(), a.transpose());
            (0..q).for_each(|i| m[(i, i)] += ridge);
            let dense = Cholesky::new(m, "test").unwrap();
            let mut b = Mat::from_fn(q, 1, |i, _| (l + i) as f64);
            dense.solve(b.as_mut());
            let mut identity = Mat::from_fn(q, q, |i, j| if i == j { 2.0 } else { 0.0 });
            dense.solve(identity.as_mut());
            assert!((dense.log_det() - log_det[l]).abs() < 1e-12);
            for i in 0..q {
                assert!((b[(i, 0)] - x[(l, i)]).abs() < 1e-12);
                (0..=i).for_each(|j| assert!((identity[(i, j)] - inverse[(l, packed(i, j))]).abs() < 1e-12));
                // Lᵀ (L⁻ᵀ b) = b
                let back: f64 = (i..q).map(|k| dense.lower()[(k, i)] * half[(l, k)]).sum();
                assert!((back - (l + i) as f64).abs() < 1e-12);
            }
        }
    }

    /// The second unknown is the first but for 1e-6 of its square: known to a share of 1e-7, not of 1e-5.
    #[test]
    fn unknowns_that_others_determine_are_left_at_0() {
        let matrix = [1.0, 1.0, 1.0 + 1e-6, 0.5, 0.5, 2.0]; // packed
        let lanes = Lanes::of_known(Mat::from_fn(2, 6, |_, k| matrix[k]), 3, &[1e-5, 1e-7]);
        let mut x = Mat::from_fn(2, 3, |_, i| [1.0, 2.0, 3.0][i]);
        lanes.solve(&mut x);
        // Without the second: [[1, ½], [½, 2]] x = (1, 3).
        let expected = [(1.0 * 2.0 - 0.5 * 3.0) / 1.75, 0.0, (3.0 - 0.5) / 1.75];
        (0..3).for_each(|i| assert!((x[(0, i)] - expected[i]).abs() < 1e-14, "{i}: {}", x[(0, i)]));
        let product = |i: usize| (0..3).map(|k| matrix[packed(i.max(k), i.min(k))] * x[(1, k)]).sum::<f64>();
        (0..3).for_each(|i| assert!((product(i) - (i + 1) as f64).abs() < 1e-9, "{i}: {}", product(i)));
    }

    #[test]
    fn a_singular_matrix_without_a_ridge_has_a_factor() {
        let lanes = Lanes::new(Mat::from_fn(1, 3, |_, _| 1.0), 2, 0.0); // [[1, 1], [1, 1]]
        assert!(lanes.log_det()[0].is_finite());
        assert_eq!(lanes.select(&[0, 0]).lanes(), 2);
    }
}

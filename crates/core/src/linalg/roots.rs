//! Covariances of latent variables that observed cells shrink one after the other, kept as roots, one lane
//! each.
//!
//! Let $z \sim N(m, S S^\top)$ and let a cell be $e = a^\top z + \varepsilon$, $\varepsilon \sim N(0, s)$. With
//! $f = S^\top a$ and $\alpha = s + f^\top f$, the variance of the cell, the posterior is
//! $N(m + k(e - a^\top m), S' S'^\top)$ with
//!
//! - $k = S f / \alpha$,
//! - $S' = S - S f f^\top / (\alpha + \sqrt{s \alpha})$ (Potter's form, \[B77, ch. V\]).
//!
//! No entry of S is ever larger than at the start, so S is known to ε, however large a is beside √s. The sums
//! Σ aaᵀ of [`Lanes`] know the small cells of a row only to ε times the square of the large ones.

use super::{Lanes, Mat, packed, packed_len};

/// Roots S (q × q) of covariances, one lane each.
pub(crate) struct RootLanes {
    q: usize,
    roots: Mat<f64>, // (lanes × q²): entry (i, k) in column i q + k
    arch: pulp::Arch,
}

/// What one cell in each lane says.
pub(crate) struct ObservedCell {
    /// α.
    pub(crate) variance: Vec<f64>,
    /// k (lanes × q).
    pub(crate) gain: Mat<f64>,
}

impl RootLanes {
    /// Of z ~ N(0, I) in all lanes.
    pub(crate) fn identity(lanes: usize, q: usize) -> Self {
        let roots = Mat::from_fn(lanes, q * q, |_, at| f64::from(u8::from(at / q == at % q)));
        Self { q, roots, arch: pulp::Arch::new() }
    }

    /// Of z ~ N(0, scale² M⁻¹): S = scale · L⁻ᵀ for each M = L Lᵀ.
    pub(crate) fn of_inverses(factors: &Lanes, q: usize, scale: f64) -> Self {
        let inverse = factors.inverse_of_factors();
        let mut roots = Mat::zeros(factors.lanes(), q * q);
        for (i, k) in (0..q).flat_map(|i| (i..q).map(move |k| (i, k))) {
            let to = roots.col_as_slice_mut(i * q + k).iter_mut();
            to.zip(inverse.entry(k, i)).for_each(|(root, x)| *root = scale * x);
        }
        Self { q, roots, arch: pulp::Arch::new() }
    }

    fn lanes(&self) -> usize {
        self.roots.nrows()
    }

    fn entry(&self, i: usize, k: usize) -> &[f64] {
        self.roots.col_as_slice(i * self.q + k)
    }

    /// Observes a cell of loadings a (lanes × q) in each lane; a of 0 changes nothing.
    pub(crate) fn observe(&mut self, a: &Mat<f64>, noise: f64) -> ObservedCell {
        let (lanes, q, arch) = (self.lanes(), self.q, self.arch);
        let (mut f, mut gain) = (Mat::zeros(lanes, q), Mat::zeros(lanes, q));
        let mut variance = vec![noise; lanes];
        for k in 0..q {
            let f = f.col_as_slice_mut(k);
            (0..q).for_each(|i| arch.dispatch(|| add_product(f, self.entry(i, k), a.col_as_slice(i))));
            arch.dispatch(|| add_product(&mut variance, f, f));
        }
        let share = |v: &f64| 1.0 / (v + noise.sqrt() * v.sqrt());
        let shares: Vec<f64> = variance.iter().map(share).collect();
        let mut along = vec![0.0; lanes];
        for i in 0..q {
            let to = gain.col_as_slice_mut(i); // S f
            (0..q).for_each(|k| arch.dispatch(|| add_product(to, self.entry(i, k), f.col_as_slice(k))));
            along.iter_mut().zip(to.iter().zip(&shares)).for_each(|(along, (g, share))| *along = -g * share);
            for k in 0..q {
                let root = self.roots.col_as_slice_mut(i * q + k);
                arch.dispatch(|| add_product(root, &along, f.col_as_slice(k)));
            }
            to.iter_mut().zip(&variance).for_each(|(g, v)| *g /= v);
        }
        ObservedCell { variance, gain }
    }

    /// S Sᵀ of each lane, packed (lanes × q(q+1)/2).
    pub(crate) fn covariances(&self) -> Mat<f64> {
        let mut out = Mat::zeros(self.lanes(), packed_len(self.q));
        for (i, j) in (0..self.q).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let to = out.col_as_slice_mut(packed(i, j));
            for k in 0..self.q {
                self.arch.dispatch(|| add_product(to, self.entry(i, k), self.entry(j, k)));
            }
        }
        out
    }

    /// S u for vectors u (vectors × q) that each belong to a lane: independent normal deviates become
    /// deviates of covariance S Sᵀ.
    pub(crate) fn times(&self, lane: &[usize], u: &Mat<f64>) -> Mat<f64> {
        let entry = |row: usize, i: usize| {
            (0..self.q).map(|k| self.entry(i, k)[lane[row]] * u[(row, k)]).sum::<f64>()
        };
        Mat::from_fn(u.nrows(), self.q, entry)
    }

    /// S of each lane, column after column (q² × lanes).
    pub(crate) fn in_columns(&self) -> Mat<f64> {
        Mat::from_fn(self.q * self.q, self.lanes(), |at, lane| self.entry(at % self.q, at / self.q)[lane])
    }
}

#[inline(always)]
fn add_product(sum: &mut [f64], a: &[f64], b: &[f64]) {
    sum.iter_mut().zip(a.iter().zip(b)).for_each(|(s, (a, b))| *s += a * b);
}

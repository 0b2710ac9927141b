//! Low rank plus diagonal: everything about `W Wᵀ + s D` through one q × q factor, including the limit s → 0.
//!
//! With `A = D^-½ W` (p × q) and `G = AᵀA`, \[TB99, eq. 6\] and Woodbury's identity need only `M = s I + G`:
//! the posterior of z given the scaled deviation e is N(M⁻¹Aᵀe, s M⁻¹), and log |WWᵀ + sD| = log |D| + (p − q) log s + log |M|.

use super::{Cholesky, Eigen, Mat, MatMut, MatRef, mirror_lower, product, symmetric_eigen};
use crate::error::Result;

/// The factor of `M = s I + AᵀA`, or of its limit without noise.
#[derive(Debug, Clone)]
pub(crate) enum LatentFactor {
    /// s > 0: an ordinary Cholesky factor.
    Noisy {
        /// s.
        noise: f64,
        /// Of M (q × q).
        factor: Cholesky,
    },
    /// s = 0: pseudo-inverse, and the prior where the loadings say nothing.
    Noiseless {
        /// Of G (q × q).
        eigen: Eigen,
        /// Eigenvalues that are not rounding.
        rank: usize,
    },
}

impl LatentFactor {
    /// Factors `s I + AᵀA`.
    pub(crate) fn new(a: MatRef<'_, f64>, noise: f64) -> Result<Self> {
        let q = a.ncols();
        let mut gram = product(a.transpose(), a); // (q × q)
        if noise > 0.0 {
            (0..q).for_each(|j| gram[(j, j)] += noise);
            let factor = Cholesky::new(gram, "the posterior precision of the latent variables")?;
            return Ok(Self::Noisy { noise, factor });
        }
        mirror_lower(&mut gram);
        let eigen = symmetric_eigen(gram.as_ref())?;
        let floor = eigen.values.first().copied().unwrap_or(0.0) * f64::EPSILON * q.max(a.nrows()) as f64;
        let rank = eigen.values.iter().take_while(|v| **v > floor).count();
        Ok(Self::Noiseless { eigen, rank })
    }

    /// `b ← M⁻¹ b` (pseudo-inverse without noise), b is (q × anything).
    pub(crate) fn solve(&self, mut b: MatMut<'_, f64>) {
        match self {
            Self::Noisy { factor, .. } => factor.solve(b),
            Self::Noiseless { eigen, rank } => {
                let v = eigen.vectors.subcols(0, *rank);
                let mut t = product(v.transpose(), b.as_ref());
                for i in 0..*rank {
                    t.row_mut(i).iter_mut().for_each(|x| *x /= eigen.values[i]);
                }
                b.copy_from(product(v, t.as_ref()));
            }
        }
    }

    /// Covariance of z given a row: `s M⁻¹`; without noise the projection on what the loadings leave free.
    pub(crate) fn covariance(&self) -> Mat<f64> {
        match self {
            Self::Noisy { noise, factor } => {
                let q = factor.lower().nrows();
                let mut out = Mat::from_fn(q, q, |i, j| if i == j { *noise } else { 0.0 });
                factor.solve(out.as_mut());
                mirror_lower(&mut out);
                out
            }
            Self::Noiseless { eigen, rank } => {
                let free = eigen.vectors.subcols(*rank, eigen.values.len() - rank);
                product(free, free.transpose())
            }
        }
    }

    /// `(p − q) log s + log |M|` for p features; `None` when the covariance is singular.
    pub(crate) fn log_det(&self, p: usize) -> Option<f64> {
        match self {
            Self::Noisy { noise, factor } => {
                let q = factor.lower().nrows();
                Some((p as f64 - q as f64) * noise.ln() + factor.log_det())
            }
            Self::Noiseless { eigen, rank } => {
                (*rank == p).then(|| eigen.values[..p].iter().map(|v| v.ln()).sum())
            }
        }
    }

    /// Dimensions of the data that the model can reach.
    pub(crate) fn rank(&self, p: usize) -> usize {
        match self {
            Self::Noisy { .. } => p,
            Self::Noiseless { rank, .. } => *rank,
        }
    }

    /// s.
    pub(crate) fn noise(&self) -> f64 {
        match self {
            Self::Noisy { noise, .. } => *noise,
            Self::Noiseless { .. } => 0.0,
        }
    }
}

//! Low rank plus diagonal: everything about `W Wᵀ + s D` through one q × q factor, including the limit s → 0.
//!
//! With `A = D^-½ W` (p × q) and `G = AᵀA`, \[TB99, eq. 6\] and Woodbury's identity need only `M = s I + G`:
//! the posterior of z given the scaled deviation e is N(M⁻¹Aᵀe, s M⁻¹), and log |WWᵀ + sD| = log |D| + (p −
//! q) log s + log |M|.
//!
//! M squares the condition of A. Where features differ in scale by orders of magnitude it is not formed: the
//! cells are observed one after the other ([`RootLanes`]), and the limit is solved by reflections
//! ([`StiffLeastSquares`]).

use super::{
    Cholesky, Eigen, Mat, MatRef, ObservedCell, RootLanes, StiffLeastSquares, comparable, mirror_lower,
    product, set_product, symmetric_eigen,
};
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
    /// s > 0 and fewer features than latent variables: the other side, s I + AAᵀ, is the smaller and the
    /// safer one.
    Narrow {
        /// s.
        noise: f64,
        /// A (p × q).
        a: Mat<f64>,
        /// Of s I + AAᵀ (p × p).
        factor: Cholesky,
    },
    /// s > 0 and features of very different scales.
    Graded(GradedFactor),
    /// s = 0: pseudo-inverse, and the prior where the loadings say nothing.
    Noiseless {
        /// Of G (q × q).
        eigen: Eigen,
        /// Eigenvalues that are not rounding.
        rank: usize,
        /// What gives z of scaled deviations.
        solution: NoiselessSolution,
    },
}

/// Least squares without noise, z = A⁺e.
#[derive(Debug, Clone)]
pub(crate) enum NoiselessSolution {
    /// A⁺ itself (q × p).
    PseudoInverse(Mat<f64>),
    /// Where features are of very different scales, reflections, which do without G.
    Stiff(Box<StiffLeastSquares>),
}

impl LatentFactor {
    /// Factors `s I + AᵀA`.
    pub(crate) fn new(a: MatRef<'_, f64>, noise: f64) -> Result<Self> {
        let (p, q) = (a.nrows(), a.ncols());
        let graded = !comparable(a.row_iter().map(|row| row.squared_norm_l2() + noise));
        if noise > 0.0 && graded {
            return Ok(Self::Graded(GradedFactor::new(a, noise)));
        }
        if noise > 0.0 && p < q {
            let factor = regularised(product(a, a.transpose()), noise)?;
            return Ok(Self::Narrow { noise, a: a.to_owned(), factor });
        }
        let mut gram = product(a.transpose(), a); // (q × q)
        if noise > 0.0 {
            return Ok(Self::Noisy { noise, factor: regularised(gram, noise)? });
        }
        if graded {
            let (stiff, eigen, rank) = StiffLeastSquares::new(a);
            return Ok(Self::Noiseless { eigen, rank, solution: NoiselessSolution::Stiff(Box::new(stiff)) });
        }
        mirror_lower(&mut gram);
        let eigen = symmetric_eigen(gram.as_ref())?;
        let floor = eigen.values.first().copied().unwrap_or(0.0) * f64::EPSILON * q.max(p) as f64;
        let rank = eigen.values.iter().take_while(|v| **v > floor).count();
        let solution = NoiselessSolution::PseudoInverse(pseudo_inverse(a, &eigen, rank));
        Ok(Self::Noiseless { eigen, rank, solution })
    }

    /// Posterior means `M⁻¹Aᵀe` (q × rows) of scaled deviations e (rows × p); least squares without noise.
    pub(crate) fn latent(&self, a: MatRef<'_, f64>, e: MatRef<'_, f64>) -> Mat<f64> {
        let mut z = Mat::zeros(a.ncols(), e.nrows());
        match self {
            Self::Noisy { factor, .. } => {
                set_product(z.as_mut(), a.transpose(), e.transpose());
                factor.solve(z.as_mut());
            }
            Self::Narrow { factor, .. } => {
                let mut t = e.transpose().to_owned(); // (p × rows)
                factor.solve(t.as_mut());
                set_product(z.as_mut(), a.transpose(), t.as_ref());
            }
            Self::Graded(factor) => return factor.latent(a, e),
            Self::Noiseless { solution: NoiselessSolution::Stiff(stiff), .. } => return stiff.solve(e),
            Self::Noiseless { solution: NoiselessSolution::PseudoInverse(inverse), .. } => {
                set_product(z.as_mut(), inverse.as_ref(), e.transpose());
            }
        }
        z
    }

    /// What posterior means z (q × rows) lack for rounding: `M⁻¹(Aᵀr − s z)`, where r = e − Az (p × rows) was
    /// computed from the cells. Residuals made with it are right to the rounding of e, those made without it only
    /// to that times the condition of M.
    pub(crate) fn correction(&self, a: MatRef<'_, f64>, r: MatRef<'_, f64>, z: MatRef<'_, f64>) -> Mat<f64> {
        match self {
            Self::Noisy { noise, factor } => {
                let mut t = product(a.transpose(), r);
                t.col_iter_mut().zip(z.col_iter()).for_each(|(t, z)| {
                    t.iter_mut().zip(z.iter()).for_each(|(t, z)| *t -= noise * z);
                });
                factor.solve(t.as_mut());
                t
            }
            Self::Graded(factor) => {
                let along = product(factor.root.transpose(), z);
                self.latent(a, r.transpose()) - product(factor.root.as_ref(), along.as_ref())
            }
            Self::Noiseless { .. } => self.latent(a, r.transpose()),
            Self::Narrow { .. } => Mat::zeros(z.nrows(), z.ncols()),
        }
    }

    /// Leverages `aⱼᵀM⁻¹aⱼ`, from 0 to 1, of the features (p): how much of a cell goes into its own fitted value.
    pub(crate) fn leverages(&self, a: MatRef<'_, f64>) -> Vec<f64> {
        let squares = |t: &Mat<f64>| t.col_iter().map(|c| c.squared_norm_l2().min(1.0)).collect();
        match self {
            Self::Noisy { factor, .. } => {
                let mut t = a.transpose().to_owned(); // L⁻¹Aᵀ (q × p)
                factor.solve_lower(t.as_mut());
                squares(&t)
            }
            Self::Narrow { noise, factor, .. } => {
                let mut t = Mat::identity(a.nrows(), a.nrows());
                factor.solve_lower(t.as_mut());
                t.col_iter().map(|c| 1.0 - noise * c.squared_norm_l2()).collect()
            }
            Self::Graded(factor) => {
                let mut t = product(factor.root.transpose(), a.transpose());
                let scale = 1.0 / factor.noise.sqrt();
                t.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= scale));
                squares(&t)
            }
            Self::Noiseless { .. } => squares(&self.plane(a).transpose().to_owned()),
        }
    }

    /// Orthonormal directions of the plane that A spans (p × rank), of a factor without noise.
    pub(crate) fn plane(&self, a: MatRef<'_, f64>) -> Mat<f64> {
        let Self::Noiseless { eigen, rank, .. } = self else { return Mat::zeros(a.nrows(), 0) };
        let mut t = product(a, eigen.vectors.subcols(0, *rank));
        for (column, value) in t.col_iter_mut().zip(&eigen.values) {
            let scale = 1.0 / value.sqrt();
            column.iter_mut().for_each(|x| *x *= scale);
        }
        t
    }

    /// `eᵀ(s I + AAᵀ)⁻¹e` of each row of e where that side is factored: ‖L⁻¹e‖².
    pub(crate) fn distances(&self, e: MatRef<'_, f64>) -> Option<Vec<f64>> {
        let Self::Narrow { factor, .. } = self else { return None };
        let mut t = e.transpose().to_owned(); // (p × rows)
        factor.solve_lower(t.as_mut());
        Some(t.col_iter().map(|c| c.squared_norm_l2()).collect())
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
            Self::Narrow { a, factor, .. } => {
                let mut t = a.clone(); // (s I + AAᵀ)⁻¹ A (p × q)
                factor.solve(t.as_mut());
                let known = product(a.transpose(), t.as_ref());
                Mat::from_fn(a.ncols(), a.ncols(), |i, j| {
                    f64::from(u8::from(i == j)) - 0.5 * (known[(i, j)] + known[(j, i)])
                })
            }
            Self::Graded(factor) => product(factor.root.as_ref(), factor.root.transpose()),
            Self::Noiseless { eigen, rank, .. } => {
                let free = eigen.vectors.subcols(*rank, eigen.values.len() - rank);
                product(free, free.transpose())
            }
        }
    }

    /// R (q × r) with R Rᵀ the covariance of z given a row: what turns standard normals into draws.
    pub(crate) fn root(&self) -> Result<Mat<f64>> {
        match self {
            Self::Noisy { noise, factor } => {
                let q = factor.lower().nrows();
                let mut root = Mat::from_fn(q, q, |i, j| if i == j { noise.sqrt() } else { 0.0 });
                factor.solve_upper(root.as_mut());
                Ok(root)
            }
            Self::Narrow { .. } => {
                let Eigen { values, mut vectors } = symmetric_eigen(self.covariance().as_ref())?;
                for (j, v) in values.iter().enumerate() {
                    vectors.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= v.max(0.0).sqrt());
                }
                Ok(vectors)
            }
            Self::Graded(factor) => Ok(factor.root.clone()),
            Self::Noiseless { eigen, rank, .. } => {
                Ok(eigen.vectors.subcols(*rank, eigen.values.len() - rank).to_owned())
            }
        }
    }

    /// log |s I + AAᵀ| = `(p − q) log s + log |M|` for p features; `None` when the covariance is singular.
    pub(crate) fn log_det(&self, p: usize) -> Option<f64> {
        match self {
            Self::Noisy { noise, factor } => {
                let q = factor.lower().nrows();
                Some((p as f64 - q as f64) * noise.ln() + factor.log_det())
            }
            Self::Narrow { factor, .. } => Some(factor.log_det()),
            Self::Graded(factor) => Some(factor.log_det),
            Self::Noiseless { eigen, rank, .. } => {
                (*rank == p).then(|| eigen.values[..p].iter().map(|v| v.ln()).sum())
            }
        }
    }

    /// Dimensions of the data that the model can reach.
    pub(crate) fn rank(&self, p: usize) -> usize {
        match self {
            Self::Noisy { .. } | Self::Narrow { .. } | Self::Graded(_) => p,
            Self::Noiseless { rank, .. } => *rank,
        }
    }

    /// q.
    pub(crate) fn n_latent(&self) -> usize {
        match self {
            Self::Noisy { factor, .. } => factor.lower().nrows(),
            Self::Narrow { a, .. } => a.ncols(),
            Self::Graded(factor) => factor.root.ncols(),
            Self::Noiseless { eigen, .. } => eigen.values.len(),
        }
    }

    /// s.
    pub(crate) fn noise(&self) -> f64 {
        match self {
            Self::Noisy { noise, .. } | Self::Narrow { noise, .. } => *noise,
            Self::Graded(factor) => factor.noise,
            Self::Noiseless { .. } => 0.0,
        }
    }
}

/// What stands for M where features are of very different scales: the cells of a row observed in the order of
/// the features.
#[derive(Debug, Clone)]
pub(crate) struct GradedFactor {
    noise: f64,      // s
    gains: Mat<f64>, // what each feature moves z by (q × p)
    /// R (q × q) with R Rᵀ = s M⁻¹.
    pub(crate) root: Mat<f64>,
    log_det: f64, // log |s I + AAᵀ|
}

impl GradedFactor {
    /// Of A (p × q) and s > 0.
    pub(crate) fn new(a: MatRef<'_, f64>, noise: f64) -> Self {
        let (p, q) = (a.nrows(), a.ncols());
        let (mut roots, mut gains, mut log_det) = (RootLanes::identity(1, q), Mat::zeros(q, p), 0.0);
        for j in 0..p {
            let ObservedCell { variance, gain } = roots.observe(&a.subrows(j, 1).to_owned(), noise);
            gains.col_mut(j).copy_from(gain.row(0).transpose());
            log_det += variance[0].ln();
        }
        let root = roots.in_columns();
        let root = MatRef::from_column_major_slice(root.col_as_slice(0), q, q).to_owned();
        Self { noise, gains, root, log_det }
    }

    /// Means of z (q × rows) of scaled deviations e (rows × p).
    fn latent(&self, a: MatRef<'_, f64>, e: MatRef<'_, f64>) -> Mat<f64> {
        let loadings = a.transpose().to_owned(); // (q × p): those of a feature side by side
        let mut z = Mat::zeros(a.ncols(), e.nrows());
        for i in 0..e.nrows() {
            let z = z.col_as_slice_mut(i);
            for j in 0..a.nrows() {
                let fitted: f64 = loadings.col_as_slice(j).iter().zip(&*z).map(|(a, z)| a * z).sum();
                let rest = e[(i, j)] - fitted;
                z.iter_mut().zip(self.gains.col_as_slice(j)).for_each(|(z, gain)| *z += gain * rest);
            }
        }
        z
    }
}

/// A⁺ = V Λ⁻¹ (AV)ᵀ (q × p) of the eigenvalues of AᵀA = V Λ Vᵀ that are not rounding.
fn pseudo_inverse(a: MatRef<'_, f64>, eigen: &Eigen, rank: usize) -> Mat<f64> {
    let v = eigen.vectors.subcols(0, rank);
    let mut along = product(a, v); // AV (p × rank)
    for (k, value) in eigen.values[..rank].iter().enumerate() {
        along.col_as_slice_mut(k).iter_mut().for_each(|x| *x /= value);
    }
    product(v, along.transpose())
}

/// The factor of `gram + noise · I`.
fn regularised(mut gram: Mat<f64>, noise: f64) -> Result<Cholesky> {
    (0..gram.nrows()).for_each(|j| gram[(j, j)] += noise);
    Cholesky::new(gram, "the posterior precision of the latent variables")
}

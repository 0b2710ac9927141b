//! The exact posterior of a GP-LVM with positions as points, and its derivatives \[L05\].
//!
//! With C = K(X, X) + bias + σ²I (n × n): log p(Y, X) = −½ (np log 2π + p log|C| + tr C⁻¹YYᵀ) − ½ (‖X‖² + nq log 2π).
//! Positions X and relevances α cannot both be free: X ← cX with α ← α/c² is the same surface, and the prior would
//! make X ever smaller. α is therefore 1, and the spread of the positions along a dimension says how much it matters.

use crate::algorithm::optimise::Smooth;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::kernel::{LatentForm, LatentKernel};
use crate::linalg::{Cholesky, Mat, product};

/// The log posterior of positions, a bias and the noise: X row after row (n · q), log bias, log σ².
pub(crate) struct ExactPosterior {
    pub(crate) cells: Mat<f64>, // Y (n × p), centred
    pub(crate) latent: usize,
    pub(crate) variance: f64, // σ² of the kernel, which is held
}

/// What belongs to a value.
pub(crate) struct Found {
    kernel: LatentKernel,
    places: Mat<f64>,             // X (n × q)
    values: Mat<f64>,             // K without bias and noise (n × n)
    pub(crate) inverse: Mat<f64>, // C⁻¹ (n × n)
    pub(crate) weights: Mat<f64>, // C⁻¹Y (n × p)
}

impl ExactPosterior {
    fn rows(&self) -> usize {
        self.cells.nrows()
    }

    /// Where log bias and log σ² stand.
    pub(crate) fn bias(&self) -> usize {
        self.rows() * self.latent
    }

    pub(crate) fn noise(&self) -> usize {
        self.bias() + 1
    }
}

impl Smooth for ExactPosterior {
    type Found = Found;

    fn name(&self) -> &'static str {
        "log posterior"
    }

    fn value(&self, x: &[f64], control: &Control<'_>) -> Result<(f64, Found)> {
        control.check()?;
        let (n, q, p) = (self.rows(), self.latent, self.cells.ncols());
        let places = Mat::from_fn(n, q, |i, k| x[i * q + k]);
        let (bias, noise) = (x[self.bias()].exp(), x[self.noise()].exp());
        if !(noise.is_finite() && noise > 0.0 && bias.is_finite()) {
            return Err(Error::Scale);
        }
        let kernel = LatentKernel::new(LatentForm::Rbf, self.variance, vec![1.0; q])?;
        let values = kernel.matrix(places.as_ref(), places.as_ref());
        let covariance = Mat::from_fn(n, n, |i, j| values[(i, j)] + bias + if i == j { noise } else { 0.0 });
        let factor = Cholesky::new(covariance, "the covariance of the rows")?;
        control.check()?;
        let mut root = Mat::identity(n, n);
        factor.solve_lower(root.as_mut());
        let inverse = product(root.transpose(), root.as_ref());
        let weights = product(inverse.as_ref(), self.cells.as_ref());
        let quadratic: f64 = (0..p)
            .map(|j| {
                let (a, b) = (weights.col_as_slice(j), self.cells.col_as_slice(j));
                a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
            })
            .sum();
        let tau = std::f64::consts::TAU.ln();
        let likelihood = -0.5 * ((n * p) as f64 * tau + p as f64 * factor.log_det() + quadratic);
        let prior = -0.5 * (x[..n * q].iter().map(|x| x * x).sum::<f64>() + (n * q) as f64 * tau);
        match (likelihood + prior).is_finite() {
            true => Ok((likelihood + prior, Found { kernel, places, values, inverse, weights })),
            false => Err(Error::Scale),
        }
    }

    fn gradient(&self, x: &[f64], found: &Found, control: &Control<'_>) -> Result<Vec<f64>> {
        control.check()?;
        let (n, q, p) = (self.rows(), self.latent, self.cells.ncols() as f64);
        let outer = product(found.weights.as_ref(), found.weights.transpose());
        let adjoint = Mat::from_fn(n, n, |i, j| 0.5 * (outer[(i, j)] - p * found.inverse[(i, j)]));
        let by = found.kernel.pull_back(&found.places, &found.values, &adjoint);
        let mut out = Vec::with_capacity(x.len());
        for (i, k) in (0..n).flat_map(|i| (0..q).map(move |k| (i, k))) {
            out.push(by.points[(i, k)] - x[i * q + k]);
        }
        let all: f64 = adjoint.col_iter().map(|c| c.iter().sum::<f64>()).sum();
        let diagonal: f64 = (0..n).map(|i| adjoint[(i, i)]).sum();
        out.push(all * x[self.bias()].exp());
        out.push(diagonal * x[self.noise()].exp());
        Ok(out)
    }

    /// 0.1 for positions, 2/p for log bias and 2/cells for log σ².
    fn inverse_curvature(&self, _: &[f64]) -> Vec<f64> {
        let p = self.cells.ncols() as f64;
        let mut out = vec![0.1; self.bias()];
        out.extend([2.0 / p, 2.0 / (p * self.rows() as f64)]);
        out
    }

    fn size(&self) -> f64 {
        (self.rows() * self.cells.ncols()) as f64
    }
}

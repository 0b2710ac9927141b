//! Maximum-likelihood factors by expectation and maximisation on the covariance \[RT82\]: simple, and slow to
//! the last digits.

use super::factor_profile::{FoundFactors, OBJECTIVE, Search, Start};
use super::newton_factor::{evaluate, log_psi};
use super::{Iteration, Objective, Step, drive};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, MatRef, product, symmetric_eigen};

/// Maximises the likelihood of a correlation matrix R (both triangles); ends when a step gains less than the
/// tolerance, in nats per row.
pub(crate) fn solve(
    r: MatRef<'_, f64>,
    search: &Search,
    start: &Start,
    control: &Control<'_>,
) -> Result<FoundFactors> {
    let em = CovarianceEm::new(r, search, &log_psi(r, search, start)?)?;
    let (psi, journey) = drive(em, search.limits, control)?;
    evaluate(r, search, psi.iter().map(|v| v.ln()).collect(), journey)
}

/// The iteration.
struct CovarianceEm<'a> {
    r: MatRef<'a, f64>, // R (p × p)
    lower: f64,
    psi: Vec<f64>,
    loadings: Mat<f64>, // W (p × q)
    last: Option<f64>,  // objective
    gain: f64,
}

impl Iteration for CovarianceEm<'_> {
    type Output = Vec<f64>;

    fn objective(&self) -> Objective {
        OBJECTIVE
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.gain < tolerance
    }

    /// The objective is the one from before the step.
    fn step(&mut self, _: &Control<'_>) -> Result<Option<Step>> {
        let objective = self.update()?;
        self.gain = self.last.map_or(f64::INFINITY, |before| objective - before);
        self.last = Some(objective);
        Ok(Some(Step { objective, change: self.gain }))
    }

    fn finish(self) -> Result<Vec<f64>> {
        Ok(self.psi)
    }
}

impl<'a> CovarianceEm<'a> {
    /// From the best loadings for the given noise.
    fn new(r: MatRef<'a, f64>, search: &Search, log_psi: &[f64]) -> Result<Self> {
        let psi: Vec<f64> = log_psi.iter().map(|x| x.exp()).collect();
        let root: Vec<f64> = psi.iter().map(|v| v.sqrt()).collect();
        let scaled = Mat::from_fn(psi.len(), psi.len(), |i, j| r[(i, j)] / (root[i] * root[j]));
        let eigen = symmetric_eigen(scaled.as_ref())?;
        // A factor of no length would stay so for ever.
        let length = |k: usize| (eigen.values[k] - 1.0).max(1e-3).sqrt();
        let loading = |i: usize, k: usize| root[i] * eigen.vectors[(i, k)] * length(k);
        let loadings = Mat::from_fn(psi.len(), search.factors, loading);
        Ok(Self { r, lower: search.lower, psi, loadings, last: None, gain: f64::INFINITY })
    }

    /// One step; gives −(log |C| + tr(R C⁻¹))/2 from before it.
    ///
    /// With M = I + WᵀΨ⁻¹W: the posterior of z is N(βx, M⁻¹), β = M⁻¹WᵀΨ⁻¹. Summed over rows, E\[xzᵀ\] = Rβᵀ
    /// and E\[zzᵀ\] = M⁻¹ + βRβᵀ; then W = E\[xzᵀ\] E\[zzᵀ\]⁻¹ and ψ = diag(R − W E\[zxᵀ\]).
    fn update(&mut self) -> Result<f64> {
        let (p, q) = (self.psi.len(), self.loadings.ncols());
        let scaled = Mat::from_fn(q, p, |k, j| self.loadings[(j, k)] / self.psi[j]); // WᵀΨ⁻¹
        let mut m = product(scaled.as_ref(), self.loadings.as_ref());
        (0..q).for_each(|k| m[(k, k)] += 1.0);
        let factor = Cholesky::new(m, "the posterior precision of the factors")?;
        let mut beta = scaled.clone();
        factor.solve(beta.as_mut()); // (q × p)
        let cross = product(self.r, beta.transpose()); // E[xzᵀ] (p × q)
        let explained: f64 =
            (0..q).map(|k| (0..p).map(|j| scaled[(k, j)] * cross[(j, k)]).sum::<f64>()).sum();
        let noise: f64 = self.psi.iter().map(|v| v.ln() + 1.0 / v).sum();
        let before = -0.5 * (noise + factor.log_det() - explained);
        let mut second: Mat<f64> = Mat::identity(q, q);
        factor.solve(second.as_mut());
        second += product(beta.as_ref(), cross.as_ref());
        let mut loadings = cross.transpose().to_owned(); // (q × p)
        Cholesky::new(second, "the second moment of the factors")?.solve(loadings.as_mut());
        self.loadings = loadings.transpose().to_owned();
        let kept = |j: usize| (0..q).map(|k| self.loadings[(j, k)] * cross[(j, k)]).sum::<f64>();
        self.psi = (0..p).map(|j| (self.r[(j, j)] - kept(j)).max(self.lower)).collect();
        Ok(before)
    }
}

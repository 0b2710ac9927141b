//! Maximum-likelihood factors by Newton's method on log ψ of the profile likelihood \[J67\] \[C70\]: a few
//! hundred features.

use super::factor_profile::{FoundFactors, OBJECTIVE, Profile, Search, Start, shortened};
use super::optimise::halved;
use super::{Iteration, Journey, Objective, Step, drive};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Cholesky, Eigen, Mat, MatRef, product, symmetric_eigen};

/// Lengths of a step, each half of the one before, that are tried along a direction.
const HALVINGS: usize = 40;
/// Norm of the gradient below which the exact second derivatives are used.
const NEAR: f64 = 1.0;
/// Least distance between kept and other eigenvalues, relative, for the exact second derivatives.
const GAP: f64 = 1e-6;
/// An eigenvalue of the smallest so far below the largest is 0 but for rounding.
const SINGULAR: f64 = 1e-13;

/// Minimises log |C| + tr(R C⁻¹) for a correlation matrix R (both triangles).
pub(crate) fn solve(
    r: MatRef<'_, f64>,
    search: &Search,
    start: &Start,
    control: &Control<'_>,
) -> Result<FoundFactors> {
    let at = Decomposed::new(r, log_psi(r, search, start)?, search.factors)?;
    let (at, journey) = drive(Newton { r, search, at, rounding: 0.0 }, search.limits, control)?;
    Ok(at.found(search, journey))
}

/// The answer at given log ψ, without a search, and how they were reached.
pub(super) fn evaluate(
    r: MatRef<'_, f64>,
    search: &Search,
    log_psi: Vec<f64>,
    journey: Journey,
) -> Result<FoundFactors> {
    Ok(Decomposed::new(r, log_psi, search.factors)?.found(search, journey))
}

/// The iteration: each step is a line search along one of a few directions.
struct Newton<'a> {
    r: MatRef<'a, f64>,
    search: &'a Search,
    at: Decomposed,
    rounding: f64, // in the objective of the point before
}

impl Iteration for Newton<'_> {
    type Output = Decomposed;

    fn objective(&self) -> Objective {
        OBJECTIVE
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.at.profile.is_optimum(self.search.lower.ln(), tolerance)
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let Some(next) = self.at.step(self.r, self.search, control)? else { return Ok(None) };
        self.rounding = self.at.profile.objective_rounding();
        self.at = next;
        let (objective, floor) = (self.at.profile.objective(), self.search.lower.ln());
        Ok(Some(Step { objective, change: self.at.profile.gradient_norm(floor) }))
    }

    fn rounding(&self) -> f64 {
        self.rounding
    }

    fn finish(self) -> Result<Decomposed> {
        Ok(self.at)
    }
}

/// Where a search starts; usually Jöreskog's (1 − q/2p)/diag(R⁻¹), or what the principal components leave
/// when R is singular.
pub(crate) fn log_psi(r: MatRef<'_, f64>, search: &Search, start: &Start) -> Result<Vec<f64>> {
    if let Some(log_psi) = search.unusual(r.nrows(), start) {
        return Ok(log_psi);
    }
    let (p, q) = (r.nrows(), search.factors);
    let within = |psi: f64| psi.clamp(search.lower, 1.0).ln();
    let factor = Cholesky::new(r.to_owned(), "the correlation matrix").ok();
    if let Some(factor) = factor.filter(|l| l.smallest_pivot() > 1e-6) {
        let mut inverse: Mat<f64> = Mat::identity(p, p);
        factor.solve_lower(inverse.as_mut());
        let share = 1.0 - 0.5 * q as f64 / p as f64;
        return Ok((0..p).map(|j| within(share / inverse.col(j).squared_norm_l2())).collect());
    }
    let Eigen { values, vectors } = symmetric_eigen(r)?;
    let held = |j: usize| (0..q).map(|k| values[k] * vectors[(j, k)].powi(2)).sum::<f64>();
    Ok((0..p).map(|j| within((1.0 - held(j)).max(0.05))).collect())
}

/// The profile with the whole decomposition of Ψ^-½ R Ψ^-½.
struct Decomposed {
    profile: Profile,
    scaled: Mat<f64>, // Ψ^-½ R Ψ^-½ (p × p)
    whole: Eigen,
}

impl Decomposed {
    fn new(r: MatRef<'_, f64>, log_psi: Vec<f64>, factors: usize) -> Result<Self> {
        let root: Vec<f64> = log_psi.iter().map(|x| (-0.5 * x).exp()).collect();
        let scaled = Mat::from_fn(r.nrows(), r.ncols(), |i, j| r[(i, j)] * root[i] * root[j]);
        let whole = symmetric_eigen(scaled.as_ref())?;
        let mut profile = Profile::new(log_psi, &whole, factors);
        profile.gradient = from_discarded(&whole, profile.kept.values.len());
        Ok(Self { profile, scaled, whole })
    }

    /// Σ (θ − log θ − 1) over the pairs that are not kept: every term is positive, nothing cancels.
    fn discrepancy(&self) -> Option<f64> {
        let smallest = self.whole.values.last()?;
        let regular = *smallest > SINGULAR * self.whole.values[0];
        let rest = &self.whole.values[self.profile.kept.values.len()..];
        regular.then(|| rest.iter().map(|t| (t - 1.0) - (t - 1.0).ln_1p()).sum())
    }

    fn found(self, search: &Search, journey: Journey) -> FoundFactors {
        FoundFactors { discrepancy: self.discrepancy(), ..self.profile.found(search, journey) }
    }

    /// One step of projected Newton \[B82\] with a line search; `None` when no direction leads to a better
    /// point.
    fn step(&self, r: MatRef<'_, f64>, search: &Search, control: &Control<'_>) -> Result<Option<Self>> {
        let floor = search.lower.ln();
        let free: Vec<usize> =
            (0..r.nrows()).zip(self.profile.held(floor)).filter(|(_, held)| !held).map(|(j, _)| j).collect();
        let near = self.profile.gradient_norm(floor) < NEAR;
        let exact = near.then(|| self.exact_hessian()).flatten();
        let hessians = exact.into_iter().chain([self.approximate_hessian()]);
        for direction in hessians.filter_map(|h| self.direction(&h, &free)).chain([self.downhill(&free)]) {
            let direction = shortened(direction);
            let found = halved(1.0, HALVINGS, |length| {
                control.check()?;
                let next = Self::new(r, self.profile.along(&direction, length, floor), search.factors)?;
                Ok(self.profile.accepts(&next.profile, floor).then_some(next))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// −H⁻¹g of the free features, 0 for the others; `None` when H is not positive definite.
    fn direction(&self, hessian: &Mat<f64>, free: &[usize]) -> Option<Vec<f64>> {
        let h = Mat::from_fn(free.len(), free.len(), |i, j| hessian[(free[i], free[j])]);
        let factor = Cholesky::new(h, "second derivatives").ok().filter(|l| l.smallest_pivot() > 1e-7)?;
        let mut d = Mat::from_fn(free.len(), 1, |i, _| -self.profile.gradient[free[i]]);
        factor.solve(d.as_mut());
        let mut direction = vec![0.0; self.profile.log_psi.len()];
        free.iter().enumerate().for_each(|(i, j)| direction[*j] = d[(i, 0)]);
        Some(direction)
    }

    /// −g of the free features.
    fn downhill(&self, free: &[usize]) -> Vec<f64> {
        let mut direction = vec![0.0; self.profile.log_psi.len()];
        free.iter().for_each(|j| direction[*j] = -self.profile.gradient[*j]);
        direction
    }

    /// A ∘ B with A = Σ ωωᵀ and B = Σ θωωᵀ over the pairs that are not kept. Where the model fits they are
    /// nearly the same, and it is Jöreskog's A ∘ A; it is never indefinite. A ridge keeps it from being
    /// singular.
    fn approximate_hessian(&self) -> Mat<f64> {
        let (a, b) = self.discarded_products();
        let ridge = 1e-8;
        Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * b[(i, j)] + if i == j { ridge } else { 0.0 })
    }

    /// (A, B), as what the kept pairs leave of I and of Ψ^-½ R Ψ^-½.
    fn discarded_products(&self) -> (Mat<f64>, Mat<f64>) {
        let Eigen { values, vectors } = &self.profile.kept;
        let weighted = Mat::from_fn(vectors.nrows(), values.len(), |i, k| vectors[(i, k)] * values[k]);
        let p = vectors.nrows();
        let a = Mat::<f64>::identity(p, p) - product(vectors.as_ref(), vectors.transpose());
        (a, &self.scaled - product(weighted.as_ref(), vectors.transpose()))
    }

    /// A ∘ B + Σₙ (ωₙωₙᵀ) ∘ Σₘ (1 − θₘ)(θₙ + θₘ)/(θₙ − θₘ) ωₘωₘᵀ, n kept and m not; `None` where kept and
    /// other eigenvalues meet, and there is no second derivative \[C70\].
    fn exact_hessian(&self) -> Option<Mat<f64>> {
        let Eigen { values, vectors } = &self.whole;
        let (p, k) = (values.len(), self.profile.kept.values.len());
        let (a, b) = self.discarded_products();
        let mut hessian = Mat::from_fn(p, p, |i, j| a[(i, j)] * b[(i, j)]);
        if k == 0 || k == p {
            return Some(hessian);
        }
        if values[k - 1] - values[k] < GAP * values[k - 1] {
            return None;
        }
        let rest = vectors.subcols(k, p - k);
        for n in 0..k {
            let factor = |m: usize| (1.0 - values[m]) * (values[n] + values[m]) / (values[n] - values[m]);
            let weighted = Mat::from_fn(p, p - k, |i, m| rest[(i, m)] * factor(k + m));
            let c = product(weighted.as_ref(), rest.transpose());
            for j in 0..p {
                for i in 0..p {
                    hessian[(i, j)] += vectors[(i, n)] * vectors[(j, n)] * c[(i, j)];
                }
            }
        }
        Some(hessian)
    }
}

/// Σ (1 − θ) ω² over the pairs that are not kept: the gradient as a sum of small terms.
fn from_discarded(whole: &Eigen, kept: usize) -> Vec<f64> {
    let mut gradient = vec![0.0; whole.vectors.nrows()];
    for (m, theta) in whole.values.iter().enumerate().skip(kept) {
        let omega = whole.vectors.col_as_slice(m);
        gradient.iter_mut().zip(omega).for_each(|(g, w)| *g += (1.0 - theta) * w * w);
    }
    gradient
}

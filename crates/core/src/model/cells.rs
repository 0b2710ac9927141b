//! What the other cells of a row say of each: residuals and precisions of single cells, for rows that observe the
//! same cells.
//!
//! In units of the noise a row is $e = Az + \varepsilon$ with covariance $C = sI + AA^\top$. With the posterior mean
//! $\bar z$ and the leverages $h_j = a_j^\top M^{-1} a_j$, the precision $\Lambda = C^{-1}$ has
//! $(\Lambda e)_j = (e_j - a_j^\top \bar z)/s$ and $\Lambda_{jj} = (1 - h_j)/s$, so that
//! $r_j = (\Lambda e)_j / \Lambda_{jj} = (e_j - a_j^\top \bar z)/(1 - h_j)$ is the cell minus what the others expect.
//!
//! Where $h_j$ is near 1, a cell is nearly alone in what it says of some direction, and both differences lose their
//! digits. Such cells J are at most about q; they are left out together. Given the others,
//! $e_J \sim N(A_J \bar z_{-J}, S)$ with $S = sI + A_J \Sigma_{-J} A_J^\top$, and by Schur's complement
//! $(\Lambda e)_J = S^{-1}(e_J - A_J \bar z_{-J})$ and $\Lambda_{JJ} = S^{-1}$: no difference of large numbers.

use crate::error::Result;
use crate::linalg::{Cholesky, GradedFactor, LatentFactor, Mat, MatRef, add_product, product};

/// 1 minus the leverage of a cell that no others determine, but for rounding.
const UNDETERMINED: f64 = 1e-10;
/// A cell so much larger than what is expected of it is left out, and the expectation computed once more …
const WILD: f64 = 1e4;
/// … where it lies so many deviations out that its rounding would show.
const FAR: f64 = 1e5;

/// Below this share of a row's distance, what the other cells have of it is computed from them.
pub(super) const CANCELLED: f64 = 1e-4;

/// What is needed for each cell of rows that observe the same cells.
pub(super) struct CellFactor {
    /// Used in place of the model's own factor.
    factor: Option<LatentFactor>,
    leverages: Vec<f64>,  // h (p)
    deviations: Vec<f64>, // √(1/Λⱼⱼ) (p)
    alone: Option<Alone>,
}

/// Cells of high leverage, and the factor of the others.
struct Alone {
    cells: Vec<usize>, // J
    others: Vec<usize>,
    a_others: Mat<f64>, // (others × q)
    a_cells: Mat<f64>,  // (J × q)
    factor: LatentFactor,
    schur: Cholesky, // of S (J × J)
}

/// How some rows compare, cell by cell, with what their other cells expect, in units of the noise (p × rows).
pub(super) struct CellResiduals {
    /// What the others expect, as a deviation from the mean.
    pub(super) expected: Mat<f64>,
    /// r: observed minus expected.
    pub(super) residual: Mat<f64>,
}

impl CellFactor {
    /// Of A (p × q) and the factor of sI + AᵀA.
    pub(super) fn new(a: MatRef<'_, f64>, factor: &LatentFactor) -> Result<Self> {
        let noise = factor.noise();
        // The factor of few cells knows the sum of signal and noise only.
        let own = match factor {
            LatentFactor::Narrow { .. } => Some(LatentFactor::Graded(GradedFactor::new(a, noise))),
            _ => None,
        };
        let leverages = own.as_ref().unwrap_or(factor).leverages(a);
        // Without noise the others determine a cell, or they do not: then S is regular.
        let least = if noise > 0.0 { 0.5 / (a.ncols() + 1) as f64 } else { UNDETERMINED };
        let cells: Vec<usize> = (0..a.nrows()).filter(|j| 1.0 - leverages[*j] < least).collect();
        let alone = match cells.is_empty() {
            true => None,
            false => Some(Alone::new(a, noise, cells)?),
        };
        let mut deviations: Vec<f64> = leverages.iter().map(|h| (noise / (1.0 - h)).sqrt()).collect();
        if let Some(alone) = &alone {
            alone.deviations().into_iter().zip(&alone.cells).for_each(|(d, j)| deviations[*j] = d);
        }
        Ok(Self { factor: own, leverages, deviations, alone })
    }

    /// Deviation of each cell given the others, in units of the noise (p).
    pub(super) fn deviations(&self) -> &[f64] {
        &self.deviations
    }

    /// Residuals of rows e (rows × p), for the A and the factor that this was made of.
    pub(super) fn residuals(
        &self,
        a: MatRef<'_, f64>,
        factor: &LatentFactor,
        e: MatRef<'_, f64>,
    ) -> Result<CellResiduals> {
        let factor = self.factor.as_ref().unwrap_or(factor);
        let (z, left) = refined(a, factor, e);
        let mut found = CellResiduals { expected: product(a, z.as_ref()), residual: left };
        for i in 0..e.nrows() {
            let (expected, residual) =
                (found.expected.col_as_slice_mut(i), found.residual.col_as_slice_mut(i));
            let cells = expected.iter_mut().zip(residual).zip(e.row(i).iter().zip(&self.leverages));
            cells.for_each(|((expected, residual), (e, h))| {
                *expected = (*expected - h * e) / (1.0 - h);
                *residual /= 1.0 - h;
            });
        }
        if let Some(alone) = &self.alone {
            alone.write(e, &self.deviations, &mut found);
        }
        self.write_wild(a, factor.noise(), e, &mut found)?;
        Ok(found)
    }

    /// Cells so far out that what is expected of them drowns in their own rounding: computed without them.
    fn write_wild(
        &self,
        a: MatRef<'_, f64>,
        noise: f64,
        e: MatRef<'_, f64>,
        to: &mut CellResiduals,
    ) -> Result<()> {
        for i in 0..e.nrows() {
            for j in self.wild(e.row(i).iter(), to.expected.col_as_slice(i)) {
                let expected = expected_without(a, noise, e.subrows(i, 1), j)?;
                to.expected[(j, i)] = expected;
                to.residual[(j, i)] = e[(i, j)] - expected;
            }
        }
        Ok(())
    }

    /// Which cells of a row those are.
    fn wild<'a>(&self, e: impl Iterator<Item = &'a f64>, expected: &[f64]) -> Vec<usize> {
        let known = self.leverages.iter().zip(&self.deviations);
        let cells = e.zip(expected).zip(known).enumerate();
        let far =
            cells.filter(|(_, ((e, expected), (h, deviation)))| is_wild(**e, **expected, **h, **deviation));
        far.map(|(j, _)| j).collect()
    }
}

/// Whether what is expected of a cell of this leverage drowns in the cell's own rounding.
pub(super) fn is_wild(e: f64, expected: f64, leverage: f64, deviation: f64) -> bool {
    let own = leverage * e.abs();
    own > WILD * expected.abs() && own > FAR * deviation
}

impl Alone {
    fn new(a: MatRef<'_, f64>, noise: f64, cells: Vec<usize>) -> Result<Self> {
        let others: Vec<usize> = (0..a.nrows()).filter(|j| !cells.contains(j)).collect();
        let (a_others, a_cells) = (rows_of(a, &others), rows_of(a, &cells));
        let factor = factor_of_others(a_others.as_ref(), noise)?;
        let along = product(a_cells.as_ref(), factor.root()?.as_ref()); // A_J R (J × r)
        let mut s = product(along.as_ref(), along.transpose());
        (0..cells.len()).for_each(|k| s[(k, k)] += noise);
        let schur = Cholesky::new(s, "the covariance of cells given the others")?;
        Ok(Self { cells, others, a_others, a_cells, factor, schur })
    }

    /// √(1/Λⱼⱼ) with Λ = S⁻¹: of L⁻¹, columns of squared length Λⱼⱼ.
    fn deviations(&self) -> Vec<f64> {
        let m = self.cells.len();
        let mut inverse = Mat::identity(m, m);
        self.schur.solve_lower(inverse.as_mut());
        inverse.col_iter().map(|c| 1.0 / c.norm_l2()).collect()
    }

    fn write(&self, e: MatRef<'_, f64>, deviations: &[f64], to: &mut CellResiduals) {
        let of_others = Mat::from_fn(e.nrows(), self.others.len(), |i, k| e[(i, self.others[k])]);
        let z = self.factor.latent(self.a_others.as_ref(), of_others.as_ref());
        let mut left = Mat::from_fn(self.cells.len(), e.nrows(), |k, i| e[(i, self.cells[k])]);
        add_product(left.as_mut(), self.a_cells.as_ref(), z.as_ref(), -1.0);
        self.schur.solve(left.as_mut()); // (Λe)_J
        for (k, j) in self.cells.iter().enumerate() {
            for i in 0..e.nrows() {
                to.residual[(*j, i)] = left[(k, i)] * deviations[*j].powi(2);
                to.expected[(*j, i)] = e[(i, *j)] - to.residual[(*j, i)];
            }
        }
    }
}

/// What the cells of a row (1 × p) other than j expect of it.
pub(super) fn expected_without(a: MatRef<'_, f64>, noise: f64, e: MatRef<'_, f64>, j: usize) -> Result<f64> {
    let (z, _) = without(a, noise, e, j)?;
    Ok(a.row(j).iter().zip(z.col(0).iter()).map(|(a, z)| a * z).sum())
}

/// The squared distance of the cells of a row (1 × p) other than j, which is ‖e − Az‖²/s + ‖z‖².
pub(super) fn distance_without(a: MatRef<'_, f64>, noise: f64, e: MatRef<'_, f64>, j: usize) -> Result<f64> {
    let (z, left) = without(a, noise, e, j)?;
    Ok(left.squared_norm_l2() / noise + z.squared_norm_l2())
}

/// z and e − Az of the cells of a row (1 × p) other than j.
fn without(a: MatRef<'_, f64>, noise: f64, e: MatRef<'_, f64>, j: usize) -> Result<(Mat<f64>, Mat<f64>)> {
    let others: Vec<usize> = (0..a.nrows()).filter(|k| *k != j).collect();
    let a = rows_of(a, &others);
    let e = Mat::from_fn(1, others.len(), |_, k| e[(0, others[k])]);
    Ok(refined(a.as_ref(), &factor_of_others(a.as_ref(), noise)?, e.as_ref()))
}

/// Where cells are left out, a direction may have lost all that was known of it: observed one by one, what is left
/// of the prior keeps its digits.
fn factor_of_others(a: MatRef<'_, f64>, noise: f64) -> Result<LatentFactor> {
    match noise > 0.0 {
        true => Ok(LatentFactor::Graded(GradedFactor::new(a, noise))),
        false => LatentFactor::new(a, noise),
    }
}

/// Posterior means (q × rows) and e − Az (p × rows), both corrected once for rounding.
fn refined(a: MatRef<'_, f64>, factor: &LatentFactor, e: MatRef<'_, f64>) -> (Mat<f64>, Mat<f64>) {
    let left = |z: &Mat<f64>| {
        let mut left = e.transpose().to_owned();
        add_product(left.as_mut(), a, z.as_ref(), -1.0);
        left
    };
    let z = factor.latent(a, e);
    let z = &z + factor.correction(a, left(&z).as_ref(), z.as_ref());
    let rest = left(&z);
    (z, rest)
}

fn rows_of(a: MatRef<'_, f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, k| a[(rows[i], k)])
}

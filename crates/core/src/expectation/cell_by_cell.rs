//! The posterior of z by observing the cells of a row one after the other.
//!
//! Each pattern has a root S of its posterior covariance ([`RootLanes`]), each row its mean; step k observes
//! the k-th cell of every row. The variance α of each cell given those before it also gives
//! $\ln |M| = q \ln s + \sum \ln (\alpha / s)$.

use super::ScaledModel;
use crate::blocks::IncompleteRows;
use crate::linalg::{Lanes, Mat, ObservedCell, RootLanes};

/// What is known of z in each pattern.
pub(super) struct CellByCell {
    roots: RootLanes,
    log_det: Vec<f64>, // ln |M|
}

impl CellByCell {
    /// z ~ N(0, I): before any cell is seen, with the means of the rows (rows × q).
    pub(super) fn prior(patterns: usize, rows: usize, model: ScaledModel<'_>) -> (Self, Mat<f64>) {
        let q = model.loadings.q();
        let log_det = vec![q as f64 * model.noise.ln(); patterns];
        (Self { roots: RootLanes::identity(patterns, q), log_det }, Mat::zeros(rows, q))
    }

    /// z of covariance s M⁻¹, by the factors of each M.
    pub(super) fn under(factors: &Lanes, q: usize, noise: f64) -> Self {
        Self { roots: RootLanes::of_inverses(factors, q, noise.sqrt()), log_det: factors.log_det() }
    }

    /// The same after all cells of the rows, and the means of z that begin at `mean` (rows × q).
    pub(super) fn given<R: IncompleteRows + ?Sized>(
        mut self,
        model: ScaledModel<'_>,
        rows: &R,
        mean: &Mat<f64>,
    ) -> (Self, Mat<f64>) {
        let (pattern, patterns, loadings) = (rows.pattern(), self.log_det.len(), &model.loadings.a);
        let cells: Vec<(Vec<usize>, Vec<f64>)> = (0..pattern.len()).map(|i| rows.cells(i)).collect();
        let mut features: Vec<&[usize]> = vec![&[]; patterns];
        cells.iter().zip(pattern).for_each(|((of, _), k)| features[*k] = of);
        let mut z = mean.transpose().to_owned(); // (q × rows): those of a row side by side
        let mut a = Mat::zeros(patterns, loadings.nrows());
        for step in 0..rows.observed().iter().copied().max().unwrap_or(0) {
            for (k, features) in features.iter().enumerate() {
                for i in 0..loadings.nrows() {
                    a[(k, i)] = features.get(step).map_or(0.0, |j| loadings[(i, *j)]);
                }
            }
            let ObservedCell { variance, gain } = self.roots.observe(&a, model.noise);
            for (log_det, variance) in self.log_det.iter_mut().zip(variance) {
                *log_det += (variance / model.noise).ln(); // 0 where there is no such cell
            }
            for (row, k) in pattern.iter().enumerate() {
                let (features, e) = &cells[row];
                let Some(j) = features.get(step) else { continue };
                let (a, z) = (loadings.col_as_slice(*j), z.col_as_slice_mut(row));
                let rest = e[step] - a.iter().zip(&*z).map(|(a, z)| a * z).sum::<f64>();
                z.iter_mut().enumerate().for_each(|(i, z)| *z += gain[(*k, i)] * rest);
            }
        }
        (self, z.transpose().to_owned())
    }

    /// Posterior covariances, packed (patterns × q(q+1)/2).
    pub(super) fn covariances(&self) -> Mat<f64> {
        self.roots.covariances()
    }

    /// Roots of the posterior covariances, column after column (q² × patterns).
    pub(super) fn roots(&self) -> Mat<f64> {
        self.roots.in_columns()
    }

    /// ln |M| of each pattern.
    pub(super) fn log_det(&self) -> &[f64] {
        &self.log_det
    }

    /// Deviates of the posterior covariances from standard normals of rows with the given patterns (rows × q).
    pub(super) fn deviates(&self, pattern: &[usize], normals: &Mat<f64>) -> Mat<f64> {
        self.roots.times(pattern, normals)
    }
}

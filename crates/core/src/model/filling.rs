//! What a linear-Gaussian model knows of the missing cells of rows, for those who compare rows.

use std::collections::HashMap;

use super::LinearGaussian;
use super::impute::dense;
use super::inference::{Inference, Purpose};
use super::posterior::posterior_of;
use super::ppca;
use crate::data::{Block, Cells, Chunk};
use crate::error::Result;
use crate::kernel::{FilledRows, Filling, FillingNumbers, Spread};
use crate::linalg::{Mat, MatRef, product};
use crate::memory;

/// Given the observed cells, the missing ones have the covariance W Cov(z) Wᵀ + noise; with Cov(z) = RRᵀ the root
/// of its first part is W R. A row of no weight is no row: it becomes the mean.
impl Filling for LinearGaussian {
    fn filled(&self, chunk: &Chunk<'_>) -> Result<FilledRows> {
        let mut cells = dense(chunk);
        let weightless = |i: &usize| chunk.weights().is_some_and(|w| w[*i] == 0.0);
        for i in (0..chunk.nrows()).filter(weightless) {
            self.mean().iter().enumerate().for_each(|(j, mean)| cells[(i, j)] = *mean);
        }
        let inference = Inference::new(self, Purpose::PosteriorRowByRow);
        let rows = Chunk::new(chunk.first_row(), Cells::F64(Block::View(cells.as_ref())));
        let posterior = posterior_of(&inference, &rows, &|| Ok(()))?;
        let (mut spreads, mut pattern) = (Vec::new(), vec![None; cells.nrows()]);
        if let Some(roots) = &posterior.roots {
            let mut places = HashMap::new();
            for (i, place) in pattern.iter_mut().enumerate() {
                let features: Vec<usize> = (0..cells.ncols()).filter(|j| cells[(i, *j)].is_nan()).collect();
                if features.is_empty() {
                    continue;
                }
                let (k, known) = (features.len(), places.len());
                memory::check("what is known of missing cells", &[known, 2, k, self.n_latent().min(k)])?;
                let at = *places.entry(roots.pattern(i)).or_insert_with(|| {
                    spreads.push(self.spread(features, roots.of(i, self.n_latent())));
                    known
                });
                *place = Some(at);
            }
        }
        self.fill_means(&mut cells, &posterior.mean);
        Ok(FilledRows { cells, spreads, pattern })
    }

    fn numbers(&self) -> FillingNumbers {
        let (mean, loadings) = (self.mean().to_vec(), self.loadings().clone());
        FillingNumbers { mean, loadings, noise: ppca::noise_variances(self) }
    }
}

impl LinearGaussian {
    /// Of numbers that were written down.
    ///
    /// # Errors
    /// When they make no model.
    pub(crate) fn of_numbers(numbers: FillingNumbers) -> Result<Self> {
        Self::new(numbers.mean, numbers.loadings, ppca::noise_of(numbers.noise))
    }

    /// Of the features that are missing, for a root R of the posterior covariance, column after column.
    fn spread(&self, features: Vec<usize>, root: &[f64]) -> Spread {
        let (k, q) = (features.len(), self.n_latent());
        let some = Mat::from_fn(k, q, |i, a| self.loadings()[(features[i], a)]);
        let along = product(some.as_ref(), MatRef::from_column_major_slice(root, q, q)); // W R (k × q)
        let noise = features.iter().map(|j| self.noise().of(*j)).collect();
        Spread { features, root: if k < q { narrowed(&along) } else { along }, noise }
    }
}

/// L (k × k), lower triangular, with LLᵀ = AAᵀ for A (k × q): Gram–Schmidt of the rows.
fn narrowed(a: &Mat<f64>) -> Mat<f64> {
    let (k, mut rows) = (a.nrows(), a.transpose().to_owned()); // rows side by side (q × k)
    let mut lower = Mat::zeros(k, k);
    for i in 0..k {
        for j in 0..i {
            let (before, own) = (rows.col(j).to_owned(), rows.col(i).to_owned());
            let along: f64 = before.iter().zip(own.iter()).map(|(b, o)| b * o).sum();
            lower[(i, j)] = along;
            rows.col_as_slice_mut(i).iter_mut().zip(before.iter()).for_each(|(x, b)| *x -= along * b);
        }
        let length = rows.col(i).norm_l2();
        lower[(i, i)] = length;
        let unit = if length > 0.0 { 1.0 / length } else { 0.0 };
        rows.col_as_slice_mut(i).iter_mut().for_each(|x| *x *= unit);
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;

    /// W R, noise and means are the conditional distribution, also with fewer cells than latent variables.
    #[test]
    fn spreads_are_conditional_covariances() {
        let w = Mat::from_fn(4, 3, |i, j| {
            [[1.0, 0.3, 0.1], [0.5, -1.0, 0.2], [0.2, 0.7, 0.9], [2.0, 0.1, -0.4]][i][j]
        });
        let model = LinearGaussian::new(vec![0.5; 4], w, 0.3.into()).unwrap();
        let nan = f64::NAN;
        let cells = [1.0, nan, 2.0, nan, 1.0, 2.0, 3.0, 4.0, nan, nan, nan, nan, 0.0, nan, 1.0, nan];
        let rows = Rows::from_slice(&cells, 4).unwrap();
        let found = model.filled(&rows.source().chunk(0).unwrap()).unwrap();
        assert_eq!(found.pattern, [Some(0), None, Some(1), Some(0)]);
        for (row, place) in [(0, 0), (2, 1)] {
            let expected = model.conditional(&cells[4 * row..4 * row + 4]).unwrap();
            let Spread { features, root, noise } = &found.spreads[place];
            assert_eq!(*features, expected.features);
            let covariance = product(root.as_ref(), root.transpose());
            for i in 0..features.len() {
                assert!((found.cells[(row, features[i])] - expected.mean[i]).abs() < 1e-14);
                for j in 0..features.len() {
                    let entry = covariance[(i, j)] + if i == j { noise[i] } else { 0.0 };
                    assert!((entry - expected.covariance[(i, j)]).abs() < 1e-14, "{row} {i} {j}");
                }
            }
        }
    }
}

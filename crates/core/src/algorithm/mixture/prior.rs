//! A prior against components that shrink onto a few rows.
//!
//! It counts as ν₀ rows more in each component, which lie around its mean with the variances s₀ that a mixture
//! of these rows leaves unexplained on the average:
//! $S_k \leftarrow (n_k S_k + \nu_0 \operatorname{diag}(s_0)) / (n_k + \nu_0)$. That is free of units, keeps
//! the eigenvectors where s₀ is the same for all features, and adds
//! $-\tfrac{\nu_0}{2} \left( \ln|C_k| + \operatorname{tr}(C_k^{-1} \operatorname{diag}(s_0)) \right)$ to the
//! log-likelihood.

use crate::data::{Chunk, Order};
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, product};
use crate::model::{LinearGaussian, Mixture};

/// So many rows more in each component, with these variances of the features (p).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CollapsePrior {
    /// ν₀.
    pub(crate) rows: f64,
    /// s₀ (p).
    pub(crate) variances: Vec<f64>,
}

impl CollapsePrior {
    /// Its term of the objective.
    pub(crate) fn log_density(&self, mixture: &Mixture) -> Result<f64> {
        let terms = mixture.components().iter().map(|c| self.of_component(c));
        Ok(-0.5 * self.rows * terms.sum::<Result<f64>>()?)
    }

    /// ln |C| + tr(C⁻¹ diag(s₀)) by the q × q matrix M = I + AᵀA of A = Ψ^-½ W:
    /// ln |C| = Σ ln ψ + ln |M| and (C⁻¹)ⱼⱼ = (1 − aⱼᵀM⁻¹aⱼ)/ψⱼ.
    fn of_component(&self, c: &LinearGaussian) -> Result<f64> {
        let (p, w) = (c.n_features(), c.loadings());
        let a = Mat::from_fn(p, w.ncols(), |j, k| w[(j, k)] / c.noise().of(j).sqrt());
        let mut m = product(a.transpose(), a.as_ref());
        (0..m.nrows()).for_each(|k| m[(k, k)] += 1.0);
        let factor = Cholesky::new(m, "the precision of the latent variables")?;
        let mut whitened = a.transpose().to_owned(); // L⁻¹Aᵀ (q × p)
        factor.solve_lower(whitened.as_mut());
        let share = |j: usize| 1.0 - whitened.col(j).squared_norm_l2();
        let trace: f64 = (0..p).map(|j| share(j) * self.variances[j] / c.noise().of(j)).sum();
        Ok((0..p).map(|j| c.noise().of(j).ln()).sum::<f64>() + factor.log_det() + trace)
    }

    /// 2p rows around a mean that have these variances and no covariances, of total weight ν₀: what an
    /// expectation step takes for the prior.
    ///
    /// They lie around the mean before the step, so that their likelihood is at most the prior's term and
    /// equal to it there: a step that gains by them gains by the prior.
    pub(super) fn stand_in(&self, mean: &[f64]) -> Result<Chunk<'static>> {
        let p = mean.len();
        let mut cells = Vec::with_capacity(2 * p * p);
        for j in 0..p {
            let apart = (p as f64 * self.variances[j]).sqrt();
            for side in [1.0, -1.0] {
                cells.extend_from_slice(mean);
                let last = cells.len() - p;
                cells[last + j] += side * apart;
            }
        }
        let weights = vec![self.rows / (2 * p) as f64; 2 * p];
        Chunk::from_rows(0, cells, p, Order::Rows)?.with_weights(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Noise;

    /// C = [[5, 4], [4, 9]]: |C| = 29, C⁻¹ = [[9, −4], [−4, 5]]/29.
    #[test]
    fn the_term_by_hand() {
        let w = Mat::from_fn(2, 1, |i, _| [2.0, 2.0][i]);
        let model = LinearGaussian::new(vec![0.0; 2], w, Noise::Diagonal(vec![1.0, 5.0])).unwrap();
        let prior = CollapsePrior { rows: 3.0, variances: vec![2.0, 7.0] };
        let mixture = Mixture::new(vec![1.0], vec![model]).unwrap();
        let expected = -1.5 * (29f64.ln() + (2.0 * 9.0 + 7.0 * 5.0) / 29.0);
        assert!((prior.log_density(&mixture).unwrap() - expected).abs() < 1e-14);
    }
}

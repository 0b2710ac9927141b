//! Anderson acceleration of a fixed-point iteration: the next point from a few past ones instead of the last
//! alone.
//!
//! Near the fixed point x ↦ g(x) is linear, and the combination of past points whose residuals g − x cancel
//! best is as good as a Krylov method on that linear map \[WN11\]. Whoever uses it must check that the point
//! is better: see \[HV19\] for the combination with EM.

use std::collections::VecDeque;

use crate::error::Result;
use crate::linalg::{Mat, symmetric_eigen};

/// Past points that are remembered.
const DEPTH: usize = 10;
/// Directions whose residuals are below this share of the largest are rounding.
const ROUNDING: f64 = 1e-13;

/// Past points with their images.
#[derive(Debug, Clone, Default)]
pub(crate) struct Anderson {
    past: VecDeque<Pair>,
}

#[derive(Debug, Clone)]
struct Pair {
    image: Vec<f64>,
    residual: Vec<f64>, // image − point
}

impl Anderson {
    /// Remembers a point and its image, and proposes where to go; `None` when the past says nothing yet.
    ///
    /// `scale` makes coordinates comparable: residuals are measured in multiples of its reciprocal.
    pub(crate) fn propose(
        &mut self,
        point: &[f64],
        image: &[f64],
        scale: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let residual = image.iter().zip(point).map(|(g, x)| g - x).collect();
        self.past.push_back(Pair { image: image.to_vec(), residual });
        if self.past.len() > DEPTH + 1 {
            self.past.pop_front();
        }
        let m = self.past.len() - 1;
        if m == 0 {
            return Ok(None);
        }
        let weights = self.combination(scale)?;
        let mut next = image.to_vec();
        for (k, weight) in weights.iter().enumerate() {
            let (from, to) = (&self.past[k].image, &self.past[k + 1].image);
            next.iter_mut().zip(to.iter().zip(from)).for_each(|(x, (b, a))| *x -= weight * (b - a));
        }
        Ok(next.iter().all(|x| x.is_finite()).then_some(next))
    }

    /// γ that minimises ‖r − Σ γₖ (rₖ₊₁ − rₖ)‖, r the last residual.
    fn combination(&self, scale: &[f64]) -> Result<Vec<f64>> {
        let m = self.past.len() - 1;
        let difference = |k: usize| -> Vec<f64> {
            let (a, b) = (&self.past[k].residual, &self.past[k + 1].residual);
            a.iter().zip(b).zip(scale).map(|((a, b), s)| (b - a) * s).collect()
        };
        let differences: Vec<Vec<f64>> = (0..m).map(difference).collect();
        let last: Vec<f64> = self.past[m].residual.iter().zip(scale).map(|(r, s)| r * s).collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        // Columns of length 1: how far past steps went must not decide what counts as rounding.
        let length: Vec<f64> = differences.iter().map(|d| dot(d, d).sqrt().max(f64::MIN_POSITIVE)).collect();
        let gram = Mat::from_fn(m, m, |i, j| dot(&differences[i], &differences[j]) / (length[i] * length[j]));
        let right: Vec<f64> = (0..m).map(|i| dot(&differences[i], &last) / length[i]).collect();
        let eigen = symmetric_eigen(gram.as_ref())?;
        let floor = ROUNDING * eigen.values.first().copied().unwrap_or(0.0);
        let mut weights = vec![0.0; m];
        for (v, value) in eigen.vectors.col_iter().zip(&eigen.values).filter(|(_, value)| **value > floor) {
            let along = v.iter().zip(&right).map(|(v, r)| v * r).sum::<f64>() / value;
            weights.iter_mut().zip(v.iter()).for_each(|(w, v)| *w += along * v);
        }
        Ok(weights.iter().zip(&length).map(|(w, l)| w / l).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a linear map in n dimensions, n + 1 points determine the fixed point.
    #[test]
    fn a_linear_map_is_solved_in_as_many_steps_as_it_has_dimensions() {
        let image = |x: &[f64]| {
            vec![0.9 * x[0] + 0.05 * x[1] + 1.0, 0.1 * x[0] + 0.8 * x[1] - 2.0, 0.99 * x[2] + 0.5]
        };
        // (I − A) x = b: 0.1 x₀ − 0.05 x₁ = 1, −0.1 x₀ + 0.2 x₁ = −2, 0.01 x₂ = 0.5
        let solution = [20.0 / 3.0, -20.0 / 3.0, 50.0];
        let mut anderson = Anderson::default();
        let mut x = vec![0.0; 3];
        for _ in 0..5 {
            let g = image(&x);
            x = anderson.propose(&x, &g, &[1.0, 1.0, 1.0]).unwrap().unwrap_or(g);
        }
        x.iter().zip(&solution).for_each(|(x, s)| assert!((x - s).abs() < 1e-8, "{x} {s}"));
    }
}

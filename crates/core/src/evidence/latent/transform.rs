//! Latent evidence made without rows: from moments, multiplied, and in other latent coordinates.

use std::sync::Arc;

use super::Latent;
use crate::error::Result;
use crate::evidence::Moments;
use crate::expectation::{FeatureScale, LatentParameters};
use crate::linalg::{Cholesky, Mat, MatRef, covariance_eigen, packed, packed_len, product};

/// New coordinates for z in which it has mean 0 and covariance I over the rows of some evidence: $z' =
/// V^{-1/2}(z - \bar z)$.
pub(crate) struct Frame {
    center: Vec<f64>,  // z̄ (q)
    inverse: Mat<f64>, // V^-½ (q × q)
    affine: Mat<f64>,  // (z′, 1) = A (z, 1) (q + 1 × q + 1)
}

impl Frame {
    /// The coordinates that parameter expansion leads to.
    pub(crate) fn of(evidence: &Latent) -> Result<Self> {
        let (q, weight) = (evidence.parameters().n_latent(), evidence.weight());
        let second = unpacked(&evidence.totals.second, q + 1);
        let center: Vec<f64> = (0..q).map(|i| second[(q, i)] / weight).collect();
        let spread = Mat::from_fn(q, q, |i, j| second[(i, j)] / weight - center[i] * center[j]);
        let eigen = covariance_eigen(spread.as_ref())?;
        let roots: Vec<f64> = eigen.values.iter().map(|v| v.max(f64::MIN_POSITIVE).sqrt()).collect();
        let scaled = Mat::from_fn(q, q, |i, j| eigen.vectors[(i, j)] / roots[j]);
        let inverse = product(scaled.as_ref(), eigen.vectors.transpose());
        let shift = |i: usize| -(0..q).map(|k| inverse[(i, k)] * center[k]).sum::<f64>();
        let affine = Mat::from_fn(q + 1, q + 1, |i, j| match (i < q, j < q) {
            (true, true) => inverse[(i, j)],
            (true, false) => shift(i),
            (false, here) => f64::from(u8::from(!here)),
        });
        Ok(Self { center, inverse, affine })
    }

    /// A S Aᵀ, packed.
    fn turned(&self, second: MatRef<'_, f64>) -> Vec<f64> {
        let turned = product(product(self.affine.as_ref(), second).as_ref(), self.affine.transpose());
        let pairs = (0..turned.nrows()).flat_map(|i| (0..=i).map(move |j| (i, j)));
        pairs.map(|at| turned[at]).collect()
    }
}

impl Latent {
    /// What complete rows say, by their moments alone; all but the log-likelihood, which is left at 0.
    pub(crate) fn of_moments(parameters: &Arc<LatentParameters>, moments: &Moments) -> Result<Self> {
        Self::of_weighted_moments(parameters, moments, moments.weight())
    }

    /// The same of rows that count n u times in the moments and `open` times in what their cells leave open of z.
    pub(crate) fn of_weighted_moments(
        parameters: &Arc<LatentParameters>,
        moments: &Moments,
        open: f64,
    ) -> Result<Self> {
        let (w, noise, n) = (parameters.loadings_transposed(), parameters.noise(), moments.weight());
        let (q, p, scale) = (w.nrows(), w.ncols(), parameters.scale());
        let offset: Vec<f64> =
            (0..p).map(|j| (moments.mean()[j] - parameters.mean()[j]) / scale.of(j)).collect();
        let covariance = moments.covariance();
        // Σ w (x − μ)(x − μ)ᵀ in units (p × p)
        let products = Mat::from_fn(p, p, |i, j| {
            n * (covariance[(i, j)] / (scale.of(i) * scale.of(j)) + offset[i] * offset[j])
        });
        let gram = product(w, w.transpose()); // WᵀW (q × q)
        let ridge = |i: usize, j: usize| if i == j { noise } else { 0.0 };
        let factor =
            Cholesky::new(Mat::from_fn(q, q, |i, j| gram[(i, j)] + ridge(i, j)), "the latent precision")?;
        let mut project = w.to_owned(); // M⁻¹Wᵀ (q × p): z = project · (x − μ)
        factor.solve(project.as_mut());
        let mut spread = Mat::from_fn(q, q, ridge); // C = σ² M⁻¹ (q × q)
        factor.solve(spread.as_mut());
        let cross = product(project.as_ref(), products.as_ref()); // Σ w z (x − μ)ᵀ (q × p)
        let outer = product(cross.as_ref(), project.transpose()); // Σ w z zᵀ (q × q)
        let along = |i: usize| n * (0..p).map(|j| project[(i, j)] * offset[j]).sum::<f64>();
        let entry = |i: usize, j: usize| match (i < q, j < q) {
            (true, _) => open * spread[(i, j)] + outer[(i, j)],
            (false, true) => along(j),
            (false, false) => n,
        };
        let second: Vec<f64> =
            (0..=q).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
        let mut out = Self::empty(Arc::clone(parameters));
        out.second = Mat::from_fn(packed_len(q + 1), p, |k, _| second[k]);
        out.cross = Mat::from_fn(q + 1, p, |i, j| if i < q { cross[(i, j)] } else { n * offset[j] });
        if matches!(scale, FeatureScale::NoiseDeviations(_)) {
            out.squares = (0..p).map(|j| products[(j, j)]).collect();
        }
        let explained = |j: usize| (0..q).map(|i| w[(i, j)] * cross[(i, j)]).sum::<f64>();
        let left = (0..p).map(|j| products[(j, j)] - 2.0 * explained(j)).sum::<f64>();
        let fitted = (0..q).map(|i| (0..q).map(|j| gram[(i, j)] * outer[(i, j)]).sum::<f64>()).sum::<f64>();
        out.totals.squares = (left + fitted).max(0.0);
        out.totals.determined = open * (q as f64 - (0..q).map(|i| spread[(i, i)]).sum::<f64>());
        (out.totals.weight, out.totals.cells, out.totals.second) = (n, open * p as f64, second);
        Ok(out)
    }

    /// The same with every weight multiplied.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        let matrices = [&mut self.second, &mut self.cross];
        matrices
            .into_iter()
            .for_each(|m| m.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x *= factor)));
        let totals = &mut self.totals;
        let numbers = [
            &mut totals.weight,
            &mut totals.cells,
            &mut totals.log_likelihood,
            &mut totals.squares,
            &mut totals.determined,
        ];
        numbers.into_iter().chain(&mut totals.second).chain(&mut self.squares).for_each(|x| *x *= factor);
        self
    }

    /// The same sums about z in other coordinates and deviations from other parameters: what rows that are gone
    /// would say of them if z were still what it was.
    pub(crate) fn carried(&self, to: &Arc<LatentParameters>, frame: &Frame) -> Self {
        let from = self.parameters();
        let (p, q) = (from.n_features(), from.n_latent());
        let mut out = Self::empty(Arc::clone(to));
        let mut left = self.totals.squares + from.noise() * self.totals.determined;
        for j in 0..p {
            // An old unit in new ones.
            let unit = from.scale().of(j) / to.scale().of(j);
            let second = unpacked(self.second.col_as_slice(j), q + 1);
            let cross = self.cross.col_as_slice(j);
            let (before, after) = (from.loadings_transposed().col(j), to.loadings_transposed().col(j));
            // The new loadings in the old coordinates, and the change of (w, μ).
            let w: Vec<f64> =
                (0..q).map(|i| (0..q).map(|k| frame.inverse[(i, k)] * after[k] / unit).sum()).collect();
            let moved = (to.mean()[j] - from.mean()[j]) / from.scale().of(j);
            let centred: f64 = w.iter().zip(&frame.center).map(|(w, c)| w * c).sum();
            let change: Vec<f64> = (0..q).map(|i| w[i] - before[i]).chain([moved - centred]).collect();
            for (i, x) in change.iter().enumerate() {
                let residual = cross[i] - (0..q).map(|k| second[(i, k)] * before[k]).sum::<f64>();
                let curvature: f64 = change.iter().enumerate().map(|(k, y)| second[(i, k)] * y).sum();
                left -= x * (2.0 * residual - curvature);
            }
            let shifted: Vec<f64> = (0..=q).map(|i| cross[i] - moved * second[(i, q)]).collect();
            let turned = |i: usize| (0..=q).map(|k| frame.affine[(i, k)] * shifted[k]).sum::<f64>();
            (0..=q).for_each(|i| out.cross[(i, j)] = unit * turned(i));
            if matches!(to.scale(), FeatureScale::NoiseDeviations(_)) {
                let squares = self.squares[j] - moved * (2.0 * cross[q] - moved * second[(q, q)]);
                out.squares[j] = unit * unit * squares.max(0.0);
            }
            out.second.col_as_slice_mut(j).copy_from_slice(&frame.turned(second.as_ref()));
        }
        out.totals.second = frame.turned(unpacked(&self.totals.second, q + 1).as_ref());
        (out.totals.weight, out.totals.cells) = (self.totals.weight, self.totals.cells);
        // One unit for all, or sums of each feature that stand in place of this one.
        let unit = from.scale().of(0) / to.scale().of(0);
        out.totals.squares = unit * unit * left.max(0.0);
        out
    }
}

/// The symmetric matrix of packed entries.
fn unpacked(entries: &[f64], size: usize) -> Mat<f64> {
    Mat::from_fn(size, size, |i, j| entries[packed(i.max(j), i.min(j))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::em_step;
    use crate::data::{Block, Cells, Chunk, Order};
    use crate::evidence::Accumulator;

    /// 40 rows of 4 features around a plane, a third of the cells missing when asked for.
    fn rows(incomplete: bool) -> Chunk<'static> {
        let cell = |i: usize, j: usize| {
            let (a, b) = ((i as f64 * 1.7).sin() * 3.0, (i as f64 * 0.9).cos());
            let noise = ((i * 31 + j * 17) % 23) as f64 / 23.0 - 0.5;
            if incomplete && (i * 7 + j * 3) % 10 < 3 {
                f64::NAN
            } else {
                a * (j as f64 - 1.0) + b * 2.0 + 5.0 + noise
            }
        };
        let cells = (0..40).flat_map(|i| (0..4).map(move |j| (i, j))).map(|(i, j)| cell(i, j)).collect();
        let chunk =
            Chunk::new(0, Cells::F64(Block::Owned { cells, nrows: 40, ncols: 4, order: Order::Rows }));
        chunk.with_weights((0..40).map(|i| 0.5 + (i % 3) as f64).collect::<Vec<_>>()).unwrap()
    }

    fn start() -> Arc<LatentParameters> {
        let w = Mat::from_fn(4, 2, |i, j| ((i * 2 + j * 5) as f64).sin() + 0.3);
        Arc::new(LatentParameters::new(vec![4.0, 5.5, 6.0, 5.0], w.as_ref(), 0.7).unwrap())
    }

    fn assert_near(a: &Mat<f64>, b: &Mat<f64>) {
        assert!((a - b).norm_max() < 1e-9 * b.norm_max(), "{a:?} {b:?}");
    }

    #[test]
    fn moments_say_what_the_complete_rows_say() {
        let (mut moments, mut latent) = (Moments::empty(4), Latent::empty(start()));
        moments.update(&rows(false)).unwrap();
        latent.update(&rows(false)).unwrap();
        let ours = Latent::of_moments(&start(), &moments).unwrap();
        assert_near(&ours.second, &latent.second);
        assert_near(&ours.cross, &latent.cross);
        let numbers = |l: &Latent| [l.totals.weight, l.totals.cells, l.totals.squares, l.totals.determined];
        numbers(&ours)
            .iter()
            .zip(numbers(&latent))
            .for_each(|(a, b)| assert!((a - b).abs() < 1e-9 * b, "{a} {b}"));
        let (ours, theirs) = (em_step(&ours).unwrap(), em_step(&latent).unwrap());
        assert_near(&ours.loadings(), &theirs.loadings());
    }

    /// The maximum does not depend on the coordinates in which it is looked for: at it, there is nothing left
    /// to gain.
    #[test]
    fn evidence_carried_to_its_maximum_has_its_maximum_there() {
        let w = start().loadings();
        let noises = [0.7, 0.3, 1.0, 2.0];
        let each = LatentParameters::with_noises(vec![4.0, 5.5, 6.0, 5.0], w.as_ref(), &noises).unwrap();
        for start in [start(), Arc::new(each)] {
            let mut evidence = Latent::empty(start);
            evidence.update(&rows(true)).unwrap();
            let after = Arc::new(em_step(&evidence).unwrap());
            let carried = evidence.carried(&after, &Frame::of(&evidence).unwrap());
            let again = em_step(&carried.clone().scaled(0.01)).unwrap();
            assert_near(&again.loadings(), &after.loadings());
            (0..4).for_each(|j| {
                assert!((again.noise_variance(j) / after.noise_variance(j) - 1.0).abs() < 1e-9);
            });
            again.mean().iter().zip(after.mean()).for_each(|(a, b)| assert!((a - b).abs() < 1e-9));
            if matches!(after.scale(), FeatureScale::Common(_)) {
                assert!((carried.totals.squares / carried.totals.cells / after.noise() - 1.0).abs() < 1e-9);
            }
        }
    }

    /// In other units it is the same evidence.
    #[test]
    fn evidence_carried_to_other_units_says_the_same() {
        let mut evidence = Latent::empty(start());
        evidence.update(&rows(true)).unwrap();
        let after = em_step(&evidence).unwrap();
        let halved = Mat::from_fn(2, 4, |i, j| 0.5 * after.loadings_transposed()[(i, j)]);
        let other = LatentParameters::in_units(after.mean().to_vec(), &halved, 0.25 * after.noise(), 2.0);
        let other = other.with_mean_rest(after.mean_rest().to_vec());
        let frame = Frame::of(&evidence).unwrap();
        let [a, b] = [after, other].map(|to| em_step(&evidence.carried(&Arc::new(to), &frame)).unwrap());
        assert_near(&a.loadings(), &b.loadings());
        assert!((a.noise_variance(0) / b.noise_variance(0) - 1.0).abs() < 1e-9);
    }
}

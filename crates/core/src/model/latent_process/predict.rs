//! What the functions are at given places, and at places that are known as normal distributions.

use super::LatentProcess;
use crate::linalg::{Mat, MatRef, packed, product};

/// Values of the features at some places: in the units of the model, noise not included.
pub(super) struct Predicted {
    pub(super) mean: Mat<f64>,     // (n × p)
    pub(super) variance: Mat<f64>, // (n × 1), or (n × p) where features differ
}

impl LatentProcess {
    /// k(x, Z) + bias of places (n × M).
    fn kernel_values(&self, places: MatRef<'_, f64>) -> Mat<f64> {
        let mut values = self.parts.kernel.matrix(places, self.parts.inducing.as_ref());
        if self.parts.bias > 0.0 {
            let add = |x: &mut f64| *x += self.parts.bias;
            values.col_iter_mut().for_each(|c| c.iter_mut().for_each(add));
        }
        values
    }

    /// The mean at places (n × q), in the units of the model (n × p).
    pub(super) fn mean_at(&self, places: MatRef<'_, f64>) -> Mat<f64> {
        product(self.kernel_values(places).as_ref(), self.parts.weights.as_ref())
    }

    /// Mean and variance at places (n × q).
    pub(super) fn at(&self, places: MatRef<'_, f64>) -> Predicted {
        let values = self.kernel_values(places);
        let mean = product(values.as_ref(), self.parts.weights.as_ref());
        let n = places.nrows();
        let mut variance = Mat::zeros(n, self.parts.reduction.ncols());
        for g in 0..variance.ncols() {
            let reduced = product(values.as_ref(), self.reduction(g).as_ref());
            for i in 0..n {
                let place: Vec<f64> = places.row(i).iter().copied().collect();
                let own = self.parts.kernel.own(&place) + self.parts.bias;
                let less: f64 = reduced.row(i).iter().zip(values.row(i).iter()).map(|(a, b)| a * b).sum();
                variance[(i, g)] = (own - less).max(0.0);
            }
        }
        Predicted { mean, variance }
    }

    /// Mean and covariance of features at one place N(μ, diag S), noise not included; of points S is 0, where only the
    /// variance at the place is left. `features` says which.
    pub(super) fn around(&self, mean: &[f64], variance: &[f64], features: &[usize]) -> (Vec<f64>, Mat<f64>) {
        let k = features.len();
        if self.has_points() {
            let at = self.at(MatRef::from_row_major_slice(mean, 1, mean.len()));
            let own = |j: usize| at.variance[(0, self.group(features[j]))];
            let spread = Mat::from_fn(k, k, |i, j| if i == j { own(i) } else { 0.0 });
            return (features.iter().map(|j| at.mean[(0, *j)]).collect(), spread);
        }
        let psi = self.psi.of(mean, variance);
        let (m, one) = (self.n_inducing(), psi.one.col_as_slice(0));
        let two = |i: usize, j: usize| psi.two[(packed(i.max(j), i.min(j)), 0)];
        let centred = Mat::from_fn(m, m, |i, j| two(i, j) - one[i] * one[j]); // Ψ₂ − ψ₁ψ₁ᵀ
        let chosen = Mat::from_fn(m, k, |i, j| self.parts.weights[(i, features[j])]);
        let means = (0..k).map(|j| chosen.col_as_slice(j).iter().zip(one).map(|(w, x)| w * x).sum());
        let mut spread = product(chosen.transpose(), product(centred.as_ref(), chosen.as_ref()).as_ref());
        let groups: Vec<f64> = self.left_over(psi.zero[0], psi.two.col_as_slice(0));
        (0..k).for_each(|j| spread[(j, j)] = (spread[(j, j)] + groups[self.group(features[j])]).max(0.0));
        (means.collect(), spread)
    }

    /// Mean and variance alone, in time that grows with the features, not with their pairs.
    pub(super) fn moments(&self, mean: &[f64], variance: &[f64], features: &[usize]) -> (Vec<f64>, Vec<f64>) {
        if self.has_points() {
            let (means, spread) = self.around(mean, variance, features);
            return (means, (0..features.len()).map(|j| spread[(j, j)]).collect());
        }
        let psi = self.psi.of(mean, variance);
        let (m, one) = (self.n_inducing(), psi.one.col_as_slice(0));
        let two = Mat::from_fn(m, m, |i, j| psi.two[(packed(i.max(j), i.min(j)), 0)] - one[i] * one[j]);
        let chosen = Mat::from_fn(m, features.len(), |i, j| self.parts.weights[(i, features[j])]);
        let along = product(two.as_ref(), chosen.as_ref());
        let groups = self.left_over(psi.zero[0], psi.two.col_as_slice(0));
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let each = features.iter().enumerate().map(|(c, j)| {
            let w = chosen.col_as_slice(c);
            (dot(w, one), (dot(w, along.col_as_slice(c)) + groups[self.group(*j)]).max(0.0))
        });
        each.unzip()
    }

    /// E of the function's variance: ψ₀ − tr(RΨ₂) for each group.
    fn left_over(&self, zero: f64, two: &[f64]) -> Vec<f64> {
        let m = self.n_inducing();
        let trace = |g: usize| -> f64 {
            let column = self.parts.reduction.col_as_slice(g);
            let twice: f64 = column.iter().zip(two).map(|(r, x)| 2.0 * r * x).sum();
            twice - (0..m).map(|i| column[packed(i, i)] * two[packed(i, i)]).sum::<f64>()
        };
        (0..self.parts.reduction.ncols()).map(|g| (zero - trace(g)).max(0.0)).collect()
    }
}

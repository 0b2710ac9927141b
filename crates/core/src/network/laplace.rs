//! The log-likelihood of a bent plane by Laplace's approximation, and its exact derivatives.

use super::mode::{add_times, second_slope};
use super::{CurvedMap, MapGradient, Mode, ModeSearch, Network};
use crate::linalg::{Cholesky, Mat, dot, set_product};

/// Sums over rows of minus the log-likelihood and its derivatives by the weights of the decoder and by ln σ².
///
/// At the mode z* of a row with k observed cells, with J = ∂x̂/∂z over them and M = σ²I + JᵀJ,
///
/// −log p(x) ≈ ‖x − x̂‖²/(2σ²) + ‖z*‖²/2 + ½ log|M| − (q/2) log σ² + (k/2) log 2πσ².
///
/// Of a plane this is exact: it is PPCA's likelihood. The mode moves with the weights, and the term log|M| feels it:
/// dz*/dθ = −H⁻¹ ∂²E/∂z∂θ, with H the second derivatives of the energy E.
#[derive(Debug, Clone)]
pub(crate) struct LaplaceGradient {
    pub(crate) loss: f64,
    pub(crate) decoder: MapGradient,
    pub(crate) log_noise: f64,
}

/// What derivatives of a row need, besides its mode.
struct Local {
    slope: Vec<f64>,       // tanh′ (h)
    bend: Vec<f64>,        // tanh″ (h)
    by_jacobian: Mat<f64>, // K = J M⁻¹: derivative of ½ log|M| by J (p × q)
    back: Mat<f64>,        // BᵀK (h × q)
    by_slope: Vec<f64>,    // derivative of ½ log|M| by tanh′, the diagonal of BᵀKAᵀ (h)
    v: Vec<f64>,           // H⁻¹ ∂(½ log|M|)/∂z (q)
    moved: Vec<f64>,       // J v over observed cells (p)
    inside: Vec<f64>,      // A v (h)
    of_residual: Vec<f64>, // Bᵀr/σ² (h)
    g: Vec<f64>,           // derivative by x̂, that of the moving mode included (p)
}

impl Local {
    fn new(d: &CurvedMap, search: &ModeSearch<'_>, mode: &Mode) -> Self {
        let (s, q, h) = (search.noise(), mode.z.len(), d.n_hidden());
        let slope = mode.hidden.iter().map(|t| 1.0 - t * t).collect();
        let bend: Vec<f64> = mode.hidden.iter().map(|t| second_slope(*t)).collect();
        let mut solved = mode.seen.transpose().to_owned();
        mode.factor.solve(solved.as_mut());
        let by_jacobian = solved.transpose().to_owned();
        let mut back = Mat::zeros(h, q);
        set_product(back.as_mut(), d.outer.transpose(), by_jacobian.as_ref());
        let by_slope: Vec<f64> =
            (0..h).map(|i| (0..q).map(|a| back[(i, a)] * d.inner[(i, a)]).sum()).collect();
        let pulled: Vec<f64> = by_slope.iter().zip(&bend).map(|(a, b)| a * b).collect();
        let hessian = Cholesky::new(search.hessian(&mode.seen, &mode.hidden, &mode.residual), "");
        let factor = hessian.as_ref().unwrap_or(&mode.factor);
        let mut v = Mat::from_fn(q, 1, |a, _| s * dot(d.inner.col_as_slice(a), &pulled));
        factor.solve(v.as_mut());
        let v = v.col_as_slice(0).to_vec();
        let mut moved = vec![0.0; mode.residual.len()];
        add_times(&mut moved, &mode.seen, &v);
        let mut inside = vec![0.0; h];
        add_times(&mut inside, &d.inner, &v);
        let of_residual = (0..h).map(|i| dot(d.outer.col_as_slice(i), &mode.residual) / s).collect();
        let g = mode.residual.iter().zip(&moved).map(|(r, y)| -(r + y) / s).collect();
        Self { slope, bend, by_jacobian, back, by_slope, v, moved, inside, of_residual, g }
    }

    /// Adds the derivatives by offsets, linear and outer weights.
    fn add_outside(&self, out: &mut CurvedMap, d: &CurvedMap, mode: &Mode, s: f64, w: f64) {
        let (q, h) = (mode.z.len(), d.n_hidden());
        add(&mut out.offset, w, &self.g);
        for a in 0..q {
            let column = out.linear.col_as_slice_mut(a);
            add(column, w * mode.z[a], &self.g);
            add(column, w, self.by_jacobian.col_as_slice(a));
            add(column, w * self.v[a] / s, &mode.residual);
        }
        let mut turned = Mat::zeros(mode.residual.len(), h); // K Aᵀ
        set_product(turned.as_mut(), self.by_jacobian.as_ref(), d.inner.transpose());
        for i in 0..h {
            let column = out.outer.col_as_slice_mut(i);
            add(column, w * mode.hidden[i], &self.g);
            add(column, w * self.slope[i], turned.col_as_slice(i));
            add(column, w * self.slope[i] * self.inside[i] / s, &mode.residual);
        }
    }

    /// Adds the derivatives by inner weights and biases.
    fn add_inside(&self, out: &mut CurvedMap, d: &CurvedMap, mode: &Mode, w: f64) {
        let by_input = |i: usize| {
            let direct = dot(d.outer.col_as_slice(i), &self.g) * self.slope[i];
            direct + (self.by_slope[i] + self.of_residual[i] * self.inside[i]) * self.bend[i]
        };
        let delta: Vec<f64> = (0..d.n_hidden()).map(by_input).collect();
        add(&mut out.bias, w, &delta);
        for a in 0..mode.z.len() {
            let column = out.inner.col_as_slice_mut(a);
            add(column, w * mode.z[a], &delta);
            for (i, to) in column.iter_mut().enumerate() {
                *to += w * self.slope[i] * (self.back[(i, a)] + self.of_residual[i] * self.v[a]);
            }
        }
    }
}

impl LaplaceGradient {
    /// Of no rows.
    pub(crate) fn zeros(network: &Network) -> Self {
        Self { loss: 0.0, decoder: MapGradient::zeros(&network.decoder), log_noise: 0.0 }
    }

    /// Adds a row of weight w at its mode.
    pub(crate) fn add(&mut self, network: &Network, search: &ModeSearch<'_>, mode: &Mode, w: f64) {
        let (d, s, q, cells) = (&network.decoder, search.noise(), mode.z.len() as f64, mode.cells as f64);
        let log_det = mode.factor.log_det() - q * s.ln();
        self.loss += w * (mode.energy + 0.5 * log_det + 0.5 * cells * (std::f64::consts::TAU * s).ln());
        let local = Local::new(d, search, mode);
        local.add_outside(&mut self.decoder.0, d, mode, s, w);
        local.add_inside(&mut self.decoder.0, d, mode, w);
        let squares = dot(&mode.residual, &mode.residual);
        let along = dot(&local.moved, &mode.residual); // vᵀJᵀr
        let trace = mode.factor.inverse_size();
        self.log_noise += w * (-0.5 * squares / s + 0.5 * s * trace - 0.5 * q + 0.5 * cells - along / s);
    }
}

fn add(to: &mut [f64], factor: f64, terms: &[f64]) {
    to.iter_mut().zip(terms).for_each(|(t, x)| *t += factor * x);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curved network from two latent variables to four features.
    fn network() -> Network {
        let wave = |i: usize, j: usize, f: f64| (1.7 * i as f64 + 0.9 * j as f64 + f).sin();
        let decoder = CurvedMap {
            offset: vec![0.1, -0.2, 0.3, 0.0],
            linear: Mat::from_fn(4, 2, |i, j| wave(i, j, 0.2)),
            inner: Mat::from_fn(3, 2, |i, j| 0.8 * wave(i, j, 1.0)),
            bias: vec![0.2, -0.1, 0.4],
            outer: Mat::from_fn(4, 3, |i, j| 0.5 * wave(i, j, 2.0)),
        };
        Network { decoder, encoder: None, noise: 0.3, anchors: Mat::zeros(2, 1) }
    }

    fn rows() -> [[f64; 4]; 3] {
        let missing = f64::NAN;
        [[0.9, -0.4, 0.7, 0.2], [-0.5, missing, 0.3, 1.1], [missing, missing, 0.8, missing]]
    }

    fn loss_and_gradient(network: &Network) -> (f64, Vec<f64>) {
        let search = ModeSearch::new(network);
        let mut sums = LaplaceGradient::zeros(network);
        for (i, x) in rows().iter().enumerate() {
            sums.add(network, &search, &search.mode(x).unwrap(), 1.0 + 0.5 * i as f64);
        }
        let gradient = sums.decoder.0.numbers().into_iter().chain([sums.log_noise]).collect();
        (sums.loss, gradient)
    }

    /// Central differences of the whole: the mode is found anew at each end.
    #[test]
    fn derivatives_are_those_of_finite_differences_though_the_mode_moves() {
        let network = network();
        let (_, gradient) = loss_and_gradient(&network);
        let (numbers, h) = (network.numbers(), 1e-5);
        assert_eq!(numbers.len(), gradient.len());
        for (k, slope) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut other = numbers.clone();
                other[k] += by;
                loss_and_gradient(&network.with_numbers(&other)).0
            };
            let expected = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((slope - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{k}: {slope} {expected}");
        }
    }

    /// Of a plane: the normal density of the observed cells, by brute force.
    #[test]
    fn of_a_plane_the_likelihood_is_ppcas() {
        let curved = network();
        let CurvedMap { offset, linear, .. } = curved.decoder;
        let plane = Network { decoder: CurvedMap::linear(offset.clone(), linear.clone()), ..network() };
        let mut expected = 0.0;
        for (i, x) in rows().iter().enumerate() {
            let seen: Vec<usize> = (0..4).filter(|j| !x[*j].is_nan()).collect();
            let c = Mat::from_fn(seen.len(), seen.len(), |a, b| {
                let w = (0..2).map(|k| linear[(seen[a], k)] * linear[(seen[b], k)]).sum::<f64>();
                w + if a == b { 0.3 } else { 0.0 }
            });
            let e = Mat::from_fn(seen.len(), 1, |a, _| x[seen[a]] - offset[seen[a]]);
            let factor = Cholesky::new(c, "").unwrap();
            let mut solved = e.clone();
            factor.solve(solved.as_mut());
            let square = dot(e.col_as_slice(0), solved.col_as_slice(0));
            let logs = seen.len() as f64 * std::f64::consts::TAU.ln() + factor.log_det();
            expected += (1.0 + 0.5 * i as f64) * 0.5 * (logs + square);
        }
        assert!((loss_and_gradient(&plane).0 - expected).abs() < 1e-12 * expected.abs());
    }
}

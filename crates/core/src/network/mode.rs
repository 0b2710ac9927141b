//! The most probable latent variables of one row given the cells that were observed, by Newton's method.

use super::{CurvedMap, Network};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Mat, add_product, dot, set_product, tanh};

/// Steps of a search at most; ten are usual.
const STEPS: usize = 60;
/// How often a step is halved before it is given up.
const HALVINGS: usize = 40;
/// A second start lies so far from the first, by deviations of the prior, and its energy is at most so many times as
/// high: otherwise it would end in the same place, or higher.
const APART: f64 = 0.5;
const AS_HIGH: f64 = 4.0;
/// A step below this share of the coordinates is Newton's to the end, and below that it was the last: its error is the
/// square of it.
const NEAR: f64 = 1e-4;
const PRECISION: f64 = 1e-8;
/// Least noise of a search: without noise every other row would have probability 0.
const LEAST_NOISE: f64 = 1e-10;

/// Finds modes of rows for one network.
///
/// The mode minimises E(z) = ‖x − x̂(z)‖²/(2σ²) + ‖z‖²/2 over the observed cells. A bent surface may have several
/// minima: the search begins at the anchor where E is lowest and, where another one that lies apart is nearly as low, there
/// too; the lower end wins.
pub(crate) struct ModeSearch<'a> {
    decoder: &'a CurvedMap,
    noise: f64,
    anchors: Mat<f64>, // (q × m)
    images: Mat<f64>,  // (p × m)
}

/// A mode, with what the surface is like there.
pub(crate) struct Mode {
    /// z (q).
    pub(crate) z: Vec<f64>,
    /// tanh of the hidden units (h).
    pub(crate) hidden: Vec<f64>,
    /// x̂ (p).
    pub(crate) image: Vec<f64>,
    /// x − x̂, 0 where a cell is missing (p).
    pub(crate) residual: Vec<f64>,
    /// J = ∂x̂/∂z, all features (p × q).
    pub(crate) jacobian: Mat<f64>,
    /// The same, 0 where a cell is missing.
    pub(crate) seen: Mat<f64>,
    /// E(z).
    pub(crate) energy: f64,
    /// M = σ²I + JᵀJ over the observed cells.
    pub(crate) factor: Cholesky,
    /// Observed cells.
    pub(crate) cells: usize,
}

/// A place of the latent space.
struct Place {
    z: Vec<f64>,
    hidden: Vec<f64>,
    image: Vec<f64>,
    residual: Vec<f64>,
    energy: f64,
}

impl<'a> ModeSearch<'a> {
    pub(crate) fn new(network: &'a Network) -> Self {
        let q = network.n_latent();
        let anchors = match network.anchors.ncols() {
            0 => Mat::zeros(q, 1),
            _ => network.anchors.clone(),
        };
        let images = network.decoder.apply(anchors.as_ref()).out;
        Self { decoder: &network.decoder, noise: network.noise.max(LEAST_NOISE), anchors, images }
    }

    /// σ², as the search takes it.
    pub(crate) fn noise(&self) -> f64 {
        self.noise
    }

    /// The mode of a row x (p), NaN where a cell is missing.
    pub(crate) fn mode(&self, x: &[f64]) -> Result<Mode> {
        let mut best: Option<Place> = None;
        for start in self.starts(x) {
            let end = self.descend(x, start)?;
            if best.as_ref().is_none_or(|best| end.energy < best.energy) {
                best = Some(end);
            }
        }
        best.map_or_else(|| Err(not_finite()), |place| self.at(x, place))
    }

    /// What the surface is like at given coordinates of a row.
    pub(crate) fn mode_at(&self, x: &[f64], z: Vec<f64>) -> Result<Mode> {
        let place = self.place(x, z);
        self.at(x, place)
    }

    /// The anchor where E is lowest, and one that lies apart where it is nearly as low.
    fn starts(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let anchor = |k: usize| self.anchors.col_as_slice(k);
        let energy = |k: usize| {
            let away = |(x, y): (&f64, &f64)| if x.is_nan() { 0.0 } else { (x - y) * (x - y) };
            let squares: f64 = x.iter().zip(self.images.col_as_slice(k)).map(away).sum();
            0.5 * squares / self.noise + 0.5 * dot(anchor(k), anchor(k))
        };
        let energies: Vec<f64> = (0..self.anchors.ncols()).map(energy).collect();
        let lowest = |among: &dyn Fn(usize) -> bool| {
            (0..energies.len()).filter(|k| among(*k)).min_by(|a, b| energies[*a].total_cmp(&energies[*b]))
        };
        let Some(first) = lowest(&|_| true) else { return Vec::new() };
        let apart = |k: usize| {
            let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
            anchor(k).iter().zip(anchor(first)).map(square).sum::<f64>() > APART * APART
        };
        let second = lowest(&apart).filter(|k| energies[*k] <= AS_HIGH * (1.0 + energies[first]));
        [Some(first), second].into_iter().flatten().map(|k| anchor(k).to_vec()).collect()
    }

    fn place(&self, x: &[f64], z: Vec<f64>) -> Place {
        let d = self.decoder;
        let mut a = d.bias.clone();
        add_times(&mut a, &d.inner, &z);
        let mut hidden = vec![0.0; a.len()];
        tanh(&a, &mut hidden);
        let mut y = d.offset.clone();
        add_times(&mut y, &d.linear, &z);
        add_times(&mut y, &d.outer, &hidden);
        let away = |(x, y): (&f64, &f64)| if x.is_nan() { 0.0 } else { x - y };
        let residual: Vec<f64> = x.iter().zip(&y).map(away).collect();
        let energy = 0.5 * dot(&residual, &residual) / self.noise + 0.5 * dot(&z, &z);
        Place { z, hidden, image: y, residual, energy }
    }

    /// J at a place (p × q).
    fn jacobian(&self, hidden: &[f64]) -> Mat<f64> {
        let (d, mut j) = (self.decoder, self.decoder.linear.clone());
        let bent =
            Mat::from_fn(d.n_hidden(), d.n_inputs(), |h, k| (1.0 - hidden[h] * hidden[h]) * d.inner[(h, k)]);
        add_product(j.as_mut(), d.outer.as_ref(), bent.as_ref(), 1.0);
        j
    }

    fn at(&self, x: &[f64], place: Place) -> Result<Mode> {
        let Place { z, hidden, image, residual, energy } = place;
        let jacobian = self.jacobian(&hidden);
        let seen = only_seen(&jacobian, x);
        let factor = Cholesky::new(self.gauss_newton(&seen), "the precision of latent variables")?;
        let cells = x.iter().filter(|x| !x.is_nan()).count();
        Ok(Mode { z, hidden, image, residual, jacobian, seen, energy, factor, cells })
    }

    /// M = σ²I + JᵀJ (q × q).
    fn gauss_newton(&self, seen: &Mat<f64>) -> Mat<f64> {
        let q = seen.ncols();
        let mut m = Mat::zeros(q, q);
        set_product(m.as_mut(), seen.transpose(), seen.as_ref());
        (0..q).for_each(|k| m[(k, k)] += self.noise);
        m
    }

    /// σ² times the second derivatives of E: M − Aᵀ diag((Bᵀr) ∘ tanh″) A (q × q).
    pub(crate) fn hessian(&self, seen: &Mat<f64>, hidden: &[f64], residual: &[f64]) -> Mat<f64> {
        let (d, q, mut out) = (self.decoder, seen.ncols(), self.gauss_newton(seen));
        let bends: Vec<f64> = (0..d.n_hidden())
            .map(|h| dot(d.outer.col_as_slice(h), residual) * second_slope(hidden[h]))
            .collect();
        for (a, b) in (0..q).flat_map(|a| (0..q).map(move |b| (a, b))) {
            let (i, j) = (d.inner.col_as_slice(a), d.inner.col_as_slice(b));
            out[(a, b)] -= bends.iter().zip(i.iter().zip(j)).map(|(w, (i, j))| w * i * j).sum::<f64>();
        }
        out
    }

    /// Newton's method; Gauss and Newton's where the second derivatives have no minimum.
    fn descend(&self, x: &[f64], start: Vec<f64>) -> Result<Place> {
        let mut here = self.place(x, start);
        if !here.energy.is_finite() {
            return Err(not_finite());
        }
        for _ in 0..STEPS {
            let seen = only_seen(&self.jacobian(&here.hidden), x);
            let downhill: Vec<f64> = (0..here.z.len())
                .map(|k| dot(seen.col_as_slice(k), &here.residual) - self.noise * here.z[k])
                .collect();
            let newton = Cholesky::new(self.hessian(&seen, &here.hidden, &here.residual), "");
            let is_newton = newton.is_ok();
            let factor = match newton {
                Ok(factor) => factor,
                Err(_) => Cholesky::new(self.gauss_newton(&seen), "the precision of latent variables")?,
            };
            let mut step = Mat::from_fn(downhill.len(), 1, |k, _| downhill[k]);
            factor.solve(step.as_mut());
            let step = step.col_as_slice(0);
            let size = dot(step, step).sqrt() / (1.0 + dot(&here.z, &here.z).sqrt());
            if is_newton && size <= NEAR {
                // E is flat to rounding here, but Newton's steps double the digits of z.
                here = self.place(x, here.z.iter().zip(step).map(|(z, d)| z + d).collect());
            } else if let Some(there) = self.along(x, &here, step) {
                here = there;
            } else {
                break;
            }
            if size <= PRECISION {
                break;
            }
        }
        Ok(here)
    }

    /// The first lower place along a step that is halved again and again.
    fn along(&self, x: &[f64], here: &Place, step: &[f64]) -> Option<Place> {
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            let there = self.place(x, here.z.iter().zip(step).map(|(z, d)| z + share * d).collect());
            if there.energy < here.energy {
                return Some(there);
            }
            share *= 0.5;
        }
        None
    }
}

impl Mode {
    /// A root R of the covariance σ²M⁻¹ = RRᵀ of the Laplace posterior (q × q): σ L⁻ᵀ.
    pub(crate) fn root(&self, noise: f64) -> Mat<f64> {
        let q = self.z.len();
        let mut root = Mat::identity(q, q);
        self.factor.solve_upper(root.as_mut());
        let sigma = noise.sqrt();
        Mat::from_fn(q, q, |i, k| sigma * root[(i, k)])
    }
}

/// tanh″ of a unit whose tanh is t.
pub(super) fn second_slope(t: f64) -> f64 {
    -2.0 * t * (1.0 - t * t)
}

/// J with rows of missing cells set to 0.
fn only_seen(jacobian: &Mat<f64>, x: &[f64]) -> Mat<f64> {
    let mut seen = jacobian.clone();
    for k in 0..seen.ncols() {
        let column = seen.col_as_slice_mut(k).iter_mut().zip(x);
        column.filter(|(_, x)| x.is_nan()).for_each(|(j, _)| *j = 0.0);
    }
    seen
}

/// y ← y + M u.
pub(super) fn add_times(y: &mut [f64], matrix: &Mat<f64>, u: &[f64]) {
    for (k, u) in u.iter().enumerate() {
        y.iter_mut().zip(matrix.col_as_slice(k)).for_each(|(y, m)| *y += m * u);
    }
}

fn not_finite() -> Error {
    Error::NotFinite { what: "the distance of a row from the surface of the network" }
}

//! Kernel values of rows that miss cells: what is expected of them, given what is known of the cells.

use std::fmt::Debug;
use std::sync::Arc;

use super::KernelForm;
use crate::data::Chunk;
use crate::error::Result;
use crate::linalg::{Cholesky, Mat, MatRef, exp};

/// What the missing cells of a row may be: x ~ N(m, S) with S = BBᵀ + diag(noise) over the missing features, and
/// 0 elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The missing features, ascending (k).
    pub features: Vec<usize>,
    /// B (k × r).
    pub root: Mat<f64>,
    /// Variance of each beyond that (k).
    pub noise: Vec<f64>,
}

/// Rows whose missing cells are filled by their means.
#[derive(Debug, Clone)]
pub struct FilledRows {
    /// The cells (n × p).
    pub cells: Mat<f64>,
    /// One for each pattern of missing values.
    pub spreads: Vec<Spread>,
    /// The place of each row among them; `None` for a complete one (n).
    pub pattern: Vec<Option<usize>>,
}

/// Something that knows the distribution of the missing cells of a row.
pub trait Filling: Debug + Send + Sync {
    /// Of the rows of a chunk, each by itself.
    ///
    /// # Errors
    /// When they have another number of features or an infinite cell, or the answer does not fit in memory.
    fn filled(&self, chunk: &Chunk<'_>) -> Result<FilledRows>;

    /// Its numbers, for those who write them down.
    fn numbers(&self) -> FillingNumbers;
}

/// Rows are N(mean, WWᵀ + diag(noise)).
#[derive(Debug, Clone, PartialEq)]
pub struct FillingNumbers {
    /// μ (p).
    pub mean: Vec<f64>,
    /// W (p × q).
    pub loadings: Mat<f64>,
    /// Variances of the noise: one, or p.
    pub noise: Vec<f64>,
}

/// Where and in which units spreads are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<'a> {
    pub(crate) form: KernelForm,
    pub(crate) gamma: f64, // for cells in the frame
    pub(crate) unit: f64,
    pub(crate) factors: &'a [f64], // of the frame (p)
}

/// A spread in the frame, times 2γ, with what does not depend on the other row.
#[derive(Debug, Clone)]
pub(crate) struct Uncertain {
    spread: Spread,       // √2γ B and 2γ noise
    alone: Arc<Factored>, // of I + 2γS
    own: f64,             // ‖E φ‖² of the rbf kernel: |I + 4γS|^-½
    trace: f64,           // of S, in the units of the kernel
}

impl Uncertain {
    pub(crate) fn new(spread: &Spread, units: Units<'_>) -> Result<Self> {
        let mut inside = spread.clone();
        let mut trace = 0.0;
        for (i, j) in spread.features.iter().enumerate() {
            let factor = units.factors[*j];
            inside.noise[i] *= factor * factor;
            (0..inside.root.ncols()).for_each(|a| inside.root[(i, a)] *= factor);
            trace += inside.noise[i] + inside.root.row(i).squared_norm_l2();
        }
        let trace = trace * units.unit * units.unit;
        let scaled = inside.times(2.0 * units.gamma);
        let p = units.factors.len();
        // A linear kernel looks at the trace alone.
        if units.form != KernelForm::Rbf {
            return Ok(Self { alone: Arc::new(Factored::certain(p)), spread: scaled, own: f64::NAN, trace });
        }
        let own = (-Factored::of(&scaled.times(2.0), p)?.half_log_det).exp();
        Ok(Self { alone: Arc::new(Factored::of(&scaled, p)?), spread: scaled, own, trace })
    }

    /// The factor of the row alone.
    pub(crate) fn alone(&self) -> &Factored {
        &self.alone
    }

    /// ‖E φ(x)‖², the kernel of two rows that are drawn independently from what is known of this one.
    pub(crate) fn own(&self) -> f64 {
        self.own
    }

    /// Trace of S.
    pub(crate) fn trace(&self) -> f64 {
        self.trace
    }

    /// I + 2γ(S + S′) for another row.
    pub(crate) fn with(&self, other: &Self) -> Result<Factored> {
        Factored::of(&self.spread.plus(&other.spread), self.alone.weights.len())
    }
}

impl Spread {
    fn times(&self, factor: f64) -> Self {
        let (root, noise) = (&self.root, &self.noise);
        Self {
            features: self.features.clone(),
            root: Mat::from_fn(root.nrows(), root.ncols(), |i, a| factor.sqrt() * root[(i, a)]),
            noise: noise.iter().map(|v| factor * v).collect(),
        }
    }

    /// S + S′ of two rows.
    fn plus(&self, other: &Self) -> Self {
        let mut features: Vec<usize> = self.features.iter().chain(&other.features).copied().collect();
        features.sort_unstable();
        features.dedup();
        let (r, s) = (self.root.ncols(), other.root.ncols());
        let (mut root, mut noise) = (Mat::zeros(features.len(), r + s), vec![0.0; features.len()]);
        for (of, first) in [(self, 0), (other, r)] {
            let mut place = 0;
            for (i, j) in of.features.iter().enumerate() {
                place += features[place..].iter().take_while(|f| *f < j).count();
                noise[place] += of.noise[i];
                (0..of.root.ncols()).for_each(|a| root[(place, first + a)] = of.root[(i, a)]);
            }
        }
        Self { features, root, noise }
    }
}

/// I + 2γS, ready for quadratic forms: with Δ = I + 2γ diag(noise) and U = √2γ B, its inverse is Δ⁻¹ − VᵀV, where
/// V = L⁻¹UᵀΔ⁻¹ and I + UᵀΔ⁻¹U = LLᵀ (Woodbury); its determinant is |Δ||LLᵀ|.
#[derive(Debug)]
pub(crate) struct Factored {
    features: Vec<usize>,
    weights: Vec<f64>, // Δ⁻¹ of every feature (p)
    turned: Mat<f64>,  // V (r × k)
    half_log_det: f64,
}

impl Factored {
    /// Of a row that misses nothing.
    fn certain(p: usize) -> Self {
        Self { features: Vec::new(), weights: vec![1.0; p], turned: Mat::zeros(0, 0), half_log_det: 0.0 }
    }

    /// Of a spread that is multiplied by 2γ.
    fn of(spread: &Spread, p: usize) -> Result<Self> {
        let Spread { features, root, noise } = spread;
        let (k, r) = (root.nrows(), root.ncols());
        let inverse: Vec<f64> = noise.iter().map(|v| 1.0 / (1.0 + v)).collect();
        let mut turned = Mat::from_fn(r, k, |a, i| root[(i, a)] * inverse[i]); // UᵀΔ⁻¹
        let inner = Mat::from_fn(r, r, |a, b| {
            // The lower triangle is enough.
            let dot = || (0..k).map(|i| turned[(a, i)] * root[(i, b)]).sum::<f64>();
            if a < b { 0.0 } else { dot() + f64::from(u8::from(a == b)) }
        });
        let inner = Cholesky::new(inner, "what is known of missing cells")?;
        inner.solve_lower(turned.as_mut());
        let of_noise: f64 = noise.iter().map(|v| v.ln_1p()).sum();
        let of_root: f64 = (0..r).map(|a| inner.lower()[(a, a)].ln()).sum();
        let mut weights = vec![1.0; p];
        features.iter().zip(&inverse).for_each(|(j, w)| weights[*j] = *w);
        Ok(Self { features: features.clone(), weights, turned, half_log_det: 0.5 * of_noise + of_root })
    }

    /// E k(x, y) of rows with the means x and y (p): |I + 2γS|^-½ exp(−γ (x − y)ᵀ(I + 2γS)⁻¹(x − y)).
    pub(crate) fn value(&self, gamma: f64, x: &[f64], y: &[f64]) -> f64 {
        let cells = x.iter().zip(y).zip(&self.weights);
        let all: f64 = cells.map(|((x, y), w)| w * (x - y) * (x - y)).sum();
        let mut along = vec![0.0; self.turned.nrows()];
        for (i, j) in self.features.iter().enumerate() {
            let d = x[*j] - y[*j];
            along.iter_mut().zip(self.turned.col_as_slice(i)).for_each(|(a, v)| *a += v * d);
        }
        let held: f64 = along.iter().map(|a| a * a).sum();
        let mut value = [-self.half_log_det - gamma * (all - held).max(0.0)];
        exp(&mut value);
        value[0]
    }

    /// E k(x, z) of a row with the mean x (p) and points that miss nothing, feature by feature (m × p), into
    /// `out` (m).
    pub(crate) fn values(&self, gamma: f64, x: &[f64], points: MatRef<'_, f64>, out: &mut [f64]) {
        let column = |j: usize| points.col(j).try_as_col_major().map_or(&[][..], |c| c.as_slice());
        out.fill(0.0);
        for (j, (x, w)) in x.iter().zip(&self.weights).enumerate() {
            pulp::Arch::new().dispatch(AddSquares(out, column(j), *x, *w));
        }
        let mut along = vec![0.0; out.len()];
        for a in 0..self.turned.nrows() {
            along.fill(0.0);
            for (i, j) in self.features.iter().enumerate() {
                pulp::Arch::new().dispatch(AddTimes(&mut along, column(*j), x[*j], self.turned[(a, i)]));
            }
            out.iter_mut().zip(&along).for_each(|(o, t)| *o -= t * t);
        }
        out.iter_mut().for_each(|o| *o = -self.half_log_det - gamma * o.max(0.0));
        exp(out);
    }

    /// Adds `weight` times (I − (I + 2γS)⁻¹)(x − m) to `out` (p): how far the mean of the missing cells moves when
    /// the row is known to lie near x.
    pub(crate) fn add_pull(&self, weight: f64, x: &[f64], mean: &[f64], out: &mut [f64]) {
        let mut along = vec![0.0; self.turned.nrows()];
        let d = |j: usize| x[j] - mean[j];
        for (i, j) in self.features.iter().enumerate() {
            along.iter_mut().zip(self.turned.col_as_slice(i)).for_each(|(a, v)| *a += v * d(*j));
        }
        for (i, j) in self.features.iter().enumerate() {
            let back: f64 = along.iter().zip(self.turned.col_as_slice(i)).map(|(a, v)| a * v).sum();
            out[*j] += weight * ((1.0 - self.weights[*j]) * d(*j) + back);
        }
    }
}

/// out += w (z − x)².
struct AddSquares<'a>(&'a mut [f64], &'a [f64], f64, f64);

impl pulp::NullaryFnOnce for AddSquares<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(out, points, x, w) = self;
        out.iter_mut().zip(points).for_each(|(o, z)| *o += w * ((z - x) * (z - x)));
    }
}

/// out += v (z − x).
struct AddTimes<'a>(&'a mut [f64], &'a [f64], f64, f64);

impl pulp::NullaryFnOnce for AddTimes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self(out, points, x, v) = self;
        out.iter_mut().zip(points).for_each(|(o, z)| *o += v * (z - x));
    }
}

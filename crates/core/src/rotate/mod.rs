//! Loadings turned so that they can be read: orthogonal and oblique rotations.
//!
//! The covariance that loadings stand for does not change when latent axes are turned, so the turn is free to
//! make them simple. What is simple a [`Method`] says; [`Rotate`] finds the turn, for the loadings of any
//! model; [`Rotated`] holds what comes out.

mod closed;
mod criterion;
mod descent;
mod method;
mod normalise;
mod rotated;
mod turn;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub use method::Method;
pub use rotated::Rotated;

use crate::algorithm::{Limits, Stop, drive, optimise};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, orthonormal_columns};
use crate::parallel;
use criterion::Criterion;
use descent::Descent;
use method::parameter;
use normalise::Normalisation;
use turn::{Point, Space};

/// Values of the criterion per feature that agree to this belong to one optimum.
const SAME: f64 = 1e-9;

/// A rotation to be made: the method and how it is looked for.
///
/// ```
/// use covary::linalg::Mat;
/// use covary::rotate::{Method, Rotate};
///
/// // Two clusters of features, their axes turned by half a right angle.
/// let a = Mat::from_fn(4, 2, |i, j| if (i < 2) == (j == 0) || j == 0 { 0.5 } else { -0.5 });
/// let turned = Rotate::new(Method::Quartimax).run(a.as_ref())?;
/// let found = [(0, 0), (0, 1), (3, 0), (3, 1)].map(|cell| turned.pattern[cell]);
/// let simple = [0.5_f64.sqrt(), 0.0, 0.0, 0.5_f64.sqrt()];
/// assert!(found.iter().zip(simple).all(|(a, b)| (a - b).abs() < 1e-12));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rotate {
    method: Method,
    kaiser: bool,
    starts: usize,
    seed: u64,
    limits: Limits,
}

impl Rotate {
    /// A rotation with the settings that are usual for the method.
    pub fn new(method: Method) -> Self {
        let (kaiser, starts) = (method.kaiser_by_default(), method.starts_by_default());
        let limits = Limits { tolerance: 1e-12, iterations: 10_000 };
        Self { method, kaiser, starts, seed: 0, limits }
    }

    /// Whether rows are brought to length 1 before, and back after \[K58\], so that all features count alike.
    ///
    /// On by default for varimax and promax, as in R's `stats`, off for the others, as in GPArotation. Promax
    /// normalises for its varimax only. A target stays in the units of the loadings: normalising gives its
    /// rows weights.
    pub fn kaiser(mut self, normalise: bool) -> Self {
        self.kaiser = normalise;
        self
    }

    /// How many starts, at least 1: the loadings as they are, then random turns. The best value wins, the
    /// first of equals.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = starts;
        self
    }

    /// Seed of the random turns (0 unless told). The same seed finds the same rotation.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Length of the projected gradient, per feature and for loadings of mean square 1, at which a descent
    /// ends (1e-12).
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.limits.tolerance = tolerance;
        self
    }

    /// Most steps of each descent (10 000). One that needs more is returned as not converged.
    pub fn max_iterations(mut self, iterations: usize) -> Self {
        self.limits.iterations = iterations;
        self
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Whether rows are brought to length 1 before.
    pub fn is_kaiser(&self) -> bool {
        self.kaiser
    }

    /// Rotates loadings A (p × q). One column has nothing to be turned to: only its sign is set.
    ///
    /// # Errors
    /// When a loading is not finite, there are more factors than features, a parameter or a target does not
    /// fit, a row is zero that Kaiser's normalisation would divide by ([`Error::ZeroLoadings`]), or factors
    /// fall together ([`Error::Collapsed`]).
    pub fn run(&self, loadings: MatRef<'_, f64>) -> Result<Rotated> {
        self.run_with(loadings, &Control::new())
    }

    /// Rotates loadings under the eyes of a caller. Starts run side by side, so that there is no progress to
    /// tell.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`].
    pub fn run_with(&self, loadings: MatRef<'_, f64>, control: &Control<'_>) -> Result<Rotated> {
        self.check(loadings)?;
        let q = loadings.ncols();
        if q < 2 {
            let still = Rotated::new(loadings, Mat::identity(q, q), Space::Orthogonal);
            return still.map(|r| self.arranged(r)).ok_or_else(|| self.collapsed());
        }
        let scales = match self.kaiser {
            true => Normalisation::kaiser(loadings)?,
            false => Normalisation::typical(loadings),
        };
        let found = match &self.method {
            Method::Promax { power } => self.promax(loadings, &scales, *power, control),
            Method::Procrustes { target, .. } => self.procrustes(loadings, &scales, target),
            method => self.descended(loadings, &scales, method, control),
        };
        found.map(|r| self.arranged(r))
    }

    fn arranged(&self, rotated: Rotated) -> Rotated {
        if self.method.target().is_some() { rotated } else { rotated.standard() }
    }

    fn check(&self, a: MatRef<'_, f64>) -> Result<()> {
        let (p, q) = (a.nrows(), a.ncols());
        if q > p {
            return Err(parameter("the number of factors", &q, "at most the number of features"));
        }
        let cells = (0..p).flat_map(|i| (0..q).map(move |j| (i, j)));
        if let Some((i, j)) = cells.clone().find(|ij| !a[*ij].is_finite()) {
            let value = format!("{} (feature {i}, factor {j})", a[(i, j)]);
            return Err(parameter("a loading", &value, "a finite number"));
        }
        if self.starts == 0 {
            return Err(parameter("the number of starts", &self.starts, "at least 1"));
        }
        self.limits.check()?;
        self.method.check(p, q)
    }

    fn collapsed(&self) -> Error {
        let hint = match self.method {
            Method::Oblimin { gamma } if gamma > 0.0 => ", or for a gamma of at most 0",
            _ => "",
        };
        Error::Collapsed { rotation: self.method.name(), hint }
    }

    /// The best of all starts of a smooth criterion.
    fn descended(
        &self,
        a: MatRef<'_, f64>,
        scales: &Normalisation,
        method: &Method,
        control: &Control<'_>,
    ) -> Result<Rotated> {
        let space = Space::of(method);
        let criterion = Criterion::of(method, a.ncols(), scales).ok_or_else(|| self.collapsed())?;
        let ends = self.ends(space, scales.apply(a).as_ref(), &criterion, control)?;
        let best = best(&ends).ok_or_else(|| self.collapsed())?;
        let rotated = Rotated::new(a, best.point.turn.clone(), space).ok_or_else(|| self.collapsed())?;
        let unit = scales.common.powi(criterion.degree()) * a.nrows() as f64;
        let value = |end: &End| end.point.value * unit;
        Ok(Rotated {
            criterion: value(best),
            iterations: best.iterations,
            converged: best.stop == Stop::Converged,
            stop: best.stop,
            starts: ends.iter().map(|e| e.as_ref().map_or(f64::NAN, value)).collect(),
            agreeing: ends.iter().flatten().filter(|e| same(e.point.value, best.point.value)).count(),
            ..rotated
        })
    }

    /// Where each start leads; nowhere when factors fall together.
    fn ends(
        &self,
        space: Space,
        a: MatRef<'_, f64>,
        criterion: &Criterion,
        control: &Control<'_>,
    ) -> Result<Vec<Option<End>>> {
        let quiet = control.quiet();
        let end = |k| {
            let start = self.start(k, a.ncols());
            let Some(descent) = Descent::new(space, a, criterion, start) else { return Ok(None) };
            let (point, journey) = drive(descent, self.limits, &quiet)?;
            match journey.stop {
                // Of several starts none is the best before all have ended.
                Stop::Interrupted => Err(Error::Interrupted),
                stop => Ok(point.map(|point| End { point, iterations: journey.trace.len(), stop })),
            }
        };
        parallel::try_map(self.starts, end)
    }

    /// The turn that a descent starts from: none, then random ones, each from a stream of its own.
    fn start(&self, k: usize, q: usize) -> Mat<f64> {
        if k == 0 {
            return Mat::identity(q, q);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(k as u64);
        orthonormal_columns(Mat::from_fn(q, q, |_, _| StandardNormal.sample(&mut rng)))
    }

    /// Varimax, and from there towards the powers of its loadings \[HW64\].
    fn promax(
        &self,
        a: MatRef<'_, f64>,
        scales: &Normalisation,
        power: f64,
        control: &Control<'_>,
    ) -> Result<Rotated> {
        let varimax = self.descended(a, scales, &Method::Varimax, control)?;
        let target = closed::powers(&varimax.pattern, power);
        let plain = Normalisation::typical(a).apply(a);
        let rotated = closed::oblique(plain.as_ref(), target.as_ref())
            .and_then(|turn| Rotated::new(a, turn, Space::Oblique))
            .ok_or_else(|| self.collapsed())?;
        let (turn, pattern) = (rotated.turn, rotated.pattern);
        let (structure, correlation) = (rotated.structure, rotated.correlation);
        Ok(Rotated { turn, pattern, structure, correlation, ..varimax })
    }

    fn procrustes(&self, a: MatRef<'_, f64>, scales: &Normalisation, target: &Mat<f64>) -> Result<Rotated> {
        let (from, to) = (scales.apply(a), scales.apply(target.as_ref()));
        let space = Space::of(&self.method);
        let turn = match space {
            Space::Orthogonal => closed::orthogonal(from.as_ref(), to.as_ref())?,
            Space::Oblique => closed::oblique(from.as_ref(), to.as_ref()).ok_or_else(|| self.collapsed())?,
        };
        let rotated = Rotated::new(a, turn, space).ok_or_else(|| self.collapsed())?;
        let left = scales.apply((&rotated.pattern - target).as_ref());
        let criterion = left.squared_norm_l2() * scales.common.powi(2);
        Ok(Rotated { criterion, starts: vec![criterion], agreeing: 1, ..rotated })
    }
}

/// Where a descent has ended.
#[derive(Debug, Clone)]
struct End {
    point: Point,
    iterations: usize,
    stop: Stop,
}

/// The best end, of those there are.
fn best(ends: &[Option<End>]) -> Option<&End> {
    let ends: Vec<&End> = ends.iter().flatten().collect();
    let converged = |end: &&End| end.stop == Stop::Converged;
    optimise::best(&ends, |end| end.point.value, same, converged).map(|k| ends[k])
}

/// Whether two descents ended at one value; the loadings are of order 1, and so is what a value is known to.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * (1.0 + b.abs())
}

//! FastICA: the fixed point of E g(y) u − E g′(y) w for all directions at once \[H99\].

use std::sync::Arc;

use super::{Search, Unmixing};
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::evidence::ContrastMeans;
use crate::linalg::{Mat, nearest_orthogonal};

/// All directions at once.
pub(crate) struct FastIca<'a> {
    search: Search<'a>,
    matrix: Arc<Mat<f64>>,
    means: ContrastMeans,
    normal: f64, // E G of a standard normal variable
    turned: f64, // how far the last step turned a direction
    passes: usize,
}

impl<'a> FastIca<'a> {
    /// At an orthogonal start, after a pass that looks at it.
    pub(crate) fn new(search: Search<'a>, start: Arc<Mat<f64>>, control: &Control<'_>) -> Result<Self> {
        let means = search.measure(&start, control)?;
        let normal = search.contrast.of_normal().0;
        Ok(Self { search, matrix: start, means, normal, turned: f64::INFINITY, passes: 1 })
    }
}

/// What FastICA maximises: Σ (E G(y) − E G(ν))², a measure of negentropy.
pub(super) fn negentropy(means: &ContrastMeans, normal: f64) -> f64 {
    means.value.iter().map(|v| (v - normal).powi(2)).sum()
}

/// E g(y) uᵀ − E g′(y) W (k × q).
///
/// # Errors
/// When arithmetic breaks down.
pub(super) fn image(matrix: &Mat<f64>, means: &ContrastMeans) -> Result<Mat<f64>> {
    let entry = |i: usize, j: usize| means.slope[(i, j)] - means.bend[i] * matrix[(i, j)];
    let image = Mat::from_fn(matrix.nrows(), matrix.ncols(), entry);
    if image.norm_max().is_finite() { Ok(image) } else { Err(Error::Scale) }
}

/// The farthest that the end of a unit row moves, whichever way it points.
pub(super) fn turned(before: &Mat<f64>, after: &Mat<f64>) -> f64 {
    let along = |i: usize, sign: f64| -> f64 {
        let squares = before.row(i).iter().zip(after.row(i).iter()).map(|(a, b)| (a - sign * b).powi(2));
        squares.sum::<f64>().sqrt()
    };
    (0..before.nrows()).map(|i| along(i, 1.0).min(along(i, -1.0))).fold(0.0, f64::max)
}

impl Iteration for FastIca<'_> {
    type Output = Unmixing;

    fn objective(&self) -> Objective {
        Objective { name: "negentropy", guard: Guard::Free }
    }

    /// The angle by which the last step turned a direction, in radians.
    fn converged(&self, tolerance: f64) -> bool {
        self.turned <= tolerance
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let next = Arc::new(nearest_orthogonal(image(&self.matrix, &self.means)?.as_ref())?);
        self.means = self.search.measure(&next, control)?;
        self.passes += 1;
        self.turned = turned(&self.matrix, &next);
        self.matrix = next;
        Ok(Some(Step { objective: negentropy(&self.means, self.normal), change: self.turned }))
    }

    fn passes(&self) -> usize {
        self.passes
    }

    fn finish(self) -> Result<Unmixing> {
        let objective = negentropy(&self.means, self.normal);
        Ok(Unmixing { matrix: self.matrix, objective })
    }
}

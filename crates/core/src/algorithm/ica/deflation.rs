//! FastICA with one direction after the other, each orthogonal to those before it.

use std::sync::Arc;

use super::fastica::{image, negentropy, turned};
use super::{Search, Unmixing};
use crate::algorithm::{Guard, Iteration, Journey, Limits, Objective, Step, Stop, drive};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::evidence::ContrastMeans;
use crate::linalg::Mat;

/// All directions, from the rows of a start; the journey has the steps of the direction that took most.
///
/// # Errors
/// Those of passes; when a caller stops before the last direction is found.
pub(crate) fn deflation(
    search: Search<'_>,
    start: &Mat<f64>,
    limits: Limits,
    control: &Control<'_>,
) -> Result<(Unmixing, Journey)> {
    let q = start.nrows();
    let mut found = Mat::zeros(q, q);
    let mut all = Journey { stop: Stop::Converged, trace: Vec::new(), passes: 1 };
    for k in 0..q {
        let unit = OneDirection::new(search, &found, k, start, control)?;
        let (direction, journey) = drive(unit, limits, control)?;
        (0..q).for_each(|j| found[(k, j)] = direction[(0, j)]);
        all.passes += journey.passes;
        if journey.trace.len() > all.trace.len() {
            all.trace = journey.trace;
        }
        match journey.stop {
            Stop::Converged => {}
            Stop::Interrupted if k + 1 < q => return Err(Error::Interrupted),
            stop => all.stop = stop,
        }
    }
    let matrix = Arc::new(found);
    let means = search.measure(&matrix, control)?;
    let objective = negentropy(&means, search.contrast.of_normal().0);
    Ok((Unmixing { matrix, objective }, all))
}

/// One direction, orthogonal to those before it.
struct OneDirection<'a> {
    search: Search<'a>,
    before: Mat<f64>, // (k × q)
    direction: Arc<Mat<f64>>,
    means: ContrastMeans,
    normal: f64,
    turned: f64,
    passes: usize,
}

impl<'a> OneDirection<'a> {
    fn new(
        search: Search<'a>,
        found: &Mat<f64>,
        k: usize,
        start: &Mat<f64>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let before = found.as_ref().subrows(0, k).to_owned();
        let given = start.as_ref().subrows(k, 1).to_owned();
        // As it is given: the first step makes it orthogonal to those before it.
        let direction = Arc::new(orthogonal_to(&Mat::zeros(0, start.ncols()), given));
        let means = search.measure(&direction, control)?;
        let normal = search.contrast.of_normal().0;
        Ok(Self { search, before, direction, means, normal, turned: f64::INFINITY, passes: 1 })
    }
}

/// A direction (1 × q) without what lies along others, of length 1. Where nothing is left of it, one of the axes
/// is taken.
fn orthogonal_to(before: &Mat<f64>, mut direction: Mat<f64>) -> Mat<f64> {
    let q = direction.ncols();
    let axes = (0..q).map(|axis| Mat::from_fn(1, q, |_, j| f64::from(u8::from(j == axis))));
    for candidate in std::iter::once(direction.clone()).chain(axes) {
        let size = candidate.norm_l2();
        direction = candidate;
        // Twice, because the first time leaves what rounding did.
        for row in before.row_iter().chain(before.row_iter()) {
            let along: f64 = row.iter().zip(direction.row(0).iter()).map(|(a, b)| a * b).sum();
            (0..q).for_each(|j| direction[(0, j)] -= along * row[j]);
        }
        let length = direction.norm_l2();
        if length > 1e-8 * size && length > 0.0 {
            (0..q).for_each(|j| direction[(0, j)] /= length);
            break;
        }
    }
    direction
}

impl Iteration for OneDirection<'_> {
    type Output = Arc<Mat<f64>>;

    fn objective(&self) -> Objective {
        Objective { name: "negentropy", guard: Guard::Free }
    }

    /// The angle by which the last step turned the direction, in radians.
    fn converged(&self, tolerance: f64) -> bool {
        self.turned <= tolerance
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let next = Arc::new(orthogonal_to(&self.before, image(&self.direction, &self.means)?));
        self.means = self.search.measure(&next, control)?;
        self.passes += 1;
        self.turned = turned(&self.direction, &next);
        self.direction = next;
        Ok(Some(Step { objective: negentropy(&self.means, self.normal), change: self.turned }))
    }

    fn passes(&self) -> usize {
        self.passes
    }

    fn finish(self) -> Result<Arc<Mat<f64>>> {
        Ok(self.direction)
    }
}

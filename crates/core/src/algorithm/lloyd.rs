//! Lloyd's method: each row to its nearest centre, each centre to the mean of its rows, until no row moves.
//!
//! A step is one pass over the rows and collects [`Clusters`]. Sums are made anew in each pass, in an order
//! that only the source decides, so the centres stand still to the last bit exactly when no row has changed
//! its centre \[L82\]. Rows in memory keep bounds on their distances, which spares most of them.

use std::sync::Arc;

use super::{Guard, Objective, RowIteration, Step};
use crate::blocks::{CentreGroups, Drift, Frame, Nearest, RowBounds};
use crate::error::Result;
use crate::evidence::{Clusters, Farthest};
use crate::linalg::Mat;

/// Centres from which it pays to have several groups of them, and centres in a group.
const MANY_CENTRES: usize = 24;
const GROUP: usize = 10;
/// What rounding may do to the objective, as a share of the total sum of squares.
const ROUNDING: f64 = 1e-12;

/// What does not change from pass to pass.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    /// Where distances are measured, around the mean of the rows.
    pub(crate) frame: Arc<Frame>,
    /// Total sum of squares about the mean, in the frame.
    pub(crate) squares: f64,
    /// Mean variance of a feature, in the frame.
    pub(crate) variance: f64,
    /// Whether no cell is missing.
    pub(crate) complete: bool,
    /// Whether rows may keep bounds.
    pub(crate) bounds: bool,
}

impl Problem {
    /// Groups of centres for which rows keep bounds.
    pub(crate) fn n_groups(centres: usize) -> usize {
        if centres < MANY_CENTRES { 1 } else { centres / GROUP }
    }
}

/// The iteration. Its tolerance is the sum of squared steps of the centres, in units of the mean variance of a
/// feature.
pub(crate) struct Lloyd<'a> {
    problem: &'a Problem,
    nearest: Arc<Nearest>,
    bounds: Option<(Arc<RowBounds>, Option<Arc<Drift>>)>,
    objective: f64,
    change: f64,
    weights: Vec<f64>,
}

/// Where it came to rest.
pub(crate) struct Settled {
    /// Centres as columns in the frame (p × K).
    pub(crate) centres: Mat<f64>,
    /// Sum of squared distances of the rows to the means of their clusters, in the frame.
    pub(crate) inertia: f64,
    /// Weight of the rows of each centre (K).
    pub(crate) weights: Vec<f64>,
}

impl<'a> Lloyd<'a> {
    /// From centres as columns in the frame (p × K).
    pub(crate) fn new(problem: &'a Problem, centres: Mat<f64>) -> Self {
        let groups = match problem.bounds {
            true => CentreGroups::near(centres.as_ref(), Problem::n_groups(centres.ncols())),
            false => CentreGroups::one(centres.ncols()),
        };
        let nearest = Arc::new(Nearest::new(Arc::clone(&problem.frame), centres, Arc::new(groups)));
        let bounds = problem.bounds.then(|| (Arc::default(), None));
        Self {
            problem,
            nearest,
            bounds,
            objective: f64::INFINITY,
            change: f64::INFINITY,
            weights: Vec::new(),
        }
    }

    /// Forgets the bounds: the next pass looks at every distance.
    fn forget_bounds(&mut self) {
        self.bounds = None;
    }

    /// Goes to other centres, of the same order.
    fn go_to(&mut self, centres: Mat<f64>) {
        let groups = Arc::clone(self.nearest.groups());
        let next = Arc::new(Nearest::new(Arc::clone(&self.problem.frame), centres, groups));
        if let Some((_, drift)) = &mut self.bounds {
            *drift = Some(Arc::new(Drift::between(&self.nearest, &next, self.problem.complete)));
        }
        self.nearest = next;
    }

    /// Goes to other centres, of which there may be fewer.
    fn begin_at(&mut self, centres: Mat<f64>) {
        let (objective, change, weights) = (self.objective, self.change, std::mem::take(&mut self.weights));
        *self = Self { objective, change, weights, ..Self::new(self.problem, centres) };
    }
}

impl RowIteration for Lloyd<'_> {
    type Evidence = Clusters;
    type Output = Settled;

    fn objective(&self) -> Objective {
        Objective { name: "inertia", guard: Guard::NeverRises }
    }

    fn evidence(&self) -> Clusters {
        let clusters = match &self.bounds {
            None => Clusters::about(Arc::clone(&self.nearest)),
            Some((bounds, drift)) => {
                Clusters::bounded(Arc::clone(&self.nearest), Arc::clone(bounds), drift.clone())
            }
        };
        clusters.of_complete(self.problem.complete)
    }

    fn update(&mut self, mut evidence: Clusters) -> Result<Step> {
        let empty = evidence.weight.contains(&0.0);
        if empty && !evidence.is_exact() {
            // Where to put an empty cluster is known after a pass that measures every row.
            self.forget_bounds();
            let objective = if self.objective.is_finite() { self.objective } else { self.problem.squares };
            return Ok(Step { objective, change: self.change });
        }
        let (centres, kept) = if empty { relocated(&mut evidence) } else { (means(&evidence), true) };
        self.objective = self.problem.squares - between(&evidence, &centres);
        self.weights.clone_from(&evidence.weight);
        if !kept || self.bounds.is_none() && self.problem.bounds {
            self.change = f64::INFINITY;
            self.begin_at(centres);
        } else {
            self.change = moved(self.nearest.centres(), &centres) / self.problem.variance;
            self.go_to(centres);
        }
        Ok(Step { objective: self.objective, change: self.change })
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.change <= tolerance
    }

    fn rounding(&self) -> f64 {
        ROUNDING * self.problem.squares
    }

    fn finish(self) -> Result<Settled> {
        let (centres, inertia) = (self.nearest.centres().clone(), self.objective.max(0.0));
        Ok(Settled { centres, inertia, weights: self.weights })
    }
}

/// The means of the rows of each centre (p × K).
fn means(evidence: &Clusters) -> Mat<f64> {
    Mat::from_fn(evidence.sums.nrows(), evidence.weight.len(), |j, k| evidence.mean_of(j, k))
}

/// Sum of squares between clusters: Σ n c² over features and clusters, about the mean of the rows.
fn between(evidence: &Clusters, centres: &Mat<f64>) -> f64 {
    let each = |k: usize| {
        let squares = centres.col(k).iter().enumerate();
        squares.map(|(j, c)| evidence.weight_of(j, k) * c * c).sum::<f64>()
    };
    (0..centres.ncols()).map(each).sum()
}

/// Sum of squared steps from centres to centres.
fn moved(before: &Mat<f64>, after: &Mat<f64>) -> f64 {
    let step = |k: usize| before.col(k).iter().zip(after.col(k).iter()).map(|(a, b)| (a - b) * (a - b));
    (0..after.ncols()).flat_map(step).sum()
}

/// The means, with empty clusters put where rows lie farthest from their centre. A cluster for which there is
/// no such row, because every row lies at its centre, is left out; then the second is false, as whenever the
/// clusters are not the same any more.
fn relocated(evidence: &mut Clusters) -> (Mat<f64>, bool) {
    let k = evidence.weight.len();
    let mut far: Vec<(usize, Farthest)> =
        evidence.farthest.iter().enumerate().filter_map(|(k, far)| Some((k, far.clone()?))).collect();
    far.retain(|(k, far)| far.distance > 0.0 && evidence.weight[*k] > far.weight);
    far.sort_by(|(_, a), (_, b)| b.distance.total_cmp(&a.distance).then(a.row.cmp(&b.row)));
    let mut far = far.into_iter();
    for empty in (0..k).filter(|k| evidence.weight[*k] == 0.0).collect::<Vec<_>>() {
        let Some((donor, far)) = far.next() else { break };
        evidence.give(donor, empty, &far);
    }
    let left: Vec<usize> = (0..k).filter(|k| evidence.weight[*k] > 0.0).collect();
    let means = Mat::from_fn(evidence.sums.nrows(), left.len(), |j, i| evidence.mean_of(j, left[i]));
    evidence.keep(&left);
    (means, false)
}

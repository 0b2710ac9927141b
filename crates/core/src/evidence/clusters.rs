//! What rows say about given centres: the weight and the sum of those that are nearest to each.

use std::sync::{Arc, PoisonError};

use serde::{Deserialize, Serialize};

use super::moments::check_features;
use super::{Accumulator, Travel};
use crate::blocks::{Drift, Frame, Nearest, RowBounds, least};
use crate::data::{Cells, Chunk, ObservedRows};
use crate::error::{Error, Result};
use crate::linalg::serial;
use crate::linalg::{Mat, MatRef};

/// For each of K given centres: weight and sum of the rows that are nearest to it, and their sum of squared
/// distances. Of rows with missing values, the observed cells count.
///
/// It is what one step of Lloyd's method \[L82\] needs, and merges exactly. Cells are shifted to the centres
/// before anything is added, so a large mean costs no accuracy.
///
/// ```
/// use covary::data::Rows;
/// use covary::evidence::{Clusters, gather};
/// use covary::linalg::Mat;
/// let centres = Mat::from_fn(2, 1, |k, _| [0.0, 10.0][k]); // two centres of one feature
/// let rows = Rows::from_slice(&[1.0, 2.0, 9.0, 12.0, 12.0], 1)?;
/// let clusters = gather(rows.source(), || Clusters::empty(centres.as_ref()), &Default::default())?;
/// assert_eq!(clusters.weight(), [2.0, 3.0]);
/// assert_eq!(clusters.means()[(1, 0)], 11.0);
/// assert_eq!(clusters.within(), [1.0 + 4.0, 1.0 + 4.0 + 4.0]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Clusters {
    #[serde(with = "serial")]
    pub(crate) nearest: Arc<Nearest>,
    pub(crate) rows: usize,
    pub(crate) weight: Vec<f64>,
    /// Σ w (x − shift)·factor (p × K).
    #[serde(with = "serial")]
    pub(crate) sums: Mat<f64>,
    /// Weight of the observed cells (p × K); `None` while no cell is missing.
    #[serde(with = "serial")]
    pub(crate) seen: Option<Mat<f64>>,
    pub(crate) within: Vec<f64>,
    /// The row of each centre that is farthest from it.
    pub(crate) farthest: Vec<Option<Farthest>>,
    #[serde(skip)] // rows elsewhere keep none
    bounds: Option<(Arc<RowBounds>, Option<Arc<Drift>>)>,
    complete: bool, // it is known that no cell is missing
}

/// The row that is farthest from its centre; the first of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Farthest {
    pub(crate) distance: f64,
    pub(crate) row: usize,
    pub(crate) weight: f64,
    /// In the frame; NaN is missing.
    pub(crate) cells: Vec<f64>,
}

impl Clusters {
    /// Of no rows, about centres (K × p).
    pub fn empty(centres: MatRef<'_, f64>) -> Self {
        let (k, p) = (centres.nrows(), centres.ncols());
        // Around the first, so that centres that agree in a feature have exactly that for a mean.
        let mean = |j: usize| {
            (0..k).fold(centres[(0, j)], |m, i| m + (centres[(i, j)] - centres[(0, j)]) / k as f64)
        };
        let mean: Vec<f64> = (0..p).map(|j| if k == 0 { 0.0 } else { mean(j) }).collect();
        let frame = Arc::new(Frame::around(centres, &mean, &vec![1.0; p]));
        let columns = frame.columns(centres);
        Self::about(Arc::new(Nearest::of(frame, columns)))
    }

    /// Of no rows.
    pub(crate) fn about(nearest: Arc<Nearest>) -> Self {
        let (p, k) = (nearest.frame().n_features(), nearest.count());
        Self {
            nearest,
            rows: 0,
            weight: vec![0.0; k],
            sums: Mat::zeros(p, k),
            seen: None,
            within: vec![0.0; k],
            farthest: vec![None; k],
            bounds: None,
            complete: false,
        }
    }

    /// Of no rows, with bounds that spare distances. Squared distances and farthest rows are then not known.
    pub(crate) fn bounded(nearest: Arc<Nearest>, bounds: Arc<RowBounds>, drift: Option<Arc<Drift>>) -> Self {
        Self { bounds: Some((bounds, drift)), ..Self::about(nearest) }
    }

    /// The same, for rows of which it is known whether they are all complete.
    pub(crate) fn of_complete(self, complete: bool) -> Self {
        Self { complete, ..self }
    }

    /// Whether squared distances and farthest rows are known.
    pub(crate) fn is_exact(&self) -> bool {
        self.bounds.is_none()
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Total weight of the rows of each centre (K).
    pub fn weight(&self) -> &[f64] {
        &self.weight
    }

    /// Weight of the observed cells of a feature among the rows of a centre.
    pub(crate) fn weight_of(&self, feature: usize, centre: usize) -> f64 {
        self.seen.as_ref().map_or(self.weight[centre], |seen| seen[(feature, centre)])
    }

    /// The mean of a feature among the rows of a centre, in the frame; the centre where nothing was observed.
    pub(crate) fn mean_of(&self, feature: usize, centre: usize) -> f64 {
        match self.weight_of(feature, centre) {
            weight if weight > 0.0 => self.sums[(feature, centre)] / weight,
            _ => self.nearest.centres()[(feature, centre)],
        }
    }

    /// The means of the rows of each centre (K × p); the centre itself where there is none.
    pub fn means(&self) -> Mat<f64> {
        let (p, k) = (self.sums.nrows(), self.sums.ncols());
        Mat::from_fn(k, p, |k, j| self.nearest.frame().outside(j, self.mean_of(j, k)))
    }

    /// Sum of squared distances of the rows of each centre to it (K).
    pub fn within(&self) -> Vec<f64> {
        self.within.iter().map(|d| self.nearest.frame().square(*d)).collect()
    }

    fn update_dense(&mut self, chunk: &Chunk<'_>) {
        let nearest = Arc::clone(&self.nearest);
        let p = nearest.frame().n_features().max(1);
        let state = self.bounds.as_ref().map(|(bounds, _)| bounds.chunk(chunk.first_row()));
        let mut state = state.as_ref().map(|state| state.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut found, mut labels) = (Vec::new(), Vec::new());
        nearest.frame().for_each_block(chunk.cells(), |first, block| {
            let weight = |i: usize| chunk.weights().map_or(1.0, |w| w[first + i]);
            if let (Some(state), Some((_, drift))) = (&mut state, &self.bounds) {
                state.assign(&nearest, drift.as_deref(), (first, block), &mut labels);
            } else {
                nearest.of_block(block, &mut found);
                labels.clear();
                labels.extend(found.iter().map(|(k, _)| *k));
                for (i, (k, d)) in found.iter().enumerate().filter(|(i, _)| weight(*i) > 0.0) {
                    let row = (chunk.first_row() + first + i, &block[i * p..(i + 1) * p]);
                    self.measure(*k, *d, weight(i), row);
                }
            }
            if self.complete {
                self.add_complete(&labels, weight, block);
            } else {
                block.chunks_exact(p).enumerate().for_each(|(i, row)| self.add(labels[i], weight(i), row));
            }
        });
    }

    fn update_observed(&mut self, chunk: &Chunk<'_>, rows: &ObservedRows<'_>) {
        let nearest = Arc::clone(&self.nearest);
        let (by_feature, frame) = (nearest.by_feature(), nearest.frame());
        let mut distances = vec![0.0; nearest.count()];
        let mut cells = vec![f64::NAN; frame.n_features()];
        for i in 0..chunk.nrows() {
            let weight = chunk.weights().map_or(1.0, |w| w[i]);
            if weight == 0.0 || rows.row(i).0.is_empty() {
                continue;
            }
            nearest.of_observed(rows, i, by_feature.as_ref(), &mut distances);
            let (k, d) = least(&distances);
            let (columns, values) = rows.row(i);
            let at = || columns.iter().map(|j| *j as usize).zip(values);
            at().for_each(|(j, x)| cells[j] = frame.inside(j, *x));
            self.measure(k, d, weight, (chunk.first_row() + i, &cells));
            self.rows += 1;
            self.weight[k] += weight;
            let seen = self.seen.get_or_insert_with(|| Mat::zeros(cells.len(), self.weight.len()));
            for (j, _) in at() {
                self.sums[(j, k)] += weight * cells[j];
                seen[(j, k)] += weight;
                cells[j] = f64::NAN;
            }
        }
    }

    /// Takes in the distance of a row to its centre.
    fn measure(&mut self, centre: usize, distance: f64, weight: f64, (row, cells): (usize, &[f64])) {
        self.within[centre] += weight * distance;
        let known = self.farthest[centre].as_ref();
        if known.is_none_or(|known| (distance, known.row) > (known.distance, row)) {
            self.farthest[centre] = Some(Farthest { distance, row, weight, cells: cells.to_vec() });
        }
    }

    /// Adds complete rows to their centres.
    fn add_complete(&mut self, labels: &[usize], weight: impl Fn(usize) -> f64, block: &[f64]) {
        let p = self.sums.nrows().max(1);
        for (i, (row, centre)) in block.chunks_exact(p).zip(labels).enumerate() {
            let weight = weight(i);
            if weight > 0.0 {
                self.rows += 1;
                self.weight[*centre] += weight;
                let sums = self.sums.col_as_slice_mut(*centre);
                sums.iter_mut().zip(row).for_each(|(s, x)| *s += weight * x);
            }
        }
    }

    /// Adds a row to its centre; a row of no weight is no row, whatever it holds, nor is one without cells.
    fn add(&mut self, centre: usize, weight: f64, row: &[f64]) {
        let missing = row.iter().filter(|x| x.is_nan()).count();
        if weight == 0.0 || missing == row.len() {
            return;
        }
        if self.seen.is_none() && missing > 0 {
            self.seen = Some(self.all_seen());
        }
        self.rows += 1;
        self.weight[centre] += weight;
        if self.seen.is_none() {
            let sums = self.sums.col_as_slice_mut(centre);
            sums.iter_mut().zip(row).for_each(|(s, x)| *s += weight * x);
            return;
        }
        let sums = self.sums.col_as_slice_mut(centre);
        let seen = self.seen.as_mut().map(|seen| seen.col_as_slice_mut(centre)).unwrap_or_default();
        for ((s, w), x) in sums.iter_mut().zip(seen).zip(row).filter(|(_, x)| !x.is_nan()) {
            *s += weight * x;
            *w += weight;
        }
    }

    /// The weight of the cells of each feature when none is missing.
    fn all_seen(&self) -> Mat<f64> {
        Mat::from_fn(self.sums.nrows(), self.weight.len(), |_, k| self.weight[k])
    }
}

impl Accumulator for Clusters {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::numbered("clusters"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        check_features(self.nearest.frame().n_features(), chunk.ncols())?;
        match chunk.cells() {
            Cells::Observed(rows) => self.update_observed(chunk, rows),
            _ => self.update_dense(chunk),
        }
        let finite = self.sums.col_iter().all(|sums| sums.iter().all(|s| s.is_finite()));
        if finite { Ok(()) } else { Err(chunk.explain_infinite().unwrap_or(Error::Scale)) }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        check_features(self.nearest.frame().n_features(), other.nearest.frame().n_features())?;
        let (expected, found) = (self.weight.len(), other.weight.len());
        if expected != found {
            return Err(Error::Length { what: "centres of evidence to be merged", expected, found });
        }
        if other.seen.is_some() || self.seen.is_some() {
            let mut seen = self.seen.take().unwrap_or_else(|| self.all_seen());
            seen += other.seen.as_ref().unwrap_or(&other.all_seen());
            self.seen = Some(seen);
        }
        self.rows = self.rows.saturating_add(other.rows);
        self.sums += &other.sums;
        for k in 0..expected {
            self.weight[k] += other.weight[k];
            self.within[k] += other.within[k];
            if let Some(far) = &other.farthest[k] {
                let known = self.farthest[k].as_ref();
                if known.is_none_or(|known| (far.distance, known.row) > (known.distance, far.row)) {
                    self.farthest[k] = Some(far.clone());
                }
            }
        }
        Ok(())
    }
}

impl Clusters {
    /// Moves a row from one cluster to an empty one.
    pub(crate) fn give(&mut self, from: usize, to: usize, row: &Farthest) {
        self.weight[from] -= row.weight;
        self.weight[to] += row.weight;
        for (j, x) in row.cells.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            self.sums[(j, from)] -= row.weight * x;
            self.sums[(j, to)] += row.weight * x;
            if let Some(seen) = &mut self.seen {
                seen[(j, from)] -= row.weight;
                seen[(j, to)] += row.weight;
            }
        }
    }

    /// Keeps some of the clusters, in order.
    pub(crate) fn keep(&mut self, some: &[usize]) {
        self.sums = columns(&self.sums, some);
        self.seen = self.seen.as_ref().map(|seen| columns(seen, some));
        self.weight = some.iter().map(|k| self.weight[*k]).collect();
        self.within = some.iter().map(|k| self.within[*k]).collect();
        self.farthest = some.iter().map(|k| self.farthest[*k].clone()).collect();
    }
}

/// Some columns of a matrix, in order.
fn columns(m: &Mat<f64>, some: &[usize]) -> Mat<f64> {
    Mat::from_fn(m.nrows(), some.len(), |j, k| m[(j, some[k])])
}

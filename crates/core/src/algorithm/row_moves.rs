//! Moves of single rows between clusters \[HW79\].
//!
//! Lloyd's method leaves a row where its centre is nearest, but a centre moves with its rows. With W the weight of
//! a cluster and w that of a row at squared distance d from its centre, taking the row away saves W/(W − w) w d,
//! and adding it to another cluster costs W/(W + w) w d. In a small cluster that differs much from w d, so a row
//! may have its nearest centre and still be better off elsewhere. With missing values W is that of each feature.

use crate::data::Table;
use crate::linalg::Mat;

/// Least share of the inertia that a move gains: below, in large clusters, moves are many and gain next to nothing.
const GAIN: f64 = 1e-6;

/// Centres that are the means of their rows, and the weight of the cells of each (p × K).
pub(crate) struct Members<'a> {
    rows: &'a Table<'a>,
    weights: &'a [f64],
    centres: &'a Mat<f64>,
    cell_weights: Mat<f64>,
}

impl<'a> Members<'a> {
    /// `labels` are the clusters of the rows.
    pub(crate) fn new(
        rows: &'a Table<'a>,
        weights: &'a [f64],
        centres: &'a Mat<f64>,
        labels: impl Iterator<Item = usize>,
    ) -> Self {
        let members =
            Self { rows, weights, centres, cell_weights: Mat::zeros(centres.nrows(), centres.ncols()) };
        let mut cell_weights = Mat::zeros(centres.nrows(), centres.ncols());
        for (i, k) in labels.enumerate() {
            members.cells(i).for_each(|(j, _)| cell_weights[(j, k)] += weights[i]);
        }
        Self { cell_weights, ..members }
    }

    /// The observed cells of a row.
    fn cells(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        (0..self.centres.nrows()).map(move |j| (j, self.rows.cells().get(i, j))).filter(|(_, x)| !x.is_nan())
    }

    /// What cluster `from` saves without row i.
    fn saved(&self, i: usize, from: usize) -> f64 {
        let w = self.weights[i];
        let saved = |(j, x): (usize, f64)| {
            let others = self.cell_weights[(j, from)] - w;
            // The only one: it lies at its centre.
            if others > 0.0 {
                w * self.cell_weights[(j, from)] / others * (x - self.centres[(j, from)]).powi(2)
            } else {
                0.0
            }
        };
        self.cells(i).map(saved).sum()
    }

    /// What cluster `to` costs more with row i.
    fn cost(&self, i: usize, to: usize) -> f64 {
        let w = self.weights[i];
        let cost = |(j, x): (usize, f64)| {
            let before = self.cell_weights[(j, to)];
            w * before / (before + w) * (x - self.centres[(j, to)]).powi(2)
        };
        self.cells(i).map(cost).sum()
    }

    /// The centres after the move of one row that gains most, each between the two clusters that are given for it;
    /// `None` where none gains.
    pub(crate) fn best_move(
        &self,
        pairs: impl Iterator<Item = (usize, usize)>,
        inertia: f64,
    ) -> Option<Mat<f64>> {
        let gains = pairs.enumerate().filter(|(i, _)| self.weights[*i] > 0.0);
        let gains = gains.map(|(i, (from, to))| (self.saved(i, from) - self.cost(i, to), i, from, to));
        let best = gains.fold(None, |best: Option<(f64, usize, usize, usize)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
        let (_, i, from, to) = best.filter(|(gain, ..)| *gain > GAIN * inertia)?;
        Some(self.moved(i, from, to))
    }

    fn moved(&self, i: usize, from: usize, to: usize) -> Mat<f64> {
        let (mut centres, w) = (self.centres.clone(), self.weights[i]);
        for (j, x) in self.cells(i) {
            let others = self.cell_weights[(j, from)] - w;
            if others > 0.0 {
                centres[(j, from)] -= w * (x - self.centres[(j, from)]) / others;
            }
            centres[(j, to)] += w * (x - self.centres[(j, to)]) / (self.cell_weights[(j, to)] + w);
        }
        centres
    }
}

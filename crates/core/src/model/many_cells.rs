//! What single cells say of rows that each observe other cells: the same numbers as `cells.rs` has for one pattern, from
//! q × q factors side by side. O(kq²) for a row of k cells, with few additions of its own.
//!
//! In units of the noise, with $G = \sum a_j a_j^\top$ over the cells of a row, $M = sI + G$, $b = \sum a_j e_j$,
//! $\bar z = M^{-1}b$ and least squares $y = G^{-1}b$: leverages $h_j = a_j^\top M^{-1} a_j$, residuals
//! $r_j = (e_j - a_j^\top\bar z)/(1 - h_j)$, and shares $e_j\,a_j^\top M^{-1}y$ of T².

use super::cells::{CANCELLED, distance_without, expected_without, is_wild};
use super::many_patterns::{ManyPatterns, ScaledFeatures};
use crate::blocks::IncompleteRows;
use crate::error::Result;
use crate::expectation::Student;
use crate::linalg::{Lanes, Mat, packed};

/// tr G / s up to which Cholesky factors of M, corrected once, leave what cells say right to rounding.
const LARGEST_SIGNAL: f64 = 1e5;

/// What is found of a cell, in the units of the data and in the order of the tables of contributions.
pub(super) type CellNumbers = [f64; 5];

impl ScaledFeatures {
    /// Whether what the cells of each row say follows from Cholesky factors: least squares does, the noise is not too
    /// small, and no cell is nearly alone in what it says of a direction.
    pub(super) fn well_posed_cells(&self, rows: &dyn IncompleteRows) -> Vec<bool> {
        let (q, least) = (self.q(), 0.5 / (self.q() + 1) as f64);
        let grams = rows.grams(self.loadings());
        let signal: Vec<f64> =
            (0..grams.nrows()).map(|k| (0..q).map(|i| grams[(k, packed(i, i))]).sum()).collect();
        let inverse = Lanes::new(grams, q, self.noise()).inverse(1.0); // M⁻¹
        let mut apart: Vec<Option<bool>> = vec![None; signal.len()];
        let mut good = self.well_posed(rows);
        for (row, (good, k)) in good.iter_mut().zip(rows.pattern()).enumerate() {
            *good = *good
                && *apart[*k].get_or_insert_with(|| {
                    signal[*k] <= LARGEST_SIGNAL * self.noise()
                        && rows.cells(row).0.iter().all(|j| 1.0 - self.leverage(&inverse, *k, *j) >= least)
                });
        }
        good
    }

    /// aⱼᵀM⁻¹aⱼ, for packed inverses of all patterns (patterns × q(q+1)/2).
    fn leverage(&self, inverse: &Mat<f64>, pattern: usize, feature: usize) -> f64 {
        let a = self.loadings().a.col_as_slice(feature);
        let mut sum = 0.0;
        for i in 0..a.len() {
            let beside: f64 = (0..i).map(|k| inverse[(pattern, packed(i, k))] * a[k]).sum();
            sum += a[i] * (inverse[(pattern, packed(i, i))] * a[i] + 2.0 * beside);
        }
        sum
    }

    /// aⱼᵀz, for rows of latent coordinates (rows × q).
    fn along(&self, feature: usize, z: &Mat<f64>, row: usize) -> f64 {
        self.loadings().a.col_as_slice(feature).iter().enumerate().map(|(k, a)| a * z[(row, k)]).sum()
    }
}

/// Solutions for all rows of a group (rows × q each).
struct Solutions {
    inverse: Mat<f64>,       // M⁻¹ (patterns × q(q+1)/2)
    mean: Mat<f64>,          // z̄
    least_squares: Mat<f64>, // y
    weights: Mat<f64>,       // M⁻¹y
}

impl ManyPatterns<'_> {
    /// Calls `write` with row, feature and numbers of each observed cell; the group must have been made for cells.
    pub(super) fn for_each_cell(
        &self,
        student: Student,
        mut write: impl FnMut(usize, usize, CellNumbers),
    ) -> Result<()> {
        let found = self.solutions();
        let distances = if student == Student::NORMAL { Vec::new() } else { self.mahalanobis() };
        for (at, row) in self.rows.iter().enumerate() {
            let (features, e) = self.cells().cells(at);
            for (place, j) in features.iter().enumerate() {
                let numbers = self.cell(&found, at, (&features, &e), place)?;
                let spread = match distances.get(at) {
                    Some(distance) => self.spread(student, *distance, numbers[2], (&features, &e), place)?,
                    None => 1.0,
                };
                let [t2, spe, cell, expected, deviation] = numbers;
                write(*row, *j, [t2, spe, cell, expected, deviation * spread]);
            }
        }
        Ok(())
    }

    fn solutions(&self) -> Solutions {
        let (features, rows) = (self.features, self.cells());
        let (q, pattern) = (features.q(), rows.pattern());
        let grams = rows.grams(features.loadings());
        let b = rows.projections(features.loadings());
        let (g, m) = (Lanes::new(grams.clone(), q, 0.0), Lanes::new(grams, q, features.noise()));
        let mut mean = m.solved(pattern, &b);
        // Corrected once for rounding: M δ = Σ aⱼ(eⱼ − aⱼᵀz̄) − s z̄.
        let mut rest = Mat::from_fn(mean.nrows(), q, |i, k| -features.noise() * mean[(i, k)]);
        for i in 0..mean.nrows() {
            let (observed, e) = rows.cells(i);
            for (j, e) in observed.into_iter().zip(e) {
                let left = e - features.along(j, &mean, i);
                let a = features.loadings().a.col_as_slice(j);
                (0..q).for_each(|k| rest[(i, k)] += a[k] * left);
            }
        }
        mean += m.solved(pattern, &rest);
        let least_squares = g.solved(pattern, &b);
        let weights = m.solved(pattern, &least_squares);
        Solutions { inverse: m.inverse(1.0), mean, least_squares, weights }
    }

    /// The numbers of one cell of a row, of the normal distribution.
    fn cell(
        &self,
        found: &Solutions,
        row: usize,
        (features, e): (&[usize], &[f64]),
        place: usize,
    ) -> Result<CellNumbers> {
        let (of, j, e_j) = (self.features, features[place], e[place]);
        let h = of.leverage(&found.inverse, self.pattern()[row], j);
        let fitted = of.along(j, &found.mean, row);
        let deviation = (of.noise() / (1.0 - h)).sqrt();
        let (mut expected, mut residual) = ((fitted - h * e_j) / (1.0 - h), (e_j - fitted) / (1.0 - h));
        if is_wild(e_j, expected, h, deviation) {
            let (a, e) = self.dense(features, e);
            expected = expected_without(a.as_ref(), of.noise(), e.as_ref(), place)?;
            residual = e_j - expected;
        }
        let left = e_j - of.along(j, &found.least_squares, row);
        let (root, t2) = (of.root[j], e_j * of.along(j, &found.weights, row));
        let cell = (residual / deviation).powi(2);
        Ok([t2, (left * root).powi(2), cell, of.mean[j] + expected * root, deviation * root])
    }

    /// √((ν + δ)/(ν + k − 2)) of the k other cells of a row and their squared distance δ.
    fn spread(
        &self,
        student: Student,
        distance: f64,
        cell: f64,
        (features, e): (&[usize], &[f64]),
        place: usize,
    ) -> Result<f64> {
        let mut others = distance - cell;
        if others < CANCELLED * distance {
            let (a, e) = self.dense(features, e);
            others = distance_without(a.as_ref(), self.features.noise(), e.as_ref(), place)?;
        }
        Ok(student.spread(features.len() - 1, others).sqrt())
    }

    /// A (k × q) and e (1 × k) of the cells of a row.
    fn dense(&self, features: &[usize], e: &[f64]) -> (Mat<f64>, Mat<f64>) {
        let a = &self.features.loadings().a;
        let of_row = Mat::from_fn(features.len(), a.nrows(), |i, k| a[(k, features[i])]);
        (of_row, Mat::from_fn(1, e.len(), |_, i| e[i]))
    }
}

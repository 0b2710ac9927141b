//! An exam for models: some cells are shown, the others predicted and compared with what they are.

use std::f64::consts::TAU;

use super::split::{HiddenCell, Hiding};
use crate::data::{Chunk, Observed, RowSource, map_chunks};
use crate::error::Result;
use crate::model::Fill;

/// Half the width of a 95 % interval, in standard deviations.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// Rows of which some cells are hidden: the others are there to be fitted, these to be predicted.
pub struct Exam<'a>(Paper<'a>);

enum Paper<'a> {
    Rows(Shown<'a>),
    Cells { shown: Observed<'static>, hidden: Vec<HiddenCell>, hiding: &'a Hiding },
}

impl<'a> Exam<'a> {
    /// Of rows and what is hidden of them. Where only observed cells are stored, those that are shown are copied.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn new(source: &'a dyn RowSource, hiding: &'a Hiding) -> Result<Self> {
        if !source.observed_only() {
            return Ok(Self(Paper::Rows(Shown { source, hiding })));
        }
        let parts = map_chunks(source, |chunk| Ok(CellsOfRows::new(chunk, hiding)))?;
        let (shown, hidden) = CellsOfRows::joined(parts, source)?;
        Ok(Self(Paper::Cells { shown, hidden, hiding }))
    }

    /// The rows as a fit may see them.
    pub fn shown(&self) -> &dyn RowSource {
        match &self.0 {
            Paper::Rows(shown) => shown,
            Paper::Cells { shown, .. } => shown,
        }
    }

    /// Predicts all hidden cells; the grid of the rows decides the order of every sum.
    ///
    /// # Errors
    /// Those of the rows, and when the model is about other features.
    pub fn mark(&self, model: &dyn Fill) -> Result<Marks> {
        match &self.0 {
            Paper::Rows(Shown { source, hiding }) => {
                let parts = map_chunks(*source, |chunk| mark_rows(chunk, hiding, model))?;
                Ok(parts.iter().fold(Marks::default(), Marks::merged))
            }
            Paper::Cells { shown, hidden, hiding } => {
                let asked: Vec<(usize, usize)> = hidden.iter().map(|c| (c.row, c.feature)).collect();
                let told = model.predict(shown, &asked)?;
                let mut marks = Marks::default();
                for (k, cell) in hidden.iter().enumerate() {
                    let weight = shown.weights().map_or(1.0, |w| w[cell.row]);
                    marks.add(cell.value, (told.mean[k], told.std[k]), hiding.means()[cell.feature], weight);
                }
                Ok(marks)
            }
        }
    }
}

fn mark_rows(chunk: &Chunk<'_>, hiding: &Hiding, model: &dyn Fill) -> Result<Marks> {
    let (shown, hidden) = hiding.part(chunk)?;
    let told = model.impute_with_std(&shown)?;
    let mut marks = Marks::default();
    for HiddenCell { row, feature, value } in hidden {
        let weight = chunk.weights().map_or(1.0, |w| w[row]);
        let at = (row, feature);
        marks.add(value, (told.cells[at], told.std[at]), hiding.means()[feature], weight);
    }
    Ok(marks)
}

/// How well hidden cells were predicted: sums over them, each with the weight of its row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Marks {
    /// Hidden cells.
    pub cells: usize,
    weight: f64,
    squares: f64,
    baseline_squares: f64,
    log_density: f64,
    covered: f64,
}

impl Marks {
    /// A cell, its prediction with standard deviation, and the mean of what is left of its feature.
    fn add(&mut self, value: f64, (mean, std): (f64, f64), baseline: f64, weight: f64) {
        let error = value - mean;
        self.cells += 1;
        self.weight += weight;
        self.squares += weight * error * error;
        self.baseline_squares += weight * (value - baseline) * (value - baseline);
        self.log_density -= weight * (0.5 * (TAU.ln() + (error / std).powi(2)) + std.ln());
        self.covered += if error.abs() <= QUANTILE * std { weight } else { 0.0 };
    }

    fn merged(self, other: &Self) -> Self {
        Self {
            cells: self.cells + other.cells,
            weight: self.weight + other.weight,
            squares: self.squares + other.squares,
            baseline_squares: self.baseline_squares + other.baseline_squares,
            log_density: self.log_density + other.log_density,
            covered: self.covered + other.covered,
        }
    }

    /// Root of the mean squared error.
    pub fn rmse(&self) -> f64 {
        (self.squares / self.weight).sqrt()
    }

    /// That of the mean of what is left of each feature.
    pub fn baseline_rmse(&self) -> f64 {
        (self.baseline_squares / self.weight).sqrt()
    }

    /// Q² = 1 − PRESS/Σ(x − mean of what is left)² \[Wold78\]: 1 is perfect, 0 no better than the means; NaN when hidden cells do not vary.
    pub fn q2(&self) -> f64 {
        1.0 - self.squares / self.baseline_squares
    }

    /// Mean log predictive density of a cell; not finite when a model has no noise.
    pub fn mean_log_density(&self) -> f64 {
        self.log_density / self.weight
    }

    /// Share of the cells that lie in their 95 % interval.
    pub fn coverage(&self) -> f64 {
        self.covered / self.weight
    }
}

/// Rows without their hidden cells.
struct Shown<'a> {
    source: &'a dyn RowSource,
    hiding: &'a Hiding,
}

impl RowSource for Shown<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        Ok(self.hiding.part(&self.source.chunk(index)?)?.0)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }
}

/// Cells of consecutive rows, shown and hidden, one after the other.
struct CellsOfRows {
    lengths: Vec<usize>, // shown cells of each row
    columns: Vec<u32>,
    values: Vec<f64>,
    hidden: Vec<HiddenCell>,
    weights: Option<Vec<f64>>,
}

impl CellsOfRows {
    fn new(chunk: &Chunk<'_>, hiding: &Hiding) -> Self {
        let weights = chunk.weights().map(<[f64]>::to_vec);
        let (mut lengths, mut columns, mut values) = (vec![0; chunk.nrows()], Vec::new(), Vec::new());
        let mut hidden = Vec::new();
        hiding.for_each(chunk, |i, feature, value, is_hidden| match is_hidden {
            true => hidden.push(HiddenCell { row: chunk.first_row() + i, feature, value }),
            false => {
                lengths[i] += 1;
                columns.push(u32::try_from(feature).unwrap_or(u32::MAX)); // it was one when it came in
                values.push(value);
            }
        });
        Self { lengths, columns, values, hidden, weights }
    }

    fn joined(parts: Vec<Self>, source: &dyn RowSource) -> Result<(Observed<'static>, Vec<HiddenCell>)> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let (mut hidden, mut weights) = (Vec::new(), Vec::new());
        for part in parts {
            let rows = part.lengths.len();
            let mut end = values.len();
            starts.extend(part.lengths.iter().map(|length| {
                end += length;
                end
            }));
            columns.extend(part.columns);
            values.extend(part.values);
            hidden.extend(part.hidden);
            weights.extend(part.weights.unwrap_or_else(|| vec![1.0; rows]));
        }
        let shown = Observed::from_rows(starts, columns, values, source.n_features())?;
        let shown = match source.feature_names() {
            Some(names) => shown.with_names(names.to_vec())?,
            None => shown,
        };
        let weighted = weights.iter().any(|w| *w != 1.0);
        Ok((if weighted { shown.with_weights(weights)? } else { shown }, hidden))
    }
}

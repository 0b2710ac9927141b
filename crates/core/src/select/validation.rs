//! Validation of a model by hidden cells: they are predicted from the others and compared with what they are.

use std::f64::consts::TAU;

use super::split::{CellSplit, HiddenCell};
use crate::data::{Chunk, Observed, RowSource, map_chunks};
use crate::error::Result;
use crate::model::Fill;

/// Half the width of a 95 % interval, in standard deviations.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// Rows of which some cells are hidden: the others are there to be fitted, these to be predicted.
pub struct CellValidation<'a>(Storage<'a>);

enum Storage<'a> {
    Dense(TrainingRows<'a>),
    Observed { training: Observed<'static>, hidden: Vec<HiddenCell>, split: &'a CellSplit },
}

impl<'a> CellValidation<'a> {
    /// Of rows and what is hidden of them. Where only observed cells are stored, the training cells are
    /// copied.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn new(source: &'a dyn RowSource, split: &'a CellSplit) -> Result<Self> {
        if !source.observed_only() {
            return Ok(Self(Storage::Dense(TrainingRows { source, split })));
        }
        let parts = map_chunks(source, |chunk| Ok(CellsOfRows::new(chunk, split)))?;
        let (training, hidden) = CellsOfRows::joined(parts, source)?;
        Ok(Self(Storage::Observed { training, hidden, split }))
    }

    /// The rows as a fit may see them.
    pub fn training(&self) -> &dyn RowSource {
        match &self.0 {
            Storage::Dense(training) => training,
            Storage::Observed { training, .. } => training,
        }
    }

    /// Predicts all hidden cells; the grid of the rows decides the order of every sum.
    ///
    /// # Errors
    /// Those of the rows, and when the model is about other features.
    pub fn score(&self, model: &dyn Fill) -> Result<CellScores> {
        match &self.0 {
            Storage::Dense(TrainingRows { source, split }) => {
                let variances = split.margins().variance();
                let parts = map_chunks(*source, |chunk| score_rows(chunk, split, &variances, model))?;
                Ok(parts.iter().fold(CellScores::default(), CellScores::merged))
            }
            Storage::Observed { training, hidden, split } => {
                let cells: Vec<(usize, usize)> = hidden.iter().map(|c| (c.row, c.feature)).collect();
                let (predicted, variances) = (model.predict(training, &cells)?, split.margins().variance());
                let mut scores = CellScores::default();
                for (k, cell) in hidden.iter().enumerate() {
                    let weight = training.weights().map_or(1.0, |w| w[cell.row]);
                    let known = (split.means()[cell.feature], variances[cell.feature]);
                    scores.add(cell.value, (predicted.mean[k], predicted.std[k]), known, weight);
                }
                Ok(scores)
            }
        }
    }
}

fn score_rows(
    chunk: &Chunk<'_>,
    split: &CellSplit,
    variances: &[f64],
    model: &dyn Fill,
) -> Result<CellScores> {
    let (training, hidden) = split.part(chunk)?;
    let predicted = model.impute_with_std(&training)?;
    let mut scores = CellScores::default();
    for HiddenCell { row, feature, value } in hidden {
        let weight = chunk.weights().map_or(1.0, |w| w[row]);
        let at = (row, feature);
        let known = (split.means()[feature], variances[feature]);
        scores.add(value, (predicted.cells[at], predicted.std[at]), known, weight);
    }
    Ok(scores)
}

/// How well hidden cells were predicted: sums over them, each with the weight of its row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellScores {
    /// Hidden cells.
    pub cells: usize,
    weight: f64,
    squares: f64,
    baseline_squares: f64,
    /// The same two, each cell in units of the deviation of its feature.
    unit_squares: f64,
    unit_baseline_squares: f64,
    log_density: f64,
    covered: f64,
}

impl CellScores {
    /// A cell, its prediction with standard deviation, and of its feature the mean of what is left and the
    /// variance of all cells.
    fn add(&mut self, value: f64, (mean, std): (f64, f64), (baseline, variance): (f64, f64), weight: f64) {
        let error = value - mean;
        if variance > 0.0 {
            let unit = variance.sqrt();
            self.unit_squares += weight * (error / unit).powi(2);
            self.unit_baseline_squares += weight * ((value - baseline) / unit).powi(2);
        }
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
            unit_squares: self.unit_squares + other.unit_squares,
            unit_baseline_squares: self.unit_baseline_squares + other.unit_baseline_squares,
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

    /// Q² = 1 − PRESS/Σ(x − mean of what is left)² \[Wold78\]: 1 is perfect, 0 no better than the means; NaN
    /// when hidden cells do not vary. Each cell is in units of its feature's standard deviation, so that no
    /// feature decides by its unit of measurement.
    pub fn q2(&self) -> f64 {
        1.0 - self.unit_squares / self.unit_baseline_squares
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
struct TrainingRows<'a> {
    source: &'a dyn RowSource,
    split: &'a CellSplit,
}

impl RowSource for TrainingRows<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        Ok(self.split.part(&self.source.chunk(index)?)?.0)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }
}

/// Cells of consecutive rows, training and hidden, one after the other.
struct CellsOfRows {
    lengths: Vec<usize>, // training cells of each row
    columns: Vec<u32>,
    values: Vec<f64>,
    hidden: Vec<HiddenCell>,
    weights: Option<Vec<f64>>,
}

impl CellsOfRows {
    fn new(chunk: &Chunk<'_>, split: &CellSplit) -> Self {
        let weights = chunk.weights().map(<[f64]>::to_vec);
        let (mut lengths, mut columns, mut values) = (vec![0; chunk.nrows()], Vec::new(), Vec::new());
        let mut hidden = Vec::new();
        split.for_each(chunk, |i, feature, value, is_hidden| match is_hidden {
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
        let training = Observed::from_rows(starts, columns, values, source.n_features())?;
        let training = match source.feature_names() {
            Some(names) => training.with_names(names.to_vec())?,
            None => training,
        };
        let weighted = weights.iter().any(|w| *w != 1.0);
        Ok((if weighted { training.with_weights(weights)? } else { training }, hidden))
    }
}

//! What rows with a t distribution say about its parameters: evidence that exists, in which each row counts
//! with its weight u, and the sums that ν is found by.
//!
//! Given the parameters, a row of k cells and squared Mahalanobis distance δ counts u = (ν + k)/(ν + δ) times
//! \[LLT89\]: complete rows in [`Moments`], rows with missing values in [`Latent`].

mod transform;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::moments::check_features;
use super::{Accumulator, Latent, Moments, Travel};
use crate::blocks::{BLOCK_ROWS, IncompleteRows, ListedRows, for_each_masked_of};
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::expectation::{Expectation, LatentParameters, Student};
use crate::linalg::MatRef;
use crate::linalg::serial::shared;

/// Rows of observed cells that are worked on together.
const LANES: usize = 64;
/// Below this weight a row is counted as an outlier.
const LOW: f64 = 0.5;

/// Sums over the rows that have a cell, for given parameters and ν.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudentSums {
    /// ν.
    pub(crate) student: Student,
    /// Rows of positive weight.
    pub(crate) rows: usize,
    /// Those of them whose u is below ½.
    pub(crate) low: usize,
    /// The smallest u; infinite before the first row.
    pub(crate) least: f64,
    /// Σ w.
    pub(crate) weight: f64,
    /// Σ w k.
    pub(crate) cells: f64,
    /// Σ w u.
    pub(crate) counted: f64,
    /// Σ w (c((ν + k)/2) − ln u), which is −Σ w E ln u.
    pub(crate) log_bias: f64,
    /// Derivatives of the log-likelihood in 1/ν.
    pub(crate) slope: f64,
    /// The second derivative.
    pub(crate) curvature: f64,
    /// Log-likelihood of cells in units.
    pub(crate) log_likelihood: f64,
}

impl StudentSums {
    pub(crate) fn empty(student: Student) -> Self {
        Self {
            student,
            rows: 0,
            low: 0,
            least: f64::INFINITY,
            weight: 0.0,
            cells: 0.0,
            counted: 0.0,
            log_bias: 0.0,
            slope: 0.0,
            curvature: 0.0,
            log_likelihood: 0.0,
        }
    }

    /// Log-likelihood of the observed cells.
    pub(crate) fn log_likelihood(&self, parameters: &LatentParameters) -> f64 {
        self.log_likelihood - self.cells * parameters.scale().of(0).ln()
    }

    /// Takes in the rows of an expectation step, which has their squared Mahalanobis distances, and gives w u.
    pub(super) fn add<R: IncompleteRows + ?Sized>(
        &mut self,
        step: &Expectation<'_, R>,
        distances: &[f64],
        weights: &[f64],
    ) -> Vec<f64> {
        let (rows, student) = (step.rows(), self.student);
        let peaks = step.log_densities(&vec![0.0; distances.len()]);
        let biases: Vec<f64> = rows.observed().iter().map(|k| student.log_bias(*k)).collect();
        let mut counted = Vec::with_capacity(distances.len());
        for (at, (w, pattern)) in weights.iter().zip(rows.pattern()).enumerate() {
            let (k, distance) = (rows.observed()[*pattern], distances[at]);
            let u = student.weight(k, distance);
            let slope = student.slope(k, distance);
            self.rows += 1;
            self.low += usize::from(u < LOW);
            self.least = self.least.min(u);
            self.weight += w;
            self.cells += w * k as f64;
            self.counted += w * u;
            self.log_bias += w * (biases[*pattern] - u.ln());
            self.slope += w * slope.first;
            self.curvature += w * slope.second;
            self.log_likelihood += w * (peaks[at] + student.relative_log_density(k, distance));
            counted.push(w * u);
        }
        counted
    }

    /// Takes in the sums of other rows.
    pub(super) fn merge(&mut self, other: &Self) -> Result<()> {
        if self.student != other.student {
            let (name, value) = ("the degrees of freedom of evidence", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        self.rows += other.rows;
        self.low += other.low;
        self.least = self.least.min(other.least);
        self.weight += other.weight;
        self.cells += other.cells;
        self.counted += other.counted;
        self.log_bias += other.log_bias;
        self.slope += other.slope;
        self.curvature += other.curvature;
        self.log_likelihood += other.log_likelihood;
        Ok(())
    }
}

/// Evidence of rows that have a t distribution, for given parameters and ν.
///
/// Rows without an observed cell say nothing and change nothing. Evidence for other parameters cannot be
/// merged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StudentEvidence {
    #[serde(with = "shared")]
    parameters: Arc<LatentParameters>,
    pub(crate) collected: Collected,
}

/// What is collected.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Collected {
    /// Moments of complete rows.
    Complete(Box<(Moments, StudentSums)>),
    /// The sums of the expectation step of rows that may have missing values.
    Incomplete(Box<Latent>),
}

/// What evidence of t rows holds.
pub(crate) enum Found {
    /// Moments of complete rows, each counted w u times.
    Complete(Moments),
    /// The sums of the expectation step of rows with missing values.
    Incomplete(Latent),
}

impl StudentEvidence {
    /// Of no rows, none of which will have missing values.
    ///
    /// # Errors
    /// When ν is not above 0.
    pub fn complete(parameters: Arc<LatentParameters>, degrees_of_freedom: f64) -> Result<Self> {
        Ok(Self::complete_of(parameters, Student::new(degrees_of_freedom)?))
    }

    /// Of no rows, which may have missing values.
    ///
    /// # Errors
    /// When ν is not above 0.
    pub fn incomplete(parameters: Arc<LatentParameters>, degrees_of_freedom: f64) -> Result<Self> {
        Ok(Self::incomplete_of(parameters, Student::new(degrees_of_freedom)?))
    }

    pub(crate) fn complete_of(parameters: Arc<LatentParameters>, student: Student) -> Self {
        let parts = (Moments::empty(parameters.n_features()), StudentSums::empty(student));
        Self { parameters, collected: Collected::Complete(Box::new(parts)) }
    }

    pub(crate) fn incomplete_of(parameters: Arc<LatentParameters>, student: Student) -> Self {
        let latent = Latent::empty_student(Arc::clone(&parameters), student);
        Self { parameters, collected: Collected::Incomplete(Box::new(latent)) }
    }

    /// Location, loadings and noise that it was collected for.
    pub fn parameters(&self) -> &Arc<LatentParameters> {
        &self.parameters
    }

    /// ν that it was collected for.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.sums().map_or(f64::INFINITY, |sums| sums.student.dof())
    }

    /// Total log-likelihood of the observed cells.
    pub fn log_likelihood(&self) -> f64 {
        self.sums().map_or(0.0, |sums| sums.log_likelihood(&self.parameters))
    }

    /// Total weight of the rows that have a cell.
    pub fn weight(&self) -> f64 {
        self.sums().map_or(0.0, |sums| sums.weight)
    }

    /// Σ w u: what they count in the fit.
    pub fn counted_weight(&self) -> f64 {
        self.sums().map_or(0.0, |sums| sums.counted)
    }

    /// The sums that ν is found by.
    pub(crate) fn sums(&self) -> Option<&StudentSums> {
        match &self.collected {
            Collected::Complete(parts) => Some(&parts.1),
            Collected::Incomplete(latent) => latent.student.as_ref(),
        }
    }

    /// The sums that ν is found by and the evidence about the other parameters.
    pub(crate) fn into_parts(self) -> (StudentSums, Found) {
        match self.collected {
            Collected::Complete(parts) => (parts.1, Found::Complete(parts.0)),
            Collected::Incomplete(mut latent) => {
                let sums = latent.student.take().unwrap_or_else(|| StudentSums::empty(Student::NORMAL));
                (sums, Found::Incomplete(*latent))
            }
        }
    }
}

impl Accumulator for StudentEvidence {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("student"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (moments, sums) = match &mut self.collected {
            Collected::Incomplete(latent) => return latent.update(chunk),
            Collected::Complete(parts) => (&mut parts.0, &mut parts.1),
        };
        let mut counted = vec![0.0; chunk.nrows()];
        weigh(&self.parameters, sums, chunk, |row, _, w| counted[row] = w)?;
        let all_counted = |row: usize| chunk.weights().is_none_or(|w| w[row] > 0.0);
        // A row that is not counted has a missing value, or lies beyond all numbers.
        (0..chunk.nrows()).filter(|row| all_counted(*row)).for_each(|row| {
            counted[row] = counted[row].max(f64::MIN_POSITIVE);
        });
        moments.update(&chunk.borrowed().with_weights(counted)?)
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.parameters, &other.parameters) && self.parameters != other.parameters {
            let (name, value) = ("the parameters of evidence", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        match (&mut self.collected, &other.collected) {
            (Collected::Complete(a), Collected::Complete(b)) => {
                a.0.merge(&b.0)?;
                a.1.merge(&b.1)
            }
            (Collected::Incomplete(a), Collected::Incomplete(b)) => a.merge(b),
            _ => {
                let (name, value) = ("evidence to merge", "of complete and of incomplete rows".into());
                Err(Error::Parameter { name, value, allowed: "both of the same kind" })
            }
        }
    }
}

/// u of each row of a chunk; 1 for a row without cells.
///
/// # Errors
/// When a cell is infinite or the chunk has another number of features.
pub(crate) fn row_weights(
    parameters: &LatentParameters,
    student: Student,
    chunk: &Chunk<'_>,
) -> Result<Vec<f64>> {
    let (mut out, mut sums) = (vec![1.0; chunk.nrows()], StudentSums::empty(student));
    weigh(parameters, &mut sums, chunk, |row, w, counted| out[row] = counted / w)?;
    Ok(out)
}

/// Adds the rows of a chunk to the sums and calls `f` with each row that has a cell, w and w u.
fn weigh(
    parameters: &LatentParameters,
    sums: &mut StudentSums,
    chunk: &Chunk<'_>,
    mut f: impl FnMut(usize, f64, f64),
) -> Result<()> {
    check_features(parameters.n_features(), chunk.ncols())?;
    let weights = chunk.weights();
    match chunk.cells() {
        Cells::Observed(rows) => weigh_observed(parameters, sums, *rows, weights, &mut f),
        dense => with_view!(dense, view => weigh_dense(parameters, sums, view, weights, &mut f))?,
    }
    if sums.log_likelihood.is_finite() {
        return Ok(());
    }
    Err(chunk.explain_infinite().unwrap_or(Error::Scale))
}

fn weigh_dense<T: Real>(
    parameters: &LatentParameters,
    sums: &mut StudentSums,
    view: MatRef<'_, T>,
    weights: Option<&[f64]>,
    f: &mut impl FnMut(usize, f64, f64),
) -> Result<()> {
    let factor: Vec<f64> = (0..parameters.n_features()).map(|j| 1.0 / parameters.scale().of(j)).collect();
    let rows = (0..view.nrows()).filter(|i| weights.is_none_or(|w| w[*i] > 0.0)).collect();
    for_each_masked_of(BLOCK_ROWS, view, rows, parameters.compensated_mean(), &factor, &mut |block| {
        weigh_rows(parameters, sums, (block, &block.rows), weights, f);
        Ok(())
    })
}

fn weigh_observed(
    parameters: &LatentParameters,
    sums: &mut StudentSums,
    cells: ObservedRows<'_>,
    weights: Option<&[f64]>,
    f: &mut impl FnMut(usize, f64, f64),
) {
    let root: Vec<f64> = (0..parameters.n_features()).map(|j| parameters.scale().of(j)).collect();
    let counts = |i: &usize| !cells.row(*i).0.is_empty() && weights.is_none_or(|w| w[*i] > 0.0);
    let counted: Vec<usize> = (0..cells.shape().0).filter(counts).collect();
    for part in counted.chunks(LANES) {
        let rows = ListedRows::new(cells, part.iter().copied(), parameters.compensated_mean(), &root);
        weigh_rows(parameters, sums, (&rows, part), weights, f);
    }
}

fn weigh_rows<R: IncompleteRows + ?Sized>(
    parameters: &LatentParameters,
    sums: &mut StudentSums,
    (cells, rows): (&R, &[usize]),
    weights: Option<&[f64]>,
    f: &mut impl FnMut(usize, f64, f64),
) {
    let step = Expectation::new(parameters.scaled(), cells);
    let distances = step.mahalanobis(&step.squared_residuals());
    let own: Vec<f64> = rows.iter().map(|i| weights.map_or(1.0, |w| w[*i])).collect();
    let counted = sums.add(&step, &distances, &own);
    for ((row, w), counted) in rows.iter().zip(&own).zip(counted) {
        f(*row, *w, counted);
    }
}

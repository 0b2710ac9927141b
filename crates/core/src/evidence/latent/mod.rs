//! What rows with missing values say about the parameters of PPCA or factor analysis, given the parameters so
//! far: the sums of the [expectation step](crate::expectation).
//!
//! A feature needs the second moments of (z, 1) over the rows that have it. For a block of rows that is one
//! product of the 0/1 mask with the packed moments of each pattern. Factor analysis is the same with each
//! feature divided by the deviation of its noise.

mod blocks;
mod transform;

pub(crate) use blocks::row_densities;
pub(crate) use transform::Frame;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::student::StudentSums;
use super::{Accumulator, Travel};
use crate::data::Chunk;
use crate::error::{Error, Result};
use crate::expectation::{FeatureScale, LatentParameters, Student};
use crate::linalg::serial::{self, shared};
use crate::linalg::{Mat, packed, packed_len};
use blocks::{BlockExpectation, for_each_block};

/// Sums over weighted rows with missing values, for given parameters.
///
/// Rows without an observed cell say nothing and change nothing. Evidence for other parameters cannot be
/// merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latent {
    #[serde(with = "shared")]
    parameters: Arc<LatentParameters>,
    /// Σ w E[(z, 1)(z, 1)ᵀ] over the rows that have the feature, packed ((q+1)(q+2)/2 × p).
    #[serde(with = "serial")]
    pub(crate) second: Mat<f64>,
    /// Σ w (x − μ) (z, 1) over the rows that have the feature (q + 1 × p).
    #[serde(with = "serial")]
    pub(crate) cross: Mat<f64>,
    /// Σ w (x − μ)² over the rows that have the feature (p); 0 where one noise for all makes it needless.
    pub(crate) squares: Vec<f64>,
    /// The sums that are not about single features.
    pub(crate) totals: Totals,
    /// Where rows have a t distribution: each then counts with its weight u, but for the covariance of z,
    /// because E[u (z − z̄)(z − z̄)ᵀ] does not depend on u.
    pub(crate) student: Option<StudentSums>,
}

/// Sums over all rows that have a cell; vectors are packed so that they merge like numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Σ w; Σ w u of a t distribution.
    pub(crate) weight: f64,
    /// Σ w · observed cells.
    pub(crate) cells: f64,
    /// Log-likelihood of the observed cells in units.
    pub(crate) log_likelihood: f64,
    /// Σ w ‖x − μ − W z‖² over the observed cells.
    pub(crate) squares: f64,
    /// Σ w (q − tr C): latent variables that the rows determine.
    pub(crate) determined: f64,
    /// Σ w E[(z, 1)(z, 1)ᵀ], packed.
    pub(crate) second: Vec<f64>,
}

impl Latent {
    /// Of no rows.
    pub fn empty(parameters: Arc<LatentParameters>) -> Self {
        let (p, q) = (parameters.n_features(), parameters.n_latent());
        let totals = Totals {
            weight: 0.0,
            cells: 0.0,
            log_likelihood: 0.0,
            squares: 0.0,
            determined: 0.0,
            second: vec![0.0; packed_len(q + 1)],
        };
        let (second, cross) = (Mat::zeros(packed_len(q + 1), p), Mat::zeros(q + 1, p));
        Self { parameters, second, cross, squares: vec![0.0; p], totals, student: None }
    }

    /// Of no rows, which have a t distribution of so many degrees of freedom.
    pub(crate) fn empty_student(parameters: Arc<LatentParameters>, student: Student) -> Self {
        Self { student: Some(StudentSums::empty(student)), ..Self::empty(parameters) }
    }

    /// The same with the sums of a t distribution.
    pub(crate) fn with_student(self, student: Option<StudentSums>) -> Self {
        Self { student, ..self }
    }

    /// From given sums.
    pub(crate) fn from_parts(
        parameters: Arc<LatentParameters>,
        second: Mat<f64>,
        cross: Mat<f64>,
        squares: Vec<f64>,
        totals: Totals,
    ) -> Result<Self> {
        let (p, q) = (parameters.n_features(), parameters.n_latent());
        let shape = |m: &Mat<f64>| (m.nrows(), m.ncols());
        let finite = |m: &Mat<f64>| m.col_iter().all(|c| c.iter().all(|x| x.is_finite()));
        let fits = shape(&second) == (packed_len(q + 1), p)
            && shape(&cross) == (q + 1, p)
            && squares.len() == p
            && totals.second.len() == packed_len(q + 1);
        let numbers = [totals.weight, totals.cells, totals.log_likelihood, totals.squares, totals.determined];
        let numbers = numbers.iter().chain(&totals.second).chain(&squares);
        let possible = numbers.into_iter().all(|x| x.is_finite()) && totals.weight >= 0.0;
        if fits && possible && finite(&second) && finite(&cross) {
            return Ok(Self { parameters, second, cross, squares, totals, student: None });
        }
        Err(Error::Format("latent evidence that no rows can have".into()))
    }

    /// What it was collected for.
    pub fn parameters(&self) -> &Arc<LatentParameters> {
        &self.parameters
    }

    /// Log-likelihood of the observed cells under the parameters.
    pub fn log_likelihood(&self) -> f64 {
        if let Some(sums) = &self.student {
            return sums.log_likelihood(&self.parameters);
        }
        let volume = |(j, cells): (usize, f64)| cells * self.parameters.scale().of(j).ln();
        let cells = self.weights_of_features();
        self.totals.log_likelihood - cells.into_iter().enumerate().map(volume).sum::<f64>()
    }

    /// Total weight of the rows that have a cell.
    pub fn weight(&self) -> f64 {
        self.totals.weight
    }

    /// Total weight of the rows that have each feature (p).
    pub(crate) fn weights_of_features(&self) -> Vec<f64> {
        self.second.row(self.second.nrows() - 1).iter().copied().collect()
    }

    /// Adds the expectation step of some rows, with weights.
    fn add(&mut self, step: &BlockExpectation<'_>, weights: &[f64]) {
        let (rows, z, covariances) = (step.rows(), step.mean(), step.covariances());
        let squares = step.squared_residuals();
        let distances = step.mahalanobis(&squares);
        let counted = self.student.as_mut().map(|sums| sums.add(step, &distances, weights));
        let of_patterns =
            self.totals.add(step, (&squares, &distances), &covariances, (weights, counted.as_deref()));
        let weights = counted.as_deref().unwrap_or(weights);
        // w (z, 1) of each row (rows × q + 1), and Σ w E[(z, 1)(z, 1)ᵀ] of each pattern (patterns × packed)
        let first = weighted(z, weights);
        let second = second_moments(z, rows.pattern(), &first, &covariances, &of_patterns);
        for (k, total) in self.totals.second.iter_mut().enumerate() {
            *total += second.col_as_slice(k).iter().sum::<f64>();
        }
        rows.scatter(second.as_ref(), &mut self.second);
        rows.scatter_deviations(first.as_ref(), &mut self.cross);
        if matches!(self.parameters.scale(), FeatureScale::NoiseDeviations(_)) {
            rows.scatter_squares(weights, &mut self.squares);
        }
    }
}

fn weights_of(weights: Option<&[f64]>, rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|i| weights.map_or(1.0, |w| w[*i])).collect()
}

impl Totals {
    /// Adds what is not about single features, and gives the weight of each pattern. Where a t distribution
    /// decides how much rows count, `counted` are their weights times that.
    fn add(
        &mut self,
        step: &BlockExpectation<'_>,
        (squares, distances): (&[f64], &[f64]),
        covariances: &Mat<f64>,
        (weights, counted): (&[f64], Option<&[f64]>),
    ) -> Vec<f64> {
        let (rows, q) = (step.rows(), step.n_latent());
        let log_densities = step.log_densities(distances);
        let mut of_patterns = vec![0.0; rows.observed().len()];
        for (at, (w, pattern)) in weights.iter().zip(rows.pattern()).enumerate() {
            self.log_likelihood += w * log_densities[at];
            self.squares += counted.map_or(*w, |counted| counted[at]) * squares[at];
            self.cells += w * rows.observed()[*pattern] as f64;
            of_patterns[*pattern] += w;
        }
        for (k, w) in of_patterns.iter().enumerate() {
            let trace: f64 = (0..q).map(|i| covariances[(k, packed(i, i))]).sum();
            self.determined += w * (q as f64 - trace);
        }
        counted.unwrap_or(&of_patterns).iter().for_each(|w| self.weight += w);
        of_patterns
    }
}

/// w (z, 1) of each row (rows × q + 1).
fn weighted(z: &Mat<f64>, weights: &[f64]) -> Mat<f64> {
    let q = z.ncols();
    let mut out = Mat::zeros(z.nrows(), q + 1);
    for i in 0..q {
        let terms = z.col_as_slice(i).iter().zip(weights);
        out.col_as_slice_mut(i).iter_mut().zip(terms).for_each(|(o, (z, w))| *o = z * w);
    }
    out.col_as_slice_mut(q).copy_from_slice(weights);
    out
}

/// Σ w (C + z zᵀ), Σ w z and Σ w of each pattern (patterns × packed).
fn second_moments(
    z: &Mat<f64>,
    patterns: &[usize],
    first: &Mat<f64>,
    covariance: &Mat<f64>,
    weight: &[f64],
) -> Mat<f64> {
    let (q, arch) = (z.ncols(), pulp::Arch::new());
    let mut out = Mat::zeros(weight.len(), packed_len(q + 1));
    let ones = vec![1.0; patterns.len()];
    let mut products = vec![0.0; patterns.len()];
    for i in 0..=q {
        let zi = if i < q { z.col_as_slice(i) } else { &ones };
        for j in 0..=i {
            arch.dispatch(|| multiply(&mut products, zi, first.col_as_slice(j)));
            let out = out.col_as_slice_mut(packed(i, j));
            if i < q {
                arch.dispatch(|| multiply(out, covariance.col_as_slice(packed(i, j)), weight));
            }
            patterns.iter().zip(&products).for_each(|(pattern, product)| out[*pattern] += product);
        }
    }
    out
}

#[inline(always)]
fn multiply(out: &mut [f64], a: &[f64], b: &[f64]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(o, (a, b))| *o = a * b);
}

impl Accumulator for Latent {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("latent"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (parameters, weights) = (Arc::clone(&self.parameters), chunk.weights());
        for_each_block(&parameters, chunk, &mut |step, rows| self.add(step, &weights_of(weights, rows)))?;
        if self.log_likelihood().is_finite() {
            return Ok(());
        }
        Err(chunk.explain_infinite().unwrap_or(Error::Scale))
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.parameters, &other.parameters) && self.parameters != other.parameters {
            let (name, value) = ("the parameters of latent evidence", "others".into());
            return Err(Error::Parameter { name, value, allowed: "the same in all parts" });
        }
        self.second += &other.second;
        self.cross += &other.cross;
        self.squares.iter_mut().zip(&other.squares).for_each(|(a, b)| *a += b);
        if let (Some(a), Some(b)) = (&mut self.student, &other.student) {
            a.merge(b)?;
        }
        let (a, b) = (&mut self.totals, &other.totals);
        a.weight += b.weight;
        a.cells += b.cells;
        a.log_likelihood += b.log_likelihood;
        a.squares += b.squares;
        a.determined += b.determined;
        a.second.iter_mut().zip(&b.second).for_each(|(a, b)| *a += b);
        Ok(())
    }
}

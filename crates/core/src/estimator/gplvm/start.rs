//! Where a fit of a GP-LVM begins: PPCA's coordinates, whitened.

use std::ops::RangeInclusive;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::super::{MissingCells, Plan, Ppca, Report, Run, Solver};
use super::Gplvm;
use crate::algorithm::{Components, Stop};
use crate::control::Control;
use crate::data::{RowSource, map_chunks};
use crate::error::{Error, Result};
use crate::evidence::{Survey, gather};
use crate::linalg::Mat;
use crate::memory;

/// Streams of the generator that draw inducing points.
const STREAM: u64 = 0x6b1;
/// Dimensions when the fit is to choose: those that carry nothing are told.
const MOST: usize = 10;

/// Variances of the data whose squares, summed over rows, neither overflow nor vanish.
const VARIANCES: RangeInclusive<f64> = 1e-140..=1e140;

/// What is known of the rows before the search.
pub(super) struct Look {
    pub(super) rows: usize, // of positive weight
    pub(super) weight: f64,
    pub(super) cells: f64, // observed, by weight
    pub(super) mean: Vec<f64>,
    pub(super) total_variance: f64,
    pub(super) holes: Option<MissingCells>,
    pub(super) latent: usize,
    pub(super) scores: Mat<f64>, // PPCA's coordinates of every row, of mean 0 and variance 1 (n × q)
    pub(super) counts: Vec<bool>, // whether a row has weight and a cell
    pub(super) passes: usize,
}

impl Look {
    pub(super) fn at(family: &Gplvm, source: &dyn RowSource, control: &Control<'_>) -> Result<Self> {
        let p = source.n_features();
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        let rows = census.rows();
        if rows < 2 {
            return Err(Error::TooFewRows { rows, needed: 2 });
        }
        let variances = margins.variance();
        let total_variance: f64 = variances.iter().sum();
        if total_variance == 0.0 {
            return Err(Error::Constant);
        }
        if !VARIANCES.contains(&total_variance) {
            return Err(Error::Scale);
        }
        let possible = p.min(rows - 1);
        let components = match family.components {
            Components::All => Components::Count(MOST.min(possible)),
            other => other,
        };
        if let Some(requested) = components.count().filter(|q| *q > possible) {
            return Err(Error::Components { requested, possible, rows, features: p });
        }
        let run = Run { tolerance: None, max_iterations: None, ..family.run };
        let ppca = Ppca::new(components).run(run).fit_with(source, control)?;
        let latent = ppca.model.n_latent();
        if latent == 0 {
            return Err(Error::Components { requested: 0, possible, rows, features: p });
        }
        if let Some(n) = source.n_rows() {
            memory::check("the latent positions of the rows", &[8, n, latent])?;
        }
        let scores = whitened(ppca.model.latent_mean(source)?);
        Ok(Self {
            rows,
            weight: census.weight(),
            cells: margins.weight().iter().sum(),
            mean: margins.mean().to_vec(),
            total_variance,
            holes: Some(MissingCells::new(&census, None)).filter(|holes| holes.missing > 0),
            latent,
            counts: counted(source)?,
            scores,
            passes: 3 + ppca.report.passes,
        })
    }

    /// Mean variance of a feature.
    pub(super) fn variance(&self) -> f64 {
        self.total_variance / self.mean.len() as f64
    }

    /// So many rows that count, at random.
    pub(super) fn drawn(&self, count: usize, seed: u64, start: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.counts.len()).filter(|i| self.counts[*i]).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(STREAM + start as u64);
        rows.shuffle(&mut rng);
        rows.truncate(count);
        rows
    }

    /// A report without what the method tells.
    pub(super) fn report(&self, plan: Plan, stop: Stop) -> Report {
        Report {
            plan,
            rows: self.rows,
            weight: self.weight,
            features: self.mean.len(),
            components: self.latent,
            log_likelihood: None,
            total_variance: self.total_variance,
            holes: self.holes.clone(),
            details: None,
            redundant: None,
            rotation: None,
            scaled: None,
            choice: None,
            stop,
            passes: self.passes,
            trace: Vec::new(),
            seconds: 0.0,
            spectrum: None,
        }
    }
}

/// The plan of a search.
pub(super) fn plan(reason: String, memory: usize) -> Plan {
    Plan { solver: Solver::Lbfgs, reason, memory }
}

/// Columns of mean 0 and variance 1; those of no variance are 0.
fn whitened(mut scores: Mat<f64>) -> Mat<f64> {
    let n = scores.nrows() as f64;
    for k in 0..scores.ncols() {
        let column = scores.col_as_slice_mut(k);
        let mean = column.iter().sum::<f64>() / n;
        let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let by = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
        column.iter_mut().for_each(|x| *x = (*x - mean) * by);
    }
    scores
}

/// Whether each row has a weight and a cell.
fn counted(source: &dyn RowSource) -> Result<Vec<bool>> {
    let parts = map_chunks(source, |chunk| {
        let weighted = |i: usize| chunk.weights().is_none_or(|w| w[i] > 0.0);
        Ok(chunk.with_wide(|view| {
            (0..view.nrows())
                .map(|i| weighted(i) && view.row(i).iter().any(|x| !x.is_nan()))
                .collect::<Vec<_>>()
        }))
    })?;
    Ok(parts.concat())
}

//! The covariance decomposed: for moments of any origin, the usual way when n ≥ p.

use super::Components;
use super::redundant::RedundantFeatures;
use super::refine::cancels;
use super::resolution::{ComputedEigenvalues, of_covariance, whole_values};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::linalg::{Eigen, MatRef, leading_eigen, negligible, symmetric_eigen};
use crate::spectrum::{RawSpectrum, Spectrum};

/// Below this size the whole decomposition is as fast as the leading part.
const SMALL: usize = 96;

/// The spectrum of moments.
pub(crate) fn solve(moments: &Moments, components: Components, seed: u64) -> Result<Spectrum> {
    let (rows, p) = (moments.rows(), moments.n_features());
    components.check_possible(rows, p)?;
    let total_variance = moments.total_variance();
    if !total_variance.is_finite() {
        return Err(Error::Scale);
    }
    let components = counted(components, moments)?;
    let covariance = moments.covariance();
    let mut eigen = decompose(covariance.as_ref(), components, seed)?;
    if eigen.values.len() < p && cancels(total_variance, &eigen.values) {
        // There are no rows to measure the rest on, but the whole decomposition knows it better.
        eigen = symmetric_eigen(covariance.as_ref())?;
    }
    let Eigen { values, vectors } = eigen;
    let q = components.resolve(rows, p, &values, negligible(rows, p, values[0]))?;
    let variances = || (0..p).map(|j| covariance[(j, j)]).collect();
    let computed = ComputedEigenvalues { values: &values, total: total_variance, rows, features: p };
    let own_scale = computed.lost_in_rounding(components, q, variances);
    let found = match own_scale {
        true => of_covariance(covariance.as_ref(), components, rows)?,
        false => (values, vectors.subcols(0, q).to_owned()),
    };
    let raw = RawSpectrum::new(moments.mean().to_vec(), found, total_variance, (rows, moments.weight()));
    Spectrum::new(RawSpectrum { own_scale, ..raw })
}

/// The components, their number found where it is that of largest evidence.
pub(crate) fn counted(components: Components, moments: &Moments) -> Result<Components> {
    match components {
        Components::Evidence => by_evidence(moments).map(Components::Count),
        other => Ok(other),
    }
}

/// The number of components of largest evidence, chosen by the features that add a direction.
fn by_evidence(moments: &Moments) -> Result<usize> {
    let p = moments.n_features();
    let others = RedundantFeatures::of(moments).others(p);
    let part = if others.len() < p { moments.of_features(&others) } else { moments.clone() };
    let (rows, p) = (part.rows(), others.len());
    if p == 0 {
        return Err(Error::Constant);
    }
    Components::Evidence.resolve(rows, p, &whole_values(&part)?, 0.0)
}

/// The leading pairs when a count is asked for and they are few, else all.
pub(super) fn decompose(matrix: MatRef<'_, f64>, components: Components, seed: u64) -> Result<Eigen> {
    let n = matrix.nrows();
    if let Some(q) = components.count().filter(|q| n > SMALL && 6 * q < n)
        && let Some(found) = leading_eigen(matrix, q, seed)?
    {
        return Ok(found);
    }
    symmetric_eigen(matrix)
}

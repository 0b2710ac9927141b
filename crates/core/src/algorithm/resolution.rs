//! Whether small variances are more than the rounding of large ones.
//!
//! A plain decomposition knows all eigenvalues of a covariance to a share of the largest. That is enough
//! unless the noise is smaller than this *and* some features are: then their variances, which the data hold
//! to full precision, would drown in the rounding of a feature of another scale.

use serde::{Deserialize, Serialize};

use super::Components;
use crate::control::Control;
use crate::data::{Chunk, Order, RowSource};
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Moments, Survey, Travel, gather};
use crate::linalg::{
    Determined, Eigen, Mat, MatRef, complete_basis, graded_eigen, graded_eigen_of_rests,
    graded_right_singular, negligible, symmetric_eigen, symmetric_eigenvalues,
};
use crate::spectrum::{RawSpectrum, Spectrum};

/// How many times its rounding a variance has to be to count as known.
const KNOWN: f64 = 1e6;
/// Share of the noise to which moments have to know it where there are no rows to ask.
const OF_MOMENTS: f64 = 1e-3;
/// Rounding of a decomposition, in units of ε times its largest value, however many features there are.
const MOST_ROUNDING: f64 = 64.0;

/// Largest ratio of deviations of features in an iteration with one noise for all.
const LARGEST_RATIO: f64 = 1e13;

/// The variance from which on a plain decomposition knows it well, beside the largest.
///
/// Errors grow more slowly with the number of features than their bound does: the bound of many would send
/// ordinary data here.
fn known(rows: usize, features: usize, largest: f64) -> f64 {
    KNOWN * negligible(rows, features, largest).min(MOST_ROUNDING * f64::EPSILON * largest)
}

/// Eigenvalues with what their accuracy is computed by.
pub(super) struct ComputedEigenvalues<'a> {
    /// Descending; all, or the leading ones.
    pub(super) values: &'a [f64],
    /// Trace of the covariance.
    pub(super) total: f64,
    pub(super) rows: usize,
    pub(super) features: usize,
}

impl ComputedEigenvalues<'_> {
    /// Whether the smallest variance that the answer rests on is lost in rounding though the features, whose
    /// variances are asked for only when it matters, hold it.
    pub(super) fn lost_in_rounding(
        &self,
        components: Components,
        q: usize,
        variances: impl FnOnce() -> Vec<f64>,
    ) -> bool {
        let known = known(self.rows, self.features, self.values[0]);
        self.smallest(components, q) < known && variances().iter().any(|v| *v > 0.0 && *v < known)
    }

    /// The noise that q components leave, or the last eigenvalue where the number of components hangs on it.
    fn smallest(&self, components: Components, q: usize) -> f64 {
        let last = self.features.min(self.rows - 1).min(self.values.len()) - 1;
        match components {
            Components::Count(_) | Components::Fraction(_) if q < self.features => {
                (self.total - self.values[..q].iter().sum::<f64>()) / (self.features - q) as f64
            }
            _ => self.values[last],
        }
    }
}

/// All eigenvalues and vectors (p × p) of the covariance of moments, each to its own scale where that
/// matters; values that are rounding are 0.
pub(crate) fn whole(moments: &Moments) -> Result<Eigen> {
    let covariance = moments.covariance();
    let mut eigen = symmetric_eigen(covariance.as_ref())?;
    if is_lost_in_rounding(moments, &eigen.values) {
        let rounding = negligible(moments.rows(), moments.n_features(), 1.0);
        (eigen, _) = graded_eigen(covariance.as_ref(), rounding);
        let smallest = eigen.values.last().copied().unwrap_or(0.0);
        check_known(covariance.as_ref(), rounding, smallest)?;
        let rank = eigen.values.iter().filter(|v| **v > 0.0).count();
        complete_basis(&mut eigen.vectors, rank);
        return Ok(eigen);
    }
    without_rounding(moments, &mut eigen.values);
    Ok(eigen)
}

/// The eigenvalues alone, which cost a third.
pub(crate) fn whole_values(moments: &Moments) -> Result<Vec<f64>> {
    let mut values = symmetric_eigenvalues(moments.covariance().as_ref())?;
    if is_lost_in_rounding(moments, &values) {
        return Ok(whole(moments)?.values);
    }
    without_rounding(moments, &mut values);
    Ok(values)
}

fn is_lost_in_rounding(moments: &Moments, values: &[f64]) -> bool {
    let (rows, p, weight) = (moments.rows(), moments.n_features(), moments.weight());
    let computed = ComputedEigenvalues { values, total: moments.total_variance(), rows, features: p };
    let variances = || (0..p).map(|j| moments.scatter_lower()[(j, j)] / weight).collect();
    rows > 1 && computed.lost_in_rounding(Components::All, p, variances)
}

fn without_rounding(moments: &Moments, values: &mut [f64]) {
    let floor = negligible(moments.rows(), moments.n_features(), values[0]);
    values.iter_mut().filter(|v| **v <= floor).for_each(|v| *v = 0.0);
}

/// All eigenvalues of a covariance, each to its own scale, and the leading vectors (p × q).
pub(super) fn of_covariance(
    covariance: MatRef<'_, f64>,
    components: Components,
    rows: usize,
) -> Result<(Vec<f64>, Mat<f64>)> {
    let p = covariance.nrows();
    let rounding = negligible(rows, p, 1.0);
    let (values, vectors) = leading(graded_eigen(covariance, rounding).0, components, rows)?;
    let q = vectors.ncols();
    let noise = if q < p { values[q..].iter().sum::<f64>() / (p - q) as f64 } else { values[p - 1] };
    check_known(covariance, rounding, noise)?;
    Ok((values, vectors))
}

/// A feature that others all but determine, when what it varies by itself is known to less than a share
/// `accuracy` of the noise: a covariance holds it to the rounding of the feature's variance.
fn poorly_known(covariance: MatRef<'_, f64>, rounding: f64, noise: f64, accuracy: f64) -> Option<Determined> {
    let (_, determined) = graded_eigen(covariance, KNOWN * rounding);
    let varying = (0..covariance.nrows()).map(|j| covariance[(j, j)]).filter(|v| *v > 0.0);
    // Rows in a plane have no noise: the rounding of the smallest feature does not matter.
    let least = (accuracy * noise).max(KNOWN * rounding * rounding * varying.fold(f64::INFINITY, f64::min));
    determined.into_iter().find(|d| rounding * covariance[(d.feature, d.feature)] > least)
}

/// The error that names such a feature and the one that determines most of it.
fn check_known(covariance: MatRef<'_, f64>, rounding: f64, noise: f64) -> Result<()> {
    let Some(lost) = poorly_known(covariance, rounding, noise, OF_MOMENTS) else { return Ok(()) };
    let share = |(j, b): &&(usize, f64)| b * b * covariance[(*j, *j)];
    let most = lost.of.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let other = most.map_or(lost.feature, |(j, _)| *j);
    Err(Error::AllButDetermined { features: vec![(lost.feature, None), (other, None)] })
}

/// Whether rows know more of the noise than their moments, which have given this spectrum or the error that
/// they cannot.
pub(crate) fn rows_know_more(moments: &Moments, found: &Result<Spectrum>) -> bool {
    match found {
        Err(Error::AllButDetermined { .. }) => true,
        Ok(found) if found.own_scale() => {
            let rounding = negligible(moments.rows(), moments.n_features(), 1.0);
            let covariance = moments.covariance();
            poorly_known(covariance.as_ref(), rounding, found.noise_variance(), 1.0 / KNOWN).is_some()
        }
        _ => false,
    }
}

/// The spectrum of moments in one more pass over the rows, in which the features that others all but determine
/// are replaced by what the others leave of them: that is then known to its own scale.
pub(crate) fn of_rests(
    moments: &Moments,
    source: &dyn RowSource,
    components: Components,
    control: &Control<'_>,
) -> Result<Spectrum> {
    let (p, rows) = (moments.n_features(), moments.rows());
    let covariance = moments.covariance();
    let rounding = negligible(rows, p, 1.0);
    let (_, determined) = graded_eigen(covariance.as_ref(), KNOWN * rounding);
    let means = moments.mean();
    let rests = gather(source, || Rests::empty(means, &determined), control)?.moments;
    let mut of_rests = rests.covariance();
    for Determined { feature: j, .. } in &determined {
        // What is left when a cell is a combination of the others is their rounding.
        if of_rests[(*j, *j)].sqrt() <= rounding * covariance[(*j, *j)].sqrt() {
            (0..p).for_each(|k| (of_rests[(*j, k)], of_rests[(k, *j)]) = (0.0, 0.0));
        }
    }
    let eigen = graded_eigen_of_rests(of_rests.as_ref(), rounding, &determined);
    let found = leading(eigen, components, rows)?;
    let shape = (rows, moments.weight());
    let raw = RawSpectrum::new(means.to_vec(), found, moments.total_variance(), shape);
    Spectrum::new(RawSpectrum { own_scale: true, ..raw })
}

/// Moments of rows in which some features are replaced by what others leave of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rests {
    moments: Moments,
    centre: Vec<f64>,
    replaced: Vec<Determined>,
}

impl Rests {
    fn empty(centre: &[f64], replaced: &[Determined]) -> Self {
        Self { moments: Moments::empty(centre.len()), centre: centre.to_vec(), replaced: replaced.to_vec() }
    }
}

impl Accumulator for Rests {
    const TRAVEL: Option<Travel<Self>> = Some(Travel::named("rests"));

    fn update(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let p = chunk.ncols();
        let centred = |i: usize, j: usize| chunk.cells().get(i, j) - self.centre[j];
        let mut cells: Vec<f64> = (0..chunk.nrows())
            .flat_map(|i| (0..p).map(move |j| (i, j)))
            .map(|(i, j)| centred(i, j))
            .collect();
        for row in cells.chunks_exact_mut(p) {
            for Determined { feature, of } in &self.replaced {
                row[*feature] -= of.iter().map(|(j, b)| b * row[*j]).sum::<f64>();
            }
        }
        let rests = Chunk::from_rows(chunk.first_row(), cells, p, Order::Rows)?;
        match chunk.weights() {
            Some(weights) => self.moments.update(&rests.with_weights(weights.to_vec())?),
            None => self.moments.update(&rests),
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.moments.merge(&other.moments)
    }
}

/// The same from centred rows √w(x − m) (n × p) of the given number and total weight.
pub(super) fn of_rows(
    centred: MatRef<'_, f64>,
    components: Components,
    (rows, weight): (usize, f64),
) -> Result<(Vec<f64>, Mat<f64>)> {
    let mut eigen = graded_right_singular(centred, negligible(rows, centred.ncols(), 1.0));
    eigen.values.iter_mut().for_each(|v| *v /= weight);
    leading(eigen, components, rows)
}

/// The values, 0 beyond the rank, and the leading vectors.
fn leading(eigen: Eigen, components: Components, rows: usize) -> Result<(Vec<f64>, Mat<f64>)> {
    let Eigen { mut values, vectors } = eigen;
    let p = vectors.nrows();
    values.resize(p, 0.0);
    let q = components.resolve(rows, p, &values, 0.0)?;
    let entry = |i: usize, k: usize| if k < vectors.ncols() { vectors[(i, k)] } else { 0.0 };
    Ok((values, Mat::from_fn(p, q, entry)))
}

/// What passes over the rows cannot tell: the noise that they have found is rounding, though some features
/// are as small.
///
/// The answer is the error that names the feature of largest and the one of smallest variance, or `None`
/// where all is well.
pub(crate) fn lost_in_passes(
    found: &Spectrum,
    source: &dyn RowSource,
    control: &Control<'_>,
) -> Result<Option<Error>> {
    let (rows, p, q) = (found.rows(), found.n_features(), found.n_components());
    let known = known(rows, p, found.eigenvalues()[0]);
    let smallest = if q < p { found.noise_variance() } else { found.eigenvalues()[q - 1] };
    if smallest >= known {
        return Ok(None);
    }
    let (_, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
    let gap = scale_gap(&margins.variance()).filter(|gap| gap.smallest < known);
    Ok(gap.map(Error::from))
}

/// The features of largest and smallest variance, those of none aside.
struct ScaleGap {
    large: usize,
    small: usize,
    smallest: f64, // variance
    ratio: f64,    // of deviations
}

impl From<ScaleGap> for Error {
    fn from(gap: ScaleGap) -> Self {
        Self::ScaleGap { features: vec![(gap.large, None), (gap.small, None)], ratio: gap.ratio }
    }
}

fn scale_gap(variances: &[f64]) -> Option<ScaleGap> {
    let varying = || (0..variances.len()).filter(|j| variances[*j] > 0.0);
    let small = varying().min_by(|a, b| variances[*a].total_cmp(&variances[*b]))?;
    let large = varying().max_by(|a, b| variances[*a].total_cmp(&variances[*b]))?;
    let ratio = variances[large].sqrt() / variances[small].sqrt();
    Some(ScaleGap { large, small, smallest: variances[small], ratio })
}

/// Features whose deviations differ by more than an iteration with one noise for all can tell: residuals of
/// the largest are then as coarse as the noise of the smallest.
pub(crate) fn check_scales(variances: &[f64]) -> Result<()> {
    match scale_gap(variances) {
        Some(gap) if gap.ratio > LARGEST_RATIO => Err(gap.into()),
        _ => Ok(()),
    }
}

//! Whether what a file says of a model is possible: a right checksum does not make right numbers.

use super::model::SavedModel;
use crate::assess::{Adequacy, Assessment, FitIndices, Precision, StandardErrors};
use crate::error::{Error, Result};
use crate::estimator::{ClusterReport, FactorReport, MissingCells, Report};
use crate::model::{Factors, Model};

/// How far the variance along one direction may exceed all variance: single precision rounds.
const EXCESS: f64 = 1.01;

/// What a probability or the ends of a narrow interval may be off by.
const ROUNDING: f64 = 1e-9;

/// One name for each of p features.
pub(super) fn check_names(features: &[String], p: usize) -> Result<()> {
    match features.len() {
        n if n == p => Ok(()),
        n => Err(Error::Format(format!("it has {n} feature names for {p} features"))),
    }
}

/// At least one for each component and at most one for each feature. None is negative or larger than all
/// variance, but what goes with oblique factors may be.
pub(super) fn check_eigenvalues(saved: &SavedModel) -> Result<()> {
    if saved.model.as_loadings().is_none() {
        return Ok(());
    }
    let (p, q, found) = (saved.model.n_features(), saved.model.n_latent(), saved.eigenvalues.len());
    if found < q || found > p.max(q) {
        let (least, most) = (q, p.max(q));
        return Err(Error::Format(format!("it has {found} eigenvalues where {least} to {most} are needed")));
    }
    let most = EXCESS * saved.report.total_variance;
    let oblique = saved.model.downcast_ref::<Factors>().is_some();
    let possible = |v: &f64| oblique || (0.0 <= *v && *v <= most);
    if saved.eigenvalues.iter().all(possible) && saved.explained_ratio().iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    Err(Error::Format("its eigenvalues are not shares of its total variance".into()))
}

/// The numbers of a report, beside those of its model.
pub(super) fn check_report(report: &Report, model: &dyn Model) -> Result<()> {
    let (p, q) = (model.n_features(), model.n_latent());
    all_possible(&[
        ("number of features", report.features == p),
        ("number of components", report.components == q),
        ("total weight", is_weight(report.rows, report.weight)),
        ("total variance", not_negative(report.total_variance)),
        ("features that were left out", report.redundant.as_ref().is_none_or(|found| found.is_of(p))),
        ("scale of the features", report.scaled.as_ref().is_none_or(|s| s.factors.iter().all(|d| *d > 0.0))),
        ("count of missing cells", report.holes.as_ref().is_none_or(|holes| is_count(holes, report.rows))),
    ])?;
    report.clusters().map_or(Ok(()), |clusters| check_clusters(clusters, q))?;
    report.factor().map_or(Ok(()), |factor| check_factor(factor, p, q))
}

fn check_clusters(clusters: &ClusterReport, k: usize) -> Result<()> {
    let rows = clusters.chosen.iter().flat_map(|table| &table.rows);
    all_possible(&[
        ("inertia", not_negative(clusters.inertia)),
        ("sum of squares", not_negative(clusters.total)),
        ("number of clusters", clusters.found == k && clusters.found <= clusters.asked),
        ("table of numbers of clusters", rows.clone().all(|row| not_negative(row.inertia))),
    ])
}

/// Rows count when their weight is positive.
pub(super) fn is_weight(rows: usize, weight: f64) -> bool {
    not_negative(weight) && (rows > 0) == (weight > 0.0)
}

fn is_count(holes: &MissingCells, rows: usize) -> bool {
    holes.observed.checked_add(holes.missing).is_some() && holes.empty_rows <= rows as u64
}

fn check_factor(factor: &FactorReport, p: usize, q: usize) -> Result<()> {
    all_possible(&[
        ("list of Heywood cases", factor.heywood.iter().all(|j| *j < p)),
        ("number of unused factors", factor.unused <= q),
        ("bound of the uniquenesses", (0.0..=1.0).contains(&factor.lower)),
        ("gradient", not_negative(factor.gradient_norm)),
    ])?;
    factor.assessment.as_ref().map_or(Ok(()), |assessment| check_assessment(assessment, p, q))
}

fn check_assessment(assessment: &Assessment, p: usize, q: usize) -> Result<()> {
    let Assessment { fit, adequacy, precision } = assessment;
    all_possible(&[
        ("list of fit indices", are_indices(fit)),
        ("sampling adequacy", adequacy.as_ref().is_none_or(|adequacy| is_adequacy(adequacy, p))),
        ("list of standard errors", precision.as_ref().is_none_or(|precision| are_errors(precision, p, q))),
    ])
}

fn are_indices(fit: &FitIndices) -> bool {
    let squares =
        [fit.rows, fit.discrepancy, fit.chi2, fit.null_chi2, fit.rmsea, Some(fit.srmr), Some(fit.rmsr)];
    let interval = fit.rmsea_interval.is_none_or(|(low, high)| 0.0 <= low && low <= high * (1.0 + ROUNDING));
    squares.into_iter().flatten().all(not_negative) && fit.p_value.is_none_or(is_share) && interval
}

fn is_adequacy(adequacy: &Adequacy, p: usize) -> bool {
    let Adequacy { kmo, sphericity, smc } = adequacy;
    let shares = kmo.features.iter().chain(smc).chain([&kmo.overall]);
    let test = sphericity.as_ref().is_none_or(|t| not_negative(t.chi2) && t.p_value.is_none_or(is_share));
    kmo.features.len() == p && smc.len() == p && shares.copied().all(is_share) && test
}

fn are_errors(precision: &Precision, p: usize, q: usize) -> bool {
    let Precision { given, standardised, fixed, off_axis } = precision;
    fixed.iter().all(|j| *j < p)
        && not_negative(*off_axis)
        && [given, standardised].into_iter().all(|errors| fit_to(errors, p, q))
}

fn fit_to(errors: &StandardErrors, p: usize, q: usize) -> bool {
    let StandardErrors { loadings, correlation, uniquenesses } = errors;
    let matrices = [(loadings, (p, q)), (correlation, (q, q))];
    matrices.into_iter().all(|(m, sides)| {
        (m.nrows(), m.ncols()) == sides && m.col_iter().all(|c| c.iter().copied().all(not_negative))
    }) && uniquenesses.len() == p
        && uniquenesses.iter().copied().all(not_negative)
}

fn not_negative(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

/// Up to rounding.
fn is_share(x: f64) -> bool {
    (-ROUNDING..=1.0 + ROUNDING).contains(&x)
}

/// The first that is not.
fn all_possible(facts: &[(&str, bool)]) -> Result<()> {
    match facts.iter().find(|(_, possible)| !possible) {
        Some((what, _)) => Err(Error::Format(format!("its report has an impossible {what}"))),
        None => Ok(()),
    }
}

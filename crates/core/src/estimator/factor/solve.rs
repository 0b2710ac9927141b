//! Factors of complete rows: from their correlations where a p × p matrix fits, in passes where it does not.

use super::FactorAnalysis;
use super::assess::Comparison;
use super::finish::FactorSolution;
use super::plan::FactorChoice;
use crate::algorithm::{Components, FoundFactors, Search, Start, em_factor, krylov_factor, newton_factor};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::estimator::{Plan, Solver};
use crate::evidence::{Found, Moments, Pairwise, Survey, gather};
use crate::linalg::MatRef;

/// Relative error of a uniqueness that single precision may leave.
const NOISE_ACCURACY: f64 = 1e-4;
/// Starts that are tried where one ends at a bound, when their number is not given.
const DOUBTFUL_STARTS: usize = 5;
/// Distance of a correlation from ±1 that is rounding.
const SAME: f64 = 1e-12;

impl FactorAnalysis {
    /// From moments where they fit, else in passes; whether there are missing values shows in the first pass.
    pub(super) fn solve_any(
        &self,
        choice: FactorChoice,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let FactorChoice { plan, in_passes } = choice;
        if in_passes {
            return self.solve_rows(plan, source, control);
        }
        let p = source.n_features();
        match gather(source, || Pairwise::empty(p), control)?.finish()? {
            Found::Complete(moments) => self.solve_gathered(plan, &moments, source, control),
            // A list of observed cells may turn out to have no missing values.
            Found::Incomplete(cases) if cases.census.missing() == 0 => {
                let moments = gather(source, || Moments::empty_fast(p), control)?;
                Ok(FactorSolution { passes: 2, ..self.solve_moments(plan, &moments, control)? })
            }
            Found::Incomplete(cases) => self.solve_available(cases, source, control),
        }
    }

    /// After one pass; a second one in double precision when products in single are too coarse.
    fn solve_gathered(
        &self,
        plan: Plan,
        moments: &Moments,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let p = source.n_features();
        let solved = self.solve_moments(plan.clone(), moments, control);
        let error = moments.single_precision_error() * p as f64;
        let coarse =
            |s: &FactorSolution| s.tries.best.uniquenesses.iter().any(|u| error > NOISE_ACCURACY * u);
        if error == 0.0 || solved.as_ref().is_ok_and(|s| !coarse(s)) {
            return solved;
        }
        let moments = gather(source, || Moments::empty(p), control)?;
        Ok(FactorSolution { passes: 2, ..self.solve_moments(plan, &moments, control)? })
    }

    pub(super) fn solve_moments(
        &self,
        plan: Plan,
        moments: &Moments,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        Components::Count(self.factors()).check_possible(moments.rows(), moments.n_features())?;
        let mut r = moments.covariance();
        let variances: Vec<f64> = (0..r.nrows()).map(|j| r[(j, j)]).collect();
        let deviations = deviations(moments.mean(), &variances)?;
        for j in 0..r.ncols() {
            let column = r.col_as_slice_mut(j).iter_mut().zip(&deviations);
            column.for_each(|(r, d)| *r = *r / d / deviations[j]);
            r[(j, j)] = 1.0;
        }
        check_different(r.as_ref())?;
        let lower = self.first_bound(plan.solver, r.as_ref())?;
        let tries = self.best_of(lower, DOUBTFUL_STARTS, |search, start| {
            Self::solve_correlations(plan.solver, r.as_ref(), (search, start), control)
        })?;
        let (mean, seen) = (moments.mean().to_vec(), (moments.rows(), moments.weight()));
        let weights = vec![moments.weight(); mean.len()];
        let comparison = Comparison::Correlations(r);
        Ok(FactorSolution {
            plan,
            tries,
            mean,
            deviations,
            weights,
            seen,
            passes: 1,
            holes: None,
            comparison,
        })
    }

    pub(super) fn solve_correlations(
        solver: Solver,
        r: MatRef<'_, f64>,
        (search, start): (&Search, &Start),
        control: &Control<'_>,
    ) -> Result<FoundFactors> {
        match solver {
            Solver::Krylov => krylov_factor::solve(r, search, start, control),
            Solver::Em => em_factor::solve(r, search, start, control),
            _ => newton_factor::solve(r, search, start, control),
        }
    }

    fn solve_rows(
        &self,
        plan: Plan,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<FactorSolution> {
        let p = source.n_features();
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        if census.missing() > 0 {
            return self.solve_filled(census, &margins, source, control);
        }
        Components::Count(self.factors()).check_possible(census.rows(), p)?;
        let deviations = deviations(margins.mean(), &margins.variance())?;
        let mut passes = 1;
        let tries = self.best_of(self.usual_bound(), 1, |search, start| {
            let (found, more) = krylov_factor::solve_rows(source, &deviations, search, start, control)?;
            passes += more;
            Ok(found)
        })?;
        let (mean, seen) = (margins.mean().to_vec(), (census.rows(), census.weight()));
        let weights = margins.weight().to_vec();
        let comparison = Comparison::Nothing;
        Ok(FactorSolution { plan, tries, mean, deviations, weights, seen, passes, holes: None, comparison })
    }
}

/// Standard deviations; an error names features that have none.
pub(super) fn deviations(mean: &[f64], variances: &[f64]) -> Result<Vec<f64>> {
    if variances.iter().any(|v| !v.is_finite()) {
        return Err(Error::Scale);
    }
    // Cells that differ from their mean by no more than rounding.
    let constant = |(m, v): (&f64, &f64)| *v <= (f64::EPSILON * m).powi(2);
    let pairs = mean.iter().zip(variances).enumerate();
    let features: Vec<_> = pairs.filter(|(_, pair)| constant(*pair)).map(|(j, _)| (j, None)).collect();
    match features.len() {
        0 => Ok(variances.iter().map(|v| v.sqrt()).collect()),
        all if all == variances.len() => Err(Error::Constant),
        _ => Err(Error::ConstantFeatures { features }),
    }
}

/// An error names the first two features whose correlation is ±1.
fn check_different(r: MatRef<'_, f64>) -> Result<()> {
    let pairs = (0..r.ncols()).flat_map(|j| (j + 1..r.nrows()).map(move |i| (j, i)));
    match pairs.into_iter().find(|(j, i)| r[(*i, *j)].abs() > 1.0 - SAME) {
        Some((a, b)) => Err(Error::SameFeatures { features: vec![(a, None), (b, None)] }),
        None => Ok(()),
    }
}

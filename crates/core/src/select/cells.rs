//! Cell-wise cross-validation: observed cells are hidden fold by fold and predicted from the others
//! \[Wold78\].
//!
//! It asks what a model is for when cells are missing, and needs no complete row. For each fold there is one
//! growth: the fit of q components starts from that of q − 1.

use super::fold_scores::{FoldScores, because};
use super::split::CellSplit;
use super::table::{Absent, Choice, Line};
use super::validation::CellValidation;
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::estimator::{Growth, Ppca};
use crate::linalg::Mat;
use crate::model::{LinearGaussian, Noise};

/// Components that may join without predicting better before the search ends.
const PATIENCE: usize = 3;
/// Nats per row that a fit may leave: no prediction changes by what is left.
const TOLERANCE: f64 = 1e-5;
/// The largest number of components that is looked at unless told: each costs a fit for every fold.
pub(super) const MOST_COMPONENTS: usize = 10;
/// What it is called.
pub(super) const METHOD: &str = "cells";

/// How well hidden cells are predicted for q = 0, 1, ….
pub(super) struct CellCrossValidation {
    /// Q² of each fold.
    pub(super) q2: FoldScores,
    /// Mean log predictive density of each fold.
    pub(super) log_density: FoldScores,
    /// Whether every fit came to its end.
    pub(super) converged: bool,
    /// Whether the cells support more components than were allowed.
    open: bool,
}

impl CellCrossValidation {
    /// What hidden cells say about up to so many components, or why they say nothing.
    pub(super) fn run(
        source: &dyn RowSource,
        splits: &[CellSplit],
        ppca: &Ppca,
        control: &Control<'_>,
    ) -> Result<Result<Self, Absent>> {
        match Self::predict(source, splits, ppca, control) {
            Ok(cells) if cells.choice().is_some() => Ok(Ok(cells)),
            Ok(_) => Ok(Err(Absent::new(METHOD, "the hidden cells do not vary"))),
            Err(error) if is_too_little(&error) => {
                Ok(Err(Absent::new(METHOD, format!("too little is left when cells are hidden: {error}"))))
            }
            Err(error) => Err(error),
        }
    }

    fn predict(
        source: &dyn RowSource,
        splits: &[CellSplit],
        ppca: &Ppca,
        control: &Control<'_>,
    ) -> Result<Self> {
        let start = |split| Fold::start(source, split, ppca, control);
        let mut folds = splits.iter().map(start).collect::<Result<Vec<Fold<'_>>>>()?;
        let most = folds.iter().map(|fold| fold.growth.most()).min().unwrap_or(0);
        let mut found = Self::of(&folds);
        for q in 1..=most {
            folds.iter_mut().try_for_each(|fold| fold.grow(source, control))?;
            found = Self::of(&folds);
            let stale = found.q2.best().is_none_or(|best| q - best >= PATIENCE);
            if stale || folds.iter().any(|fold| fold.ended) {
                break;
            }
        }
        Ok(found)
    }

    fn of(folds: &[Fold<'_>]) -> Self {
        Self {
            q2: FoldScores(folds.iter().map(|fold| fold.q2.clone()).collect()),
            log_density: FoldScores(folds.iter().map(|fold| fold.log_density.clone()).collect()),
            converged: folds.iter().all(|fold| fold.converged),
            open: folds.iter().all(|fold| fold.growth.most() < fold.possible && !fold.ended),
        }
    }

    /// The largest number of components that was looked at.
    pub(super) fn most(&self) -> usize {
        self.q2.0.first().map_or(0, |fold| fold.len().saturating_sub(1))
    }

    /// Writes what is known into the line of a number of components.
    pub(super) fn fill(&self, line: &mut Line) {
        (line.q2, line.q2_error) = self.q2.mean_and_error(line.components).unzip();
        line.cell_log_density = self.log_density.mean_and_error(line.components).map(|(mean, _)| mean);
    }

    /// By the rule of one standard error.
    pub(super) fn choice(&self) -> Option<Choice> {
        let found = self.q2.fewest()?;
        let more = if self.open && found.0 == self.most() { ", and more were not looked at" } else { "" };
        Some(Choice::new(METHOD, found.0, because("hidden cells", found) + more))
    }
}

/// A fold: what is hidden, the fit so far, and how it did.
struct Fold<'a> {
    split: &'a CellSplit,
    growth: Growth,
    possible: usize, // components that its cells support
    q2: Vec<f64>,
    log_density: Vec<f64>,
    ended: bool, // the rows lie in the plane: nothing is left for more components
    converged: bool,
}

impl<'a> Fold<'a> {
    fn start(
        source: &dyn RowSource,
        split: &'a CellSplit,
        ppca: &Ppca,
        control: &Control<'_>,
    ) -> Result<Self> {
        let validation = CellValidation::new(source, split)?;
        let (growth, possible) =
            ppca.growth(validation.training(), control).map(|(g, seen)| (g, seen.possible))?;
        let (q2, log_density) = (Vec::new(), Vec::new());
        let mut fold = Self { split, growth, possible, q2, log_density, ended: false, converged: true };
        fold.score(&validation, &means_alone(split)?)?;
        Ok(fold)
    }

    fn grow(&mut self, source: &dyn RowSource, control: &Control<'_>) -> Result<()> {
        control.check()?;
        let validation = CellValidation::new(source, self.split)?;
        let grown = self.growth.next(TOLERANCE, validation.training(), control)?;
        self.ended = grown.noiseless;
        self.converged &= grown.converged;
        self.score(&validation, &grown.spectrum.ppca()?)
    }

    fn score(&mut self, validation: &CellValidation<'_>, model: &LinearGaussian) -> Result<()> {
        let scores = validation.score(model)?;
        self.q2.push(scores.q2());
        self.log_density.push(scores.mean_log_density());
        Ok(())
    }
}

/// The best model of what is left without components: the mean of each feature, and one noise for all.
fn means_alone(split: &CellSplit) -> Result<LinearGaussian> {
    let mean = split.means().to_vec();
    let loadings = Mat::zeros(mean.len(), 0);
    LinearGaussian::new(mean, loadings, Noise::Isotropic(split.left_variance()))
}

/// Whether an error says that too little is left when cells are hidden.
fn is_too_little(error: &Error) -> bool {
    matches!(error, Error::TooFewCells { .. } | Error::TooFewRows { .. } | Error::Constant)
}

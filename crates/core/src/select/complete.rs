//! The table of complete rows: all numbers of components share one spectrum.

use super::cells::CellCrossValidation;
use super::fold_scores::{FoldScores, because};
use super::folds::Folds;
use super::table::{Absent, Choice, Line, Selection, recommend};
use super::{Select, parallel, threshold};
use crate::algorithm::RedundantFeatures;
use crate::algorithm::resolution::whole_values;
use crate::control::Control;
use crate::data::{counted_rows, counted_weight};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::linalg::symmetric_eigenvalues;
use crate::spectrum::criteria::Eigenvalues;
use crate::spectrum::minka;

/// All that the table is made of.
pub(super) struct Complete {
    rows: usize,
    redundant: Option<(usize, RedundantFeatures)>, // of so many features, those that are left out
    values: Eigenvalues,
    evidence: Vec<f64>, // from q = 1 on
    max: usize,
    held_out: FoldScores,
    correlations: Vec<f64>,
    noise: Vec<f64>,
}

impl Complete {
    /// From all moments and, where rows were seen, those of the folds; features that add no direction are
    /// left out.
    pub(super) fn new(
        select: &Select,
        moments: &Moments,
        folds: Option<&Folds>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let (rows, p) = (moments.rows(), moments.n_features());
        if rows < 2 {
            return Err(if rows == 0 { Error::NoRows } else { Error::TooFewRows { rows, needed: 2 } });
        }
        let redundant = RedundantFeatures::of(moments);
        let others = redundant.others(p);
        match others.len() {
            0 => Err(Error::Constant),
            // All there are, or all multiples of one: the rows lie on a line, which needs no choice of
            // features.
            n if n == p || n == 1 => Self::of_features(select, moments, folds, None, control),
            _ => {
                let folds = folds.map(|folds| folds.of_features(&others));
                let moments = moments.of_features(&others);
                Self::of_features(select, &moments, folds.as_ref(), Some((p, redundant)), control)
            }
        }
    }

    fn of_features(
        select: &Select,
        moments: &Moments,
        folds: Option<&Folds>,
        redundant: Option<(usize, RedundantFeatures)>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let (rows, p) = (moments.rows(), moments.n_features());
        let values = Eigenvalues::new(whole_values(moments)?, counted_weight(rows, moments.weight()));
        // Without components there is noise, so that only weights beyond all numbers make it infinite.
        if !values.bic(0).is_finite() {
            return Err(Error::Scale);
        }
        // The last number that leaves noise.
        let possible = (values.rank().max(1) - 1).min(p - 1);
        let max = select.max.map_or(possible, |max| max.min(possible));
        let correlations = parallel::correlations(moments.covariance().as_ref());
        control.check()?;
        let correlations = symmetric_eigenvalues(correlations.as_ref())?;
        Ok(Self {
            rows,
            redundant,
            held_out: folds.map_or(Ok(FoldScores::default()), |folds| folds.held_out(max, control))?,
            noise: parallel::thresholds(
                p,
                counted_rows(rows, moments.weight()),
                select.samples.unwrap_or(parallel::samples(p)),
                select.seed,
                control,
            )?,
            evidence: minka::log_evidences(values.values(), p, values.rows()),
            values,
            max,
            correlations,
        })
    }

    /// The largest number of components that leaves noise, or that was asked for.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// The whole, with what hidden cells say, or why they say nothing.
    pub(super) fn selection(&self, select: &Select, cells: Result<CellCrossValidation, Absent>) -> Selection {
        let mut absent = self.absent();
        let hidden = cells.map_err(|why| absent.push(why)).ok();
        let mut table: Vec<Line> = (0..=self.max).map(|q| self.line(q)).collect();
        let mut choices = self.choices(select);
        if let Some(hidden) = &hidden {
            table.iter_mut().for_each(|line| hidden.fill(line));
            let place = usize::from(self.held_out.fewest().is_some());
            choices.splice(place..place, hidden.choice());
        }
        let (recommended, reason) = recommend(&choices);
        let rows = self.rows;
        let (features, redundant) = match &self.redundant {
            Some((features, redundant)) => (*features, Some(redundant.clone())),
            None => (self.values.values().len(), None),
        };
        let converged = hidden.is_none_or(|hidden| hidden.converged);
        Selection {
            rows,
            features,
            redundant,
            holes: None,
            table,
            choices,
            absent,
            recommended,
            reason,
            converged,
        }
    }

    fn line(&self, q: usize) -> Line {
        let last = |values: &[f64]| q.checked_sub(1).map(|k| values[k]);
        let finite = |x: f64| x.is_finite().then_some(x);
        let (mean, error) = self.held_out.mean_and_error(q).unzip();
        Line {
            components: q,
            eigenvalue: last(self.values.values()),
            explained: self.values.explained(q),
            noise_variance: self.values.noise(q),
            log_likelihood: finite(self.values.log_likelihood(q)),
            aic: finite(self.values.aic(q)),
            bic: finite(self.values.bic(q)),
            log_evidence: self.log_evidence(q),
            cross_validated: mean,
            cross_validated_error: error,
            correlation_eigenvalue: last(&self.correlations),
            noise_eigenvalue: last(&self.noise),
            ..Line::default()
        }
    }

    fn log_evidence(&self, q: usize) -> Option<f64> {
        q.checked_sub(1).and_then(|k| self.evidence.get(k).copied())
    }

    fn choices(&self, select: &Select) -> Vec<Choice> {
        let all = || 0..=self.max;
        let least = |of: &dyn Fn(usize) -> f64| all().min_by(|a, b| of(*a).total_cmp(&of(*b))).unwrap_or(0);
        let share = all().find(|q| self.values.explained(*q) >= select.fraction).unwrap_or(self.max);
        let mut out = Vec::new();
        if let Some(found) = self.held_out.fewest() {
            out.push(Choice::new("cross-validation", found.0, because("held-out rows", found)));
        }
        out.push(Choice::new("bic", least(&|q| self.values.bic(q)), "least −2ℓ + k ln n"));
        out.push(Choice::new("aic", least(&|q| self.values.aic(q)), "least −2ℓ + 2k"));
        out.extend(self.evidence_choice());
        let parallel = parallel::dimension(&self.correlations, &self.noise);
        out.push(Choice::new("parallel", parallel, "eigenvalues of correlations above those of noise"));
        let threshold = threshold::dimension(self.values.values(), self.values.rows());
        out.push(Choice::new("threshold", threshold, "singular values above the optimal hard threshold"));
        let reason = format!("at least {} % of the variance", 100.0 * select.fraction);
        out.push(Choice::new("variance", share, reason));
        out
    }

    /// The largest evidence; it has no limit where enough rows vary in fewer directions than there are
    /// features.
    fn evidence_choice(&self) -> Option<Choice> {
        let (p, rank) = (self.values.values().len(), self.values.rank());
        if rank < p && self.values.rows() > p as f64 && self.max + 1 == rank {
            let reason = "the rows vary in so many directions only: with them there is no noise";
            return Some(Choice::new("evidence", rank, reason));
        }
        let evidence = |q: &usize| self.log_evidence(*q).unwrap_or(f64::NEG_INFINITY);
        let best = (1..=self.max).max_by(|a, b| evidence(a).total_cmp(&evidence(b)));
        best.map(|q| Choice::new("evidence", q, "largest evidence by Minka's approximation"))
    }

    /// What says nothing here.
    fn absent(&self) -> Vec<Absent> {
        let mut out = Vec::new();
        if self.held_out.0.is_empty() {
            out.push(Absent::new("cross-validation", "moments hold no rows that could be held out"));
        } else if self.held_out.fewest().is_none() {
            let reason = "what is left without a part of the rows has no noise for so many components";
            out.push(Absent::new("cross-validation", reason));
        }
        out
    }
}

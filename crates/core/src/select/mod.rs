//! How many components: one table over q, what each method chooses, and a recommendation that says why.
//!
//! All numbers of components share one spectrum, so one pass over complete rows decides everything:
//! likelihoods and information criteria, Minka's evidence, thresholds for noise, and cross-validation from
//! the moments of each fold. Rows with missing values have no spectrum: there is a fit for each number of
//! components, and observed cells are hidden and predicted. Complete rows are judged so too when asked for.

mod cells;
mod complete;
mod fold_scores;
mod folds;
mod group_table;
mod groups;
mod incomplete;
mod kernel;
mod parallel;
mod row_folds;
mod split;
mod table;
mod threshold;
mod validation;

pub use group_table::{GroupChoice, GroupLine, GroupSelection};
pub use groups::SelectGroups;
pub use kernel::{KernelChoice, KernelLine, KernelSelection, SelectKernel};
pub use split::{CellSplit, HiddenCell};
pub use table::{Absent, Choice, Line, Selection};
pub use validation::{CellScores, CellValidation};

use crate::algorithm::RedundantFeatures;
use crate::control::Control;
use crate::data::{FeatureSubset, RowSource, RowStream, Rows};
use crate::error::{Error, Result};
use crate::estimator::{Ppca, explained, with_threads};
use crate::evidence::{Found, Moments, Pairwise, Survey, gather, gather_stream};
use cells::CellCrossValidation;
use complete::Complete;
pub(crate) use folds::Folds;

/// Parts that rows are dealt to unless told.
pub const FOLDS: usize = 10;
/// Parts that cells are dealt to unless told.
pub const CELL_FOLDS: usize = 5;
/// Features for which p × p decompositions of each fold are worth their time.
pub const MOST_FEATURES: usize = 2000;
/// Features for which hundreds of fits to rows with missing values are worth their time.
pub const MOST_INCOMPLETE_FEATURES: usize = 5000;

/// What is asked: how far to look, and how carefully.
///
/// The weight of a row says how often it was seen; n of every criterion is the total weight. Weights that
/// sum to less than the number of rows count as shares: n is then the number of rows
/// ([`counted_weight`](crate::data::counted_weight)).
///
/// ```
/// use covary::data::Rows;
/// use covary::select::Select;
///
/// // Two directions of large variance among five features.
/// let cell = |i: usize, j: usize| {
///     let wave = |k: usize| ((i * (7 + 4 * k) + 3 * j * k) as f64 * 0.7).sin();
///     [4.0 * wave(0), 3.0 * wave(1)][j % 2] + 0.1 * ((i * 31 + j * 17) as f64).sin()
/// };
/// let cells: Vec<f64> = (0..200).flat_map(|i| (0..5).map(move |j| cell(i, j))).collect();
/// let selection = Select::new().run(Rows::from_slice(&cells, 5)?)?;
/// assert_eq!(selection.table.len(), 5); // q = 0 … 4
/// assert!(selection.recommended >= 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Select {
    max: Option<usize>,
    folds: Option<usize>,
    cells: bool,
    samples: Option<usize>,
    fraction: f64,
    seed: u64,
    tolerance: Option<f64>,
    memory: usize,
    threads: Option<usize>,
}

impl Default for Select {
    fn default() -> Self {
        Self::new()
    }
}

impl Select {
    /// All numbers of components, ten folds, as many samples of noise as it takes.
    pub fn new() -> Self {
        let (max, folds, cells, samples, tolerance) = (None, None, false, None, None);
        let (fraction, seed) = (0.9, 0);
        Self { max, folds, cells, samples, fraction, seed, tolerance, memory: usize::MAX, threads: None }
    }

    /// The largest number of components to look at. By default all that leave noise, and of those for which
    /// cells are hidden, which costs many fits, 10.
    pub fn max(mut self, components: usize) -> Self {
        self.max = Some(components);
        self
    }

    /// Parts that rows, or cells, are dealt to for cross-validation, at least 2; by default 10 of rows and 5
    /// of cells.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = Some(folds);
        self
    }

    /// Whether cells of complete rows are hidden and predicted too; those of rows with missing values always
    /// are.
    ///
    /// Each fold is fitted for each number of components in passes over the rows, until three more have
    /// predicted no better.
    pub fn cells(mut self, cells: bool) -> Self {
        self.cells = cells;
        self
    }

    /// Samples of noise for parallel analysis. By default 50 for up to 100 features and fewer for more, whose
    /// eigenvalues differ less from one sample to the next, but at least 20.
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = Some(samples);
        self
    }

    /// Share of the variance for the choice that goes by it; 0.9 by default.
    pub fn fraction(mut self, fraction: f64) -> Self {
        self.fraction = fraction;
        self
    }

    /// Seed of the folds and of the samples of noise; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Nats per row that are left to gain when a fit with missing values ends: by default 1e-8 for the
    /// likelihoods of the table and 1e-5 where cells are hidden.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Bytes that a fit with missing values may hold besides rows that are in memory already; no limit by
    /// default.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Number of threads; all cores by default. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Looks at complete rows once, and as often as fits take when values are missing or cells are to be
    /// hidden.
    ///
    /// # Errors
    /// When the options make no sense, or nothing varies.
    pub fn run<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Selection> {
        self.run_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`].
    pub fn run_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Selection> {
        let rows = rows.into();
        let source: &dyn RowSource = rows.source();
        let found = with_threads(self.threads, || self.look(source, control));
        found.map_err(|e| explained(e, source, control))
    }

    /// Complete rows that pass once: cells that were hidden would have to be seen again.
    ///
    /// # Errors
    /// As [`run_with`](Self::run_with), and [`Error::Missing`].
    pub fn run_stream(&self, stream: &mut dyn RowStream, control: &Control<'_>) -> Result<Selection> {
        let p = stream.n_features();
        self.check(p)?;
        check_features(p)?;
        let folds = gather_stream(stream, || Folds::empty(p, self.row_folds(), self.seed), control)?;
        let complete = Complete::new(self, &folds.all()?, Some(&folds), control)?;
        Ok(complete.selection(self, Err(Absent::new(cells::METHOD, "the rows pass only once"))))
    }

    /// From moments alone: everything but cross-validation.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_moments(&self, moments: &Moments) -> Result<Selection> {
        self.run_moments_with(moments, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`run_moments`](Self::run_moments), and [`Error::Interrupted`].
    pub fn run_moments_with(&self, moments: &Moments, control: &Control<'_>) -> Result<Selection> {
        self.check(moments.n_features())?;
        check_features(moments.n_features())?;
        let complete = Complete::new(self, moments, None, control)?;
        Ok(complete.selection(self, Err(Absent::new(cells::METHOD, "moments hold no cells"))))
    }

    fn look(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Selection> {
        let p = source.n_features();
        self.check(p)?;
        if source.observed_only() {
            return incomplete::selection(self, source, control);
        }
        if p > MOST_FEATURES && has_missing(source, control)? {
            check_incomplete_features(p)?;
            return incomplete::selection(self, source, control);
        }
        check_features(p)?;
        match gather(source, || Folds::empty(p, self.row_folds(), self.seed), control) {
            Err(Error::Missing { .. }) => self.incomplete(source, control),
            folds => self.complete(&folds?, source, control),
        }
    }

    /// Rows with missing values, by the features that add a direction.
    fn incomplete(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Selection> {
        let p = source.n_features();
        let found = match gather(source, || Pairwise::empty(p), control)?.finish()? {
            Found::Incomplete(cases) => RedundantFeatures::of_cases(&cases, source, control)?,
            Found::Complete(moments) => RedundantFeatures::of(&moments),
        };
        let others = found.others(p);
        if others.is_empty() {
            return Err(Error::Constant);
        }
        // All multiples of one: the rows lie on a line, which needs no choice of features.
        if found.is_empty() || others.len() == 1 {
            return incomplete::selection(self, source, control);
        }
        let selection = incomplete::selection(self, &FeatureSubset::new(source, &others), control)?;
        Ok(Selection { features: p, redundant: Some(found), ..selection })
    }

    fn complete(&self, folds: &Folds, source: &dyn RowSource, control: &Control<'_>) -> Result<Selection> {
        let complete = Complete::new(self, &folds.all()?, Some(folds), control)?;
        if !self.cells {
            let reason = "not asked for: it takes a fit for each number of components and part of the cells";
            return Ok(complete.selection(self, Err(Absent::new(cells::METHOD, reason))));
        }
        let most = self.max.unwrap_or(cells::MOST_COMPONENTS).min(complete.max().max(1));
        let splits = CellSplit::folds(source, self.cell_folds(), self.seed, control)?;
        let cells = CellCrossValidation::run(source, &splits, &self.ppca(most), control)?;
        Ok(complete.selection(self, cells))
    }

    /// Parts that rows are dealt to.
    pub fn row_folds(&self) -> usize {
        self.folds.unwrap_or(FOLDS)
    }

    fn cell_folds(&self) -> usize {
        self.folds.unwrap_or(CELL_FOLDS)
    }

    /// What fits up to so many components when values are missing.
    fn ppca(&self, components: usize) -> Ppca {
        let ppca = Ppca::new(components).seed(self.seed).memory(self.memory);
        self.tolerance.map_or(ppca.clone(), |tolerance| ppca.tolerance(tolerance))
    }

    fn check(&self, p: usize) -> Result<()> {
        let bad = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        match (p, self.row_folds(), self.samples) {
            (0, _, _) => Err(Error::NoFeatures),
            (1, _, _) => {
                bad("the number of features", p.to_string(), "at least 2: one leaves nothing to choose")
            }
            (_, folds @ (0 | 1), _) => bad("the number of folds", folds.to_string(), "at least 2"),
            (_, _, Some(0)) => bad("the number of samples of noise", "0".into(), "at least 1"),
            _ if self.max == Some(0) => bad("the largest number of components", "0".into(), "at least 1"),
            _ if !(self.fraction > 0.0 && self.fraction < 1.0) => {
                bad("the share of the variance", self.fraction.to_string(), "above 0 and below 1")
            }
            _ => Ok(()),
        }
    }
}

/// A spectrum of each fold must be affordable.
fn check_features(p: usize) -> Result<()> {
    if p <= MOST_FEATURES {
        return Ok(());
    }
    let (name, value) = ("the number of features", p.to_string());
    let allowed = "at most 2000 to choose a number of components of complete rows";
    Err(Error::Parameter { name, value, allowed })
}

/// Hundreds of fits in passes over the rows must be affordable too.
fn check_incomplete_features(p: usize) -> Result<()> {
    if p <= MOST_INCOMPLETE_FEATURES {
        return Ok(());
    }
    let (name, value) = ("the number of features", p.to_string());
    let allowed = "at most 5000 to choose a number of components of rows with missing values";
    Err(Error::Parameter { name, value, allowed })
}

fn has_missing(source: &dyn RowSource, control: &Control<'_>) -> Result<bool> {
    let survey = gather(source, || Survey::empty(source.n_features()), control)?;
    Ok(survey.census().missing() > 0)
}

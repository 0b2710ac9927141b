//! How many groups and how many latent variables: mixtures of each number of both, in one table.
//!
//! Components join one by one, so one growth gives all numbers of groups for a number of latent variables. What
//! is left when a fold of rows or cells is held out is fitted anew from there: which optimum to look for is
//! known, and its parameters come from what is left alone. Growing in each fold would take ten times as long.

use std::ops::RangeInclusive;

use super::CELL_FOLDS;
use super::fold_scores::{FoldScores, because};
use super::group_table::{GroupChoice, GroupLine, GroupSelection};
use super::row_folds::RowsOfFold;
use super::split::CellSplit;
use super::table::Absent;
use super::validation::CellValidation;
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::estimator::{
    GrownMixture, MissingCells, MixturePpca, explained, rows_to_choose, sample, with_threads,
};
use crate::evidence::{Survey, gather};
use crate::model::Mixture;

/// The largest number of groups that is looked at unless told.
const MOST_GROUPS: usize = 8;
/// The largest number of latent variables that is looked at unless told.
const MOST_LATENT: usize = 4;
/// Numbers in a row that are no better by BIC after which no more are looked at.
const PATIENCE: usize = 3;

/// What is asked about mixtures: how far to look, and how carefully.
///
/// ```
/// use covary::MixturePpca;
/// use covary::data::Rows;
/// use covary::select::SelectGroups;
///
/// // Two groups on a line each, far from each other.
/// let wave = |i: usize, j: usize| ((i * (j + 2)) as f64 * 0.7).sin();
/// let cell = |i: usize, j: usize| 3.0 * wave(i, 0) + 0.2 * wave(i, j + 1) + if i % 2 == 0 { 20.0 } else { 0.0 };
/// let cells: Vec<f64> = (0..80).flat_map(|i| (0..3).map(move |j| cell(i, j))).collect();
/// let found = SelectGroups::new(MixturePpca::new(1, 1)).groups(1..=2).run(Rows::from_slice(&cells, 3)?)?;
/// assert_eq!(found.recommended.groups, 2);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SelectGroups {
    family: MixturePpca,
    groups: RangeInclusive<usize>,
    latent: Option<usize>,
    folds: usize,
    cells: bool,
    seed: u64,
    threads: Option<usize>,
}

impl SelectGroups {
    /// Mixtures with the options of the family, whose own numbers do not count: 1 to 8 groups and up to 4
    /// latent variables, until three more of either gain nothing.
    pub fn new(family: MixturePpca) -> Self {
        let (groups, folds) = (1..=MOST_GROUPS, CELL_FOLDS);
        Self { family, groups, latent: None, folds, cells: false, seed: 0, threads: None }
    }

    /// The numbers of groups to look at.
    pub fn groups(mut self, groups: RangeInclusive<usize>) -> Self {
        self.groups = groups;
        self
    }

    /// The largest number of latent variables to look at.
    pub fn most_latent(mut self, latent: usize) -> Self {
        self.latent = Some(latent);
        self
    }

    /// Parts that rows and cells are dealt to, at least 2; 5 by default.
    pub fn folds(mut self, folds: usize) -> Self {
        self.folds = folds;
        self
    }

    /// Whether cells are hidden and predicted too.
    pub fn cells(mut self, cells: bool) -> Self {
        self.cells = cells;
        self
    }

    /// Seed of the folds; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Number of threads; all cores by default. The result does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Looks at the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow a mixture.
    pub fn run<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<GroupSelection> {
        self.run_with(rows, &Control::new())
    }

    /// The same under the eyes of a caller.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Interrupted`].
    pub fn run_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<GroupSelection> {
        let rows = rows.into();
        let source: &dyn RowSource = rows.source();
        let found = with_threads(self.threads, || self.look(source, control));
        found.map_err(|e| explained(e, source, control))
    }

    fn check(&self, p: usize) -> Result<()> {
        let bad =
            |name, value: usize, allowed| Err(Error::Parameter { name, value: value.to_string(), allowed });
        match self.latent {
            _ if p == 0 => Err(Error::NoFeatures),
            _ if *self.groups.start() == 0 => bad("the number of groups", 0, "at least 1"),
            _ if self.groups.is_empty() => {
                bad("the largest number of groups", *self.groups.end(), "at least the smallest")
            }
            _ if self.folds < 2 => bad("the number of folds", self.folds, "at least 2"),
            Some(q) if q >= p => {
                bad("the largest number of latent variables", q, "below the number of features")
            }
            _ => Ok(()),
        }
    }

    fn look(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<GroupSelection> {
        let p = source.n_features();
        self.check(p)?;
        let (census, _) = gather(source, || Survey::empty(p), control)?.finish()?;
        let holes = Some(MissingCells::new(&census, None)).filter(|holes| holes.missing > 0);
        // Of very many rows some say as much.
        let some = sample(source, rows_to_choose(*self.groups.end(), p), self.seed)?;
        let source: &dyn RowSource = some.as_ref().map_or(source, |table| table);
        let all = self.growths(source, control)?;
        let mut table: Vec<GroupLine> = all.iter().flatten().map(GroupLine::of).collect();
        table.retain(|line| self.groups.contains(&line.groups));
        table.sort_by_key(|line| (line.parameters, line.groups));
        if table.is_empty() {
            let (name, value) = ("the smallest number of groups", self.groups.start().to_string());
            return Err(Error::Parameter { name, value, allowed: "no more than the rows can feed" });
        }
        let mut choices = Vec::new();
        let folds = Folds { select: self, grown: &all, table: &table, source, control };
        let held_out = folds.held_out()?;
        let cells = if self.cells { Some(folds.hidden_cells()?) } else { None };
        choices.extend(held_out.choice("cross-validation", "held-out rows", &table));
        held_out.write(&mut table, |line| (&mut line.cross_validated, &mut line.cross_validated_error));
        let mut absent = Vec::new();
        match cells {
            Some(cells) => {
                choices.extend(cells.choice("cells", "hidden cells", &table));
                cells.write(&mut table, |line| (&mut line.q2, &mut line.q2_error));
            }
            None => absent.push(Absent::new("cells", "not asked for: it takes as long again")),
        }
        let least = |method: &str, reason: &str, of: fn(&GroupLine) -> f64| {
            let best = table.iter().min_by(|a, b| of(a).total_cmp(&of(b)));
            best.map(|line| GroupChoice::new(method, line, reason.into()))
        };
        choices.extend(least("bic", "least −2ℓ + k ln n", |line| line.bic));
        choices.extend(least("icl", "least BIC with the entropy of the groups", |line| line.icl));
        choices.extend(least("aic", "least −2ℓ + 2k", |line| line.aic));
        let recommended = choices.first().cloned().ok_or(Error::NoRows)?;
        Ok(GroupSelection { rows: census.rows(), features: p, holes, table, choices, absent, recommended })
    }

    /// The mixtures of 1, 2, … groups for q = 0, 1, …, one list for each q.
    fn growths(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Vec<Vec<GrownMixture>>> {
        let most = self.latent.unwrap_or(MOST_LATENT).min(source.n_features() - 1);
        let mut all: Vec<Vec<GrownMixture>> = Vec::new();
        for q in 0..=most {
            let fewest = *self.groups.start();
            let enough = |grown: &[GrownMixture]| grown.len() >= fewest && is_enough(grown);
            let grown = match self.family.path((q, *self.groups.end()), source, &enough, control) {
                // No more latent variables can be told from noise.
                Err(Error::TooFewCells { .. } | Error::Components { .. }) if q > 0 => break,
                grown => grown?,
            };
            all.push(grown);
            let best: Vec<f64> = all.iter().map(|grown| least_bic(grown)).collect();
            if self.latent.is_none() && idle(&best) >= PATIENCE {
                break;
            }
        }
        Ok(all)
    }
}

/// Mixtures fitted once more for each fold.
struct Folds<'a> {
    select: &'a SelectGroups,
    grown: &'a [Vec<GrownMixture>],
    table: &'a [GroupLine],
    source: &'a dyn RowSource,
    control: &'a Control<'a>,
}

impl Folds<'_> {
    /// Mean log density of held-out rows.
    fn held_out(&self) -> Result<LineScores> {
        let SelectGroups { folds, seed, .. } = *self.select;
        let fold = |fold: usize| {
            let of = RowsOfFold { source: self.source, fold, folds, seed };
            self.scores(&of.training(), |mixture| of.held_out_density(mixture))
        };
        (0..folds).map(fold).collect::<Result<_>>().map(LineScores)
    }

    /// Q² of hidden cells.
    fn hidden_cells(&self) -> Result<LineScores> {
        let splits = CellSplit::folds(self.source, self.select.folds, self.select.seed, self.control)?;
        let fold = |split: &CellSplit| {
            let cells = CellValidation::new(self.source, split)?;
            self.scores(cells.training(), |mixture| Ok(cells.score(mixture)?.q2()))
        };
        splits.iter().map(fold).collect::<Result<_>>().map(LineScores)
    }

    /// The score of each line when its mixture is fitted to some rows; `None` where they do not feed that many.
    fn scores(
        &self,
        training: &dyn RowSource,
        score: impl Fn(&Mixture) -> Result<f64>,
    ) -> Result<Vec<Option<f64>>> {
        let mut scores = vec![None; self.table.len()];
        for (q, grown) in self.grown.iter().enumerate() {
            let lines = self.table.iter().enumerate().filter(|(_, line)| line.latent == q);
            let lines: Vec<(usize, &GroupLine)> = lines.collect();
            let starts: Vec<_> = lines.iter().map(|(_, line)| &grown[line.groups - 1].mixture).collect();
            let found = match self.select.family.refitted(q, &starts, training, self.control) {
                Err(Error::TooFewCells { .. } | Error::Components { .. }) => continue,
                found => found?,
            };
            for ((at, _), mixture) in lines.into_iter().zip(found) {
                let score = mixture.map(|mixture| score(&mixture)).transpose()?;
                scores[at] = score.filter(|score| score.is_finite());
            }
        }
        Ok(scores)
    }
}

/// Whether the last numbers of groups were no better by BIC.
fn is_enough(grown: &[GrownMixture]) -> bool {
    idle(&grown.iter().map(|found| found.reached.bic).collect::<Vec<_>>()) >= PATIENCE
}

/// How many numbers stand behind the least.
fn idle(numbers: &[f64]) -> usize {
    let least = (0..numbers.len()).min_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
    least.map_or(0, |at| numbers.len() - 1 - at)
}

fn least_bic(grown: &[GrownMixture]) -> f64 {
    grown.iter().map(|found| found.reached.bic).fold(f64::INFINITY, f64::min)
}

/// Scores of the lines of a table, one list for each fold.
struct LineScores(Vec<Vec<Option<f64>>>);

impl LineScores {
    /// The lines that have a score in every fold, and those scores.
    fn known(&self) -> (Vec<usize>, FoldScores) {
        let lines = self.0.first().map_or(0, Vec::len);
        let kept: Vec<usize> =
            (0..lines).filter(|at| self.0.iter().all(|fold| fold[*at].is_some())).collect();
        let scores = self.0.iter().map(|fold| kept.iter().filter_map(|at| fold[*at]).collect());
        let scores = FoldScores(scores.collect());
        (kept, scores)
    }

    /// The fewest parameters that predict as well as the best, within a standard error.
    fn choice(&self, method: &str, what: &str, table: &[GroupLine]) -> Option<GroupChoice> {
        let (kept, scores) = self.known();
        let (chosen, best) = scores.fewest()?;
        let name = table[kept[best]].name();
        let reason = match chosen == best {
            true => because(what, (chosen, best)),
            false => format!("predicts {what} as well as {name}, the best, within a standard error"),
        };
        Some(GroupChoice::new(method, &table[kept[chosen]], reason))
    }

    /// Writes means and errors into a table.
    fn write(
        &self,
        table: &mut [GroupLine],
        fields: impl Fn(&mut GroupLine) -> (&mut Option<f64>, &mut Option<f64>),
    ) {
        let (kept, scores) = self.known();
        for (k, at) in kept.into_iter().enumerate() {
            let (mean, error) = fields(&mut table[at]);
            (*mean, *error) = scores.mean_and_error(k).unzip();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::folds::fold_of;
    use super::*;
    use crate::Ppca;
    use crate::linalg::Mat;

    /// One group is PPCA: its held-out density is that of PPCA of the other rows.
    #[test]
    fn held_out_rows_of_one_group_are_those_of_ppca() {
        let (n, p, folds) = (60, 4, 3);
        let wave = |i: usize, j: usize| ((i * (3 * j + 7)) as f64 * 0.61).sin();
        let cell =
            |i: usize, j: usize| 3.0 * wave(i, 0) * (1.0 + j as f64) + wave(i, 1) + 0.4 * wave(i, j + 2);
        let x = Mat::from_fn(n, p, cell);
        let select =
            SelectGroups::new(MixturePpca::new(1, 0)).groups(1..=1).most_latent(2).folds(folds).seed(5);
        let found = select.run(&x).unwrap();
        assert_eq!(found.table.len(), 3);
        for line in found.table.iter().filter(|line| line.latent > 0) {
            let mean = (0..folds).map(|fold| {
                let (test, train): (Vec<usize>, Vec<usize>) =
                    (0..n).partition(|i| fold_of(*i, folds, 5) == fold);
                let pick = |rows: &[usize]| Mat::from_fn(rows.len(), p, |i, j| x[(rows[i], j)]);
                let model = Ppca::new(line.latent).fit(&pick(&train)).unwrap().model;
                let densities = model.log_density(&pick(&test)).unwrap();
                densities.iter().sum::<f64>() / densities.len() as f64
            });
            let mean = mean.sum::<f64>() / folds as f64;
            let given = line.cross_validated.unwrap();
            assert!((given - mean).abs() < 1e-9 * mean.abs(), "{}: {given} {mean}", line.latent);
        }
    }

    #[test]
    fn numbers_that_make_no_sense() {
        let x = Mat::from_fn(20, 3, |i, j| ((i * (j + 2)) as f64).sin());
        let select = || SelectGroups::new(MixturePpca::new(1, 0));
        for (select, told) in [
            (select().groups(0..=2), "number of groups"),
            (select().groups(RangeInclusive::new(3, 2)), "largest number of groups"),
            (select().folds(1), "folds"),
            (select().most_latent(3), "latent variables"),
            (select().groups(15..=16).most_latent(0), "smallest number of groups"),
        ] {
            let error = select.run(&x).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}

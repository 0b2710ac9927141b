//! Runs of the iteration from given starts, on all rows or a sample of them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};

use crate::algorithm::mixture::{MixtureMethod, MixtureOptimum, MixtureSettings};
use crate::algorithm::{Journey, Limits, Stop};
use crate::control::Control;
use crate::data::{Block, Cells, Order, RowSource, Table, map_chunks};
use crate::error::{Error, Result};
use crate::evidence::{PickedRows, Which, gather};
use crate::model::Mixture;
use crate::parallel;

/// Steps of a short run, after which starts are compared.
const SHORT: usize = 10;
/// Starts that are gone on from after their short runs.
const KEPT: usize = 2;
/// Nats per row that may be left to gain while optima are compared, and most steps for that.
const COMPARED: Limits = Limits { tolerance: 1e-6, iterations: 150 };
/// Change of the unexplained variances up to which a prior has settled, and most rounds for that.
const SETTLED: f64 = 1e-3;
const SETTLING: usize = 5;
/// Least rows of a sample, and least cells of one by which numbers are chosen.
const SAMPLE_ROWS: usize = 4000;
const SAMPLE_CELLS: usize = 200_000;
/// Least rows of a sample for each component, and for each of its features.
const ROWS_PER_COMPONENT: usize = 400;
const ROWS_PER_FEATURE: usize = 4;

/// Where the runs of a method end.
pub(super) type Optimum<M> = MixtureOptimum<<M as MixtureMethod>::Evidence>;

/// Where optima are looked for.
pub(super) struct Search<'a, M> {
    pub(super) source: &'a dyn RowSource,
    pub(super) settings: MixtureSettings,
    pub(super) control: &'a Control<'a>,
    passes: AtomicUsize,
    method: PhantomData<fn() -> M>,
}

impl<'a, M: MixtureMethod> Search<'a, M> {
    pub(super) fn over(
        source: &'a dyn RowSource,
        settings: MixtureSettings,
        control: &'a Control<'a>,
    ) -> Self {
        Self { source, settings, control, passes: AtomicUsize::new(0), method: PhantomData }
    }

    /// Passes over the rows so far.
    pub(super) fn passes(&self) -> usize {
        self.passes.load(Ordering::Relaxed)
    }

    /// From a start until the limits, under the eyes of the caller.
    pub(super) fn run(&self, start: Mixture, limits: Limits) -> Result<(Optimum<M>, Journey)> {
        self.run_under(start, limits, self.control)
    }

    fn run_under(
        &self,
        start: Mixture,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(Optimum<M>, Journey)> {
        let found = M::run(self.source, start, &self.settings, limits, control)?;
        self.passes.fetch_add(found.1.passes, Ordering::Relaxed);
        Ok(found)
    }

    /// The optimum from one start, as far as optima are compared.
    pub(super) fn optimum(&self, start: Mixture) -> Result<Optimum<M>> {
        match self.run_under(start, COMPARED, &self.control.quiet())? {
            (_, Journey { stop: Stop::Interrupted, .. }) => Err(Error::Interrupted),
            (found, _) => Ok(found),
        }
    }

    /// The optimum with a prior that speaks of what the mixture itself leaves unexplained.
    pub(super) fn settle(&mut self, mut found: Optimum<M>) -> Result<Optimum<M>> {
        for _ in 0..SETTLING {
            let Some(settings) = self.settings.settled(&found.mixture, SETTLED) else { break };
            self.settings = settings;
            found = match self.optimum(found.mixture.clone())? {
                better if better.starved.is_none() => better,
                _ => break,
            };
        }
        Ok(found)
    }

    /// Where so many steps from a start lead.
    pub(super) fn short_run(&self, start: Mixture, steps: usize) -> Result<Optimum<M>> {
        let limits = Limits { iterations: steps, ..COMPARED };
        self.run_under(start, limits, &self.control.quiet()).map(|found| found.0)
    }

    /// Passes that were made elsewhere on the same rows.
    pub(super) fn count_passes(&self, passes: usize) {
        self.passes.fetch_add(passes, Ordering::Relaxed);
    }

    /// The best optimum from several starts: short runs from all, long ones from the best of those. `None`
    /// where each leaves a component without rows.
    pub(super) fn best_of(&self, starts: &[Mixture]) -> Result<Option<Optimum<M>>> {
        let short = |i: usize| self.short_run(starts[i].clone(), SHORT);
        let mut ends = usable(parallel::map(starts.len(), short))?;
        ends.truncate(KEPT);
        let long = |i: usize| self.optimum(ends[i].mixture.clone());
        Ok(usable(parallel::map(ends.len(), long))?.into_iter().next())
    }
}

/// The ends of runs in which no component has starved or shrunk, best first; the error where a component has
/// shrunk in each that has not starved one.
fn usable<E>(ends: Vec<Result<MixtureOptimum<E>>>) -> Result<Vec<MixtureOptimum<E>>> {
    let (mut found, mut shrunk) = (Vec::new(), None);
    for end in ends {
        match end {
            Ok(end) if end.starved.is_none() => found.push(end),
            Ok(_) => {}
            Err(error @ Error::ShrunkComponent { .. }) => shrunk = shrunk.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(error)) = (found.is_empty(), shrunk) {
        return Err(error);
    }
    found.sort_by(|a, b| b.objective.total_cmp(&a.objective));
    Ok(found)
}

/// Rows that are enough to find the best mixture of so many components: more do not change which is best.
pub(super) fn rows_to_find(groups: usize, features: usize) -> usize {
    let each = ROWS_PER_COMPONENT.max(ROWS_PER_FEATURE.saturating_mul(features));
    SAMPLE_ROWS.max(each.saturating_mul(groups))
}

/// Rows that are enough to choose numbers of components and of latent variables, of at most so many components.
pub(crate) fn rows_to_choose(groups: usize, features: usize) -> usize {
    rows_to_find(groups, features).max(SAMPLE_CELLS / features.max(1))
}

/// A sample of about so many rows where there are very many: one from each of as many stretches of equal length.
///
/// Rows from elsewhere are brought here in any case: a search makes many passes.
pub(crate) fn sample(source: &dyn RowSource, wanted: usize, seed: u64) -> Result<Option<Table<'static>>> {
    let (p, rows) = (source.n_features(), source.n_rows());
    let remote = source.remote().is_some() && !source.observed_only();
    let Some(n) = rows.filter(|n| *n / 2 > wanted && !source.observed_only()) else {
        return if remote { brought(source, Which::All).map(|(_, table)| Some(table)) } else { Ok(None) };
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || -> f64 { StandardUniform.sample(&mut rng) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below n")]
    let chosen: Vec<usize> =
        (0..wanted).map(|s| ((s as f64 + uniform()) * n as f64 / wanted as f64) as usize).collect();
    if remote {
        return chosen_from_elsewhere(source, chosen).map(Some);
    }
    let parts = map_chunks(source, |chunk| {
        let range = chunk.first_row()..chunk.first_row() + chunk.nrows();
        let inside = chosen.iter().filter(|row| range.contains(row)).map(|row| row - range.start);
        let inside: Vec<usize> = inside.collect();
        let cell = |i: &usize| (0..p).map(|j| chunk.cells().get(*i, j)).collect::<Vec<f64>>();
        let cells: Vec<f64> = inside.iter().flat_map(cell).collect();
        let weights: Vec<f64> = inside.iter().map(|i| chunk.weights().map_or(1.0, |w| w[*i])).collect();
        Ok((cells, weights))
    })?;
    let (cells, weights): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let (cells, weights) = (cells.concat(), weights.concat());
    let block = Block::Owned { nrows: weights.len(), cells, ncols: p, order: Order::Rows };
    Table::new(Cells::F64(block)).with_weights(weights).map(Some)
}

/// Rows that lie elsewhere, in the order of their numbers, and those.
fn brought(source: &dyn RowSource, which: Which) -> Result<(Vec<usize>, Table<'static>)> {
    let (which, p) = (Arc::new(which), source.n_features());
    gather(source, || PickedRows::empty(Arc::clone(&which), p), &Control::new())?.table()
}

/// The chosen rows, one as often as it was chosen.
fn chosen_from_elsewhere(source: &dyn RowSource, mut chosen: Vec<usize>) -> Result<Table<'static>> {
    chosen.sort_unstable();
    let (numbers, table) = brought(source, Which::Listed(chosen.clone()))?;
    let (p, places) = (source.n_features(), chosen.iter().filter_map(|row| numbers.binary_search(row).ok()));
    let places: Vec<usize> = places.collect();
    let cells = places.iter().flat_map(|at| (0..p).map(|j| table.cells().get(*at, j))).collect();
    let weights: Vec<f64> = places.iter().map(|at| table.weights().map_or(1.0, |w| w[*at])).collect();
    let block = Block::Owned { nrows: weights.len(), cells, ncols: p, order: Order::Rows };
    Table::new(Cells::F64(block)).with_weights(weights)
}

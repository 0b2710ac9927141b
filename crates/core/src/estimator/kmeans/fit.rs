//! A fit: a look at the rows, a start on a sample of them, Lloyd's method on all.

use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::{Details, Fit, Groups, MissingCells, Plan, Report, Solver};
use super::choose::choose;
use super::report::{ClusterReport, KTable};
use super::{KMeans, Start};
use crate::algorithm::lloyd::{Lloyd, Problem, Settled};
use crate::algorithm::seeding::{Seeding, draw};
use crate::algorithm::swaps::{Search, Swaps};
use crate::algorithm::{Journey, Limits, Passes, Stop, drive};
use crate::blocks::{Frame, RowBounds};
use crate::control::{Control, Event};
use crate::data::{RowSource, Table};
use crate::error::Result;
use crate::evidence::{Census, Clusters, Coreset, CoresetDesign, Margins, Survey, gather};
use crate::linalg::{Mat, descending};
use crate::memory;
use crate::model::Clustering;

/// Rows on which a start is found: so many, and so many for each cluster, but no more cells than this.
const SAMPLE_ROWS: usize = 1 << 13;
const ROWS_PER_CLUSTER: usize = 128;
const SAMPLE_CELLS: usize = 1 << 24;
const LEAST_SAMPLE: usize = 1 << 10;
/// Trials in a row that must fail before swaps end: the fewest on a sample, and on all rows more where a trial is
/// cheap, by the number of differences that a pass squares.
const FAILURES: std::ops::RangeInclusive<usize> = 16..=200;
const SQUARES: usize = 100_000_000;
/// The most trials.
const TRIALS: usize = 1000;
/// The first stream of the generator that starts use.
const STREAM: u64 = 1 << 41;

/// What the first look at the rows has found.
pub(super) struct Look<'a> {
    pub(super) source: &'a dyn RowSource,
    pub(super) census: Census,
    margins: Margins,
    pub(super) problem: Problem,
}

/// A start that was found on a sample.
pub(super) struct Found {
    pub(super) centres: Mat<f64>, // (p × K), in the frame
    pub(super) inertia: f64,
    trace: Vec<f64>,
    swaps: usize,
}

/// Fits rows.
pub(super) fn fit(family: &KMeans, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<Clustering>> {
    let started = Instant::now();
    let look = Look::at(family, source, control)?;
    let limits = limits(family);
    let mut story = Story::default();
    let start = match &family.start {
        Start::Given(centres) => look.problem.frame.columns(centres.as_ref()),
        Start::Drawn(seeding) => look.start(family, *seeding, &mut story, control)?,
    };
    let (settled, journey) = look.settle(start, limits, control)?;
    let (settled, journey) = look.completed(settled, journey, story.asked(family), limits, control)?;
    let model = look.model(&settled)?;
    let report = look.report(family, &model, (story, journey), started);
    Ok(Fit { model, report })
}

fn limits(family: &KMeans) -> Limits {
    // No row changes its cluster: no centre moves.
    let tolerance = family.run.tolerance.unwrap_or(f64::MIN_POSITIVE);
    Limits { tolerance, iterations: family.run.iterations() }
}

/// How a start was found.
#[derive(Default)]
struct Story {
    sample: Option<usize>,
    chosen: Option<(usize, KTable)>,
    trace: Vec<f64>, // of the search on all rows
    swaps: usize,
    starts: usize,
    passes: usize,
}

impl Story {
    fn asked(&self, family: &KMeans) -> usize {
        self.chosen.as_ref().map_or(family.groups.range().1, |(k, _)| *k)
    }
}

impl<'a> Look<'a> {
    /// One pass.
    fn at(family: &KMeans, source: &'a dyn RowSource, control: &Control<'_>) -> Result<Self> {
        let p = source.n_features();
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        let variances = margins.variance();
        let size = variances.iter().fold(0.0, |a: f64, b| a.max(b.sqrt()));
        let frame = Frame::new(margins.mean().to_vec(), &vec![1.0; p], size);
        let unit = frame.parts().2;
        let inside = |v: f64| v / unit / unit;
        let squares = variances.iter().zip(margins.weight()).map(|(v, w)| inside(*v) * w).sum();
        let variance = variances.iter().map(|v| inside(*v)).sum::<f64>() / p as f64;
        let bytes = census
            .rows()
            .saturating_mul(RowBounds::bytes_per_row(Problem::n_groups(family.groups.range().1)));
        let problem = Problem {
            frame: Arc::new(frame),
            squares,
            variance: if variance > 0.0 { variance } else { 1.0 },
            complete: census.missing() == 0,
            bounds: source.as_table().is_some() && bytes <= family.run.bytes() / 2,
        };
        Ok(Self { source, census, margins, problem })
    }

    /// Rows of the sample that are wanted.
    fn sample_size(&self, family: &KMeans, clusters: usize) -> usize {
        let p = self.source.n_features().max(1);
        let cells = SAMPLE_CELLS.min(family.run.bytes() / 32);
        SAMPLE_ROWS.max(ROWS_PER_CLUSTER.saturating_mul(clusters)).min(cells / p).max(LEAST_SAMPLE)
    }

    /// A sample of about so many rows, in the frame; all rows where there are no more.
    pub(super) fn sample(&self, rows: usize, seed: u64, control: &Control<'_>) -> Result<Table<'static>> {
        let p = self.source.n_features();
        memory::check("the sample of rows", &[2, rows.min(self.census.rows()), p])?;
        let design = Arc::new(CoresetDesign {
            frame: Arc::clone(&self.problem.frame),
            size: if self.census.rows() <= rows { f64::INFINITY } else { rows as f64 },
            weight: self.census.weight(),
            squares: self.problem.squares,
            seed,
        });
        gather(self.source, || Coreset::empty(Arc::clone(&design)), control)?.table()
    }

    /// The problem of a sample, whose frame is its own already.
    pub(super) fn of_sample(&self, sample: &Table<'_>) -> Problem {
        let p = self.source.n_features();
        let unmoved = Frame::new(vec![0.0; p], &vec![1.0; p], 1.0);
        let total = |i: usize| {
            let cells = (0..p).map(|j| sample.cells().get(i, j)).filter(|x| !x.is_nan());
            sample.weights().map_or(1.0, |w| w[i]) * cells.map(|x| x * x).sum::<f64>()
        };
        let squares = (0..sample.shape().0).map(total).sum();
        Problem { frame: Arc::new(unmoved), squares, bounds: true, ..self.problem.clone() }
    }

    /// First centres, found on a sample.
    fn start(
        &self,
        family: &KMeans,
        seeding: Seeding,
        story: &mut Story,
        control: &Control<'_>,
    ) -> Result<Mat<f64>> {
        let (fewest, most) = family.groups.range();
        let sample = self.sample(self.sample_size(family, most), family.run.seed, control)?;
        let whole = sample.shape().0 as u64 + self.census.empty_rows() >= self.census.rows() as u64;
        story.sample = (!whole).then_some(sample.shape().0);
        story.passes = 1;
        if let Groups::Between(..) = family.groups {
            control.emit(Event::Choosing);
            story.chosen = Some(choose(family, self, fewest..=most, control)?);
            control.emit(Event::Fitting);
        }
        let asked = story.asked(family);
        story.starts = family.starts;
        let problem = self.of_sample(&sample);
        if whole && family.starts == 1 && !family.polish {
            return draw(seeding, asked, &sample, &problem, &mut stream(family.run.seed, 0));
        }
        let failures = if whole && !family.brief { failures(&sample, asked) } else { *FAILURES.start() };
        let row_moves = cheap(failures);
        let limits = limits(family);
        let search = Search { sample: &sample, problem: &problem, limits, failures, row_moves };
        let found = best_start(family, seeding, asked, &search, control)?;
        story.swaps = found.swaps;
        if whole {
            story.trace = found.trace.iter().map(|v| self.problem.frame.square(*v)).collect();
        }
        Ok(found.centres)
    }

    /// Lloyd's method on all rows.
    fn settle(&self, start: Mat<f64>, limits: Limits, control: &Control<'_>) -> Result<(Settled, Journey)> {
        drive(Passes::over(self.source, Lloyd::new(&self.problem, start)), limits, control)
    }

    /// The same with more centres where fewer were found than the rows allow, because a sample misses rare rows.
    fn completed(
        &self,
        mut settled: Settled,
        mut journey: Journey,
        asked: usize,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<(Settled, Journey)> {
        for _ in settled.centres.ncols()..asked {
            let missing = asked.saturating_sub(settled.centres.ncols());
            if missing == 0 || settled.inertia <= 0.0 || journey.stop != Stop::Converged {
                break;
            }
            let nearest =
                crate::blocks::Nearest::of(Arc::clone(&self.problem.frame), settled.centres.clone());
            let nearest = Arc::new(nearest);
            let evidence = gather(self.source, || Clusters::about(Arc::clone(&nearest)), control)?;
            let mut far: Vec<_> =
                evidence.farthest.into_iter().flatten().filter(|far| far.distance > 0.0).collect();
            far.sort_by(|a, b| b.distance.total_cmp(&a.distance).then(a.row.cmp(&b.row)));
            far.truncate(missing);
            if far.is_empty() {
                break;
            }
            let (p, k) = (settled.centres.nrows(), settled.centres.ncols());
            let cell = |x: f64| if x.is_nan() { 0.0 } else { x };
            let more = Mat::from_fn(p, k + far.len(), |j, c| match c.checked_sub(k) {
                None => settled.centres[(j, c)],
                Some(new) => cell(far[new].cells[j]),
            });
            let before = journey;
            (settled, journey) = self.settle(more, limits, control)?;
            journey.passes += before.passes + 1;
        }
        Ok((settled, journey))
    }

    /// The model, with clusters in descending weight and their sizes from one more pass, so that labels,
    /// centres and inertia belong together.
    fn model(&self, settled: &Settled) -> Result<Clustering> {
        let k = settled.centres.ncols();
        let order = descending(&settled.weights);
        let rows = self.problem.frame.rows(settled.centres.as_ref());
        let p = self.source.n_features();
        let centres = Mat::from_fn(k, p, |i, j| rows[(order[i], j)]);
        let mean = self.margins.mean().to_vec();
        let shares = vec![1.0 / k as f64; k];
        let model = Clustering::with_frame(centres, mean, shares, vec![0.0; k], vec![1.0; p])?;
        // Whoever has interrupted the fit still gets a model that is whole.
        let sizes = gather(self.source, || Clusters::about(Arc::clone(model.comparer())), &Control::new())?;
        let total: f64 = sizes.weight().iter().sum();
        let shares = sizes.weight().iter().map(|w| w / total).collect();
        model.with_sizes(shares, sizes.within())
    }

    fn report(
        &self,
        family: &KMeans,
        model: &Clustering,
        (story, journey): (Story, Journey),
        started: Instant,
    ) -> Report {
        let asked = story.asked(family);
        let found = model.centres().nrows();
        let choice = story.chosen.as_ref().map(|(_, table)| table.reason.clone());
        let details = ClusterReport {
            inertia: model.inertia(),
            total: self.problem.frame.square(self.problem.squares),
            asked,
            found,
            starts: story.starts,
            swaps: story.swaps,
            sample: story.sample,
            online_steps: None,
            chosen: story.chosen.map(|(_, table)| table),
        };
        let trace = journey.trace.iter().map(|v| self.problem.frame.square(*v));
        let missing = self.census.missing();
        Report {
            plan: self.plan(found, story.sample),
            rows: self.census.rows(),
            weight: self.census.weight(),
            features: self.source.n_features(),
            components: found,
            log_likelihood: None,
            total_variance: self.margins.variance().iter().sum(),
            holes: (missing > 0).then(|| MissingCells::new(&self.census, None)),
            details: Some(Details::Clusters(details)),
            redundant: None,
            rotation: None,
            scaled: None,
            choice,
            stop: journey.stop,
            passes: 2 + story.passes + journey.passes,
            trace: story.trace.into_iter().chain(trace).collect(),
            seconds: started.elapsed().as_secs_f64(),
            spectrum: None,
        }
    }

    fn plan(&self, clusters: usize, sample: Option<usize>) -> Plan {
        let p = self.source.n_features();
        let bounds =
            if self.problem.bounds { RowBounds::bytes_per_row(Problem::n_groups(clusters)) } else { 0 };
        let reason = match sample {
            Some(rows) => format!("passes over the rows, from a start that was found on {rows} of them"),
            None => "passes over the rows".into(),
        };
        let memory = 8 * p * (clusters * 16 + sample.unwrap_or(0)) + bounds * self.census.rows();
        Plan { solver: Solver::Lloyd, reason, memory }
    }
}

/// Trials that must fail on rows that are all there are.
pub(super) fn failures(rows: &Table<'_>, clusters: usize) -> usize {
    let (n, p) = rows.shape();
    (SQUARES / (n * p).saturating_mul(clusters).max(1)).clamp(*FAILURES.start(), *FAILURES.end())
}

/// Whether a trial costs so little that more than the fewest are made.
pub(super) fn cheap(failures: usize) -> bool {
    failures > *FAILURES.start()
}

/// The generator of a start.
pub(super) fn stream(seed: u64, start: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM + start as u64);
    rng
}

/// The best of the starts on a sample, with swaps if they are wanted.
pub(super) fn best_start(
    family: &KMeans,
    seeding: Seeding,
    clusters: usize,
    search: &Search<'_>,
    control: &Control<'_>,
) -> Result<Found> {
    let mut best: Option<Found> = None;
    for start in 0..family.starts {
        let mut rng = stream(family.run.seed, start);
        let centres = draw(seeding, clusters, search.sample, search.problem, &mut rng)?;
        let lloyd = Lloyd::new(search.problem, centres);
        let (settled, journey) = drive(Passes::over(search.sample, lloyd), search.limits, control)?;
        let mut trace = journey.trace;
        let (settled, swaps) = match family.polish {
            false => (settled, 0),
            true => {
                let limits = Limits { tolerance: search.failures as f64, iterations: TRIALS };
                let swaps = Swaps::new(search, settled, rng)?;
                let (found, journey) = drive(swaps, limits, control)?;
                trace.extend(journey.trace.into_iter().filter(|v| *v < f64::INFINITY));
                found
            }
        };
        if best.as_ref().is_none_or(|best| settled.inertia < best.inertia) {
            best = Some(Found { centres: settled.centres, inertia: settled.inertia, trace, swaps });
        }
    }
    best.ok_or(crate::error::Error::NoRows)
}

//! The stages of a fit of independent components: PPCA, whitened rows, several starts, the sources of the best.

use std::sync::Arc;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::sources::{order_and_signs, stability};
use super::whitened::{WhitenedRows, Whitening, noise_free};
use super::{Begin, Ica, IcaMethod, IcaReport, MAX_ITERATIONS};
use crate::algorithm::ica::{FastIca, Geometry, Picard, Search, Unmixing, deflation};
use crate::algorithm::optimise::best;
use crate::algorithm::{Components, Journey, Limits, Stop, drive};
use crate::control::Control;
use crate::data::{RowSource, counted_weight};
use crate::error::{Error, Result};
use crate::estimator::{Details, Fit, Ppca, Report, Run};
use crate::evidence::Contrast;
use crate::linalg::{Mat, nearest_orthogonal, product, unit_columns};
use crate::memory;
use crate::model::{IndependentComponents, LinearGaussian};
use crate::spectrum::Spectrum;

/// Largest entry of the gradient, or angle in radians, at the end.
const TOLERANCE: f64 = 1e-7;
/// The same of starts among which one is to be chosen: where the optimum is, not yet its digits.
const ROUGH: f64 = 1e-3;
/// The same where some of the rows lead the way: about what chance makes of them.
const SKETCHED: f64 = 1e-2;
/// Rows that lead the way: for each pair of sources, and at least.
const ROWS_PER_PAIR: usize = 30;
const LEAST_ROWS: usize = 1 << 13;
/// Below this share of the rows a sample would spare too little.
const LEAST_STEP: usize = 3;
/// Bytes of whitened rows that are brought here from elsewhere.
const BROUGHT: usize = 1 << 26;
/// Objectives that differ by no more than this belong to one optimum.
const SAME: f64 = 1e-5;
/// First of the streams of random numbers for starts.
const STREAM: u64 = 0x1ca;
/// Sizes of the contrast, in standard errors, that chance alone reaches along the best of all directions among q
/// normal variables: simulated, the largest of q sources is near 1.3 √q.
const CHANCE: (f64, f64) = (2.0, 1.4);

/// An end of a start.
struct End {
    found: Unmixing,
    journey: Journey,
}

impl Ica {
    pub(super) fn fit_source(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<IndependentComponents>> {
        let started = Instant::now();
        let components = if self.whitened { Components::All } else { self.components };
        let run = Run { tolerance: None, max_iterations: None, ..self.run };
        let Fit { model: ppca, report } = Ppca::new(components).run(run).fit_with(source, control)?;
        let Some(spectrum) = report.spectrum.clone() else { return Err(Error::NoRows) };
        let gaussian = self.gaussian(&spectrum, ppca)?;
        let whitening = match self.whitened {
            true => Whitening::Given(source.n_features()),
            false => Whitening::new(&spectrum, report.holes.is_none())?,
        };
        let rows = WhitenedRows { source, whitening };
        let kept = match self.keeps(&rows, report.rows) {
            true => Some(rows.kept(control)?),
            false => None,
        };
        let white: &dyn RowSource = kept.as_ref().map_or(&rows, |kept| kept);
        let sample = match self.sample_step(report.rows, gaussian.n_latent()) {
            Some(step) => Some(rows.sample(step, control)?),
            None => None,
        };
        let leading = sample.as_ref().map(|sample| sample as &dyn RowSource);
        let (ends, winner) = self.search((white, leading), gaussian.loadings(), control)?;
        let fit = self.finish(gaussian, (&ends, winner), white, report, control)?;
        let mut report = fit.report;
        report.seconds = started.elapsed().as_secs_f64();
        if let Some(Details::Ica(details)) = &mut report.details {
            details.kept = Some(kept.is_some());
        }
        Ok(Fit { report, ..fit })
    }

    /// The model whose latent space is turned.
    fn gaussian(&self, spectrum: &Spectrum, ppca: LinearGaussian) -> Result<LinearGaussian> {
        if self.whitened {
            let p = spectrum.n_features();
            return LinearGaussian::new(vec![0.0; p], Mat::identity(p, p), 0.0.into());
        }
        let q = spectrum.n_components();
        let above = spectrum.eigenvalues().iter().take(q).filter(|v| **v > spectrum.noise_variance()).count();
        if above < q || q == 0 {
            let (rows, features) = (spectrum.rows(), spectrum.n_features());
            return Err(Error::Components { requested: q, possible: above, rows, features });
        }
        if self.noise { Ok(ppca) } else { noise_free(spectrum) }
    }

    /// k where every k-th run of rows leads the way to sources of all; `None` where they are too few for that, or
    /// directions are found one after the other.
    fn sample_step(&self, rows: usize, sources: usize) -> Option<usize> {
        let one_by_one = matches!(self.method, IcaMethod::FastIca { deflation: true, .. });
        let step = rows / LEAST_ROWS.max(ROWS_PER_PAIR * sources * sources);
        (step >= LEAST_STEP && !one_by_one).then_some(step)
    }

    /// Whether all whitened rows fit in memory.
    fn keeps(&self, rows: &WhitenedRows<'_>, count: usize) -> bool {
        let n = rows.source.n_rows().unwrap_or(count);
        let width = rows.n_features();
        // Of rows elsewhere only few are worth the way.
        let most =
            if rows.source.remote().is_some() { self.run.bytes().min(BROUGHT) } else { self.run.bytes() };
        let fits = n.saturating_mul(width).saturating_mul(size_of::<f64>()) <= most;
        fits && memory::check("whitened rows", &[2, n, width]).is_ok()
    }

    /// All starts, and which is the best: that one to the tolerance.
    fn search(
        &self,
        (rows, sample): (&dyn RowSource, Option<&dyn RowSource>),
        loadings: &Mat<f64>,
        control: &Control<'_>,
    ) -> Result<(Vec<End>, usize)> {
        let q = loadings.ncols();
        let iterations = self.run.max_iterations.unwrap_or(MAX_ITERATIONS);
        let limits = Limits { tolerance: self.run.tolerance.unwrap_or(TOLERANCE), iterations };
        let starts = self.start_matrices(loadings, q)?;
        let enough = if starts.len() == 1 { limits.tolerance } else { limits.tolerance.max(ROUGH) };
        let rough = Limits { tolerance: enough, ..limits };
        let mut ends: Vec<End> = Vec::new();
        for start in starts {
            match self.climb((rows, sample), Arc::new(start), rough, control) {
                Err(Error::Interrupted) if !ends.is_empty() => break,
                end => ends.push(end?),
            }
        }
        let converged = |end: &End| end.journey.stop == Stop::Converged;
        let same = |a: f64, lowest: f64| a - lowest <= SAME;
        let winner = best(&ends, |end| -end.found.objective, same, converged).ok_or(Error::NoRows)?;
        if enough > limits.tolerance && converged(&ends[winner]) {
            let left = Limits { iterations: limits.iterations, ..limits };
            let begin = Arc::clone(&ends[winner].found.matrix);
            match self.climb_all(rows, begin, left, control) {
                Err(Error::Interrupted) => ends[winner].journey.stop = Stop::Interrupted,
                end => ends[winner].continue_with(end?),
            }
        }
        Ok((ends, winner))
    }

    /// From one start to an optimum: first of a sample of the rows, where there are many, then of all.
    fn climb(
        &self,
        (rows, sample): (&dyn RowSource, Option<&dyn RowSource>),
        start: Arc<Mat<f64>>,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<End> {
        let Some(sample) = sample.filter(|_| limits.tolerance < SKETCHED) else {
            return self.climb_all(rows, start, limits, control);
        };
        let sketched = Limits { tolerance: SKETCHED, ..limits };
        let start = match self.climb_all(sample, Arc::clone(&start), sketched, control) {
            Ok(end) => end.found.matrix,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(_) => start, // rows that say nothing by themselves
        };
        self.climb_all(rows, start, limits, control)
    }

    /// From one start to an optimum of these rows.
    fn climb_all(
        &self,
        rows: &dyn RowSource,
        start: Arc<Mat<f64>>,
        limits: Limits,
        control: &Control<'_>,
    ) -> Result<End> {
        let search = |contrast: Contrast| Search { rows, contrast };
        if self.stays {
            let means = search(Contrast::default()).measure(&start, control)?;
            let objective = means.value.iter().sum();
            let journey = Journey { stop: Stop::Converged, trace: Vec::new(), passes: 1 };
            return Ok(End { found: Unmixing { matrix: start, objective }, journey });
        }
        let (found, journey) = match self.method {
            IcaMethod::Picard { extended } => {
                let geometry = Geometry { orthogonal: true, extended };
                drive(Picard::new(search(Contrast::default()), geometry, start, control)?, limits, control)?
            }
            IcaMethod::Infomax { extended } => {
                let geometry = Geometry { orthogonal: false, extended };
                drive(Picard::new(search(Contrast::default()), geometry, start, control)?, limits, control)?
            }
            IcaMethod::FastIca { contrast, deflation: true } => {
                deflation(search(contrast), &start, limits, control)?
            }
            IcaMethod::FastIca { contrast, deflation: false } => {
                drive(FastIca::new(search(contrast), start, control)?, limits, control)?
            }
        };
        Ok(End { found, journey })
    }

    fn start_matrices(&self, loadings: &Mat<f64>, q: usize) -> Result<Vec<Mat<f64>>> {
        let given = match &self.begin {
            None => return (0..self.starts).map(|start| random_turn(q, self.run.seed, start)).collect(),
            Some(Begin::Matrix(matrix)) => matrix.clone(),
            Some(Begin::Model(model)) => {
                let unmixing = model.unmixing()?;
                if unmixing.ncols() != loadings.nrows() {
                    let (expected, found) = (loadings.nrows(), unmixing.ncols());
                    return Err(Error::FeatureCount { expected, found });
                }
                product(unmixing.as_ref(), loadings.as_ref())
            }
        };
        if (given.nrows(), given.ncols()) != (q, q) {
            let value = format!("{} × {}", given.nrows(), given.ncols());
            let (name, allowed) = ("the size of the unmixing matrix to start from", "sources × sources");
            return Err(Error::Parameter { name, value, allowed });
        }
        if !given.norm_max().is_finite() {
            let (name, value) = ("the unmixing matrix to start from", "not finite".into());
            return Err(Error::Parameter { name, value, allowed: "finite numbers" });
        }
        match self.method {
            IcaMethod::FastIca { deflation: true, .. } => Ok(vec![given]), // rows stand alone
            _ => Ok(vec![nearest_orthogonal(given.as_ref())?]),
        }
    }

    fn finish(
        &self,
        gaussian: LinearGaussian,
        (ends, winner): (&[End], usize),
        rows: &dyn RowSource,
        report: Report,
        control: &Control<'_>,
    ) -> Result<Fit<IndependentComponents>> {
        let End { found, journey } = &ends[winner];
        let turn = unit_columns(found.matrix.transpose().to_owned()); // T (q × q)
        let mixing = IndependentComponents::new(gaussian.clone(), turn.clone())?;
        let order = order_and_signs(mixing.mixing());
        let q = order.len();
        let turn = Mat::from_fn(q, q, |i, k| order[k].1 * turn[(i, order[k].0)]);
        let directions = Arc::new(turn.transpose().to_owned());
        let others = ends.iter().enumerate().filter(|(k, _)| *k != winner).map(|(_, end)| &*end.found.matrix);
        let others: Vec<&Mat<f64>> = others.collect();
        let stability = stability(&directions, others.into_iter());
        let contrast = self.distance_from_normal(rows, &directions, control)?;
        let model = IndependentComponents::new(gaussian, turn)?;
        let details = IcaReport {
            method: self.method.name().into(),
            iterations: journey.trace.len(),
            starts: ends.len(),
            objective: found.objective,
            stability,
            contrast,
            normal_below: CHANCE.0 + CHANCE.1 * (q as f64).sqrt(),
            kept: None,
        };
        let log_likelihood =
            report.log_likelihood.filter(|_| self.noise || q == model.gaussian().n_features());
        let report = Report {
            components: q,
            log_likelihood: log_likelihood.filter(|_| !self.whitened),
            details: Some(Details::Ica(details)),
            stop: if report.stop == Stop::Converged { journey.stop } else { report.stop },
            passes: report.passes + ends.iter().map(|end| end.journey.passes).sum::<usize>() + 1,
            trace: journey.trace.clone(),
            ..report
        };
        Ok(Fit { model, report })
    }

    /// E log cosh of each source minus that of a normal variable, in standard errors.
    fn distance_from_normal(
        &self,
        rows: &dyn RowSource,
        directions: &Arc<Mat<f64>>,
        control: &Control<'_>,
    ) -> Result<Vec<f64>> {
        let contrast = Contrast::default();
        let means = match (Search { rows, contrast }).measure(directions, control) {
            Err(Error::Interrupted) => Search { rows, contrast }.measure(directions, &Control::new())?,
            means => means?,
        };
        let (normal, deviation) = contrast.of_normal();
        let error = deviation / counted_weight(means.rows, means.weight).sqrt();
        Ok(means.value.iter().map(|v| (v - normal) / error).collect())
    }
}

impl End {
    /// Goes on where it had been left.
    fn continue_with(&mut self, end: Self) {
        self.found = end.found;
        self.journey.stop = end.journey.stop;
        self.journey.trace.extend(end.journey.trace);
        self.journey.passes += end.journey.passes;
    }
}

/// A random orthogonal matrix (q × q), one of a kind for each seed and start.
fn random_turn(q: usize, seed: u64, start: usize) -> Result<Mat<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM + start as u64);
    let normals = Mat::from_fn(q, q, |_, _| StandardNormal.sample(&mut rng));
    nearest_orthogonal(normals.as_ref())
}

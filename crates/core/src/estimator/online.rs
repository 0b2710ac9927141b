//! Fits of rows that come in batches: exact for complete ones, a step of online EM for each batch with
//! missing values.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::spectral::FromSpectrum;
use super::{Fit, MissingCells, Plan, Report, Solver, Spectral};
use crate::algorithm::{Journey, Stop, online, start};
use crate::control::Control;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::evidence::{Accumulator, Census, Found, Latent, Moments, Pairwise, Survey, gather};
use crate::expectation::LatentParameters;
use crate::linalg::power_of_two;
use crate::memory;
use crate::model::LinearGaussian;
use crate::spectrum::Spectrum;

/// Matrices of p × p that exist at once: what was seen, a batch, and two on their way.
const SQUARES: usize = 4;

/// What batches of rows have said so far.
///
/// Of complete rows it keeps moments, so their fit is exact in any order and split. A batch with missing
/// values is one step of online EM \[CM09\]: it needs no second look at earlier rows, and several rounds over
/// the batches come close to the maximum.
///
/// ```
/// use covary::data::Rows;
/// use covary::estimator::Online;
///
/// let batches = [[1.0, 2.1, 2.0, f64::NAN, 3.0, 6.2, 4.0, 7.9], [0.0, 0.3, 5.0, 9.9, f64::NAN, 4.1, 2.5, 5.2]];
/// let (ppca, mut seen) = (covary::Ppca::new(1), Online::empty(2));
/// for batch in batches.iter().cycle().take(20) {
///     ppca.take_in(&mut seen, Rows::from_slice(batch, 2)?, &Default::default())?;
/// }
/// let fit = ppca.fit_online(&seen)?;
/// assert_eq!(fit.report.holes.and_then(|h| h.online_steps), Some(20));
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Online {
    complete: Moments,
    incomplete: Option<(Latent, BatchCounts)>,
}

/// What a batch of rows adds to what was seen before.
#[derive(Debug, Clone)]
pub struct Batch {
    complete: Option<Moments>,
    incomplete: Option<(Latent, BatchCounts)>, // instead of what was there
}

/// What is known about the batches with missing values besides their evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchCounts {
    rows: usize,
    weight: f64,
    holes: MissingCells,
    /// Log-likelihood per row of each batch under the parameters that it met.
    trace: Vec<f64>,
}

impl Online {
    /// Of no rows.
    pub fn empty(n_features: usize) -> Self {
        Self { complete: Moments::empty(n_features), incomplete: None }
    }

    /// The same, refused before it is made when memory is not enough for it and for a batch.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn try_empty(n_features: usize) -> Result<Self> {
        memory::check("the covariance of the rows seen", &[SQUARES, n_features, n_features])?;
        Ok(Self::empty(n_features))
    }

    /// From what [`parts`](Self::parts) gave.
    ///
    /// # Errors
    /// When the parts are not about the same features.
    pub fn from_parts(complete: Moments, incomplete: Option<(Latent, BatchCounts)>) -> Result<Self> {
        let expected = complete.n_features();
        match incomplete.as_ref().map(|(latent, _)| latent.parameters().n_features()) {
            Some(found) if found != expected => Err(Error::FeatureCount { expected, found }),
            _ => Ok(Self { complete, incomplete }),
        }
    }

    /// Moments of the complete rows; averaged evidence of the batches with missing values, with their number.
    pub fn parts(&self) -> (&Moments, Option<(&Latent, &BatchCounts)>) {
        (&self.complete, self.incomplete.as_ref().map(|(latent, counts)| (latent, counts)))
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.complete.n_features()
    }

    /// Rows of positive weight.
    pub fn rows(&self) -> usize {
        self.complete.rows() + self.incomplete.as_ref().map_or(0, |(_, counts)| counts.rows)
    }

    /// Their total weight.
    pub fn weight(&self) -> f64 {
        self.complete.weight() + self.incomplete.as_ref().map_or(0.0, |(_, counts)| counts.weight)
    }

    /// Takes in what was found in a batch.
    ///
    /// # Errors
    /// When it is not about the same features.
    pub fn take(&mut self, batch: Batch) -> Result<()> {
        let Batch { complete, incomplete } = batch;
        complete.map_or(Ok(()), |moments| self.complete.merge(&moments))?;
        self.incomplete = incomplete.or(self.incomplete.take());
        Ok(())
    }

    /// Takes in what another has seen.
    ///
    /// # Errors
    /// When the two are not about the same features, or have seen holes: steps cannot be added up.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.incomplete.is_some() || other.incomplete.is_some() {
            let (name, value) = ("rows to be merged", "with missing values".into());
            let allowed = "complete: steps of online EM cannot be added up; fit all rows instead";
            return Err(Error::Parameter { name, value, allowed });
        }
        self.complete.merge(&other.complete)
    }
}

impl Online {
    /// What complete rows add, by their moments: from the first missing value on, each batch is a step.
    ///
    /// # Errors
    /// When they are not about the same features, or arithmetic breaks down.
    pub fn batch_of(&self, moments: Moments) -> Result<Batch> {
        let Some((latent, counts)) = &self.incomplete else {
            return Ok(Batch { complete: Some(moments), incomplete: None });
        };
        let mut complete = self.complete.clone();
        complete.merge(&moments)?;
        let latent = online::step(latent, counts.weight, &complete)?;
        Ok(Batch { complete: Some(moments), incomplete: Some((latent, counts.clone())) })
    }
}

impl<M: FromSpectrum> Spectral<M> {
    /// Takes in a batch of rows.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`]; what was seen before is then as it was.
    pub fn take_in<'a>(
        &self,
        seen: &mut Online,
        rows: impl Into<Rows<'a>>,
        control: &Control<'_>,
    ) -> Result<()> {
        let batch = self.look(seen, rows, control)?;
        seen.take(batch)
    }

    /// What a batch of rows adds to what was seen.
    ///
    /// # Errors
    /// As [`take_in`](Self::take_in).
    pub fn look<'a>(&self, seen: &Online, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Batch> {
        let rows = rows.into();
        let (source, p) = (rows.source(), seen.n_features());
        if source.observed_only() {
            return self.look_at_holes(seen, &rows, control);
        }
        match gather(source, || Moments::empty(p), control) {
            Err(Error::Missing { .. }) => self.look_at_holes(seen, &rows, control),
            other => other.and_then(|moments| seen.batch_of(moments)),
        }
    }

    /// The model of what was seen.
    ///
    /// # Errors
    /// As [`fit_moments`](Self::fit_moments).
    pub fn fit_online(&self, seen: &Online) -> Result<Fit<M>> {
        let Some((latent, counts)) = &seen.incomplete else { return self.fit_moments(&seen.complete) };
        let started = Instant::now();
        let parameters = latent.parameters();
        let (p, q, rows) = (parameters.n_features(), parameters.n_latent(), seen.rows());
        let noiseless = parameters.noise() <= parameters.rounding(rows);
        let noise = if noiseless { 0.0 } else { parameters.noise_variance(0) };
        let w = parameters.loadings();
        let count = (rows, seen.weight());
        let spectrum = Spectrum::of_model(parameters.mean().to_vec(), w.as_ref(), noise, count, f64::NAN)?;
        let steps = counts.trace.len();
        let plan = Plan {
            solver: Solver::Em,
            reason: format!(
                "batches with missing values: {steps} online steps, which come near the maximum; fit finds it"
            ),
            memory: 8 * p * (q + 1) * (q + 4),
        };
        let journey = Journey { stop: Stop::IterationLimit, trace: counts.trace.clone(), passes: 1 };
        let model = M::from_spectrum(&spectrum)?;
        let report = Report::new(plan, spectrum, Some(journey), started.elapsed().as_secs_f64());
        let holes = Some(MissingCells { online_steps: Some(steps), ..counts.holes.clone() });
        Ok(Fit { model, report: Report { holes, ..report } })
    }

    fn look_at_holes(&self, seen: &Online, rows: &Rows<'_>, control: &Control<'_>) -> Result<Batch> {
        let (source, p) = (rows.source(), seen.n_features());
        let census = gather(source, || Survey::empty(p), control)?.census();
        let parameters = match &seen.incomplete {
            Some((latent, _)) => Arc::clone(latent.parameters()),
            None => Arc::new(self.begin(seen, rows, control)?),
        };
        let q = parameters.n_latent();
        memory::check("the evidence of rows with missing values", &[2, p, q + 1, (q + 4) / 2])?;
        let batch = gather(source, || Latent::empty(Arc::clone(&parameters)), control)?;
        if batch.weight() == 0.0 {
            return Ok(Batch { complete: None, incomplete: None });
        }
        let counts = BatchCounts::of(seen.incomplete.as_ref().map(|(_, counts)| counts), &census, &batch);
        let kept = seen.incomplete.as_ref().map(|(latent, _)| latent.clone());
        let average = online::average(kept, batch, counts.weight)?;
        let latent = online::step(&average, counts.weight, &seen.complete)?;
        Ok(Batch { complete: None, incomplete: Some((latent, counts)) })
    }

    /// Where online EM starts: the model given, that of the complete rows so far, or what the first batch
    /// shows.
    fn begin(&self, seen: &Online, rows: &Rows<'_>, control: &Control<'_>) -> Result<LatentParameters> {
        let known = match &self.start {
            Some(model) => Some(model.clone()),
            None => {
                let fit = self.fit_moments(&seen.complete).ok();
                fit.and_then(|fit| fit.report.spectrum?.ppca().ok())
            }
        };
        if let Some(parameters) = known.as_ref().and_then(of_model) {
            return Ok(parameters);
        }
        let (source, p) = (rows.source(), seen.n_features());
        if !self.pairs_fit(source) {
            let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
            let seen = (&census, &margins);
            return Ok(start::from_filled_rows(source, seen, self.components, self.run.seed, control)?.0);
        }
        match gather(source, || Pairwise::empty(p), control)?.finish()? {
            Found::Incomplete(cases) => start::from_available_cases(&cases, self.components, self.run.seed),
            Found::Complete(_) => Err(Error::NoRows),
        }
    }
}

/// The parameters of a model, if it has noise: without, nothing could be learned.
pub(super) fn of_model(model: &LinearGaussian) -> Option<LatentParameters> {
    let p = model.n_features();
    let noise = (0..p).map(|j| model.noise().of(j)).sum::<f64>() / p as f64;
    let variance = noise + model.loadings().squared_norm_l2() / p as f64;
    let unit = power_of_two(variance.sqrt());
    let mut loadings = model.loadings().transpose().to_owned();
    loadings.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
    let parameters =
        LatentParameters::in_units(model.mean().to_vec(), &loadings, noise / (unit * unit), unit);
    (noise > 0.0).then_some(parameters)
}

impl BatchCounts {
    fn of(before: Option<&Self>, census: &Census, batch: &Latent) -> Self {
        let now = MissingCells::new(census, None);
        let mut trace = before.map_or(Vec::new(), |b| b.trace.clone());
        trace.extend((batch.weight() > 0.0).then(|| batch.log_likelihood() / batch.weight()));
        let held = before.map(|b| &b.holes);
        let sum = |of: fn(&MissingCells) -> u64| of(&now) + held.map_or(0, of);
        let holes = MissingCells {
            observed: sum(|h| h.observed),
            missing: sum(|h| h.missing),
            empty_rows: sum(|h| h.empty_rows),
            patterns: None,
            ..now.clone()
        };
        Self {
            rows: census.rows() + before.map_or(0, |b| b.rows),
            weight: census.weight() + before.map_or(0.0, |b| b.weight),
            holes,
            trace,
        }
    }
}

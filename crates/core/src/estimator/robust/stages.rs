//! The stages of a robust fit: a look at the rows, a start that outliers do not catch, the climb from there.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{DegreesOfFreedom, RobustPpca, RobustReport};
use crate::algorithm::robust::{Point, Robust, RobustOptimum, Task, of_spectrum, sphere};
use crate::algorithm::{Components, Journey, Limits, Passes, Stop, drive, eigen, start};
use crate::control::Control;
use crate::data::{
    Chunk, Parcel, RemoteRows, RowSource, Step, Task as RowTask, Then, counted_weight, fill_through,
};
use crate::error::{Error, Result};
use crate::estimator::{Details, Fit, MissingCells, Plan, Ppca, Report, Solver};
use crate::evidence::{Census, Margins, StudentEvidence, StudentFound, Survey, gather, row_weights};
use crate::expectation::{LatentParameters, Student};
use crate::linalg::power_of_two;
use crate::linalg::serial::shared;
use crate::model::LinearStudent;
use crate::spectrum::Spectrum;

/// The least ν that is found, and that of the way to the start: tails as heavy as those of the Cauchy
/// distribution. A heavier tail is not told from an outlier.
const HEAVY: f64 = 1.0;
/// So many times as many rows as there are may lie at one place, or in one plane, before the likelihood has no
/// maximum.
const MARGIN: f64 = 3.0;
/// With fewer rows than that needs, tails are all but normal.
const MOST_LEAST: f64 = 1e3;
/// By how much ν is raised where that of the start leads to a likelihood without a maximum.
const LIGHTER: f64 = 4.0;
/// Nats per row that may be left to gain on the way to the start, and passes for that.
const ROUGH: Limits = Limits { tolerance: 1e-3, iterations: 50 };
/// Features for which the moments of all pairs are worth their time and memory.
pub(super) const MOMENTS_FEATURES: usize = 1000;
/// Bytes per pair of features while weighted moments are collected and decomposed.
pub(super) const PAIR_BYTES: usize = 3 * 8 * 16;
/// Components of the fit that says which rows lie far out when values are missing.
const PRELIMINARY: usize = 10;
/// A fit of rows that have been looked at.
pub(super) struct Robustly<'a> {
    options: &'a RobustPpca,
    source: &'a dyn RowSource,
    control: &'a Control<'a>,
    census: Census,
    margins: Margins,
    complete: bool, // whether weighted moments are collected
    passes: usize,
    sphere: Option<Point>,
    heavy: f64, // the least ν that has not led to a likelihood without a maximum
}

impl<'a> Robustly<'a> {
    /// The first pass: what is there, and each feature by itself.
    pub(super) fn look(
        options: &'a RobustPpca,
        source: &'a dyn RowSource,
        control: &'a Control<'a>,
    ) -> Result<Self> {
        let p = source.n_features();
        if p == 0 {
            return Err(Error::NoFeatures);
        }
        let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
        options.components.check_possible(census.rows(), p)?;
        match margins.pooled_variance() {
            0.0 => return Err(Error::Constant),
            v if v.is_normal() => {}
            _ => return Err(Error::Scale),
        }
        let complete = match options.solver {
            Solver::Em => false,
            Solver::Eigen if census.missing() > 0 => {
                let reason = "values are missing; use em".into();
                return Err(Error::Solver { solver: "eigen", reason });
            }
            Solver::Eigen => true,
            _ => census.missing() == 0 && options.moments_fit(p),
        };
        Ok(Self {
            options,
            source,
            control,
            census,
            margins,
            complete,
            passes: 1,
            sphere: None,
            heavy: HEAVY,
        })
    }

    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    /// The most components: with p − 1 any scale is W Wᵀ + σ²I already.
    fn possible(&self) -> usize {
        let (rows, p) = (self.census.rows(), self.n_features());
        let told = if self.census.missing() > 0 { self.census.supported_components() } else { p };
        told.min(p - 1).min(rows - 1)
    }

    /// The number of components: a share of the variance is that of a robust scale.
    pub(super) fn components(&mut self, components: Components) -> Result<usize> {
        let (rows, features, possible) = (self.census.rows(), self.n_features(), self.possible());
        if self.census.missing() > 0 {
            start::supported(components, &self.census)?;
        }
        match components {
            Components::Count(q) if q > possible => {
                Err(Error::Components { requested: q, possible, rows, features })
            }
            Components::Count(0) => {
                let (name, value) = ("the number of components", "0".into());
                Err(Error::Parameter { name, value, allowed: "at least 1" })
            }
            Components::Count(q) => Ok(q),
            _ if possible == 0 => Err(Error::Components { requested: 1, possible, rows, features }),
            Components::Fraction(_) => {
                let found = self.preliminary()?;
                let spectrum = found.spectrum((rows, self.census.weight()))?;
                let mut values = spectrum.eigenvalues().to_vec();
                values.resize(features.max(values.len()), spectrum.noise_variance());
                Ok(components.resolve(usize::MAX, features, &values, 0.0)?.clamp(1, possible))
            }
            _ => Ok(possible),
        }
    }

    /// A rough fit of as many components as are of use, which says which rows lie far out.
    pub(super) fn preliminary(&mut self) -> Result<RobustOptimum> {
        let most = if self.complete { usize::MAX } else { PRELIMINARY };
        let begin = self.start(self.possible().min(most))?;
        self.climb(&begin, true, ROUGH).map(|(found, _)| found)
    }

    /// Where a fit of q components starts, so that outliers do not catch it.
    ///
    /// First the centre and the size of the rows, all directions alike, with Cauchy's tails: rows then count
    /// by their distance from the centre alone, and those far out hardly, wherever they lie. The components of
    /// the rows so weighted follow, and a rough fit with the same tails. At a given ν ≥ 1 the likelihood of a
    /// whole scale matrix has one maximum only \[KT91\].
    ///
    /// Where so many rows lie at one place that the likelihood has no maximum, tails are taken less heavy.
    pub(super) fn start(&mut self, q: usize) -> Result<Point> {
        loop {
            let last = self.heavy >= MOST_LEAST;
            match self.start_at(q) {
                Ok(found) if !found.noiseless || last => return Ok(found.point),
                Err(error) if last || !matches!(error, Error::ObjectiveWorsened { .. }) => return Err(error),
                _ => {}
            }
            self.heavy *= LIGHTER;
            self.sphere = None;
        }
    }

    fn start_at(&mut self, q: usize) -> Result<RobustOptimum> {
        let sphere = self.sphere()?;
        let parameters = Arc::new(match self.complete {
            true => self.of_weighted_moments(&sphere, q)?,
            false => {
                let weights = StudentWeights::new(&sphere, 0.0);
                let weighted = StudentRows { source: self.source, weights };
                let ppca = Ppca::new(q).solver(Solver::Em).run(self.options.run);
                let begin = ppca.begin_incomplete(&weighted, self.control)?;
                self.passes += begin.passes;
                begin.parameters
            }
        });
        let point = Point { parameters, student: sphere.student };
        Ok(self.climb(&point, false, ROUGH)?.0)
    }

    /// The least ν for which the likelihood of q components has a maximum.
    ///
    /// It grows without limit towards the plane through d + 1 rows, d ≤ q, where these are more than a share
    /// (ν + d)/(ν + p) of all \[KT91\]: a row may be there more than once, and there are never many rows to
    /// spare near the limit. Above it tails as heavy as Cauchy's are found; below, few rows of many features
    /// do not tell them.
    fn least_nu(&self, q: usize) -> f64 {
        let n = counted_weight(self.census.rows(), self.census.weight());
        let p = self.n_features() as f64;
        let least = |d: usize| {
            let (d, share) = (d as f64, MARGIN * (d + 1) as f64 / n);
            let lighter = (share * p - d).max(0.0);
            if share < 1.0 { lighter / (1.0 - share) } else { f64::INFINITY }
        };
        // A plane of all features but one is no limit of its own.
        (0..=q.min(self.n_features() - 1)).map(least).fold(self.heavy, f64::max).min(MOST_LEAST)
    }

    /// The centre and the size of the rows, without components.
    fn sphere(&mut self) -> Result<Point> {
        if let Some(point) = &self.sphere {
            return Ok(point.clone());
        }
        let least = self.least_nu(self.options.components.count().unwrap_or(1));
        let heavy = match self.options.nu {
            DegreesOfFreedom::Given(nu) if self.heavy <= HEAVY => nu.min(least),
            DegreesOfFreedom::Given(_) | DegreesOfFreedom::Auto => least,
        };
        let parameters = sphere(self.margins.mean().to_vec(), self.margins.pooled_variance());
        let begin = Point { parameters: Arc::new(parameters), student: Student::new(heavy)? };
        let floor = begin.parameters.rounding(self.census.rows());
        let task = Task { free: false, least: heavy, complete: false, seed: self.options.run.seed };
        let (found, journey) =
            drive(Passes::over(self.source, Robust::new(&begin, floor, task)), ROUGH, self.control)?;
        self.passes += journey.passes;
        self.sphere = Some(found.point.clone());
        Ok(found.point)
    }

    /// PPCA's closed form of complete rows with the weights that a point gives them.
    fn of_weighted_moments(&mut self, point: &Point, q: usize) -> Result<LatentParameters> {
        let Point { parameters, student } = point;
        let empty = || StudentEvidence::complete_of(Arc::clone(parameters), *student);
        let (_, found) = gather(self.source, empty, self.control)?.into_parts();
        self.passes += 1;
        let StudentFound::Complete(moments) = found else { return Err(Error::NoRows) };
        let spectrum = eigen::solve(&moments, Components::Count(q), self.options.run.seed)?;
        of_spectrum(&spectrum, parameters.scale().of(0), parameters.rounding(self.census.rows()))
    }

    /// A given model as the start.
    pub(super) fn warm(&self, model: &LinearStudent, q: usize) -> Result<Point> {
        let (p, name) = (self.n_features(), "the model to start from");
        if (model.n_features(), model.n_latent()) != (p, q) {
            let value = format!("of {} features and {} components", model.n_features(), model.n_latent());
            let allowed = "of the same features and number of components as the fit";
            return Err(Error::Parameter { name, value, allowed });
        }
        let unit = power_of_two(self.margins.pooled_variance().sqrt());
        let scale = model.scale();
        let mut loadings = scale.loadings().transpose().to_owned();
        loadings.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
        let noise = scale.noise().mean() / unit / unit;
        let noise = if noise > 0.0 { noise } else { 1e-3 };
        let parameters = LatentParameters::in_units(scale.mean().to_vec(), &loadings, noise, unit);
        let student = Student::new(model.degrees_of_freedom().min(1e3))?;
        Ok(Point { parameters: Arc::new(parameters), student })
    }

    /// To the maximum near a point.
    pub(super) fn climb(
        &mut self,
        point: &Point,
        free: bool,
        limits: Limits,
    ) -> Result<(RobustOptimum, Journey)> {
        let floor = point.parameters.rounding(self.census.rows());
        let least = self.least_nu(point.parameters.n_latent());
        let task = Task { free, least, complete: self.complete, seed: self.options.run.seed };
        let (found, journey) =
            drive(Passes::over(self.source, Robust::new(point, floor, task)), limits, self.control)?;
        self.passes += journey.passes;
        if journey.stop == Stop::Interrupted && limits == ROUGH {
            return Err(Error::Interrupted);
        }
        Ok((found, journey))
    }

    pub(super) fn finish(
        self,
        found: &RobustOptimum,
        journey: Journey,
        started: Instant,
    ) -> Result<Fit<LinearStudent>> {
        let spectrum = found.spectrum((self.census.rows(), self.census.weight()))?;
        let model = LinearStudent::new(spectrum.ppca()?, found.point.student.dof())?;
        let details = RobustReport {
            degrees_of_freedom: Some(found.point.student.dof()),
            found: self.options.nu == DegreesOfFreedom::Auto,
            low_rows: found.sums.low,
            least_weight: found.sums.least,
            online_steps: None,
        };
        let journey = Journey { passes: self.passes, ..journey };
        let report =
            Report::new(self.plan(&spectrum), spectrum, Some(journey), started.elapsed().as_secs_f64());
        let holes = Some(MissingCells::new(&self.census, None)).filter(|h| h.missing > 0);
        Ok(Fit { model, report: Report { holes, details: Some(Details::Robust(details)), ..report } })
    }

    fn plan(&self, spectrum: &Spectrum) -> Plan {
        let (p, q) = (self.n_features(), spectrum.n_components());
        let missing = self.census.missing();
        match self.complete {
            true => Plan {
                solver: Solver::Eigen,
                reason: format!("each pass gives the {p} × {p} covariance of weighted rows"),
                memory: PAIR_BYTES * p * p,
            },
            false => Plan {
                solver: Solver::Em,
                reason: match missing {
                    0 if self.options.solver == Solver::Em => "asked for".into(),
                    0 => format!("{p} features: no {p} × {p} matrix"),
                    1 => "1 cell is missing".into(),
                    _ => format!("{missing} cells are missing"),
                },
                memory: 16 * 8 * p * (q + 1) * (q + 4) / 2,
            },
        }
    }
}

/// The rows of a source with the weights w u that a point gives them; with a least u above 0 all of them by w,
/// but those below it, which count nothing.
pub(super) struct StudentRows<'a> {
    pub(super) source: &'a dyn RowSource,
    pub(super) weights: StudentWeights,
}

/// How such weights are found, wherever the rows are.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StudentWeights {
    #[serde(with = "shared")]
    parameters: Arc<LatentParameters>,
    student: Student,
    least: f64,
}

impl StudentWeights {
    pub(super) fn new(point: &Point, least: f64) -> Self {
        Self { parameters: Arc::clone(&point.parameters), student: point.student, least }
    }

    fn of(&self, chunk: &Chunk<'_>) -> Result<Vec<f64>> {
        let mut weights = row_weights(&self.parameters, self.student, chunk)?;
        if self.least > 0.0 {
            weights.iter_mut().for_each(|u| *u = f64::from(u8::from(*u >= self.least)));
        }
        if let Some(own) = chunk.weights() {
            weights.iter_mut().zip(own).for_each(|(u, w)| *u *= w);
        }
        Ok(weights)
    }
}

impl Step for StudentWeights {
    const NAME: &'static str = "student weights";

    fn over(&self, rows: &dyn RowSource, then: Then<'_>) -> Result<()> {
        then(&StudentRows { source: rows, weights: self.clone() })
    }
}

impl RowSource for StudentRows<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        let chunk = self.source.chunk(index)?;
        let weights = self.weights.of(&chunk)?;
        chunk.with_weights(weights)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        self.source.remote().map(|_| self as &dyn RemoteRows)
    }
}

impl RemoteRows for StudentRows<'_> {
    fn fill(&self, task: RowTask) -> Result<Parcel> {
        fill_through(self.source, &self.weights, task)
    }
}

//! Robust PPCA: Student's t in place of the normal, so that outliers count for little.

mod online;
mod stages;

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub(crate) use stages::StudentWeights;
use stages::{MOMENTS_FEATURES, PAIR_BYTES, Robustly, StudentRows};

use super::incomplete::TOLERANCE;
use super::online_fit::of_kind;
use super::run::run_options;
use super::{Details, Family, Fit, OnlineFit, Ppca, Report, Run, Solver, explained, infinite, with_threads};
use crate::algorithm::robust::Point;
use crate::algorithm::{Components, Limits};
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::expectation::Student;
use crate::model::{AnyModel, Kind, LinearGaussian, LinearStudent, kind};

/// Below this weight a row is left out where the number of components is chosen.
const FAR_OUT: f64 = 0.5;

/// How heavy the tails are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DegreesOfFreedom {
    /// Found with the other parameters, between 1 and ∞.
    #[default]
    Auto,
    /// Given: above 0, and infinite for the normal distribution.
    Given(f64),
}

impl From<f64> for DegreesOfFreedom {
    fn from(nu: f64) -> Self {
        Self::Given(nu)
    }
}

impl std::str::FromStr for DegreesOfFreedom {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let bad = || Error::Parameter {
            name: "the degrees of freedom (nu)",
            value: text.into(),
            allowed: "a number above 0, inf or auto",
        };
        let nu: f64 = text.parse().map_err(|_| bad())?;
        Student::new(nu).map(|_| Self::Given(nu)).map_err(|_| bad())
    }
}

/// Probabilistic PCA with Student's t distribution, by maximum likelihood \[LLT89\].
///
/// Each row counts with a weight that falls with its distance, so that gross outliers move neither the mean
/// nor the components. ν, how heavy the tails are, is found or given; with ν = ∞ it is PPCA.
///
/// ```
/// use covary::data::Rows;
/// // y = 2x but for the last row.
/// let cells = [1.0, 2.1, 2.0, 3.9, 3.0, 6.2, 4.0, 7.8, 5.0, 10.1, 6.0, 11.9, 7.0, 14.2, 3.0, -40.0];
/// let fit = covary::RobustPpca::new(1).fit(Rows::from_slice(&cells, 2)?)?;
/// let w = fit.model.scale().loadings();
/// assert!((w[(1, 0)] / w[(0, 0)] - 2.0).abs() < 0.1);
/// let weights = fit.model.weights(Rows::from_slice(&cells, 2)?)?;
/// assert!(weights[7] < 0.01);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RobustPpca {
    components: Components,
    nu: DegreesOfFreedom,
    solver: Solver,
    start: Option<LinearStudent>,
    run: Run,
}

/// What a robust fit adds to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobustReport {
    /// ν; infinite for the normal distribution.
    #[serde(with = "infinite")]
    pub degrees_of_freedom: Option<f64>,
    /// Whether it was found, not given.
    pub found: bool,
    /// Rows whose weight in the fit is below ½.
    pub low_rows: usize,
    /// The smallest weight of a row.
    pub least_weight: f64,
    /// Batches that were each one step, the first of them a fit; `None` when all rows were fitted at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_steps: Option<usize>,
}

impl RobustReport {
    /// ν.
    pub fn nu(&self) -> f64 {
        self.degrees_of_freedom.unwrap_or(f64::INFINITY)
    }
}

impl RobustPpca {
    /// So many components (`5`), or a share of the variance (`0.9`): of the robust scale.
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            nu: DegreesOfFreedom::Auto,
            solver: Solver::Auto,
            start: None,
            run: Run::default(),
        }
    }

    /// ν: found unless given.
    pub fn nu(mut self, nu: impl Into<DegreesOfFreedom>) -> Self {
        self.nu = nu.into();
        self
    }

    /// `Eigen`: weighted moments of complete rows and their closed form; `Em`: steps of EM, without a p × p
    /// matrix and for missing values. Chosen automatically by default.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Where the fit starts: a model of the same features and number of components.
    pub fn start(mut self, model: LinearStudent) -> Self {
        self.start = Some(model);
        self
    }

    run_options! {
        /// Nats per row of log-likelihood that may be left to gain, extrapolated; 1e-8 by default.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<LinearStudent>> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(
        &self,
        rows: impl Into<Rows<'a>>,
        control: &Control<'_>,
    ) -> Result<Fit<LinearStudent>> {
        self.check()?;
        let rows = rows.into();
        let source = rows.source();
        with_threads(self.run.threads, || {
            self.fit_source(source, control).map_err(|e| explained(e, source, control))
        })
    }

    fn check(&self) -> Result<()> {
        self.run.check()?;
        self.components.check()?;
        if let DegreesOfFreedom::Given(nu) = self.nu {
            Student::new(nu)?;
        }
        if self.components == Components::Evidence {
            let (name, value) = ("the number of components", "mle".into());
            return Err(Error::Parameter { name, value, allowed: "a number or a share of the variance" });
        }
        if !matches!(self.solver, Solver::Auto | Solver::Eigen | Solver::Em) {
            let reason = "robust PPCA has eigen and em".into();
            return Err(Error::Solver { solver: self.solver.name(), reason });
        }
        Ok(())
    }

    /// Whether the p × p moments of weighted rows are worth their time and memory.
    fn moments_fit(&self, p: usize) -> bool {
        p <= MOMENTS_FEATURES && PAIR_BYTES.saturating_mul(p * p) <= self.run.bytes()
    }

    fn fit_source(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<LinearStudent>> {
        let started = Instant::now();
        if self.nu == DegreesOfFreedom::Given(f64::INFINITY) {
            return self.fit_normal(source, control);
        }
        let mut fit = Robustly::look(self, source, control)?;
        let q = fit.components(self.components)?;
        let begin = match &self.start {
            Some(model) => fit.warm(model, q)?,
            None => fit.start(q)?,
        };
        let (point, free) = match self.nu {
            DegreesOfFreedom::Auto => (begin, true),
            DegreesOfFreedom::Given(nu) => (Point { student: Student::new(nu)?, ..begin }, false),
        };
        let limits =
            Limits { tolerance: self.run.tolerance.unwrap_or(TOLERANCE), iterations: self.run.iterations() };
        let (found, journey) = fit.climb(&point, free, limits).map_err(|e| self.explained_collapse(e))?;
        fit.finish(&found, journey, started)
    }

    /// A likelihood that grows without limit is lost in rounding before it has grown that far.
    fn explained_collapse(&self, error: Error) -> Error {
        match (error, self.nu) {
            (Error::ObjectiveWorsened { .. }, DegreesOfFreedom::Given(nu)) => Error::Parameter {
                name: "the degrees of freedom (nu)",
                value: nu.to_string(),
                allowed: "larger: so many rows lie at one place that the likelihood has no maximum",
            },
            (error, _) => error,
        }
    }

    /// ν = ∞ is PPCA.
    fn fit_normal(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<LinearStudent>> {
        let mut ppca = Ppca::new(self.components).solver(self.solver).run(self.run);
        if let Some(start) = &self.start {
            ppca = ppca.start(start.scale().clone());
        }
        let Fit { model, report } = ppca.fit_with(source, control)?;
        let details = RobustReport {
            degrees_of_freedom: Some(f64::INFINITY),
            found: false,
            low_rows: 0,
            least_weight: 1.0,
            online_steps: None,
        };
        let model = LinearStudent::new(model, f64::INFINITY)?;
        Ok(Fit { model, report: Report { details: Some(Details::Robust(details)), ..report } })
    }
}

impl Family for RobustPpca {
    fn kind(&self) -> &'static Kind {
        &kind::ROBUST
    }

    fn components(&self) -> Components {
        self.components
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        Arc::new(Self { components, ..self.clone() })
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>> {
        let model = match start.downcast_ref::<LinearStudent>() {
            Some(model) => model.clone(),
            // As heavy as tails of few degrees of freedom that have a covariance.
            None => LinearStudent::new(gaussian_of(start)?, 4.0)?,
        };
        Ok(Arc::new(self.clone().start(model)))
    }

    /// Those that do not lie far out.
    fn rows_to_choose_by<'a>(
        &self,
        rows: &'a dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Option<Box<dyn RowSource + 'a>>> {
        let options = Self { components: Components::All, ..self.clone() };
        let point = with_threads(self.run.threads, || {
            let mut fit = Robustly::look(&options, rows, control)?;
            fit.components(Components::Count(1))?; // what makes any fit impossible
            fit.preliminary().map(|found| found.point)
        });
        let point = point.map_err(|e| explained(e, rows, control))?;
        let weights = StudentWeights::new(&point, FAR_OUT);
        Ok(Some(Box::new(StudentRows { source: rows, weights })))
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn begun(
        &self,
        fit: Fit<AnyModel>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<AnyModel>> {
        Ok(Self::begun(self, of_kind(&fit)?, rows, control)?.any())
    }

    fn step(
        &self,
        before: &OnlineFit<AnyModel>,
        rows: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<OnlineFit<AnyModel>> {
        let before = OnlineFit { fit: of_kind(&before.fit)?, kept: before.kept.clone() };
        Ok(Self::step(self, Some(&before), rows, control)?.any())
    }

    /// Moments do not tell which rows lie far out.
    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        let (name, value) = ("the data of a robust fit", "moments, or rows that pass once".into());
        let allowed = "rows that can be read again, because their weights depend on the model";
        Err(Error::Parameter { name, value, allowed })
    }
}

fn gaussian_of(model: &AnyModel) -> Result<LinearGaussian> {
    Ok(model.with_loadings()?.factors().gaussian().clone())
}

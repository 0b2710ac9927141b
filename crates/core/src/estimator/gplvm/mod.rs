//! Gaussian process latent variable models: curved surfaces, found by a variational bound or as the most probable
//! positions.

mod dual;
mod exact;
mod fit;
mod report;
mod start;

use std::str::FromStr;
use std::sync::Arc;

pub use report::GplvmReport;

use super::family::no_warm_start;
use super::run::run_options;
use super::{Chooser, Family, Fit, Run, explained, with_threads};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::kernel::LatentForm;
use crate::model::{AnyModel, Kind, LatentProcess, kind};

/// Inducing points when nobody says how many.
const INDUCING: usize = 50;

/// How positions are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GplvmMethod {
    /// A distribution of each position, by the collapsed variational bound \[TL10\]: finds by itself how many dimensions
    /// matter, takes missing values, and any number of rows.
    #[default]
    Bayes,
    /// The most probable positions, exactly \[L05\]: in time n³, for at most 2000 complete rows. With the linear kernel it is
    /// dual PPCA, in closed form.
    Map,
}

impl GplvmMethod {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bayes => "bayes",
            Self::Map => "map",
        }
    }
}

impl FromStr for GplvmMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "bayes" => Ok(Self::Bayes),
            "map" => Ok(Self::Map),
            _ => {
                let (name, value) = ("the method", text.into());
                Err(Error::Parameter { name, value, allowed: "bayes or map" })
            }
        }
    }
}

/// A Gaussian process latent variable model (GP-LVM).
///
/// Each row has a position x in q dimensions, x ~ N(0, I), and each feature is a function of the position with a Gaussian
/// process prior, plus noise: PPCA where the kernel is linear, curved surfaces where it is not. Dimensions stand in
/// descending relevance; the position of largest magnitude along each is positive.
///
/// One noise variance serves all features, as in PPCA: where features have different units, ask for a
/// [`Scale`](crate::Scale) in the request.
///
/// ```
/// use covary::data::Rows;
/// // A curve in three dimensions.
/// let cells: Vec<f64> = (0..60)
///     .flat_map(|i| {
///         let t = f64::from(i) / 10.0 - 3.0;
///         [t, (1.5 * t).sin(), (1.5 * t).cos()]
///     })
///     .collect();
/// let fit = covary::Gplvm::new(1).inducing(10).max_iterations(100).fit(Rows::from_slice(&cells, 3)?)?;
/// assert!(fit.model.parts().noise < 0.1);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gplvm {
    components: Components,
    form: LatentForm,
    method: GplvmMethod,
    inducing: Option<usize>,
    starts: usize,
    run: Run,
}

impl Gplvm {
    /// So many latent dimensions.
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            form: LatentForm::default(),
            method: GplvmMethod::default(),
            inducing: None,
            starts: 1,
            run: Run::default(),
        }
    }

    /// The kernel; rbf by default.
    pub fn kernel(mut self, form: LatentForm) -> Self {
        self.form = form;
        self
    }

    /// How positions are found; by the variational bound by default.
    pub fn method(mut self, method: GplvmMethod) -> Self {
        self.method = method;
        self
    }

    /// Number of inducing points of the variational bound with an rbf kernel; 50 by default, and never more than rows.
    pub fn inducing(mut self, inducing: usize) -> Self {
        self.inducing = Some(inducing);
        self
    }

    /// From how many random choices of inducing points the variational bound is climbed; 1 by default. Each goes some
    /// steps, and the best goes on.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = starts;
        self
    }

    run_options! {
        /// The mean gain of the last ten steps per observed cell at which the search ends; 1e-5 by default.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<LatentProcess>> {
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
    ) -> Result<Fit<LatentProcess>> {
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
        let zero = |name| Err(Error::Parameter { name, value: "0".into(), allowed: "at least 1" });
        match (self.components, self.inducing, self.starts) {
            (Components::Count(0), ..) => zero("the number of latent dimensions"),
            (_, Some(0), _) => zero("the number of inducing points"),
            (_, _, 0) => zero("the number of starts"),
            _ => Ok(()),
        }
    }

    fn fit_source(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<Fit<LatentProcess>> {
        match (self.method, self.form) {
            (GplvmMethod::Bayes, _) => self.fit_bound(source, control),
            (GplvmMethod::Map, LatentForm::Rbf) => self.fit_exact(source, control),
            (GplvmMethod::Map, LatentForm::Linear) => self.fit_dual(source, control),
        }
    }
}

impl Family for Gplvm {
    fn kind(&self) -> &'static Kind {
        &kind::GPLVM
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

    fn with_start(&self, _: &AnyModel) -> Result<Arc<dyn Family>> {
        Err(no_warm_start("none: a GP-LVM starts from PPCA of the rows"))
    }

    /// The bound finds by itself which dimensions matter.
    fn chooser(&self) -> Chooser {
        Chooser::Fit
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    /// Moments tell planes, not curved surfaces.
    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        let (name, value) = ("the data of a GP-LVM", "moments, or rows that pass once".into());
        let allowed = "rows that can be read again, because a covariance does not tell curved surfaces";
        Err(Error::Parameter { name, value, allowed })
    }
}

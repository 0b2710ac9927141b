//! Independent component analysis: PPCA's latent space, turned to sources that are independent.

mod fit;
mod report;
mod sources;
mod whitened;

pub(crate) use whitened::Whitening;

use std::str::FromStr;
use std::sync::Arc;

pub use report::IcaReport;

use super::run::run_options;
use super::{Family, Fit, Run, explained, with_threads};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::evidence::{Contrast, Moments};
use crate::linalg::Mat;
use crate::model::{AnyModel, IndependentComponents, Kind, LinearGaussian, kind};

/// Starts when nobody says how many.
const STARTS: usize = 5;
/// Limit on the steps when nobody gives one.
const MAX_ITERATIONS: usize = 500;

/// How sources are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IcaMethod {
    /// The orthogonal turn of largest likelihood, by Picard-O \[ACG18\]. Ends where the largest entry of the
    /// gradient is below the tolerance.
    Picard {
        /// Whether sources may have light tails too.
        extended: bool,
    },
    /// The same without the constraint that sources are uncorrelated over the rows \[BS95, LGS99\].
    Infomax {
        /// Whether sources may have light tails too.
        extended: bool,
    },
    /// The fixed-point iteration \[H99\]. Ends where a step turns no direction by more than the tolerance, in
    /// radians.
    FastIca {
        /// What measures how far from normal a source is.
        contrast: Contrast,
        /// Whether sources are found one after the other.
        deflation: bool,
    },
}

impl Default for IcaMethod {
    fn default() -> Self {
        Self::Picard { extended: true }
    }
}

impl IcaMethod {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Picard { .. } => "picard",
            Self::Infomax { .. } => "infomax",
            Self::FastIca { .. } => "fastica",
        }
    }
}

impl FromStr for IcaMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "picard" => Ok(Self::Picard { extended: true }),
            "infomax" => Ok(Self::Infomax { extended: true }),
            "fastica" => Ok(Self::FastIca { contrast: Contrast::default(), deflation: false }),
            _ => {
                let (name, value) = ("the method", text.into());
                Err(Error::Parameter { name, value, allowed: "picard, infomax or fastica" })
            }
        }
    }
}

/// Independent component analysis.
///
/// PPCA finds the plane and the noise; the turn of its latent space that makes the coordinates of the rows as
/// independent as they can be gives sources. Sources have variance 1, stand in descending order of what they add
/// to the variance, and have their largest loading positive.
///
/// ```
/// use covary::data::Rows;
/// // Two independent saw teeth, mixed.
/// let saw = |i: usize, period: usize| (i % period) as f64 / period as f64 - 0.5;
/// let cells: Vec<f64> = (0..700)
///     .flat_map(|i| {
///         let (a, b) = (saw(i, 7), saw(i, 11));
///         [2.0 * a + b, a - 1.0 * b]
///     })
///     .collect();
/// let fit = covary::Ica::new(2).fit(Rows::from_slice(&cells, 2)?)?;
/// let mixing = fit.model.mixing();
/// assert!((mixing[(0, 0)] / mixing[(1, 0)] - 2.0).abs() < 0.1);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ica {
    components: Components,
    method: IcaMethod,
    noise: bool,
    starts: usize,
    begin: Option<Begin>,
    stays: bool,
    whitened: bool,
    run: Run,
}

/// Where a fit begins instead of at random.
#[derive(Debug, Clone)]
enum Begin {
    /// At an unmixing matrix of whitened coordinates (q × q).
    Matrix(Mat<f64>),
    /// At the sources of a model.
    Model(Box<IndependentComponents>),
}

impl Ica {
    /// So many sources (`5`), or as many as explain a share of the variance (`0.9`).
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            method: IcaMethod::default(),
            noise: true,
            starts: STARTS,
            begin: None,
            stays: false,
            whitened: false,
            run: Run::default(),
        }
    }

    /// How sources are found; Picard-O by default.
    pub fn method(mut self, method: IcaMethod) -> Self {
        self.method = method;
        self
    }

    /// Whether the model has PPCA's noise, which is so by default. Without, a row of the plane is mixed from its
    /// sources exactly, and the mixing matrix has the pseudo-inverse of the unmixing matrix; there is no density
    /// unless there are as many sources as features.
    pub fn noise(mut self, noise: bool) -> Self {
        self.noise = noise;
        self
    }

    /// How many random starts are tried; 5 by default. The best likelihood wins, and the others say how stable
    /// each source is.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = starts;
        self
    }

    /// One start, from this unmixing matrix of whitened coordinates (q × q), made orthogonal unless sources are found one
    /// after the other: coordinates are the principal components in order, divided by their standard deviations.
    pub fn start(mut self, unmixing: Mat<f64>) -> Self {
        self.begin = Some(Begin::Matrix(unmixing));
        self
    }

    /// Takes this unmixing matrix of whitened coordinates (q × q), which was found elsewhere, as it is: nothing is
    /// searched. For contrast functions of your own.
    pub fn unmixing(self, unmixing: Mat<f64>) -> Self {
        Self { stays: true, ..self.start(unmixing) }
    }

    /// Takes rows as they are for whitened ones: mean 0 and covariance I is not looked after, and there are as
    /// many sources as features.
    pub fn whitened(mut self, whitened: bool) -> Self {
        self.whitened = whitened;
        self
    }

    run_options! {
        /// When the search ends; 1e-7 by default. Each method says what it measures.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<IndependentComponents>> {
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
    ) -> Result<Fit<IndependentComponents>> {
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
        if self.starts == 0 {
            let (name, value) = ("the number of starts", "0".into());
            return Err(Error::Parameter { name, value, allowed: "at least 1" });
        }
        let IcaMethod::FastIca { contrast: Contrast::LogCosh { alpha }, .. } = self.method else {
            return Ok(());
        };
        match (1.0..=2.0).contains(&alpha) {
            true => Ok(()),
            false => {
                let (name, value) = ("alpha of log cosh", alpha.to_string());
                Err(Error::Parameter { name, value, allowed: "between 1 and 2" })
            }
        }
    }
}

impl Family for Ica {
    fn kind(&self) -> &'static Kind {
        &kind::ICA
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
        let model = match start.downcast_ref::<IndependentComponents>() {
            Some(model) => model.clone(),
            None => unturned(start.with_loadings()?.factors().gaussian())?,
        };
        Ok(Arc::new(Self { begin: Some(Begin::Model(Box::new(model))), ..self.clone() }))
    }

    fn fit_rows(&self, rows: &dyn crate::data::RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    /// Moments tell how rows vary, not how far from normal they are.
    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        let (name, value) = ("the data of independent components", "moments, or rows that pass once".into());
        let allowed = "rows that can be read again, because a covariance does not tell sources apart";
        Err(Error::Parameter { name, value, allowed })
    }
}

/// The latent variables of a model as sources.
fn unturned(gaussian: &LinearGaussian) -> Result<IndependentComponents> {
    let q = gaussian.n_latent();
    IndependentComponents::new(gaussian.clone(), Mat::identity(q, q))
}

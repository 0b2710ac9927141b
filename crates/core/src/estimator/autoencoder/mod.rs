//! Autoassociative networks: options, a start from PCA, training, and components in order.

mod fit;
mod report;
mod start;
mod surface;

use std::str::FromStr;
use std::sync::Arc;

pub use report::NetworkReport;

use super::family::no_warm_start;
use super::run::run_options;
use super::{Family, Fit, Run, Solver, explained, with_threads};
use crate::algorithm::Components;
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::model::{AnyModel, AutoassociativeNetwork, Kind, kind};

/// Limit on the steps when nobody gives one.
const MAX_ITERATIONS: usize = 1000;
/// Weight decay when nobody gives one.
const ALPHA: f64 = 1e-3;

/// What hidden units do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// They bend: tanh.
    #[default]
    Tanh,
    /// There are none: the network is linear, and finds PCA's plane \[BH89\].
    Linear,
}

impl Activation {
    /// As people type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tanh => "tanh",
            Self::Linear => "linear",
        }
    }
}

impl FromStr for Activation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "tanh" => Ok(Self::Tanh),
            "linear" => Ok(Self::Linear),
            _ => {
                let (name, value) = ("the activation", text.into());
                Err(Error::Parameter { name, value, allowed: "tanh or linear" })
            }
        }
    }
}

/// An autoassociative network (autoencoder): rows → a few latent variables → rows, both ways along a surface that may
/// be bent (PRML, section 12.4.2).
///
/// Decoder x̂ = μ + Wz + B tanh(Az + b) and encoder z = Vx + G tanh(Ex + e) begin as PCA: B and G are 0 at the start, and
/// the objective, the mean of ½‖x − x̂‖² with a decay of all weights towards the start, only falls from there. Rows are
/// seen around their mean in one unit, the root of the mean variance of the features, so that decay has no unit;
/// features of different kinds want [`Scale::Unit`](crate::Scale).
///
/// Without an encoder the latent variables of each row are those of the largest posterior probability, and the
/// objective is the log-likelihood of the observed cells by Laplace's approximation: nonlinear PPCA. Rows with missing
/// values are fitted that way, whether an encoder was asked for or not.
///
/// A tenth of the rows (without an encoder: of the cells) is hidden from the fit, where there are at least a hundred
/// rows. The fit ends when they are predicted no better, and the network that predicted them best is kept.
///
/// ```
/// use covary::Autoencoder;
/// use covary::data::Rows;
/// use covary::model::Encode;
///
/// // Most of a circle: one number tells where a row is, but not along a line.
/// let cells: Vec<f64> = (0..300)
///     .flat_map(|i| {
///         let angle = 5.0 * i as f64 / 300.0;
///         [angle.cos(), angle.sin()]
///     })
///     .collect();
/// let rows = Rows::from_slice(&cells, 2)?;
/// let fit = Autoencoder::new(1).fit(&rows)?;
/// assert!(fit.report.network().unwrap().explained > 0.95);
/// assert_eq!(fit.model.encode(rows.source())?.ncols(), 1);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Autoencoder {
    components: Components,
    hidden: Option<usize>,
    activation: Activation,
    encoder: bool,
    alpha: f64,
    early_stopping: Option<bool>, // unless told, where there is an encoder
    solver: Solver,
    run: Run,
}

impl Autoencoder {
    /// So many latent variables, or as many as PCA needs for a share of the variance.
    pub fn new(components: impl Into<Components>) -> Self {
        Self {
            components: components.into(),
            hidden: None,
            activation: Activation::default(),
            encoder: true,
            alpha: ALPHA,
            early_stopping: None,
            solver: Solver::Auto,
            run: Run::default(),
        }
    }

    /// Hidden units of the encoder and of the decoder; √n by default, between 2 and 50.
    pub fn hidden(self, units: usize) -> Self {
        Self { hidden: Some(units), ..self }
    }

    /// What hidden units do; tanh by default.
    pub fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Whether there is an encoder, which is so by default where no cell is missing.
    pub fn encoder(self, encoder: bool) -> Self {
        Self { encoder, ..self }
    }

    /// Decay of the weights towards PCA; 0.001 by default.
    pub fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    /// Whether a part of the data is hidden from the fit and ends it, where there are at least a hundred rows; so by default
    /// where there is an encoder. Without one the objective is a likelihood, and the few cells that are left of a row may
    /// lie near several turns of the surface: of a helix early stopping kept PCA.
    pub fn early_stopping(self, early_stopping: bool) -> Self {
        Self { early_stopping: Some(early_stopping), ..self }
    }

    /// lbfgs (all rows at once), adam (batches) or automatically: adam where rows times weights exceed 1e8.
    pub fn solver(self, solver: Solver) -> Self {
        Self { solver, ..self }
    }

    run_options! {
        /// The search ends when ten steps together lower the objective by less than this share of it (without an
        /// encoder: nats for each cell); 1e-4 by default.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<AutoassociativeNetwork>> {
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
    ) -> Result<Fit<AutoassociativeNetwork>> {
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
        let wrong = |name, value: String, allowed| Err(Error::Parameter { name, value, allowed });
        if self.components.count() == Some(0) {
            return wrong("the number of latent variables", "0".into(), "at least 1");
        }
        if self.hidden == Some(0) {
            let allowed = "at least 1; a network without hidden units is activation linear";
            return wrong("the number of hidden units", "0".into(), allowed);
        }
        if self.hidden.is_some() && self.activation == Activation::Linear {
            let allowed = "left out with activation linear, which has no hidden units";
            return wrong("the number of hidden units", "given".into(), allowed);
        }
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return wrong("alpha", self.alpha.to_string(), "finite and not negative");
        }
        match self.solver {
            Solver::Auto | Solver::Lbfgs | Solver::Adam => Ok(()),
            other => wrong("the solver", other.name().into(), "auto, lbfgs or adam"),
        }
    }
}

impl Family for Autoencoder {
    fn kind(&self) -> &'static Kind {
        &kind::AUTOENCODER
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
        Err(no_warm_start("left out: a network starts at PCA"))
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    /// Moments tell a plane, not how rows bend away from it.
    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        let (name, value) = ("the data of a network", "moments, or rows that pass once".into());
        let allowed = "rows that can be read again, because a covariance does not tell how rows bend";
        Err(Error::Parameter { name, value, allowed })
    }
}

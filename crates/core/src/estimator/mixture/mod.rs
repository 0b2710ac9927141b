//! Mixtures of PPCA and of factor analysers: options, the growth of the number of components, and the fit.

mod apart;
mod clusters;
mod fit;
mod grow;
mod moves;
mod online;
mod own_latent;
mod path;
mod random_starts;
mod report;
mod search;

use std::sync::Arc;
use std::time::Instant;

use super::online_fit::of_kind;
use super::run::run_options;
use super::{Chooser, Family, Fit, Groups, OnlineFit, Run, explained, with_threads};
use crate::algorithm::Components;
use crate::algorithm::mixture::NoiseModel;
use crate::control::Control;
use crate::data::{RowSource, Rows};
use crate::error::{Error, Result};
use crate::evidence::Moments;
use crate::model::{AnyModel, Kind, Mixture, kind};

pub(crate) use path::GrownMixture;
pub use report::{MixtureReport, NumberOfGroups, VariationalReport};
pub(crate) use search::{rows_to_choose, sample};

/// Rows that the prior counts as in each component.
const PRIOR_ROWS: f64 = 1.0;

/// A mixture of PPCA, or with [`diagonal`](Self::diagonal) noise of factor analysers, by maximum likelihood:
/// $p(x) = \sum_k \pi_k\, N(x \mid \mu_k, W_k W_k^\top + \Psi_k)$ \[TB99b, GH96\].
///
/// Groups that lie apart are found from clusters of the rows. Otherwise the number of components grows one by one:
/// each is split along its leading axes, short runs show which split is best, and at the end components are split
/// and merged as long as that gains. A prior worth one row
/// keeps components from shrinking onto a few rows. Rows may have missing values.
///
/// ```
/// use covary::MixturePpca;
/// use covary::data::Rows;
/// use covary::model::Assign;
///
/// // Two groups of four rows.
/// let cells = [0.0, 0.1, 1.0, 1.1, 2.0, 1.9, 3.0, 3.1, 9.0, 0.2, 8.0, 1.0, 7.1, 2.0, 6.0, 3.1];
/// let rows = Rows::from_slice(&cells, 2)?;
/// let fit = MixturePpca::new(2, 1).fit(&rows)?;
/// let groups = fit.model.assign(rows.source())?;
/// assert_eq!(groups[..4], [groups[0]; 4]);
/// assert_eq!(groups[4..], [1 - groups[0]; 4]);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MixturePpca {
    groups: Groups,
    latent: LatentVariables,
    noise: NoiseModel,
    prior: Option<f64>,
    variational: bool,
    start: Option<Mixture>,
    random_starts: usize,
    run: Run,
}

/// How many latent variables each component has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatentVariables {
    /// Two, or less where there are fewer features.
    Usual,
    /// So many.
    Count(usize),
    /// As many as are best, for each component by itself.
    Chosen,
}

impl MixturePpca {
    /// So many components, each with so many latent variables. Of ranges the Bayesian information criterion
    /// chooses. [`Components::All`] is two latent variables, or less where there are fewer features, and
    /// [`Components::Auto`] as many as are best, for each component by itself.
    pub fn new(groups: impl Into<Groups>, latent: impl Into<Components>) -> Self {
        let noise = NoiseModel { diagonal: false, shared: false };
        let (groups, latent) = (groups.into(), LatentVariables::of(latent.into()));
        let (prior, variational, start, random_starts) = (Some(PRIOR_ROWS), false, None, 0);
        Self { groups, latent, noise, prior, variational, start, random_starts, run: Run::default() }
    }

    /// Whether each feature has a noise variance of its own: factor analysers instead of PPCA.
    pub fn diagonal(mut self, diagonal: bool) -> Self {
        self.noise.diagonal = diagonal;
        self
    }

    /// Whether the noise is the same in all components.
    pub fn shared_noise(mut self, shared: bool) -> Self {
        self.noise.shared = shared;
        self
    }

    /// How many rows the prior counts as in each component, 1 by default; `None` for maximum likelihood
    /// alone, where a component that shrinks onto a few rows is an error.
    pub fn prior(mut self, rows: Option<f64>) -> Self {
        self.prior = rows;
        self
    }

    /// Whether parameters have distributions, and the highest bound on the evidence decides how many
    /// components and latent variables are kept, instead of maximum likelihood \[GB00\].
    ///
    /// The numbers given are then the most that may be kept; without a number of latent variables it is as many
    /// as the rows allow, up to 12. The noise is isotropic, and each component has its own. The model's density
    /// includes how well means and loadings are known.
    pub fn variational(mut self, variational: bool) -> Self {
        self.variational = variational;
        self
    }

    /// Where the fit starts, instead of growing: a mixture of the same features.
    pub fn start(mut self, mixture: Mixture) -> Self {
        self.start = Some(mixture);
        self
    }

    /// Random starts, of ten steps each, that give a second opinion on what growing has found; none by default.
    /// Where the best optimum is rare, many of them may find it.
    pub fn random_starts(mut self, starts: usize) -> Self {
        self.random_starts = starts;
        self
    }

    run_options! {
        /// Nats per row of the objective that may be left to gain, extrapolated; 1e-8 by default.
    }

    /// Fits the rows.
    ///
    /// # Errors
    /// When the options make no sense, or the data do not allow them.
    pub fn fit<'a>(&self, rows: impl Into<Rows<'a>>) -> Result<Fit<Mixture>> {
        self.fit_with(rows, &Control::new())
    }

    /// Fits the rows under the eyes of a caller.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), and [`Error::Interrupted`].
    pub fn fit_with<'a>(&self, rows: impl Into<Rows<'a>>, control: &Control<'_>) -> Result<Fit<Mixture>> {
        self.check()?;
        let (rows, started) = (rows.into(), Instant::now());
        let source = rows.source();
        let fitted = with_threads(self.run.threads, || self.fit_source(source, control, started));
        fitted.map_err(|e| explained(e, source, control))
    }

    /// What makes no sense whatever the data.
    fn check(&self) -> Result<()> {
        self.run.check()?;
        self.groups.check()?;
        let other_noise = self.noise.diagonal || self.noise.shared;
        let refused =
            |name, value: &str, allowed| Err(Error::Parameter { name, value: value.into(), allowed });
        match self.prior {
            _ if self.variational && other_noise => {
                let noise = if self.noise.diagonal { "diagonal" } else { "shared" };
                refused(
                    "the noise of a mixture by variational Bayes",
                    noise,
                    "isotropic, of each component its own",
                )
            }
            None if self.variational => {
                refused("the prior of a mixture by variational Bayes", "none", "a number of rows")
            }
            Some(rows) if !(rows.is_finite() && rows > 0.0) => {
                let (name, value) = ("the number of rows that the prior counts as", rows.to_string());
                Err(Error::Parameter { name, value, allowed: "finite and positive" })
            }
            _ => Ok(()),
        }
    }
}

impl LatentVariables {
    /// A share of the variance has no meaning here, because components differ: what is usual stands for it.
    fn of(components: Components) -> Self {
        match components {
            Components::Count(q) => Self::Count(q),
            Components::Auto | Components::Evidence => Self::Chosen,
            Components::All | Components::Fraction(_) => Self::Usual,
        }
    }
}

impl Family for MixturePpca {
    fn kind(&self) -> &'static Kind {
        &kind::MIXTURE
    }

    fn components(&self) -> Components {
        match self.latent {
            LatentVariables::Count(q) => Components::Count(q),
            LatentVariables::Usual => Components::All,
            LatentVariables::Chosen => Components::Auto,
        }
    }

    fn with_components(&self, components: Components) -> Arc<dyn Family> {
        // "All" is how a fit is told that it chooses by itself.
        let latent = match (self.latent, components) {
            (LatentVariables::Chosen, Components::All) => LatentVariables::Chosen,
            (_, components) => LatentVariables::of(components),
        };
        Arc::new(Self { latent, ..self.clone() })
    }

    fn how(&self) -> Run {
        self.run
    }

    fn with_run(&self, run: Run) -> Arc<dyn Family> {
        Arc::new(self.clone().run(run))
    }

    fn with_start(&self, start: &AnyModel) -> Result<Arc<dyn Family>> {
        let Some(mixture) = start.downcast_ref::<Mixture>() else {
            let (name, value) = ("the start of a mixture", start.kind().title.into());
            return Err(Error::Parameter { name, value, allowed: "a mixture" });
        };
        Ok(Arc::new(self.clone().start(mixture.clone())))
    }

    fn chooser(&self) -> Chooser {
        Chooser::Fit
    }

    fn fit_rows(&self, rows: &dyn RowSource, control: &Control<'_>) -> Result<Fit<AnyModel>> {
        Ok(self.fit_with(rows, control)?.into())
    }

    fn fit_moments(&self, _: &Moments, _: &Control<'_>) -> Result<Fit<AnyModel>> {
        let (name, value) = ("the data of a mixture", "moments".into());
        Err(Error::Parameter { name, value, allowed: "rows: moments do not tell groups" })
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
}

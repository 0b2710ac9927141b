//! Fits of rows with missing values: a first pass that sees what is missing, a start, then EM in passes.

use super::growth::{Growth, IncompleteSummary};
use super::{MissingCells, Plan, Ppca, Solver, Spectral};
use crate::algorithm::{Components, Journey, Stop, em, start};
use crate::control::Control;
use crate::data::RowSource;
use crate::error::{Error, Result};
use crate::evidence::{AvailableCases, Census, Found, Margins, Moments, Pairwise, Survey, gather};
use crate::expectation::LatentParameters;
use crate::linalg::comparable;
use crate::model::LinearGaussian;
use crate::spectrum::Spectrum;

/// Features for which the covariance of all pairs is worth its time and memory.
pub(super) const PAIRWISE_FEATURES: usize = 1000;
/// The same when only observed cells are stored: each pass costs little, the pairs of a row a lot.
const PAIRWISE_OBSERVED: usize = 256;
/// Nats per row that may be left to gain.
pub(super) const TOLERANCE: f64 = 1e-8;
/// Above this share of missing cells the likelihood has many maxima.
const MOSTLY_MISSING: f64 = 0.5;
/// Nats per row left to gain at which the next component joins.
pub(super) const STAGE_TOLERANCE: f64 = 1e-4;
/// Bytes per pair of features while available cases are collected.
const PAIR_BYTES: usize = 3 * 8 * 16;

/// What a fit with missing values gives.
pub(super) struct Incomplete {
    pub(super) spectrum: Spectrum,
    pub(super) journey: Journey,
    pub(super) holes: MissingCells,
    pub(super) plan: Plan,
}

/// What the first pass has seen: pairs of features or, when these are too many, each by itself.
enum FirstPassEvidence {
    Complete(AvailableCases, Moments),
    Pairs(AvailableCases),
    Features(Census, Margins),
}

impl FirstPassEvidence {
    fn census(&self) -> &Census {
        match self {
            Self::Complete(cases, _) | Self::Pairs(cases) => &cases.census,
            Self::Features(census, _) => census,
        }
    }

    /// Squared standard error of the mean of a feature: the variance of all cells, each about its feature's
    /// mean, over their number.
    fn error_of_means(&self) -> f64 {
        let (weights, variances) = match self {
            Self::Complete(cases, _) | Self::Pairs(cases) => (&cases.weights[..], cases.variances()),
            Self::Features(_, margins) => (margins.weight(), margins.variance()),
        };
        let cells = weights.iter().sum::<f64>();
        let share = |(weight, variance): (&f64, &f64)| weight / cells * variance;
        weights.iter().zip(&variances).map(share).sum::<f64>() / (cells / weights.len() as f64)
    }
}

/// Where EM starts and what is known about the rows then.
pub(super) struct StartingPoint {
    pub(super) census: Census,
    pub(super) unseen_pairs: Option<usize>,
    pub(super) parameters: LatentParameters,
    /// Squared standard error of the mean of a feature, all taken together.
    pub(super) error_of_means: f64,
    pub(super) passes: usize,
    /// What the first pass has seen of pairs of features.
    pub(super) cases: Option<AvailableCases>,
}

impl StartingPoint {
    /// Variance, in units of the parameters, below which noise is rounding.
    pub(super) fn floor(&self) -> f64 {
        self.parameters.rounding(self.census.rows())
    }
}

impl<M> Spectral<M> {
    /// Whether the pairs of features are few enough to look at all of them.
    pub(super) fn pairs_fit(&self, source: &dyn RowSource) -> bool {
        let p = source.n_features();
        let most = if source.observed_only() { PAIRWISE_OBSERVED } else { PAIRWISE_FEATURES };
        p <= most && PAIR_BYTES.saturating_mul(p * p) <= self.run.bytes()
    }

    /// Where EM starts, from the rows alone.
    pub(super) fn begin_incomplete(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<StartingPoint> {
        let seen = self.first_look(source, control)?;
        self.begin_from(seen, source, control)
    }

    /// The same after a pass that has seen the available cases.
    pub(super) fn begin_available(
        &self,
        cases: AvailableCases,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<StartingPoint> {
        self.begin_from(FirstPassEvidence::Pairs(cases), source, control)
    }

    /// The first pass.
    fn first_look(&self, source: &dyn RowSource, control: &Control<'_>) -> Result<FirstPassEvidence> {
        let p = source.n_features();
        if !self.pairs_fit(source) {
            let (census, margins) = gather(source, || Survey::empty(p), control)?.finish()?;
            return Ok(FirstPassEvidence::Features(census, margins));
        }
        Ok(match gather(source, || Pairwise::empty(p), control)?.finish()? {
            Found::Incomplete(cases) => FirstPassEvidence::Pairs(cases),
            Found::Complete(moments) => FirstPassEvidence::Complete(AvailableCases::from(&moments), moments),
        })
    }

    fn begin_from(
        &self,
        seen: FirstPassEvidence,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<StartingPoint> {
        let error_of_means = seen.error_of_means();
        let from_cases = |cases| start::from_available_cases(cases, self.components, self.run.seed);
        let (cases, (found, passes)) = match seen {
            FirstPassEvidence::Complete(cases, moments) => {
                let found = from_cases(&cases)?;
                let begin = self.closed_form(&cases, moments, found, source, control)?;
                (cases, begin)
            }
            FirstPassEvidence::Pairs(cases) => {
                let found = from_cases(&cases)?;
                (cases, (found, 1))
            }
            FirstPassEvidence::Features(census, margins) => {
                let features = (&census, &margins);
                let (found, passes) =
                    start::from_filled_rows(source, features, self.components, self.run.seed, control)?;
                let (parameters, unseen_pairs) = (self.warm(found)?, None);
                let passes = passes + 1;
                let begin =
                    StartingPoint { census, unseen_pairs, parameters, error_of_means, passes, cases: None };
                return Ok(begin);
            }
        };
        let (census, unseen_pairs) = (cases.census.clone(), Some(cases.unseen_pairs));
        let parameters = self.warm(found)?;
        self.check_evidence(&parameters)?;
        let cases = Some(cases);
        Ok(StartingPoint { census, unseen_pairs, parameters, error_of_means, passes, cases })
    }

    /// The start of complete rows whose features differ by orders of magnitude: where the likelihood is
    /// largest, and the passes so far. That of other rows is not known so well, because their covariance need
    /// not be positive.
    fn closed_form(
        &self,
        cases: &AvailableCases,
        moments: Moments,
        found: LatentParameters,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(LatentParameters, usize)> {
        if comparable(cases.variances().into_iter()) {
            return Ok((found, 1));
        }
        let plan = Plan { solver: Solver::Eigen, reason: String::new(), memory: 0 };
        let solved = self.solve_moments(plan, moments, source, control)?;
        let passes = solved.journey.map_or(1, |journey| journey.passes);
        Ok((at_model(&solved.spectrum.ppca()?, &found), passes))
    }

    /// Whether the evidence of as many components as the cells support fits in memory; a number that somebody
    /// asked for is tried.
    fn check_evidence(&self, start: &LatentParameters) -> Result<()> {
        let (p, q) = (start.n_features(), start.n_latent());
        let needed = evidence_bytes(p, q);
        if matches!(self.components, Components::Count(_)) || needed <= self.run.bytes() {
            return Ok(());
        }
        let reason = format!(
            "{q} components of {p} features with missing values need about {} MiB; raise the memory limit or \
             ask for a number of components",
            needed >> 20
        );
        Err(Error::Solver { solver: "em", reason })
    }

    /// The given model as the start, when there is one.
    fn warm(&self, found: LatentParameters) -> Result<LatentParameters> {
        let Some(model) = &self.start else { return Ok(found) };
        let name = "the model to start from";
        let (p, q) = (found.n_features(), found.n_latent());
        if (model.n_features(), model.n_latent()) != (p, q) {
            let value = format!("of {} features and {} components", model.n_features(), model.n_latent());
            let allowed = "of the same features and number of components as the fit";
            return Err(Error::Parameter { name, value, allowed });
        }
        Ok(at_model(model, &found))
    }

    /// To the maximum of the likelihood.
    pub(super) fn iterate(
        &self,
        begin: StartingPoint,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Incomplete> {
        let (found, mut journey) = self.climb(&begin, source, control)?;
        journey.passes += begin.passes;
        let StartingPoint { census, unseen_pairs, parameters, .. } = begin;
        let (p, q) = (parameters.n_features(), parameters.n_latent());
        let spectrum = found.spectrum((census.rows(), census.weight()))?;
        let holes = MissingCells::new(&census, unseen_pairs);
        Ok(Incomplete { spectrum, journey, plan: plan_of(&holes, q, p), holes })
    }

    /// To the maximum near the start; where most cells are missing, one component after the other.
    ///
    /// All components at once then settle in whichever maximum is near. Each joining the optimum of those
    /// before it, in the direction that the start has for it, is a better guide: on ratings of which 93 % are
    /// missing, ten components at once end 2.5 nats lower. It takes twice the passes, most of them of the
    /// smaller fits on the way, which cost less.
    fn climb(
        &self,
        begin: &StartingPoint,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(em::Optimum, Journey)> {
        let tolerance = self.run.tolerance.unwrap_or(TOLERANCE);
        let grow = self.start.is_none() && MissingCells::new(&begin.census, None).share() > MOSTLY_MISSING;
        let first = if grow { 1 } else { begin.parameters.n_latent() };
        let mut growth = Growth::new(begin, first).within(None, self.run.iterations());
        let mut passes = 0;
        loop {
            let last = growth.is_whole();
            let enough = if last { tolerance } else { tolerance.max(STAGE_TOLERANCE) };
            let (found, mut journey) = growth.climb(enough, source, control)?;
            passes += journey.passes;
            if last || journey.stop == Stop::Interrupted {
                journey.passes = passes;
                return Ok((found, journey));
            }
            growth.join(&found);
        }
    }
}

/// A model as a start, in the units of one that was found.
fn at_model(model: &LinearGaussian, found: &LatentParameters) -> LatentParameters {
    let p = model.n_features();
    let noise = (0..p).map(|j| model.noise().of(j)).sum::<f64>() / p as f64;
    let unit = found.scale().of(0);
    // A model without noise cannot learn: what is nearest to it can.
    let noise = if noise > 0.0 { noise } else { found.noise_variance(0) };
    let mut loadings = model.loadings().transpose().to_owned();
    loadings.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
    LatentParameters::in_units(model.mean().to_vec(), &loadings, noise / (unit * unit), unit)
}

/// Why EM, and what it holds in memory.
pub(super) fn plan_of(holes: &MissingCells, q: usize, p: usize) -> Plan {
    let reason = match holes.missing {
        0 => "asked for".into(),
        1 => "1 cell is missing".into(),
        missing => format!("{missing} cells are missing"),
    };
    let pairs = if p <= PAIRWISE_FEATURES { PAIR_BYTES * p * p } else { 0 };
    Plan { solver: Solver::Em, reason, memory: pairs.max(evidence_bytes(p, q)) }
}

/// What the evidence of q components takes during a pass.
fn evidence_bytes(p: usize, q: usize) -> usize {
    16 * 8 * p * (q + 1) * (q + 4) / 2
}

impl Ppca {
    /// Fits that gain one component after the other, up to those asked for or, if they are fewer, those that
    /// the cells support; and what there is to fit.
    pub(crate) fn growth(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<(Growth, IncompleteSummary)> {
        let seen = self.first_look(source, control)?;
        let possible = start::supported(Components::All, seen.census())?;
        let q = self.components.count().map_or(possible, |asked| asked.min(possible));
        let mut limited = self.clone();
        limited.components = Components::Count(q);
        let begin = limited.begin_from(seen, source, control)?;
        let growth = Growth::new(&begin, 1).within(self.run.tolerance, self.run.iterations());
        let StartingPoint { census, unseen_pairs, .. } = begin;
        Ok((growth, IncompleteSummary { holes: MissingCells::new(&census, unseen_pairs), possible }))
    }
}

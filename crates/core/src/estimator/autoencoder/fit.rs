//! The stages of a fit of a network: PPCA, a start that is PCA, training, and the latent variables in order.

use std::sync::Arc;
use std::time::Instant;

use super::start::Start;
use super::surface::{Ordered, ordered};
use super::{Activation, Autoencoder, MAX_ITERATIONS, NetworkReport};
use crate::algorithm::network::{Adam, Descent, Trained, Training};
use crate::algorithm::{Journey, Limits, Stop, drive};
use crate::blocks::Frame;
use crate::control::Control;
use crate::data::{RowSource, counted_rows};
use crate::error::{Error, Result};
use crate::estimator::{Details, Fit, Plan, Ppca, Report, Run, Solver};
use crate::evidence::HiddenPart;
use crate::memory;
use crate::model::{AutoassociativeNetwork, LinearGaussian, NetworkParts};
use crate::network::Network;
use crate::spectrum::Spectrum;

/// Share of the objective that the last ten steps gain at the end.
const TOLERANCE: f64 = 1e-4;
/// One in so many rows or cells is hidden, where there are at least so many rows.
const HIDDEN_ONE_IN: u64 = 10;
const ROWS_TO_HIDE: usize = 100;
/// Hidden units when nobody says how many, at least and at most.
const HIDDEN_UNITS: (f64, f64) = (2.0, 50.0);
/// Rows times weights above which batches are used.
const MANY: f64 = 1e8;
/// Numbers that a search keeps for each weight: the past of limited-memory BFGS and gradients on their way.
const NUMBERS_PER_WEIGHT: usize = 120;

impl Autoencoder {
    pub(super) fn fit_source(
        &self,
        source: &dyn RowSource,
        control: &Control<'_>,
    ) -> Result<Fit<AutoassociativeNetwork>> {
        let started = Instant::now();
        let run = Run { tolerance: None, max_iterations: None, ..self.run };
        let Fit { model: ppca, report } = Ppca::new(self.components).run(run).fit_with(source, control)?;
        let Some(spectrum) = report.spectrum.clone() else { return Err(Error::NoRows) };
        check_number(&spectrum)?;
        let frame = Arc::new(self.frame(&spectrum)?);
        let incomplete = report.holes.is_some();
        let start = self.start((&spectrum, &ppca), &frame, incomplete)?;
        let plan = self.plan(&start, &report, incomplete)?;
        let begin = ordered(source, &start, &frame, &Control::new())?;
        let (trained, journey) = match report.stop {
            Stop::Interrupted => untrained(&start, Stop::Interrupted),
            _ => self.train(source, &frame, &start, (report.rows, plan.solver), control)?,
        };
        // A caller who asked to stop gets the network as it is, which takes one more pass.
        let end = ordered(source, &trained.network, &frame, &Control::new())?;
        let passes = report.passes + journey.passes + 2;
        let details = self.details(&frame, (&begin, &end), &trained, &journey);
        let model = model_of(&spectrum, &frame, end)?;
        let report = Report {
            plan,
            log_likelihood: None,
            details: Some(Details::Network(details)),
            stop: journey.stop,
            passes,
            trace: journey.trace,
            seconds: started.elapsed().as_secs_f64(),
            spectrum: None,
            ..report
        };
        Ok(Fit { model, report })
    }

    /// Around the mean, in the root of the mean variance.
    fn frame(&self, spectrum: &Spectrum) -> Result<Frame> {
        let p = spectrum.n_features();
        let unit = (spectrum.total_variance() / p as f64).sqrt();
        if !(unit > 0.0 && unit.is_finite() && (1.0 / unit).is_finite()) {
            return Err(Error::Constant);
        }
        Ok(Frame::in_unit(spectrum.mean().to_vec(), &vec![1.0; p], unit))
    }

    fn units(&self, rows: usize) -> usize {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2 and 50")]
        let usual = (rows as f64).sqrt().round().clamp(HIDDEN_UNITS.0, HIDDEN_UNITS.1) as usize;
        match self.activation {
            Activation::Linear => 0,
            Activation::Tanh => self.hidden.unwrap_or(usual),
        }
    }

    fn start(
        &self,
        (spectrum, ppca): (&Spectrum, &LinearGaussian),
        frame: &Arc<Frame>,
        incomplete: bool,
    ) -> Result<Arc<Network>> {
        let (hidden, encoder) =
            (self.units(counted_rows(spectrum.rows(), spectrum.weight())), self.encoder && !incomplete);
        let (p, q) = (spectrum.n_features(), spectrum.n_components());
        memory::check("the weights of the network", &[NUMBERS_PER_WEIGHT, hidden.max(1), 2 * (p + q + 1)])?;
        let start = Start { spectrum, ppca, frame, hidden, encoder, seed: self.run.seed };
        Ok(Arc::new(start.network()))
    }

    /// Which solver, and why.
    fn plan(&self, start: &Network, report: &Report, incomplete: bool) -> Result<Plan> {
        let weights = start.numbers().len();
        let work = report.rows as f64 * weights as f64;
        let how = match (&start.encoder, incomplete) {
            (Some(_), _) => "an encoder",
            (None, true) => {
                "no encoder, because cells are missing: latent variables are searched for each row"
            }
            (None, false) => "no encoder: latent variables are searched for each row",
        };
        let (solver, why) = match self.solver {
            Solver::Auto if work > MANY => (Solver::Adam, "many rows times weights, so in batches"),
            Solver::Auto => (Solver::Lbfgs, "all rows at once"),
            asked => (asked, "asked for"),
        };
        let reason = format!("{why}; {how}");
        let plan = Plan { solver, reason, memory: NUMBERS_PER_WEIGHT * weights * size_of::<f64>() };
        let (most, name) = (self.run.bytes(), "the limit on memory");
        if plan.memory > most {
            let allowed = "more, or fewer hidden units: the weights of the network and the past of the search do not fit";
            return Err(Error::Parameter { name, value: format!("{most} bytes"), allowed });
        }
        plan.check_memory()?;
        Ok(plan)
    }

    fn train(
        &self,
        source: &dyn RowSource,
        frame: &Arc<Frame>,
        start: &Arc<Network>,
        (rows, solver): (usize, Solver),
        control: &Control<'_>,
    ) -> Result<(Trained, Journey)> {
        let early_stopping = self.early_stopping.unwrap_or(start.encoder.is_some());
        let hides = early_stopping && rows >= ROWS_TO_HIDE && start.decoder.n_hidden() > 0;
        let hidden_part = hides.then_some(HiddenPart { one_in: HIDDEN_ONE_IN, seed: self.run.seed });
        // The loss of a network without an encoder is divided by the noise, and so is its decay.
        let decay = if start.encoder.is_some() { self.alpha } else { self.alpha / start.noise };
        let (frame, network) = (Arc::clone(frame), Arc::clone(start));
        let training = Training { rows: source, frame, hidden_part, start: network, decay };
        let limits = Limits {
            tolerance: self.run.tolerance.unwrap_or(TOLERANCE),
            iterations: self.run.max_iterations.unwrap_or(MAX_ITERATIONS),
        };
        let trained = match solver {
            Solver::Adam => {
                Adam::new(training, self.run.seed, control).and_then(|search| drive(search, limits, control))
            }
            _ => Descent::new(&training, control).and_then(|search| drive(search, limits, control)),
        };
        match trained {
            // The start is a network too.
            Err(Error::Interrupted) => Ok(untrained(start, Stop::Interrupted)),
            trained => trained,
        }
    }

    fn details(
        &self,
        frame: &Frame,
        (begin, end): (&Ordered, &Ordered),
        trained: &Trained,
        journey: &Journey,
    ) -> NetworkReport {
        let error = |squares: f64| frame.square(squares).sqrt();
        NetworkReport {
            activation: self.activation.name().into(),
            hidden: end.network.decoder.n_hidden(),
            encoder: end.network.encoder.is_some(),
            weights: end.network.numbers().len(),
            alpha: self.alpha,
            iterations: journey.trace.len(),
            explained: end.explained,
            explained_by_pca: begin.explained,
            noise_variance: frame.square(end.network.noise),
            objective: trained.objective,
            hidden_error: trained.hidden.map(|(before, after)| (error(before), error(after))),
        }
    }
}

/// At most as many latent variables as features, and each along which rows vary.
fn check_number(spectrum: &Spectrum) -> Result<()> {
    let (q, p) = (spectrum.n_components(), spectrum.n_features());
    let varies = |v: &&f64| **v > 0.0 && **v > spectrum.noise_variance();
    let possible = spectrum.eigenvalues().iter().take(q).filter(varies).count();
    match q {
        0 => {
            let (name, value) = ("the number of latent variables", "0".into());
            Err(Error::Parameter { name, value, allowed: "at least 1" })
        }
        _ if q > possible => {
            Err(Error::Components { requested: q, possible, rows: spectrum.rows(), features: p })
        }
        _ => Ok(()),
    }
}

/// The network of the start.
fn untrained(start: &Arc<Network>, stop: Stop) -> (Trained, Journey) {
    let trained = Trained { network: Arc::clone(start), objective: None, hidden: None };
    (trained, Journey { stop, trace: Vec::new(), passes: 0 })
}

fn model_of(spectrum: &Spectrum, frame: &Frame, end: Ordered) -> Result<AutoassociativeNetwork> {
    let Ordered { network, variances, .. } = end;
    AutoassociativeNetwork::new(NetworkParts {
        mean: spectrum.mean().to_vec(),
        scale: vec![1.0; spectrum.n_features()],
        unit: frame.parts().2,
        network,
        variances: variances.iter().map(|v| frame.square(*v)).collect(),
    })
}

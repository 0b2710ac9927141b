//! Robust PPCA: maximum likelihood of a t distribution of scale W Wᵀ + σ²I, by reweighted steps of PPCA.
//!
//! A pass weighs each row by u = (ν + k)/(ν + δ) \[LLT89\]. Complete rows: the closed form of the weighted
//! moments. Rows with missing values: the maximisation step of EM, with the same weights. Dividing by Σ w u
//! where EM divides by Σ w is parameter expansion \[KTV94, LRW98\]: the fixed point is the same, for at it the
//! two are equal, and the way to it shorter.
//!
//! ν is found as τ = 1/ν, which is 0 for the normal distribution and in which the likelihood is smooth there:
//! rows without heavy tails end at ν = ∞ exactly. EM's own step for ν creeps, so each pass tries Newton's in τ
//! first, and the bolder points of an [`Accelerator`] where values are missing. A point that is not better is
//! taken back for that of EM, so the likelihood never falls.

use std::sync::Arc;

use super::coordinates::{Coordinates, InCoordinates};
use super::eigen;
use super::em::MOST_IDLE;
use super::maximise::Maximised;
use super::optimise::{Accelerator, Gains, Local, Metric, Proposal};
use super::prior::Prior;
use super::{Components, Guard, Objective, RowIteration, Step};
use crate::error::{Error, Result};
use crate::evidence::{Moments, StudentEvidence, StudentFound, StudentSums};
use crate::expectation::{LatentParameters, Student};
use crate::linalg::power_of_two;
use crate::spectrum::Spectrum;

/// Below this 1/ν the distribution is normal.
pub(crate) const NORMAL_TAU: f64 = 1e-6;
/// How far 1/ν may go in one step of Newton's: to so many times itself, and a little more.
const FARTHEST: (f64, f64) = (4.0, 0.02);

/// Where the iteration stands.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// μ, W and σ².
    pub(crate) parameters: Arc<LatentParameters>,
    /// ν.
    pub(crate) student: Student,
}

impl Point {
    fn tau(&self) -> f64 {
        1.0 / self.student.dof()
    }
}

/// The iteration.
pub(crate) struct Robust {
    current: Point, // whose evidence the next pass collects
    trial: Option<Trial>,
    best: Option<Best>,
    gains: Gains,
    coordinates: Coordinates,
    accelerator: Accelerator,
    free: bool,     // whether ν is found
    most: f64,      // the largest 1/ν that is found
    complete: bool, // whether no value is missing
    seed: u64,
    floor: f64, // noise below it is rounding, in units
}

/// A bold point that is being tried, and the plain step that is taken when it fails.
struct Trial {
    proposal: Option<Proposal>, // none: Newton's step of ν beside the plain step of the others
    plain: Point,
}

/// The best point so far.
struct Best {
    point: Point,
    objective: f64,
    change: f64, // nats per row that are left to gain
    sums: StudentSums,
}

/// What the iteration has found.
pub(crate) struct RobustOptimum {
    /// μ, W, σ² and ν.
    pub(crate) point: Point,
    /// Log-likelihood of the observed cells; infinite when there is no noise.
    pub(crate) log_likelihood: f64,
    /// The sums at exactly this point.
    pub(crate) sums: StudentSums,
    /// Whether the rows that count lie in the model's plane.
    pub(crate) noiseless: bool,
}

impl RobustOptimum {
    /// The scale as a spectrum, of so many rows and their weight.
    pub(crate) fn spectrum(&self, rows: (usize, f64)) -> Result<Spectrum> {
        let parameters = &self.point.parameters;
        let noise = if self.noiseless { 0.0 } else { parameters.noise_variance(0) };
        let mean = parameters.mean().to_vec();
        Spectrum::of_model(mean, parameters.loadings().as_ref(), noise, rows, self.log_likelihood)
    }
}

/// What a robust iteration is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Whether ν is found; it stays as it is otherwise.
    pub(crate) free: bool,
    /// The least ν that is found.
    pub(crate) least: f64,
    /// Whether no row has a missing value and the p × p moments fit.
    pub(crate) complete: bool,
    /// Of the leading eigenvectors of many features.
    pub(crate) seed: u64,
}

impl Robust {
    /// Starts from the given point. The tolerance of the loop is in nats per row that are left to gain;
    /// `floor` is the variance, in units of the parameters, below which noise is rounding.
    pub(crate) fn new(start: &Point, floor: f64, task: Task) -> Self {
        let least = 0.5 * floor * start.parameters.scale().of(0).powi(2);
        let coordinates = Coordinates::around(&start.parameters, &[least]);
        let parameters = Arc::new(coordinates.bounded((*start.parameters).clone()));
        let Task { free, least, complete, seed } = task;
        Self {
            current: Point { parameters, student: start.student },
            trial: None,
            best: None,
            gains: Gains::default(),
            coordinates,
            accelerator: Accelerator::new(),
            free,
            most: 1.0 / least,
            complete,
            seed,
            floor,
        }
    }

    /// Goes on from a point that is the best so far.
    fn advance(&mut self, sums: StudentSums, found: &StudentFound, objective: f64) -> Result<Step> {
        let next = self.next_tau(&sums);
        let plain_student = if self.free { expected_student(&sums, self.most) } else { self.current.student };
        let (parameters, proposal, promised) = match found {
            StudentFound::Complete(moments) => (self.closed_form(moments)?, None, 0.0),
            StudentFound::Incomplete(latent) => {
                let maximised = Maximised::of(latent, Prior::Flat)?;
                // The step divides all but the noise by Σ w u already.
                let stepped = maximised.parameters().clone().with_noise_times(sums.weight / sums.counted);
                let plain = self.coordinates.bounded(stepped);
                let (proposal, promised) = self.propose(&maximised, &plain, &sums, next)?;
                (plain, proposal, promised)
            }
        };
        let plain = Point { parameters: Arc::new(parameters), student: plain_student };
        let in_tau = 0.5 * sums.slope * (next - self.current.tau());
        let change = self.left_to_gain(objective, promised.max(in_tau)) / sums.weight;
        self.best = Some(Best { point: self.current.clone(), objective, change, sums });
        self.set_out(proposal, plain, next);
        Ok(Step { objective, change })
    }

    /// PPCA's closed form of the weighted moments.
    fn closed_form(&self, moments: &Moments) -> Result<LatentParameters> {
        let q = self.current.parameters.n_latent();
        let spectrum = eigen::solve(moments, Components::Count(q), self.seed)?;
        let unit = self.current.parameters.scale().of(0);
        Ok(self
            .coordinates
            .bounded(of_spectrum(&spectrum, unit, self.floor)?.with_mean_rest(moments.mean_rest().to_vec())))
    }

    /// A bolder point than the plain step, and what the slope along it promises.
    fn propose(
        &mut self,
        maximised: &Maximised<'_>,
        plain: &LatentParameters,
        sums: &StudentSums,
        next: f64,
    ) -> Result<(Option<Proposal>, f64)> {
        let tau = self.current.tau();
        let mut point = self.coordinates.of(&self.current.parameters);
        let mut image = self.coordinates.of(plain);
        let mut gradient = self.coordinates.gradient(maximised, &point);
        point.push(tau);
        image.push(next);
        gradient.push(if self.free && !self.held(sums.slope) { sums.slope } else { 0.0 });
        let local = Local { point, image, gradient };
        let inner = InCoordinates { coordinates: &self.coordinates, maximised };
        let metric = WithTau { inner, information: information(sums), most: self.most };
        let proposal = self.accelerator.propose(&local, &metric)?;
        let slope = proposal.as_ref().map_or(0.0, |to| to.slope).max(local.slope(&local.image).abs());
        Ok((proposal, 0.5 * slope))
    }

    /// Where Newton's step in 1/ν leads, within its bounds.
    fn next_tau(&self, sums: &StudentSums) -> f64 {
        let tau = self.current.tau();
        if !self.free {
            return tau;
        }
        let most = FARTHEST.0 * tau + FARTHEST.1;
        let to = if sums.curvature < 0.0 {
            tau - sums.slope / sums.curvature
        } else if sums.slope > 0.0 {
            most
        } else {
            0.25 * tau
        };
        admitted(to.min(most), self.most)
    }

    /// Whether a bound keeps 1/ν where it is.
    fn held(&self, slope: f64) -> bool {
        let tau = self.current.tau();
        (tau == 0.0 && slope < 0.0) || (tau >= self.most && slope > 0.0)
    }

    /// An estimate of what is left to gain, in nats; `promised` is half of what slopes promise.
    fn left_to_gain(&mut self, objective: f64, promised: f64) -> f64 {
        let before = self.gains.last;
        let gain = self.best.as_ref().map_or(f64::INFINITY, |best| objective - best.objective);
        self.gains.add(gain, objective);
        let rest = if self.complete && self.best.is_some() { self.gains.geometric_rest(before) } else { 0.0 };
        self.gains.last.max(promised).max(rest)
    }

    /// Chooses the point of the next pass: the proposal, Newton's ν beside the plain step, or that alone.
    fn set_out(&mut self, proposal: Option<Proposal>, plain: Point, next: f64) {
        if let Some(proposal) = proposal {
            let (to, tau) = proposal.to.split_at(proposal.to.len() - 1);
            let parameters = Arc::new(self.coordinates.parameters(to));
            let student = if self.free { of_tau(tau[0], self.most) } else { plain.student };
            self.current = Point { parameters, student };
            self.trial = Some(Trial { proposal: Some(proposal), plain });
            return;
        }
        let bold = if self.free { of_tau(next, self.most) } else { plain.student };
        self.current = Point { student: bold, ..plain.clone() };
        self.trial = (bold != plain.student).then_some(Trial { proposal: None, plain });
    }

    /// The trial was worse than the best point by `loss`, more than rounding.
    fn step_back(&mut self, Trial { proposal, plain }: Trial, loss: f64) {
        let shorter = proposal.and_then(|proposal| self.accelerator.reject(proposal, loss));
        match shorter {
            Some(shorter) => self.set_out(Some(shorter), plain, 0.0),
            None => self.current = plain,
        }
    }
}

impl RowIteration for Robust {
    type Evidence = StudentEvidence;
    type Output = RobustOptimum;

    fn objective(&self) -> Objective {
        Objective { name: "log-likelihood", guard: Guard::NeverFalls }
    }

    fn evidence(&self) -> StudentEvidence {
        let Point { parameters, student } = self.current.clone();
        match self.complete {
            true => StudentEvidence::complete_of(parameters, student),
            false => StudentEvidence::incomplete_of(parameters, student),
        }
    }

    fn update(&mut self, evidence: StudentEvidence) -> Result<Step> {
        let objective = evidence.log_likelihood();
        let (sums, found) = evidence.into_parts();
        if sums.weight == 0.0 {
            return Err(Error::NoRows);
        }
        self.gains.rounding = self.current.parameters.rounding_of_likelihood(sums.weight);
        if let (Some(trial), Some(best)) = (self.trial.take(), &self.best) {
            let loss = best.objective - objective;
            if loss.is_nan() || loss > self.gains.rounding_of(objective) {
                let step = Step { objective: best.objective, change: best.change };
                self.step_back(trial, loss);
                return Ok(step);
            }
        }
        self.advance(sums, &found, objective)
    }

    fn converged(&self, tolerance: f64) -> bool {
        self.best.as_ref().is_some_and(|best| {
            let noiseless = best.point.parameters.noise() <= self.floor;
            noiseless || best.change <= tolerance || self.gains.idle >= MOST_IDLE
        })
    }

    fn rounding(&self) -> f64 {
        self.gains.rounding
    }

    fn finish(self) -> Result<RobustOptimum> {
        let Best { point, objective, sums, .. } = self.best.ok_or(Error::Interrupted)?;
        let noiseless = point.parameters.noise() <= self.floor;
        let log_likelihood = if noiseless { f64::INFINITY } else { objective };
        Ok(RobustOptimum { point, log_likelihood, sums, noiseless })
    }
}

/// PPCA's coordinates, and 1/ν as the last.
struct WithTau<'a> {
    inner: InCoordinates<'a>,
    information: f64, // minus the second derivative in 1/ν
    most: f64,        // 1/ν
}

impl Metric for WithTau<'_> {
    fn scale(&self) -> Vec<f64> {
        let mut scale = self.inner.scale();
        scale.push(self.information.sqrt());
        scale
    }

    fn precondition(&self, gradient: &[f64]) -> Vec<f64> {
        let (inner, tau) = gradient.split_at(gradient.len() - 1);
        let mut out = self.inner.precondition(inner);
        out.push(tau[0] / self.information);
        out
    }

    fn admit(&self, from: &Local, to: &mut [f64]) {
        let last = to.len() - 1;
        let without = |v: &[f64]| v[..last].to_vec();
        let inner = Local {
            point: without(&from.point),
            image: without(&from.image),
            gradient: without(&from.gradient),
        };
        self.inner.admit(&inner, &mut to[..last]);
        let most = FARTHEST.0 * from.point[last] + FARTHEST.1;
        to[last] = admitted(to[last].min(most), self.most);
    }
}

/// 1/ν within its bounds; 0 where the distribution is all but normal.
fn admitted(tau: f64, most: f64) -> f64 {
    if tau < NORMAL_TAU { 0.0 } else { tau.min(most) }
}

fn of_tau(tau: f64, most: f64) -> Student {
    Student::new(1.0 / admitted(tau, most)).unwrap_or(Student::NORMAL)
}

/// Minus the second derivative in 1/ν, or about what it would be.
fn information(sums: &StudentSums) -> f64 {
    if sums.curvature < 0.0 { -sums.curvature } else { sums.cells.max(1.0) }
}

/// EM's ν \[LR95\], under the same parameter expansion: c(ν/2) = ln ū − the mean of E ln u.
pub(super) fn expected_student(sums: &StudentSums, most: f64) -> Student {
    let r = sums.log_bias / sums.weight + (sums.counted / sums.weight).ln();
    of_tau(1.0 / Student::of_mean_log_bias(r).dof(), most)
}

/// The parameters of a spectrum, with noise above rounding.
pub(crate) fn of_spectrum(spectrum: &Spectrum, unit: f64, floor: f64) -> Result<LatentParameters> {
    let model = spectrum.ppca()?;
    let mut loadings = model.loadings().transpose().to_owned();
    loadings.col_iter_mut().for_each(|c| c.iter_mut().for_each(|x| *x /= unit));
    let noise = (spectrum.noise_variance() / unit / unit).max(0.5 * floor).max(f64::MIN_POSITIVE);
    Ok(LatentParameters::in_units(spectrum.mean().to_vec(), &loadings, noise, unit))
}

/// A start without components: all directions alike, around the given mean, of the given mean variance.
pub(crate) fn sphere(mean: Vec<f64>, variance: f64) -> LatentParameters {
    let unit = power_of_two(variance.sqrt());
    let loadings = crate::linalg::Mat::zeros(0, mean.len());
    LatentParameters::in_units(mean, &loadings, variance / unit / unit, unit)
}

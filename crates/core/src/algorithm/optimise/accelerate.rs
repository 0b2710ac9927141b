//! Bolder steps than those of a fixed-point iteration that climbs.
//!
//! Anderson's combination of past steps comes first: near the optimum it needs the fewest. But it aims at any
//! fixed point, saddles included, so once it has led astray the quasi-Newton step takes over, which climbs.

use super::QuasiNewton;
use super::anderson::Anderson;
use crate::error::Result;

/// By how much a step that went too far is shortened.
const SHORTENED: std::ops::RangeInclusive<f64> = 0.05..=0.5;

/// What is known at a point x of an iteration x ↦ g(x) that climbs f.
pub(crate) struct Local {
    /// x.
    pub(crate) point: Vec<f64>,
    /// g(x), the plain step.
    pub(crate) image: Vec<f64>,
    /// ∇f(x).
    pub(crate) gradient: Vec<f64>,
}

impl Local {
    /// What f gains on the way to another point, were it linear: (y − x)ᵀ∇f(x).
    pub(crate) fn slope(&self, to: &[f64]) -> f64 {
        let moved = to.iter().zip(&self.point).zip(&self.gradient);
        moved.map(|((to, from), slope)| (to - from) * slope).sum()
    }
}

/// How far coordinates reach.
pub(crate) trait Metric {
    /// A natural length of steps for each coordinate, as its reciprocal.
    fn scale(&self) -> Vec<f64>;
    /// A gradient divided by a guess of the second derivatives of −f.
    fn precondition(&self, gradient: &[f64]) -> Vec<f64>;
    /// Moves a proposed point to where it is allowed.
    fn admit(&self, from: &Local, to: &mut [f64]);
}

/// A point that is hoped to be better than that of the plain step.
pub(crate) struct Proposal {
    from: Vec<f64>,
    /// Where it is.
    pub(crate) to: Vec<f64>,
    /// Of f along the step, at its start; positive.
    pub(crate) slope: f64,
    method: Method,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Anderson,
    QuasiNewton,
    ShortenedQuasiNewton,
}

/// Makes proposals from the points that it has seen, and learns from those that failed.
pub(crate) struct Accelerator {
    anderson: Anderson,
    newton: QuasiNewton,
    method: Method,
    climbs: bool,
}

impl Accelerator {
    /// Anderson's proposals until one of them turns out to be worse.
    pub(crate) fn new() -> Self {
        Self {
            anderson: Anderson::default(),
            newton: QuasiNewton::default(),
            method: Method::Anderson,
            climbs: false,
        }
    }

    /// For functions that are flat near a bound, where steps towards a fixed point lead: a proposal of
    /// Anderson's kind that points downwards is the last one, and quasi-Newton steps are stretched.
    pub(crate) fn climbing() -> Self {
        Self { newton: QuasiNewton::stretching(), climbs: true, ..Self::new() }
    }

    /// Where to go from a point that was accepted, if anywhere but to the plain step.
    pub(crate) fn propose(&mut self, local: &Local, metric: &impl Metric) -> Result<Option<Proposal>> {
        self.newton.observe(&local.point, &local.gradient);
        let method = self.method;
        let found = match method {
            Method::Anderson => self.anderson.propose(&local.point, &local.image, &metric.scale())?,
            _ => self.newton.propose(|v| metric.precondition(v)),
        };
        let Some(mut to) = found else { return Ok(None) };
        metric.admit(local, &mut to);
        let slope = local.slope(&to);
        if self.climbs && method == Method::Anderson && slope <= 0.0 {
            self.method = Method::QuasiNewton; // it aims at a saddle
        }
        Ok((slope > 0.0).then(|| Proposal { from: local.point.clone(), to, slope, method }))
    }

    /// The proposal was worse than where it came from by `loss`: what to try next, or `None` for the plain
    /// step.
    pub(crate) fn reject(&mut self, proposal: Proposal, loss: f64) -> Option<Proposal> {
        match proposal.method {
            Method::QuasiNewton => return Some(proposal.shortened(loss)),
            Method::ShortenedQuasiNewton => self.newton = self.newton.fresh(),
            Method::Anderson => self.method = Method::QuasiNewton,
        }
        None
    }
}

impl Proposal {
    /// At the maximum of the parabola through what is known along the step: value and slope s at its start
    /// and the loss at its end, t = s / 2(s + loss).
    fn shortened(mut self, loss: f64) -> Self {
        let t = 0.5 * self.slope / (self.slope + loss);
        let t = if t.is_nan() { 0.0 } else { t }.clamp(*SHORTENED.start(), *SHORTENED.end());
        self.to.iter_mut().zip(&self.from).for_each(|(to, from)| *to = from + t * (*to - from));
        Self { method: Method::ShortenedQuasiNewton, ..self }
    }
}

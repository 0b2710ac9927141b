//! Picard: the unmixing matrix of largest likelihood, by limited-memory BFGS with the second derivatives of
//! independent sources as a first guess \[ACG18, ACG18b\].

use std::sync::Arc;

use super::geometry::Place;
use super::{Geometry, Search, Unmixing};
use crate::algorithm::optimise::{QuasiNewton, halved};
use crate::algorithm::{Guard, Iteration, Objective, Step};
use crate::control::Control;
use crate::error::Result;
use crate::linalg::{Mat, dot};

/// How often a step is halved before it is given up.
const HALVINGS: usize = 10;
/// A change of the loss below this share of it is rounding: gradients then say which point is better.
const ROUNDING: f64 = 1e-13;
/// So often may a source turn out to have other tails than was thought; a nearly normal one would go on for ever.
const SIGN_CHANGES: usize = 30;

/// The search, at the point where it stands.
pub(crate) struct Picard<'a> {
    search: Search<'a>,
    geometry: Geometry,
    at: Place,
    newton: QuasiNewton,
    walked: Vec<f64>, // the sum of all relative steps, in which the past is remembered
    sign_changes: usize,
    passes: usize,
}

impl<'a> Picard<'a> {
    /// At a start, after a pass that looks at it.
    pub(crate) fn new(
        search: Search<'a>,
        geometry: Geometry,
        start: Arc<Mat<f64>>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let means = search.measure(&start, control)?;
        let signs = geometry.signs(&start, &means);
        let at = geometry.place(start, means, signs)?;
        let walked = vec![0.0; geometry.coordinates(&at.gradient).len()];
        let mut picard =
            Self { search, geometry, at, newton: QuasiNewton::default(), walked, sign_changes: 0, passes: 1 };
        picard.observe();
        Ok(picard)
    }

    /// The optimiser maximises, the loss is minimised.
    fn observe(&mut self) {
        let uphill: Vec<f64> = self.geometry.coordinates(&self.at.gradient).iter().map(|g| -g).collect();
        self.newton.observe(&self.walked, &uphill);
    }

    /// Where the past says to go, if that is downhill.
    fn remembered(&self) -> Option<Vec<f64>> {
        let (geometry, q) = (self.geometry, self.at.matrix.nrows());
        let divide =
            |g: &[f64]| geometry.coordinates(&geometry.preconditioned(&self.at, &geometry.matrix(q, g)));
        let next = self.newton.propose(divide)?;
        let step: Vec<f64> = next.iter().zip(&self.walked).map(|(to, from)| to - from).collect();
        let downhill = dot(&step, &geometry.coordinates(&self.at.gradient)) < 0.0;
        downhill.then_some(step)
    }

    /// The gradient divided by the second derivatives.
    fn plain(&self) -> Vec<f64> {
        let step = self.geometry.preconditioned(&self.at, &self.at.gradient);
        self.geometry.coordinates(&step).iter().map(|x| -x).collect()
    }

    /// The first point along a step, halved again and again, that is better.
    fn along(&mut self, step: &[f64], control: &Control<'_>) -> Result<Option<(f64, Place)>> {
        let (geometry, q) = (self.geometry, self.at.matrix.nrows());
        let mut passes = 0;
        let found = halved(1.0, HALVINGS, |length| {
            let part: Vec<f64> = step.iter().map(|x| length * x).collect();
            let moved = Arc::new(geometry.moved(&self.at.matrix, &geometry.matrix(q, &part))?);
            let means = self.search.measure(&moved, control)?;
            passes += 1;
            // A matrix so near to singular that it has no determinant is no better.
            let there = geometry.place(moved, means, self.at.signs.clone()).ok();
            Ok(there.filter(|there| better(there, &self.at)).map(|there| (length, there)))
        });
        self.passes += passes;
        found
    }

    /// Takes other tails for sources that have them.
    fn resign(&mut self) -> Result<()> {
        let signs = self.geometry.signs(&self.at.matrix, &self.at.means);
        if signs != self.at.signs && self.sign_changes < SIGN_CHANGES {
            self.sign_changes += 1;
            self.at = self.geometry.place(Arc::clone(&self.at.matrix), self.at.means.clone(), signs)?;
            self.newton = self.newton.fresh();
        }
        Ok(())
    }
}

/// Whether the loss is lower or, where the difference is rounding, the gradient smaller.
fn better(there: &Place, here: &Place) -> bool {
    let (gain, rounding) = (here.loss - there.loss, ROUNDING * here.loss.abs().max(1.0));
    gain > rounding || gain.abs() <= rounding && there.gradient_size() < here.gradient_size()
}

impl Iteration for Picard<'_> {
    type Output = Unmixing;

    /// The log-likelihood rises from step to step, but for changes of the densities.
    fn objective(&self) -> Objective {
        Objective { name: "log-likelihood of the sources", guard: Guard::Free }
    }

    /// The largest entry of the gradient.
    fn converged(&self, tolerance: f64) -> bool {
        self.at.gradient_size() <= tolerance
    }

    fn step(&mut self, control: &Control<'_>) -> Result<Option<Step>> {
        let mut found = None;
        if let Some(step) = self.remembered() {
            found = self.along(&step, control)?.map(|found| (step, found));
        }
        if found.is_none() {
            self.newton = self.newton.fresh();
            self.observe();
            let step = self.plain();
            found = self.along(&step, control)?.map(|found| (step, found));
        }
        let Some((step, (length, there))) = found else { return Ok(None) };
        self.walked.iter_mut().zip(&step).for_each(|(x, d)| *x += length * d);
        self.at = there;
        self.resign()?;
        self.observe();
        let objective = self.geometry.log_likelihood(&self.at);
        Ok(Some(Step { objective, change: self.at.gradient_size() }))
    }

    fn passes(&self) -> usize {
        self.passes
    }

    fn finish(self) -> Result<Unmixing> {
        let objective = self.geometry.log_likelihood(&self.at);
        Ok(Unmixing { matrix: self.at.matrix, objective })
    }
}

//! Where to go from here, by what gradients at past points say about the curvature: limited-memory BFGS
//! \[LN89\].

use std::collections::VecDeque;

/// Past steps that are remembered unless another number is asked for.
const DEPTH: usize = 12;
/// Least curvature of a step, relative to its length and the gradient's change: less is rounding or not
/// concave.
const LEAST_CURVATURE: f64 = 1e-10;

/// How much longer a step is made along which the slope grows.
const STRETCH: f64 = 2.0;

/// Past steps with the change of the gradient along them, for a function to be maximised.
#[derive(Debug, Clone)]
pub(crate) struct QuasiNewton {
    depth: usize,
    last: Option<(Vec<f64>, Vec<f64>)>, // point and gradient
    past: VecDeque<Pair>,
    stretches: bool,
    rising: Option<Vec<f64>>, // the last step, when the slope grew along it
}

#[derive(Debug, Clone)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>, // of the gradient of what is to be minimised
    curvature: f64,   // step · change > 0
}

impl Default for QuasiNewton {
    fn default() -> Self {
        Self { depth: DEPTH, last: None, past: VecDeque::new(), stretches: false, rising: None }
    }
}

impl QuasiNewton {
    /// One that remembers so many past steps.
    pub(crate) fn remembering(depth: usize) -> Self {
        Self { depth, ..Self::default() }
    }

    /// One that makes steps longer along which the slope grows: for functions that flatten out far from their
    /// maximum, as a likelihood does where a noise variance is nearly 0.
    pub(crate) fn stretching() -> Self {
        Self { stretches: true, ..Self::default() }
    }

    /// The same without a past.
    pub(crate) fn fresh(&self) -> Self {
        Self { depth: self.depth, stretches: self.stretches, ..Self::default() }
    }

    /// Remembers a point with its gradient.
    pub(crate) fn observe(&mut self, point: &[f64], gradient: &[f64]) {
        if let Some((from, before)) = self.last.replace((point.to_vec(), gradient.to_vec())) {
            self.remember(difference(point, &from), difference(&before, gradient));
        }
    }

    /// Where to go from the last point; `None` when the past says nothing yet.
    ///
    /// Where the slope has grown along the last step there is no maximum to aim at: if it may, the step is
    /// made again, twice as long. `precondition` divides by a guess of the second derivatives, which the past
    /// corrects.
    pub(crate) fn propose(&self, precondition: impl Fn(&[f64]) -> Vec<f64>) -> Option<Vec<f64>> {
        let (point, gradient) = self.last.as_ref()?;
        if let Some(step) = &self.rising {
            return Some(point.iter().zip(step).map(|(x, d)| x + STRETCH * d).collect());
        }
        let latest = self.past.back()?;
        let scale = latest.curvature / dot(&latest.change, &precondition(&latest.change));
        let mut direction = gradient.clone();
        let mut along = Vec::with_capacity(self.past.len());
        for pair in self.past.iter().rev() {
            let a = dot(&pair.step, &direction) / pair.curvature;
            add(&mut direction, -a, &pair.change);
            along.push(a);
        }
        direction = precondition(&direction).into_iter().map(|d| d * scale).collect();
        for (pair, a) in self.past.iter().zip(along.iter().rev()) {
            let b = dot(&pair.change, &direction) / pair.curvature;
            add(&mut direction, a - b, &pair.step);
        }
        let next: Vec<f64> = point.iter().zip(&direction).map(|(x, d)| x + d).collect();
        next.iter().all(|x| x.is_finite()).then_some(next)
    }

    fn remember(&mut self, step: Vec<f64>, change: Vec<f64>) {
        let curvature = dot(&step, &change);
        let least = LEAST_CURVATURE * (dot(&step, &step) * dot(&change, &change)).sqrt();
        self.rising = (self.stretches && curvature < -least).then(|| step.clone());
        if curvature > least {
            self.past.push_back(Pair { step, change, curvature });
        }
        if self.past.len() > self.depth {
            self.past.pop_front();
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn add(to: &mut [f64], factor: f64, terms: &[f64]) {
    to.iter_mut().zip(terms).for_each(|(t, x)| *t += factor * x);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A concave quadratic in three dimensions, its maximum at (1, −2, 3).
    #[test]
    fn a_quadratic_is_climbed_to_its_top() {
        let curvature = [100.0, 1.0, 0.01];
        let top = [1.0, -2.0, 3.0];
        let gradient = |x: &[f64]| -> Vec<f64> { (0..3).map(|i| curvature[i] * (top[i] - x[i])).collect() };
        let mut newton = QuasiNewton::default();
        let mut x = vec![0.0; 3];
        for _ in 0..30 {
            let g = gradient(&x);
            let plain = || x.iter().zip(&g).map(|(x, g)| x + 0.01 * g).collect();
            newton.observe(&x, &g);
            x = newton.propose(<[f64]>::to_vec).unwrap_or_else(plain);
        }
        x.iter().zip(top).for_each(|(x, t)| assert!((x - t).abs() < 1e-9, "{x} {t}"));
    }

    #[test]
    fn a_step_along_which_the_slope_grows_is_made_again_longer() {
        let mut newton = QuasiNewton::stretching();
        newton.observe(&[0.0], &[1.0]);
        assert!(newton.propose(<[f64]>::to_vec).is_none());
        newton.observe(&[1.0], &[2.0]);
        assert_eq!(newton.propose(<[f64]>::to_vec), Some(vec![3.0]));
        newton.observe(&[3.0], &[1.0]);
        assert_eq!(newton.propose(<[f64]>::to_vec), Some(vec![5.0])); // where a parabola has its top
        let mut plain = QuasiNewton::default();
        plain.observe(&[0.0], &[1.0]);
        plain.observe(&[1.0], &[2.0]);
        assert!(plain.propose(<[f64]>::to_vec).is_none());
    }
}

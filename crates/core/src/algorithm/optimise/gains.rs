//! What the steps of an iteration that climbs have gained, and what is left to gain.

/// Gains below this share of the objective are rounding.
const ROUNDING: f64 = 1e-14;

/// What accepted steps have gained.
#[derive(Debug, Clone)]
pub(crate) struct Gains {
    /// By the last step, rounding as 0; infinite before there are two points.
    pub(crate) last: f64,
    /// Steps in a row that gained rounding only.
    pub(crate) idle: usize,
    /// What rounding does to the objective, where that is more than a share of it.
    pub(crate) rounding: f64,
}

impl Default for Gains {
    fn default() -> Self {
        Self { last: f64::INFINITY, idle: 0, rounding: 0.0 }
    }
}

impl Gains {
    /// What is rounding in an objective.
    pub(crate) fn rounding_of(&self, objective: f64) -> f64 {
        self.rounding.max(ROUNDING * objective.abs())
    }

    /// Takes the gain of a step that has led to `objective`. A gain that is rounding says nothing and counts
    /// as 0.
    pub(crate) fn add(&mut self, gain: f64, objective: f64) {
        self.last = if gain.abs() <= self.rounding_of(objective) { 0.0 } else { gain };
        self.idle = if self.last == 0.0 { self.idle + 1 } else { 0 };
    }

    /// What gains add up to that go on falling at the rate r of the last two, `before` and g:
    /// $g r / (1 - r)$.
    pub(crate) fn geometric_rest(&self, before: f64) -> f64 {
        if self.last == 0.0 {
            return 0.0;
        }
        let rate = (self.last / before).clamp(0.0, 1.0);
        if rate < 1.0 { self.last * rate / (1.0 - rate) } else { f64::INFINITY }
    }

    /// Takes the gain of a step, and tells what is left to gain by the last two.
    pub(crate) fn left_after(&mut self, gain: f64, objective: f64) -> f64 {
        let before = self.last;
        self.add(gain, objective);
        self.last.max(self.geometric_rest(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_that_fall_by_half_have_as_much_left_as_the_last_one() {
        let mut gains = Gains::default();
        assert_eq!(gains.left_after(f64::INFINITY, 1.0), f64::INFINITY);
        assert_eq!(gains.left_after(4.0, 5.0), 4.0);
        assert_eq!(gains.left_after(2.0, 7.0), 2.0);
        // 1 + ½ + ¼ + … = 2 · the last, of which the last is through already.
        assert_eq!(gains.left_after(1.0, 8.0), 1.0);
        assert_eq!(gains.left_after(0.9, 8.9), 0.9 * 0.9 / (1.0 - 0.9));
        assert_eq!((gains.left_after(1e-15, 8.9), gains.idle), (0.0, 1));
        assert_eq!((gains.left_after(0.0, 8.9), gains.idle), (0.0, 2));
    }
}

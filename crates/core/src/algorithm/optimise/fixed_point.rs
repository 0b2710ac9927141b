//! One number as the fixed point of a function.

/// Steps at most; some forty are usual, and Newton's take a handful.
const STEPS: usize = 500;
/// Relative change at which the number is found.
const PRECISION: f64 = 1e-15;

/// Repeats v ← f(v) until v does not change any more. `step` gives the next number and the step that leads to
/// it; `None` ends the search without one.
pub(crate) fn fixed_point(start: f64, mut step: impl FnMut(f64) -> Option<(f64, f64)>) -> Option<f64> {
    let mut v = start;
    for _ in 0..STEPS {
        let (next, length) = step(v)?;
        v = next;
        if length.abs() <= PRECISION * v {
            break;
        }
    }
    Some(v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_root_by_heron() {
        let heron = |v: f64| Some((0.5 * (v + 2.0 / v), 0.5 * (2.0 / v - v)));
        assert!((fixed_point(1.0, heron).unwrap() - 2f64.sqrt()).abs() < 1e-15);
        assert_eq!(fixed_point(1.0, |_| None), None);
    }
}

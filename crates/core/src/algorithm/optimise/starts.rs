//! The best of several starts: searches end at different optima.

/// The index of the lowest end; among ends that are the same optimum as it, the first that has converged.
///
/// `value` is what is minimised, and `same(a, lowest)` says whether two values belong to one optimum.
pub(crate) fn best<T>(
    ends: &[T],
    value: impl Fn(&T) -> f64,
    same: impl Fn(f64, f64) -> bool,
    converged: impl Fn(&T) -> bool,
) -> Option<usize> {
    let lowest = ends.iter().map(&value).min_by(f64::total_cmp)?;
    let equals = || (0..ends.len()).filter(|k| same(value(&ends[*k]), lowest));
    equals().find(|k| converged(&ends[*k])).or_else(|| equals().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_the_first_that_has_converged() {
        let of = |ends: &[(f64, bool)]| best(ends, |e| e.0, |a, b| a - b <= 0.1, |e| e.1);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(3.0, true), (1.05, false), (1.0, false), (1.02, true), (1.0, true)]), Some(3));
        assert_eq!(of(&[(3.0, true), (1.05, false), (1.0, false)]), Some(1));
    }
}

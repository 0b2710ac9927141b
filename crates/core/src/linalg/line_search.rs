//! Backtracking: a step that is not good enough is halved.

use crate::error::Result;

/// What `try_at` makes of the first of `count` lengths, each half of the one before, that it accepts.
///
/// # Errors
/// Those of `try_at`.
pub(crate) fn halved<T>(
    first: f64,
    count: usize,
    mut try_at: impl FnMut(f64) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let mut length = first;
    for _ in 0..count {
        if let Some(found) = try_at(length)? {
            return Ok(Some(found));
        }
        length *= 0.5;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_halved_until_one_is_accepted() {
        let at_most = |most: f64| halved(8.0, 4, |length| Ok((length <= most).then_some(length))).unwrap();
        assert_eq!(
            [at_most(9.0), at_most(3.0), at_most(1.0), at_most(0.5)],
            [Some(8.0), Some(2.0), Some(1.0), None]
        );
    }
}

//! How many groups.

use covary::estimator::Groups;

use crate::flags::PriorRows;

/// `3`, `2-8` or `auto`.
pub(crate) fn groups(text: &str) -> Result<Groups, String> {
    if text == "auto" {
        return Ok(Groups::AUTO);
    }
    let wanted = || "give a number of groups such as 3, a range such as 2-8, or auto".to_string();
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n > 0).ok_or_else(wanted);
    let Some((fewest, most)) = text.split_once('-') else { return number(text).map(Groups::Count) };
    let (fewest, most) = (number(fewest)?, number(most)?);
    if fewest <= most { Ok(Groups::Between(fewest, most)) } else { Err(wanted()) }
}

/// `1`, `0.5` or `none`.
pub(crate) fn prior_rows(text: &str) -> Result<PriorRows, String> {
    if text == "none" {
        return Ok(PriorRows(None));
    }
    let rows = text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    rows.map(|rows| PriorRows(Some(rows))).ok_or_else(|| "give a positive number such as 1, or none".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbers_or_ranges() {
        assert_eq!(groups("3"), Ok(Groups::Count(3)));
        assert_eq!(groups("2-8"), Ok(Groups::Between(2, 8)));
        assert_eq!(groups("auto"), Ok(Groups::Between(1, 10)));
        for wrong in ["0", "-1", "0-3", "5-2", "1.5", "many", "", "2-"] {
            assert!(groups(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn priors_are_positive_or_none() {
        assert_eq!(prior_rows("none"), Ok(PriorRows(None)));
        assert_eq!(prior_rows("0.5"), Ok(PriorRows(Some(0.5))));
        for wrong in ["0", "-1", "nan", "inf", ""] {
            assert!(prior_rows(wrong).is_err(), "{wrong}");
        }
    }
}

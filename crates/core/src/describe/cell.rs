//! A cell and what the rest of its row expects of it, as a sentence.

use super::number;

/// From this size on numbers are written with an exponent.
const LARGE: f64 = 1e7;
/// Below this deviation too.
const SMALL: f64 = 1e-6;

/// A cell beside what the rest of its row expects, such as “alcohol is 14.8; the rest of the row says 12.9 ± 0.3”: to
/// the decimals that the deviation leaves.
///
/// ```
/// use covary::describe::cell_in_words;
///
/// let told = cell_in_words("alcohol", 14.83, 12.914, 0.312);
/// assert_eq!(told, "alcohol is 14.8; the rest of the row says 12.9 ± 0.3");
/// ```
pub fn cell_in_words(feature: &str, value: f64, expected: f64, deviation: f64) -> String {
    let decimals = decimals(deviation);
    let shown = |x: f64| match x.abs() < LARGE && deviation >= SMALL {
        true => format!("{x:.decimals$}"),
        false => number(x),
    };
    let spread = match deviation > 0.0 {
        true => format!(" ± {}", shown(deviation)),
        false => String::new(),
    };
    format!("{feature} is {}; the rest of the row says {}{spread}", shown(value), shown(expected))
}

/// Decimals that show one figure of a deviation, or two where the first is a 1.
fn decimals(deviation: f64) -> usize {
    (0..=8).find(|d| deviation * 10f64.powi(*d) >= 1.95).and_then(|d| usize::try_from(d).ok()).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_that_the_deviation_leaves() {
        let rest = |e: &str| format!("the rest of the row says {e}");
        let told = |v, e, s| cell_in_words("x", v, e, s).replace("x is ", "");
        assert_eq!(told(14.83, 12.914, 0.312), format!("14.8; {}", rest("12.9 ± 0.3")));
        assert_eq!(told(14.83, 12.914, 0.142), format!("14.83; {}", rest("12.91 ± 0.14")));
        assert_eq!(told(1065.0, 743.2, 171.4), format!("1065; {}", rest("743 ± 171")));
        assert_eq!(told(-2.0, 1.0, 0.0), format!("-2.00000; {}", rest("1.00000")));
        assert_eq!(told(1e20, 3.04, 0.2), format!("1.00000e20; {}", rest("3.0 ± 0.2")));
        assert_eq!(told(1e-9, 3e-9, 2e-10), format!("1.00000e-9; {}", rest("3.00000e-9 ± 2.00000e-10")));
        assert_eq!(told(1.0, f64::NAN, f64::NAN), format!("1.00000; {}", rest("NaN")));
    }
}

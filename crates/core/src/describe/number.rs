//! Numbers for people.

/// Widest bar, in characters.
const BAR: usize = 24;

/// A bar for a share between 0 and 1, in eighths of a character.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bar's width")]
pub fn bar(share: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A probability as a percentage, with the decimals that it has.
pub fn level(probability: f64) -> String {
    format!("{} %", (1e8 * probability).round() / 1e6)
}

/// A number with six figures or so.
pub fn number(value: f64) -> String {
    formatted(value, value)
}

/// Numbers under each other, all with the decimals that suit the largest.
pub fn numbers(values: &[f64]) -> Vec<String> {
    let largest = values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    values.iter().map(|value| formatted(*value, largest)).collect()
}

fn formatted(value: f64, largest: f64) -> String {
    match largest.abs() {
        0.0 => "0".into(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.5e}"),
        size if size >= 1e5 => format!("{value:.1}"),
        size if size >= 100.0 => format!("{value:.3}"),
        size if size >= 1.0 => format!("{value:.5}"),
        _ => format!("{value:.7}"),
    }
}

/// One of something, or several.
pub fn count(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_shares() {
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(bar(0.5), "█".repeat(12));
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0 / 192.0), "▏");
        assert_eq!(bar(f64::NAN), "");
    }

    #[test]
    fn numbers_keep_six_figures() {
        let shown = [0.0, 1234.5678, -2.0, 0.000123456, 1e-9, 3.2e8].map(number);
        assert_eq!(shown, ["0", "1234.568", "-2.00000", "0.0001235", "1.00000e-9", "3.20000e8"]);
    }
}

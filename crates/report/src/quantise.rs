//! Cells as 16-bit steps of each feature: what tables of numbers have in decimals is kept exactly.

use crate::block::Arrays;

/// The step that stands for a missing value.
const MISSING: u16 = u16::MAX;
/// The largest step that stands for a number.
const LAST: f64 = 65_534.0;
/// Decimals that are tried.
const DECIMALS: i32 = 9;

/// How steps of a feature become numbers: (base + step · times) / divisor.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Steps {
    base: f64,
    times: f64,
    divisor: f64,
}

impl Steps {
    /// For these cells, of which some are NaN.
    fn of(cells: &[f64]) -> Self {
        let seen = cells.iter().filter(|x| !x.is_nan());
        let (low, high) = seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
        if low > high {
            return Self { base: 0.0, times: 0.0, divisor: 1.0 };
        }
        let decimal = (0..=DECIMALS).map(|k| 10f64.powi(k)).find(|unit| is_decimal(cells, low, high, *unit));
        match decimal {
            Some(unit) => Self { base: (low * unit).round(), times: 1.0, divisor: unit },
            None => Self { base: low, times: high / LAST - low / LAST, divisor: 1.0 },
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the steps")]
    fn step(self, x: f64) -> u16 {
        if x.is_nan() {
            return MISSING;
        }
        let step = if self.times == 0.0 { 0.0 } else { (x * self.divisor - self.base) / self.times };
        step.round().clamp(0.0, LAST) as u16
    }
}

/// Whether all cells are whole multiples of 1/unit, and few enough apart.
fn is_decimal(cells: &[f64], low: f64, high: f64, unit: f64) -> bool {
    let whole = |x: &f64| {
        let scaled = x * unit;
        scaled.abs() < 9e15 && (scaled - scaled.round()).abs() <= 1e-9 * scaled.abs().max(1.0)
    };
    (high - low) * unit <= LAST && cells.iter().filter(|x| !x.is_nan()).all(whole)
}

/// Adds the cells of n rows (row by row) and how to read them: for each feature the high bytes of all rows, then
/// the low ones, which compresses best.
pub(crate) fn add(arrays: &mut Arrays, cells: &[f64], n: usize, p: usize) {
    let (mut planes, mut scales) = (Vec::with_capacity(2 * n * p), Vec::with_capacity(3 * p));
    for j in 0..p {
        let column: Vec<f64> = (0..n).map(|i| cells[i * p + j]).collect();
        let steps = Steps::of(&column);
        let codes: Vec<[u8; 2]> = column.iter().map(|x| steps.step(*x).to_be_bytes()).collect();
        planes.extend(codes.iter().map(|code| code[0]));
        planes.extend(codes.iter().map(|code| code[1]));
        scales.extend([steps.base, steps.times, steps.divisor]);
    }
    arrays.bytes("cells", [p, 2 * n], &planes);
    arrays.doubles("steps", [p, 3], &scales);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(steps: Steps, x: f64) -> f64 {
        (steps.base + f64::from(steps.step(x)) * steps.times) / steps.divisor
    }

    #[test]
    fn decimals_come_back_exactly() {
        for cells in
            [vec![14.23, 13.2, f64::NAN, -1.07], vec![1e8, 1e8 + 3.0], vec![0.1, 0.30000000000000004]]
        {
            let steps = Steps::of(&cells);
            let exact = |x: &&f64| !x.is_nan() && (back(steps, **x) - **x).abs() > 1e-15 * x.abs();
            assert_eq!(cells.iter().find(exact), None);
        }
    }

    #[test]
    fn other_numbers_are_near() {
        let cells: Vec<f64> = (0..100).map(|i| (f64::from(i) * 0.7).sin() * 1e150).collect();
        let steps = Steps::of(&cells);
        let error = cells.iter().map(|x| (back(steps, *x) - x).abs()).fold(0.0, f64::max);
        assert!(error <= 1.01e150 / LAST, "{error}");
    }

    #[test]
    fn what_is_missing_stays_missing() {
        let steps = Steps::of(&[f64::NAN]);
        assert_eq!((steps.step(f64::NAN), steps.step(1.0)), (MISSING, 0));
        assert_eq!(back(Steps::of(&[5.0, 5.0]), 5.0), 5.0);
    }
}

//! exp, tanh and log cosh of many numbers at once: the standard library does one at a time, ten times slower.
//!
//! Each number goes through the same additions and multiplications without a branch, which the compiler turns
//! into vector instructions. Fused multiply-add rounds alike everywhere (machines of before 2013 compute it slowly),
//! so the bits are the same on every machine, and do not depend on the numbers beside. Errors are at most 2 units in
//! the last place (4 for tanh).

use std::f64::consts::{LN_2, LOG2_E};

/// Sums and products side by side, so that they do not wait for each other.
const LANES: usize = 8;
/// Factors of a product that stays above 2⁻³².
const FACTORS: usize = 32;
/// Adding it rounds a small number to a whole one, which then stands in the last bits: 1.5·2⁵².
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Exponent of 1 as doubles hold it.
const BIAS: f64 = 1023.0;
/// ln 2 in two parts, the first so short that its multiples by exponents are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below and above, exp is 0 and infinite.
const EXP_RANGE: (f64, f64) = (-746.0, 710.0);
/// Where e⁻²ʸ is nothing beside 1.
const NEGLIGIBLE: f64 = -80.0;
/// √2 − 1: 1 + e is halved above.
const HALVED: f64 = 0.414_213_562_373_095_03;

/// x ← eˣ.
pub(crate) fn exp(values: &mut [f64]) {
    pulp::Arch::new().dispatch(Exp(values));
}

/// tanh y.
pub(crate) fn tanh(y: &[f64], out: &mut [f64]) {
    pulp::Arch::new().dispatch(Tanh(y, out));
}

/// tanh y and log cosh y = |y| + log(1 + e^(−2|y|)) − log 2, which share an exponential.
pub(crate) fn tanh_and_log_cosh(y: &[f64], tanh: &mut [f64], log_cosh: &mut [f64]) {
    pulp::Arch::new().dispatch(TanhLogCosh(y, tanh, log_cosh));
}

/// tanh y, and Σ log cosh y = Σ |y| + log Π (1 + e^(−2|y|))/2: a product of factors between ½ and 1 has one logarithm,
/// where a sum would have one for each number. The factors are left in `scratch`.
pub(crate) fn tanh_and_sum_of_log_cosh(y: &[f64], tanh: &mut [f64], scratch: &mut [f64]) -> f64 {
    let arch = pulp::Arch::new();
    arch.dispatch(TanhFactors(y, tanh, scratch));
    let parts = y.chunks(LANES * FACTORS).zip(scratch.chunks(LANES * FACTORS));
    let sums = parts.map(|(y, factors)| {
        let (sizes, products) = arch.dispatch(SumAndProduct(y, factors));
        sizes.iter().sum::<f64>() + products.iter().map(|p| p.ln()).sum::<f64>()
    });
    sums.sum()
}

// Structures instead of closures, because those are not compiled for the vector unit that they run on.
struct Exp<'a>(&'a mut [f64]);
struct Tanh<'a>(&'a [f64], &'a mut [f64]);
struct TanhLogCosh<'a>(&'a [f64], &'a mut [f64], &'a mut [f64]);
struct TanhFactors<'a>(&'a [f64], &'a mut [f64], &'a mut [f64]);
struct SumAndProduct<'a>(&'a [f64], &'a [f64]);

impl pulp::NullaryFnOnce for Exp<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for x in self.0 {
            *x = exp_of(*x);
        }
    }
}

impl pulp::NullaryFnOnce for Tanh<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (y, tanh) in self.0.iter().zip(self.1) {
            *tanh = Decay::of(*y).tanh(*y);
        }
    }
}

impl pulp::NullaryFnOnce for TanhLogCosh<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let n = self.0.len().min(self.1.len()).min(self.2.len());
        let (y, tanh, log_cosh) = (&self.0[..n], &mut self.1[..n], &mut self.2[..n]);
        for i in 0..n {
            let decay = Decay::of(y[i]);
            tanh[i] = decay.tanh(y[i]);
            log_cosh[i] = decay.log_cosh(y[i]);
        }
    }
}

impl pulp::NullaryFnOnce for TanhFactors<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let n = self.0.len().min(self.1.len()).min(self.2.len());
        let (y, tanh, factors) = (&self.0[..n], &mut self.1[..n], &mut self.2[..n]);
        for i in 0..n {
            let decay = Decay::of(y[i]);
            tanh[i] = decay.tanh(y[i]);
            factors[i] = 0.5 * (2.0 + decay.minus_1);
        }
    }
}

impl pulp::NullaryFnOnce for SumAndProduct<'_> {
    /// Σ |y| and the product of the factors, in each lane.
    type Output = ([f64; LANES], [f64; LANES]);

    #[inline(always)]
    fn call(self) -> Self::Output {
        let (mut sizes, mut products) = ([0.0; LANES], [1.0; LANES]);
        for (y, factors) in self.0.chunks(LANES).zip(self.1.chunks(LANES)) {
            sizes.iter_mut().zip(y).for_each(|(sum, y)| *sum += y.abs());
            products.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
        }
        (sizes, products)
    }
}

/// k and r of x = k ln 2 + r, |r| ≤ ½ ln 2.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    let k = x.mul_add(LOG2_E, ROUND) - ROUND;
    (k, k.mul_add(-LN2_LOW, k.mul_add(-LN2_HIGH, x)))
}

/// 2ᵏ for a whole k between −1022 and 1023.
#[inline(always)]
fn power_of_two(k: f64) -> f64 {
    f64::from_bits((k + (ROUND + BIAS)).to_bits() << 52)
}

/// eʳ − 1 for |r| ≤ ½ ln 2: Taylor's series up to r¹³/13!, even and odd terms apart.
#[inline(always)]
fn exp_m1_near_0(r: f64) -> f64 {
    const EVEN: [f64; 6] =
        [1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0, 1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    const ODD: [f64; 6] =
        [1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0, 1.0 / 362_880.0, 1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let r2 = r * r;
    let (even, odd) = (horner(&EVEN, r2), horner(&ODD, r2));
    r2.mul_add(odd.mul_add(r, even), r)
}

/// Σ cᵢ xⁱ.
#[inline(always)]
fn horner<const N: usize>(c: &[f64; N], x: f64) -> f64 {
    let mut sum = c[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, c[i]);
    }
    sum
}

/// eˣ = 2ᵏ eʳ, the power in two factors, so that numbers below the normal range come out too.
#[inline(always)]
pub(crate) fn exp_of(x: f64) -> f64 {
    let x = if x < EXP_RANGE.0 { EXP_RANGE.0 } else { x };
    let x = if x > EXP_RANGE.1 { EXP_RANGE.1 } else { x };
    let (k, r) = reduced(x);
    let half = (0.5 * k + ROUND) - ROUND;
    (1.0 + exp_m1_near_0(r)) * power_of_two(half) * power_of_two(k - half)
}

/// e = e^(−2|y|), and e − 1 where that would cancel.
#[derive(Clone, Copy)]
struct Decay {
    e: f64,
    minus_1: f64,
}

impl Decay {
    #[inline(always)]
    fn of(y: f64) -> Self {
        let x = -2.0 * y.abs();
        let (k, r) = reduced(if x < NEGLIGIBLE { NEGLIGIBLE } else { x });
        let (power, part) = (power_of_two(k), exp_m1_near_0(r));
        Self { e: power.mul_add(part, power), minus_1: power.mul_add(part, power - 1.0) }
    }

    /// tanh |y| = (1 − e)/(1 + e).
    #[inline(always)]
    fn tanh(self, y: f64) -> f64 {
        (-self.minus_1 / (2.0 + self.minus_1)).copysign(y)
    }

    /// |y| + log((1 + e)/2), by the logarithm of \[fdlibm\]: with s = f/(2 + f), log(1 + f) = 2s + s³(…),
    /// where 1 + f is 1 + e, or half of it.
    #[inline(always)]
    fn log_cosh(self, y: f64) -> f64 {
        const SERIES: [f64; 7] = [
            6.666_666_666_666_735e-1,
            3.999_999_999_940_942e-1,
            2.857_142_874_366_239e-1,
            2.222_219_843_214_978_4e-1,
            1.818_357_216_161_805e-1,
            1.531_383_769_920_937_3e-1,
            1.479_819_860_511_658_6e-1,
        ];
        let halved = self.e > HALVED;
        let (f, below, rest) =
            if halved { (self.minus_1, 3.0 + self.e, 0.0) } else { (self.e, 2.0 + self.e, LN_2) };
        let s = f / below;
        let z = s * s;
        let series = z * horner(&SERIES, z);
        y.abs() + (s * (2.0 + series) - rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dense grid, every scale down to the smallest number, and the extremes, in an odd number.
    fn points() -> Vec<f64> {
        let grid = (-160_000..=160_000).map(|i| f64::from(i) * 0.005 + 1e-4 * f64::from(i).sin());
        let scales = (-1074..=9).flat_map(|k| [2f64.powi(k), -1.7 * 2f64.powi(k)]);
        let extremes = [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, -5e-324, 709.782_712_893_384, 709.8, 745.13];
        let rest = [-708.4, -745.13, -745.14, -746.5, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY];
        grid.chain(scales).chain(extremes).chain(rest).chain([f64::NAN]).collect()
    }

    /// Distance in units of the last place of the second number.
    fn ulps(a: f64, b: f64) -> f64 {
        if a == b || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        let unit = f64::from_bits(b.abs().to_bits() + 1) - b.abs();
        ((a - b) / unit).abs()
    }

    fn worst(found: &[f64], expected: impl Fn(f64) -> f64) -> f64 {
        let distance = |(x, f): (&f64, &f64)| {
            let d = ulps(*f, expected(*x));
            assert!(d < 8.0, "at {x}: {f} for {}", expected(*x));
            d
        };
        points().iter().zip(found).map(distance).fold(0.0, f64::max)
    }

    #[test]
    fn exp_is_that_of_the_standard_library() {
        let mut values = points();
        exp(&mut values);
        assert!(worst(&values, f64::exp) <= 2.0);
        let mut few = [f64::NEG_INFINITY, f64::INFINITY, 0.0, -0.0];
        exp(&mut few);
        assert_eq!(few, [0.0, f64::INFINITY, 1.0, 1.0]);
    }

    #[test]
    fn tanh_is_that_of_the_standard_library() {
        let y = points();
        let (mut values, mut log_cosh) = (vec![0.0; y.len()], vec![0.0; y.len()]);
        tanh_and_log_cosh(&y, &mut values, &mut log_cosh);
        assert!(worst(&values, f64::tanh) <= 4.0);
        let signs = |(y, t): (&f64, &f64)| y.is_nan() || y.is_sign_negative() == t.is_sign_negative();
        assert!(y.iter().zip(&values).all(signs));
    }

    /// Near 0, where it is y²/2, to the rounding of |y|.
    #[test]
    fn log_cosh_is_that_of_the_standard_library() {
        let y = points();
        let (mut t, mut l) = (vec![0.0; y.len()], vec![0.0; y.len()]);
        tanh_and_log_cosh(&y, &mut t, &mut l);
        for (y, found) in y.iter().zip(&l) {
            let a = y.abs();
            let (expected, unit) = match a < 1e-3 {
                true => (0.5 * a * a - a.powi(4) / 12.0, a),
                false => (a + (-2.0 * a).exp().ln_1p() - LN_2, a.max(1.0)), // errs by as much itself
            };
            let close = (found - expected).abs() <= 3.0 * f64::EPSILON * unit + f64::MIN_POSITIVE;
            assert!(
                close || *found == expected || y.is_nan() && found.is_nan(),
                "{y}: {found} for {expected}"
            );
        }
    }

    #[test]
    fn sums_of_log_cosh_are_sums() {
        for n in [0, 1, 15, 16, 700, 2000] {
            let y: Vec<f64> =
                (0..n).map(|i| (f64::from(i) * 0.7).sin() * [0.1, 3.0, 40.0][i as usize % 3]).collect();
            let (mut t, mut expected, mut l) = (vec![0.0; y.len()], vec![0.0; y.len()], vec![0.0; y.len()]);
            let sum = tanh_and_sum_of_log_cosh(&y, &mut t, &mut l);
            tanh_and_log_cosh(&y, &mut expected, &mut l);
            assert!((sum - l.iter().sum::<f64>()).abs() <= 1e-14 * (1.0 + sum), "{n}");
            assert_eq!(t, expected);
        }
        assert!(tanh_and_sum_of_log_cosh(&[1.0, f64::NAN], &mut [0.0; 2], &mut [0.0; 2]).is_nan());
        assert_eq!(tanh_and_sum_of_log_cosh(&[f64::INFINITY], &mut [0.0], &mut [0.0]), f64::INFINITY);
    }

    /// The same bits whether a number stands in a full vector or in the rest.
    #[test]
    fn bits_do_not_depend_on_the_numbers_beside() {
        let y: Vec<f64> = (0..37).map(|i| f64::from(i) * 0.31 - 5.0).collect();
        let (mut t, mut l, mut e) = (vec![0.0; 37], vec![0.0; 37], y.clone());
        tanh_and_log_cosh(&y, &mut t, &mut l);
        exp(&mut e);
        for (i, y) in y.iter().enumerate() {
            let (mut one_t, mut one_l, mut one_e) = ([0.0], [0.0], [*y]);
            tanh_and_log_cosh(&[*y], &mut one_t, &mut one_l);
            exp(&mut one_e);
            assert_eq!((one_t[0], one_l[0], one_e[0]), (t[i], l[i], e[i]));
        }
    }
}

//! Rows of a dense block with holes: deviations with 0 in the holes and a 0/1 mask, so that sums over what each row has
//! are products of whole matrices.

use super::patchy::{Features, HoleyRows};
use crate::linalg::{Mat, MatRef, packed_len, set_product};

/// Odd, with no pattern in its bits: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Some rows as scaled deviations; rows that have the same features share a pattern.
pub(super) struct MaskedRows {
    e: Mat<f64>,    // (p × rows), 0 in the holes
    mask: Mat<f64>, // (p × patterns)
    pattern: Vec<usize>,
    observed: Vec<usize>, // of each pattern
}

impl MaskedRows {
    /// Number of cells that a row has, when none of them is infinite.
    pub(super) fn seen(cells: &[f64]) -> Option<usize> {
        pulp::Arch::new().dispatch(|| count(cells))
    }

    /// The given columns of scaled deviations (p × any), NaN in the holes, and the order in which they were taken: those
    /// with the same holes side by side.
    pub(super) fn new(deviations: &Mat<f64>, columns: &[usize]) -> (Self, Vec<usize>) {
        let arch = pulp::Arch::new();
        let key_of = |i: &usize| (arch.dispatch(|| key(deviations.col_as_slice(*i))), *i);
        let mut order: Vec<(u64, usize)> = columns.iter().map(key_of).collect();
        order.sort_unstable();
        let mut e = Mat::zeros(deviations.nrows(), columns.len());
        let mut mask = Mat::zeros(deviations.nrows(), columns.len());
        let (mut pattern, mut observed) = (Vec::with_capacity(columns.len()), Vec::new());
        for (to, (_, from)) in order.iter().enumerate() {
            let next = observed.len();
            let (cells, e) = (deviations.col_as_slice(*from), e.col_as_slice_mut(to));
            arch.dispatch(|| split(cells, e, mask.col_as_slice_mut(next)));
            if next == 0 || mask.col_as_slice(next - 1) != mask.col_as_slice(next) {
                observed.push(Self::seen(cells).unwrap_or(0));
            }
            pattern.push(observed.len() - 1);
        }
        mask.resize_with(deviations.nrows(), observed.len(), |_, _| 0.0);
        (Self { e, mask, pattern, observed }, order.into_iter().map(|(_, i)| i).collect())
    }
}

#[inline(always)]
fn count(cells: &[f64]) -> Option<usize> {
    let (mut finite, mut holes) = (0u64, 0u64);
    for x in cells {
        finite += u64::from(x.abs() < f64::INFINITY);
        holes += u64::from(x.is_nan());
    }
    let (finite, holes) = (usize::try_from(finite).ok()?, usize::try_from(holes).ok()?);
    (finite + holes == cells.len()).then_some(finite)
}

/// Depends on which cells are holes and on nothing else.
#[inline(always)]
fn key(cells: &[f64]) -> u64 {
    let add = |key: u64, some: &[f64]| {
        let mut bits = [0u64; 8]; // a single word would wait for each cell
        for (k, eight) in some.chunks(8).enumerate() {
            let each = bits.iter_mut().zip(eight).enumerate();
            each.for_each(|(j, (bits, x))| *bits |= u64::from(x.is_nan()) << (8 * k + j));
        }
        let mixed = (key ^ bits.iter().fold(0, |a, b| a | b)).wrapping_mul(MULTIPLIER);
        mixed ^ (mixed >> 29)
    };
    cells.chunks(64).fold(0, add)
}

/// Deviations with 0 in the holes, and 1 where there is none.
#[inline(always)]
fn split(cells: &[f64], e: &mut [f64], mask: &mut [f64]) {
    for ((x, e), m) in cells.iter().zip(e).zip(mask) {
        let hole = x.is_nan();
        *e = if hole { 0.0 } else { *x };
        *m = if hole { 0.0 } else { 1.0 };
    }
}

impl HoleyRows for MaskedRows {
    fn pattern(&self) -> &[usize] {
        &self.pattern
    }

    fn observed(&self) -> &[usize] {
        &self.observed
    }

    fn sums(&self, of: &[f64]) -> Vec<f64> {
        let sum = |k: usize| self.mask.col_as_slice(k).iter().zip(of).map(|(m, x)| m * x).sum();
        (0..self.mask.ncols()).map(sum).collect()
    }

    fn grams(&self, features: &Features) -> Mat<f64> {
        match &features.pairs {
            Some(pairs) => transposed_product(self.mask.as_ref(), pairs.as_ref()),
            None => Mat::zeros(self.mask.ncols(), packed_len(features.q())), // such rows are listed
        }
    }

    fn projections(&self, features: &Features) -> Mat<f64> {
        transposed_product(self.e.as_ref(), features.a.as_ref())
    }

    fn squared_residuals(&self, features: &Features, z: &Mat<f64>, scale: Option<&[f64]>) -> Vec<f64> {
        let mut rest = Mat::zeros(self.e.nrows(), self.e.ncols()); // (p × rows)
        set_product(rest.as_mut(), features.a.transpose(), z.transpose());
        let arch = pulp::Arch::new();
        let square = |(i, pattern): (usize, &usize)| {
            let (e, mask) = (self.e.col_as_slice(i), self.mask.col_as_slice(*pattern));
            arch.dispatch(|| masked_rest(rest.col_as_slice_mut(i), e, mask, scale));
            rest.col(i).squared_norm_l2()
        };
        self.pattern.iter().enumerate().map(square).collect()
    }
}

/// aᵀ bᵀ of a (p × m) and b (k × p).
fn transposed_product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.ncols(), b.nrows());
    set_product(out.as_mut(), a.transpose(), b.transpose());
    out
}

/// e − mask · fitted, multiplied by the scale; e is 0 where the mask is.
#[inline(always)]
fn masked_rest(fitted: &mut [f64], e: &[f64], mask: &[f64], scale: Option<&[f64]>) {
    fitted.iter_mut().zip(e.iter().zip(mask)).for_each(|(f, (e, m))| *f = e - m * *f);
    if let Some(scale) = scale {
        fitted.iter_mut().zip(scale).for_each(|(f, s)| *f *= s);
    }
}

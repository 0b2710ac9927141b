//! Dense rows with missing values in blocks: deviations, 0 where a cell is missing, and a 0/1 mask for each
//! different pattern.
//!
//! Everything that differs between rows with missing values is then a product with the mask. Rows that miss
//! the same cells are put side by side, so that they share a column of the mask and whatever is made from it.

use super::incomplete::{FeatureLoadings, IncompleteRows, Mean};
use super::patterns::patterns;
use crate::data::Real;
use crate::linalg::{Mat, MatRef, add_product, clean_zeros, packed, packed_len, set_product};

/// Rows of a block: products with it stay in cache.
pub(crate) const BLOCK_ROWS: usize = 64;

/// Some rows of a chunk.
pub(crate) struct MaskedBlock {
    /// Which rows of the chunk.
    pub(crate) rows: Vec<usize>,
    /// Scaled deviations from the mean, 0 where a cell is missing (p × rows).
    pub(crate) deviations: Mat<f64>,
    /// 1 where a cell is observed, one column for each different pattern (p × patterns).
    pub(crate) mask: Mat<f64>,
    /// The pattern of each row; patterns are numbered in the order in which they appear.
    pub(crate) pattern: Vec<usize>,
    /// Observed cells of each pattern.
    pub(crate) observed: Vec<usize>,
}

impl MaskedBlock {
    fn new(features: usize, rows: usize) -> Self {
        Self {
            rows: Vec::with_capacity(rows),
            deviations: clean_zeros(features, rows),
            mask: clean_zeros(features, rows),
            pattern: Vec::with_capacity(rows),
            observed: Vec::with_capacity(rows),
        }
    }

    /// Deviations of the rows that are there (p × rows).
    pub(crate) fn deviations(&self) -> MatRef<'_, f64> {
        self.deviations.as_ref().subcols(0, self.rows.len())
    }

    /// The different patterns (p × patterns).
    pub(crate) fn mask(&self) -> MatRef<'_, f64> {
        self.mask.as_ref().subcols(0, self.observed.len())
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.pattern.clear();
        self.observed.clear();
    }

    fn push<T: Real>(&mut self, row: usize, cells: &[T], mean: Mean<'_>, factor: &[f64]) {
        let (at, next) = (self.rows.len(), self.observed.len());
        let deviations = self.deviations.col_as_slice_mut(at);
        let (before, mask) = self.mask.as_mut().split_at_col_mut(next);
        let Some(mask) = mask.col_mut(0).try_as_col_major_mut() else { return }; // columns of a matrix are
        let mask = mask.as_slice_mut();
        pulp::Arch::new().dispatch(|| match mean.rest {
            Some(rest) => fill_exactly(deviations, mask, cells, (mean.value, rest), factor),
            None => fill(deviations, mask, cells, mean.value, factor),
        });
        let same = |last: MatRef<'_, f64>| last.col(last.ncols() - 1).iter().zip(&*mask).all(|(a, b)| a == b);
        if next == 0 || !same(before.as_ref()) {
            let count = mask.iter().filter(|m| **m > 0.0).count();
            self.observed.push(count);
        }
        self.pattern.push(self.observed.len() - 1);
        self.rows.push(row);
    }
}

#[inline(always)]
fn fill<T: Real>(deviations: &mut [f64], mask: &mut [f64], cells: &[T], mean: &[f64], factor: &[f64]) {
    let out = deviations.iter_mut().zip(mask);
    for ((d, m), ((x, mean), factor)) in out.zip(cells.iter().zip(mean).zip(factor)) {
        let x = x.to_f64();
        let missing = x.is_nan();
        *d = if missing { 0.0 } else { (x - mean) * factor };
        *m = if missing { 0.0 } else { 1.0 };
    }
}

/// The same with the part of the mean that rounding has taken off it.
#[inline(always)]
fn fill_exactly<T: Real>(
    deviations: &mut [f64],
    mask: &mut [f64],
    cells: &[T],
    (mean, rest): (&[f64], &[f64]),
    factor: &[f64],
) {
    let out = deviations.iter_mut().zip(mask);
    let means = mean.iter().zip(rest).zip(factor);
    for ((d, m), (x, ((mean, rest), factor))) in out.zip(cells.iter().zip(means)) {
        let x = x.to_f64();
        let missing = x.is_nan();
        *d = if missing { 0.0 } else { (x - mean - rest) * factor };
        *m = if missing { 0.0 } else { 1.0 };
    }
}

impl IncompleteRows for MaskedBlock {
    fn pattern(&self) -> &[usize] {
        &self.pattern
    }

    fn observed(&self) -> &[usize] {
        &self.observed
    }

    fn cells(&self, row: usize) -> (Vec<usize>, Vec<f64>) {
        let (e, mask) = (self.deviations.col_as_slice(row), self.mask.col_as_slice(self.pattern[row]));
        (0..e.len()).filter(|j| mask[*j] > 0.0).map(|j| (j, e[j])).unzip()
    }

    fn sums(&self, of: &[f64]) -> Vec<f64> {
        let sum = |k: usize| self.mask.col_as_slice(k).iter().zip(of).map(|(m, x)| m * x).sum();
        (0..self.observed.len()).map(sum).collect()
    }

    fn sums_of(&self, of: &Mat<f64>) -> Mat<f64> {
        transposed_product(self.mask(), of.as_ref())
    }

    fn grams(&self, loadings: &FeatureLoadings) -> Mat<f64> {
        if let Some(pairs) = &loadings.pairs {
            return self.sums_of(pairs);
        }
        // Too many products to keep: each feature's is made when it is needed.
        let mut out = Mat::zeros(self.observed.len(), packed_len(loadings.q()));
        for (j, a) in loadings.a.col_iter().enumerate() {
            for i in 0..a.nrows() {
                for k in 0..=i {
                    let product = a[i] * a[k];
                    let entry = out.col_as_slice_mut(packed(i, k));
                    entry.iter_mut().enumerate().for_each(|(d, o)| *o += product * self.mask[(j, d)]);
                }
            }
        }
        out
    }

    fn projections(&self, loadings: &FeatureLoadings) -> Mat<f64> {
        transposed_product(self.deviations(), loadings.a.as_ref())
    }

    fn squared_residuals(&self, loadings: &FeatureLoadings, z: &Mat<f64>, scale: Option<&[f64]>) -> Vec<f64> {
        let mut rest = Mat::zeros(self.deviations.nrows(), self.rows.len()); // (p × rows)
        set_product(rest.as_mut(), loadings.a.transpose(), z.transpose());
        let arch = pulp::Arch::new();
        let square = |(i, pattern): (usize, &usize)| {
            let (e, mask) = (self.deviations.col_as_slice(i), self.mask.col_as_slice(*pattern));
            arch.dispatch(|| masked_rest(rest.col_as_slice_mut(i), e, mask, scale));
            rest.col(i).squared_norm_l2()
        };
        self.pattern.iter().enumerate().map(square).collect()
    }

    fn scatter(&self, of_patterns: MatRef<'_, f64>, to: &mut Mat<f64>) {
        add_product(to.as_mut(), of_patterns.transpose(), self.mask().transpose(), 1.0);
    }

    fn scatter_deviations(&self, of_rows: MatRef<'_, f64>, to: &mut Mat<f64>) {
        // The longer side first: few rows of a product would leave most of each vector empty.
        let mut sums = Mat::zeros(to.ncols(), to.nrows()); // (p × m)
        set_product(sums.as_mut(), self.deviations(), of_rows);
        for (i, sum) in sums.col_iter().enumerate() {
            sum.iter().enumerate().for_each(|(j, s)| to[(i, j)] += s);
        }
    }

    fn scatter_squares(&self, weights: &[f64], to: &mut [f64]) {
        let arch = pulp::Arch::new();
        for (i, w) in weights.iter().enumerate() {
            arch.dispatch(|| add_squares(to, self.deviations.col_as_slice(i), *w));
        }
    }
}

#[inline(always)]
fn add_squares(to: &mut [f64], e: &[f64], weight: f64) {
    to.iter_mut().zip(e).for_each(|(to, e)| *to += weight * e * e);
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

/// Calls `f` with blocks of those of the given rows that have a cell; e = (x − mean) · factor, feature by
/// feature.
pub(crate) fn for_each_masked<T: Real, E>(
    view: MatRef<'_, T>,
    rows: Vec<usize>,
    mean: Mean<'_>,
    factor: &[f64],
    f: &mut dyn FnMut(&MaskedBlock) -> Result<(), E>,
) -> Result<(), E> {
    for_each_masked_of(BLOCK_ROWS, view, rows, mean, factor, f)
}

/// The same in blocks of so many rows.
pub(crate) fn for_each_masked_of<T: Real, E>(
    block_rows: usize,
    view: MatRef<'_, T>,
    mut rows: Vec<usize>,
    mean: Mean<'_>,
    factor: &[f64],
    f: &mut dyn FnMut(&MaskedBlock) -> Result<(), E>,
) -> Result<(), E> {
    let mut block = MaskedBlock::new(view.ncols(), block_rows.min(view.nrows()));
    let mut copy = Vec::with_capacity(view.ncols());
    let patterns = patterns(view);
    rows.retain(|i| patterns[*i].missing < view.ncols());
    rows.sort_by_key(|i| (patterns[*i].key, *i));
    for part in rows.chunks(block_rows) {
        block.clear();
        for &i in part {
            match view.row(i).transpose().try_as_col_major() {
                Some(cells) => block.push(i, cells.as_slice(), mean, factor),
                None => {
                    copy.clear();
                    copy.extend(view.row(i).iter().copied());
                    block.push(i, &copy, mean, factor);
                }
            }
        }
        f(&block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Mat<f64> {
        let missing = |i: usize, j: usize| (i % 3 == 1 && j % 7 == 2) || (i % 5 == 4 && j > 60);
        Mat::from_fn(40, 70, |i, j| if missing(i, j) { f64::NAN } else { (i * 70 + j) as f64 })
    }

    #[test]
    fn every_row_comes_once_with_its_pattern() {
        let x = rows();
        let (mean, factor) = (vec![1.0; 70], vec![2.0; 70]);
        let mut seen = vec![0; 40];
        for_each_masked::<_, ()>(x.as_ref(), (0..40).collect(), mean[..].into(), &factor, &mut |block| {
            assert_eq!(block.observed.len(), 4); // complete, two patterns, both
            for (at, &i) in block.rows.iter().enumerate() {
                seen[i] += 1;
                let mask = block.mask().col(block.pattern[at]);
                for j in 0..70 {
                    let missing = x[(i, j)].is_nan();
                    assert_eq!(mask[j], f64::from(u8::from(!missing)));
                    let expected = if missing { 0.0 } else { (x[(i, j)] - 1.0) * 2.0 };
                    assert_eq!(block.deviations()[(j, at)], expected);
                }
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, vec![1; 40]);
    }
}

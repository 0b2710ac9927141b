//! Rows as lists of the cells that they have: work in proportion to the observed cells.
//!
//! Each row is added up by itself and in the order of its features, so that answers do not depend, to the
//! last bit, on which rows stand beside it.

use super::incomplete::{FeatureLoadings, IncompleteRows, Mean};
use crate::data::{Observed, ObservedRows, Real};
use crate::error::{Cell, Error, Result};
use crate::linalg::{Mat, MatRef, packed, packed_len};

/// Some listed rows as scaled deviations; rows that have the same features share a pattern when they are
/// neighbours.
pub(crate) struct ListedRows<'a> {
    columns: Vec<&'a [u32]>,
    starts: Vec<usize>,
    e: Vec<f64>, // row after row
    pattern: Vec<usize>,
    firsts: Vec<usize>,   // the first row of each pattern
    observed: Vec<usize>, // of each pattern
}

impl<'a> ListedRows<'a> {
    /// Of the given rows, as (x − mean) / root, feature by feature.
    pub(crate) fn new(
        cells: ObservedRows<'a>,
        rows: impl Iterator<Item = usize> + Clone,
        mean: Mean<'_>,
        root: &[f64],
    ) -> Self {
        let columns: Vec<&[u32]> = rows.clone().map(|r| cells.row(r).0).collect();
        let (pattern, firsts) = runs(&columns);
        let observed = firsts.iter().map(|i| columns[*i].len()).collect();
        let (mut starts, mut e) = (vec![0], Vec::new());
        for r in rows {
            let (columns, values) = cells.row(r);
            let centred = |j: usize, x: f64| x - mean.value[j] - mean.rest.map_or(0.0, |rest| rest[j]);
            let scaled = |(j, x): (&u32, &f64)| centred(*j as usize, *x) / root[*j as usize];
            e.extend(columns.iter().zip(values).map(scaled));
            starts.push(e.len());
        }
        Self { columns, starts, e, pattern, firsts, observed }
    }

    /// Features and deviations of a row.
    fn row(&self, i: usize) -> (&'a [u32], &[f64]) {
        (self.columns[i], &self.e[self.starts[i]..self.starts[i + 1]])
    }
}

/// Numbers runs of the same columns: the run of each row, and the first row of each run.
fn runs(columns: &[&[u32]]) -> (Vec<usize>, Vec<usize>) {
    let (mut run, mut firsts) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
    for (i, c) in columns.iter().enumerate() {
        if i == 0 || columns[i - 1] != *c {
            firsts.push(i);
        }
        run.push(firsts.len() - 1);
    }
    (run, firsts)
}

impl IncompleteRows for ListedRows<'_> {
    fn pattern(&self) -> &[usize] {
        &self.pattern
    }

    fn observed(&self) -> &[usize] {
        &self.observed
    }

    fn cells(&self, row: usize) -> (Vec<usize>, Vec<f64>) {
        let (columns, e) = self.row(row);
        (columns.iter().map(|j| *j as usize).collect(), e.to_vec())
    }

    fn sums(&self, of: &[f64]) -> Vec<f64> {
        let sum = |columns: &[u32]| columns.iter().map(|j| of[*j as usize]).sum();
        self.firsts.iter().map(|i| sum(self.columns[*i])).collect()
    }

    fn sums_of(&self, of: &Mat<f64>) -> Mat<f64> {
        gather(self.firsts.len(), of.nrows(), |sum, i| {
            let columns = self.columns[self.firsts[i]];
            columns.iter().for_each(|j| add(sum, 1.0, of.col_as_slice(*j as usize)));
        })
    }

    fn grams(&self, loadings: &FeatureLoadings) -> Mat<f64> {
        let add = |sum: &mut [f64], i: usize| add_products(sum, loadings, self.columns[self.firsts[i]]);
        gather(self.firsts.len(), packed_len(loadings.q()), add)
    }

    fn projections(&self, loadings: &FeatureLoadings) -> Mat<f64> {
        gather(self.columns.len(), loadings.q(), |sum, i| add_projections(sum, loadings, self.row(i)))
    }

    fn squared_residuals(&self, loadings: &FeatureLoadings, z: &Mat<f64>, scale: Option<&[f64]>) -> Vec<f64> {
        let arch = pulp::Arch::new();
        let z = z.transpose().to_owned(); // those of a row side by side
        let square =
            |i: usize| arch.dispatch(|| squared_residual(loadings, self.row(i), z.col_as_slice(i), scale));
        (0..self.columns.len()).map(square).collect()
    }

    fn scatter(&self, of_patterns: MatRef<'_, f64>, to: &mut Mat<f64>) {
        let numbers = of_patterns.transpose().to_owned(); // those of a pattern side by side
        for (k, first) in self.firsts.iter().enumerate() {
            for j in self.columns[*first] {
                add(to.col_as_slice_mut(*j as usize), 1.0, numbers.col_as_slice(k));
            }
        }
    }

    fn scatter_deviations(&self, of_rows: MatRef<'_, f64>, to: &mut Mat<f64>) {
        let numbers = of_rows.transpose().to_owned(); // those of a row side by side
        for i in 0..self.columns.len() {
            let (columns, e) = self.row(i);
            for (j, e) in columns.iter().zip(e) {
                add(to.col_as_slice_mut(*j as usize), *e, numbers.col_as_slice(i));
            }
        }
    }

    fn scatter_squares(&self, weights: &[f64], to: &mut [f64]) {
        for (i, w) in weights.iter().enumerate() {
            let (columns, e) = self.row(i);
            columns.iter().zip(e).for_each(|(j, e)| to[*j as usize] += w * e * e);
        }
    }
}

/// Adds aⱼaⱼᵀ of each feature to a packed matrix.
#[inline(always)]
fn add_products(sum: &mut [f64], loadings: &FeatureLoadings, columns: &[u32]) {
    for &j in columns {
        match &loadings.pairs {
            Some(pairs) => add(sum, 1.0, pairs.col_as_slice(j as usize)),
            None => {
                let a = loadings.a.col_as_slice(j as usize);
                (0..a.len()).for_each(|i| add(&mut sum[packed(i, 0)..], a[i], &a[..=i]));
            }
        }
    }
}

/// Adds aⱼeⱼ of each feature.
#[inline(always)]
fn add_projections(sum: &mut [f64], loadings: &FeatureLoadings, (columns, e): (&[u32], &[f64])) {
    columns.iter().zip(e).for_each(|(j, e)| add(sum, *e, loadings.a.col_as_slice(*j as usize)));
}

#[inline(always)]
fn squared_residual(
    loadings: &FeatureLoadings,
    (columns, e): (&[u32], &[f64]),
    z: &[f64],
    scale: Option<&[f64]>,
) -> f64 {
    let fitted = |j: usize| loadings.a.col_as_slice(j).iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
    let rest = |(j, e): (&u32, &f64)| (e - fitted(*j as usize)) * scale.map_or(1.0, |s| s[*j as usize]);
    columns.iter().zip(e).map(rest).map(|r| r * r).sum()
}

#[inline(always)]
fn add(sum: &mut [f64], factor: f64, terms: &[f64]) {
    sum.iter_mut().zip(terms).for_each(|(s, t)| *s += factor * t);
}

/// Sums of `width` numbers, one row for each of n items.
fn gather(n: usize, width: usize, add: impl Fn(&mut [f64], usize)) -> Mat<f64> {
    let mut out = Mat::zeros(n, width);
    let mut sum = vec![0.0; width];
    let arch = pulp::Arch::new();
    for i in 0..n {
        sum.fill(0.0);
        arch.dispatch(|| add(&mut sum, i));
        sum.iter().enumerate().for_each(|(k, s)| out[(i, k)] = *s);
    }
    out
}

/// Dense rows as lists of the cells that they have. An infinite cell is an error.
pub(crate) fn observed_cells<T: Real>(
    view: MatRef<'_, T>,
    rows: &[usize],
    first_row: usize,
) -> Result<Observed<'static>> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        for (column, x) in view.row(row).iter().enumerate() {
            let value = x.to_f64();
            if value.is_infinite() {
                let cell = Cell { row: first_row + row, column, name: None };
                return Err(Error::Infinite { value, cell });
            }
            if !value.is_nan() {
                columns.push(u32::try_from(column).map_err(|_| too_wide(view.ncols()))?);
                values.push(value);
            }
        }
        starts.push(values.len());
    }
    Observed::from_rows(starts, columns, values, view.ncols())
}

fn too_wide(p: usize) -> Error {
    Error::Parameter { name: "the number of features", value: p.to_string(), allowed: "below 2³²" }
}

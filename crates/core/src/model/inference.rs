//! Inference about rows: a chunk is cut into groups of rows that are worked on together.
//!
//! | rows | group |
//! |---|---|
//! | complete | blocks of rows that share one factor |
//! | incomplete and regular, dense | blocks with a 0/1 mask, a factor for each pattern of missing values |
//! | incomplete and regular, lists of cells | the same without a mask |
//! | incomplete, and M all but singular | those of the same pattern together, with a factor of their own |

use std::collections::HashMap;
use std::sync::OnceLock;

use super::LinearGaussian;
use super::factored::FactoredModel;
use super::groups::{Group, OnePattern};
use super::many_patterns::ScaledFeatures;
use crate::blocks::{IncompleteRows, ListedRows, for_each_masked_of, observed_cells};
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, clean_zeros};

/// Rows of a block: deviations and products stay in cache.
const BLOCK_ROWS: usize = 128;
/// Listed rows that are worked on together.
pub(super) const LISTED_ROWS: usize = 64;

/// What is asked of the latent variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Posteriors and densities.
    Posterior,
    /// The same, with answers that do not depend to the last bit on the rows beside.
    PosteriorRowByRow,
    /// Least-squares coordinates as well.
    LeastSquares,
    /// What single cells say.
    Cells,
    /// What needs every pattern by itself, with a factor of its own.
    EachPattern,
}

/// A row of a list of observed cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListedRow {
    /// Where it stands in the list.
    pub(super) at: usize,
    /// What it is called in answers: mostly the row of the chunk.
    pub(super) row: usize,
}

/// A model prepared for inference about rows, and what all chunks share.
pub(super) struct Inference<'m> {
    model: &'m LinearGaussian,
    purpose: Purpose,
    features: OnceLock<ScaledFeatures>,
    complete: OnceLock<FactoredModel>,
}

impl<'m> Inference<'m> {
    pub(super) fn new(model: &'m LinearGaussian, purpose: Purpose) -> Self {
        Self { model, purpose, features: OnceLock::new(), complete: OnceLock::new() }
    }

    /// q.
    pub(super) fn n_latent(&self) -> usize {
        self.model.n_latent()
    }

    /// The model for complete rows.
    pub(super) fn complete(&self) -> Result<&FactoredModel> {
        if let Some(model) = self.complete.get() {
            return Ok(model);
        }
        let model = FactoredModel::new(self.model)?;
        Ok(self.complete.get_or_init(|| model))
    }

    fn features(&self) -> &ScaledFeatures {
        self.features.get_or_init(|| ScaledFeatures::new(self.model))
    }

    /// Calls `f` with each group of a chunk's rows.
    pub(super) fn for_each_group(
        &self,
        chunk: &Chunk<'_>,
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let p = self.model.n_features();
        if chunk.ncols() != p {
            return Err(Error::FeatureCount { expected: p, found: chunk.ncols() });
        }
        match chunk.cells() {
            Cells::Observed(cells) => {
                let rows: Vec<ListedRow> = (0..chunk.nrows()).map(|row| ListedRow { at: row, row }).collect();
                self.for_each_listed_group(*cells, &rows, f)
            }
            dense => with_view!(dense, view => self.for_each_dense_group(view, chunk.first_row(), f)),
        }
    }

    fn for_each_dense_group<T: Real>(
        &self,
        view: MatRef<'_, T>,
        first_row: usize,
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let incomplete = self.for_each_complete_group(view, f)?;
        let (masked, mut listed): (Vec<usize>, Vec<usize>) =
            incomplete.into_iter().partition(|i| self.can_be_masked(view, *i));
        listed.extend(self.for_each_masked_group(view, masked, f)?);
        if listed.is_empty() {
            return Ok(());
        }
        listed.sort_unstable();
        let cells = observed_cells(view, &listed, first_row)?;
        let rows: Vec<ListedRow> =
            listed.iter().enumerate().map(|(at, row)| ListedRow { at, row: *row }).collect();
        self.for_each_listed_group(cells.rows(0..rows.len()), &rows, f)
    }

    /// Calls `f` with blocks of complete rows and gives the others.
    fn for_each_complete_group<T: Real>(
        &self,
        view: MatRef<'_, T>,
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<usize>> {
        let model = self.complete()?;
        let mut e = clean_zeros(view.ncols(), BLOCK_ROWS.min(view.nrows())); // (p × rows)
        let mut incomplete = Vec::new();
        for start in (0..view.nrows()).step_by(BLOCK_ROWS) {
            let len = BLOCK_ROWS.min(view.nrows() - start);
            model.scaled_deviations(view.subrows(start, len), &mut e);
            let finite = |i: &usize| e.col(*i).squared_norm_l2().is_finite();
            let (complete, others): (Vec<usize>, Vec<usize>) = (0..len).partition(finite);
            incomplete.extend(others.iter().map(|i| start + i));
            if complete.is_empty() {
                continue;
            }
            for (to, from) in complete.iter().enumerate().filter(|(to, from)| to != *from) {
                (0..e.nrows()).for_each(|j| e[(j, to)] = e[(j, *from)]);
            }
            let rows: Vec<usize> = complete.iter().map(|i| start + i).collect();
            let e = e.as_ref().subcols(0, rows.len()).transpose();
            f(Group::OnePattern(OnePattern { model, rows: &rows, e, features: None }))?;
        }
        Ok(incomplete)
    }

    /// Whether a row has no infinite cell, and M is regular for the cells that it has.
    fn can_be_masked<T: Real>(&self, view: MatRef<'_, T>, row: usize) -> bool {
        if matches!(self.purpose, Purpose::PosteriorRowByRow | Purpose::EachPattern) {
            return false;
        }
        let cells = view.row(row);
        let count = match cells.transpose().try_as_col_major() {
            Some(side_by_side) => {
                pulp::Arch::new().dispatch(|| observed_count(side_by_side.as_slice().iter()))
            }
            None => observed_count(cells.iter()),
        };
        let observed = cells.iter().enumerate().filter(|(_, x)| !x.to_f64().is_nan()).map(|(j, _)| j);
        count.is_some_and(|count| self.features().is_regular(count, observed))
    }

    /// Calls `f` with blocks of dense rows and gives those that are ill posed.
    fn for_each_masked_group<T: Real>(
        &self,
        view: MatRef<'_, T>,
        rows: Vec<usize>,
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<usize>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let features = self.features();
        let (mean, scale) = (features.mean[..].into(), &features.scale);
        let (mut left, mut ill_posed) = (Vec::new(), Vec::new());
        for_each_masked_of(BLOCK_ROWS, view, rows, mean, scale, &mut |block| {
            let (good, bad) = self.well_posed(block, &block.rows);
            if bad.is_empty() {
                return f(Group::many_patterns(features, good, block));
            }
            left.extend(good);
            ill_posed.extend(bad);
            Ok(())
        })?;
        if left.is_empty() {
            return Ok(ill_posed);
        }
        for_each_masked_of(BLOCK_ROWS, view, left, mean, scale, &mut |block| {
            f(Group::many_patterns(features, block.rows.clone(), block))
        })?;
        Ok(ill_posed)
    }

    /// The rows that can have what is asked for, and the others.
    fn well_posed<T: Copy>(&self, cells: &dyn IncompleteRows, rows: &[T]) -> (Vec<T>, Vec<T>) {
        let well_posed = match self.purpose {
            Purpose::LeastSquares => self.features().well_posed(cells),
            Purpose::Cells => self.features().well_posed_cells(cells),
            _ => return (rows.to_vec(), Vec::new()),
        };
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (row, well_posed) in rows.iter().zip(well_posed) {
            if well_posed { good.push(*row) } else { bad.push(*row) }
        }
        (good, bad)
    }

    /// Calls `f` with groups of listed rows.
    pub(super) fn for_each_listed_group(
        &self,
        cells: ObservedRows<'_>,
        rows: &[ListedRow],
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.purpose == Purpose::EachPattern {
            return self.for_each_pattern(cells, rows, f);
        }
        let regular = |r: &ListedRow| {
            let columns = cells.row(r.at).0;
            self.features().is_regular(columns.len(), columns.iter().map(|j| *j as usize))
        };
        let (mut regular, mut others): (Vec<ListedRow>, Vec<ListedRow>) =
            rows.iter().partition(|r| regular(r));
        regular.sort_by_key(|r| (cells.row(r.at).0, r.at));
        for some in regular.chunks(LISTED_ROWS) {
            let listed = self.listed(cells, some);
            let (good, bad) = self.well_posed(&listed, some);
            if !good.is_empty() {
                let listed = if bad.is_empty() { listed } else { self.listed(cells, &good) };
                let rows = good.iter().map(|r| r.row).collect();
                f(Group::many_patterns(self.features(), rows, &listed))?;
            }
            others.extend(bad);
        }
        self.for_each_pattern(cells, &others, f)
    }

    fn listed<'a>(&self, cells: ObservedRows<'a>, rows: &[ListedRow]) -> ListedRows<'a> {
        let features = self.features();
        ListedRows::new(cells, rows.iter().map(|r| r.at), features.mean[..].into(), &features.root)
    }

    /// Calls `f` with groups of listed rows that have the same features (in the order of their first rows),
    /// each with a factor of its own.
    fn for_each_pattern(
        &self,
        cells: ObservedRows<'_>,
        rows: &[ListedRow],
        f: &mut dyn FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut patterns: HashMap<&[u32], Vec<ListedRow>> = HashMap::new();
        rows.iter().for_each(|r| patterns.entry(cells.row(r.at).0).or_default().push(*r));
        let mut patterns: Vec<_> = patterns.into_iter().collect();
        patterns.sort_by_key(|(_, rows)| rows[0].at);
        for (columns, rows) in &patterns {
            let features: Vec<usize> = columns.iter().map(|j| *j as usize).collect();
            let model = FactoredModel::new(&self.model.marginal(&features)?)?;
            for some in rows.chunks(BLOCK_ROWS) {
                let mut e = Mat::zeros(features.len(), some.len());
                let scale =
                    |(i, r): (usize, &ListedRow)| model.scale(cells.row(r.at).1, e.col_as_slice_mut(i));
                some.iter().enumerate().for_each(scale);
                let rows: Vec<usize> = some.iter().map(|r| r.row).collect();
                let group =
                    OnePattern { model: &model, rows: &rows, e: e.transpose(), features: Some(&features) };
                f(Group::OnePattern(group))?;
            }
        }
        Ok(())
    }
}

/// Number of cells that a row has, when none of them is infinite.
#[inline(always)]
fn observed_count<'a, T: Real>(cells: impl Iterator<Item = &'a T>) -> Option<usize> {
    let (mut finite, mut infinite) = (0u64, 0u64);
    for x in cells {
        let size = x.to_f64().abs();
        finite += u64::from(size < f64::INFINITY);
        infinite += u64::from(size == f64::INFINITY);
    }
    if infinite == 0 { usize::try_from(finite).ok() } else { None }
}

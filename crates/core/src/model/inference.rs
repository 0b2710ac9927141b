//! A model that is asked about rows: cuts chunks into groups of rows that are worked on together.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::LinearGaussian;
use super::groups::{Group, Same};
use super::incomplete::{Features, Patchy};
use super::kernel::Kernel;
use super::listed::{Listed, lists};
use crate::blocks::MaskedBlock;
use crate::data::{Cells, Chunk, ObservedRows, Real, with_view};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, clean_zeros};

/// Rows of a block: deviations and products stay in cache.
const BLOCK_ROWS: usize = 128;
/// Listed rows that are worked on together.
pub(super) const LANES: usize = 64;

/// What groups are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Posteriors and densities.
    Posterior,
    /// The same, with answers that do not depend to the last bit on the rows beside.
    RowByRow,
    /// Least squares as well.
    LeastSquares,
}

/// A model that is asked about rows, and what all chunks share.
pub(super) struct Asked<'m> {
    model: &'m LinearGaussian,
    need: Need,
    features: OnceLock<Features>,
    full: OnceLock<Kernel>,
}

impl<'m> Asked<'m> {
    pub(super) fn new(model: &'m LinearGaussian, need: Need) -> Self {
        Self { model, need, features: OnceLock::new(), full: OnceLock::new() }
    }

    /// q.
    pub(super) fn n_latent(&self) -> usize {
        self.model.n_latent()
    }

    /// Of rows without holes.
    pub(super) fn full(&self) -> Result<&Kernel> {
        if let Some(kernel) = self.full.get() {
            return Ok(kernel);
        }
        let kernel = Kernel::new(self.model)?;
        Ok(self.full.get_or_init(|| kernel))
    }

    fn features(&self) -> &Features {
        self.features.get_or_init(|| Features::new(self.model))
    }

    /// Calls `f` with each group of a chunk's rows.
    pub(super) fn for_each_group(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let p = self.model.n_features();
        if chunk.ncols() != p {
            return Err(Error::FeatureCount { expected: p, found: chunk.ncols() });
        }
        if let Cells::Observed(cells) = chunk.cells() {
            let rows: Vec<Listed> = (0..chunk.nrows()).map(|row| Listed { at: row, row }).collect();
            return self.listed(*cells, &rows, &mut f);
        }
        let rows = with_view!(chunk.cells(), view => self.blocks(view, &mut f))?;
        if rows.is_empty() {
            return Ok(());
        }
        let cells = with_view!(chunk.cells(), view => lists(view, &rows, chunk.first_row()))?;
        let rows: Vec<Listed> = rows.iter().enumerate().map(|(at, row)| Listed { at, row: *row }).collect();
        self.listed(cells.rows(0..rows.len()), &rows, &mut f)
    }

    /// Calls `f` with groups of dense rows, block by block, and gives the rows that must be listed.
    fn blocks<T: Real>(
        &self,
        view: MatRef<'_, T>,
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<usize>> {
        let full = self.full()?;
        let mut e = clean_zeros(view.ncols(), BLOCK_ROWS.min(view.nrows())); // (p × rows)
        let mut others = Vec::new();
        for start in (0..view.nrows()).step_by(BLOCK_ROWS) {
            let len = BLOCK_ROWS.min(view.nrows() - start);
            full.scaled_deviations(view.subrows(start, len), &mut e);
            let finite = |i: &usize| e.col(*i).squared_norm_l2().is_finite();
            let (complete, holey): (Vec<usize>, Vec<usize>) = (0..len).partition(finite);
            let listed = self.masked(&e, &holey, start, f)?;
            others.extend(listed.iter().map(|i| start + i));
            self.complete(&mut e, &complete, start, f)?;
        }
        others.sort_unstable();
        Ok(others)
    }

    /// Calls `f` with the complete rows of a block, moved side by side.
    fn complete(
        &self,
        e: &mut Mat<f64>,
        complete: &[usize],
        start: usize,
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        if complete.is_empty() {
            return Ok(());
        }
        for (to, from) in complete.iter().enumerate().filter(|(to, from)| to != *from) {
            (0..e.nrows()).for_each(|j| e[(j, to)] = e[(j, *from)]);
        }
        let rows: Vec<usize> = complete.iter().map(|i| start + i).collect();
        let e = e.as_ref().subcols(0, rows.len()).transpose();
        f(Group::Same(Same { kernel: self.full()?, rows: &rows, e, complete: true }))
    }

    /// Calls `f` with the rows with holes of a block and gives those that must be listed.
    fn masked(
        &self,
        e: &Mat<f64>,
        holey: &[usize],
        start: usize,
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<usize>> {
        let (some, mut others): (Vec<usize>, Vec<usize>) =
            holey.iter().partition(|i| self.can_be_masked(e.col_as_slice(**i)));
        if some.is_empty() {
            return Ok(others);
        }
        let cells = MaskedBlock::of_deviations(e, &some);
        let rows = cells.rows.iter().map(|i| start + i).collect();
        let group = Patchy::new(self.features(), rows, &cells);
        let (good, bad) = self.well_posed(&group, &cells.rows);
        if bad.is_empty() {
            f(Group::Patchy(group))?;
        } else {
            others.extend(bad);
            others.extend(self.masked(e, &good, start, f)?);
        }
        Ok(others)
    }

    fn can_be_masked(&self, e: &[f64]) -> bool {
        let columns = e.iter().enumerate().filter(|(_, x)| !x.is_nan()).map(|(j, _)| j);
        self.need != Need::RowByRow && seen(e).is_some_and(|count| self.features().regular(count, columns))
    }

    /// The rows of a group that can have what is needed, and the others.
    fn well_posed<T: Copy>(&self, group: &Patchy<'_>, rows: &[T]) -> (Vec<T>, Vec<T>) {
        if self.need != Need::LeastSquares {
            return (rows.to_vec(), Vec::new());
        }
        let (good, bad): (Vec<_>, Vec<_>) = rows.iter().zip(group.well_posed()).partition(|(_, good)| *good);
        let rows = |some: Vec<(&T, bool)>| some.into_iter().map(|(row, _)| *row).collect();
        (rows(good), rows(bad))
    }

    /// Calls `f` with groups of listed rows.
    pub(super) fn listed(
        &self,
        cells: ObservedRows<'_>,
        rows: &[Listed],
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let regular = |r: &Listed| {
            let columns = cells.row(r.at).0;
            self.features().regular(columns.len(), columns.iter().map(|j| *j as usize))
        };
        let (mut some, mut delicate): (Vec<Listed>, Vec<Listed>) = rows.iter().partition(|r| regular(r));
        some.sort_by_key(|r| (cells.row(r.at).0, r.at));
        for some in some.chunks(LANES) {
            delicate.extend(self.lanes(cells, some, f)?);
        }
        self.patterns(cells, &delicate, f)
    }

    /// Calls `f` with a group of listed rows and gives those that cannot have what is needed.
    fn lanes(
        &self,
        cells: ObservedRows<'_>,
        rows: &[Listed],
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<Listed>> {
        let listed = self.features().listed(cells, rows);
        let group = Patchy::new(self.features(), rows.iter().map(|r| r.row).collect(), &listed);
        let (good, mut bad) = self.well_posed(&group, rows);
        if bad.is_empty() {
            f(Group::Patchy(group))?;
        } else if !good.is_empty() {
            bad.extend(self.lanes(cells, &good, f)?);
        }
        Ok(bad)
    }

    /// Calls `f` with groups of listed rows that have the same features (in the order of their first rows), each with a
    /// kernel of its own.
    fn patterns(
        &self,
        cells: ObservedRows<'_>,
        rows: &[Listed],
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut patterns: HashMap<&[u32], Vec<Listed>> = HashMap::new();
        rows.iter().for_each(|r| patterns.entry(cells.row(r.at).0).or_default().push(*r));
        let mut patterns: Vec<_> = patterns.into_iter().collect();
        patterns.sort_by_key(|(_, rows)| rows[0].at);
        for (columns, rows) in &patterns {
            let features: Vec<usize> = columns.iter().map(|j| *j as usize).collect();
            let kernel = Kernel::new(&self.model.marginal(&features)?)?;
            for some in rows.chunks(BLOCK_ROWS) {
                let mut e = Mat::zeros(features.len(), some.len());
                let scale = |(i, r): (usize, &Listed)| kernel.scale(cells.row(r.at).1, e.col_as_slice_mut(i));
                some.iter().enumerate().for_each(scale);
                let rows: Vec<usize> = some.iter().map(|r| r.row).collect();
                f(Group::Same(Same { kernel: &kernel, rows: &rows, e: e.transpose(), complete: false }))?;
            }
        }
        Ok(())
    }
}

/// Number of cells that a row has, when none of them is infinite.
fn seen(cells: &[f64]) -> Option<usize> {
    pulp::Arch::new().dispatch(|| count(cells))
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

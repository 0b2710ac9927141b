//! A chunk cut into groups of rows that are worked on together: those without holes, and those with holes of their own.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::LinearGaussian;
use super::kernel::Kernel;
use super::patchy::{Features, LANES, Patchy};
use crate::data::{Cells, Chunk, Observed, ObservedRows, Real, with_view};
use crate::error::{Cell, Error, Result};
use crate::linalg::{Mat, MatRef};

/// Rows of a block: deviations and products stay in cache.
const BLOCK_ROWS: usize = 128;

/// Some rows of a chunk.
pub(super) enum Group<'a> {
    /// All have the same features.
    Same(Same<'a>),
    /// Each has features of its own.
    Patchy(Patchy<'a>),
}

/// Rows that have the same features, as scaled deviations.
pub(super) struct Same<'a> {
    /// Made for exactly the features that these rows have.
    pub(super) kernel: &'a Kernel,
    /// Which rows of the chunk.
    pub(super) rows: &'a [usize],
    /// D^-½ (x − μ) of the observed features (rows × observed).
    pub(super) e: MatRef<'a, f64>,
    complete: bool,
}

impl Group<'_> {
    /// Which rows of the chunk.
    pub(super) fn rows(&self) -> &[usize] {
        match self {
            Self::Same(same) => same.rows,
            Self::Patchy(patchy) => &patchy.rows,
        }
    }

    /// Whether the rows have no holes.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Same(same) => same.complete,
            Self::Patchy(_) => false,
        }
    }

    /// Posterior means (q × rows).
    pub(super) fn latent(&self) -> Mat<f64> {
        match self {
            Self::Same(same) => same.kernel.latent(same.kernel.factor(), same.e),
            Self::Patchy(patchy) => patchy.latent().transpose().to_owned(),
        }
    }

    /// Posterior covariances, one column for each pattern (q² × patterns), and the pattern of each row.
    pub(super) fn covariances(&self) -> (Mat<f64>, Vec<usize>) {
        match self {
            Self::Same(same) => {
                let c = same.kernel.factor().covariance();
                let q = c.nrows();
                (Mat::from_fn(q * q, 1, |k, _| c[(k % q, k / q)]), vec![0; same.rows.len()])
            }
            Self::Patchy(patchy) => (patchy.covariances(), patchy.pattern.clone()),
        }
    }

    /// Draws of the latent variables (q × rows) from standard normals (q × rows).
    pub(super) fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        match self {
            Self::Same(same) => same.draw(normals),
            Self::Patchy(patchy) => Ok(patchy.draw(normals.transpose().to_owned()).transpose().to_owned()),
        }
    }

    /// Squared Mahalanobis distance of each row, or the error that there is no density.
    pub(super) fn mahalanobis(&self) -> Result<Vec<f64>> {
        match self {
            Self::Same(same) => same.kernel.log_det().map(|_| same.kernel.mahalanobis(same.e)),
            Self::Patchy(patchy) => Ok(patchy.mahalanobis()),
        }
    }

    /// Log density of each row.
    pub(super) fn log_density(&self) -> Result<Vec<f64>> {
        let distances = self.mahalanobis()?;
        let density =
            |(k, log_det, d): (usize, f64, f64)| -0.5 * (k as f64 * std::f64::consts::TAU.ln() + log_det + d);
        match self {
            Self::Same(same) => {
                let (k, log_det) = (same.kernel.n_features(), same.kernel.log_det()?);
                Ok(distances.into_iter().map(|d| density((k, log_det, d))).collect())
            }
            Self::Patchy(patchy) => {
                let parts = patchy.observed().zip(patchy.log_det()).zip(distances);
                Ok(parts.map(|((k, log_det), d)| density((k, log_det, d))).collect())
            }
        }
    }
}

impl Same<'_> {
    /// Each row by itself: a product's order of additions depends on how many rows there are.
    fn draw(&self, normals: &Mat<f64>) -> Result<Mat<f64>> {
        let root = self.kernel.factor().root()?; // (q × r), r ≤ q
        let mut z = Mat::zeros(normals.nrows(), normals.ncols());
        for i in 0..normals.ncols() {
            let mean = self.kernel.latent(self.kernel.factor(), self.e.subrows(i, 1));
            let z = z.col_as_slice_mut(i);
            z.copy_from_slice(mean.col_as_slice(0));
            for (column, u) in root.col_iter().zip(normals.col_as_slice(i)) {
                z.iter_mut().zip(column.iter()).for_each(|(z, r)| *z += r * u);
            }
        }
        Ok(z)
    }
}

/// A row of a list of observed cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// Where it stands in the list.
    pub(super) at: usize,
    /// What it is called in answers: mostly the row of the chunk.
    pub(super) row: usize,
}

/// A model that is asked about rows: what all chunks share.
pub(super) struct Asked<'m> {
    model: &'m LinearGaussian,
    features: OnceLock<Features>,
    full: OnceLock<Kernel>,
}

impl<'m> Asked<'m> {
    pub(super) fn new(model: &'m LinearGaussian) -> Self {
        Self { model, features: OnceLock::new(), full: OnceLock::new() }
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

    /// Calls `f` with groups of rows: those of a group have the same features, or a factor each.
    pub(super) fn for_each_group(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        self.cut(chunk, &mut f, |cells, rows, f| self.listed(cells, rows, f))
    }

    /// Calls `f` with groups of rows that have the same features.
    pub(super) fn for_each_pattern(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(Same<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut same = |group: Group<'_>| match group {
            Group::Same(same) => f(same),
            Group::Patchy(_) => Ok(()), // not made below
        };
        self.cut(chunk, &mut same, |cells, rows, f| self.patterns(cells, rows, f))
    }

    /// Complete rows in blocks go to `f`; the others, as lists of their cells, to `holey`.
    fn cut<F: FnMut(Group<'_>) -> Result<()>>(
        &self,
        chunk: &Chunk<'_>,
        f: &mut F,
        holey: impl Fn(ObservedRows<'_>, &[Listed], &mut F) -> Result<()>,
    ) -> Result<()> {
        let p = self.model.n_features();
        if chunk.ncols() != p {
            return Err(Error::FeatureCount { expected: p, found: chunk.ncols() });
        }
        if let Cells::Observed(cells) = chunk.cells() {
            let rows: Vec<Listed> = (0..chunk.nrows()).map(|row| Listed { at: row, row }).collect();
            return holey(*cells, &rows, f);
        }
        let rows = with_view!(chunk.cells(), view => self.complete(view, f))?;
        if rows.is_empty() {
            return Ok(());
        }
        let cells = with_view!(chunk.cells(), view => lists(view, &rows, chunk.first_row()))?;
        let rows: Vec<Listed> = rows.iter().enumerate().map(|(at, row)| Listed { at, row: *row }).collect();
        holey(cells.rows(0..rows.len()), &rows, f)
    }

    /// Calls `f` with the complete rows, in blocks, and gives the others.
    fn complete<T: Real>(
        &self,
        view: MatRef<'_, T>,
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<Vec<usize>> {
        let full = self.full()?;
        let mut buffer = Mat::zeros(view.ncols(), BLOCK_ROWS.min(view.nrows())); // (p × rows)
        let mut others = Vec::new();
        for start in (0..view.nrows()).step_by(BLOCK_ROWS) {
            let len = BLOCK_ROWS.min(view.nrows() - start);
            full.scaled_deviations(view.subrows(start, len), &mut buffer);
            let finite = |i: &usize| buffer.col(*i).squared_norm_l2().is_finite();
            let (there, not): (Vec<usize>, Vec<usize>) = (0..len).partition(finite);
            others.extend(not.iter().map(|i| start + i));
            // Side by side: no row moves when all are there.
            let moved = there.iter().enumerate().filter(|(to, from)| to != *from);
            moved.for_each(|(to, from)| (0..view.ncols()).for_each(|j| buffer[(j, to)] = buffer[(j, *from)]));
            let rows: Vec<usize> = there.iter().map(|i| start + i).collect();
            if !rows.is_empty() {
                let e = buffer.as_ref().subcols(0, rows.len()).transpose();
                f(Group::Same(Same { kernel: full, rows: &rows, e, complete: true }))?;
            }
        }
        Ok(others)
    }

    /// Calls `f` with groups of listed rows.
    pub(super) fn listed(
        &self,
        cells: ObservedRows<'_>,
        rows: &[Listed],
        f: &mut impl FnMut(Group<'_>) -> Result<()>,
    ) -> Result<()> {
        let features = self.features();
        let (mut regular, delicate): (Vec<Listed>, Vec<Listed>) =
            rows.iter().partition(|r| features.regular(cells.row(r.at).0));
        regular.sort_by_key(|r| (cells.row(r.at).0, r.at));
        for some in regular.chunks(LANES) {
            f(Group::Patchy(Patchy::new(features, cells, some)))?;
        }
        self.patterns(cells, &delicate, f)
    }

    /// The same, pattern by pattern (in the order of their first rows), each with a kernel of its own.
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

/// Rows as lists of the cells that they have. An infinite cell is an error.
fn lists<T: Real>(view: MatRef<'_, T>, rows: &[usize], first_row: usize) -> Result<Observed<'static>> {
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

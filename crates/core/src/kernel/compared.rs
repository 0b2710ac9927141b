//! Points with which rows are compared, where points and rows may miss cells.

use std::sync::Arc;

use super::expected::{FilledRows, Filling, Uncertain, Units};
use super::{Kernel, KernelForm, Points};
use crate::data::{Block, Cells, Chunk};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, SymmetricTiles};
use crate::parallel;

/// Points that miss cells, of which kernel values with all others are found together.
const ROWS_AT_ONCE: usize = 64;

/// Points z₁ … zₘ, and what is known of cells that they or the rows miss.
///
/// The image of a row that misses cells is E φ(x), over what is known of its cells; so the kernel value of two rows
/// is E k(x, x′) with both drawn independently. For the rbf kernel and x ~ N(m, S), x′ ~ N(m′, S′) that is
/// $|I + 2\gamma(S + S')|^{-1/2} \exp(-\gamma (m - m')^\top (I + 2\gamma(S + S'))^{-1} (m - m'))$, for the linear one
/// m·m′. Complete rows and points have the values of [`Points`] to the bit.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    points: Points,
    filling: Option<Arc<dyn Filling>>,
    by_feature: Mat<f64>, // the points (m × p), where values may be missing
    groups: Vec<Group>,
}

/// Points that miss the same cells.
#[derive(Debug, Clone)]
struct Group {
    uncertain: Uncertain,
    points: Vec<usize>,
}

/// What is known of a row of a block: `None` where it is complete.
pub(crate) type Known<'a> = Option<&'a Uncertain>;

impl Compared {
    /// Points as rows (m × p), of features that are divided by `divisors`; `mean` is about where rows lie. With a
    /// filling, cells of points and rows may be missing.
    ///
    /// # Errors
    /// When a number overflows, or the filling does not fit.
    pub(crate) fn around(
        kernel: Kernel,
        points: MatRef<'_, f64>,
        mean: &[f64],
        divisors: &[f64],
        filling: Option<Arc<dyn Filling>>,
    ) -> Result<Self> {
        let Some(filling) = filling else {
            return Ok(Self::from(Points::around(kernel, points, mean, divisors)?));
        };
        let FilledRows { cells, spreads, pattern } = filling.filled(&chunk_of(points))?;
        let points = Points::around(kernel, cells.as_ref(), mean, divisors)?;
        let mut groups = Vec::with_capacity(spreads.len());
        for spread in &spreads {
            let uncertain = Uncertain::new(spread, units(&points))?;
            groups.push(Group { uncertain, points: Vec::new() });
        }
        for (i, k) in pattern.iter().enumerate() {
            k.iter().for_each(|k| groups[*k].points.push(i));
        }
        let by_feature = points.columns().transpose().to_owned();
        Ok(Self { points, filling: Some(filling), by_feature, groups })
    }

    /// The same points, which miss nothing, for rows that may.
    pub(crate) fn with_filling(&self, filling: Arc<dyn Filling>) -> Self {
        let by_feature = self.points.columns().transpose().to_owned();
        Self { filling: Some(filling), by_feature, ..self.clone() }
    }

    /// The points in the frame, missing cells filled.
    pub(crate) fn points(&self) -> &Points {
        &self.points
    }

    /// What is known of missing cells.
    pub(crate) fn filling(&self) -> Option<&dyn Filling> {
        self.filling.as_deref()
    }

    /// Whether a point misses cells that the kernel looks at.
    fn is_uncertain(&self) -> bool {
        self.points.kernel().form() == KernelForm::Rbf && !self.groups.is_empty()
    }

    /// Kernel values of all points and complete rows in the frame (p × b) into `out` (m × b), on the calling
    /// thread.
    pub(crate) fn values(&self, block: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        self.points.values(block, out.as_mut());
        self.correct_points(block, out);
    }

    /// The values of points that miss cells with complete rows.
    fn correct_points(&self, block: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        if !self.is_uncertain() {
            return;
        }
        let gamma = self.points.gamma_in_frame();
        for (r, row) in block.col_iter().enumerate() {
            let Some(row) = row.try_as_col_major() else { continue };
            for group in &self.groups {
                for &i in &group.points {
                    out[(i, r)] = group.uncertain.alone().value(gamma, self.mean(i), row.as_slice());
                }
            }
        }
    }

    /// The mean of a point in the frame (p).
    fn mean(&self, point: usize) -> &[f64] {
        self.points.columns().col(point).try_as_col_major().map_or(&[], |c| c.as_slice())
    }

    /// The values of all points and a row that misses cells, with the mean x (p), into `out` (m).
    fn correct_row(&self, known: &Uncertain, x: &[f64], out: &mut [f64]) -> Result<()> {
        if self.points.kernel().form() != KernelForm::Rbf {
            return Ok(());
        }
        let gamma = self.points.gamma_in_frame();
        known.alone().values(gamma, x, self.by_feature.as_ref(), out);
        for group in &self.groups {
            let both = group.uncertain.with(known)?;
            for &i in &group.points {
                out[i] = both.value(gamma, self.mean(i), x);
            }
        }
        Ok(())
    }

    /// Kernel values of the images of all points with each other (m × m), on all threads.
    ///
    /// # Errors
    /// When a number overflows.
    pub(crate) fn gram(&self) -> Result<Mat<f64>> {
        let mut out = self.points.gram();
        if !self.is_uncertain() {
            return Ok(out);
        }
        // Pieces of groups, so that columns wait for their place a few at a time.
        let pieces: Vec<(usize, &[usize])> = self
            .groups
            .iter()
            .enumerate()
            .flat_map(|(k, group)| group.points.chunks(ROWS_AT_ONCE).map(move |piece| (k, piece)))
            .collect();
        for some in pieces.chunks(ROWS_AT_ONCE) {
            let found = parallel::try_map(some.len(), |i| self.columns_of(some[i].0, some[i].1))?;
            for (columns, (k, piece)) in found.iter().zip(some) {
                piece.iter().zip(columns).for_each(|(i, column)| self.write(*k, *i, column, &mut out));
            }
        }
        Ok(out)
    }

    /// The same, held once.
    ///
    /// # Errors
    /// As [`gram`](Self::gram).
    pub(crate) fn gram_tiles(&self) -> Result<SymmetricTiles> {
        match self.is_uncertain() {
            true => Ok(SymmetricTiles::of_lower(self.gram()?.as_ref())),
            false => Ok(self.points.gram_tiles()),
        }
    }

    /// Kernel values of some points of group k with all complete points and with those of groups up to k.
    fn columns_of(&self, k: usize, points: &[usize]) -> Result<Vec<Vec<f64>>> {
        let (gamma, known) = (self.points.gamma_in_frame(), &self.groups[k].uncertain);
        let mut columns = vec![vec![0.0; self.points.len()]; points.len()];
        for (column, i) in columns.iter_mut().zip(points) {
            known.alone().values(gamma, self.mean(*i), self.by_feature.as_ref(), column);
        }
        for group in &self.groups[..=k] {
            let both = group.uncertain.with(known)?;
            for (column, i) in columns.iter_mut().zip(points) {
                for j in &group.points {
                    column[*j] = both.value(gamma, self.mean(*j), self.mean(*i));
                }
                column[*i] = known.own();
            }
        }
        Ok(columns)
    }

    /// Writes the column of point i of group k and its mirror image; groups behind k write their own.
    fn write(&self, k: usize, i: usize, column: &[f64], out: &mut Mat<f64>) {
        let mut later = vec![false; column.len()];
        self.groups[k + 1..].iter().flat_map(|g| &g.points).for_each(|j| later[*j] = true);
        for (j, value) in column.iter().enumerate().filter(|(j, _)| !later[*j]) {
            (out[(j, i)], out[(i, j)]) = (*value, *value);
        }
    }

    /// Σⱼ of weight j times what rows near x (p, in the frame) expect of the cells that points miss, beyond their
    /// means: the part of Mika's fixed point that complete points do not have. Weights are in place (m).
    pub(crate) fn add_pulls(&self, weights: &[f64], x: &[f64], out: &mut [f64]) {
        if !self.is_uncertain() {
            return;
        }
        for group in &self.groups {
            for &i in &group.points {
                group.uncertain.alone().add_pull(weights[i], x, self.mean(i), out);
            }
        }
    }

    /// ‖E φ(x)‖² of each row of a block in the frame (p × b).
    pub(crate) fn own(&self, block: MatRef<'_, f64>, known: &[Known<'_>]) -> Vec<f64> {
        let mut own = self.points.diagonal(block);
        if self.points.kernel().form() == KernelForm::Rbf {
            own.iter_mut().zip(known).for_each(|(own, known)| *own = known.map_or(*own, Uncertain::own));
        }
        own
    }

    /// E k(x, x) of each row of a block in the frame (p × b).
    pub(crate) fn diagonal(&self, block: MatRef<'_, f64>, known: &[Known<'_>]) -> Vec<f64> {
        let mut diagonal = self.points.diagonal(block);
        if self.points.kernel().form() == KernelForm::Linear {
            diagonal.iter_mut().zip(known).for_each(|(k, known)| *k += known.map_or(0.0, Uncertain::trace));
        }
        diagonal
    }

    /// E k(z, z) − ‖E φ(z)‖² of each point (m): the variance of its image, which no other row shares.
    pub(crate) fn within(&self) -> Vec<f64> {
        let mut within = vec![0.0; self.points.len()];
        for group in &self.groups {
            let more = match self.points.kernel().form() {
                KernelForm::Linear => group.uncertain.trace(),
                _ => 1.0 - group.uncertain.own(),
            };
            group.points.iter().for_each(|i| within[*i] = more);
        }
        within
    }

    /// Calls `f` with the place of each block in the chunk, its rows in the frame (p × b) with missing cells filled,
    /// their kernel values (m × b) and what is known of each.
    ///
    /// # Errors
    /// When a cell is infinite, or missing without a filling, or a kernel value is not finite.
    pub(crate) fn for_each_block(
        &self,
        chunk: &Chunk<'_>,
        mut f: impl FnMut(usize, MatRef<'_, f64>, MatMut<'_, f64>, &[Known<'_>]) -> Result<()>,
    ) -> Result<()> {
        let filling = self.filling.as_ref().filter(|_| chunk.has_missing());
        let Some(filling) = filling else {
            return self.points.for_each_block(chunk, |first, block, mut values| {
                self.correct_points(block, values.as_mut());
                f(first, block, values, &vec![None; block.ncols()])
            });
        };
        let FilledRows { cells, spreads, pattern } = filling.filled(chunk)?;
        let units = units(&self.points);
        let spreads: Vec<Uncertain> =
            spreads.iter().map(|spread| Uncertain::new(spread, units)).collect::<Result<_>>()?;
        let filled = chunk_of(cells.as_ref());
        self.points.for_each_block(&filled, |first, block, mut values| {
            let known: Vec<Known<'_>> =
                (0..block.ncols()).map(|r| pattern[first + r].map(|k| &spreads[k])).collect();
            self.correct_points(block, values.as_mut());
            for (r, known) in known.iter().enumerate() {
                let (Some(known), Some(x)) = (known, block.col(r).try_as_col_major()) else { continue };
                let Some(out) = values.as_mut().col_mut(r).try_as_col_major_mut() else { continue };
                self.correct_row(known, x.as_slice(), out.as_slice_mut())?;
            }
            f(first, block, values, &known)
        })
    }
}

impl From<Points> for Compared {
    fn from(points: Points) -> Self {
        Self { points, filling: None, by_feature: Mat::zeros(0, 0), groups: Vec::new() }
    }
}

/// Rows (n × p) as a chunk.
fn chunk_of(rows: MatRef<'_, f64>) -> Chunk<'_> {
    Chunk::new(0, Cells::F64(Block::View(rows)))
}

fn units(points: &Points) -> Units<'_> {
    let (_, factors, unit) = points.frame().parts();
    Units { form: points.kernel().form(), gamma: points.gamma_in_frame(), unit, factors }
}

//! Products of a large matrix with a few vectors.
//!
//! A general product first copies the large operand into an order of its own, which takes as long as the arithmetic
//! where the other side has ten columns. Here the matrix is held in such an order from the beginning: panels of eight
//! rows, column after column, so that it is read once from end to end. The vectors lie row after row, eight of them in a
//! group. A panel is used for both products, with the matrix and with its transpose, while it is in the cache.

use pulp::{Arch, Simd, WithSimd};

use super::{Mat, MatRef};

/// Vectors of a group; the last group is filled up with zeros.
const GROUP: usize = 8;
/// Rows of a panel; the last panel is filled up with zeros.
const PANEL: usize = 8;

/// A row of a group of vectors, or a column of a panel.
type Eight = [f64; 8];

/// A few vectors (n × b): groups of eight, in each row after row. Zeros fill the rows up to whole panels.
#[derive(Debug, Clone)]
pub(crate) struct NarrowBlock {
    groups: Vec<Vec<Eight>>, // each (padded n × 8)
    rows: usize,
    columns: usize,
}

impl NarrowBlock {
    /// Zeros.
    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        let group = vec![[0.0; GROUP]; padded(rows)];
        Self { groups: vec![group; columns.div_ceil(GROUP)], rows, columns }
    }

    /// The columns of a matrix.
    pub(crate) fn of(matrix: MatRef<'_, f64>) -> Self {
        let mut out = Self::zeros(matrix.nrows(), matrix.ncols());
        for (j, column) in matrix.col_iter().enumerate() {
            let group = &mut out.groups[j / GROUP];
            group.iter_mut().zip(column.iter()).for_each(|(row, x)| row[j % GROUP] = *x);
        }
        out
    }

    /// The same as a matrix.
    pub(crate) fn to_mat(&self) -> Mat<f64> {
        Mat::from_fn(self.rows, self.columns, |i, j| self.groups[j / GROUP][i][j % GROUP])
    }

    /// b.
    pub(crate) fn ncols(&self) -> usize {
        self.columns
    }

    /// Adds another block of the same shape.
    pub(crate) fn add(&mut self, other: &Self) {
        let (own, other) = (self.groups.iter_mut().flatten(), other.groups.iter().flatten());
        own.zip(other).for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, b)| *a += b));
    }
}

fn padded(rows: usize) -> usize {
    rows.next_multiple_of(PANEL)
}

/// A part A (m × k) of a larger matrix, with its first row at `row` and its first column at `column`, both at the
/// beginning of a panel.
#[derive(Debug, Clone)]
pub(crate) struct PanelTile {
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
    panels: Vec<Eight>, // for each panel its columns, eight cells each
}

impl PanelTile {
    /// Of cells column after column (m × k).
    pub(crate) fn new((row, column): (usize, usize), cells: MatRef<'_, f64>) -> Self {
        let (rows, columns) = cells.shape();
        let mut panels = vec![[0.0; PANEL]; rows.div_ceil(PANEL) * columns];
        for (j, cells) in cells.col_iter().enumerate() {
            let column = panels[j..].iter_mut().step_by(columns);
            match cells.try_as_col_major() {
                Some(cells) => {
                    let (whole, last) = cells.as_slice().as_chunks::<PANEL>();
                    let mut column = column;
                    whole.iter().zip(&mut column).for_each(|(cells, eight)| *eight = *cells);
                    column.for_each(|eight| eight[..last.len()].copy_from_slice(last));
                }
                None => (0..rows).for_each(|i| panels[i / PANEL * columns + j][i % PANEL] = cells[i]),
            }
        }
        Self { row, column, rows, columns, panels }
    }

    /// Whether the tile holds cells above the diagonal of the larger matrix: it is then part of a square on the diagonal.
    pub(crate) fn is_on_diagonal(&self) -> bool {
        self.column >= self.row
    }

    /// What stands on the diagonal of the larger matrix, of a tile that is on it.
    pub(crate) fn diagonal(&self) -> impl Iterator<Item = f64> {
        (0..self.columns).map(|j| self.get(self.column - self.row + j, j))
    }

    /// A cell by its row and column within the tile.
    fn get(&self, i: usize, j: usize) -> f64 {
        self.panels[i / PANEL * self.columns + j][i % PANEL]
    }

    /// Whether every number is finite.
    pub(crate) fn is_all_finite(&self) -> bool {
        self.panels.iter().flatten().all(|x| x.is_finite())
    }

    /// Calls `f` with the row and the column in the larger matrix, and the value of each cell.
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, usize, f64)) {
        for j in 0..self.columns {
            (0..self.rows).for_each(|i| f(self.row + i, self.column + j, self.get(i, j)));
        }
    }

    /// Adds what the tile contributes to the product of a symmetric matrix with vectors, on the calling thread: A times
    /// the vectors beside its columns and, off the diagonal, Aᵀ times those beside its rows.
    pub(crate) fn add_products(&self, out: &mut NarrowBlock, vectors: &NarrowBlock) {
        for (out, vectors) in out.groups.iter_mut().zip(&vectors.groups) {
            let (below, above) =
                (self.row..self.row + padded(self.rows), self.column..self.column + self.columns);
            let (columns, rows) = out.split_at_mut(below.start);
            Arch::new().dispatch(BothProducts {
                panels: &self.panels,
                right: &vectors[above.clone()],
                left: &vectors[below.clone()],
                along_rows: &mut rows[..below.len()],
                along_columns: if self.is_on_diagonal() { &mut [] } else { &mut columns[above] },
            });
        }
    }
}

/// A times `right` (k × 8), added to `along_rows` (m × 8), and Aᵀ times `left` (m × 8), added to `along_columns` (k × 8)
/// unless that is empty.
struct BothProducts<'a> {
    panels: &'a [Eight],
    right: &'a [Eight],
    left: &'a [Eight],
    along_rows: &'a mut [Eight],
    along_columns: &'a mut [Eight],
}

impl WithSimd for BothProducts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { panels, right, left, along_rows, along_columns } = self;
        let k = right.len();
        let mut first = 0;
        while first < along_rows.len() {
            let panel = &panels[first / PANEL * k..][..k];
            let rows = &mut along_rows[first..first + PANEL];
            let left = &left[first..first + PANEL];
            // A row of vectors is one register of AVX-512, two of AVX2, four of the usual others.
            match S::F64_LANES {
                8 => both_products::<S, 8, 1>(simd, panel, (left, right), rows, along_columns),
                4 => both_products::<S, 4, 2>(simd, panel, (left, right), rows, along_columns),
                2 => both_products::<S, 2, 4>(simd, panel, (left, right), rows, along_columns),
                _ => both_products::<S, 1, 8>(simd, panel, (left, right), rows, along_columns),
            }
            first += PANEL;
        }
    }
}

// The loops below are written out, without iterators: those are not always compiled for the vector unit that was found,
// and then take ten times as long. Sums stay in registers from the first term to the last.

/// The registers of a row of vectors.
#[inline(always)]
fn registers<S: Simd>(row: &Eight) -> &[S::f64s] {
    S::as_simd_f64s(row).0
}

/// Both products of a panel, V registers for each row of vectors and R such rows at a time. Columns first: they go through
/// the panel, which comes from memory, with the most work for each cell.
#[inline(always)]
fn both_products<S: Simd, const R: usize, const V: usize>(
    simd: S,
    panel: &[Eight],
    (left, right): (&[Eight], &[Eight]),
    rows: &mut [Eight],
    columns: &mut [Eight],
) {
    let mut j = 0;
    while j + R <= columns.len() {
        add_columns::<S, R, V>(simd, &panel[j..j + R], left, &mut columns[j..j + R]);
        j += R;
    }
    while j < columns.len() {
        add_columns::<S, 1, V>(simd, &panel[j..j + 1], left, &mut columns[j..j + 1]);
        j += 1;
    }
    let mut first = 0;
    while first < PANEL {
        add_rows::<S, R, V>(simd, panel, right, rows, first);
        first += R;
    }
}

/// R rows of the panel from row r on, in V registers each.
#[inline(always)]
fn add_rows<S: Simd, const R: usize, const V: usize>(
    simd: S,
    panel: &[Eight],
    right: &[Eight],
    rows: &mut [Eight],
    first: usize,
) {
    let mut sums = [[simd.splat_f64s(0.0); V]; R];
    let mut j = 0;
    while j < panel.len() {
        let (cells, vectors) = (&panel[j], registers::<S>(&right[j]));
        let mut r = 0;
        while r < R {
            let cell = simd.splat_f64s(cells[first + r]);
            let mut v = 0;
            while v < V {
                sums[r][v] = simd.mul_add_f64s(cell, vectors[v], sums[r][v]);
                v += 1;
            }
            r += 1;
        }
        j += 1;
    }
    let mut r = 0;
    while r < R {
        add_to::<S, V>(simd, &mut rows[first + r], &sums[r]);
        r += 1;
    }
}

#[inline(always)]
fn add_to<S: Simd, const V: usize>(simd: S, row: &mut Eight, sums: &[S::f64s; V]) {
    let row = S::as_mut_simd_f64s(row).0;
    let mut v = 0;
    while v < V {
        row[v] = simd.add_f64s(row[v], sums[v]);
        v += 1;
    }
}

/// What the eight rows of a panel add to R columns, in V registers each.
#[inline(always)]
fn add_columns<S: Simd, const R: usize, const V: usize>(
    simd: S,
    panel: &[Eight],
    left: &[Eight],
    columns: &mut [Eight],
) {
    let mut sums = [[simd.splat_f64s(0.0); V]; R];
    let mut row = 0;
    while row < PANEL {
        let vectors = registers::<S>(&left[row]);
        let mut r = 0;
        while r < R {
            let cell = simd.splat_f64s(panel[r][row]);
            let mut v = 0;
            while v < V {
                sums[r][v] = simd.mul_add_f64s(cell, vectors[v], sums[r][v]);
                v += 1;
            }
            r += 1;
        }
        row += 1;
    }
    let mut r = 0;
    while r < R {
        add_to::<S, V>(simd, &mut columns[r], &sums[r]);
        r += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    /// Small whole numbers: products and sums are exact in any order.
    fn whole(rows: usize, columns: usize, seed: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |i, j| ((i * 7 + j * 13 + seed) % 31) as f64 - 15.0)
    }

    /// With every vector unit, the one of this machine among them.
    fn both_products(both: BothProducts<'_>, scalar: bool) {
        match scalar {
            true => both.with_simd(pulp::Scalar::new()),
            false => Arch::new().dispatch(both),
        }
    }

    #[test]
    fn products_are_those_of_matrices() {
        for (m, k) in [(1, 1), (4, 3), (7, 10), (64, 33), (3, 0), (8, 8), (17, 256)] {
            let a = whole(m, k, 1);
            let tile = PanelTile::new((0, 0), a.as_ref());
            assert!((0..m).all(|i| (0..k).all(|j| tile.get(i, j) == a[(i, j)])));
            let (right, left) = (whole(k, 8, 2), whole(m, 8, 3));
            let (narrow_right, narrow_left) =
                (NarrowBlock::of(right.as_ref()), NarrowBlock::of(left.as_ref()));
            for scalar in [false, true] {
                let (mut rows, mut columns) = (narrow_left.clone(), narrow_right.clone());
                both_products(
                    BothProducts {
                        panels: &tile.panels,
                        right: &narrow_right.groups[0][..k],
                        left: &narrow_left.groups[0],
                        along_rows: &mut rows.groups[0],
                        along_columns: &mut columns.groups[0][..k],
                    },
                    scalar,
                );
                assert_eq!(rows.to_mat(), &left + product(a.as_ref(), right.as_ref()), "{m} × {k}");
                assert_eq!(columns.to_mat(), &right + product(a.transpose(), left.as_ref()), "{m} × {k}");
                let mut rows = narrow_left.clone();
                let (right, left) = (&narrow_right.groups[0][..k], &narrow_left.groups[0]);
                let along_rows = &mut rows.groups[0];
                both_products(
                    BothProducts { panels: &tile.panels, right, left, along_rows, along_columns: &mut [] },
                    scalar,
                );
                let expected = narrow_left.to_mat() + product(a.as_ref(), narrow_right.to_mat().as_ref());
                assert_eq!(rows.to_mat(), expected, "{m} × {k}");
            }
        }
    }

    #[test]
    fn vectors_come_back_as_they_were() {
        for (n, b) in [(0, 1), (1, 1), (9, 8), (16, 9), (5, 25)] {
            let vectors = whole(n, b, 4);
            let narrow = NarrowBlock::of(vectors.as_ref());
            assert_eq!((narrow.to_mat(), narrow.ncols()), (vectors, b));
        }
    }
}

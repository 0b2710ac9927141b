//! Products of a large matrix with a few vectors.
//!
//! A general product first copies the large operand into an order of its own, which takes as long as the arithmetic
//! where the other side has ten columns. Here the vectors lie row after row, so that a row of them is a few
//! registers, and the large operand is read as it lies: a few rows of the result stay in registers from the first term
//! to the last.

use pulp::{Arch, Simd, WithSimd};

use super::{Mat, MatRef};

/// Columns of one register of the usual vector unit: vectors are filled up to so many.
const LANES: usize = 4;
/// Rows of the result that share what is loaded of the vectors. Four rows of two registers are eight sums, as many as
/// hide how long an addition takes; with twelve, sums were moved to memory and back.
const ROWS: usize = 4;

/// A few vectors (n × b), row after row; zeros fill each row up to whole registers.
#[derive(Debug, Clone)]
pub(crate) struct NarrowBlock {
    cells: Vec<f64>, // (n × width)
    rows: usize,
    columns: usize,
}

impl NarrowBlock {
    /// Zeros.
    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        Self { cells: vec![0.0; rows * columns.next_multiple_of(LANES)], rows, columns }
    }

    /// The columns of a matrix.
    pub(crate) fn of(matrix: MatRef<'_, f64>) -> Self {
        let mut out = Self::zeros(matrix.nrows(), matrix.ncols());
        let width = out.width();
        for (j, column) in matrix.col_iter().enumerate() {
            let cells = out.cells.iter_mut().skip(j).step_by(width);
            cells.zip(column.iter()).for_each(|(cell, x)| *cell = *x);
        }
        out
    }

    /// The same as a matrix.
    pub(crate) fn to_mat(&self) -> Mat<f64> {
        let width = self.width();
        Mat::from_fn(self.rows, self.columns, |i, j| self.cells[i * width + j])
    }

    /// b.
    pub(crate) fn ncols(&self) -> usize {
        self.columns
    }

    /// Cells between neighbouring rows.
    pub(crate) fn width(&self) -> usize {
        self.columns.next_multiple_of(LANES)
    }

    /// Some rows (rows × width).
    pub(crate) fn rows(&self, first: usize, rows: usize) -> &[f64] {
        &self.cells[first * self.width()..][..rows * self.width()]
    }

    /// The same to be changed.
    pub(crate) fn rows_mut(&mut self, first: usize, rows: usize) -> &mut [f64] {
        let width = self.width();
        &mut self.cells[first * width..][..rows * width]
    }

    /// Adds another block of the same shape.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cells.iter_mut().zip(&other.cells).for_each(|(a, b)| *a += b);
    }
}

/// out (m × width) += A B on the calling thread, for the columns of A (m × k) one after the other and the rows of B
/// (k × width).
pub(crate) fn add_narrow(out: &mut [f64], a: &[f64], block: &[f64], width: usize) {
    Arch::new().dispatch(ByColumns(Operands { out, a, block, width }));
}

/// out (k × width) += Aᵀ B on the calling thread, for the columns of A (m × k) one after the other and the rows of B
/// (m × width).
pub(crate) fn add_narrow_transposed(out: &mut [f64], a: &[f64], block: &[f64], width: usize) {
    Arch::new().dispatch(ByRows(Operands { out, a, block, width }));
}

struct Operands<'a> {
    out: &'a mut [f64],
    a: &'a [f64],
    block: &'a [f64],
    width: usize,
}

/// A B, the terms of a row of the result one column of A after the other.
struct ByColumns<'a>(Operands<'a>);
/// Aᵀ B, a row of the result for each column of A.
struct ByRows<'a>(Operands<'a>);

impl WithSimd for ByColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Operands { out, a, block, width } = self.0;
        if width == 0 || out.is_empty() {
            return;
        }
        let m = out.len() / width;
        let mut first = 0;
        while first + ROWS <= m {
            let rows = &mut out[first * width..(first + ROWS) * width];
            add_terms::<S, ROWS, _>(simd, rows, block, width, AcrossColumns { a, m, first });
            first += ROWS;
        }
        while first < m {
            let row = &mut out[first * width..(first + 1) * width];
            add_terms::<S, 1, _>(simd, row, block, width, AcrossColumns { a, m, first });
            first += 1;
        }
    }
}

impl WithSimd for ByRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Operands { out, a, block, width } = self.0;
        if width == 0 || block.is_empty() {
            return;
        }
        let (m, k) = (block.len() / width, out.len() / width);
        let mut first = 0;
        while first + ROWS <= k {
            let rows = &mut out[first * width..(first + ROWS) * width];
            let columns: [&[f64]; ROWS] = std::array::from_fn(|r| &a[(first + r) * m..(first + r + 1) * m]);
            add_terms::<S, ROWS, _>(simd, rows, block, width, AlongColumns { columns });
            first += ROWS;
        }
        while first < k {
            let row = &mut out[first * width..(first + 1) * width];
            add_terms::<S, 1, _>(
                simd,
                row,
                block,
                width,
                AlongColumns { columns: [&a[first * m..(first + 1) * m]] },
            );
            first += 1;
        }
    }
}

/// What each row of the vectors is multiplied by for R rows of the result. Loops over these are written out, without
/// iterators: those are not always compiled for the vector unit that was found, and then take ten times as long.
trait Terms<const R: usize>: Copy {
    fn of(&self, row: usize) -> [f64; R];
}

/// Rows first … first + R of A (m × k).
#[derive(Clone, Copy)]
struct AcrossColumns<'a> {
    a: &'a [f64],
    m: usize,
    first: usize,
}

/// R columns of A.
#[derive(Clone, Copy)]
struct AlongColumns<'a, const R: usize> {
    columns: [&'a [f64]; R],
}

impl<const R: usize> Terms<R> for AcrossColumns<'_> {
    #[inline(always)]
    fn of(&self, row: usize) -> [f64; R] {
        let from = row * self.m + self.first;
        let cells = &self.a[from..from + R];
        let mut out = [0.0; R];
        let mut r = 0;
        while r < R {
            out[r] = cells[r];
            r += 1;
        }
        out
    }
}

impl<const R: usize> Terms<R> for AlongColumns<'_, R> {
    #[inline(always)]
    fn of(&self, row: usize) -> [f64; R] {
        let mut out = [0.0; R];
        let mut r = 0;
        while r < R {
            out[r] = self.columns[r][row];
            r += 1;
        }
        out
    }
}

/// R rows of the result (R × width): the terms of each row of the vectors (· × width), times that row. Columns go two
/// registers at a time: a single one would wait for its own sums.
#[inline(always)]
fn add_terms<S: Simd, const R: usize, T: Terms<R>>(
    simd: S,
    out: &mut [f64],
    block: &[f64],
    width: usize,
    terms: T,
) {
    if !width.is_multiple_of(S::F64_LANES) {
        return add_terms_cell_by_cell(out, block, width, terms);
    }
    let ((out, _), (block, _)) = (S::as_mut_simd_f64s(out), S::as_simd_f64s(block));
    let width = width / S::F64_LANES;
    let mut first = 0;
    while first < width {
        first += match width - first {
            1 => add_group::<S, R, 1, T>(simd, out, block, (width, first), terms),
            _ => add_group::<S, R, 2, T>(simd, out, block, (width, first), terms),
        };
    }
}

/// The same for V registers of columns from `first` on: R·V sums stay in registers from the first term to the last.
#[inline(always)]
fn add_group<S: Simd, const R: usize, const V: usize, T: Terms<R>>(
    simd: S,
    out: &mut [S::f64s],
    block: &[S::f64s],
    (width, first): (usize, usize),
    terms: T,
) -> usize {
    let mut sums = [[simd.splat_f64s(0.0); V]; R];
    let rows = block.len() / width;
    let mut i = 0;
    while i < rows {
        let row = &block[i * width + first..i * width + first + V];
        let cells = terms.of(i);
        let mut r = 0;
        while r < R {
            let cell = simd.splat_f64s(cells[r]);
            let mut v = 0;
            while v < V {
                sums[r][v] = simd.mul_add_f64s(cell, row[v], sums[r][v]);
                v += 1;
            }
            r += 1;
        }
        i += 1;
    }
    let mut r = 0;
    while r < R {
        let row = &mut out[r * width + first..r * width + first + V];
        let mut v = 0;
        while v < V {
            row[v] = simd.add_f64s(row[v], sums[r][v]);
            v += 1;
        }
        r += 1;
    }
    V
}

/// The same where registers do not divide the width.
fn add_terms_cell_by_cell<const R: usize>(
    out: &mut [f64],
    block: &[f64],
    width: usize,
    terms: impl Terms<R>,
) {
    for (i, row) in block.chunks_exact(width).enumerate() {
        for (out, cell) in out.chunks_exact_mut(width).zip(terms.of(i)) {
            out.iter_mut().zip(row).for_each(|(out, x)| *out += cell * x);
        }
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

    #[test]
    fn products_are_those_of_matrices() {
        for (m, k) in [(1, 1), (4, 3), (7, 10), (64, 33), (0, 3), (3, 0)] {
            for b in [1, 2, 4, 5, 8, 12, 13, 20, 25] {
                let a = whole(m, k, 1);
                let cells: Vec<f64> = a.col_iter().flat_map(|c| c.iter().copied()).collect();
                let (right, left) = (whole(k, b, 2), whole(m, b, 3));
                let (narrow, mut out) = (NarrowBlock::of(right.as_ref()), NarrowBlock::of(left.as_ref()));
                let width = narrow.width();
                add_narrow(out.rows_mut(0, m), &cells, narrow.rows(0, k), width);
                assert_eq!(out.to_mat(), &left + product(a.as_ref(), right.as_ref()), "{m} × {k}, {b}");
                let mut out = narrow;
                add_narrow_transposed(
                    out.rows_mut(0, k),
                    &cells,
                    NarrowBlock::of(left.as_ref()).rows(0, m),
                    width,
                );
                assert_eq!(out.to_mat(), &right + product(a.transpose(), left.as_ref()), "{m} × {k}, {b}");
            }
        }
    }
}

//! A large symmetric matrix held once: the tiles on and below its diagonal.
//!
//! Half of the memory of the whole, and a product with a block of vectors reads each tile once and uses it twice,
//! for itself and for its mirror image.

use rayon::prelude::*;

use super::narrow::{NarrowBlock, PanelTile};
use super::{Mat, MatMut, MatRef, TASKS};
use crate::parallel;

/// Rows of a tile, and columns of the squares that are cut into tiles.
const TILE: usize = 256;
/// Columns of a tile. Eight rows of it, and the vectors beside its columns, stay in a core's smallest cache.
const COLUMNS: usize = 64;

/// The squares A_IJ, I ≥ J, of a symmetric matrix (n × n), cut into tiles.
#[derive(Debug, Clone)]
pub(crate) struct SymmetricTiles {
    n: usize,
    tiles: Vec<PanelTile>,
}

impl SymmetricTiles {
    /// Tiles as `make` fills them on all threads, given the first row, the first column and room with any numbers.
    pub(crate) fn from_tiles(n: usize, make: impl Fn(usize, usize, MatMut<'_, f64>) + Sync) -> Self {
        let starts = || (0..n).step_by(TILE);
        let squares = starts().flat_map(|j| (j..n).step_by(TILE).map(move |i| (i, j)));
        let columns = |first: usize| (first..n.min(first + TILE)).step_by(COLUMNS);
        let places: Vec<(usize, usize)> =
            squares.flat_map(|(i, j)| columns(j).map(move |column| (i, column))).collect();
        let room = || Mat::zeros(TILE.min(n), COLUMNS.min(n));
        let tile = |room: &mut Mat<f64>, (row, column): (usize, usize)| {
            let (rows, columns) = (TILE.min(n - row), COLUMNS.min(n - column));
            let mut cells = room.as_mut().submatrix_mut(0, 0, rows, columns);
            make(row, column, cells.as_mut());
            PanelTile::new((row, column), cells.as_ref())
        };
        Self { n, tiles: places.into_par_iter().map_init(room, tile).collect() }
    }

    /// Of a whole matrix, whose lower triangle is read.
    pub(crate) fn of_lower(matrix: MatRef<'_, f64>) -> Self {
        Self::from_tiles(matrix.nrows(), |i, j, mut tile| {
            for c in 0..tile.ncols() {
                for r in 0..tile.nrows() {
                    tile[(r, c)] = matrix[((i + r).max(j + c), (i + r).min(j + c))];
                }
            }
        })
    }

    /// Whether every number is finite.
    pub(crate) fn is_all_finite(&self) -> bool {
        self.tiles.par_iter().all(PanelTile::is_all_finite)
    }

    /// The diagonal (n).
    pub(crate) fn diagonal(&self) -> Vec<f64> {
        let on_diagonal = self.tiles.iter().filter(|tile| tile.is_on_diagonal());
        on_diagonal.flat_map(PanelTile::diagonal).collect()
    }

    /// A B for a block of vectors (n × b): Σ over tiles, in an order that does not depend on the threads.
    pub(crate) fn times(&self, block: MatRef<'_, f64>) -> Mat<f64> {
        let share = self.tiles.len().div_ceil(TASKS).max(1);
        let vectors = NarrowBlock::of(block);
        let part = |tiles: &[PanelTile]| {
            let mut out = NarrowBlock::zeros(self.n, vectors.ncols());
            tiles.iter().for_each(|tile| tile.add_products(&mut out, &vectors));
            out
        };
        let shares: Vec<&[PanelTile]> = self.tiles.chunks(share).collect();
        let parts = parallel::map(shares.len(), |i| part(shares[i]));
        let mut parts = parts.into_iter();
        let mut out = parts.next().unwrap_or_else(|| NarrowBlock::zeros(self.n, block.ncols()));
        parts.for_each(|part| out.add(&part));
        out.to_mat()
    }

    /// The whole matrix, as `f` of row, column and value changes it.
    pub(crate) fn into_whole(self, f: impl Fn(usize, usize, f64) -> f64) -> Mat<f64> {
        let mut out = Mat::zeros(self.n, self.n);
        for tile in self.tiles {
            tile.for_each(|row, column, value| {
                let value = f(row, column, value);
                (out[(row, column)], out[(column, row)]) = (value, value);
            });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    fn entry(i: usize, j: usize) -> f64 {
        ((i.max(j) * 7 + i.min(j) * 13) % 31) as f64 - 15.0
    }

    #[test]
    fn products_are_those_of_the_whole_matrix() {
        for n in [1, 5, 256, 257, 700] {
            let whole = Mat::from_fn(n, n, entry);
            let tiles = SymmetricTiles::of_lower(whole.as_ref());
            let block = Mat::from_fn(n, 11, |i, j| ((i + 5 * j) % 11) as f64 - 5.0);
            // Small whole numbers: products and sums are exact in any order.
            assert_eq!(tiles.times(block.as_ref()), product(whole.as_ref(), block.as_ref()), "{n}");
            assert_eq!(tiles.diagonal(), (0..n).map(|i| entry(i, i)).collect::<Vec<_>>());
            assert_eq!(tiles.into_whole(|_, _, x| x), whole);
        }
    }
}

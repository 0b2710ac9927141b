//! What every `fit` and every question takes: anything that can be seen as rows.

use super::chunk::whole_rows;
use super::{Block, Cells, RowSource, Table};
use crate::error::Result;
use crate::linalg::{Mat, MatRef};

/// Rows from anywhere: a matrix view, a slice with a width, a [`Table`], or any [`RowSource`].
///
/// ```
/// use covary::data::{RowSource, Rows};
/// let rows = Rows::from_slice(&[1.0, 2.0, 3.0, 4.0], 2)?;
/// assert_eq!(rows.source().n_features(), 2);
/// # Ok::<(), covary::Error>(())
/// ```
pub enum Rows<'a> {
    /// In memory.
    Table(Table<'a>),
    /// Anything else.
    Source(&'a dyn RowSource),
}

impl<'a> Rows<'a> {
    /// Row-major cells, `width` to a row.
    ///
    /// # Errors
    /// When the slice does not hold whole rows.
    pub fn from_slice<T>(cells: &'a [T], width: usize) -> Result<Self>
    where
        Self: From<MatRef<'a, T>>,
    {
        let rows = whole_rows(cells.len(), width)?;
        Ok(MatRef::from_row_major_slice(cells, rows, width).into())
    }

    /// The grid of chunks.
    pub fn source(&self) -> &dyn RowSource {
        match self {
            Self::Table(table) => table,
            Self::Source(source) => *source,
        }
    }
}

impl<'a> From<MatRef<'a, f64>> for Rows<'a> {
    fn from(view: MatRef<'a, f64>) -> Self {
        Self::Table(Table::new(Cells::F64(Block::View(view))))
    }
}

impl<'a> From<MatRef<'a, f32>> for Rows<'a> {
    fn from(view: MatRef<'a, f32>) -> Self {
        Self::Table(Table::new(Cells::F32(Block::View(view))))
    }
}

impl<'a> From<&'a Mat<f64>> for Rows<'a> {
    fn from(matrix: &'a Mat<f64>) -> Self {
        matrix.as_ref().into()
    }
}

impl<'a> From<&'a Mat<f32>> for Rows<'a> {
    fn from(matrix: &'a Mat<f32>) -> Self {
        matrix.as_ref().into()
    }
}

impl<'a> From<Table<'a>> for Rows<'a> {
    fn from(table: Table<'a>) -> Self {
        Self::Table(table)
    }
}

impl<'a> From<&'a dyn RowSource> for Rows<'a> {
    fn from(source: &'a dyn RowSource) -> Self {
        Self::Source(source)
    }
}

impl<'a, S: RowSource> From<&'a S> for Rows<'a> {
    fn from(source: &'a S) -> Self {
        Self::Source(source)
    }
}

impl<'a> From<&'a Rows<'a>> for Rows<'a> {
    fn from(rows: &'a Rows<'a>) -> Self {
        Self::Source(rows.source())
    }
}

/// Views in C or Fortran order are borrowed; any other order is copied once.
#[cfg(feature = "ndarray")]
mod ndarray_views {
    use ndarray::ArrayView2;

    use super::{Block, Cells, MatRef, Rows, Table};
    use crate::data::Order;

    macro_rules! from_view {
        ($number:ty, $cells:path) => {
            impl<'a> From<ArrayView2<'a, $number>> for Rows<'a> {
                fn from(view: ArrayView2<'a, $number>) -> Self {
                    let (nrows, ncols) = view.dim();
                    if let Some(slice) = view.to_slice() {
                        return MatRef::from_row_major_slice(slice, nrows, ncols).into();
                    }
                    if let Some(slice) = view.reversed_axes().to_slice() {
                        return MatRef::from_column_major_slice(slice, nrows, ncols).into();
                    }
                    let cells = view.iter().copied().collect();
                    let block = Block::Owned { cells, nrows, ncols, order: Order::Rows };
                    Self::Table(Table::new($cells(block)))
                }
            }
        };
    }
    from_view!(f64, Cells::F64);
    from_view!(f32, Cells::F32);
}

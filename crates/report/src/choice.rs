//! What methods would choose as the number of components, where that is found quickly.

use covary::data::{Block, Cells, Order, RowSource, Table};
use covary::persist::SavedModel;
use covary::select::{Select, Selection};

/// Features up to which the choice is looked at.
const FEATURES: usize = 100;
/// Cells up to which the choice is looked at.
const CELLS: usize = 2_000_000;
/// Largest number of components that is looked at.
const MOST: usize = 30;

/// The table over q of complete rows (n × p, row by row), in the units of the fit; nothing where that takes long, cells
/// are missing or nothing can be said.
pub(crate) fn choice(saved: &SavedModel, cells: &[f64], seed: u64) -> Option<Selection> {
    let p = saved.model.n_features();
    if saved.model.as_loadings().is_none()
        || p > FEATURES
        || cells.len() > CELLS
        || cells.iter().any(|x| x.is_nan())
    {
        return None;
    }
    let scale = saved.report.scaled.as_ref().map_or_else(|| vec![1.0; p], |scaled| scaled.factors.clone());
    let scaled: Vec<f64> = cells.iter().enumerate().map(|(at, x)| x / scale[at % p]).collect();
    let nrows = scaled.len() / p;
    let rows = Table::new(Cells::F64(Block::Owned { cells: scaled, nrows, ncols: p, order: Order::Rows }));
    let source: &dyn RowSource = &rows;
    Select::new().max(MOST.min(p.saturating_sub(1)).max(1)).seed(seed).run(source).ok()
}

//! What `covary select` was asked for.

use covary::select::Select as Asked;
use covary_io::TripleColumns;

use super::Pass;
use crate::flags;

/// What `select` works with.
pub(crate) struct Select {
    pub(crate) pass: Pass,
    pub(crate) select: Asked,
    /// The columns that say who, what and how much, if the data give one cell in each row.
    pub(crate) triples: Option<TripleColumns>,
    /// Whether to go on without features that were never observed.
    pub(crate) drop_empty: bool,
    pub(crate) json: bool,
}

impl Select {
    pub(crate) fn resolve(flags: flags::Select) -> Self {
        let mut select = Asked::new().seed(flags.seed).cells(flags.cells);
        if let Some(folds) = flags.folds {
            select = select.folds(folds);
        }
        if let Some(max) = flags.max {
            select = select.max(max);
        }
        let (drop_empty, json) = (flags.drop_empty, flags.json);
        Self { pass: Pass::resolve(flags.pass), select, triples: flags.triples, drop_empty, json }
    }
}

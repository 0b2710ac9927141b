//! What `covary select` was asked for.

use covary::select::{FOLDS, Select as Asked};

use super::Pass;
use crate::flags;

/// What `select` works with.
pub(crate) struct Select {
    pub(crate) pass: Pass,
    pub(crate) select: Asked,
    pub(crate) folds: usize,
    pub(crate) json: bool,
}

impl Select {
    pub(crate) fn resolve(flags: flags::Select) -> Self {
        let folds = flags.folds.unwrap_or(FOLDS);
        let select = Asked::new().seed(flags.seed).folds(folds);
        let select = flags.max.map_or(select.clone(), |max| select.max(max));
        Self { pass: Pass::resolve(flags.pass), select, folds, json: flags.json }
    }
}

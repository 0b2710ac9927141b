//! What `covary select` was asked for.

use std::path::PathBuf;

use covary_io::{Budget, ReadOptions};

use super::{options, set_threads};
use crate::console::Console;
use crate::exit::Result;
use crate::flags;

/// What `select` works with.
pub(crate) struct Select {
    pub(crate) data: PathBuf,
    pub(crate) options: ReadOptions,
    pub(crate) budget: Budget,
    pub(crate) select: covary::select::Select,
    pub(crate) folds: usize,
    pub(crate) json: bool,
    pub(crate) console: Console,
}

impl Select {
    pub(crate) fn resolve(flags: flags::Select) -> Result<Self> {
        set_threads(flags.running.threads);
        let budget = Budget::new(flags.memory);
        let folds = flags.folds.unwrap_or(covary::select::FOLDS);
        let mut select = covary::select::Select::new().seed(flags.seed).folds(folds);
        if let Some(max) = flags.max {
            select = select.max(max);
        }
        Ok(Self {
            data: flags.data,
            options: options(flags.columns, flags.weights, budget.chunk_bytes()),
            budget,
            select,
            folds,
            json: flags.json,
            console: Console::new(flags.running.quiet),
        })
    }
}

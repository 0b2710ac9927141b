//! What `covary score` was asked for.

use super::Question;
use crate::exit::Result;
use crate::flags;

/// What `score` works with.
pub(crate) struct Score {
    pub(crate) question: Question,
    /// Only so many rows, the least likely first.
    pub(crate) worst: Option<usize>,
    pub(crate) asked: Asked,
}

/// What is written of the rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asked {
    /// A line for each, with control limits at a level if there is one.
    Rows { limits: Option<f64> },
    /// A line for each cell.
    Cells,
    /// Sentences.
    Words,
}

impl Score {
    pub(crate) fn resolve(flags: flags::Score) -> Result<Self> {
        let asked = match (flags.words, flags.contributions) {
            (true, _) => Asked::Words,
            (false, true) => Asked::Cells,
            (false, false) => Asked::Rows { limits: flags.limits },
        };
        Ok(Self { question: Question::resolve(flags.question, flags.triples)?, worst: flags.worst, asked })
    }
}

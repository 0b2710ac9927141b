//! How many groups of rows are wanted: clusters, or components of a mixture.

use crate::error::{Error, Result};

/// How many groups are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// So many.
    Count(usize),
    /// As many as are best, from the first number to the second.
    Between(usize, usize),
}

impl Groups {
    /// What `auto` looks at.
    pub const AUTO: Self = Self::Between(1, 10);

    /// The fewest and the most.
    pub fn range(self) -> (usize, usize) {
        match self {
            Self::Count(count) => (count, count),
            Self::Between(fewest, most) => (fewest, most),
        }
    }

    /// What makes no sense whatever the data.
    pub(crate) fn check(self) -> Result<()> {
        let (fewest, most) = self.range();
        if fewest >= 1 && fewest <= most {
            return Ok(());
        }
        let allowed = "at least 1, or a range from a smaller number to a larger one";
        Err(Error::Parameter { name: "the number of groups", value: self.to_string(), allowed })
    }
}

impl From<usize> for Groups {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl std::fmt::Display for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Between(fewest, most) => write!(f, "{fewest} to {most}"),
        }
    }
}

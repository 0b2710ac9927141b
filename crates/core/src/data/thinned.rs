//! Some of the rows of a source, spread over all of it: for a rough answer in a part of the time.

use super::{Chunk, RowSource};
use crate::error::Result;

/// Every k-th chunk of a source.
pub(crate) struct Thinned<'a> {
    source: &'a dyn RowSource,
    step: usize,
}

impl<'a> Thinned<'a> {
    /// About so many of `all` rows, or a few more; `None` where that is not less than a third of them.
    pub(crate) fn to_about(source: &'a dyn RowSource, rows: usize, all: usize) -> Option<Self> {
        let step = (all / rows.max(1)).min(source.n_chunks() / LEAST_CHUNKS);
        (step >= LEAST_STEP).then_some(Self { source, step })
    }

    /// k.
    pub(crate) fn step(&self) -> usize {
        self.step
    }
}

/// Chunks that are left at least: rows that stand together may be alike.
const LEAST_CHUNKS: usize = 4;
/// Below, so little is spared that all rows are as good.
const LEAST_STEP: usize = 3;

impl RowSource for Thinned<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks().div_ceil(self.step)
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        self.source.chunk(index * self.step)
    }

    fn check(&self) -> Result<()> {
        self.source.check()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }

    fn observed_only(&self) -> bool {
        self.source.observed_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Rows, map_chunks};

    #[test]
    fn chunks_come_from_all_over_the_source() {
        let cells: Vec<f64> = (0..20_000).map(f64::from).collect();
        let rows = Rows::from_slice(&cells, 1).unwrap();
        let source = rows.source();
        let thinned = Thinned::to_about(source, 4000, 20_000).unwrap();
        assert_eq!(thinned.step(), source.n_chunks() / 4);
        let firsts = map_chunks(&thinned, |chunk| Ok(chunk.first_row())).unwrap();
        let expected: Vec<usize> =
            (0..source.n_chunks()).step_by(4).map(|i| source.chunk(i).unwrap().first_row()).collect();
        assert_eq!(firsts, expected);
        assert!(Thinned::to_about(source, 10_000, 20_000).is_none());
    }
}

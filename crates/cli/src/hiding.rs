//! Observed cells that are hidden at random, so that predictions of them can be compared with what they are.

use covary::data::{Cells, Chunk, Observed, Order, RowSource, map_chunks};
use covary::error::Cell;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Streams of the generator that belong to rows whose cells are hidden.
const STREAMS: u64 = 1 << 62;

/// Which observed cells are hidden: a draw for each, so that neither chunks nor threads matter.
pub(crate) struct Hiding {
    share: f64,
    seed: u64,
    /// Features of which nothing would be left, so that nothing is hidden.
    spared: Vec<bool>,
    /// Mean of what is left of each feature.
    pub(crate) means: Vec<f64>,
    /// Observed cells, hidden ones included.
    pub(crate) observed: usize,
    /// Features that have no cell.
    pub(crate) empty: Vec<usize>,
}

/// A cell that is hidden: row, feature and value.
pub(crate) type HiddenCell = (usize, usize, f64);

impl Hiding {
    /// One pass over the rows.
    pub(crate) fn new(source: &dyn RowSource, share: f64, seed: u64) -> covary::Result<Self> {
        let p = source.n_features();
        let draws = Self { share, seed, spared: vec![false; p], means: vec![], observed: 0, empty: vec![] };
        let parts = map_chunks(source, |chunk| Counts::of(&draws, chunk))?;
        let mut all = Counts::new(p);
        parts.iter().for_each(|part| all.merge(part));
        let mean = |j: usize| if all.left[j] > 0 { all.sums[j] / all.left[j] as f64 } else { f64::NAN };
        Ok(Self {
            spared: all.left.iter().map(|left| *left == 0).collect(),
            means: (0..p).map(mean).collect(),
            observed: all.observed.iter().sum(),
            empty: (0..p).filter(|&j| all.observed[j] == 0).collect(),
            ..draws
        })
    }

    /// Calls `f` with feature and value of each observed cell of a row, and whether it is hidden.
    fn for_each(&self, row: usize, cells: &[(usize, f64)], mut f: impl FnMut(usize, f64, bool)) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(STREAMS | row as u64);
        for &(j, value) in cells {
            let drawn = rng.random::<f64>() < self.share;
            f(j, value, drawn && !self.spared[j]);
        }
    }

    /// Rows without their hidden cells, and these with their row in the chunk.
    pub(crate) fn part(&self, chunk: &Chunk<'_>) -> covary::Result<(Chunk<'static>, Vec<HiddenCell>)> {
        let (n, p) = (chunk.nrows(), chunk.ncols());
        let (mut shown, mut hidden) = (vec![f64::NAN; n * p], Vec::new());
        for i in 0..n {
            self.for_each(chunk.first_row() + i, &row(chunk, i), |j, value, is_hidden| match is_hidden {
                true => hidden.push((i, j, value)),
                false => shown[i * p + j] = value,
            });
        }
        let shown = Chunk::from_rows(chunk.first_row(), shown, p, Order::Rows)?;
        match chunk.weights() {
            Some(weights) => Ok((shown.with_weights(weights.to_vec())?, hidden)),
            None => Ok((shown, hidden)),
        }
    }

    /// Cells without the hidden ones, and these.
    pub(crate) fn part_cells(
        &self,
        cells: &Observed<'_>,
    ) -> covary::Result<(Observed<'static>, Vec<HiddenCell>)> {
        let (mut shown, mut hidden) = (Vec::new(), Vec::new());
        let whole = Chunk::new(0, Cells::Observed(cells.rows(0..cells.nrows())));
        for i in 0..cells.nrows() {
            self.for_each(i, &row(&whole, i), |j, value, is_hidden| {
                if is_hidden { &mut hidden } else { &mut shown }.push((i, j, value));
            });
        }
        Ok((Observed::from_triples(cells.nrows(), cells.n_features(), shown)?, hidden))
    }
}

/// The observed cells of a row, in the order of the features.
fn row(chunk: &Chunk<'_>, i: usize) -> Vec<(usize, f64)> {
    match chunk.cells() {
        Cells::Observed(rows) => {
            let (columns, values) = rows.row(i);
            columns.iter().map(|j| *j as usize).zip(values.iter().copied()).collect()
        }
        cells => {
            (0..chunk.ncols()).map(|j| (j, cells.get(i, j))).filter(|(_, value)| !value.is_nan()).collect()
        }
    }
}

/// What is there of each feature, and what is left of it.
struct Counts {
    observed: Vec<usize>,
    left: Vec<usize>,
    sums: Vec<f64>,
}

impl Counts {
    fn new(p: usize) -> Self {
        Self { observed: vec![0; p], left: vec![0; p], sums: vec![0.0; p] }
    }

    fn of(hiding: &Hiding, chunk: &Chunk<'_>) -> covary::Result<Self> {
        let (mut counts, mut infinite) = (Self::new(chunk.ncols()), None);
        for i in 0..chunk.nrows() {
            let row_index = chunk.first_row() + i;
            hiding.for_each(row_index, &row(chunk, i), |j, value, hidden| {
                if value.is_infinite() {
                    infinite.get_or_insert((value, Cell { row: row_index, column: j, name: None }));
                }
                counts.observed[j] += 1;
                if !hidden {
                    counts.left[j] += 1;
                    counts.sums[j] += value;
                }
            });
        }
        match infinite {
            Some((value, cell)) => Err(covary::Error::Infinite { value, cell }),
            None => Ok(counts),
        }
    }

    fn merge(&mut self, other: &Self) {
        for j in 0..self.sums.len() {
            self.observed[j] += other.observed[j];
            self.left[j] += other.left[j];
            self.sums[j] += other.sums[j];
        }
    }
}

/// Rows of which some cells are hidden, to be fitted.
pub(crate) struct Shown<'a> {
    pub(crate) source: &'a dyn RowSource,
    pub(crate) hiding: &'a Hiding,
}

impl RowSource for Shown<'_> {
    fn n_features(&self) -> usize {
        self.source.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.source.n_chunks()
    }

    fn chunk(&self, index: usize) -> covary::Result<Chunk<'_>> {
        Ok(self.hiding.part(&self.source.chunk(index)?)?.0)
    }

    fn n_rows(&self) -> Option<usize> {
        self.source.n_rows()
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.source.feature_names()
    }
}

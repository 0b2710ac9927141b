//! Fills evidence from a source on all threads, in an order that only the source decides.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Accumulator, travel};
use crate::control::Control;
use crate::data::{RowSource, RowStream};
use crate::error::Result;
use crate::parallel;

/// Runs of consecutive chunks that are added up one after another before they are merged in a tree.
const LANES: usize = 64;
/// Accumulators that take the chunks of a stream in turn.
const STREAM_LANES: usize = 8;

/// One pass over a source: every chunk into an accumulator, merged along a fixed binary tree.
///
/// The result is bit-identical for any number of threads; only about `threads · log₂ 64` accumulators exist
/// at once. Rows that are elsewhere get the empty evidence sent, and give it back filled.
///
/// # Errors
/// The first error in the order of the rows, or [`Interrupted`](crate::Error::Interrupted).
pub fn gather<A: Accumulator>(
    source: &dyn RowSource,
    empty: impl Fn() -> A + Sync,
    control: &Control<'_>,
) -> Result<A> {
    control.start_pass();
    if let Some(remote) = source.remote() {
        return travel::fill(remote, &empty(), source, control).map_err(|e| e.named(source.feature_names()));
    }
    let pass = Pass { source, empty, control, failed: AtomicUsize::new(usize::MAX) };
    let lanes = LANES.min(source.n_chunks());
    let filled = parallel::tree(0..lanes, |lane| pass.lane(lane, lanes), merged);
    filled.unwrap_or_else(|| Ok((pass.empty)())).map_err(|e| e.named(source.feature_names()))
}

struct Pass<'a, F> {
    source: &'a dyn RowSource,
    empty: F,
    control: &'a Control<'a>,
    failed: AtomicUsize, // the first chunk that is known to fail: nothing after it matters
}

impl<A: Accumulator, F: Fn() -> A + Sync> Pass<'_, F> {
    fn lane(&self, lane: usize, of: usize) -> Result<A> {
        let n = self.source.n_chunks();
        let mut accumulator = (self.empty)();
        for index in lane * n / of..(lane + 1) * n / of {
            if self.failed.load(Ordering::Relaxed) < index {
                break;
            }
            self.step(index, &mut accumulator).inspect_err(|_| {
                self.failed.fetch_min(index, Ordering::Relaxed);
            })?;
        }
        Ok(accumulator)
    }

    fn step(&self, index: usize, accumulator: &mut A) -> Result<()> {
        self.control.check()?;
        let chunk = self.source.chunk(index)?;
        accumulator.update(&chunk)?;
        self.control.rows_read(chunk.nrows(), self.source.n_rows());
        Ok(())
    }
}

fn merged<A: Accumulator>(left: Result<A>, right: Result<A>) -> Result<A> {
    let mut all = left?;
    all.merge(&right?)?;
    Ok(all)
}

/// The same for rows that pass once: chunks go to eight accumulators in turn.
///
/// # Errors
/// The first error in the order of the rows, or [`Interrupted`](crate::Error::Interrupted).
pub fn gather_stream<A: Accumulator>(
    stream: &mut dyn RowStream,
    empty: impl Fn() -> A + Sync,
    control: &Control<'_>,
) -> Result<A> {
    control.start_pass();
    let mut lanes: Vec<A> = (0..STREAM_LANES).map(|_| empty()).collect();
    loop {
        control.check()?;
        let mut round = Vec::with_capacity(STREAM_LANES);
        while round.len() < STREAM_LANES {
            match stream.next_chunk()? {
                Some(chunk) => round.push(chunk),
                None => break,
            }
        }
        let results = parallel::map_mut(&mut lanes[..round.len()], |i, lane| lane.update(&round[i]));
        results.into_iter().collect::<Result<()>>()?;
        control.rows_read(round.iter().map(crate::data::Chunk::nrows).sum(), None);
        if round.len() < STREAM_LANES {
            break;
        }
    }
    let mut all = empty();
    lanes.iter().try_for_each(|lane| all.merge(lane))?;
    Ok(all)
}

//! Rows in order: batches parsed on all cores ahead of whoever consumes them, in bounded memory.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use arrow_array::ArrayRef;
use covary::data::{Block, Cells, Chunk, Order, RowStream};

use crate::error::{Error, Result};
use crate::schema::Schema;

/// Consecutive rows of a file: the features, and the columns that are carried along.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Features and weights.
    pub chunk: Chunk<'static>,
    /// The carried columns, in the order of [`Schema::carried`].
    pub carried: Vec<ArrayRef>,
}

/// Cells read from a file, before they are a chunk.
#[derive(Debug)]
pub(crate) enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Batch {
    /// Assembles what was read, and checks the weights.
    pub(crate) fn new(
        schema: &Schema,
        first_row: usize,
        nrows: usize,
        (numbers, order): (Numbers, Order),
        weights: Option<Vec<f64>>,
        carried: Vec<ArrayRef>,
    ) -> Result<Self> {
        let ncols = schema.features.len();
        let cells = match numbers {
            Numbers::F32(cells) => Cells::F32(Block::Owned { cells, nrows, ncols, order }),
            Numbers::F64(cells) => Cells::F64(Block::Owned { cells, nrows, ncols, order }),
        };
        let chunk = Chunk::new(first_row, cells);
        let chunk = match weights {
            None => chunk,
            Some(weights) => chunk.with_weights(weights).map_err(|error| weight_error(schema, error))?,
        };
        Ok(Self { chunk, carried })
    }
}

/// The core knows the row of a bad weight, the file knows its own name and the column's.
fn weight_error(schema: &Schema, error: covary::Error) -> Error {
    match error {
        covary::Error::Weight { row, value } => Error::Weight {
            path: schema.path.clone(),
            row: row + 1,
            column: schema.weights.clone().unwrap_or_default(),
            value,
        },
        error => error.into(),
    }
}

/// Work that yields one batch, to be done on any thread.
pub(crate) type Job = Box<dyn FnOnce() -> Result<Batch> + Send>;

/// Hands out the work of a file piece by piece, in order.
pub(crate) trait Feed: Send {
    /// The next piece of work, or `None` at the end. With `carried`, the batch has the carried columns too.
    fn next_job(&mut self, carried: bool) -> Result<Option<Job>>;
}

/// An iterator over the batches of a file, in order. Ends after the first error.
pub struct Batches {
    feed: Box<dyn Feed>,
    carried: bool,
    in_flight: VecDeque<Receiver<Result<Batch>>>,
    exhausted: bool,
    failed: bool,
}

impl Batches {
    pub(crate) fn new(feed: Box<dyn Feed>, carried: bool) -> Self {
        Self { feed, carried, in_flight: VecDeque::new(), exhausted: false, failed: false }
    }

    /// Starts work until every thread has some and one more piece is waiting.
    fn top_up(&mut self) {
        while !self.exhausted && self.in_flight.len() <= rayon::current_num_threads() {
            let (sender, receiver) = sync_channel(1);
            match self.feed.next_job(self.carried) {
                Ok(Some(job)) => rayon::spawn(move || drop(sender.send(job()))),
                Ok(None) => {
                    self.exhausted = true;
                    return;
                }
                Err(error) => {
                    self.exhausted = true;
                    drop(sender.send(Err(error)));
                }
            }
            self.in_flight.push_back(receiver);
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.failed {
            return None;
        }
        self.top_up();
        let result = wait(&self.in_flight.pop_front()?).unwrap_or_else(|| Err(lost()));
        self.failed = result.is_err();
        Some(result)
    }
}

/// A task ended without an answer: better an error than rows that are silently missing.
fn lost() -> Error {
    Error::Read { path: "input".into(), source: std::io::Error::other("a reading task is gone") }
}

/// Waits for a result; a thread of the pool works meanwhile, so that a pool of one does not wait for itself.
fn wait<T>(receiver: &Receiver<T>) -> Option<T> {
    loop {
        match receiver.try_recv() {
            Ok(value) => return Some(value),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => match rayon::yield_now() {
                None => return receiver.recv().ok(),
                Some(rayon::Yield::Executed) => {}
                Some(rayon::Yield::Idle) => std::thread::sleep(std::time::Duration::from_micros(50)),
            },
        }
    }
}

/// Rows that pass once, in order: what a compressed file or a pipe can offer.
pub struct Stream {
    n_features: usize,
    /// Already read, the next one last.
    ahead: Vec<Chunk<'static>>,
    batches: Batches,
}

impl Stream {
    pub(crate) fn new(schema: &Schema, feed: Box<dyn Feed>) -> Self {
        Self { n_features: schema.features.len(), ahead: Vec::new(), batches: Batches::new(feed, false) }
    }

    /// Puts chunks back in front, in order.
    pub(crate) fn put_back(&mut self, chunks: impl DoubleEndedIterator<Item = Chunk<'static>>) {
        self.ahead.extend(chunks.rev());
    }

    /// The next chunk, with this crate's error.
    pub(crate) fn next_rows(&mut self) -> Result<Option<Chunk<'static>>> {
        match self.ahead.pop() {
            Some(chunk) => Ok(Some(chunk)),
            None => Ok(self.batches.next().transpose()?.map(|batch| batch.chunk)),
        }
    }
}

impl RowStream for Stream {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn next_chunk(&mut self) -> covary::Result<Option<Chunk<'static>>> {
        Ok(self.next_rows()?)
    }
}

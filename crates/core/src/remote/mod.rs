//! Rows on other machines: whole fits run here, and only evidence travels.
//!
//! [`Elsewhere`] is a source that cannot be read. Each pass of a fit sends the evidence of no rows as a task; where
//! the rows are, a [`Filling`] fills it with one part of them, and [`merge`] makes one answer of two, in any tree.
//! Which engine carries the bytes is nobody's business here: Spark, Dask, a queue, or a function.
//!
//! ```
//! use covary::data::{RowSource, Rows};
//! use covary::remote::{Elsewhere, Filling, merge};
//! use covary::{Control, Ppca, Request};
//!
//! // Two parts of the rows, which may lie on two machines.
//! let parts = [[1.0, 2.1, f64::NAN, 3.9, 3.0, 6.2, 4.0, 7.8], [0.0, 0.3, 5.0, 9.7, 6.0, 12.1, 2.0, f64::NAN]];
//! let everywhere = |task: &[u8], _numbered: bool| {
//!     let fill = |part: &[f64; 8]| {
//!         let mut filling = Filling::new(task, 0)?;
//!         filling.add(Rows::from_slice(part, 2)?.source())?;
//!         filling.reply()
//!     };
//!     merge(&[fill(&parts[0])?, fill(&parts[1])?])
//! };
//! let rows = Elsewhere::new(2, everywhere);
//! let source: &dyn RowSource = &rows;
//! let fit = Request::new(Ppca::new(1)).fit(source, &Control::new())?;
//! assert_eq!(fit.report.rows, 8);
//! # Ok::<(), covary::Error>(())
//! ```

mod reply;
mod tasks;

use std::sync::{Mutex, PoisonError};

use reply::{Failure, Found, Reply};
use tasks::{Evidence, open, through};

use crate::data::{Chunk, Parcel, RemoteRows, RowSource, Task};
use crate::error::{Error, ErrorClass, Result};
use crate::evidence::stays;

/// Rows that are elsewhere, as a source for a fit.
///
/// `carry` takes the bytes of a task to all rows, and gives back the bytes of the one answer. It is also told whether
/// rows have to know their number in the whole of the data.
pub struct Elsewhere<F> {
    n_features: usize,
    n_rows: Option<usize>,
    names: Option<Vec<String>>,
    observed_only: bool,
    carry: F,
    seen: Mutex<Option<(u64, u64)>>, // rows and the checksum of their cells in the first pass
}

impl<F: Fn(&[u8], bool) -> Result<Vec<u8>> + Sync> Elsewhere<F> {
    /// Rows of so many features.
    pub fn new(n_features: usize, carry: F) -> Self {
        Self { n_features, n_rows: None, names: None, observed_only: false, carry, seen: Mutex::new(None) }
    }

    /// The same with a number of rows that is known.
    pub fn with_rows(self, n_rows: Option<usize>) -> Self {
        Self { n_rows, ..self }
    }

    /// The same with names of the features.
    pub fn with_names(self, names: Option<Vec<String>>) -> Self {
        Self { names, ..self }
    }

    /// The same, for rows of which only some cells were seen.
    pub fn observed_only(self, observed_only: bool) -> Self {
        Self { observed_only, ..self }
    }

    fn ask(&self, task: &Task) -> Result<Found> {
        let reply = Reply::from_bytes(&(self.carry)(&reply::seal(task)?, task.numbered)?)?;
        let now = (reply.rows, reply.cells);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match *seen {
            Some(before) if before != now => Err(changed(before, now)),
            _ => {
                *seen = Some(now);
                Ok(reply.found)
            }
        }
    }
}

/// The error of rows that are not the same in two passes.
fn changed((before, _): (u64, u64), (now, _): (u64, u64)) -> Error {
    let what = match before == now {
        true => "some cells have changed".into(),
        false => format!("there were {before} rows, and now there are {now}"),
    };
    let text = format!(
        "the rows differ from one pass to the next ({what}): a fit in passes needs the same rows each time; \
         write them to a file first"
    );
    Error::source(ErrorClass::Data, text)
}

impl<F: Fn(&[u8], bool) -> Result<Vec<u8>> + Sync> RemoteRows for Elsewhere<F> {
    fn fill(&self, mut task: Task) -> Result<Parcel> {
        let mut found = self.ask(&task)?;
        // Only numbered rows tell where in the data a cell is.
        if matches!(&found, Found::Failed(failure) if failure.names_a_row()) && !task.numbered {
            task.numbered = true;
            found = self.ask(&task)?;
        }
        match found {
            Found::Evidence(parcel) => Ok(parcel),
            Found::Failed(failure) => Err(failure.into()),
        }
    }
}

impl<F: Fn(&[u8], bool) -> Result<Vec<u8>> + Sync> RowSource for Elsewhere<F> {
    fn n_features(&self) -> usize {
        self.n_features
    }

    fn n_chunks(&self) -> usize {
        1
    }

    fn chunk(&self, _: usize) -> Result<Chunk<'_>> {
        Err(stays())
    }

    fn n_rows(&self) -> Option<usize> {
        self.n_rows
    }

    fn feature_names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    fn observed_only(&self) -> bool {
        self.observed_only
    }

    fn remote(&self) -> Option<&dyn RemoteRows> {
        Some(self)
    }
}

/// The evidence of a task while one part of the rows fills it, batch after batch.
pub struct Filling {
    steps: Vec<Parcel>,
    evidence: Box<dyn Evidence>,
    failed: Option<Failure>,
    rows: u64,
    cells: u64,
    first: usize, // number of the next row
}

impl Filling {
    /// Of no rows; the first to come has this number.
    ///
    /// # Errors
    /// When the bytes are not a task of this version of the library.
    pub fn new(task: &[u8], first: usize) -> Result<Self> {
        let Task { steps, evidence, .. } = reply::unseal(task)?;
        Ok(Self { steps, evidence: open(&evidence)?, failed: None, rows: 0, cells: 0, first })
    }

    /// Takes in a batch of rows. What is wrong with them is told with the answer.
    ///
    /// # Errors
    /// When rows cannot be read, or a step is not known here.
    pub fn add(&mut self, rows: &dyn RowSource) -> Result<()> {
        let mut numbered = Vec::with_capacity(rows.n_chunks());
        for index in 0..rows.n_chunks() {
            let chunk = rows.chunk(index)?;
            self.rows += chunk.nrows() as u64;
            self.cells = self.cells.wrapping_add(reply::checksum(&chunk));
            numbered.push(chunk.numbered(self.first));
            self.first += numbered.last().map_or(0, Chunk::nrows);
        }
        if self.failed.is_some() {
            return Ok(());
        }
        let batch = Batch { rows, chunks: numbered };
        let added = through(&self.steps, &batch, &mut |rows| self.evidence.add(rows));
        if let Err(error) = added {
            self.failed = Some(Failure::of(error)?);
        }
        Ok(())
    }

    /// The answer of this part of the rows.
    ///
    /// # Errors
    /// None that rows can cause.
    pub fn reply(self) -> Result<Vec<u8>> {
        let found = match self.failed {
            Some(failure) => Found::Failed(failure),
            None => Found::Evidence(self.evidence.parcel()?),
        };
        reply::seal(&Reply { rows: self.rows, cells: self.cells, found })
    }
}

/// One answer of several, which stand in the order of their rows. Answers of answers merge in the same way.
///
/// # Errors
/// When they are no answers, or answers to different tasks.
pub fn merge<B: AsRef<[u8]>>(replies: &[B]) -> Result<Vec<u8>> {
    let Some((first, others)) = replies.split_first() else { return Err(Error::NoRows) };
    let Reply { mut rows, mut cells, found } = Reply::from_bytes(first.as_ref())?;
    let mut failed = None;
    let mut evidence = match found {
        Found::Evidence(parcel) => Some(open(&parcel)?),
        Found::Failed(failure) => {
            failed = Some(failure);
            None
        }
    };
    for other in others {
        let reply = Reply::from_bytes(other.as_ref())?;
        rows += reply.rows;
        cells = cells.wrapping_add(reply.cells);
        match (reply.found, &mut evidence) {
            (Found::Failed(failure), _) => failed = failed.or(Some(failure)),
            (Found::Evidence(parcel), Some(evidence)) => evidence.merge(&parcel)?,
            (Found::Evidence(_), None) => {}
        }
    }
    let found = match (failed, evidence) {
        (Some(failure), _) => Found::Failed(failure),
        (None, Some(evidence)) => Found::Evidence(evidence.parcel()?),
        (None, None) => return Err(Error::NoRows),
    };
    reply::seal(&Reply { rows, cells, found })
}

/// The chunks of a batch with their numbers in the whole of the data.
struct Batch<'a> {
    rows: &'a dyn RowSource,
    chunks: Vec<Chunk<'a>>,
}

impl RowSource for Batch<'_> {
    fn n_features(&self) -> usize {
        self.rows.n_features()
    }

    fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    fn chunk(&self, index: usize) -> Result<Chunk<'_>> {
        Ok(self.chunks[index].borrowed())
    }

    fn observed_only(&self) -> bool {
        self.rows.observed_only()
    }
}

//! What a caller can see and do while a fit runs: progress events and a request to stop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// What happens during a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// So many rows of the current pass have been read; the total when the source knows it.
    Rows {
        /// Read so far in this pass.
        done: usize,
        /// Rows in all.
        total: Option<usize>,
    },
    /// An iteration ended.
    Iteration {
        /// Counted from 1.
        number: usize,
        /// What the method optimises, in words: `log-likelihood`, `captured variance`.
        measure: &'static str,
        /// Its value.
        objective: f64,
        /// Its change, or the measure that decides about stopping.
        change: f64,
    },
    /// The number of components is being chosen, which takes fits of its own.
    Choosing,
    /// The fit itself begins.
    Fitting,
}

/// A caller's view of a running fit. The default watches nothing and never stops.
#[derive(Default)]
pub struct Control<'a> {
    observer: Option<&'a (dyn Fn(Event) + Sync)>,
    cancel: Option<&'a AtomicBool>,
    rows_done: AtomicUsize,
    steps_before: usize,
}

impl<'a> Control<'a> {
    /// Watches nothing and never stops.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `observer` at every event, from whichever thread it happens on.
    pub fn observer(mut self, observer: &'a (dyn Fn(Event) + Sync)) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Stops soon after the flag becomes true.
    pub fn cancel(mut self, flag: &'a AtomicBool) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// The same request to stop, and nobody who watches: for work of which several pieces run side by side.
    pub(crate) fn quiet(&self) -> Control<'a> {
        Self { observer: None, cancel: self.cancel, ..Self::default() }
    }

    /// For a search that goes on after so many steps, whose numbers go on too.
    pub(crate) fn after(&self, steps: usize) -> Control<'a> {
        let steps_before = self.steps_before + steps;
        Self { observer: self.observer, cancel: self.cancel, steps_before, ..Self::default() }
    }

    /// Whether the caller asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// `Err(Interrupted)` when the caller asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn emit(&self, event: Event) {
        let Some(observer) = self.observer else { return };
        observer(match event {
            Event::Iteration { number, measure, objective, change } => {
                Event::Iteration { number: self.steps_before + number, measure, objective, change }
            }
            other => other,
        });
    }

    pub(crate) fn start_pass(&self) {
        self.rows_done.store(0, Ordering::Relaxed);
    }

    pub(crate) fn rows_read(&self, rows: usize, total: Option<usize>) {
        let done = self.rows_done.fetch_add(rows, Ordering::Relaxed) + rows;
        self.emit(Event::Rows { done, total });
    }
}

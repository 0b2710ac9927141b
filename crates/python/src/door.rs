//! The one door: work leaves the interpreter here, is watched from here, and comes back as a value or an
//! exception.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use covary::{Control, Event};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::exception;
use crate::threads::{Threads, pool};

/// How often Ctrl-C is looked for and progress shown: a tenth of what people notice, also when all cores are
/// busy.
const POLL: Duration = Duration::from_millis(20);

/// How work is to be done, as far as the caller decides.
#[derive(Default)]
pub(crate) struct Manner {
    /// Number of threads; all cores when there is none.
    pub(crate) threads: Option<Threads>,
    /// Called with (rows done, rows in all, iteration, objective, change), each `None` while unknown.
    pub(crate) progress: Option<Py<PyAny>>,
}

/// Does the work on other threads, without the interpreter's lock, until it is done or somebody presses
/// Ctrl-C.
///
/// An interrupted caller does not wait: the work owns what it reads and ends by itself, soon where it can.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    manner: &Manner,
    work: impl FnOnce(&Control<'_>) -> covary::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(manner.threads)?;
    let shared = Arc::new(Shared::default());
    let (sender, receiver) = sync_channel(1);
    let seen = Arc::clone(&shared);
    pool.spawn(move || {
        let observer = |event| seen.note(event);
        let control = Control::new().observer(&observer).cancel(&seen.cancel);
        let result = catch_unwind(AssertUnwindSafe(|| work(&control)));
        // Nobody listens any more when the caller was interrupted.
        drop(sender.send(result));
    });
    let receiver = Mutex::new(receiver);
    loop {
        match py.detach(|| wait(&receiver)) {
            Ok(Ok(result)) => return result.map_err(|error| exception(py, &error)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(bug()),
            Err(RecvTimeoutError::Timeout) => {
                let look = py.check_signals().and_then(|()| shared.show(py, manner.progress.as_ref()));
                look.inspect_err(|_| shared.cancel.store(true, Ordering::Relaxed))?;
            }
        }
    }
}

/// Does small work at once, in the caller's thread; a panic there is an error too.
pub(crate) fn now<T>(py: Python<'_>, work: impl FnOnce() -> covary::Result<T>) -> PyResult<T> {
    caught(|| work().map_err(|error| exception(py, &error)))
}

/// The same for work that makes Python's objects.
pub(crate) fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(bug()))
}

fn wait<T>(receiver: &Mutex<Receiver<T>>) -> Result<T, RecvTimeoutError> {
    locked(receiver).recv_timeout(POLL)
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bug() -> PyErr {
    let place = env!("CARGO_PKG_REPOSITORY");
    PyRuntimeError::new_err(format!("this is a bug in covary, please report it at {place}/issues"))
}

/// What the working threads and the waiting one tell each other.
#[derive(Default)]
struct Shared {
    cancel: AtomicBool,
    latest: Mutex<Latest>,
}

#[derive(Default, Clone, Copy)]
struct Latest {
    rows: Option<(usize, Option<usize>)>,
    iteration: Option<(usize, f64, f64)>,
}

impl Shared {
    fn note(&self, event: Event) {
        let mut latest = locked(&self.latest);
        match event {
            Event::Rows { done, total } => latest.rows = Some((done, total)),
            Event::Iteration { number, objective, change, .. } => {
                latest.iteration = Some((number, objective, change));
            }
            _ => {}
        }
    }

    fn show(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else { return Ok(()) };
        let Latest { rows, iteration } = *locked(&self.latest);
        let (done, total) = rows.map_or((None, None), |(done, total)| (Some(done), total));
        let iteration = iteration.map_or((None, None, None), |(n, o, c)| (Some(n), Some(o), Some(c)));
        progress.call1(py, (done, total, iteration.0, iteration.1, iteration.2)).map(drop)
    }
}

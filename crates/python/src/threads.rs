//! Numbers of threads as people give them, and the pools that have so many.

use std::process;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::door::locked;
use crate::errors::bad_threads;

/// Threads for each core beyond which more only cost memory: a larger number is taken for this.
const PER_CORE: usize = 4;

/// `n_threads`: a positive number, or one that counts from all cores downwards as joblib has it (-1: all
/// cores).
#[derive(Clone, Copy)]
pub(crate) struct Threads(usize);

impl FromPyObject<'_, '_> for Threads {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        let most = PER_CORE * cores;
        match given.extract::<i64>() {
            Ok(n) if n > 0 => Ok(Self(usize::try_from(n).unwrap_or(most).min(most))),
            Ok(n) if n < 0 => {
                let left_out = usize::try_from(-(n + 1)).unwrap_or(usize::MAX);
                Ok(Self(cores.saturating_sub(left_out).max(1)))
            }
            Err(_) if given.is_instance_of::<PyInt>() && given.gt(0)? => Ok(Self(most)),
            _ => Err(PyValueError::new_err(format!(
                "n_threads={} must be a positive number of threads, -1 for all cores, -2 for all but one, or \
                 None",
                given.repr()?
            ))),
        }
    }
}

/// A pool of some number of threads that belongs to a process.
struct Kept {
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

static POOLS: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// The pool of this many threads, or of as many as there are cores. A forked child gets pools of its own:
/// threads do not survive a fork.
pub(crate) fn pool(threads: Option<Threads>) -> PyResult<Arc<ThreadPool>> {
    let (process, threads) = (process::id(), threads.map_or(0, |threads| threads.0));
    let mut pools = locked(&POOLS);
    if let Some(kept) = pools.iter().find(|k| (k.process, k.threads) == (process, threads)) {
        return Ok(Arc::clone(&kept.pool));
    }
    // A parent's pool is left alone: there is nobody who could answer when it is taken down.
    pools.extract_if(.., |kept| kept.process != process).for_each(std::mem::forget);
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| bad_threads(threads, &e))?;
    let pool = Arc::new(pool);
    pools.push(Kept { process, threads, pool: Arc::clone(&pool) });
    Ok(pool)
}

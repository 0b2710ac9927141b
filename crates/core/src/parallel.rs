//! Work on all threads, in an order of results that no thread decides.
//!
//! Tasks are known by their number. What the threads need to share them out is compiled once, not anew for each
//! closure: with rayon's own iterators that was a third of the library.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::error::Result;

/// Calls `task` with each number below `count`.
pub(crate) fn for_each(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(task);
}

/// The results of `task` for 0, 1, …, count − 1, in this order.
pub(crate) fn map<T: Send>(count: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let places: Vec<Place<T>> = (0..count).map(|_| Place::empty()).collect();
    for_each(count, &|i| places[i].put(task(i)));
    places.into_iter().filter_map(Place::into_inner).collect()
}

/// The same for tasks that can fail.
///
/// # Errors
/// The first error in the order of the tasks; none is begun after one that is known to fail.
pub(crate) fn try_map<T: Send>(count: usize, task: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let failed = AtomicUsize::new(usize::MAX);
    let results = map(count, |i| {
        let wanted = i < failed.load(Ordering::Relaxed);
        wanted.then(|| task(i).inspect_err(|_| _ = failed.fetch_min(i, Ordering::Relaxed)))
    });
    results.into_iter().flatten().collect()
}

/// The same for what has to be changed: `task` gets each of the items once, with its number.
pub(crate) fn map_mut<S: Send, T: Send>(items: &mut [S], task: impl Fn(usize, &mut S) -> T + Sync) -> Vec<T> {
    let items: Vec<Mutex<&mut S>> = items.iter_mut().map(Mutex::new).collect();
    map(items.len(), |i| task(i, *locked(&items[i])))
}

/// The results of `leaf` for each number in `leaves`, merged along a binary tree that halves the range: rounding
/// does not depend on the threads, and a result is merged as soon as its neighbour is there.
///
/// Nothing where there are no leaves.
pub(crate) fn tree<T: Send>(
    leaves: Range<usize>,
    leaf: impl Fn(usize) -> T + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Option<T> {
    let places: Vec<Place<T>> = leaves.clone().map(|_| Place::empty()).collect();
    let fill = |i: usize| places[i].put(leaf(leaves.start + i));
    let join = |left: usize, right: usize| {
        if let (Some(a), Some(b)) = (places[left].take(), places[right].take()) {
            places[left].put(merge(a, b));
        }
    };
    halve(0..places.len(), &fill, &join);
    places.first().and_then(Place::take)
}

/// Fills the places of a range and joins them into the first.
fn halve(places: Range<usize>, fill: &(dyn Fn(usize) + Sync), join: &(dyn Fn(usize, usize) + Sync)) {
    if places.len() <= 1 {
        places.for_each(fill);
        return;
    }
    let (start, middle) = (places.start, places.start + places.len() / 2);
    rayon::join(|| halve(start..middle, fill, join), || halve(middle..places.end, fill, join));
    join(start, middle);
}

/// Where one task leaves its result.
struct Place<T>(Mutex<Option<T>>);

impl<T> Place<T> {
    fn empty() -> Self {
        Self(Mutex::new(None))
    }

    fn put(&self, result: T) {
        *locked(&self.0) = Some(result);
    }

    fn take(&self) -> Option<T> {
        locked(&self.0).take()
    }

    fn into_inner(self) -> Option<T> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that a task of its own holds: nobody waits, and a task that panicked has ended the others too.
fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        assert_eq!(map(1000, |i| i * i), (0..1000).map(|i| i * i).collect::<Vec<_>>());
        let mut items: Vec<usize> = (0..100).collect();
        let before = map_mut(&mut items, |i, item| std::mem::replace(item, *item + i));
        assert_eq!(before, (0..100).collect::<Vec<_>>());
        assert_eq!(items, (0..100).map(|i| 2 * i).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_in_the_order_of_the_tasks_counts() {
        let error = |row| Error::TooFewRows { rows: row, needed: 0 };
        let tried = |bad: &[usize]| try_map(500, |i| if bad.contains(&i) { Err(error(i)) } else { Ok(i) });
        assert_eq!(tried(&[]).unwrap(), (0..500).collect::<Vec<_>>());
        for _ in 0..20 {
            let first = tried(&[499, 17, 250]).unwrap_err();
            assert!(matches!(first, Error::TooFewRows { rows: 17, .. }), "{first}");
        }
    }

    #[test]
    fn a_tree_merges_neighbours_in_halves() {
        let merged = |n: usize| tree(3..3 + n, |i| i.to_string(), |a, b| format!("({a} {b})"));
        assert_eq!(merged(0), None);
        assert_eq!(merged(1).unwrap(), "3");
        assert_eq!(merged(5).unwrap(), "((3 4) (5 (6 7)))");
    }
}

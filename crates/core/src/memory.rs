//! Planned sizes, checked before they are allocated: memory that is not there is an error, not an abort.

use std::hint::black_box;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Bytes below which nobody is asked: where so little is not there, nothing works.
const SMALL: usize = 64 << 20;

/// Tells how many bytes the process can still take; `None` when that is not known.
pub type Available = fn() -> Option<usize>;

static AVAILABLE: OnceLock<Available> = OnceLock::new();

/// Says who knows how much memory is left, once for the process.
///
/// Systems hand out more than they have, so that asking the allocator alone is not enough, and the library
/// itself reads no files. Without an answer the allocator decides.
pub fn available_from(tell: Available) {
    AVAILABLE.get_or_init(|| tell);
}

/// Bytes that the process can still take; `None` when that is not known.
fn available() -> Option<usize> {
    AVAILABLE.get().and_then(|tell| tell())
}

/// Checks that a table of so many numbers in double precision (the product of the counts) can be had.
///
/// ```
/// use covary::memory;
///
/// assert!(memory::check("the covariance", &[100, 100]).is_ok());
/// let error = memory::check("the covariance", &[usize::MAX, usize::MAX]).unwrap_err();
/// assert!(error.to_string().starts_with("the covariance needs "));
/// ```
///
/// # Errors
/// [`Error::Memory`] with what is needed and what is there.
pub fn check(what: &'static str, counts: &[usize]) -> Result<()> {
    let bytes = counts.iter().fold(size_of::<f64>(), |bytes, n| bytes.saturating_mul(*n));
    check_bytes(what, if counts.contains(&0) { 0 } else { bytes })
}

/// The same for a number of bytes.
///
/// # Errors
/// As [`check`].
pub fn check_bytes(what: &'static str, needed: usize) -> Result<()> {
    if needed < SMALL {
        return Ok(());
    }
    let available = available();
    match available.is_none_or(|there| needed <= there) && can_be_reserved(needed) {
        true => Ok(()),
        false => Err(Error::Memory { what, needed, available }),
    }
}

/// Whether the allocator would give so much, for limits of the process; it is given back untouched.
fn can_be_reserved(bytes: usize) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let given = room.try_reserve_exact(bytes).is_ok();
    black_box(&room); // so that the allocation is made
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_beyond_all_numbers_are_sizes_too() {
        let needed = |counts: &[usize]| match check("it", counts) {
            Err(Error::Memory { needed, .. }) => needed,
            other => panic!("{other:?}"),
        };
        assert_eq!(needed(&[1 << 20, 1 << 30]), 1 << 53);
        assert_eq!(needed(&[usize::MAX; 4]), usize::MAX);
    }

    #[test]
    fn nothing_and_little_are_always_there() {
        assert!(check("it", &[usize::MAX, usize::MAX, 0]).is_ok());
        assert!(check("it", &[1000, 1000]).is_ok());
    }
}

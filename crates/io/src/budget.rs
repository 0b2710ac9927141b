//! How the memory limit is shared out: rows that are loaded, chunks on their way, and what a solver holds.

use std::fs;

/// Share of the machine's memory that a fit may take when nobody says otherwise, in percent.
const DEFAULT_PERCENT: usize = 60;
/// What a machine is thought to have when it does not tell.
const UNKNOWN_MACHINE: usize = 4 << 30;
/// Bytes that are in use for each byte of a chunk on its way: its text, its cells and what is made of them.
const CHUNK_FACTOR: usize = 6;
/// Accumulators of p × p that a thread may hold during a pass.
const SQUARES_PER_THREAD: usize = 8;
/// Accumulators of p × p that exist at once when moments are gathered from rows that pass once.
const MOMENTS_SQUARES: usize = 10;

/// A limit on the memory of the whole process.
///
/// Nothing here depends on the number of threads except how many of them may work at once: what is computed,
/// and in which pieces, must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    total: usize,
}

impl Budget {
    /// The least that is of any use.
    pub const LEAST: usize = 16 << 20;

    /// The limit asked for, or a share of what the machine has.
    pub fn new(asked: Option<usize>) -> Self {
        Self { total: asked.unwrap_or_else(|| machine() / 100 * DEFAULT_PERCENT) }
    }

    /// Size of a chunk.
    pub fn chunk_bytes(self) -> usize {
        (self.total / 256).clamp(64 << 10, 8 << 20)
    }

    /// The longest row of a text; see [`crate::ReadOptions::piece_bytes`].
    pub fn piece_bytes(self) -> usize {
        // Half of the limit, for all parts that must be in memory at once.
        self.total / 2 / crate::ReadOptions::PIECES
    }

    /// Rows that may be loaded.
    pub fn table(self) -> usize {
        self.total / 2
    }

    /// What a solver may hold besides loaded rows of this size.
    pub fn solver(self, table: usize) -> usize {
        // A quarter of the limit is for chunks on their way. A solver's own estimate counts fewer
        // accumulators than a single thread can hold, hence three quarters of the rest.
        (self.total - self.total / 4).saturating_sub(table) / 4 * 3
    }

    /// What moments of so many features, kept apart for so many parts, would need, when that is more than
    /// there is.
    pub fn too_many_for_moments(self, features: usize, parts: usize) -> Option<usize> {
        let square = features.saturating_mul(features).saturating_mul(8);
        let needed = MOMENTS_SQUARES.saturating_mul(square).saturating_mul(parts);
        Some(needed).filter(|needed| *needed > self.solver(0))
    }

    /// How many of the threads may work at once on passes that make p × p accumulators, so many parts of
    /// each.
    pub fn threads(self, available: usize, features: usize, parts: usize) -> usize {
        let by_chunks = self.total / 4 / (CHUNK_FACTOR * self.chunk_bytes());
        let square = features.saturating_mul(features).saturating_mul(8 * parts).max(1);
        let by_squares = self.total / 4 / SQUARES_PER_THREAD.saturating_mul(square);
        available.min(by_chunks).min(by_squares.max(1)).max(1)
    }
}

/// Memory of the machine, or of the container that the process runs in.
pub(crate) fn machine() -> usize {
    let container = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    let physical =
        read("/proc/meminfo").and_then(|text| total_kib(&text)).map(|kib| kib.saturating_mul(1024));
    [container, physical].into_iter().flatten().min().unwrap_or(UNKNOWN_MACHINE).max(Budget::LEAST * 2)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn total_kib(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn the_parts_stay_within_the_whole() {
        for total in [16 * MIB, 512 * MIB, 64 << 30] {
            let budget = Budget::new(Some(total));
            for (threads, features) in [(1, 10), (2, 300), (64, 300), (256, 5000)] {
                let working = budget.threads(threads, features, 1);
                let chunks = working * CHUNK_FACTOR * budget.chunk_bytes();
                assert!(chunks <= total / 4 || working == 1, "{total} {threads} {features}");
                assert!(budget.table() + budget.solver(budget.table()) + total / 4 <= total);
            }
        }
    }

    #[test]
    fn many_features_leave_room_for_few_threads() {
        let budget = Budget::new(Some(512 * MIB));
        assert_eq!(budget.threads(8, 300, 1), 8);
        assert_eq!(budget.threads(8, 300, 100), 1);
        assert_eq!(budget.threads(8, 1000, 1), 2);
        assert_eq!(budget.threads(8, 10_000, 1), 1);
    }

    #[test]
    fn the_size_of_the_machine_is_read_from_the_system() {
        assert_eq!(total_kib("MemTotal:       24609800 kB\nMemFree: 1 kB\n"), Some(24_609_800));
        assert_eq!(total_kib(""), None);
    }
}

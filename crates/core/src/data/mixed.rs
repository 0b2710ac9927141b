//! Numbers that look random and belong to a row or a cell: who is in which part of the data does not depend on how rows
//! are cut into chunks.

/// SplitMix64 \[SLF14\]: neighbours get numbers that have nothing in common.
pub(crate) fn mixed(index: u64, seed: u64) -> u64 {
    let mut x = index.wrapping_add(seed).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

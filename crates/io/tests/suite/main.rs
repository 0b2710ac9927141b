//! All tests of the crate through its public face, in one binary: linking one takes as long as running it.
#![allow(clippy::unwrap_used, reason = "tests may panic, and are textbook loops over small numbers")]

mod arrow_memory;
mod bad_binary;
mod bad_text;
mod damaged;
mod dialects;
mod differential;
mod formats;
mod headers;
mod matrix;
mod memory;
mod support;
mod tables;
mod text;
mod triples;
mod whole_or_nothing;

//! All tests of the crate through its public face, in one binary: linking one takes as long as running it.
#![allow(
    clippy::cast_possible_truncation,
    clippy::doc_markdown,
    clippy::float_cmp,
    clippy::needless_range_loop,
    clippy::unwrap_used,
    reason = "tests may panic, and are textbook loops over small numbers"
)]

mod assess;
mod bayesian;
mod brute_force;
mod capabilities;
mod common;
mod contrast;
mod contributions;
mod control;
mod crafted;
mod degenerate;
mod equivalence;
mod extreme;
mod factor;
mod factor_holes;
mod factor_questions;
mod golden;
mod gplvm;
mod holes;
mod holes_questions;
mod ica;
mod kernel_missing;
mod kernel_pca;
mod kmeans;
mod laws;
mod laws_holes;
mod laws_models;
mod layers;
mod memory;
mod mixture;
mod mixture_variational;
mod network;
mod network_fits;
mod numerics;
mod online;
mod online_models;
mod persist;
mod ppca_errors;
mod redundant;
mod remote;
mod robust;
mod robust_questions;
mod rotate;
mod scales;
mod scales_several;
mod select;
mod select_groups;
mod select_holes;
mod select_kernel;
mod threads;
mod units;

//! The command through its binary: what people type, what they get, and what happens when something is wrong.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod bad_model;
mod bad_place;
mod bayes;
mod commands;
mod crash;
mod errors;
mod factor;
mod factor_bad;
mod factor_reference;
mod formats;
mod gplvm;
mod help;
mod holes;
mod ica;
mod impute;
mod interrupt;
mod kinds;
mod kmeans;
mod kpca;
mod mixture;
mod moments;
mod names;
mod network;
mod reading;
mod report;
mod reproducible;
mod robust;
mod rotate;
mod score_cells;
mod select;
mod support;
mod triples;

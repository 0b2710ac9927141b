//! One self-contained page about a model and its rows: opened by double click, without a network.
//!
//! The page itself is TypeScript in `web/`, built into `assets/page.html`, which is part of this crate. What is
//! put into it is one compressed block: the parameters of the model, the cells of the rows as 16-bit steps of each
//! feature, the columns that are carried along, and descriptions of the core. The block is data, never executable
//! text. The page computes coordinates, distances and what each cell contributes by itself.
//!
//! ```
//! use covary::data::Rows;
//! use covary::persist::SavedModel;
//! use covary_report::{Options, Report};
//!
//! let cells = [2.5, 2.4, 0.5, 0.7, 2.2, 2.9, 1.9, 2.2];
//! let fit = covary::Ppca::new(1).fit(Rows::from_slice(&cells, 2)?)?;
//! let saved = SavedModel::new(fit, None)?;
//! let mut report = Report::new(&saved, Options::default(), &[])?;
//! report.add_source(Rows::from_slice(&cells, 2)?.source(), &[], &mut |_| Ok(()))?;
//! assert!(report.finish()?.starts_with("<!doctype html>"));
//! # Ok::<(), covary::Error>(())
//! ```
#![forbid(unsafe_code)]

mod about;
mod answers;
mod block;
mod choice;
mod collect;
mod columns;
mod limits;
mod linear;
mod options;
mod page;
mod quantise;
mod report;
mod shapes;

pub use columns::Column;
pub use options::{MOST_CELLS, MOST_ROWS, Options, UNUSUAL};
pub use report::{Piece, Report};
pub use shapes::{Image, Stick};

//! Independent components: directions along which whitened rows are as far from normal as they can be.
//!
//! Rows u have covariance I. Sources are y = W u; W (q × q) is orthogonal where sources must be uncorrelated. What
//! a method needs of the rows at a given W are sums over them ([`ContrastSums`]), one pass each.

mod deflation;
mod fastica;
mod geometry;
mod picard;

use std::sync::Arc;

pub(crate) use deflation::deflation;
pub(crate) use fastica::FastIca;
pub(crate) use geometry::Geometry;
pub(crate) use picard::Picard;

use crate::control::Control;
use crate::data::RowSource;
use crate::error::Result;
use crate::evidence::{Contrast, ContrastMeans, ContrastSums, gather};
use crate::linalg::Mat;

/// Whitened rows and the function that measures how far from normal they are along a direction.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) rows: &'a dyn RowSource,
    pub(crate) contrast: Contrast,
}

impl Search<'_> {
    /// One pass over the rows.
    pub(crate) fn measure(&self, directions: &Arc<Mat<f64>>, control: &Control<'_>) -> Result<ContrastMeans> {
        gather(self.rows, || ContrastSums::empty(self.contrast, Arc::clone(directions)), control)?.means()
    }
}

/// What a search has found.
#[derive(Debug, Clone)]
pub(crate) struct Unmixing {
    /// W (q × q): y = W u.
    pub(crate) matrix: Arc<Mat<f64>>,
    /// What the method maximises.
    pub(crate) objective: f64,
}

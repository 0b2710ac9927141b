//! What a page shall hold, and what it is called.

use covary::model::Sample;

use crate::shapes::{Image, Stick};

/// Rows that a page holds unless told.
pub const MOST_ROWS: usize = 100_000;
/// Cells that a page holds unless told: wide tables have fewer rows, so that a page stays below 8 MB.
pub const MOST_CELLS: usize = 3_200_000;
/// Unusual rows that are kept whatever the sample.
pub const UNUSUAL: usize = 1000;

/// What a page shall hold.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Most rows; 0 for none, nothing for as many as suit a page.
    pub rows: Option<usize>,
    /// The same seed keeps the same rows.
    pub seed: u64,
    /// Its title; nothing for that of the model.
    pub title: Option<String>,
    /// What the model is called in commands that the page shows.
    pub model: Option<String>,
    /// What the data are called in commands that the page shows.
    pub data: Option<String>,
    /// The carried column that identifies the rows, by position.
    pub id: Option<usize>,
    /// From how many rows the model was found, for its control limits; nothing where it is known exactly.
    pub sample: Option<Sample>,
    /// Features are the pixels of an image.
    pub image: Option<Image>,
    /// Features are the coordinates of markers, with lines between them.
    pub stick: Option<Stick>,
}

impl Options {
    /// Most rows of so many features.
    pub(crate) fn most_rows(&self, features: usize) -> usize {
        self.rows.unwrap_or_else(|| MOST_ROWS.min((MOST_CELLS / features.max(1)).max(100)))
    }
}

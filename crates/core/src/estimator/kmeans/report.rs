//! What k-means adds to a report.

use serde::{Deserialize, Serialize};

/// What k-means adds to a report. Squares are of features as they were divided before the fit, if they were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterReport {
    /// Sum of squared distances of the rows to their centres.
    pub inertia: f64,
    /// Sum of squared distances of the rows to their mean, over the observed cells.
    pub total: f64,
    /// Clusters that were asked for.
    pub asked: usize,
    /// Clusters that were found: fewer where there are fewer different rows.
    pub found: usize,
    /// Starts that were tried; 0 where the first centres were given.
    pub starts: usize,
    /// Swaps of centres that lowered the inertia.
    pub swaps: usize,
    /// Rows of the sample on which the start was found; `None` when it was all rows, or none were needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Batches of rows that each moved the centres once; `None` when the fit saw all rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online_steps: Option<usize>,
    /// How the number of clusters was chosen; `None` when it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<KTable>,
}

impl ClusterReport {
    /// Share of the sum of squares that lies between clusters; `None` when rows do not vary.
    pub fn explained(&self) -> Option<f64> {
        (self.total > 0.0).then(|| 1.0 - self.inertia / self.total)
    }
}

/// Numbers of clusters and what the gap statistic says of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KTable {
    /// Why this number, in words.
    pub reason: String,
    /// From the fewest to the most.
    pub rows: Vec<KTableRow>,
}

/// A number of clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KTableRow {
    /// How many.
    pub clusters: usize,
    /// Inertia with so many, on the rows that the choice rests on.
    pub inertia: f64,
    /// How far its logarithm lies below that of rows without clusters; `None` where every row lies at its
    /// centre.
    pub gap: Option<f64>,
    /// Standard error of the gap.
    pub error: f64,
}
